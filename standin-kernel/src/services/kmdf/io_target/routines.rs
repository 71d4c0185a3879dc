//! The `WdfIoTarget*` routines that create, control and describe a target.

use super::{
    format::must_be_open,
    open::{Sent, cancel_sent, fail_queued, send_queued, wait_for_sent},
    submit::must_be_passive,
};
use crate::{
    execution::routine::{Handle, Routine},
    ground::{NtResult, NtStatus, arena::Block, memory},
    services::kmdf::{
        device::{
            interfaces::{Query, ask},
            properties::{copy_out, give_memory, of_device},
        },
        object::{create_from, give},
        state::{
            device::{Below, DeviceData},
            device_object::own,
            framework::{Context, Entries},
            simulated,
            stack::{physical_below, physical_object},
            target::{State, TargetData},
        },
    },
};

pub const ENTRIES: Entries = &[
    ("WdfIoTargetCreate", Routine::after_globals(target_create)),
    ("WdfIoTargetGetState", Routine::after_globals(get_state)),
    ("WdfIoTargetGetDevice", Routine::after_globals(get_device)),
    ("WdfIoTargetStart", Routine::after_globals(start)),
    ("WdfIoTargetStop", Routine::after_globals(stop)),
    ("WdfIoTargetPurge", Routine::after_globals(purge)),
    ("WdfIoTargetWdmGetTargetDeviceObject", Routine::after_globals(get_device_object)),
    ("WdfIoTargetWdmGetTargetPhysicalDevice", Routine::after_globals(get_physical_device)),
    ("WdfIoTargetWdmGetTargetFileObject", Routine::after_globals(get_file_object)),
    ("WdfIoTargetWdmGetTargetFileHandle", Routine::after_globals(get_file_handle)),
    ("WdfIoTargetQueryTargetProperty", Routine::after_globals(query_property)),
    ("WdfIoTargetAllocAndQueryTargetProperty", Routine::after_globals(allocate_property)),
    ("WdfIoTargetQueryForInterface", Routine::after_globals(query_interface)),
];

fn target_create(
    context: &Context,
    device: Handle<DeviceData>,
    attributes: u64,
    target: u64,
) -> NtResult {
    device.check(context);
    let made = create_from(context, TargetData::new(device.0), attributes, Some(device.0));
    give(context, made, target)
}

fn get_state(context: &Context, target: Handle<TargetData>) -> u32 {
    target.with(context, |target| target.state as u32)
}

fn get_device(context: &Context, target: Handle<TargetData>) -> u64 {
    target.with(context, |target| target.device)
}

/// Starts a stopped or purged target, and sends the requests that wait in it.
fn start(context: &Context, target: Handle<TargetData>) -> NtResult {
    must_be_open(context, target.0)?;
    target.with(context, |target| target.state = State::Started);
    send_queued(context, target.0);
    Ok(())
}

/// Stops a target: later requests wait. `action` determines what happens to requests that were
/// already sent (`WDF_IO_TARGET_SENT_IO_ACTION`).
fn stop(context: &Context, target: Handle<TargetData>, action: u32) {
    const CANCEL: u32 = 1;
    const WAIT: u32 = 2;
    const LEAVE: u32 = 3;
    if !matches!(action, CANCEL | WAIT | LEAVE) {
        context.warn_of_misuse(|| {
            format!("with {action}, which is not a WDF_IO_TARGET_SENT_IO_ACTION")
        });
        return;
    }
    target.with(context, |target| {
        if matches!(target.state, State::Started | State::Purged) {
            target.state = State::Stopped;
        }
    });
    if action == CANCEL {
        must_be_passive(context, "with WdfIoTargetCancelSentIo");
        cancel_sent(context, target.0, Sent::Regular);
    }
    if action == WAIT {
        must_be_passive(context, "with WdfIoTargetWaitForSentIoToComplete");
    }
    if action != LEAVE {
        wait_for_sent(context, target.0, Sent::Regular);
    }
}

