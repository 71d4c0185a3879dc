//! Devices of miniport drivers: the port driver owns the `DEVICE_OBJECT` and its requests, and the
//! miniport driver uses the framework for the rest.

use std::collections::HashMap;

use super::{
    creation::create_local_target,
    device::wdm::{Owner, owner},
    driver::{self, DriverData, framework_unload},
    object::{create, give, read_attributes},
    state::{
        device::{Below, DeviceData, DeviceInit, Presence},
        device_object::{Foreign, Objects},
        framework::{Context, Entries},
    },
};
use crate::{
    execution::routine::Routine,
    ground::{framework_abi::DeviceObject, rule::Rule},
};

pub const ENTRIES: Entries = &[
    ("WdfDeviceMiniportCreate", Routine::Seven(miniport_create)),
    ("WdfDriverMiniportUnload", Routine::Two(miniport_unload)),
];

/// Creates the framework's device for a `DEVICE_OBJECT` of the port driver.
fn miniport_create(context: &Context, arguments: [u64; 7]) -> u64 {
    let [_globals, driver, attributes, object, attached, physical, device] = arguments;
    context.with::<DriverData, _>(driver, |_| ());
    // Objects at bad addresses are the driver's fault.
    let _object: DeviceObject = context.read(object);
    if (attached == 0) != (physical == 0) {
        context.stop(
            Rule::BadAddress,
            format!(
                "{} was called from {} with only one of AttachedDeviceObject and Pdo",
                context.call().name,
                context.caller()
            ),
        );
    }
    let attributes = read_attributes(context, attributes);
    let below = match owner(context, attached) {
        Some(Owner::Device(lower)) => Below::Device(lower),
        _ => Below::Bus,
    };
    let mut init = DeviceInit { is_miniport: true, below, ..DeviceInit::default() };
    *init.parts.get::<Objects>() = Objects {
        foreign: Some(Foreign { own: object, attached, physical }),
        ..Objects::default()
    };
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
    let made = create(context, data, attributes.as_ref(), Some(driver));
    if let Ok(made) = made
        && attached != 0
    {
        create_local_target(context, made);
    }
    give(context, made, device)
}

/// Deletes the driver object, in the unload routine of a driver that has its own.
fn miniport_unload(context: &Context, _globals: u64, driver: u64) -> u64 {
    let object = driver::object_of(context, driver);
    framework_unload(context, object);
    0
}
