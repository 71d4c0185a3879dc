//! The requests of processes, and of the driver itself.

use core::{ptr, slice};

use etw_driver_support::{check, nt};
use wdk_sys::{
    _DEVICE_RELATION_TYPE::BusRelations, DEVICE_OBJECT, ERESOURCE, IO_STACK_LOCATION, IRP,
    IRP_MJ_DEVICE_CONTROL, IRP_MJ_INTERNAL_DEVICE_CONTROL, IRP_MJ_READ, IRP_MJ_WRITE, NT_SUCCESS,
    NTSTATUS, PVOID, STATUS_BUFFER_TOO_SMALL, STATUS_DEVICE_NOT_READY,
    STATUS_INVALID_DEVICE_REQUEST, STATUS_SUCCESS, STATUS_UNSUCCESSFUL,
};

use crate::{
    commands,
    device::{self, Extension, extension},
    irps::{complete, complete_with, current, pass},
    own,
    variant::{Variant, variant},
};

/// Serves the requests of processes and of the driver itself.
pub unsafe extern "C" fn dispatch(device: *mut DEVICE_OBJECT, irp: *mut IRP) -> NTSTATUS {
    let its = extension(device);
    let acquired = device::acquire(its, irp);
    if !NT_SUCCESS(acquired) {
        return complete(irp, acquired);
    }
    let status =
        if variant() == Variant::Filter { pass(its.lower, irp) } else { serve(device, its, irp) };
    device::release(its, irp);
    status
}

fn serve(device: *mut DEVICE_OBJECT, its: &mut Extension, irp: *mut IRP) -> NTSTATUS {
    // SAFETY: the system passes a request with a stack location.
    let location = unsafe { &*current(irp) };
    match u32::from(location.MajorFunction) {
        IRP_MJ_READ => {
            // SAFETY: a read has these parameters.
            let length = unsafe { location.Parameters.Read.Length };
            give(irp, &its.written, length as usize)
        }
        IRP_MJ_WRITE => {
            // SAFETY: a write has these parameters.
            let length = unsafe { location.Parameters.Write.Length } as usize;
            let length = length.min(its.written.len());
            let buffer = system_buffer(irp);
            // SAFETY: the device uses buffered I/O, so the request has a buffer of this length,
            // which does not overlap the device's memory.
            unsafe { ptr::copy_nonoverlapping(buffer.cast(), its.written.as_mut_ptr(), length) };
            complete_with(irp, STATUS_SUCCESS, length)
        }
        IRP_MJ_DEVICE_CONTROL | IRP_MJ_INTERNAL_DEVICE_CONTROL => {
            if its.is_started {
                control(device, its, irp, location)
            } else {
                complete(irp, STATUS_DEVICE_NOT_READY)
            }
        }
        _ => complete(irp, STATUS_SUCCESS),
    }
}

fn control(
    device: *mut DEVICE_OBJECT,
    its: &mut Extension,
    irp: *mut IRP,
    location: &IO_STACK_LOCATION,
) -> NTSTATUS {
    // SAFETY: a device control has these parameters.
    let parameters = unsafe { location.Parameters.DeviceIoControl };
    let room = parameters.OutputBufferLength as usize;
    let count = parameters.InputBufferLength as usize;
    let system = system_buffer(irp).cast::<u8>();
    match parameters.IoControlCode {
        commands::COUNTS => give(irp, &its.counts, room),
        commands::STATES => give(irp, &its.states, room),
        commands::LINK => {
            let length = usize::from(its.link.Length);
            // SAFETY: the string is this long.
            let bytes = unsafe { slice::from_raw_parts(its.link.Buffer.cast(), length) };
            give(irp, bytes, room)
        }
        commands::FAIL => {
            its.has_failed = true;
            nt!(IoInvalidateDeviceState, its.physical);
            complete(irp, STATUS_SUCCESS)
        }
        commands::RELATIONS => {
            nt!(IoInvalidateDeviceRelations, its.physical, BusRelations);
            complete(irp, STATUS_SUCCESS)
        }
        commands::KEEP => its.queues[0].keep(irp, false),
        commands::KEEP_FOUND => its.queues[0].keep_found(irp),
        commands::KEEP_ONE => its.queues[1].keep(irp, true),
        commands::COMPLETE_NEXT => {
            let is_done = its.queues[0].complete_next() || its.queues[1].complete_next();
            complete_with(irp, STATUS_SUCCESS, usize::from(is_done))
        }
        commands::COMPLETE_FOUND => {
            let is_done = its.queues[0].complete_found();
            complete_with(irp, STATUS_SUCCESS, usize::from(is_done))
        }
        commands::REVERSE_OWN | commands::TRANSFER_OWN => {
            let mut bytes = [0; 16];
            let count = count.min(bytes.len());
            // SAFETY: the input is this long.
            unsafe { ptr::copy_nonoverlapping(system, bytes.as_mut_ptr(), count) };
            let input = &bytes[..count];
            let (status, count) = if parameters.IoControlCode == commands::REVERSE_OWN {
                reverse_own(device, input, system, room)
            } else {
                transfer_own(device, input, system, room)
            };
            complete_with(irp, status, count)
        }
        commands::CAPABILITY => {
            let (status, state) = own::capability(device);
            // The state is returned as the number of bytes.
            complete_with(irp, status, state)
        }
        commands::FAIL_OWN => {
            let results = own::fail(device);
            give(irp, &results, room)
        }
        commands::LEAK_LOCK => complete(irp, device::acquire(its, ptr::null_mut())),
        commands::WRONG_TAG => {
            device::release(its, ptr::null_mut());
            complete(irp, STATUS_SUCCESS)
        }
        commands::RESOURCE => {
            // SAFETY: the input is at least one byte long.
            let in_region = unsafe { *system } != 0;
            complete(irp, acquire_resource(in_region))
        }
        commands::PROPERTY => {
            let mut length = 0;
            // SAFETY: the input is at least one byte long, and the routine reads it before it
            // writes the output.
            let property = i32::from(unsafe { *system });
            let status = nt!(
                IoGetDeviceProperty,
                its.physical,
                property,
                room as u32,
                system.cast(),
                &raw mut length,
            );
            complete_with(irp, status, length as usize)
        }
        code if code & !3 == commands::REVERSE => reverse(irp, &parameters),
        _ => complete(irp, STATUS_INVALID_DEVICE_REQUEST),
    }
}

