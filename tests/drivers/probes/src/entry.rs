//! Loading and unloading of the driver.

use core::ptr;

use etw_driver_support::{Service, config};
use etw_probes_interface::{ASK_IN_DRIVER_ENTRY, Ask, place};
use wdk_sys::{
    DRIVER_OBJECT, KEY_READ, KEY_WRITE, NT_SUCCESS, NTSTATUS, UNICODE_STRING, WDF_DRIVER_CONFIG,
    WDF_NO_OBJECT_ATTRIBUTES, WDFDRIVER, WDFKEY, call_unsafe_wdf_function_binding,
};

use crate::{answers, context::utf16, device, registrations, stored, system};

/// The name of the value that makes the driver ask in `DriverEntry`, in UTF-16.
const VALUE: &[u16; ASK_IN_DRIVER_ENTRY.len()] = &utf16(ASK_IN_DRIVER_ENTRY);

etw_driver_support::entry!(driver_entry);

fn driver_entry(driver: &mut DRIVER_OBJECT, service: Service<'_>) -> NTSTATUS {
    let mut config = WDF_DRIVER_CONFIG {
        EvtDriverDeviceAdd: Some(device::add),
        EvtDriverUnload: Some(unload),
        ..config()
    };
    let mut handle: WDFDRIVER = ptr::null_mut();
    let driver: *mut DRIVER_OBJECT = driver;
    // SAFETY: the driver object and the path are those of this driver, and the configuration
    // outlives the call.
    let status = unsafe {
        call_unsafe_wdf_function_binding!(
            WdfDriverCreate,
            driver,
            service.path(),
            WDF_NO_OBJECT_ATTRIBUTES,
            &raw mut config,
            &raw mut handle,
        )
    };
    if !NT_SUCCESS(status) || !is_to_ask(handle) {
        return status;
    }
    stored::store(|operation| {
        let ask = Ask { operation, place: place::DRIVER_ENTRY, ..Ask::default() };
        answers::answer(&ask, &[])
    });
    status
}

/// Returns whether the service's parameters make the driver ask in `DriverEntry`, and sets them so
/// that it does not ask the next time.
fn is_to_ask(driver: WDFDRIVER) -> bool {
    let mut key: WDFKEY = ptr::null_mut();
    // SAFETY: the driver is live, and the out-parameter is a local.
    let status = unsafe {
        call_unsafe_wdf_function_binding!(
            WdfDriverOpenParametersRegistryKey,
            driver,
            KEY_READ | KEY_WRITE,
            WDF_NO_OBJECT_ATTRIBUTES,
            &raw mut key,
        )
    };
    if !NT_SUCCESS(status) {
        return false;
    }
    let length = size_of_val(VALUE) as u16;
    let name =
        UNICODE_STRING { Length: length, MaximumLength: length, Buffer: VALUE.as_ptr().cast_mut() };
    let mut value = 0;
    // SAFETY: the key is open, and the name and the out-parameter are locals.
    let status = unsafe {
        call_unsafe_wdf_function_binding!(
            WdfRegistryQueryULong,
            key,
            &raw const name,
            &raw mut value
        )
    };
    let is_set = NT_SUCCESS(status) && value != 0;
    // The driver asks only if it cannot ask again after a bugcheck.
    let is_cleared = is_set && {
        // SAFETY: as above.
        let status = unsafe {
            call_unsafe_wdf_function_binding!(WdfRegistryAssignULong, key, &raw const name, 0)
        };
        NT_SUCCESS(status) && flush(key)
    };
    // SAFETY: the key is open, and nothing uses it afterwards.
    unsafe { call_unsafe_wdf_function_binding!(WdfRegistryClose, key) };
    is_cleared
}

/// Writes a key to the disk, if the kernel has the routine for it. Returns whether that succeeded.
fn flush(key: WDFKEY) -> bool {
    let Some(flush) = system::flush_key() else {
        // The stand-in kernel, whose registry does not outlive it.
        return true;
    };
    // SAFETY: the key is open.
    let handle = unsafe { call_unsafe_wdf_function_binding!(WdfRegistryWdmGetHandle, key) };
    // SAFETY: the handle belongs to the open key.
    NT_SUCCESS(unsafe { flush(handle) })
}

/// `EvtDriverUnload`, at `PASSIVE_LEVEL`.
extern "C" fn unload(_driver: WDFDRIVER) {
    registrations::end_all();
}
