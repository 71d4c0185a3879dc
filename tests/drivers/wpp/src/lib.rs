//! A driver that traces by WPP, without WPP: code that does what WPP generates for a C driver.
//!
//! The service name selects how it registers and what it does. Opening its device writes messages.

#![no_std]
#![allow(
    clippy::cast_possible_truncation,
    reason = "sizes of structures and the parts of handles fit the fields that hold them"
)]
#![allow(
    clippy::missing_const_for_fn,
    reason = "the functions must run in the driver, not in the compiler"
)]

extern crate wdk_panic;

mod control;
mod faults;
mod messages;
mod query;

use core::{
    ptr, slice,
    sync::atomic::{AtomicU32, Ordering},
};

use wdk_alloc::WdkAllocator;
use wdk_sys::{
    DRIVER_OBJECT, NT_SUCCESS, NTSTATUS, PCUNICODE_STRING, PWDFDEVICE_INIT, STATUS_SUCCESS,
    UNICODE_STRING, WDF_DRIVER_CONFIG, WDF_FILEOBJECT_CONFIG, WDF_NO_OBJECT_ATTRIBUTES, WDFDEVICE,
    WDFDRIVER, WDFFILEOBJECT, WDFREQUEST, call_unsafe_wdf_function_binding,
};

use crate::control::Way;

#[global_allocator]
static ALLOCATOR: WdkAllocator = WdkAllocator;

/// The name by which programs open the device.
static LINK: [u16; 19] = query::utf16(br"\DosDevices\WppTest");

/// What the driver does at its unload: 0 nothing, 1 and 2 end the registration of their way.
static AT_UNLOAD: AtomicU32 = AtomicU32::new(0);

/// Returns true if the registry path ends with this service name.
fn is_service(path: &[u16], name: &str) -> bool {
    let mut units = path.iter().rev();
    name.bytes().rev().all(|byte| units.next() == Some(&u16::from(byte)))
        && units.next() == Some(&u16::from(b'\\'))
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
    // SAFETY: the system passes a valid path.
    let path = unsafe { &*registry_path };
    // SAFETY: the string counts its own bytes.
    let path = unsafe { slice::from_raw_parts(path.Buffer, usize::from(path.Length) / 2) };
    let mut config = WDF_DRIVER_CONFIG {
        Size: size_of::<WDF_DRIVER_CONFIG>() as u32,
        EvtDriverDeviceAdd: Some(add_device),
        EvtDriverUnload: Some(unload),
        ..WDF_DRIVER_CONFIG::default()
    };
    // SAFETY: the driver object and the path are those of this driver.
    let status = unsafe {
        call_unsafe_wdf_function_binding!(
            WdfDriverCreate,
            driver,
            registry_path,
            WDF_NO_OBJECT_ATTRIBUTES,
            &raw mut config,
            ptr::null_mut(),
        )
    };
    if !NT_SUCCESS(status) {
        return status;
    }
    messages::find();
    let of_wmi = is_service(path, "wmi") || is_service(path, "wmi-forgotten");
    let way = if of_wmi { Way::Wmi } else { Way::Classic };
    control::register(way);
    let forgets = is_service(path, "classic-forgotten") || is_service(path, "wmi-forgotten");
    if !forgets {
        AT_UNLOAD.store(if of_wmi { 2 } else { 1 }, Ordering::Relaxed);
    }
    faults::run(|name| is_service(path, name));
    STATUS_SUCCESS
}

/// `EvtDriverDeviceAdd`.
extern "C" fn add_device(_driver: WDFDRIVER, mut init: PWDFDEVICE_INIT) -> NTSTATUS {
    let mut files = WDF_FILEOBJECT_CONFIG {
        Size: size_of::<WDF_FILEOBJECT_CONFIG>() as u32,
        EvtDeviceFileCreate: Some(file_create),
        AutoForwardCleanupClose: wdk_sys::_WDF_TRI_STATE::WdfUseDefault,
        FileObjectClass: wdk_sys::_WDF_FILEOBJECT_CLASS::WdfFileObjectWdfCannotUseFsContexts,
        ..WDF_FILEOBJECT_CONFIG::default()
    };
    // SAFETY: the framework passes a valid structure, and the configuration is a local.
    unsafe {
        call_unsafe_wdf_function_binding!(
            WdfDeviceInitSetFileObjectConfig,
            init,
            &raw mut files,
            WDF_NO_OBJECT_ATTRIBUTES
        );
    }
    let mut device: WDFDEVICE = ptr::null_mut();
    // SAFETY: the structure is the framework's, and the out-parameter is a local.
    let status = unsafe {
        call_unsafe_wdf_function_binding!(
            WdfDeviceCreate,
            &raw mut init,
            WDF_NO_OBJECT_ATTRIBUTES,
            &raw mut device
        )
    };
    if !NT_SUCCESS(status) {
        return status;
    }
    let bytes = size_of_val(&LINK) as u16;
    let link =
        UNICODE_STRING { Length: bytes, MaximumLength: bytes, Buffer: LINK.as_ptr().cast_mut() };
    // SAFETY: the device was created above, and the name is static.
    unsafe {
        call_unsafe_wdf_function_binding!(WdfDeviceCreateSymbolicLink, device, &raw const link)
    }
}

/// `EvtDeviceFileCreate`: writes the messages at two IRQLs.
extern "C" fn file_create(_device: WDFDEVICE, request: WDFREQUEST, _file: WDFFILEOBJECT) {
    messages::of_opening(0);
    faults::at_high_level(messages::of_opening);
    // SAFETY: the request is the one that the framework passed, and is completed once.
    unsafe { call_unsafe_wdf_function_binding!(WdfRequestComplete, request, STATUS_SUCCESS) };
}

/// `EvtDriverUnload`.
extern "C" fn unload(_driver: WDFDRIVER) {
    match AT_UNLOAD.load(Ordering::Relaxed) {
        1 => control::unregister(Way::Classic),
        2 => control::unregister(Way::Wmi),
        _ => {}
    }
}
