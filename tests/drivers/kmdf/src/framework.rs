//! Thin wrappers around the framework's functions.

use core::ptr;

use etw_driver_support::made;
pub use etw_driver_support::{attributes as child_of, counted, irql, utf16, wdf};
use wdk_sys::{
    NTSTATUS, PVOID, WDF_OBJECT_ATTRIBUTES, WDFDEVICE, WDFMEMORY, WDFOBJECT, WDFQUEUE, WDFREQUEST,
};

/// Returns default attributes, like `WDF_OBJECT_ATTRIBUTES_INIT`.
pub fn attributes() -> WDF_OBJECT_ATTRIBUTES {
    child_of(ptr::null_mut())
}

/// Creates a memory object with these bytes.
pub fn memory(bytes: &[u8], parent: WDFOBJECT) -> WDFMEMORY {
    let mut buffer: PVOID = ptr::null_mut();
    let mut attributes = child_of(parent);
    let (_status, memory) = made(|handle| {
        wdf!(
            WdfMemoryCreate,
            &raw mut attributes,
            wdk_sys::_POOL_TYPE::NonPagedPoolNx,
            0,
            bytes.len(),
            handle,
            &raw mut buffer
        )
    });
    // SAFETY: the framework returned a buffer of this length, which does not overlap the bytes.
    unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), buffer.cast(), bytes.len()) };
    memory
}

/// Completes a request with a status.
pub fn complete(request: WDFREQUEST, status: NTSTATUS) {
    wdf!(WdfRequestComplete, request, status);
}

/// Completes a request with 32-bit numbers as its output.
pub fn answer(request: WDFREQUEST, numbers: &[u32]) {
    let length = size_of_val(numbers);
    let (status, buffer) = made(|handle| {
        wdf!(WdfRequestRetrieveOutputBuffer, request, length, handle, ptr::null_mut())
    });
    if status != wdk_sys::STATUS_SUCCESS {
        complete(request, status);
        return;
    }
    // SAFETY: the framework returned a buffer of this length, which does not overlap the numbers.
    unsafe { ptr::copy_nonoverlapping(numbers.as_ptr().cast::<u8>(), buffer.cast(), length) };
    wdf!(WdfRequestCompleteWithInformation, request, wdk_sys::STATUS_SUCCESS, length as u64);
}

/// Completes a request with a call's status as its output.
pub fn answer_status(request: WDFREQUEST, status: NTSTATUS) {
    answer(request, &[status.cast_unsigned()]);
}

/// Returns the device of a queue.
pub fn device_of(queue: WDFQUEUE) -> WDFDEVICE {
    wdf!(WdfIoQueueGetDevice, queue)
}
