//! Loading and unloading of the driver.

use core::ptr;

use etw_driver_support::{Service, config, counted, create_driver, made, wdf};
use etw_probes_interface::{ASK_IN_DRIVER_ENTRY, Ask, place};
use wdk_sys::{
    DRIVER_OBJECT, KEY_READ, KEY_WRITE, NT_SUCCESS, NTSTATUS, WDF_DRIVER_CONFIG,
    WDF_NO_OBJECT_ATTRIBUTES, WDFDRIVER, WDFKEY,
};

use crate::{answers, context::utf16, device, registrations, stored, system};

/// The name, in UTF-16, of the value that makes the driver run probes in `DriverEntry`.
const VALUE: &[u16; ASK_IN_DRIVER_ENTRY.len()] = &utf16(ASK_IN_DRIVER_ENTRY);

etw_driver_support::entry!(driver_entry);

fn driver_entry(driver: &mut DRIVER_OBJECT, service: Service<'_>) -> NTSTATUS {
    let config = WDF_DRIVER_CONFIG {
        EvtDriverDeviceAdd: Some(device::add),
        EvtDriverUnload: Some(unload),
        ..config()
    };
    let mut handle: WDFDRIVER = ptr::null_mut();
    let status = create_driver(driver, service, config, Some(&mut handle));
    if !NT_SUCCESS(status) || !is_to_ask(handle) {
        return status;
    }
    stored::store(|operation| {
        let ask = Ask { operation, place: place::DRIVER_ENTRY, ..Ask::default() };
        answers::answer(&ask, &[])
    });
    status
}

/// Returns whether the service's parameters make the driver run probes in `DriverEntry`, and clears
/// the value for the next load.
fn is_to_ask(driver: WDFDRIVER) -> bool {
    let (status, key) = made(|handle| {
        wdf!(
            WdfDriverOpenParametersRegistryKey,
            driver,
            KEY_READ | KEY_WRITE,
            WDF_NO_OBJECT_ATTRIBUTES,
            handle,
        )
    });
    if !NT_SUCCESS(status) {
        return false;
    }
    let name = counted(VALUE);
    let mut value = 0;
    let status = wdf!(WdfRegistryQueryULong, key, &raw const name, &raw mut value);
    let is_set = NT_SUCCESS(status) && value != 0;
    // The driver runs the probes only if it would not run them again after a bugcheck.
    let is_cleared = is_set && {
        let status = wdf!(WdfRegistryAssignULong, key, &raw const name, 0);
        NT_SUCCESS(status) && flush(key)
    };
    wdf!(WdfRegistryClose, key);
    is_cleared
}

/// Writes a key to the disk, if the kernel provides the routine. Returns whether the write
/// succeeded.
fn flush(key: WDFKEY) -> bool {
    let Some(flush) = system::flush_key() else {
        // The stand-in kernel lacks the routine. Its registry ends with the kernel, so there is
        // nothing to write.
        return true;
    };
    let handle = wdf!(WdfRegistryWdmGetHandle, key);
    // SAFETY: the handle belongs to the open key.
    NT_SUCCESS(unsafe { flush(handle) })
}

/// `EvtDriverUnload`, at `PASSIVE_LEVEL`.
extern "C" fn unload(_driver: WDFDRIVER) {
    registrations::end_all();
}
