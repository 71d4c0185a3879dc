//! Loading and unloading of the driver.

use core::ptr;

use wdk_etw::{NtStatus, UnicodeString, debug_print};
use wdk_sys::{
    DRIVER_OBJECT, NT_SUCCESS, NTSTATUS, PCUNICODE_STRING, WDF_DRIVER_CONFIG,
    WDF_NO_OBJECT_ATTRIBUTES, WDFDRIVER, call_unsafe_wdf_function_binding,
};

use crate::{device, parameters::Tag, trace};

/// The driver's entry point. The framework calls it once, at `PASSIVE_LEVEL`.
///
/// # Safety
///
/// Only the framework's entry code may call this function, with the arguments that it received from
/// the system.
// SAFETY: the framework's entry code finds the entry point by this name, and no
// other symbol has the name.
#[unsafe(export_name = "DriverEntry")]
pub unsafe extern "system" fn driver_entry(
    driver: &mut DRIVER_OBJECT,
    registry_path: PCUNICODE_STRING,
) -> NTSTATUS {
    let mut config = WDF_DRIVER_CONFIG {
        Size: size_of::<WDF_DRIVER_CONFIG>() as u32,
        EvtDriverDeviceAdd: Some(device::add),
        EvtDriverUnload: Some(unload),
        ..WDF_DRIVER_CONFIG::default()
    };
    let mut handle: WDFDRIVER = ptr::null_mut();
    // SAFETY: the driver object and the path belong to this driver, and the configuration outlives
    // the call.
    let status = unsafe {
        call_unsafe_wdf_function_binding!(
            WdfDriverCreate, driver, registry_path, WDF_NO_OBJECT_ATTRIBUTES, &raw mut config,
            &raw mut handle,
        )
    };
    if !NT_SUCCESS(status) {
        // The provider cannot be registered without its tag, which is read through the framework.
        debug_print(format_args!("etw_sample_driver: {}", NtStatus(status)));
        return status;
    }
    // SAFETY: the system passes a path that is valid until this function returns.
    let path = unsafe { &*registry_path };
    // SAFETY: a UNICODE_STRING has a buffer of its length.
    let path = unsafe { UnicodeString::from_raw_parts(path.Buffer, path.Length) };
    let tag = Tag::read(handle);
    // The driver works even if it cannot be traced.
    // SAFETY: `unload` unregisters the provider, and this function cannot fail after this.
    unsafe { trace::register(path, tag.units()) };
    trace::driver_loaded();
    status
}

/// `EvtDriverUnload`, at `PASSIVE_LEVEL`. No other code of the driver runs after it.
extern "C" fn unload(_driver: WDFDRIVER) {
    trace::driver_unloaded();
    trace::unregister();
}
