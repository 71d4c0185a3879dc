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

mod bus;
mod cases;
pub mod commands;
mod concurrency;
mod control_device;
mod device;
mod device_queries;
mod dma;
mod facts;
mod failing_starts;
mod framework;
mod interrupt;
mod io_target;
mod miniport;
mod mode;
mod objects;
mod parameters;
mod preprocessing;
mod presentation;
mod queues;
mod verifier;
mod wdm;
mod wdm_dispatch;
mod wdm_objects;
mod wdm_request;

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
    failing_starts::select(service);
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
        control_device::create(handle)
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
