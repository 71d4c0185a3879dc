//! A driver that calls the framework according to its service name and device controls, and prints
//! the framework's callbacks.
//!
//! Tests of the stand-in kernel load the driver and compare the order of the callbacks with the
//! order that Microsoft documents.

#![no_std]
#![allow(
    clippy::cast_possible_truncation,
    reason = "sizes of the WDK's structures fit the fields that hold them"
)]

mod below;
mod cases;
mod children;
pub mod commands;
mod control;
mod describe;
mod device;
mod directed;
mod dma;
mod early;
mod facts;
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

use core::ptr;

use etw_driver_support::{Service, config, create_driver};
use wdk_sys::{DRIVER_OBJECT, NT_SUCCESS, NTSTATUS, WDF_DRIVER_CONFIG, WDFDRIVER};

etw_driver_support::entry!(driver_entry);

fn driver_entry(driver: &mut DRIVER_OBJECT, service: Service<'_>) -> NTSTATUS {
    mode::choose(service);
    if service.is("miniport") {
        return miniport::start(driver, service);
    }
    let is_control = service.is("control");
    let add = if cases::select(service) { cases::add } else { device::add };
    starts::select(service);
    let config = WDF_DRIVER_CONFIG {
        EvtDriverDeviceAdd: if is_control { None } else { Some(add) },
        EvtDriverUnload: Some(unload),
        DriverInitFlags: if is_control {
            wdk_sys::_WDF_DRIVER_INIT_FLAGS::WdfDriverInitNonPnpDriver.cast_unsigned()
        } else {
            0
        },
        ..config()
    };
    let mut handle: WDFDRIVER = ptr::null_mut();
    let status = create_driver(driver, service, config, Some(&mut handle));
    if !NT_SUCCESS(status) {
        status
    } else if is_control {
        control::create(handle)
    } else if service.is("parameters") {
        parameters::print(handle)
    } else {
        status
    }
}

/// `EvtDriverUnload`.
extern "C" fn unload(_driver: WDFDRIVER) {
    wdk::println!("unload");
}
