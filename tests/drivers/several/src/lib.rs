//! A KMDF driver with several providers: two in its own modules, and one in a library crate.
//!
//! Tests check that its image describes the events of all three.

#![no_std]
#![allow(
    clippy::cast_possible_truncation,
    reason = "sizes of the WDK's structures fit the fields that hold them"
)]

mod devices;
mod trace;

use core::fmt::Display;

use etw_driver_support::{Service, config, create_driver, made, wdf};
use wdk_etw::{debug_print, emit};
use wdk_sys::{
    DRIVER_OBJECT, NT_SUCCESS, NTSTATUS, PWDFDEVICE_INIT, WDF_DRIVER_CONFIG,
    WDF_NO_OBJECT_ATTRIBUTES, WDFDRIVER,
};

use crate::devices::provider::Arrival;

etw_driver_support::entry!(driver_entry);

fn driver_entry(driver: &mut DRIVER_OBJECT, service: Service<'_>) -> NTSTATUS {
    // SAFETY: `unload` unregisters the providers. This function also unregisters them if it fails.
    report(unsafe { trace::provider::register() });
    // SAFETY: as above.
    report(unsafe { devices::provider::register() });
    // SAFETY: as above.
    report(unsafe { etw_several_library::register() });
    let config = WDF_DRIVER_CONFIG {
        EvtDriverDeviceAdd: Some(add_device),
        EvtDriverUnload: Some(unload),
        ..config()
    };
    let status = create_driver(driver, service, config, None);
    if NT_SUCCESS(status) {
        emit!(trace::provider::loaded());
        let _right = etw_several_library::check(&[3, 1, 2, 3]);
        let _wrong = etw_several_library::check(&[9]);
    } else {
        unregister();
    }
    status
}

/// Creates a device (`EvtDriverDeviceAdd`, at `PASSIVE_LEVEL`).
extern "C" fn add_device(_driver: WDFDRIVER, mut init: PWDFDEVICE_INIT) -> NTSTATUS {
    let (status, _device) =
        made(|handle| wdf!(WdfDeviceCreate, &raw mut init, WDF_NO_OBJECT_ATTRIBUTES, handle));
    let arrival = if NT_SUCCESS(status) { Arrival::Added } else { Arrival::Failed };
    emit!(devices::provider::device_added(arrival));
    emit!(devices::provider::first_device(), once);
    status
}

/// Unregisters the providers (`EvtDriverUnload`, at `PASSIVE_LEVEL`).
extern "C" fn unload(_driver: WDFDRIVER) {
    emit!(trace::provider::unloaded());
    unregister();
}

fn unregister() {
    report(etw_several_library::unregister());
    report(devices::provider::unregister());
    report(trace::provider::unregister());
}

/// Prints an error. The driver works without tracing.
fn report<T>(result: Result<T, impl Display>) {
    if let Err(error) = result {
        debug_print(format_args!("etw_several_driver: {error}"));
    }
}
