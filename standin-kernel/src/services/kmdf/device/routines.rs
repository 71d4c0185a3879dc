//! The `WdfDevice*` routines that act on a device.

use std::collections::hash_map::Entry;

use super::pnp::surprise_remove;
use crate::{
    execution::routine::{At, Handle, routine},
    ground::{NtResult, NtStatus, abi::UnicodeString},
    services::{
        kmdf::{
            binding::DriverData,
            io::pass,
            object::string::{read_optional_text, read_text},
            state::{
                device::{DeviceData, DeviceInterface, device_of, queue_of},
                framework::{Context, Entries},
                queue::QueueData,
                request::RequestData,
            },
            work::{Work, WorkKind, queue_work},
        },
        ntoskrnl::ob::{namespace, namespace::Target},
    },
};
use etl_file::Guid;

pub const ENTRIES: Entries = &[
    routine("WdfDeviceCreateDeviceInterface", create_interface),
    routine("WdfDeviceCreateSymbolicLink", create_link),
    routine("WdfDeviceGetDefaultQueue", get_default_queue),
    routine("WdfDeviceGetDriver", get_driver),
    routine("WdfDeviceConfigureRequestDispatching", configure_dispatching),
    routine("WdfDeviceSetFailed", set_failed),
    routine("WdfDeviceEnqueueRequest", enqueue_request),
    routine("WdfControlFinishInitializing", control_finish),
];

fn create_interface(
    context: &Context,
    device: Handle<DeviceData>,
    guid: At<Guid>,
    reference: At<UnicodeString>,
) -> NtResult {
    device.check(context);
    let class: [u8; 16] = context.read(guid.0);
    let reference = read_optional_text(context, reference.0)?;
    device.with(context, |device| {
        if device.is_control() {
            return Err(NtStatus::INVALID_DEVICE_REQUEST);
        }
        device.interfaces.push(DeviceInterface { class, reference, is_enabled: true });
        Ok(())
    })
}

/// Creates a device's symbolic link. A device has only one.
fn create_link(context: &Context, device: Handle<DeviceData>, name: At<UnicodeString>) -> NtResult {
    let string = name.read(context);
    if string.length == 0 {
        return Err(NtStatus::INVALID_DEVICE_REQUEST);
    }
    let name = read_text(context, name.0)?;
    let target = device.with(context, |device| {
        if device.link.is_some() {
            return Err(NtStatus::INVALID_DEVICE_REQUEST);
        }
        if device.is_control() && device.init.name.is_none() {
            return Err(NtStatus::INVALID_DEVICE_STATE);
        }
        let own = device.init.assigned_name();
        Ok(Target::new(own.unwrap_or(&device.init.identity.physical_name)))
    })?;
    let link = namespace::link_device(&mut context.ntoskrnl(), &name, target)?;
    device.with(context, |device| device.link = Some((name, link)));
    Ok(())
}

fn get_default_queue(context: &Context, device: Handle<DeviceData>) -> Handle<QueueData> {
    Handle::new(device.with(context, |device| device.default_queue.unwrap_or(0)))
}

fn get_driver(context: &Context, device: Handle<DeviceData>) -> Handle<DriverData> {
    device.check(context);
    Handle::new(context.framework().ancestor::<DriverData>(device.0).unwrap_or(0))
}

/// Puts a request in the queue for its kind, after `EvtIoInCallerContext` has prepared the request.
/// If the call fails, the driver still owns the request.
fn enqueue_request(
    context: &Context,
    device: Handle<DeviceData>,
    request: Handle<RequestData>,
) -> NtStatus {
    device.check(context);
    let is_new =
        request.with(context, |request| request.is_in_caller_context && request.queue().is_none());
    if !is_new {
        return NtStatus::INVALID_DEVICE_REQUEST;
    }
    let kind = request.with(context, |request| request.kind);
    match queue_of(context, device.0, kind) {
        Some(queue) if !context.is::<QueueData>(queue, |queue| queue.accepts) => {
            return NtStatus::WDF_BUSY;
        }
        None if !pass::is_filter(context, device.0) => return NtStatus::INVALID_DEVICE_REQUEST,
        _ => pass::enqueue(context, device.0, request.0),
    }
    NtStatus::SUCCESS
}

/// Directs requests of one kind to a queue. Each kind has at most one such queue.
fn configure_dispatching(
    context: &Context,
    device: Handle<DeviceData>,
    queue: Handle<QueueData>,
    request_type: u32,
) -> NtStatus {
    /// The types of creates, reads, writes, device controls and internal device controls.
    const TYPES: [u32; 5] = [0, 3, 4, 14, 15];
    const CREATE: u32 = 0;
    if !TYPES.contains(&request_type) {
        return NtStatus::INVALID_PARAMETER;
    }
    let handles = queue.with(context, |queue| queue.handles(request_type));
    let is_own = device_of(context, queue.0) == Some(device.0);
    let status = device.with(context, |device| {
        let is_default = request_type != CREATE && device.default_queue == Some(queue.0);
        if !is_own {
            NtStatus::INVALID_DEVICE_REQUEST
        } else if device.is_initialized() {
            NtStatus::INVALID_DEVICE_STATE
        } else if !handles || is_default {
            NtStatus::INVALID_DEVICE_REQUEST
        } else {
            match device.queues.entry(request_type) {
                Entry::Vacant(free) => {
                    free.insert(queue.0);
                    NtStatus::SUCCESS
                }
                Entry::Occupied(_) if request_type == CREATE => NtStatus::INVALID_PARAMETER,
                Entry::Occupied(_) => NtStatus::WDF_BUSY,
            }
        }
    });
    if status.is_success() {
        queue.with(context, |queue| queue.is_routed = true);
    }
    status
}

/// Declares the device failed. After the current step, the kernel treats it as removed by surprise.
fn set_failed(context: &Context, device: Handle<DeviceData>, action: u32) {
    device.check(context);
    // WdfDeviceFailedAttemptRestart and WdfDeviceFailedNoRestart.
    if !(1..=2).contains(&action) {
        context.warn_of_misuse(|| {
            format!("with {action}, which is not a WDF_DEVICE_FAILED_ACTION; it is ignored")
        });
        return;
    }
    queue_work(
        context,
        Work { kind: WorkKind::FailedDevice, routine: 0, handle: device.0, run: surprise_remove },
    );
}

fn control_finish(context: &Context, device: Handle<DeviceData>) {
    device.with(context, |device| device.is_finished = true);
}
