//! A typical driver before its author adds tracing: the driver of docs/your-own-driver.md.

#![no_std]

#[cfg(not(test))]
extern crate wdk_panic;

use core::ptr;

use wdk::println;
#[cfg(not(test))]
use wdk_alloc::WdkAllocator;
use wdk_sys::{
    call_unsafe_wdf_function_binding, DRIVER_OBJECT, NTSTATUS, NT_SUCCESS, PCUNICODE_STRING, ULONG,
    WDFDEVICE, WDFDEVICE_INIT, WDFDRIVER, WDF_DRIVER_CONFIG, WDF_NO_HANDLE,
    WDF_NO_OBJECT_ATTRIBUTES,
};

#[cfg(not(test))]
#[global_allocator]
static ALLOCATOR: WdkAllocator = WdkAllocator;

/// The driver's entry point.
///
/// # Safety
///
/// Only the framework's entry code may call this function.
#[export_name = "DriverEntry"]
pub unsafe extern "system" fn driver_entry(
    driver: &mut DRIVER_OBJECT,
    registry_path: PCUNICODE_STRING,
) -> NTSTATUS {
    let mut config = WDF_DRIVER_CONFIG {
        Size: core::mem::size_of::<WDF_DRIVER_CONFIG>() as ULONG,
        EvtDriverDeviceAdd: Some(add_device),
        EvtDriverUnload: Some(unload),
        ..WDF_DRIVER_CONFIG::default()
    };
    // SAFETY: the driver object and the path are this driver's, and the configuration outlives the
    // call.
    let status = unsafe {
        call_unsafe_wdf_function_binding!(
            WdfDriverCreate,
            driver,
            registry_path,
            WDF_NO_OBJECT_ATTRIBUTES,
            &mut config,
            WDF_NO_HANDLE.cast::<WDFDRIVER>(),
        )
    };
    println!("driver entry: {status:#010x}");
    status
}

extern "C" fn add_device(_driver: WDFDRIVER, mut init: *mut WDFDEVICE_INIT) -> NTSTATUS {
    let mut device: WDFDEVICE = ptr::null_mut();
    // SAFETY: the framework passed `init`, and the output parameter is a local variable.
    let status = unsafe {
        call_unsafe_wdf_function_binding!(
            WdfDeviceCreate,
            &mut init,
            WDF_NO_OBJECT_ATTRIBUTES,
            &mut device,
        )
    };
    if !NT_SUCCESS(status) {
        println!("no device: {status:#010x}");
    }
    status
}

extern "C" fn unload(_driver: WDFDRIVER) {
    println!("unload");
}
