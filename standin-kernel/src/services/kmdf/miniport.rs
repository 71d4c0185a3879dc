//! Devices of miniport drivers: the port driver owns the `DEVICE_OBJECT` and its requests, and the
//! miniport driver uses the framework for everything else.

use super::{
    creation::create_local_target,
    device::wdm::{Owner, owner},
    driver::{self, DriverData, framework_unload},
    object::{create_from, give},
    state::{
        device::{Below, DeviceData, DeviceInit},
        device_object::{Foreign, Objects},
        framework::{Context, Entries},
    },
};
use crate::{
    execution::routine::{Handle, Routine},
    ground::{NtResult, framework_abi::DeviceObject, rule::Rule},
};

pub const ENTRIES: Entries = &[
    ("WdfDeviceMiniportCreate", Routine::after_globals(miniport_create)),
    ("WdfDriverMiniportUnload", Routine::after_globals(miniport_unload)),
];

/// Creates the framework's device for a port driver's `DEVICE_OBJECT`.
fn miniport_create(
    context: &Context,
    driver: Handle<DriverData>,
    attributes: u64,
    object: u64,
    attached: u64,
    physical: u64,
    device: u64,
) -> NtResult {
    driver.check(context);
    // If an object's address is bad, the driver is at fault.
    let _object: DeviceObject = context.read(object);
    if (attached == 0) != (physical == 0) {
        context.stop_call(Rule::BadAddress, "with only one of AttachedDeviceObject and Pdo");
    }
    let below = match owner(context, attached) {
        Some(Owner::Device(lower)) => Below::Device(lower),
        _ => Below::Bus,
    };
    let mut init = DeviceInit { is_miniport: true, below, ..DeviceInit::default() };
    *init.parts.get::<Objects>() = Objects {
        foreign: Some(Foreign { own: object, attached, physical }),
        ..Objects::default()
    };
    let data = DeviceData::new(init, Vec::new());
    let made = create_from(context, data, attributes, Some(driver.0));
    if let Ok(made) = made
        && attached != 0
    {
        create_local_target(context, made);
    }
    give(context, made, device)
}

/// Deletes the driver object. Called by the unload routine of a driver that has its own unload
/// routine.
fn miniport_unload(context: &Context, driver: u64) {
    let object = driver::object_of(context, driver);
    framework_unload(context, object);
}