/// Acquires and releases a resource.
fn acquire_resource(in_region: bool) -> NTSTATUS {
    let mut resource = ERESOURCE::default();
    check!(nt!(ExInitializeResourceLite, &raw mut resource));
    if in_region {
        nt!(KeEnterCriticalRegion);
    }
    let _is_acquired = nt!(ExAcquireResourceExclusiveLite, &raw mut resource, 1);
    nt!(ExReleaseResourceLite, &raw mut resource);
    if in_region {
        nt!(KeLeaveCriticalRegion);
    }
    nt!(ExDeleteResourceLite, &raw mut resource)
}

type Control = wdk_sys::_IO_STACK_LOCATION__bindgen_ty_1__bindgen_ty_17;

/// Copies the input to the output in reverse order.
fn reverse(irp: *mut IRP, parameters: &Control) -> NTSTATUS {
    const METHOD_BUFFERED: u32 = 0;
    const METHOD_NEITHER: u32 = 3;
    // SAFETY: the driver owns the request.
    let request = unsafe { &*irp };
    // SAFETY: as above.
    let system = unsafe { request.AssociatedIrp.SystemBuffer }.cast::<u8>();
    let (from, to) = match parameters.IoControlCode & 3 {
        METHOD_BUFFERED => (system, system),
        METHOD_NEITHER => {
            (parameters.Type3InputBuffer.cast::<u8>(), request.UserBuffer.cast::<u8>())
        }
        _ => {
            let output =
                nt!(MmMapLockedPagesSpecifyCache, request.MdlAddress, 0, 1, ptr::null_mut(), 0, 16);
            (system, output.cast())
        }
    };
    let mut bytes = [0; 16];
    let count = parameters.InputBufferLength.min(16) as usize;
    // SAFETY: the input is this long.
    unsafe { ptr::copy_nonoverlapping(from, bytes.as_mut_ptr(), count) };
    let count = count.min(parameters.OutputBufferLength as usize);
    for (at, byte) in bytes[..count].iter().rev().enumerate() {
        // SAFETY: the output is at least this long.
        unsafe { *to.wrapping_add(at) = *byte };
    }
    complete_with(irp, STATUS_SUCCESS, count)
}

/// Sends [`commands::REVERSE`] with a method to the device's stack.
fn reverse_own(
    device: *mut DEVICE_OBJECT,
    input: &[u8],
    output: *mut u8,
    room: usize,
) -> own::Outcome {
    let Some((method, bytes)) = input.split_first() else {
        return (STATUS_UNSUCCESSFUL, 0);
    };
    let code = commands::REVERSE + u32::from(method & 3);
    own::control(device, code, bytes, output, room, *method > 3)
}

/// Writes to the device and reads twice, with requests that the system frees and requests that the
/// driver frees.
fn transfer_own(
    device: *mut DEVICE_OBJECT,
    input: &[u8],
    output: *mut u8,
    room: usize,
) -> own::Outcome {
    let mut bytes = [0; 16];
    bytes[..input.len()].copy_from_slice(input);
    let (status, _) = own::transfer(device, true, bytes.as_mut_ptr(), bytes.len());
    if !NT_SUCCESS(status) || room < 2 * bytes.len() {
        return (status, 0);
    }
    let (status, first) = own::transfer(device, false, output, bytes.len());
    if !NT_SUCCESS(status) {
        return (status, 0);
    }
    let (status, second) = own::read_later(device, output.wrapping_add(first), bytes.len());
    (status, first + second)
}

/// Returns the buffer of a request.
fn system_buffer(irp: *mut IRP) -> PVOID {
    // SAFETY: the driver owns the request.
    let associated = unsafe { &(*irp).AssociatedIrp };
    // SAFETY: every request that the driver receives uses this member of the union.
    unsafe { associated.SystemBuffer }
}

/// Completes a request with bytes in its buffer.
fn give(irp: *mut IRP, bytes: &[u8], room: usize) -> NTSTATUS {
    if room < bytes.len() {
        return complete(irp, STATUS_BUFFER_TOO_SMALL);
    }
    let buffer = system_buffer(irp);
    // SAFETY: the buffer is large enough, and does not overlap the driver's memory.
    unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), buffer.cast(), bytes.len()) };
    complete_with(irp, STATUS_SUCCESS, bytes.len())
}
