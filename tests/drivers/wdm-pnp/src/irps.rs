//! Counterparts of wdm.h's inline functions: stack locations, completion routines, and passing
//! requests.

use core::ptr;

use etw_driver_support::nt;
use wdk_sys::{
    DEVICE_OBJECT, IO_STACK_LOCATION, IRP, KEVENT, NT_SUCCESS, NTSTATUS, PIO_COMPLETION_ROUTINE,
    PVOID, STATUS_MORE_PROCESSING_REQUIRED, STATUS_PENDING,
};

/// `SL_PENDING_RETURNED`.
const PENDING_RETURNED: u8 = 1;
/// `SL_INVOKE_ON_SUCCESS`, `SL_INVOKE_ON_ERROR` and `SL_INVOKE_ON_CANCEL`.
const INVOKE_ALWAYS: u8 = 0xE0;
/// `NotificationEvent`, `Executive` and `KernelMode`.
const NOTIFICATION: i32 = 0;
const EXECUTIVE: i32 = 0;
const KERNEL_MODE: i8 = 0;

/// `IoGetCurrentIrpStackLocation`.
pub fn current(irp: *mut IRP) -> *mut IO_STACK_LOCATION {
    // SAFETY: the caller owns the request.
    let tail = unsafe { &(*irp).Tail };
    // SAFETY: the tail of a request that a driver owns is its overlay.
    let overlay = unsafe { &tail.Overlay };
    // SAFETY: a driver to which a request was passed has a stack location.
    unsafe { overlay.__bindgen_anon_2.__bindgen_anon_1.CurrentStackLocation }
}

/// `IoGetNextIrpStackLocation`.
pub fn next(irp: *mut IRP) -> *mut IO_STACK_LOCATION {
    current(irp).wrapping_sub(1)
}

/// `IoMarkIrpPending`.
pub fn mark_pending(irp: *mut IRP) {
    // SAFETY: the driver owns the request, which has a stack location for the driver.
    unsafe { (*current(irp)).Control |= PENDING_RETURNED };
}

/// Returns a request's status.
pub fn status(irp: *mut IRP) -> NTSTATUS {
    // SAFETY: the caller owns the request.
    let block = unsafe { &(*irp).IoStatus };
    // SAFETY: the status is always set.
    unsafe { block.__bindgen_anon_1.Status }
}

/// Sets a request's status.
pub fn set_status(irp: *mut IRP, status: NTSTATUS) {
    // SAFETY: the caller owns the request.
    let block = unsafe { &mut (*irp).IoStatus };
    block.__bindgen_anon_1.Status = status;
}

/// Completes a request.
pub fn complete(irp: *mut IRP, status: NTSTATUS) -> NTSTATUS {
    set_status(irp, status);
    nt!(IofCompleteRequest, irp, 0);
    status
}

/// Completes a request with this number of bytes.
pub fn complete_with(irp: *mut IRP, status: NTSTATUS, information: usize) -> NTSTATUS {
    // SAFETY: the driver owns the request until it completes it.
    unsafe { (*irp).IoStatus.Information = information as u64 };
    complete(irp, status)
}

/// `IoSkipCurrentIrpStackLocation` and `IoCallDriver`.
pub fn pass(lower: *mut DEVICE_OBJECT, irp: *mut IRP) -> NTSTATUS {
    skip(irp);
    nt!(IofCallDriver, lower, irp)
}

/// `IoSkipCurrentIrpStackLocation`.
pub fn skip(irp: *mut IRP) {
    // SAFETY: the driver owns the request.
    unsafe { (*irp).CurrentLocation += 1 };
    // SAFETY: as above.
    let overlay = unsafe { &raw mut (*irp).Tail.Overlay };
    // SAFETY: the tail of a request that a driver owns is its overlay.
    let location =
        unsafe { &raw mut (*overlay).__bindgen_anon_2.__bindgen_anon_1.CurrentStackLocation };
    // SAFETY: the location was just taken from the request.
    let location = unsafe { &mut *location };
    *location = location.wrapping_add(1);
}

/// `IoCopyCurrentIrpStackLocationToNext` and `IoSetCompletionRoutine`.
pub fn copy_and_watch(irp: *mut IRP, routine: PIO_COMPLETION_ROUTINE, context: PVOID) {
    let (from, to) = (current(irp), next(irp));
    // SAFETY: the request has a location for each driver, and the two locations are distinct.
    unsafe { ptr::copy_nonoverlapping(from, to, 1) };
    // SAFETY: as above.
    let to = unsafe { &mut *to };
    to.CompletionRoutine = routine;
    to.Context = context;
    to.Control = INVOKE_ALWAYS;
}

/// Passes a request to the lower driver, and waits until it has been completed, like
/// `IoForwardIrpSynchronously`.
pub fn pass_and_wait(lower: *mut DEVICE_OBJECT, irp: *mut IRP) -> NTSTATUS {
    let mut event = KEVENT::default();
    nt!(KeInitializeEvent, &raw mut event, NOTIFICATION, 0);
    copy_and_watch(irp, Some(came_back), (&raw mut event).cast());
    let passed = nt!(IofCallDriver, lower, irp);
    if passed != STATUS_PENDING {
        return passed;
    }
    let waited = nt!(
        KeWaitForSingleObject,
        (&raw mut event).cast(),
        EXECUTIVE,
        KERNEL_MODE,
        0,
        ptr::null_mut()
    );
    debug_assert!(NT_SUCCESS(waited));
    status(irp)
}

/// Stops the completion of a request on behalf of the driver that waits for it.
unsafe extern "C" fn came_back(
    _device: *mut DEVICE_OBJECT,
    irp: *mut IRP,
    event: PVOID,
) -> NTSTATUS {
    // SAFETY: the system passes the request.
    if unsafe { (*irp).PendingReturned } != 0 {
        let _before = nt!(KeSetEvent, event.cast(), 0, 0);
    }
    STATUS_MORE_PROCESSING_REQUIRED
}
