//! A WDM driver of a plug-and-play device, without a framework: a function driver, or a filter driver if
//! its service is called `filter`. It handles plug-and-play and power requests and writes events.
//!
//! Tests of the stand-in kernel add, start, stop and remove its device. Other names of the service make
//! it break a rule; see [`commands`].

#![no_std]
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "sizes of the WDK's structures and states fit the fields that hold them"
)]

extern crate wdk_panic;

pub mod commands;
mod device;
mod irps;
mod pnp;
mod power;
mod requests;
mod trace;

use core::{
    slice,
    sync::atomic::{AtomicUsize, Ordering},
};

use wdk_alloc::WdkAllocator;
use wdk_etw::emit;
use wdk_sys::{
    DEVICE_OBJECT, DRIVER_OBJECT, IRP, IRP_MJ_CLEANUP, IRP_MJ_CLOSE, IRP_MJ_CREATE,
    IRP_MJ_DEVICE_CONTROL, IRP_MJ_PNP, IRP_MJ_POWER, IRP_MJ_SYSTEM_CONTROL, NTSTATUS,
    PCUNICODE_STRING, STATUS_SUCCESS,
};

use commands::{SERVICES, Variant};

#[global_allocator]
static ALLOCATOR: WdkAllocator = WdkAllocator;

/// The place of the service's name in [`SERVICES`], or a larger number.
static SERVICE: AtomicUsize = AtomicUsize::new(usize::MAX);

/// Returns what the driver does otherwise than well.
pub(crate) fn variant() -> Variant {
    let service = SERVICES.get(SERVICE.load(Ordering::Relaxed));
    service.map_or(Variant::Function, |(_, variant)| *variant)
}

/// The driver's entry point.
///
/// # Safety
///
/// Only the system may call this function, with a driver object and the path of the driver's key.
// SAFETY: the linker finds the entry point by this name, and no other symbol has the name.
#[unsafe(export_name = "DriverEntry")]
pub unsafe extern "system" fn driver_entry(
    driver: &mut DRIVER_OBJECT,
    registry_path: PCUNICODE_STRING,
) -> NTSTATUS {
    // SAFETY: the system passes the path of the driver's key.
    let path = unsafe { &*registry_path };
    // SAFETY: the string has this length.
    let path = unsafe { slice::from_raw_parts(path.Buffer, usize::from(path.Length) / 2) };
    let name = path.rsplit(|unit| *unit == u16::from(b'\\')).next();
    let is_called =
        |service: &str| name.is_some_and(|name| service.encode_utf16().eq(name.iter().copied()));
    let service = SERVICES.iter().position(|(name, _)| is_called(name));
    SERVICE.store(service.unwrap_or(usize::MAX), Ordering::Relaxed);
    // SAFETY: the system passes this driver's object, whose extension it has made.
    unsafe { (*driver.DriverExtension).AddDevice = Some(device::add_device) };
    for major in [
        IRP_MJ_CREATE,
        IRP_MJ_CLOSE,
        IRP_MJ_CLEANUP,
        IRP_MJ_DEVICE_CONTROL,
    ] {
        driver.MajorFunction[major as usize] = Some(requests::dispatch);
    }
    driver.MajorFunction[IRP_MJ_PNP as usize] = Some(pnp::dispatch);
    driver.MajorFunction[IRP_MJ_POWER as usize] = Some(power::dispatch);
    driver.MajorFunction[IRP_MJ_SYSTEM_CONTROL as usize] = Some(system_control);
    driver.DriverUnload = Some(unload);
    // The driver works without tracing.
    let _result = trace::register();
    emit!(trace::loaded());
    STATUS_SUCCESS
}

/// Serves `IRP_MJ_SYSTEM_CONTROL`: the driver has no data blocks of WMI.
unsafe extern "C" fn system_control(device: *mut DEVICE_OBJECT, irp: *mut IRP) -> NTSTATUS {
    irps::pass(device::extension(device).lower, irp)
}

/// `DriverUnload`. All devices are gone by then.
unsafe extern "C" fn unload(_driver: *mut DRIVER_OBJECT) {
    emit!(trace::unloaded());
    let _result = trace::unregister();
}
