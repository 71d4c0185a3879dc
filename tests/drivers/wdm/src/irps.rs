//! Requests: their current stack location, and the status that keeps one of the driver's own
//! requests from further completion.

use etw_driver_support::nt;
use wdk_sys::{
    DEVICE_OBJECT, IO_STACK_LOCATION, IRP, NTSTATUS, PVOID, STATUS_MORE_PROCESSING_REQUIRED,
};

/// The bits of a stack location's `Control` that make the system always call the location's
/// completion routine.
pub const INVOKE_ALWAYS: u8 = 0xE0;

/// `IoGetCurrentIrpStackLocation`.
pub const fn current(irp: &IRP) -> *mut IO_STACK_LOCATION {
    // SAFETY: the tail of a request that a driver owns is its overlay.
    let overlay = unsafe { &irp.Tail.Overlay };
    // SAFETY: a driver to which a request was passed has a stack location.
    unsafe { overlay.__bindgen_anon_2.__bindgen_anon_1.CurrentStackLocation }
}

/// Sets the buffer that receives a request's data.
pub fn set_buffer(irp: *mut IRP, buffer: *mut u8) {
    // SAFETY: this driver owns the request.
    let associated = unsafe { &mut (*irp).AssociatedIrp };
    associated.SystemBuffer = buffer.cast();
}

/// Stops the completion of one of the driver's own requests.
pub const unsafe extern "C" fn completed(
    _device: *mut DEVICE_OBJECT,
    _irp: *mut IRP,
    _context: PVOID,
) -> NTSTATUS {
    STATUS_MORE_PROCESSING_REQUIRED
}

/// Completes a request.
pub fn complete(irp: *mut IRP, status: NTSTATUS, information: usize) -> NTSTATUS {
    // SAFETY: the driver owns the request until it completes it.
    let request = unsafe { &mut *irp };
    request.IoStatus.__bindgen_anon_1.Status = status;
    request.IoStatus.Information = information as u64;
    nt!(IofCompleteRequest, irp, 0);
    status
}
