//! The plug-and-play requests.

use wdk_etw::emit;
use wdk_sys::{
    DEVICE_OBJECT, IRP, IRP_MN_CANCEL_REMOVE_DEVICE, IRP_MN_CANCEL_STOP_DEVICE,
    IRP_MN_QUERY_CAPABILITIES, IRP_MN_QUERY_PNP_DEVICE_STATE, IRP_MN_QUERY_REMOVE_DEVICE,
    IRP_MN_QUERY_STOP_DEVICE, IRP_MN_REMOVE_DEVICE, IRP_MN_START_DEVICE, IRP_MN_STOP_DEVICE,
    IRP_MN_SURPRISE_REMOVAL, NT_SUCCESS, NTSTATUS, PNP_DEVICE_FAILED, STATUS_PENDING,
    STATUS_SUCCESS, STATUS_UNSUCCESSFUL,
};

use crate::{
    commands::{POWER, Variant},
    device::{self, Extension, extension},
    irps::{complete, current, pass, pass_and_wait, set_status},
    trace, variant,
};

/// Serves `IRP_MJ_PNP`.
pub unsafe extern "C" fn dispatch(device: *mut DEVICE_OBJECT, irp: *mut IRP) -> NTSTATUS {
    let its = extension(device);
    // SAFETY: the system passes a request with a stack location.
    let minor = unsafe { (*current(irp)).MinorFunction };
    if let Some(count) = its.counts[..POWER].get_mut(usize::from(minor)) {
        *count = count.wrapping_add(1);
    }
    emit!(trace::pnp(minor));
    if variant() == Variant::Filter {
        return filter(device, its, irp, u32::from(minor));
    }
    serve(device, its, irp, u32::from(minor))
}

/// Passes a request down. A filter has nothing to do but to go with the device.
fn filter(device: *mut DEVICE_OBJECT, its: &mut Extension, irp: *mut IRP, minor: u32) -> NTSTATUS {
    if minor != IRP_MN_REMOVE_DEVICE {
        return pass(its.lower, irp);
    }
    set_status(irp, STATUS_SUCCESS);
    let status = pass(its.lower, irp);
    device::remove(device);
    status
}

fn serve(device: *mut DEVICE_OBJECT, its: &mut Extension, irp: *mut IRP, minor: u32) -> NTSTATUS {
    match minor {
        IRP_MN_START_DEVICE => start(its, irp),
        IRP_MN_QUERY_STOP_DEVICE | IRP_MN_QUERY_REMOVE_DEVICE if variant() == Variant::Refuse => {
            complete(irp, STATUS_UNSUCCESSFUL)
        }
        IRP_MN_QUERY_STOP_DEVICE
        | IRP_MN_QUERY_REMOVE_DEVICE
        | IRP_MN_CANCEL_STOP_DEVICE
        | IRP_MN_CANCEL_REMOVE_DEVICE => {
            set_status(irp, STATUS_SUCCESS);
            pass(its.lower, irp)
        }
        IRP_MN_STOP_DEVICE => {
            its.is_started = false;
            set_status(irp, STATUS_SUCCESS);
            pass(its.lower, irp)
        }
        IRP_MN_SURPRISE_REMOVAL => {
            its.is_started = false;
            device::set_interface(its, false);
            set_status(irp, STATUS_SUCCESS);
            pass(its.lower, irp)
        }
        IRP_MN_REMOVE_DEVICE => {
            its.is_started = false;
            device::set_interface(its, false);
            if variant() == Variant::Alone {
                device::remove(device);
                return complete(irp, STATUS_SUCCESS);
            }
            set_status(irp, STATUS_SUCCESS);
            let status = pass(its.lower, irp);
            device::remove(device);
            status
        }
        IRP_MN_QUERY_PNP_DEVICE_STATE => {
            if its.has_failed || variant() == Variant::Failed {
                // SAFETY: the driver has the request.
                unsafe { (*irp).IoStatus.Information |= u64::from(PNP_DEVICE_FAILED) };
            }
            set_status(irp, STATUS_SUCCESS);
            pass(its.lower, irp)
        }
        IRP_MN_QUERY_CAPABILITIES if variant() == Variant::Forgotten => STATUS_SUCCESS,
        IRP_MN_QUERY_CAPABILITIES if variant() == Variant::Unmarked => {
            let _status = pass(its.lower, irp);
            STATUS_PENDING
        }
        // What this driver does not know is the lower drivers'.
        _ => pass(its.lower, irp),
    }
}

/// Starts the device after the lower drivers have done so.
fn start(its: &mut Extension, irp: *mut IRP) -> NTSTATUS {
    let mut status = pass_and_wait(its.lower, irp);
    if NT_SUCCESS(status) && variant() == Variant::Start {
        status = STATUS_UNSUCCESSFUL;
    }
    if NT_SUCCESS(status) {
        its.is_started = true;
        device::set_interface(its, true);
    }
    complete(irp, status)
}
