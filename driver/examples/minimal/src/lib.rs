//! A minimal KMDF driver with wdk-etw.

#![no_std]
#![allow(
    clippy::cast_possible_truncation,
    reason = "the sizes of WDK structures fit in their size fields"
)]

extern crate wdk_panic;

mod trace;

use core::ptr;

use wdk_alloc::WdkAllocator;
use wdk_etw::{NtStatus, UnicodeString, debug_print, emit};
use wdk_sys::{
    DRIVER_OBJECT, NT_SUCCESS, NTSTATUS, PCUNICODE_STRING, PWDFDEVICE_INIT, WDF_DRIVER_CONFIG,
    WDF_NO_HANDLE, WDF_NO_OBJECT_ATTRIBUTES, WDFDEVICE, WDFDRIVER,
    call_unsafe_wdf_function_binding,
};

#[global_allocator]
static ALLOCATOR: WdkAllocator = WdkAllocator;

/// The driver's entry point.
///
/// # Safety
///
/// Only the framework's entry code may call this function, with the arguments from the system.
// SAFETY: the framework's entry code finds the entry point by this name, and no other
// symbol has it.
#[unsafe(export_name = "DriverEntry")]
pub unsafe extern "system" fn driver_entry(
    driver: &mut DRIVER_OBJECT,
    registry_path: PCUNICODE_STRING,
) -> NTSTATUS {
    // The driver works without tracing.
    // SAFETY: `unload` unregisters the provider; this function also does so if it fails.
    if let Err(error) = unsafe { trace::register() } {
        debug_print(format_args!("etw_minimal_driver: {error}"));
    }
    let mut config = WDF_DRIVER_CONFIG {
        Size: size_of::<WDF_DRIVER_CONFIG>() as u32,
        EvtDriverDeviceAdd: Some(add_device),
        EvtDriverUnload: Some(unload),
        ..WDF_DRIVER_CONFIG::default()
    };
    // SAFETY: the driver object and the path are this driver's, and the configuration lives until
    // the call returns.
    let status = unsafe {
        call_unsafe_wdf_function_binding!(
            WdfDriverCreate,
            driver,
            registry_path,
            WDF_NO_OBJECT_ATTRIBUTES,
            &raw mut config,
            WDF_NO_HANDLE.cast::<WDFDRIVER>(),
        )
    };
    if NT_SUCCESS(status) {
        // SAFETY: the system passes a path that is valid until this function returns.
        let path = unsafe { &*registry_path };
        // SAFETY: the buffer of a UNICODE_STRING has `Length` readable bytes.
        let path = unsafe { UnicodeString::from_raw_parts(path.Buffer, path.Length) };
        emit!(trace::loaded(path));
    } else {
        // The framework does not call `EvtDriverUnload` if `WdfDriverCreate` failed.
        stop_tracing();
    }
    status
}

/// Creates a device (`EvtDriverDeviceAdd`, at `PASSIVE_LEVEL`).
extern "C" fn add_device(_driver: WDFDRIVER, mut init: PWDFDEVICE_INIT) -> NTSTATUS {
    let mut device: WDFDEVICE = ptr::null_mut();
    // SAFETY: the framework passed `init`, and the output parameter is a local variable.
    let status = unsafe {
        call_unsafe_wdf_function_binding!(
            WdfDeviceCreate, &raw mut init, WDF_NO_OBJECT_ATTRIBUTES, &raw mut device,
        )
    };
    emit!(trace::device_added(NtStatus(status)));
    status
}

/// Unregisters the provider (`EvtDriverUnload`, at `PASSIVE_LEVEL`), after which none of the
/// driver's code runs.
extern "C" fn unload(_driver: WDFDRIVER) {
    emit!(trace::unloaded());
    stop_tracing();
}

fn stop_tracing() {
    if let Err(error) = trace::unregister() {
        debug_print(format_args!("etw_minimal_driver: {error}"));
    }
}
