//! Device properties that a driver reports to the Plug and Play manager: capabilities, state, bus.

use zerocopy::IntoBytes;

use crate::{
    execution::{
        routine::{At, Handle, routine},
        strings::read_unicode_string,
    },
    ground::{
        NtStatus,
        abi::{BusInformation, PnpCapabilities, PowerCapabilities, UnicodeString},
    },
    services::kmdf::state::{
        device::{Below, DeviceData, FILE_DEVICE_SECURE_OPEN},
        framework::{Context, Entries},
    },
};

pub const ENTRIES: Entries = &[
    routine("WdfDeviceSetPnpCapabilities", set_pnp_capabilities),
    routine("WdfDeviceSetPowerCapabilities", set_power_capabilities),
    routine("WdfDeviceSetBusInformationForChildren", set_bus_information),
    routine("WdfDeviceSetStaticStopRemove", set_static_stop_remove),
    routine("WdfDeviceSetAlignmentRequirement", set_alignment),
    routine("WdfDeviceGetAlignmentRequirement", get_alignment),
    routine("WdfDeviceSetCharacteristics", set_characteristics),
    routine("WdfDeviceGetCharacteristics", get_characteristics),
    routine("WdfDeviceAssignMofResourceName", assign_mof_resource_name),
    routine("WdfDeviceGetSystemPowerAction", get_system_power_action),
];

/// `WdfFalse`, `WdfTrue` and `WdfUseDefault`.
const TRI_STATES: [u32; 3] = [0, 1, 2];

/// The capabilities that the driver reported for a device.
#[derive(Default)]
pub struct Capabilities {
    /// The number of `WdfDeviceSetStaticStopRemove` calls that currently forbid stopping or
    /// removing the device.
    pub holds: u32,
    alignment: u32,
    /// The name of the resource that contains the device's WMI classes, once the driver has
    /// assigned it.
    mof_resource: Option<String>,
    /// `DeviceWake`, if the driver reported it.
    wake: Option<u32>,
}

/// A power state of a device (`DEVICE_POWER_STATE`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DevicePowerState {
    /// The device works.
    D0 = 1,
    /// The first sleep state.
    D1 = 2,
    /// The second sleep state.
    D2 = 3,
    /// The device is off.
    D3 = 4,
}

/// The deepest state from which the test's device can wake itself and the system.
#[derive(Default)]
pub struct WakeState(pub Option<DevicePowerState>);

/// Returns the deepest `DEVICE_POWER_STATE` from which a device can wake, according to its bus, or 0.
/// As on Windows, devices of the root bus cannot wake; simulated devices are of USB and can.
pub fn deepest_wake(context: &Context, device: u64) -> u32 {
    let (given, below, reported) = context.with::<DeviceData, _>(device, |device| {
        // Only what the bus driver reports about its child counts.
        let is_child = device.init.child_of.is_some();
        let reported = device.part::<Capabilities>().wake.filter(|_| is_child);
        (device.part::<WakeState>().0, device.init.below, reported)
    });
    if let Some(state) = given {
        return state as u32;
    }
    match below {
        Below::Device(lower) => deepest_wake(context, lower),
        Below::Simulated(_) => DevicePowerState::D2 as u32,
        Below::Bus => reported.unwrap_or(0),
    }
}

/// Returns whether a structure has the size in the headers and contains only valid `WDF_TRI_STATE`
/// values. If not, warns that the framework ignores the call.
pub fn is_valid(context: &Context, size: u32, expected: usize, values: &[u32]) -> bool {
    let is_valid =
        size as usize == expected && values.iter().all(|value| TRI_STATES.contains(value));
    if !is_valid {
        context.warn_of_misuse(|| {
            format!(
                "with a structure whose Size is {size}, expected {expected}, or that contains a \
                 value that is not a WDF_TRI_STATE; the framework ignores the call"
            )
        });
    }
    is_valid
}

/// Returns the 32-bit words of a structure after the size field.
pub fn words<T: IntoBytes + zerocopy::Immutable>(structure: &T) -> Vec<u32> {
    structure
        .as_bytes()
        .chunks_exact(4)
        .skip(1)
        .map(|bytes| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
        .collect()
}

/// Accepts the capabilities. Only the user interface of Windows uses them.
fn set_pnp_capabilities(context: &Context, device: Handle<DeviceData>, given: At<PnpCapabilities>) {
    device.check(context);
    let given = given.read(context);
    let all = words(&given);
    is_valid(context, given.size, size_of::<PnpCapabilities>(), all.get(..9).unwrap_or_default());
}

/// Accepts the capabilities. Of these, only the state from which the device wakes has an effect,
/// because the test chooses the device's power states.
fn set_power_capabilities(
    context: &Context,
    device: Handle<DeviceData>,
    given: At<PowerCapabilities>,
) {
    /// `PowerDeviceMaximum`: the driver leaves the value to the bus.
    const UNREPORTED: u32 = 5;
    device.check(context);
    let given = given.read(context);
    let all = words(&given);
    let all = all.get(..6).unwrap_or_default();
    if is_valid(context, given.size, size_of::<PowerCapabilities>(), all)
        && given.device_wake != UNREPORTED
    {
        device.with(context, |device| {
            device.part::<Capabilities>().wake = Some(given.device_wake);
        });
    }
}

/// Sets the bus information of a device's children. Only property queries return it.
fn set_bus_information(
    context: &Context,
    device: Handle<DeviceData>,
    information: At<BusInformation>,
) {
    let information = information.read(context);
    device.with(context, |device| {
        device.part::<ChildrensBus>().0 = Some(information);
    });
}

/// The bus of a device's children.
#[derive(Default)]
pub struct ChildrensBus(pub Option<BusInformation>);

fn set_static_stop_remove(context: &Context, device: Handle<DeviceData>, stoppable: bool) {
    device.with(context, |device| {
        let holds = &mut device.part::<Capabilities>().holds;
        *holds = if stoppable { holds.saturating_sub(1) } else { *holds + 1 };
    });
}

fn set_alignment(context: &Context, device: Handle<DeviceData>, alignment: u32) {
    device.with(context, |device| {
        device.part::<Capabilities>().alignment = alignment;
    });
}

fn get_alignment(context: &Context, device: Handle<DeviceData>) -> u32 {
    device.with(context, |device| device.part::<Capabilities>().alignment)
}

fn set_characteristics(context: &Context, device: Handle<DeviceData>, value: u32) {
    device.with(context, |device| {
        device.init.characteristics = value;
    });
}

fn get_characteristics(context: &Context, device: Handle<DeviceData>) -> u32 {
    device.with(context, |device| device.init.characteristics | FILE_DEVICE_SECURE_OPEN)
}

/// Assigns the resource that contains the device's WMI classes. A second call fails.
fn assign_mof_resource_name(
    context: &Context,
    device: Handle<DeviceData>,
    name: At<UnicodeString>,
) -> NtStatus {
    let name = read_unicode_string(context, name.0);
    device.with(context, |device| {
        let resource = &mut device.part::<Capabilities>().mof_resource;
        if resource.is_some() {
            NtStatus::INVALID_DEVICE_REQUEST
        } else {
            *resource = Some(name);
            NtStatus::SUCCESS
        }
    })
}

/// Returns `PowerActionNone`, because the stand-in kernel never sleeps or shuts down.
fn get_system_power_action(context: &Context, device: Handle<DeviceData>) -> u32 {
    device.check(context);
    0
}