/// Purges a target: fails the requests that wait, cancels the requests that were sent, and refuses
/// later requests. `action` determines whether the call waits (`WDF_IO_TARGET_PURGE_IO_ACTION`).
fn purge(context: &Context, target: Handle<TargetData>, action: u32) {
    const AND_WAIT: u32 = 1;
    const PURGE: u32 = 2;
    if !matches!(action, AND_WAIT | PURGE) {
        context.warn_of_misuse(|| {
            format!("with {action}, which is not a WDF_IO_TARGET_PURGE_IO_ACTION")
        });
        return;
    }
    target.with(context, |target| {
        if matches!(target.state, State::Started | State::Stopped) {
            target.state = State::Purged;
        }
    });
    if action == AND_WAIT {
        must_be_passive(context, "with WdfIoTargetPurgeIoAndWait");
    }
    fail_queued(context, target.0);
    cancel_sent(context, target.0, Sent::Regular);
    if action == AND_WAIT {
        wait_for_sent(context, target.0, Sent::Regular);
    }
}

/// Returns the device to which a target sends, and the device whose driver owns the target.
fn ends(context: &Context, target: u64) -> (Option<Below>, u64) {
    context.with::<TargetData, _>(target, |target| (target.to, target.device))
}

fn get_device_object(context: &Context, target: u64) -> u64 {
    match ends(context, target) {
        (Some(Below::Simulated(number)), _) => simulated::object(context, number),
        (Some(Below::Device(device)), _) if context.framework().exists(device) => {
            own(context, device)
        }
        (Some(Below::Bus), device) => physical_object(context, device),
        _ => 0,
    }
}

fn get_physical_device(context: &Context, target: u64) -> u64 {
    match ends(context, target) {
        (None, _) => 0,
        (Some(Below::Bus), device) => physical_object(context, device),
        (Some(below), _) => physical_below(context, below),
    }
}

/// The size of a `FILE_OBJECT`, and the offset of its device.
const FILE_OBJECT: usize = 216;
const FILE_OBJECT_DEVICE: u64 = 8;

/// Returns the `FILE_OBJECT` of a target that was opened by name, or 0.
fn get_file_object(context: &Context, target: Handle<TargetData>) -> u64 {
    let device = get_device_object(context, target.0);
    let (address, is_new) = target.with(context, |target| {
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

/// Returns the handle of a target that was opened by name, or 0. Drivers can only compare it with
/// 0.
fn get_file_handle(context: &Context, target: Handle<TargetData>) -> u64 {
    /// Handles of the system process have these bits set.
    const KERNEL_HANDLE: u64 = 0xFFFF_FFFF_8000_0000;
    target.with(context, |data| {
        if data.to.is_some() && data.name.is_some() {
            KERNEL_HANDLE | (target.0 & 0xF_FFC0) >> 4 | 4
        } else {
            0
        }
    })
}

/// Returns a property of a target's device.
fn property(context: &Context, target: u64, property: u32) -> NtResult<Vec<u8>> {
    match ends(context, target) {
        (None, _) => Err(NtStatus::INVALID_DEVICE_STATE),
        (Some(Below::Device(device)), _) if context.framework().exists(device) => {
            of_device(context, device, property)
        }
        (Some(Below::Bus), device) => of_device(context, device, property),
        (Some(Below::Device(_) | Below::Simulated(_)), _) => Err(NtStatus::OBJECT_NAME_NOT_FOUND),
    }
}

fn query_property(
    context: &Context,
    target: u64,
    which: u32,
    length: u32,
    buffer: u64,
    result_length: u64,
) -> NtResult {
    let found = property(context, target, which);
    copy_out(context, found, length, buffer, result_length)
}

fn allocate_property(
    context: &Context,
    target: u64,
    which: u32,
    _pool: u32,
    attributes: u64,
    memory: u64,
) -> NtResult {
    let found = property(context, target, which);
    give_memory(context, found, attributes, memory)
}

fn query_interface(
    context: &Context,
    target: u64,
    class: u64,
    table: u64,
    size: u16,
    version: u16,
    data: u64,
) -> NtResult {
    let (Some(below), _) = ends(context, target) else {
        return Err(NtStatus::INVALID_DEVICE_STATE);
    };
    ask(context, below, Query { class, table, size, version, data })
}
