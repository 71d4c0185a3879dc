//! The `WdfIoTarget*` routines that create, control and describe a target.

use super::{
    format::must_be_open,
    open::{Sent, cancel_sent, fail_queued, send_queued, wait_for_sent},
    submit::must_be_passive,
};
use crate::{
    execution::{
        kinds::NtObject,
        routine::{At, Handle, Memory, Out, routine},
    },
    ground::{
        NtResult, NtStatus,
        abi::{DeviceObject, FileObject, Interface, ObjectAttributes},
        arena::Block,
        memory,
    },
    services::kmdf::{
        device::{
            interfaces::{Query, ask},
            properties::{copy_out, give_memory, of_device},
        },
        lifetime::{create_from, give},
        object::memory::MemoryData,
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
use etl_file::Guid;

pub const ENTRIES: Entries = &[
    routine("WdfIoTargetCreate", target_create),
    routine("WdfIoTargetGetState", get_state),
    routine("WdfIoTargetGetDevice", get_device),
    routine("WdfIoTargetStart", start),
    routine("WdfIoTargetStop", stop),
    routine("WdfIoTargetPurge", purge),
    routine("WdfIoTargetWdmGetTargetDeviceObject", get_device_object),
    routine("WdfIoTargetWdmGetTargetPhysicalDevice", get_physical_device),
    routine("WdfIoTargetWdmGetTargetFileObject", get_file_object),
    routine("WdfIoTargetWdmGetTargetFileHandle", get_file_handle),
    routine("WdfIoTargetQueryTargetProperty", query_property),
    routine("WdfIoTargetAllocAndQueryTargetProperty", allocate_property),
    routine("WdfIoTargetQueryForInterface", query_interface),
];

fn target_create(
    context: &Context,
    device: Handle<DeviceData>,
    attributes: At<ObjectAttributes>,
    target: Out<TargetData>,
) -> NtResult {
    device.check(context);
    let made = create_from(context, TargetData::new(device.0), attributes.0, Some(device.0));
    give(context, made, target.0)
}

fn get_state(context: &Context, target: Handle<TargetData>) -> u32 {
    target.with(context, |target| target.state as u32)
}

fn get_device(context: &Context, target: Handle<TargetData>) -> Handle<DeviceData> {
    Handle::new(target.with(context, |target| target.device))
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

fn get_device_object(context: &Context, target: Handle<TargetData>) -> At<DeviceObject> {
    match ends(context, target.0) {
        (Some(Below::Simulated(number)), _) => At::new(simulated::object(context, number)),
        (Some(Below::Device(device)), _) if context.framework().exists(device) => {
            At::new(own(context, device))
        }
        (Some(Below::Bus), device) => At::new(physical_object(context, device)),
        _ => At::NULL,
    }
}

fn get_physical_device(context: &Context, target: Handle<TargetData>) -> At<DeviceObject> {
    match ends(context, target.0) {
        (None, _) => At::NULL,
        (Some(Below::Bus), device) => At::new(physical_object(context, device)),
        (Some(below), _) => At::new(physical_below(context, below)),
    }
}

/// The size of a `FILE_OBJECT`, and the offset of its device.
const FILE_OBJECT: usize = 216;
const FILE_OBJECT_DEVICE: u64 = 8;

/// Returns the `FILE_OBJECT` of a target that was opened by name, or 0.
fn get_file_object(context: &Context, target: Handle<TargetData>) -> At<FileObject> {
    let device = get_device_object(context, Handle::new(target.0));
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
            .and_then(|()| memory::write(address + FILE_OBJECT_DEVICE, &device.0));
        debug_assert!(filled.is_ok(), "the kernel's own memory is writable");
    }
    At::new(address)
}

/// Returns the handle of a target that was opened by name, or 0. Drivers can only compare it with
/// 0.
fn get_file_handle(context: &Context, target: Handle<TargetData>) -> Handle<NtObject> {
    /// Handles of the system process have these bits set.
    const KERNEL_HANDLE: u64 = 0xFFFF_FFFF_8000_0000;
    Handle::new(target.with(context, |data| {
        if data.to.is_some() && data.name.is_some() {
            KERNEL_HANDLE | (target.0 & 0xF_FFC0) >> 4 | 4
        } else {
            0
        }
    }))
}

/// Returns a property of a target's device.
fn property(context: &Context, target: u64, property: u32) -> NtResult<Vec<u8>> {
    match ends(context, target) {
        (None, _) => Err(NtStatus::INVALID_DEVICE_REQUEST),
        (Some(Below::Device(device)), _) if context.framework().exists(device) => {
            of_device(context, device, property)
        }
        (Some(Below::Bus), device) => of_device(context, device, property),
        (Some(Below::Device(_) | Below::Simulated(_)), _) => Err(NtStatus::OBJECT_NAME_NOT_FOUND),
    }
}

fn query_property(
    context: &Context,
    target: Handle<TargetData>,
    which: u32,
    length: u32,
    buffer: Memory,
    result_length: At<u32>,
) -> NtResult {
    let found = property(context, target.0, which);
    copy_out(context, found, length, buffer.0, result_length.0)
}

fn allocate_property(
    context: &Context,
    target: Handle<TargetData>,
    which: u32,
    _pool: u32,
    attributes: At<ObjectAttributes>,
    memory: Out<MemoryData>,
) -> NtResult {
    let found = property(context, target.0, which);
    give_memory(context, found, attributes.0, memory.0)
}

fn query_interface(
    context: &Context,
    target: Handle<TargetData>,
    class: At<Guid>,
    table: At<Interface>,
    size: u16,
    version: u16,
    data: Memory,
) -> NtResult {
    let (Some(below), _) = ends(context, target.0) else {
        return Err(NtStatus::INVALID_DEVICE_STATE);
    };
    ask(context, below, Query { class: class.0, table: table.0, size, version, data: data.0 })
}
