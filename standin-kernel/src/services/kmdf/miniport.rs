//! Devices of miniport drivers: the port driver owns the `DEVICE_OBJECT` and its requests, and the
//! miniport driver uses the framework for everything else.

use crate::{
    execution::routine::{At, Handle, Out, routine},
    ground::{
        NtResult,
        abi::{DeviceObject, ObjectAttributes},
        rule::Rule,
    },
    services::kmdf::{
        binding,
        binding::{DriverData, framework_unload},
        creation::create_local_target,
        device::wdm::{Owner, owner},
        lifetime::{create_from, give},
        state::{
            device::{Below, DeviceData, DeviceInit},
            device_object::{Foreign, Objects},
            framework::{Context, Entries},
        },
    },
};

pub const ENTRIES: Entries = &[
    routine("WdfDeviceMiniportCreate", miniport_create),
    routine("WdfDriverMiniportUnload", miniport_unload),
];

/// Creates the framework's device for a port driver's `DEVICE_OBJECT`.
fn miniport_create(
    context: &Context,
    driver: Handle<DriverData>,
    attributes: At<ObjectAttributes>,
    object: At<DeviceObject>,
    attached: At<DeviceObject>,
    physical: At<DeviceObject>,
    device: Out<DeviceData>,
) -> NtResult {
    driver.check(context);
    // If an object's address is bad, the driver is at fault.
    let _object = object.read(context);
    if (attached.is_null()) != (physical.is_null()) {
        context.stop_call(Rule::BadAddress, "with only one of AttachedDeviceObject and Pdo");
    }
    let below = match owner(context, attached.0) {
        Some(Owner::Device(lower)) => Below::Device(lower),
        _ => Below::Bus,
    };
    let mut init = DeviceInit { is_miniport: true, below, ..DeviceInit::default() };
    *init.parts.get::<Objects>() = Objects {
        foreign: Some(Foreign { own: object.0, attached: attached.0, physical: physical.0 }),
        ..Objects::default()
    };
    let data = DeviceData::new(init, Vec::new());
    let made = create_from(context, data, attributes.0, Some(driver.0));
    if let Ok(made) = made
        && !attached.is_null()
    {
        create_local_target(context, made);
    }
    give(context, made, device.0)
}

/// Deletes the driver object. Called by the unload routine of a driver that has its own unload
/// routine.
fn miniport_unload(context: &Context, driver: Handle<DriverData>) {
    let object = binding::object_of(context, driver.0);
    framework_unload(context, At::new(object));
}
