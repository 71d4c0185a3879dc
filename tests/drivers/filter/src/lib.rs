//! A filter driver: it forwards every request to the next driver, and prints how each was completed.
//!
//! Tests check that the driver compiles without the WDK, and what it does above other devices.

#![no_std]
#![allow(
    clippy::cast_possible_truncation,
    reason = "sizes of the WDK's structures fit the fields that hold them"
)]

extern crate wdk_panic;

use core::ptr;

use wdk_alloc::WdkAllocator;
use wdk_sys::{
    _WDF_IO_QUEUE_DISPATCH_TYPE::WdfIoQueueDispatchParallel, _WDF_TRI_STATE::WdfUseDefault,
    BOOLEAN, DRIVER_OBJECT, NT_SUCCESS, NTSTATUS, PCUNICODE_STRING, PWDF_REQUEST_COMPLETION_PARAMS,
    PWDFDEVICE_INIT, WDF_DRIVER_CONFIG, WDF_IO_QUEUE_CONFIG, WDF_NO_OBJECT_ATTRIBUTES, WDFCONTEXT,
    WDFDEVICE, WDFDRIVER, WDFIOTARGET, WDFQUEUE, WDFREQUEST, call_unsafe_wdf_function_binding,
};

#[global_allocator]
static ALLOCATOR: WdkAllocator = WdkAllocator;

/// Calls a function of the framework.
macro_rules! wdf {
    ($name:ident $(, $argument:expr)* $(,)?) => {{
        // SAFETY: handles come from the framework, and out-parameters are locals of the caller.
        #[allow(clippy::macro_metavars_in_unsafe, reason = "the macro is private")]
        unsafe { call_unsafe_wdf_function_binding!($name, $($argument),*) }
    }};
}

/// Returns from the function with a status that is not a success.
macro_rules! check {
    ($status:expr) => {
        let status: NTSTATUS = $status;
        if !NT_SUCCESS(status) {
            return status;
        }
    };
}

/// The driver's entry point.
///
/// # Safety
///
/// Only the framework's entry code may call this function, with the arguments that it got from the
/// system.
// SAFETY: the framework's entry code finds the entry point by this name, and no other symbol has
// the name.
#[unsafe(export_name = "DriverEntry")]
pub unsafe extern "system" fn driver_entry(
    driver: &mut DRIVER_OBJECT,
    registry_path: PCUNICODE_STRING,
) -> NTSTATUS {
    let mut config = WDF_DRIVER_CONFIG {
        Size: size_of::<WDF_DRIVER_CONFIG>() as u32,
        EvtDriverDeviceAdd: Some(add_device),
        ..WDF_DRIVER_CONFIG::default()
    };
    wdf!(
        WdfDriverCreate,
        driver,
        registry_path,
        WDF_NO_OBJECT_ATTRIBUTES,
        &raw mut config,
        ptr::null_mut()
    )
}

/// `EvtDriverDeviceAdd`.
extern "C" fn add_device(_driver: WDFDRIVER, mut init: PWDFDEVICE_INIT) -> NTSTATUS {
    wdf!(WdfFdoInitSetFilter, init);
    let mut device: WDFDEVICE = ptr::null_mut();
    check!(wdf!(WdfDeviceCreate, &raw mut init, WDF_NO_OBJECT_ATTRIBUTES, &raw mut device));
    let mut queue = WDF_IO_QUEUE_CONFIG {
        Size: size_of::<WDF_IO_QUEUE_CONFIG>() as u32,
        DispatchType: WdfIoQueueDispatchParallel,
        PowerManaged: WdfUseDefault,
        DefaultQueue: 1,
        AllowZeroLengthRequests: 1,
        EvtIoDefault: Some(forward),
        ..WDF_IO_QUEUE_CONFIG::default()
    };
    // The framework presents at most this many requests at a time: all of them.
    queue.Settings.Parallel.NumberOfPresentedRequests = u32::MAX;
    wdf!(WdfIoQueueCreate, device, &raw mut queue, WDF_NO_OBJECT_ATTRIBUTES, ptr::null_mut())
}

/// `EvtIoDefault`: sends the request to the next driver.
extern "C" fn forward(queue: WDFQUEUE, request: WDFREQUEST) {
    let device = wdf!(WdfIoQueueGetDevice, queue);
    let target = wdf!(WdfDeviceGetIoTarget, device);
    wdf!(WdfRequestFormatRequestUsingCurrentType, request);
    wdf!(WdfRequestSetCompletionRoutine, request, Some(completed), ptr::null_mut());
    let sent: BOOLEAN = wdf!(WdfRequestSend, request, target, ptr::null_mut());
    if sent == 0 {
        let status = wdf!(WdfRequestGetStatus, request);
        wdf!(WdfRequestComplete, request, status);
    }
}

/// The completion routine of a forwarded request.
extern "C" fn completed(
    request: WDFREQUEST,
    _target: WDFIOTARGET,
    parameters: PWDF_REQUEST_COMPLETION_PARAMS,
    _context: WDFCONTEXT,
) {
    // SAFETY: the framework passes the parameters of the completed request.
    let result = unsafe { (*parameters).IoStatus };
    // SAFETY: the status is the member that completed requests have.
    let status = unsafe { result.__bindgen_anon_1.Status };
    wdk::println!("completed with 0x{status:08x}, {} bytes", result.Information);
    wdf!(WdfRequestCompleteWithInformation, request, status, result.Information);
}
