//! The requests of the device.

use core::{
    ptr, slice,
    sync::atomic::{AtomicPtr, Ordering},
};

use etw_driver_support::nt;
use wdk_etw::emit;
use wdk_sys::{
    DEVICE_OBJECT, FO_SYNCHRONOUS_IO, IO_STACK_LOCATION, IRP, IRP_MJ_CREATE, IRP_MJ_DEVICE_CONTROL,
    IRP_MJ_READ, IRP_MJ_SET_EA, IRP_MJ_WRITE, NTSTATUS, STATUS_BUFFER_TOO_SMALL, STATUS_CANCELLED,
    STATUS_PENDING, STATUS_SUCCESS,
};

use crate::{
    access, commands,
    irps::{complete, current},
    locations, names, own, trace,
};

/// The bytes of the last write, in the device extension.
#[repr(C)]
pub struct State {
    length: usize,
    bytes: [u8; 64],
}

/// The pending request.
static KEPT: AtomicPtr<IRP> = AtomicPtr::new(ptr::null_mut());

/// A bit of a stack location's `Control`.
const PENDING_RETURNED: u8 = 1;

/// Serves a request of the device.
pub unsafe extern "C" fn dispatch(device: *mut DEVICE_OBJECT, irp: *mut IRP) -> NTSTATUS {
    // SAFETY: the system passes a request of this device.
    let request = unsafe { &mut *irp };
    // SAFETY: the request has a stack location.
    let location = unsafe { &mut *current(request) };
    // SAFETY: the system passes this driver's device.
    let extension = unsafe { (*device).DeviceExtension };
    // SAFETY: the extension has room for the state.
    let state = unsafe { &mut *extension.cast::<State>() };
    // SAFETY: the buffer is null, or is as long as the request's parameters state.
    let buffer = unsafe { request.AssociatedIrp.SystemBuffer }.cast::<u8>();
    let major = u32::from(location.MajorFunction);
    names::note(irp, location);
    match major {
        IRP_MJ_READ => {
            // SAFETY: a read has these parameters.
            let length = unsafe { location.Parameters.Read.Length } as usize;
            emit!(trace::request(major as u8, length as u32));
            let count = length.min(state.length);
            if count > 0 {
                // SAFETY: the buffer is long enough, and does not overlap the state.
                unsafe { ptr::copy_nonoverlapping(state.bytes.as_ptr(), buffer, count) };
            }
            complete(irp, STATUS_SUCCESS, count)
        }
        IRP_MJ_WRITE => {
            // SAFETY: a write has these parameters.
            let length = unsafe { location.Parameters.Write.Length } as usize;
            emit!(trace::request(major as u8, length as u32));
            if length > state.bytes.len() {
                return complete(irp, STATUS_BUFFER_TOO_SMALL, 0);
            }
            if length > 0 {
                // SAFETY: the buffer is long enough, and does not overlap the state.
                unsafe { ptr::copy_nonoverlapping(buffer, state.bytes.as_mut_ptr(), length) };
            }
            state.length = length;
            complete(irp, STATUS_SUCCESS, length)
        }
        IRP_MJ_DEVICE_CONTROL => control(device, irp, location),
        IRP_MJ_CREATE => {
            state.length = 0;
            own::note_open(location);
            access::check(device, location);
            complete(irp, STATUS_SUCCESS, 0)
        }
        _ => complete(irp, STATUS_SUCCESS, 0),
    }
}

