//! The routines for a bus driver's children, and the static list of children.

use super::{
    children::{Child, ChildState, StaticChildren, state_of, with_child},
    list::mark_entry_missing,
    removal::{eject_later, remove_later},
};
use crate::{
    execution::routine::{At, Handle, routine},
    ground::{NtResult, NtStatus, abi::ForwardOptions, rule::Rule},
    services::kmdf::{
        io::pass::forget_to_parent,
        state::{
            device::{DeviceData, device_of},
            framework::{Context, Entries},
            queue::QueueData,
            request::RequestData,
        },
        work::{Work, WorkKind, queue_work},
    },
};

pub const ENTRIES: Entries = &[
    routine("WdfPdoGetParent", get_parent),
    routine("WdfPdoMarkMissing", mark_missing),
    routine("WdfPdoRequestEject", request_eject),
    routine("WdfFdoAddStaticChild", add_static_child),
    routine("WdfFdoLockStaticChildListForIteration", lock_list),
    routine("WdfFdoRetrieveNextStaticChild", retrieve_next),
    routine("WdfFdoUnlockStaticChildListFromIteration", unlock_list),
    routine("WdfRequestForwardToParentDeviceIoQueue", forward_to_parent),
];

/// Bugchecks if a device is not a child of a bus device. Returns its parent.
pub fn parent_of(context: &Context, device: u64) -> u64 {
    let parent = context.with::<DeviceData, _>(device, |device| device.init.child_of);
    parent.unwrap_or_else(|| {
        context.stop_call(
            Rule::BadHandle,
            &format!("with 0x{device:016X}, which is not a child of a bus device"),
        )
    })
}

/// Returns the parent of a child of a bus device, or null for another device.
fn get_parent(context: &Context, device: Handle<DeviceData>) -> Handle<DeviceData> {
    Handle::new(device.with(context, |device| device.init.child_of.unwrap_or(0)))
}

/// Reports a child missing.
fn mark_missing(context: &Context, device: Handle<DeviceData>) -> NtStatus {
    let (is_child, is_added) = device
        .with(context, |device| (device.init.child_of.is_some(), !device.init.is_to_be_added));
    if !is_child {
        return NtStatus::INVALID_PARAMETER;
    }
    let (listed, was_missing) = with_child(context, device.0, |child| {
        (child.listed, core::mem::replace(&mut child.is_missing, is_added))
    });
    match listed {
        Some((list, number)) => mark_entry_missing(context, list, number),
        None if !is_added => return NtStatus::NO_SUCH_DEVICE,
        None if !was_missing => remove_later(context, device.0),
        None => {}
    }
    NtStatus::SUCCESS
}

fn request_eject(context: &Context, device: Handle<DeviceData>) {
    parent_of(context, device.0);
    eject_later(context, device.0);
}

fn add_static_child(
    context: &Context,
    device: Handle<DeviceData>,
    child: Handle<DeviceData>,
) -> NtStatus {
    device.check(context);
    let parent = child.with(context, |child| child.init.child_of);
    if parent != Some(device.0) {
        return NtStatus::INVALID_PARAMETER;
    }
    let is_new = device.with(context, |device| {
        let devices = &mut device.part::<StaticChildren>().devices;
        let is_new = !devices.contains(&child.0);
        if is_new {
            devices.push(child.0);
        }
        is_new
    });
    if !is_new {
        return NtStatus::OBJECT_NAME_EXISTS;
    }
    child.with(context, |child| child.init.is_to_be_added = false);
    queue_work(
        context,
        Work { kind: WorkKind::NewChildren, routine: 0, handle: device.0, run: report },
    );
    NtStatus::SUCCESS
}

/// Reports the static children of a bus device to the Plug and Play manager.
fn report(context: &Context, device: u64) {
    let children = context
        .framework()
        .get::<DeviceData>(device)
        .map(|device| device.part::<StaticChildren>().devices.clone());
    for child in children.unwrap_or_default() {
        if context.framework().exists(child) {
            with_child(context, child, |child| child.is_reported = true);
        }
    }
}

fn lock_list(context: &Context, device: Handle<DeviceData>) {
    device.with(context, |device| {
        device.part::<StaticChildren>().locks += 1;
    });
}

fn unlock_list(context: &Context, device: Handle<DeviceData>) {
    let unlocked = device.with(context, |device| {
        let locks = &mut device.part::<StaticChildren>().locks;
        *locks = locks.checked_sub(1)?;
        Some(())
    });
    if unlocked.is_none() {
        context.warn_of_misuse(|| "for a list that is not locked".to_owned());
    }
}

/// Returns the next static child that the flags select, or 0.
fn retrieve_next(
    context: &Context,
    device: Handle<DeviceData>,
    previous: Handle<DeviceData>,
    flags: u32,
) -> Handle<DeviceData> {
    let (children, is_locked) = device.with(context, |device| {
        let list = device.part::<StaticChildren>();
        (list.devices.clone(), list.locks > 0)
    });
    if !is_locked {
        context.warn_of_misuse(|| {
            "without WdfFdoLockStaticChildListForIteration; the list may change".to_owned()
        });
    }
    let skipped =
        children.iter().position(|child| *child == previous.0).map_or(0, |place| place + 1);
    Handle::new(
        children
            .into_iter()
            .skip(skipped)
            .find(|child| {
                context.framework().exists(*child)
                    && with_child(context, *child, |child| {
                        let state: ChildState = state_of(child);
                        state.is_in(flags)
                    })
            })
            .unwrap_or(0),
    )
}

/// Permanently forwards a child's request to a queue of its parent.
fn forward_to_parent(
    context: &Context,
    request: Handle<RequestData>,
    queue: Handle<QueueData>,
    options: At<ForwardOptions>,
) -> NtResult {
    /// `WDF_REQUEST_FORWARD_OPTION_SEND_AND_FORGET`.
    const FORGET: u32 = 1;
    request.check(context);
    queue.check(context);
    let options = options.read(context);
    if options.size as usize != size_of::<ForwardOptions>() {
        return Err(NtStatus::INFO_LENGTH_MISMATCH);
    }
    if options.flags & !FORGET != 0 {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    let child = device_of(context, request.0);
    let parent = child.and_then(|child| {
        context.with::<DeviceData, _>(child, |child| {
            let is_allowed = child.part::<Child>().forwards_to_parent;
            child.init.child_of.filter(|_| is_allowed)
        })
    });
    if parent.is_none() || parent != device_of(context, queue.0) {
        return Err(NtStatus::INVALID_DEVICE_REQUEST);
    }
    let accepts = queue.with(context, |queue| queue.accepts);
    if !accepts {
        return Err(NtStatus::WDF_BUSY);
    }
    forget_to_parent(context, request.0, queue.0)
}
