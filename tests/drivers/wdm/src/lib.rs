//! A WDM driver. It creates its device, serves requests, and writes events.
//!
//! Tests of the stand-in kernel open its device, read from it, write to it and send it device
//! controls.

#![no_std]
#![allow(
    clippy::cast_possible_truncation,
    reason = "sizes of the WDK's structures fit the fields that hold them"
)]

mod access;
pub mod commands;
mod irps;
mod locations;
mod names;
mod own;
mod requests;
mod strings;
mod trace;

use core::ptr;

use etw_driver_support::{Service, check, counted, nt, utf16};
use strings::{LINK, NAME};
use wdk_etw::{debug_print, emit};
use wdk_sys::{
    DEVICE_OBJECT, DO_BUFFERED_IO, DRIVER_OBJECT, FILE_DEVICE_UNKNOWN, IRP_MJ_CLEANUP,
    IRP_MJ_CLOSE, IRP_MJ_CREATE, IRP_MJ_DEVICE_CONTROL, IRP_MJ_READ, IRP_MJ_WRITE, NT_SUCCESS,
    NTSTATUS, STATUS_SUCCESS,
};

/// The end of the service path for which the driver stays loaded until the system shuts down.
static RESIDENT: [u16; 9] = utf16(br"\resident");

etw_driver_support::entry!(driver_entry);

fn driver_entry(driver: &mut DRIVER_OBJECT, service: Service<'_>) -> NTSTATUS {
    if service.units().ends_with(&RESIDENT) {
        return STATUS_SUCCESS;
    }
    let (mut name, mut link) = (counted(&NAME), counted(&LINK));
    let mut device: *mut DEVICE_OBJECT = ptr::null_mut();
    check!(nt!(
        IoCreateDevice,
        driver,
        size_of::<requests::State>() as u32,
        &raw mut name,
        FILE_DEVICE_UNKNOWN,
        0,
        0,
        &raw mut device,
    ));
    let status = nt!(IoCreateSymbolicLink, &raw mut link, &raw mut name);
    if !NT_SUCCESS(status) {
        nt!(IoDeleteDevice, device);
        return status;
    }
    // SAFETY: the device was created above.
    unsafe { (*device).Flags |= DO_BUFFERED_IO };
    for major in [
        IRP_MJ_CREATE, IRP_MJ_CLOSE, IRP_MJ_CLEANUP, IRP_MJ_READ, IRP_MJ_WRITE,
        IRP_MJ_DEVICE_CONTROL,
    ] {
        driver.MajorFunction[major as usize] = Some(requests::dispatch);
    }
    driver.DriverUnload = Some(unload);
    // SAFETY: `unload` unregisters the provider, and this function cannot fail after this.
    if let Err(error) = unsafe { trace::register() } {
        debug_print(format_args!("etw_wdm_driver: {error}"));
    }
    emit!(trace::loaded());
    STATUS_SUCCESS
}

/// `DriverUnload`.
unsafe extern "C" fn unload(driver: *mut DRIVER_OBJECT) {
    emit!(trace::unloaded());
    if let Err(error) = trace::unregister() {
        debug_print(format_args!("etw_wdm_driver: {error}"));
    }
    let mut link = counted(&LINK);
    let _status = nt!(IoDeleteSymbolicLink, &raw mut link);
    // SAFETY: the system passes this driver's object.
    let device = unsafe { (*driver).DeviceObject };
    nt!(IoDeleteDevice, device);
}
