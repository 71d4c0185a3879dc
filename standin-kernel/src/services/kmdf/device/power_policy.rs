//! Power policy: idling and waking, to the extent that the driver configures them.

use crate::{
    execution::routine::{At, Handle, Memory, routine},
    ground::{
        NtResult, NtStatus,
        abi::{IdleSettings, PowerFrameworkSettings, PowerPolicyCallbacks, WakeSettings},
        irql::Irql,
    },
    services::kmdf::{
        device::capabilities::deepest_wake,
        state::{
            device::{DeviceData, DeviceInit},
            framework::{Context, Entries},
        },
    },
};

pub const ENTRIES: Entries = &[
    routine("WdfDeviceInitSetPowerPolicyEventCallbacks", set_callbacks),
    routine("WdfDeviceInitSetPowerPolicyOwnership", set_ownership),
    routine("WdfDeviceInitSetPowerNotPageable", accept),
    routine("WdfDeviceInitSetPowerPageable", accept),
    routine("WdfDeviceInitSetPowerInrush", accept),
    routine("WdfDeviceAssignS0IdleSettings", assign_idle_settings),
    routine("WdfDeviceAssignSxWakeSettings", assign_wake_settings),
    routine("WdfDeviceStopIdleNoTrack", stop_idle),
    routine("WdfDeviceStopIdleActual", stop_idle_tracked),
    routine("WdfDeviceResumeIdleNoTrack", resume_idle),
    routine("WdfDeviceResumeIdleActual", resume_idle_tracked),
    routine("WdfDeviceWdmAssignPowerFrameworkSettings", assign_power_framework_settings),
];

/// A device's power policy.
#[derive(Default)]
pub struct PowerPolicy {
    callbacks: Option<PowerPolicyCallbacks>,
    /// The driver's explicit choice of power policy ownership.
    owns: Option<bool>,
    /// The number of `WdfDeviceStopIdle` calls that prevent the device from idling.
    stops: u32,
    /// Set while the driver is in `EvtDeviceD0Entry`.
    is_entering_d0: bool,
    /// Set once the driver has chosen who manages the idle timeout; `true` for the system.
    has_system_timeout: Option<bool>,
}

fn set_callbacks(context: &Context, init: Handle<DeviceInit>, callbacks: At<PowerPolicyCallbacks>) {
    /// The structure's size up to KMDF 1.5, without the last callback.
    const OLD: usize = 56;
    let given: PowerPolicyCallbacks = context
        .read_sized(callbacks.0, &[OLD])
        .unwrap_or_else(|size| context.stop_for_size("WDF_POWER_POLICY_EVENT_CALLBACKS", size));
    init.with_init(context, |init| {
        init.parts.get::<PowerPolicy>().callbacks = Some(given);
    });
}

fn set_ownership(context: &Context, init: Handle<DeviceInit>, owns: bool) {
    init.with_init(context, |init| {
        init.parts.get::<PowerPolicy>().owns = Some(owns);
    });
}

/// Accepts a setting for power requests. The stand-in kernel sends no IRPs for power requests.
fn accept(context: &Context, init: Handle<DeviceInit>) {
    init.check_init(context);
}

/// Returns whether the driver owns the device's power policy. By default, a function driver owns
/// it; the driver of a filter, a bus driver's child or a control device does not.
fn owns_policy(context: &Context, device: u64) -> bool {
    context.with::<DeviceData, _>(device, |device| {
        let init = &device.init;
        let default = !init.is_filter && init.child_of.is_none() && init.control_of.is_none();
        device.part::<PowerPolicy>().owns.unwrap_or(default)
    })
}

/// The valid `DEVICE_POWER_STATE` values in settings: from D1 to `PowerDeviceMaximum`, which means
/// the deepest state.
const STATES: core::ops::RangeInclusive<u32> = 2..=5;

/// `WDF_TRI_STATE`.
const USE_DEFAULT: u32 = 2;

fn assign_idle_settings(
    context: &Context,
    device: Handle<DeviceData>,
    settings: At<IdleSettings>,
) -> NtStatus {
    /// The structure's sizes in KMDF 1.7 and 1.9.
    const OLD: [u32; 2] = [24, 28];
    /// `IdleCannotWakeFromS0`.
    const CANNOT_WAKE: u32 = 1;
    if !owns_policy(context, device.0) {
        return NtStatus::INVALID_DEVICE_REQUEST;
    }
    let size: u32 = context.read(settings.0);
    let mut given: IdleSettings = zerocopy::FromZeros::new_zeroed();
    if size as usize != size_of_val(&given) && !OLD.contains(&size) {
        return NtStatus::INFO_LENGTH_MISMATCH;
    }
    given.power_up_idle_device_on_system_wake = USE_DEFAULT;
    let bytes = zerocopy::IntoBytes::as_mut_bytes(&mut given);
    if let Some(bytes) = bytes.get_mut(..size as usize) {
        context.read_into(settings.0, bytes);
    }
    let is_valid = STATES.contains(&given.dx_state)
        && (1..=3).contains(&given.idle_caps)
        && (1..=2).contains(&given.user_control_of_idle_settings)
        && given.enabled <= USE_DEFAULT
        && given.power_up_idle_device_on_system_wake <= USE_DEFAULT
        && (given.idle_caps == CANNOT_WAKE
            || given.power_up_idle_device_on_system_wake == USE_DEFAULT)
        && given.idle_timeout_type <= 2;
    if !is_valid {
        return NtStatus::INVALID_PARAMETER;
    }
    if given.idle_caps != CANNOT_WAKE && !can_wake(context, device.0, given.dx_state) {
        return NtStatus::POWER_STATE_INVALID;
    }
    let is_managed = given.idle_timeout_type != 0;
    let has_type = size as usize == size_of_val(&given);
    let chosen = device.with(context, |device| {
        *device.part::<PowerPolicy>().has_system_timeout.get_or_insert(is_managed)
    });
    if has_type && chosen != is_managed {
        return NtStatus::INVALID_DEVICE_REQUEST;
    }
    NtStatus::SUCCESS
}

