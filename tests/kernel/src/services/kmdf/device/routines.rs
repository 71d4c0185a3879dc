//! The `WdfDevice*` routines that act on a device.

use std::collections::HashMap;

use super::{
    super::{
        bus::{children::Child, list::create_default},
        driver::{DriverData, driver_of},
        io::pass,
        object::{self, create, read_attributes},
        state::{
            device::{DeviceData, DeviceInit, DeviceInterface, Presence, device_of},
            framework::{Context, Entries},
            queue::QueueData,
            request::RequestData,
            target::TargetData,
        },
        work::{Work, WorkKind, queue_work},
    },
    init::{Inits, with_init},
    pnp::surprise_remove,
    properties::CLASS,
    wdm::attach,
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
    ("WdfDeviceEnqueueRequest", Routine::Three(enqueue_request)),
    ("WdfDeviceGetIoTarget", Routine::Two(get_io_target)),
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
    let lacks_id = with_init(context, init_handle, |init| {
        init.child_of.is_some() && !init.parts.get::<Child>().has_device_id
    });
    if lacks_id {
        return NtStatus::INVALID_DEVICE_STATE.to_register();
    }
    let mut init = with_init(context, init_handle, core::mem::take);
    if init.child_of.is_some() {
        name_child(context, &mut init);
    }
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
        is_started: false,
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
            attach(context, handle);
            create_local_target(context, handle);
            if let Err(status) = create_default(context, handle) {
                object::delete(context, handle);
                return status.to_register();
            }
            context.write(init_pointer, &0_u64);
            context.write(device, &handle);
            NtStatus::SUCCESS.to_register()
        }
        Err(status) => status.to_register(),
    }
}

/// The number of children that bus drivers have ever created.
#[derive(Default)]
struct ChildDevices(u32);

/// Names the physical device of a child and the driver key of its stack.
fn name_child(context: &Context, init: &mut DeviceInit) {
    let number = {
        let mut framework = context.framework();
        let devices = &mut framework.part::<ChildDevices>().0;
        *devices += 1;
        *devices
    };
    init.identity.physical_name = format!(r"\Device\{:08x}", 0x1000 + number);
    init.identity.driver_key = format!(r"{}\{:04}", CLASS.1, 1000 + number);
}

fn create_interface(
    context: &Context,
    _globals: u64,
    device: u64,
    guid: u64,
    reference: u64,
) -> u64 {
    let class: [u8; 16] = context.read(guid);
    let reference = if reference == 0 {
        String::new()
    } else {
        read_unicode_string(context, reference)
    };
    context.with::<DeviceData, _>(device, |device| {
        device.interfaces.push(DeviceInterface {
            class,
            reference,
            is_enabled: true,
        });
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
    context
        .framework()
        .ancestor::<DriverData>(device)
        .unwrap_or(0)
}

/// The target for a device's next lower device.
#[derive(Default)]
struct LocalTarget(Option<u64>);

/// Creates the target for the next lower device. Control devices and the children of bus drivers have
/// none.
fn create_local_target(context: &Context, device: u64) {
    let below = context.with::<DeviceData, _>(device, |device| {
        let init = &device.init;
        (init.control_of.is_none() && init.child_of.is_none()).then_some(init.below)
    });
    let Some(below) = below else {
        return;
    };
    let target = create(
        context,
        TargetData::local(device, below),
        None,
        Some(device),
    );
    context.with::<DeviceData, _>(device, |device| {
        device.part::<LocalTarget>().0 = target.ok();
    });
}

fn get_io_target(context: &Context, _globals: u64, device: u64) -> u64 {
    context.with::<DeviceData, _>(device, |device| device.part::<LocalTarget>().0.unwrap_or(0))
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
