//! The `WdfIoTarget*` routines that create, control and describe a target.

use super::{
    open::{cancel_requests, send_queued, wait_for_sent},
    submit::must_be_passive,
};
use crate::{
    execution::routine::{Routine, low_half},
    ground::{arena::Block, memory, status::NtStatus},
    services::kmdf::{
        device::{
            interfaces::{Query, ask},
            properties::{copy_out, give_memory, of_device},
        },
        object::{create, give, read_attributes},
        state::{
            device::{Below, DeviceData},
            device_object::own,
            framework::{Context, Entries},
            played,
            stack::{physical_below, physical_object},
            target::{State, TargetData},
        },
    },
};

pub const ENTRIES: Entries = &[
    ("WdfIoTargetCreate", Routine::Four(target_create)),
    ("WdfIoTargetGetState", Routine::Two(get_state)),
    ("WdfIoTargetGetDevice", Routine::Two(get_device)),
    ("WdfIoTargetStart", Routine::Two(start)),
    ("WdfIoTargetStop", Routine::Three(stop)),
    ("WdfIoTargetPurge", Routine::Three(purge)),
    ("WdfIoTargetWdmGetTargetDeviceObject", Routine::Two(get_device_object)),
    ("WdfIoTargetWdmGetTargetPhysicalDevice", Routine::Two(get_physical_device)),
    ("WdfIoTargetWdmGetTargetFileObject", Routine::Two(get_file_object)),
    ("WdfIoTargetWdmGetTargetFileHandle", Routine::Two(get_file_handle)),
    ("WdfIoTargetQueryTargetProperty", Routine::Six(query_property)),
    ("WdfIoTargetAllocAndQueryTargetProperty", Routine::Six(allocate_property)),
    ("WdfIoTargetQueryForInterface", Routine::Seven(query_interface)),
];

fn target_create(
    context: &Context,
    _globals: u64,
    device: u64,
    attributes: u64,
    target: u64,
) -> u64 {
    context.with::<DeviceData, _>(device, |_| ());
    let attributes = read_attributes(context, attributes);
    let made = create(context, TargetData::new(device), attributes.as_ref(), Some(device));
    give(context, made, target)
}

fn get_state(context: &Context, _globals: u64, target: u64) -> u64 {
    context.with::<TargetData, _>(target, |target| target.state as u64)
}

fn get_device(context: &Context, _globals: u64, target: u64) -> u64 {
    context.with::<TargetData, _>(target, |target| target.device)
}

/// Starts a stopped or purged target, and sends the requests that wait in it.
fn start(context: &Context, _globals: u64, target: u64) -> u64 {
    let status = context.with::<TargetData, _>(target, |target| match target.state {
        State::Started | State::Stopped | State::Purged => {
            target.state = State::Started;
            NtStatus::SUCCESS
        }
        _ => NtStatus::INVALID_DEVICE_STATE,
    });
    if status.is_success() {
        send_queued(context, target);
    }
    status.to_register()
}

/// Stops a target: later requests wait. What becomes of those that were sent is the driver's choice
/// (`WDF_IO_TARGET_SENT_IO_ACTION`).
fn stop(context: &Context, _globals: u64, target: u64, action: u64) -> u64 {
    const CANCEL: u32 = 1;
    const WAIT: u32 = 2;
    const LEAVE: u32 = 3;
    context.with::<TargetData, _>(target, |target| {
        if matches!(target.state, State::Started | State::Purged) {
            target.state = State::Stopped;
        }
    });
    match low_half(action) {
        CANCEL => {
            must_be_passive(context, "with WdfIoTargetCancelSentIo");
            cancel_sent(context, target);
            wait_for_sent(context, target);
        }
        WAIT => {
            must_be_passive(context, "with WdfIoTargetWaitForSentIoToComplete");
            wait_for_sent(context, target);
        }
        LEAVE => {}
        action => context
            .warn_of_misuse(|| format!("with {action}, which is no WDF_IO_TARGET_SENT_IO_ACTION")),
    }
    0
}

/// Cancels the requests that were sent. Those that wait in the target stay.
fn cancel_sent(context: &Context, target: u64) {
    let queued =
        context.with::<TargetData, _>(target, |target| core::mem::take(&mut target.queued));
    cancel_requests(context, target);
    context.with::<TargetData, _>(target, |target| {
        for request in queued.into_iter().rev() {
            target.queued.push_front(request);
        }
    });
}

