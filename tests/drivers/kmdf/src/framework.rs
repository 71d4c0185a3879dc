//! Thin wrappers around the framework's functions.

use core::ptr;

use wdk_sys::{
    NTSTATUS, PVOID, UNICODE_STRING, WDF_OBJECT_ATTRIBUTES, WDFDEVICE, WDFOBJECT, WDFQUEUE,
    WDFREQUEST,
};

/// Calls a function of the framework.
macro_rules! wdf {
    ($name:ident $(, $argument:expr)* $(,)?) => {{
        // SAFETY: handles come from the framework, and out-parameters are locals of the
        // caller. Calls that are wrong are faults that a test expects.
        #[allow(clippy::macro_metavars_in_unsafe, reason = "the macro is private")]
        unsafe { wdk_sys::call_unsafe_wdf_function_binding!($name, $($argument),*) }
    }};
}
pub(crate) use wdf;

/// Returns default attributes, like `WDF_OBJECT_ATTRIBUTES_INIT`.
pub fn attributes() -> WDF_OBJECT_ATTRIBUTES {
    WDF_OBJECT_ATTRIBUTES {
        Size: size_of::<WDF_OBJECT_ATTRIBUTES>() as u32,
        ExecutionLevel: wdk_sys::_WDF_EXECUTION_LEVEL::WdfExecutionLevelInheritFromParent,
        SynchronizationScope:
            wdk_sys::_WDF_SYNCHRONIZATION_SCOPE::WdfSynchronizationScopeInheritFromParent,
        ..WDF_OBJECT_ATTRIBUTES::default()
    }
}

/// Returns attributes for an object with a parent.
pub fn child_of(parent: WDFOBJECT) -> WDF_OBJECT_ATTRIBUTES {
    WDF_OBJECT_ATTRIBUTES { ParentObject: parent, ..attributes() }
}

/// Completes a request with a status.
pub fn complete(request: WDFREQUEST, status: NTSTATUS) {
    wdf!(WdfRequestComplete, request, status);
}

/// Completes a request with 32-bit numbers as its output.
pub fn answer(request: WDFREQUEST, numbers: &[u32]) {
    let length = size_of_val(numbers);
    let mut buffer: PVOID = ptr::null_mut();
    let status =
        wdf!(WdfRequestRetrieveOutputBuffer, request, length, &raw mut buffer, ptr::null_mut());
    if status != wdk_sys::STATUS_SUCCESS {
        complete(request, status);
        return;
    }
    // SAFETY: the framework returned a buffer of this length, which does not overlap the numbers.
    unsafe { ptr::copy_nonoverlapping(numbers.as_ptr().cast::<u8>(), buffer.cast(), length) };
    wdf!(WdfRequestCompleteWithInformation, request, wdk_sys::STATUS_SUCCESS, length as u64);
}

/// Completes a request with the status of a call as its output.
pub fn answer_status(request: WDFREQUEST, status: NTSTATUS) {
    answer(request, &[status.cast_unsigned()]);
}

/// Returns a `UNICODE_STRING` of static text.
pub const fn counted(text: &'static [u16]) -> UNICODE_STRING {
    UNICODE_STRING {
        Length: size_of_val(text) as u16,
        MaximumLength: size_of_val(text) as u16,
        Buffer: text.as_ptr().cast_mut(),
    }
}

/// Converts ASCII text to UTF-16.
pub const fn utf16<const N: usize>(text: &[u8; N]) -> [u16; N] {
    let mut units = [0; N];
    let mut at = 0;
    while at < N {
        units[at] = text[at] as u16;
        at += 1;
    }
    units
}

/// Returns the device of a queue.
pub fn device_of(queue: WDFQUEUE) -> WDFDEVICE {
    wdf!(WdfIoQueueGetDevice, queue)
}

/// Returns the current IRQL.
pub fn irql() -> u8 {
    // SAFETY: the routine can be called at any IRQL and has no arguments.
    unsafe { wdk_sys::ntddk::KeGetCurrentIrql() }
}
