//! The power states of devices, as drivers report them to the power manager.

use std::collections::HashMap;

use crate::services::ntoskrnl::context::Context;

/// `SystemPowerState` and `DevicePowerState`.
pub const SYSTEM: u32 = 0;
pub const DEVICE: u32 = 1;

/// The states, by `DEVICE_OBJECT` and kind of state.
#[derive(Default)]
struct States(HashMap<(u64, u32), u32>);

/// Sets a state of a device. Returns the previous state, which is initially 0
/// (`PowerDeviceUnspecified`).
pub fn set(context: &Context, device: u64, kind: u32, state: u32) -> u32 {
    let mut all = context.state();
    all.get::<States>().0.insert((device, kind), state).unwrap_or(0)
}

/// Removes the states of a device.
pub fn forget(context: &Context, device: u64) {
    let mut all = context.state();
    all.get::<States>().0.retain(|(of, _), _| *of != device);
}
