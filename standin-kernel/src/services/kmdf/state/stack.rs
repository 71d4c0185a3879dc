//! The bottom of device stacks.

use super::{
    device::{Below, DeviceData},
    device_object::{bus_object, foreign, own},
    framework::Context,
    simulated,
};

/// Returns the `DEVICE_OBJECT` at the bottom of a device's stack, or 0 for a control device.
pub fn physical_object(context: &Context, device: u64) -> u64 {
    if let Some(foreign) = foreign(context, device) {
        return foreign.physical;
    }
    let (below, is_child, is_control) = context.with::<DeviceData, _>(device, |device| {
        let init = &device.init;
        (init.below, init.child_of.is_some(), device.is_control())
    });
    match below {
        _ if is_control => 0,
        _ if is_child => own(context, device),
        Below::Bus => bus_object(context, device),
        below => physical_below(context, below),
    }
}

/// Returns the `DEVICE_OBJECT` at the bottom of a stack that a driver or the test created, or 0 if
/// it no longer exists.
pub fn physical_below(context: &Context, below: Below) -> u64 {
    match below {
        Below::Device(lower) if context.framework().exists(lower) => {
            physical_object(context, lower)
        }
        Below::Simulated(number) => simulated::object(context, number),
        Below::Device(_) | Below::Bus => 0,
    }
}
