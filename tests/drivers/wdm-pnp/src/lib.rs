//! A WDM driver of a Plug and Play device: a function driver or, if its service is named `filter`,
//! a filter driver. It handles Plug and Play and power requests, and writes events.
//!
//! Tests of the stand-in kernel add, start, stop and remove its device. Other service names make it
//! break a rule; see [`variant`].

#![no_std]
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "sizes of the WDK's structures and states fit the fields that hold them"
)]

pub mod commands;
mod device;
mod irps;
mod own;
mod pnp;
mod power;
mod queue;
mod requests;
mod trace;
mod variant;

use etw_driver_support::Service;
use wdk_etw::{debug_print, emit};
use wdk_sys::{
    DEVICE_OBJECT, DRIVER_OBJECT, IRP, IRP_MJ_CLEANUP, IRP_MJ_CLOSE, IRP_MJ_CREATE,
    IRP_MJ_DEVICE_CONTROL, IRP_MJ_INTERNAL_DEVICE_CONTROL, IRP_MJ_PNP, IRP_MJ_POWER, IRP_MJ_READ,
    IRP_MJ_SYSTEM_CONTROL, IRP_MJ_WRITE, NTSTATUS, STATUS_SUCCESS,
};

etw_driver_support::entry!(driver_entry);

fn driver_entry(driver: &mut DRIVER_OBJECT, service: Service<'_>) -> NTSTATUS {
    variant::choose(service);
    // SAFETY: the system passes this driver's object, and has created its extension.
    unsafe { (*driver.DriverExtension).AddDevice = Some(device::add_device) };
    for major in [
        IRP_MJ_CREATE, IRP_MJ_CLOSE, IRP_MJ_CLEANUP, IRP_MJ_DEVICE_CONTROL,
        IRP_MJ_INTERNAL_DEVICE_CONTROL, IRP_MJ_READ, IRP_MJ_WRITE,
    ] {
        driver.MajorFunction[major as usize] = Some(requests::dispatch);
    }
    driver.MajorFunction[IRP_MJ_PNP as usize] = Some(pnp::dispatch);
    driver.MajorFunction[IRP_MJ_POWER as usize] = Some(power::dispatch);
    driver.MajorFunction[IRP_MJ_SYSTEM_CONTROL as usize] = Some(system_control);
    driver.DriverUnload = Some(unload);
    // SAFETY: `unload` unregisters the provider, and this function cannot fail after this.
    if let Err(error) = unsafe { trace::register() } {
        debug_print(format_args!("etw_wdm_pnp_driver: {error}"));
    }
    emit!(trace::loaded());
    STATUS_SUCCESS
}

/// Serves `IRP_MJ_SYSTEM_CONTROL`: the driver has no WMI data blocks.
unsafe extern "C" fn system_control(device: *mut DEVICE_OBJECT, irp: *mut IRP) -> NTSTATUS {
    irps::pass(device::extension(device).lower, irp)
}

/// `DriverUnload`. By then, all devices have been removed.
unsafe extern "C" fn unload(_driver: *mut DRIVER_OBJECT) {
    emit!(trace::unloaded());
    if let Err(error) = trace::unregister() {
        debug_print(format_args!("etw_wdm_pnp_driver: {error}"));
    }
}
