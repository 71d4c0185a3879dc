//! The `WdfDevice*` routines that act on a device.

use super::pnp::surprise_remove;
use crate::{
    execution::routine::{Routine, low_half},
    ground::status::NtStatus,
    services::{
        kmdf::{
            driver::DriverData,
            io::pass,
            state::{
                device::{DeviceData, DeviceInterface, device_of},
                framework::{Context, Entries},
                queue::QueueData,
                request::RequestData,
            },
            work::{Work, WorkKind, queue_work},
        },
        strings::read_unicode_string,
    },
};

pub const ENTRIES: Entries = &[
    ("WdfDeviceCreateDeviceInterface", Routine::Four(create_interface)),
    ("WdfDeviceCreateSymbolicLink", Routine::Three(create_link)),
    ("WdfDeviceGetDefaultQueue", Routine::Two(get_default_queue)),
    ("WdfDeviceGetDriver", Routine::Two(get_driver)),
    ("WdfDeviceConfigureRequestDispatching", Routine::Four(configure_dispatching)),
    ("WdfDeviceSetFailed", Routine::Three(set_failed)),
    ("WdfDeviceEnqueueRequest", Routine::Three(enqueue_request)),
    ("WdfControlFinishInitializing", Routine::Two(control_finish)),
];

fn create_interface(
    context: &Context,
    _globals: u64,
    device: u64,
    guid: u64,
    reference: u64,
) -> u64 {
    let class: [u8; 16] = context.read(guid);
    let reference =
        if reference == 0 { String::new() } else { read_unicode_string(context, reference) };
    context.with::<DeviceData, _>(device, |device| {
        device.interfaces.push(DeviceInterface { class, reference, is_enabled: true });
    });
    NtStatus::SUCCESS.to_register()
}

fn create_link(context: &Context, _globals: u64, device: u64, name: u64) -> u64 {
    let name = read_unicode_string(context, name);
    context.with::<DeviceData, _>(device, |device| device.links.push(name));
    NtStatus::SUCCESS.to_register()
}

fn get_default_queue(context: &Context, _globals: u64, device: u64) -> u64 {
    context.with::<DeviceData, _>(device, |device| device.default_queue.unwrap_or(0))
}

fn get_driver(context: &Context, _globals: u64, device: u64) -> u64 {
    context.with::<DeviceData, _>(device, |_| ());
    context.framework().ancestor::<DriverData>(device).unwrap_or(0)
}

/// Puts a request in the queue for its kind after `EvtIoInCallerContext` has prepared it.
fn enqueue_request(context: &Context, _globals: u64, device: u64, request: u64) -> u64 {
    context.with::<DeviceData, _>(device, |_| ());
    let is_new = context.with::<RequestData, _>(request, |request| {
        request.is_in_caller_context && request.queue().is_none()
    });
    if !is_new {
        return NtStatus::INVALID_DEVICE_REQUEST.to_register();
    }
    pass::enqueue(context, device, request);
    NtStatus::SUCCESS.to_register()
}

/// Directs the requests of one kind to a queue. Each kind has at most one queue.
fn configure_dispatching(
    context: &Context,
    _globals: u64,
    device: u64,
    queue: u64,
    request_type: u64,
) -> u64 {
    /// Creates, reads, writes, device controls and internal device controls.
    const TYPES: [u32; 5] = [0, 3, 4, 14, 15];
    context.with::<QueueData, _>(queue, |_| ());
    let request_type = low_half(request_type);
    if !TYPES.contains(&request_type) || device_of(context, queue) != Some(device) {
        return NtStatus::INVALID_PARAMETER.to_register();
    }
    let status = context.with::<DeviceData, _>(device, |device| {
        match device.queues.insert(request_type, queue) {
            None => NtStatus::SUCCESS,
            Some(before) => {
                device.queues.insert(request_type, before);
                NtStatus::WDF_BUSY
            }
        }
    });
    status.to_register()
}

/// Declares the device failed. After the current step, the kernel treats the device as removed by
/// surprise.
fn set_failed(context: &Context, _globals: u64, device: u64, _action: u64) -> u64 {
    context.with::<DeviceData, _>(device, |_| ());
    queue_work(
        context,
        Work { kind: WorkKind::FailedDevice, routine: 0, handle: device, run: surprise_remove },
    );
    0
}

fn control_finish(context: &Context, _globals: u64, device: u64) -> u64 {
    context.with::<DeviceData, _>(device, |device| device.is_finished = true);
    0
}
