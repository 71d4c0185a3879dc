//! The device state that a driver reports to the Plug and Play manager (`WDF_DEVICE_STATE`).

use zerocopy::IntoBytes;

use super::{
    capabilities::{is_valid, words},
    pnp::surprise_remove,
};
use crate::{
    execution::routine::{At, Handle, routine},
    ground::abi::DeviceState,
    services::kmdf::{
        state::{
            device::DeviceData,
            framework::{Context, Entries},
        },
        work::{Work, WorkKind, queue_work},
    },
};

pub const ENTRIES: Entries =
    &[routine("WdfDeviceSetDeviceState", set_state), routine("WdfDeviceGetDeviceState", get_state)];

/// `WdfTrue` and `WdfUseDefault`.
const TRUE: u32 = 1;
const USE_DEFAULT: u32 = 2;

/// The indices of `Failed` and `Removed`.
const FAILED: usize = 2;
const REMOVED: usize = 4;

/// The fields of the structure after the size field.
struct StateOfDevice([u32; 7]);

impl Default for StateOfDevice {
    fn default() -> Self {
        Self([USE_DEFAULT; 7])
    }
}

/// Removes a device after the current step, because its driver reported it failed or removed.
fn end(context: &Context, device: u64) {
    queue_work(
        context,
        Work { kind: WorkKind::FailedDevice, routine: 0, handle: device, run: surprise_remove },
    );
}

fn set_state(context: &Context, device: Handle<DeviceData>, given: At<DeviceState>) {
    device.check(context);
    let given = read_state(context, given.0);
    if let Some(given) = given {
        let all = words(&given);
        let count = (given.size as usize / 4).saturating_sub(1);
        let values = all.get(..count).unwrap_or_default();
        if is_valid(context, given.size, given.size as usize, values) {
            let is_over = device.with(context, |device| {
                let state = &mut device.part::<StateOfDevice>().0;
                for (slot, value) in state.iter_mut().zip(values) {
                    *slot = *value;
                }
                state[FAILED] == TRUE || state[REMOVED] == TRUE
            });
            if is_over {
                end(context, device.0);
            }
        }
    }
}

/// The size of `WDF_DEVICE_STATE` up to KMDF 1.27.
const OLD_STATE: u32 = 28;

/// Reads a state of either size. Missing fields are zero.
fn read_state(context: &Context, address: u64) -> Option<DeviceState> {
    let size: u32 = context.read(address);
    if size != OLD_STATE && size as usize != size_of::<DeviceState>() {
        is_valid(context, size, size_of::<DeviceState>(), &[]);
        return None;
    }
    let mut state: DeviceState = zerocopy::FromZeros::new_zeroed();
    let length = size as usize;
    if let Some(bytes) = state.as_mut_bytes().get_mut(..length) {
        context.read_into(address, bytes);
    }
    Some(state)
}

fn get_state(context: &Context, device: Handle<DeviceData>, device_state: At<DeviceState>) {
    let state = device.with(context, |device| device.part::<StateOfDevice>().0);
    if let Some(given) = read_state(context, device_state.0) {
        let count = (given.size as usize / 4).saturating_sub(1);
        for (at, value) in (device_state.0 + 4..).step_by(4).zip(state.iter().take(count)) {
            context.write(at, value);
        }
    }
}
