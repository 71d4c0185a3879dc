//! The routines for a bus driver's children, and the static list of children.

use super::{
    children::{Child, ChildState, StaticChildren, state_of, with_child},
    removal::{eject_later, remove_later},
};
use crate::{
    execution::routine::{Routine, low_half},
    ground::{framework_abi::ForwardOptions, rule::Rule, status::NtStatus},
    services::kmdf::{
        io::pass::forget_to_parent,
        object::status_of,
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
    ("WdfPdoGetParent", Routine::Two(get_parent)),
    ("WdfPdoMarkMissing", Routine::Two(mark_missing)),
    ("WdfPdoRequestEject", Routine::Two(request_eject)),
    ("WdfFdoAddStaticChild", Routine::Three(add_static_child)),
    ("WdfFdoLockStaticChildListForIteration", Routine::Two(lock_list)),
    ("WdfFdoRetrieveNextStaticChild", Routine::Four(retrieve_next)),
    ("WdfFdoUnlockStaticChildListFromIteration", Routine::Two(unlock_list)),
    ("WdfRequestForwardToParentDeviceIoQueue", Routine::Four(forward_to_parent)),
];

/// Bugchecks if a device is no child of a bus device. Returns its parent.
pub fn parent_of(context: &Context, device: u64) -> u64 {
    let parent = context.with::<DeviceData, _>(device, |device| device.init.child_of);
    parent.unwrap_or_else(|| {
        context.stop(
            Rule::BadHandle,
            format!(
                "{} was called from {} with 0x{device:016X}, which is no child of a bus device",
                context.call().name,
                context.caller()
            ),
        )
    })
}

fn get_parent(context: &Context, _globals: u64, device: u64) -> u64 {
    parent_of(context, device)
}

/// Reports that a static child is gone. Children of a list are reported by their descriptions.
fn mark_missing(context: &Context, _globals: u64, device: u64) -> u64 {
    parent_of(context, device);
    let was_there = with_child(context, device, |child| {
        let is_static = child.listed.is_none();
        is_static && !core::mem::replace(&mut child.is_missing, true)
    });
    if !was_there {
        return NtStatus::INVALID_PARAMETER.to_register();
    }
    remove_later(context, device);
    NtStatus::SUCCESS.to_register()
}

fn request_eject(context: &Context, _globals: u64, device: u64) -> u64 {
    parent_of(context, device);
    eject_later(context, device);
    0
}

fn add_static_child(context: &Context, _globals: u64, device: u64, child: u64) -> u64 {
    context.with::<DeviceData, _>(device, |_| ());
    let parent = context.with::<DeviceData, _>(child, |child| child.init.child_of);
    if parent != Some(device) {
        return NtStatus::INVALID_PARAMETER.to_register();
    }
    let is_new = context.with::<DeviceData, _>(device, |device| {
        let devices = &mut device.part::<StaticChildren>().devices;
        let is_new = !devices.contains(&child);
        if is_new {
            devices.push(child);
        }
        is_new
    });
    if !is_new {
        return NtStatus::INVALID_PARAMETER.to_register();
    }
    queue_work(
        context,
        Work { kind: WorkKind::NewChildren, routine: 0, handle: device, run: report },
    );
    NtStatus::SUCCESS.to_register()
}

/// Reports the static children of a bus device to the plug-and-play manager.
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

fn lock_list(context: &Context, _globals: u64, device: u64) -> u64 {
    context.with::<DeviceData, _>(device, |device| {
        device.part::<StaticChildren>().locks += 1;
    });
    0
}

fn unlock_list(context: &Context, _globals: u64, device: u64) -> u64 {
    let unlocked = context.with::<DeviceData, _>(device, |device| {
        let locks = &mut device.part::<StaticChildren>().locks;
        *locks = locks.checked_sub(1)?;
        Some(())
    });
    if unlocked.is_none() {
        context.warn_of_misuse(|| "for a list that is not locked".to_owned());
    }
    0
}

/// Returns the next static child that the flags select, or 0.
fn retrieve_next(context: &Context, _globals: u64, device: u64, previous: u64, flags: u64) -> u64 {
    let (children, is_locked) = context.with::<DeviceData, _>(device, |device| {
        let list = device.part::<StaticChildren>();
        (list.devices.clone(), list.locks > 0)
    });
    if !is_locked {
        context.warn_of_misuse(|| {
            "without WdfFdoLockStaticChildListForIteration; the list may change".to_owned()
        });
    }
    let skipped = children.iter().position(|child| *child == previous).map_or(0, |place| place + 1);
    let flags = low_half(flags);
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
        .unwrap_or(0)
}

/// Gives a child's request to a queue of its parent, for good.
fn forward_to_parent(
    context: &Context,
    _globals: u64,
    request: u64,
    queue: u64,
    options: u64,
) -> u64 {
    /// `WDF_REQUEST_FORWARD_OPTION_SEND_AND_FORGET`.
    const FORGET: u32 = 1;
    context.with::<RequestData, _>(request, |_| ());
    context.with::<QueueData, _>(queue, |_| ());
    let options: ForwardOptions = context.read(options);
    if options.size as usize != size_of::<ForwardOptions>() || options.flags != FORGET {
        return NtStatus::INVALID_PARAMETER.to_register();
    }
    let child = device_of(context, request);
    let parent = child.and_then(|child| {
        context.with::<DeviceData, _>(child, |child| {
            let is_allowed = child.part::<Child>().forwards_to_parent;
            child.init.child_of.filter(|_| is_allowed)
        })
    });
    if parent.is_none() || parent != device_of(context, queue) {
        return NtStatus::INVALID_DEVICE_REQUEST.to_register();
    }
    let accepts = context.with::<QueueData, _>(queue, |queue| queue.accepts);
    if !accepts {
        return NtStatus::WDF_BUSY.to_register();
    }
    let sent = forget_to_parent(context, request, queue);
    status_of(sent)
}
