//! The requests of processes.

use core::ptr;

use wdk_sys::{
    _DEVICE_RELATION_TYPE::BusRelations,
    DEVICE_OBJECT, IRP, IRP_MJ_DEVICE_CONTROL, NTSTATUS, STATUS_BUFFER_TOO_SMALL,
    STATUS_DEVICE_NOT_READY, STATUS_INVALID_DEVICE_REQUEST, STATUS_SUCCESS,
    ntddk::{IoInvalidateDeviceRelations, IoInvalidateDeviceState},
};

use crate::{
    commands::{self, Variant},
    device::extension,
    irps::{complete, complete_with, current, pass},
    variant,
};

/// Serves the requests of processes.
pub unsafe extern "C" fn dispatch(device: *mut DEVICE_OBJECT, irp: *mut IRP) -> NTSTATUS {
    let its = extension(device);
    if variant() == Variant::Filter {
        return pass(its.lower, irp);
    }
    // SAFETY: the system passes a request with a stack location.
    let location = unsafe { &*current(irp) };
    if u32::from(location.MajorFunction) != IRP_MJ_DEVICE_CONTROL {
        return complete(irp, STATUS_SUCCESS);
    }
    if !its.is_started {
        return complete(irp, STATUS_DEVICE_NOT_READY);
    }
    // SAFETY: a device control has these parameters.
    let parameters = unsafe { location.Parameters.DeviceIoControl };
    let room = parameters.OutputBufferLength as usize;
    match parameters.IoControlCode {
        commands::COUNTS => give(irp, &its.counts, room),
        commands::STATES => give(irp, &its.states, room),
        commands::LINK => {
            let length = usize::from(its.link.Length);
            // SAFETY: the string has this length.
            let bytes = unsafe { core::slice::from_raw_parts(its.link.Buffer.cast(), length) };
            give(irp, bytes, room)
        }
        commands::FAIL => {
            its.has_failed = true;
            // SAFETY: the device is the physical one of the stack.
            unsafe { IoInvalidateDeviceState(its.physical) };
            complete(irp, STATUS_SUCCESS)
        }
        commands::RELATIONS => {
            // SAFETY: the device is the physical one of the stack.
            unsafe { IoInvalidateDeviceRelations(its.physical, BusRelations) };
            complete(irp, STATUS_SUCCESS)
        }
        _ => complete(irp, STATUS_INVALID_DEVICE_REQUEST),
    }
}

/// Completes a request with bytes in its buffer.
fn give(irp: *mut IRP, bytes: &[u8], room: usize) -> NTSTATUS {
    if room < bytes.len() {
        return complete(irp, STATUS_BUFFER_TOO_SMALL);
    }
    // SAFETY: the driver has the request.
    let buffer = unsafe { (*irp).AssociatedIrp.SystemBuffer };
    // SAFETY: the buffer has the room, and is not in the driver's memory.
    unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), buffer.cast(), bytes.len()) };
    complete_with(irp, STATUS_SUCCESS, bytes.len())
}
