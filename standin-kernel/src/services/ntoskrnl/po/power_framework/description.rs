//! The description of a device that a driver registers, in the three versions of the structure.

use zerocopy::{FromBytes, Immutable, IntoBytes};

use super::state::{Component, IdleState};
use crate::{
    ground::abi::{
        PowerComponentV1, PowerComponentV2, PowerDeviceV1, PowerDeviceV2, PowerIdleState,
    },
    services::ntoskrnl::context::Context,
};

/// A number that exceeds the number of components in any device, and the number of states in any
/// component.
const LIMIT: u32 = 1000;

/// The driver's routines and their context. Each routine can be null.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Callbacks {
    pub active: u64,
    pub idle: u64,
    pub state: u64,
    pub power_required: u64,
    pub power_not_required: u64,
    /// The routines that power a device down and up while a system without S3 sleeps. The stand-in
    /// kernel never calls them.
    directed: [u64; 2],
    pub context: u64,
}

impl Callbacks {
    /// Returns the addresses of the routines.
    pub fn routines(&self) -> impl Iterator<Item = u64> {
        let always =
            [self.active, self.idle, self.state, self.power_required, self.power_not_required];
        always.into_iter().chain(self.directed)
    }
}

/// `PO_FX_DEVICE_V3`. The published bindings do not declare it.
#[derive(Clone, Copy, Debug, FromBytes, Immutable, IntoBytes)]
#[repr(C)]
struct PowerDeviceV3 {
    version: u32,
    reserved: u32,
    flags: u64,
    component_active_condition_callback: u64,
    component_idle_condition_callback: u64,
    component_idle_state_callback: u64,
    device_power_required_callback: u64,
    device_power_not_required_callback: u64,
    power_control_callback: u64,
    directed_up: u64,
    directed_down: u64,
    directed_timeout: u32,
    reserved_1: u32,
    device_context: u64,
    component_count: u32,
    reserved_2: u32,
    components: PowerComponentV2,
}

/// Returns a driver's description of its device, or `None` if it is invalid.
pub fn describe(context: &Context, at: u64) -> Option<(Callbacks, Vec<Component>)> {
    /// `PO_FX_VERSION_V1` to `PO_FX_VERSION_V3`.
    const FIRST: u32 = 1;
    const SECOND: u32 = 2;
    const THIRD: u32 = 3;
    /// The callbacks in all versions.
    macro_rules! callbacks {
        ($device:ident, $directed:expr) => {
            Callbacks {
                active: $device.component_active_condition_callback,
                idle: $device.component_idle_condition_callback,
                state: $device.component_idle_state_callback,
                power_required: $device.device_power_required_callback,
                power_not_required: $device.device_power_not_required_callback,
                directed: $directed,
                context: $device.device_context,
            }
        };
    }
    let (callbacks, states) = match context.read::<u32>(at) {
        FIRST => {
            let device: PowerDeviceV1 = context.read(at);
            let callbacks = callbacks!(device, [0; 2]);
            let first = at + (size_of::<PowerDeviceV1>() - size_of::<PowerComponentV1>()) as u64;
            let states = (0..device.component_count.min(LIMIT)).map(|index| {
                let offset = u64::from(index) * size_of::<PowerComponentV1>() as u64;
                let one: PowerComponentV1 = context.read(first + offset);
                (one.idle_state_count, one.idle_states)
            });
            (callbacks, states.collect())
        }
        SECOND => {
            let device: PowerDeviceV2 = context.read(at);
            let callbacks = callbacks!(device, [0; 2]);
            let first = at + (size_of::<PowerDeviceV2>() - size_of::<PowerComponentV2>()) as u64;
            (callbacks, states_of(context, first, device.component_count))
        }
        THIRD => {
            let device: PowerDeviceV3 = context.read(at);
            let callbacks = callbacks!(device, [device.directed_up, device.directed_down]);
            let first = at + (size_of::<PowerDeviceV3>() - size_of::<PowerComponentV2>()) as u64;
            (callbacks, states_of(context, first, device.component_count))
        }
        _ => return None,
    };
    let components: Option<Vec<Component>> = states
        .into_iter()
        .map(|(count, at)| {
            let is_valid = (1..=LIMIT).contains(&count) && at != 0;
            is_valid.then(|| Component::new(read_states(context, count, at)))
        })
        .collect();
    components.filter(|all| !all.is_empty()).map(|all| (callbacks, all))
}

/// Returns the number of states and the address of the first state, for each component of version 2.
fn states_of(context: &Context, first: u64, count: u32) -> Vec<(u32, u64)> {
    (0..count.min(LIMIT))
        .map(|index| {
            let offset = u64::from(index) * size_of::<PowerComponentV2>() as u64;
            let one: PowerComponentV2 = context.read(first + offset);
            (one.idle_state_count, one.idle_states)
        })
        .collect()
}

fn read_states(context: &Context, count: u32, at: u64) -> Vec<IdleState> {
    (0..u64::from(count))
        .map(|index| {
            let one: PowerIdleState = context.read(at + index * size_of::<PowerIdleState>() as u64);
            IdleState { latency: one.transition_latency, residency: one.residency_requirement }
        })
        .collect()
}
