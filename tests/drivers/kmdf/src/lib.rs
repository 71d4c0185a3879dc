//! A driver that calls the framework as its service name and device controls request, and prints
//! the callbacks that the framework calls.
//!
//! Tests of the stand-in kernel load the driver and compare the order of the callbacks with the
//! order that Microsoft documents.

#![no_std]
#![allow(
    clippy::cast_possible_truncation,
    reason = "sizes of the WDK's structures fit the fields that hold them"
)]

extern crate wdk_panic;

mod below;
mod children;
pub mod commands;
mod control;
mod describe;
mod device;
mod directed;
mod dma;
mod early;
mod framework;
mod interrupts;
mod locks;
mod lower;
mod miniport;
mod mode;
mod objects;
mod parameters;
mod queues;
mod senders;
mod starts;
mod targets;
mod together;
mod verifier;

use core::{ptr, slice};

use wdk_alloc::WdkAllocator;
use wdk_sys::{
    DRIVER_OBJECT, NT_SUCCESS, NTSTATUS, PCUNICODE_STRING, WDF_DRIVER_CONFIG,
    WDF_NO_OBJECT_ATTRIBUTES, WDFDRIVER,
};

use crate::framework::wdf;

#[global_allocator]
static ALLOCATOR: WdkAllocator = WdkAllocator;

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
// SAFETY: the framework's entry code finds the entry point by this name, and no
// other symbol has the name.
#[unsafe(export_name = "DriverEntry")]
pub unsafe extern "system" fn driver_entry(
    driver: &mut DRIVER_OBJECT,
    registry_path: PCUNICODE_STRING,
) -> NTSTATUS {
    // SAFETY: the system passes a valid path.
    let path = unsafe { &*registry_path };
    // SAFETY: the string counts its own bytes.
    let path = unsafe { slice::from_raw_parts(path.Buffer, usize::from(path.Length) / 2) };
    mode::choose(|name| is_service(path, name));
    if is_service(path, "miniport") {
        return miniport::start(driver, registry_path);
    }
    let is_control = is_service(path, "control");
    starts::select(|name| is_service(path, name));
    let mut config = WDF_DRIVER_CONFIG {
        Size: size_of::<WDF_DRIVER_CONFIG>() as u32,
        EvtDriverDeviceAdd: if is_control { None } else { Some(device::add) },
        EvtDriverUnload: Some(unload),
        DriverInitFlags: if is_control {
            wdk_sys::_WDF_DRIVER_INIT_FLAGS::WdfDriverInitNonPnpDriver.cast_unsigned()
        } else {
            0
        },
        ..WDF_DRIVER_CONFIG::default()
    };
    let mut handle: WDFDRIVER = ptr::null_mut();
    let status = wdf!(
        WdfDriverCreate,
        driver,
        registry_path,
        WDF_NO_OBJECT_ATTRIBUTES,
        &raw mut config,
        &raw mut handle,
    );
    if !NT_SUCCESS(status) {
        status
    } else if is_control {
        control::create(handle)
    } else if is_service(path, "parameters") {
        parameters::print(handle)
    } else {
        status
    }
}

/// `EvtDriverUnload`.
extern "C" fn unload(_driver: WDFDRIVER) {
    wdk::println!("unload");
}