fn assign_wake_settings(
    context: &Context,
    device: Handle<DeviceData>,
    settings: At<WakeSettings>,
) -> NtResult {
    /// The structure's size in KMDF 1.5.
    const OLD: usize = 16;
    if !owns_policy(context, device.0) {
        return Err(NtStatus::INVALID_DEVICE_REQUEST);
    }
    let given = context
        .read_sized::<WakeSettings>(settings.0, &[OLD])
        .map_err(|_| NtStatus::INFO_LENGTH_MISMATCH)?;
    let is_valid = STATES.contains(&given.dx_state)
        && (1..=2).contains(&given.user_control_of_wake_settings)
        && given.enabled <= USE_DEFAULT;
    if !is_valid {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    if can_wake(context, device.0, given.dx_state) {
        Ok(())
    } else {
        Err(NtStatus::POWER_STATE_INVALID)
    }
}

/// Returns whether a device can wake from a state, or from any if the state is the deepest one.
fn can_wake(context: &Context, device: u64, state: u32) -> bool {
    /// `PowerDeviceMaximum`.
    const DEEPEST: u32 = 5;
    let wake = deepest_wake(context, device);
    wake != 0 && (state == DEEPEST || state <= wake)
}

/// Keeps the device in its working state. In the stand-in kernel, the device never idles on its
/// own, so there is nothing to wait for unless the test has put it in a low-power state.
fn stop_idle(context: &Context, device: Handle<DeviceData>, wait: bool) -> NtStatus {
    if wait {
        context.check_irql(Irql::PASSIVE_LEVEL, "with WaitForD0", "a wait");
    }
    if !owns_policy(context, device.0) {
        return NtStatus::INVALID_DEVICE_STATE;
    }
    device.with(context, |device| {
        let in_d0 = device.is_in_d0();
        let policy = device.part::<PowerPolicy>();
        if !in_d0 && !policy.is_entering_d0 {
            return NtStatus::POWER_STATE_INVALID;
        }
        policy.stops += 1;
        if in_d0 { NtStatus::SUCCESS } else { NtStatus::PENDING }
    })
}

/// Records whether the driver is in `EvtDeviceD0Entry`, in which it can already stop the device from
/// idling.
pub fn note_entering_d0(context: &Context, device: u64, is_entering: bool) {
    context.with::<DeviceData, _>(device, |device| {
        device.part::<PowerPolicy>().is_entering_d0 = is_entering;
    });
}

fn stop_idle_tracked(
    context: &Context,
    device: Handle<DeviceData>,
    wait: bool,
    _tag: Memory,
    _line: i32,
    _file: At<i8>,
) -> NtStatus {
    stop_idle(context, device, wait)
}

fn resume_idle(context: &Context, device: Handle<DeviceData>) {
    let resumed = device.with(context, |device| {
        let policy = device.part::<PowerPolicy>();
        policy.stops = policy.stops.checked_sub(1)?;
        Some(())
    });
    if resumed.is_none() {
        context.warn_of_misuse(|| "without a previous successful WdfDeviceStopIdle".to_owned());
    }
}

fn resume_idle_tracked(
    context: &Context,
    device: Handle<DeviceData>,
    _tag: Memory,
    _line: i32,
    _file: At<i8>,
) {
    resume_idle(context, device);
}

/// Checks the settings. Their callbacks are never called, because the stand-in kernel does not
/// simulate the power management framework for KMDF.
fn assign_power_framework_settings(
    context: &Context,
    device: Handle<DeviceData>,
    settings: At<PowerFrameworkSettings>,
) -> NtStatus {
    if !owns_policy(context, device.0) {
        return NtStatus::INVALID_DEVICE_REQUEST;
    }
    let settings = settings.read(context);
    let is_sized = settings.size as usize == size_of::<PowerFrameworkSettings>();
    // Newer headers append two fields.
    if !is_sized && settings.size as usize != size_of::<PowerFrameworkSettings>() + 16 {
        return NtStatus::INFO_LENGTH_MISMATCH;
    }
    NtStatus::SUCCESS
}
