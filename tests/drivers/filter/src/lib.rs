//! A filter driver. It forwards every request to the next driver, and prints the status with which
//! each was completed.
//!
//! Tests check that the driver compiles without the WDK, and its behavior above other devices.

#![no_std]
#![allow(
    clippy::cast_possible_truncation,
    reason = "sizes of the WDK's structures fit the fields that hold them"
)]

use core::ptr;

use etw_driver_support::{Service, check, config, create_driver, sized, wdf};
use wdk_sys::{
    _WDF_IO_QUEUE_DISPATCH_TYPE::WdfIoQueueDispatchParallel, _WDF_TRI_STATE::WdfUseDefault,
    BOOLEAN, DRIVER_OBJECT, NTSTATUS, PWDF_REQUEST_COMPLETION_PARAMS, PWDFDEVICE_INIT,
    WDF_DRIVER_CONFIG, WDF_IO_QUEUE_CONFIG, WDF_NO_OBJECT_ATTRIBUTES, WDFCONTEXT, WDFDEVICE,
    WDFDRIVER, WDFIOTARGET, WDFQUEUE, WDFREQUEST,
};

etw_driver_support::entry!(driver_entry);

fn driver_entry(driver: &mut DRIVER_OBJECT, service: Service<'_>) -> NTSTATUS {
    let config = WDF_DRIVER_CONFIG { EvtDriverDeviceAdd: Some(add_device), ..config() };
    create_driver(driver, service, config, None)
}

/// `EvtDriverDeviceAdd`.
extern "C" fn add_device(_driver: WDFDRIVER, mut init: PWDFDEVICE_INIT) -> NTSTATUS {
    wdf!(WdfFdoInitSetFilter, init);
    let mut device: WDFDEVICE = ptr::null_mut();
    check!(wdf!(WdfDeviceCreate, &raw mut init, WDF_NO_OBJECT_ATTRIBUTES, &raw mut device));
    let mut queue = sized!(WDF_IO_QUEUE_CONFIG {
        DispatchType: WdfIoQueueDispatchParallel,
        PowerManaged: WdfUseDefault,
        DefaultQueue: 1,
        AllowZeroLengthRequests: 1,
        EvtIoDefault: Some(forward)
    });
    // The number of requests that the framework presents at a time is not limited.
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
    // SAFETY: completed requests have the member for the status.
    let status = unsafe { result.__bindgen_anon_1.Status };
    wdk::println!("completed with 0x{status:08x}, {} bytes", result.Information);
    wdf!(WdfRequestCompleteWithInformation, request, status, result.Information);
}