/// Purges a target: it refuses later requests, and those that it has are cancelled
/// (`WDF_IO_TARGET_PURGE_IO_ACTION`).
fn purge(context: &Context, _globals: u64, target: u64, action: u64) -> u64 {
    const AND_WAIT: u32 = 1;
    const PURGE: u32 = 2;
    context.with::<TargetData, _>(target, |target| {
        if matches!(target.state, State::Started | State::Stopped) {
            target.state = State::Purged;
        }
    });
    match low_half(action) {
        AND_WAIT => {
            must_be_passive(context, "with WdfIoTargetPurgeIoAndWait");
            cancel_requests(context, target);
            wait_for_sent(context, target);
        }
        PURGE => cancel_requests(context, target),
        action => context
            .warn_of_misuse(|| format!("with {action}, which is no WDF_IO_TARGET_PURGE_IO_ACTION")),
    }
    0
}

/// Returns the device that a target sends to, and the device whose driver has the target.
fn ends(context: &Context, target: u64) -> (Option<Below>, u64) {
    context.with::<TargetData, _>(target, |target| (target.to, target.device))
}

fn get_device_object(context: &Context, _globals: u64, target: u64) -> u64 {
    match ends(context, target) {
        (Some(Below::Played(number)), _) => played::object(context, number),
        (Some(Below::Device(device)), _) if context.framework().exists(device) => {
            own(context, device)
        }
        (Some(Below::Bus), device) => physical_object(context, device),
        _ => 0,
    }
}

fn get_physical_device(context: &Context, _globals: u64, target: u64) -> u64 {
    match ends(context, target) {
        (None, _) => 0,
        (Some(Below::Bus), device) => physical_object(context, device),
        (Some(below), _) => physical_below(context, below),
    }
}

/// The size of a `FILE_OBJECT`, and the offset of its device.
const FILE_OBJECT: usize = 216;
const FILE_OBJECT_DEVICE: u64 = 8;

/// Returns the `FILE_OBJECT` that a target opened by name has, or 0.
fn get_file_object(context: &Context, globals: u64, target: u64) -> u64 {
    let device = get_device_object(context, globals, target);
    let (address, is_new) = context.with::<TargetData, _>(target, |target| {
        if target.to.is_none() || target.name.is_none() {
            return (0, false);
        }
        let is_new = target.file_object.is_none();
        let block = target.file_object.get_or_insert_with(|| Block::zeroed(FILE_OBJECT));
        (block.address(), is_new)
    });
    if is_new {
        // IO_TYPE_FILE, and the structure's size
        let filled = memory::write_bytes(address, &[5, 0, 216, 0])
            .and_then(|()| memory::write(address + FILE_OBJECT_DEVICE, &device));
        debug_assert!(filled.is_ok(), "the kernel's own memory is writable");
    }
    address
}

/// Returns the handle of a target that was opened by name, or 0. It can be compared with 0 only.
fn get_file_handle(context: &Context, _globals: u64, target: u64) -> u64 {
    /// Handles of the system process have this bit.
    const KERNEL_HANDLE: u64 = 0xFFFF_FFFF_8000_0000;
    context.with::<TargetData, _>(target, |data| {
        if data.to.is_some() && data.name.is_some() {
            KERNEL_HANDLE | (target & 0xF_FFC0) >> 4 | 4
        } else {
            0
        }
    })
}

/// Returns a property of a target's device.
fn property(context: &Context, target: u64, property: u64) -> Result<Vec<u8>, NtStatus> {
    match ends(context, target) {
        (None, _) => Err(NtStatus::INVALID_DEVICE_STATE),
        (Some(Below::Device(device)), _) if context.framework().exists(device) => {
            of_device(context, device, property)
        }
        (Some(Below::Bus), device) => of_device(context, device, property),
        (Some(Below::Device(_) | Below::Played(_)), _) => Err(NtStatus::OBJECT_NAME_NOT_FOUND),
    }
}

fn query_property(
    context: &Context,
    _globals: u64,
    target: u64,
    which: u64,
    length: u64,
    buffer: u64,
    result_length: u64,
) -> u64 {
    let found = property(context, target, which);
    copy_out(context, found, length, buffer, result_length)
}

fn allocate_property(
    context: &Context,
    _globals: u64,
    target: u64,
    which: u64,
    _pool: u64,
    attributes: u64,
    memory: u64,
) -> u64 {
    let found = property(context, target, which);
    give_memory(context, found, attributes, memory)
}

fn query_interface(context: &Context, arguments: [u64; 7]) -> u64 {
    let [_globals, target, class, table, size, version, data] = arguments;
    let (Some(below), _) = ends(context, target) else {
        return NtStatus::INVALID_DEVICE_STATE.to_register();
    };
    ask(context, below, Query::new(class, table, size, version, data)).to_register()
}
