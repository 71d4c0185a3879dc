//! The Plug and Play requests.

use etw_driver_support::nt;
use wdk_etw::emit;
use wdk_sys::{
    DEVICE_OBJECT, IRP, IRP_MN_CANCEL_REMOVE_DEVICE, IRP_MN_CANCEL_STOP_DEVICE,
    IRP_MN_QUERY_CAPABILITIES, IRP_MN_QUERY_PNP_DEVICE_STATE, IRP_MN_QUERY_REMOVE_DEVICE,
    IRP_MN_QUERY_STOP_DEVICE, IRP_MN_REMOVE_DEVICE, IRP_MN_START_DEVICE, IRP_MN_STOP_DEVICE,
    IRP_MN_SURPRISE_REMOVAL, NT_SUCCESS, NTSTATUS, PNP_DEVICE_FAILED, STATUS_PENDING,
    STATUS_SUCCESS, STATUS_UNSUCCESSFUL,
};

use crate::{
    commands::POWER,
    device::{self, Extension, acquire, extension, release, release_and_wait},
    irps::{self, complete, current, pass, pass_and_wait, set_status},
    trace,
    variant::{Variant, variant},
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
    let acquired = acquire(its, irp);
    if !NT_SUCCESS(acquired) {
        return complete(irp, acquired);
    }
    let is_removal = u32::from(minor) == IRP_MN_REMOVE_DEVICE;
    let status = if variant() == Variant::Filter {
        filter(device, its, irp, u32::from(minor))
    } else {
        serve(device, its, irp, u32::from(minor))
    };
    // A removal releases the lock before it deletes the device.
    if !is_removal {
        release(its, irp);
    }
    status
}

/// Passes a request down. A filter must handle only the removal of its device.
fn filter(device: *mut DEVICE_OBJECT, its: &mut Extension, irp: *mut IRP, minor: u32) -> NTSTATUS {
    if minor != IRP_MN_REMOVE_DEVICE {
        return pass(its.lower, irp);
    }
    set_status(irp, STATUS_SUCCESS);
    let status = pass(its.lower, irp);
    release_and_wait(its, irp);
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
                release_and_wait(its, irp);
                device::remove(device);
                return complete(irp, STATUS_SUCCESS);
            }
            set_status(irp, STATUS_SUCCESS);
            let status = pass(its.lower, irp);
            release_and_wait(its, irp);
            device::remove(device);
            status
        }
        IRP_MN_QUERY_PNP_DEVICE_STATE => {
            if its.has_failed || variant() == Variant::Failed {
                // SAFETY: the driver owns the request.
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
        // The lower drivers handle requests that this driver does not know.
        _ => pass(its.lower, irp),
    }
}

/// Starts the device after the lower drivers have started it.
fn start(its: &mut Extension, irp: *mut IRP) -> NTSTATUS {
    let mut status = if variant() == Variant::Forward {
        let is_passed = nt!(IoForwardIrpSynchronously, its.lower, irp);
        debug_assert!(is_passed != 0);
        irps::status(irp)
    } else {
        pass_and_wait(its.lower, irp)
    };
    let is_first = its.counts[IRP_MN_START_DEVICE as usize] == 1;
    let fails = variant() == Variant::Start || (variant() == Variant::Restart && !is_first);
    if NT_SUCCESS(status) && fails {
        status = STATUS_UNSUCCESSFUL;
    }
    if NT_SUCCESS(status) {
        its.is_started = true;
        device::set_interface(its, true);
    }
    complete(irp, status)
}