fn control(
    device: *mut DEVICE_OBJECT,
    irp: *mut IRP,
    location: &mut IO_STACK_LOCATION,
) -> NTSTATUS {
    // SAFETY: this driver owns the request.
    let request = unsafe { &mut *irp };
    // SAFETY: a device control has these parameters.
    let parameters = unsafe { location.Parameters.DeviceIoControl };
    let input_length = parameters.InputBufferLength as usize;
    let output_length = parameters.OutputBufferLength as usize;
    // SAFETY: the buffer is null, or has the lengths above.
    let system = unsafe { request.AssociatedIrp.SystemBuffer }.cast::<u8>();
    match parameters.IoControlCode {
        commands::KEEP => {
            location.Control |= PENDING_RETURNED;
            request.CancelRoutine = Some(canceled);
            KEPT.store(irp, Ordering::Relaxed);
            STATUS_PENDING
        }
        commands::RELEASE => {
            let kept = KEPT.swap(ptr::null_mut(), Ordering::Relaxed);
            // SAFETY: the driver owns the pending request.
            unsafe { (*kept).CancelRoutine = None };
            complete(kept, STATUS_SUCCESS, 0);
            complete(irp, STATUS_SUCCESS, 0)
        }
        commands::REVERSE_DIRECT => {
            let output =
                nt!(MmMapLockedPagesSpecifyCache, request.MdlAddress, 0, 1, ptr::null_mut(), 0, 16);
            reverse(irp, system, input_length, output.cast(), output_length)
        }
        commands::REVERSE_NEITHER => {
            let input = parameters.Type3InputBuffer.cast::<u8>();
            let output = request.UserBuffer.cast();
            reverse(irp, input, input_length, output, output_length)
        }
        commands::FORWARD => {
            let count = read_own(device, system, output_length);
            complete(irp, STATUS_SUCCESS, count)
        }
        commands::READ_ASYNCHRONOUS => {
            let count = own::read_asynchronous(device, system, output_length);
            complete(irp, STATUS_SUCCESS, count)
        }
        commands::REFERENCES => {
            // SAFETY: the device belongs to this driver.
            let count = unsafe { (*device).ReferenceCount };
            complete(irp, STATUS_SUCCESS, count.unsigned_abs() as usize)
        }
        commands::APCS => {
            let disabled = [nt!(KeAreApcsDisabled), nt!(KeAreAllApcsDisabled)].map(usize::from);
            // SAFETY: a control has a file object.
            let flags = unsafe { (*location.FileObject).Flags };
            let is_synchronous = usize::from(flags & FO_SYNCHRONOUS_IO != 0);
            complete(irp, STATUS_SUCCESS, disabled[0] | disabled[1] << 1 | is_synchronous << 2)
        }
        commands::OWN_LOCATION => {
            let count = locations::read_with_each(device, system, output_length);
            complete(irp, STATUS_SUCCESS, count)
        }
        commands::FORWARD_TWICE => {
            let step = locations::forward_twice(device);
            complete(irp, STATUS_SUCCESS, step)
        }
        locations::FORWARDED => {
            location.Control |= PENDING_RETURNED;
            locations::forwarded(device, irp);
            STATUS_PENDING
        }
        commands::COMPLETE_TWICE => {
            complete(irp, STATUS_SUCCESS, 0);
            complete(irp, STATUS_SUCCESS, 0)
        }
        commands::FORGET => STATUS_SUCCESS,
        commands::DEFAULT_ROUTINE => {
            // SAFETY: the device belongs to this driver.
            let driver = unsafe { (*device).DriverObject };
            // SAFETY: the object is this driver's.
            let routine = unsafe { (*driver).MajorFunction[IRP_MJ_SET_EA as usize] };
            routine.map_or_else(
                || complete(irp, STATUS_SUCCESS, 0),
                // SAFETY: the routine is the I/O manager's, and completes the request.
                |routine| unsafe { routine(device, irp) },
            )
        }
        commands::COMPARE_SECOND => {
            let second =
                nt!(MmMapLockedPagesSpecifyCache, request.MdlAddress, 0, 1, ptr::null_mut(), 0, 16);
            let count = input_length.min(output_length);
            // SAFETY: the request's input is this long.
            let input = unsafe { slice::from_raw_parts(system, count) };
            // SAFETY: the request's second buffer is this long.
            let second = unsafe { slice::from_raw_parts(second.cast::<u8>(), count) };
            let same = second.iter().zip(input.iter().rev());
            complete(irp, STATUS_SUCCESS, same.filter(|(a, b)| a == b).count())
        }
        code => {
            if let Some(count) = names::control(device, code, system, [input_length, output_length])
            {
                return complete(irp, STATUS_SUCCESS, count);
            }
            let (status, information) = own::control(device, code, system, output_length);
            complete(irp, status, information)
        }
    }
}

/// Copies the input in reverse order.
fn reverse(irp: *mut IRP, from: *const u8, length: usize, to: *mut u8, room: usize) -> NTSTATUS {
    let count = length.min(room);
    // SAFETY: the request's input is this long.
    let input = unsafe { slice::from_raw_parts(from, count) };
    // SAFETY: the request's output is at least this long, and does not overlap the input.
    let output = unsafe { slice::from_raw_parts_mut(to, count) };
    for (to, from) in output.iter_mut().zip(input.iter().rev()) {
        *to = *from;
    }
    complete(irp, STATUS_SUCCESS, count)
}

/// Cancels the pending request.
unsafe extern "C" fn canceled(_device: *mut DEVICE_OBJECT, irp: *mut IRP) {
    KEPT.store(ptr::null_mut(), Ordering::Relaxed);
    // SAFETY: the system passes the request.
    let irql = unsafe { (*irp).CancelIrql };
    nt!(IoReleaseCancelSpinLock, irql);
    complete(irp, STATUS_CANCELLED, 0);
}

/// Reads from this driver's own device with a request that the driver creates. Returns the number
/// of bytes.
fn read_own(device: *mut DEVICE_OBJECT, buffer: *mut u8, length: usize) -> usize {
    let irp = nt!(IoAllocateIrp, own::stack_size(device), 0);
    let count = own::read(device, irp, buffer, length);
    nt!(IoFreeIrp, irp);
    count
}
