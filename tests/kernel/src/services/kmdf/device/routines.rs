//! The `WdfDevice*` routines that act on a device.

use std::collections::HashMap;

use super::{
    super::{
        driver::{DriverData, driver_of},
        object::{create, read_attributes},
        state::{
            device::{DeviceData, Presence, device_of},
            framework::{Context, Entries},
            queue::QueueData,
        },
        work::{Work, WorkKind, queue_work},
    },
    init::{Inits, with_init},
    pnp::surprise_remove,
};
use crate::{
    execution::routine::{Routine, low_half},
    ground::status::NtStatus,
    services::strings::read_unicode_string,
};

pub const ENTRIES: Entries = &[
    ("WdfDeviceCreate", Routine::Four(device_create)),
    (
        "WdfDeviceCreateDeviceInterface",
        Routine::Four(create_interface),
    ),
    ("WdfDeviceCreateSymbolicLink", Routine::Three(create_link)),
    ("WdfDeviceGetDefaultQueue", Routine::Two(get_default_queue)),
    ("WdfDeviceGetDriver", Routine::Two(get_driver)),
    (
        "WdfDeviceConfigureRequestDispatching",
        Routine::Four(configure_dispatching),
    ),
    ("WdfDeviceSetFailed", Routine::Three(set_failed)),
    ("WdfControlFinishInitializing", Routine::Two(control_finish)),
];

fn device_create(
    context: &Context,
    _globals: u64,
    init_pointer: u64,
    attributes: u64,
    device: u64,
) -> u64 {
    let init_handle: u64 = context.read(init_pointer);
    if with_init(context, init_handle, |init| init.lacks_a_name_to_protect()) {
        return NtStatus::INVALID_SECURITY_DESCR.to_register();
    }
    let init = with_init(context, init_handle, core::mem::take);
    let control_of = init.control_of;
    let attributes = read_attributes(context, attributes);
    if attributes.is_some_and(|attributes| attributes.parent != 0) {
        return NtStatus::INVALID_PARAMETER.to_register();
    }
    let parent = control_of.or_else(|| driver_of(context));
    let data = DeviceData {
        init,
        default_queue: None,
        queues: HashMap::new(),
        interfaces: Vec::new(),
        links: Vec::new(),
        in_d0: false,
        is_finished: false,
        presence: Presence::Present,
    };
    match create(context, data, attributes.as_ref(), parent) {
        Ok(handle) => {
            // The framework consumes the WDFDEVICE_INIT; the driver must not use it again.
            context
                .framework()
                .part::<Inits>()
                .open
                .remove(&init_handle);
            context.write(init_pointer, &0_u64);
            context.write(device, &handle);
            NtStatus::SUCCESS.to_register()
        }
        Err(status) => status.to_register(),
    }
}

fn create_interface(
    context: &Context,
    _globals: u64,
    device: u64,
    guid: u64,
    reference: u64,
) -> u64 {
    let guid: [u8; 16] = context.read(guid);
    if reference != 0 {
        read_unicode_string(context, reference);
    }
    context.with::<DeviceData, _>(device, |device| device.interfaces.push(guid));
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
    context
        .framework()
        .ancestor::<DriverData>(device)
        .unwrap_or(0)
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
        Work {
            kind: WorkKind::FailedDevice,
            handle: device,
            run: surprise_remove,
        },
    );
    0
}

fn control_finish(context: &Context, _globals: u64, device: u64) -> u64 {
    context.with::<DeviceData, _>(device, |device| device.is_finished = true);
    0
}
