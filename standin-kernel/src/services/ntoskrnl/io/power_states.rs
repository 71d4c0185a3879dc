//! The power states of devices, as their drivers tell the power manager.

use std::collections::HashMap;

use crate::services::ntoskrnl::context::Context;

/// `SystemPowerState` and `DevicePowerState`.
pub const SYSTEM: u32 = 0;
pub const DEVICE: u32 = 1;

/// The states by the `DEVICE_OBJECT` and the kind of the state.
#[derive(Default)]
struct States(HashMap<(u64, u32), u32>);

/// Sets a state of a device. Returns the one before, which is 0 (`PowerDeviceUnspecified`) at first.
pub fn set(context: &Context, device: u64, kind: u32, state: u32) -> u32 {
    let mut all = context.state();
    all.get::<States>().0.insert((device, kind), state).unwrap_or(0)
}

/// Forgets the states of a device.
pub fn forget(context: &Context, device: u64) {
    let mut all = context.state();
    all.get::<States>().0.retain(|(of, _), _| *of != device);
}
