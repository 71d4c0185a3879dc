//! The power requests. The driver owns its device's power policy: the device follows the system's
//! states.

use core::ptr;

use etw_driver_support::nt;
use wdk_etw::emit;
use wdk_sys::{
    DEVICE_OBJECT, IO_STATUS_BLOCK, IRP, IRP_MN_QUERY_POWER, IRP_MN_SET_POWER, NT_SUCCESS,
    NTSTATUS, POWER_STATE, PVOID, STATUS_MORE_PROCESSING_REQUIRED, STATUS_PENDING, STATUS_SUCCESS,
    STATUS_UNSUCCESSFUL, UCHAR,
};

use crate::{
    commands::POWER,
    device::{Extension, extension},
    irps::{complete, copy_and_watch, current, mark_pending, set_status, skip, status},
    trace,
    variant::{Variant, variant},
};

/// `SystemPowerState` and `DevicePowerState`.
const SYSTEM: i32 = 0;
const DEVICE: i32 = 1;
/// `PowerSystemWorking`.
const WORKING: i32 = 1;
/// `PowerDeviceD0` and `PowerDeviceD3`.
const D0: i32 = 1;
const D3: i32 = 4;

/// Serves `IRP_MJ_POWER`.
pub unsafe extern "C" fn dispatch(device: *mut DEVICE_OBJECT, irp: *mut IRP) -> NTSTATUS {
    let its = extension(device);
    // SAFETY: the system passes a request with a stack location.
    let location = unsafe { &*current(irp) };
    let minor = location.MinorFunction;
    if let Some(count) = its.counts[POWER..].get_mut(usize::from(minor)) {
        *count = count.wrapping_add(1);
    }
    let is_known = matches!(u32::from(minor), IRP_MN_SET_POWER | IRP_MN_QUERY_POWER);
    if variant() == Variant::Filter || !is_known {
        return pass(its, irp);
    }
    // SAFETY: requests that set or query a state have these parameters.
    let power = unsafe { location.Parameters.Power };
    match power.Type {
        SYSTEM => system(device, its, irp, power.State),
        DEVICE if u32::from(minor) == IRP_MN_SET_POWER => {
            device_state(device, its, irp, power.State)
        }
        _ => {
            if variant() == Variant::Power {
                mark_pending(irp);
                return STATUS_PENDING;
            }
            set_status(irp, STATUS_SUCCESS);
            pass(its, irp)
        }
    }
}

fn pass(its: &Extension, irp: *mut IRP) -> NTSTATUS {
    nt!(PoStartNextPowerIrp, irp);
    skip(irp);
    nt!(PoCallDriver, its.lower, irp)
}

/// Passes a system power request down, and then requests the corresponding device state.
fn system(
    device: *mut DEVICE_OBJECT,
    its: &Extension,
    irp: *mut IRP,
    state: POWER_STATE,
) -> NTSTATUS {
    // SAFETY: the state is a system power state.
    let is_working = unsafe { state.SystemState } == WORKING;
    if variant() == Variant::Awake && !is_working {
        nt!(PoStartNextPowerIrp, irp);
        return complete(irp, STATUS_UNSUCCESSFUL);
    }
    mark_pending(irp);
    copy_and_watch(irp, Some(system_passed), device.cast());
    let _status = nt!(PoCallDriver, its.lower, irp);
    STATUS_PENDING
}

unsafe extern "C" fn system_passed(
    _device: *mut DEVICE_OBJECT,
    irp: *mut IRP,
    context: PVOID,
) -> NTSTATUS {
    let device: *mut DEVICE_OBJECT = context.cast();
    if !NT_SUCCESS(status(irp)) {
        nt!(PoStartNextPowerIrp, irp);
        return STATUS_SUCCESS;
    }
    // SAFETY: the request has returned to this driver's location.
    let location = unsafe { &*current(irp) };
    // SAFETY: the request is for a system state.
    let power = unsafe { location.Parameters.Power };
    // SAFETY: as above.
    let is_working = unsafe { power.State.SystemState } == WORKING;
    let wanted = POWER_STATE { DeviceState: if is_working { D0 } else { D3 } };
    let asked = nt!(
        PoRequestPowerIrp,
        device,
        location.MinorFunction,
        wanted,
        Some(state_reached),
        irp.cast(),
        ptr::null_mut(),
    );
    if asked != STATUS_PENDING {
        set_status(irp, asked);
        nt!(PoStartNextPowerIrp, irp);
        return STATUS_SUCCESS;
    }
    STATUS_MORE_PROCESSING_REQUIRED
}

/// Completes the system power request when the device power request has been completed.
unsafe extern "C" fn state_reached(
    _device: *mut DEVICE_OBJECT,
    _minor: UCHAR,
    _state: POWER_STATE,
    context: PVOID,
    block: *mut IO_STATUS_BLOCK,
) {
    let irp: *mut IRP = context.cast();
    // SAFETY: the system passes the status of the device's request.
    let block = unsafe { &*block };
    // SAFETY: the status is always set.
    set_status(irp, unsafe { block.__bindgen_anon_1.Status });
    nt!(PoStartNextPowerIrp, irp);
    nt!(IofCompleteRequest, irp, 0);
}

/// Changes the device's state: before the lower drivers when powering down, and after them when
/// powering up.
fn device_state(
    device: *mut DEVICE_OBJECT,
    its: &mut Extension,
    irp: *mut IRP,
    state: POWER_STATE,
) -> NTSTATUS {
    // SAFETY: the state is a device power state.
    if unsafe { state.DeviceState } != D0 {
        reached(device, its, state);
        set_status(irp, STATUS_SUCCESS);
        return pass(its, irp);
    }
    mark_pending(irp);
    copy_and_watch(irp, Some(powered_up), device.cast());
    let _status = nt!(PoCallDriver, its.lower, irp);
    STATUS_PENDING
}

unsafe extern "C" fn powered_up(
    _device: *mut DEVICE_OBJECT,
    irp: *mut IRP,
    context: PVOID,
) -> NTSTATUS {
    let device: *mut DEVICE_OBJECT = context.cast();
    reached(device, extension(device), POWER_STATE { DeviceState: D0 });
    nt!(PoStartNextPowerIrp, irp);
    STATUS_SUCCESS
}

/// Records a state of the device, and notifies the power manager.
fn reached(device: *mut DEVICE_OBJECT, its: &mut Extension, state: POWER_STATE) {
    // SAFETY: the state is a device power state.
    let number = unsafe { state.DeviceState };
    its.states.rotate_right(1);
    its.states[0] = number as u8;
    let before = nt!(PoSetPowerState, device, DEVICE, state);
    // SAFETY: as above.
    if unsafe { before.DeviceState } != i32::from(its.states[1]) {
        // This reports to a test that the power manager returned a wrong previous state.
        its.states[7] = u8::MAX;
    }
    emit!(trace::power_state(number as u32));
}
