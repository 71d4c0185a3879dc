//! A driver that traces like WPP, with code like the code that WPP generates for a C driver.
//!
//! The service name selects its kind of registration and its actions. Opening its device writes
//! messages.

#![no_std]
#![allow(
    clippy::cast_possible_truncation,
    reason = "sizes of structures and the parts of handles fit the fields that hold them"
)]
#![allow(
    clippy::missing_const_for_fn,
    reason = "the functions must run in the driver, not in the compiler"
)]

mod control;
mod faults;
mod messages;
mod query;

use core::{
    ptr,
    sync::atomic::{AtomicU32, Ordering},
};

use etw_driver_support::{Service, check, config, counted, create_driver, sized, utf16, wdf};
use wdk_sys::{
    DRIVER_OBJECT, NTSTATUS, PWDFDEVICE_INIT, STATUS_SUCCESS, WDF_DRIVER_CONFIG,
    WDF_FILEOBJECT_CONFIG, WDF_NO_OBJECT_ATTRIBUTES, WDFDEVICE, WDFDRIVER, WDFFILEOBJECT,
    WDFREQUEST,
};

use crate::control::Way;

/// The name with which programs open the device.
static LINK: [u16; 19] = utf16(br"\DosDevices\WppTest");

/// The driver's action at unload: 0 means none, and 1 and 2 end the registration of their kind.
static AT_UNLOAD: AtomicU32 = AtomicU32::new(0);

etw_driver_support::entry!(driver_entry);

fn driver_entry(driver: &mut DRIVER_OBJECT, service: Service<'_>) -> NTSTATUS {
    let config = WDF_DRIVER_CONFIG {
        EvtDriverDeviceAdd: Some(add_device),
        EvtDriverUnload: Some(unload),
        ..config()
    };
    check!(create_driver(driver, service, config, None));
    messages::find();
    let of_wmi = service.is("wmi") || service.is("wmi-forgotten");
    let way = if of_wmi { Way::Wmi } else { Way::Classic };
    control::register(way);
    let forgets = service.is("classic-forgotten") || service.is("wmi-forgotten");
    if !forgets {
        AT_UNLOAD.store(if of_wmi { 2 } else { 1 }, Ordering::Relaxed);
    }
    faults::run(service);
    STATUS_SUCCESS
}

/// `EvtDriverDeviceAdd`.
extern "C" fn add_device(_driver: WDFDRIVER, mut init: PWDFDEVICE_INIT) -> NTSTATUS {
    let mut files = sized!(WDF_FILEOBJECT_CONFIG {
        EvtDeviceFileCreate: Some(file_create),
        AutoForwardCleanupClose: wdk_sys::_WDF_TRI_STATE::WdfUseDefault,
        FileObjectClass: wdk_sys::_WDF_FILEOBJECT_CLASS::WdfFileObjectWdfCannotUseFsContexts
    });
    wdf!(WdfDeviceInitSetFileObjectConfig, init, &raw mut files, WDF_NO_OBJECT_ATTRIBUTES);
    let mut device: WDFDEVICE = ptr::null_mut();
    check!(wdf!(WdfDeviceCreate, &raw mut init, WDF_NO_OBJECT_ATTRIBUTES, &raw mut device));
    let link = counted(&LINK);
    wdf!(WdfDeviceCreateSymbolicLink, device, &raw const link)
}

/// `EvtDeviceFileCreate`: writes the messages at two IRQLs.
extern "C" fn file_create(_device: WDFDEVICE, request: WDFREQUEST, _file: WDFFILEOBJECT) {
    messages::of_opening(0);
    faults::at_high_level(messages::of_opening);
    wdf!(WdfRequestComplete, request, STATUS_SUCCESS);
}

/// `EvtDriverUnload`.
extern "C" fn unload(_driver: WDFDRIVER) {
    match AT_UNLOAD.load(Ordering::Relaxed) {
        1 => control::unregister(Way::Classic),
        2 => control::unregister(Way::Wmi),
        _ => {}
    }
}
