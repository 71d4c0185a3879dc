//! A KMDF driver that uses `tracing`, and whose dependencies log through `log`.
//!
//! Clients write the bytes of Modbus frames, which the crate `modbus-core` decodes. That crate's
//! log records, the driver's spans, and its declared events are in one trace. The test
//! `standin-kernel/tests/it/facades.rs` loads the driver and reads the trace.

#![no_std]
#![allow(
    clippy::cast_possible_truncation,
    reason = "the sizes of WDK structures fit in their size fields"
)]

extern crate wdk_panic;

mod frames;
mod trace;

use core::ptr;

use wdk_alloc::WdkAllocator;
use wdk_sys::{
    DRIVER_OBJECT, GUID, NT_SUCCESS, NTSTATUS, PCUNICODE_STRING, PWDFDEVICE_INIT, ULONG,
    WDF_DRIVER_CONFIG, WDF_IO_QUEUE_CONFIG, WDF_NO_HANDLE, WDF_NO_OBJECT_ATTRIBUTES,
    WDF_OBJECT_ATTRIBUTES, WDFDEVICE, WDFDRIVER, call_unsafe_wdf_function_binding,
};

/// The class of the device's interface, which clients use to find the device.
static INTERFACE: GUID = GUID {
    Data1: 0x5e4b_6f1c,
    Data2: 0x2a1d,
    Data3: 0x4c86,
    Data4: [0x9b, 0x3e, 0x70, 0x1d, 0x55, 0xc8, 0x0a, 0x62],
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
    // SAFETY: `unload` stops tracing; this function also stops it if it fails.
    unsafe { trace::start() };
    log::info!("loading");
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
    if !NT_SUCCESS(status) {
        // The framework does not call `EvtDriverUnload` if `WdfDriverCreate` failed.
        // SAFETY: the framework calls none of the driver's callbacks.
        unsafe { trace::stop() };
    }
    status
}

/// Creates a device and its queue (`EvtDriverDeviceAdd`, at `PASSIVE_LEVEL`).
extern "C" fn add_device(_driver: WDFDRIVER, mut init: PWDFDEVICE_INIT) -> NTSTATUS {
    let span = tracing::info_span!("add device");
    let _inside = span.enter();
    let mut device: WDFDEVICE = ptr::null_mut();
    // SAFETY: the framework passed `init`, and the output parameter is a local variable.
    let status = unsafe {
        call_unsafe_wdf_function_binding!(
            WdfDeviceCreate, &raw mut init, WDF_NO_OBJECT_ATTRIBUTES, &raw mut device,
        )
    };
    if !NT_SUCCESS(status) {
        tracing::error!(status, "WdfDeviceCreate failed");
        return status;
    }
    // SAFETY: the device is live, the GUID is a constant, and there is no reference string.
    let status = unsafe {
        call_unsafe_wdf_function_binding!(
            WdfDeviceCreateDeviceInterface,
            device,
            &raw const INTERFACE,
            ptr::null(),
        )
    };
    if !NT_SUCCESS(status) {
        tracing::error!(status, "WdfDeviceCreateDeviceInterface failed");
        return status;
    }
    let status = create_queue(device);
    if !NT_SUCCESS(status) {
        tracing::error!(status, "cannot create the queue or its lock");
    }
    status
}

/// Creates the device's default queue, which presents requests one at a time at `PASSIVE_LEVEL`.
fn create_queue(device: WDFDEVICE) -> NTSTATUS {
    let status = frames::create_lock(device);
    if !NT_SUCCESS(status) {
        return status;
    }
    let mut config = WDF_IO_QUEUE_CONFIG {
        Size: size_of::<WDF_IO_QUEUE_CONFIG>() as ULONG,
        DispatchType: wdk_sys::_WDF_IO_QUEUE_DISPATCH_TYPE::WdfIoQueueDispatchSequential,
        PowerManaged: wdk_sys::_WDF_TRI_STATE::WdfUseDefault,
        DefaultQueue: 1,
        EvtIoWrite: Some(frames::write),
        ..WDF_IO_QUEUE_CONFIG::default()
    };
    let mut attributes = WDF_OBJECT_ATTRIBUTES {
        Size: size_of::<WDF_OBJECT_ATTRIBUTES>() as ULONG,
        ExecutionLevel: wdk_sys::_WDF_EXECUTION_LEVEL::WdfExecutionLevelPassive,
        SynchronizationScope:
            wdk_sys::_WDF_SYNCHRONIZATION_SCOPE::WdfSynchronizationScopeInheritFromParent,
        ..WDF_OBJECT_ATTRIBUTES::default()
    };
    // SAFETY: the device is live, and the call copies the structures.
    unsafe {
        call_unsafe_wdf_function_binding!(
            WdfIoQueueCreate,
            device,
            &raw mut config,
            &raw mut attributes,
            ptr::null_mut(),
        )
    }
}

/// Ends tracing (`EvtDriverUnload`, at `PASSIVE_LEVEL`), after which none of the driver's code runs.
extern "C" fn unload(_driver: WDFDRIVER) {
    log::info!("unloading");
    // SAFETY: all devices and their requests are gone, and every span is dropped in the callback
    // that created it.
    unsafe { trace::stop() };
}
