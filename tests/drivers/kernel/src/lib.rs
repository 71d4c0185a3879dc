//! A driver that calls the routines of ntoskrnl.exe, and checks their results.
//!
//! The service name selects the routines that it calls. It prints each check that fails, and
//! finally `done` with the number of checks; tests of the stand-in kernel load it and read its
//! output. Services whose names start with `fault-` break a rule.

#![no_std]
// The compiler knows functions of the C runtime by their names, and would not call the kernel's.
#![no_builtins]
#![allow(
    clippy::cast_lossless,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "arguments and results have the types of C"
)]
#![allow(unused_must_use, reason = "a driver can ignore a status")]

mod activities;
mod addresses;
mod apcs;
mod call;
mod crt;
mod device_files;
mod dispatcher;
mod dpc;
mod file_systems;
mod files;
mod kernel_queues;
mod lifetime;
mod mdl;
mod named_events;
mod names;
mod namespace;
mod object_security;
mod plug_and_play;
mod power_framework;
mod power_settings;
mod registry;
mod resources;
mod routines;
mod run_once;
mod security;
mod spin_locks;
mod strings;
mod system;
mod tables;
mod threads;
mod timers;
mod variables;
mod violations;
mod watchers;
mod windows_behavior;
mod wmi;

use etw_driver_support::{Service, config, create_driver};
use wdk_sys::{DRIVER_OBJECT, NTSTATUS, WDF_DRIVER_CONFIG, WDFDRIVER};

/// The driver's action for each service name.
const SERVICES: &[(&str, fn())] = &[
    ("text", strings::run),
    ("strings", strings::strings),
    ("objects", dispatcher::run),
    ("threads", threads::run),
    ("together", threads::together),
    ("queues", timers::run),
    ("truths", windows_behavior::run),
    ("locks", spin_locks::run),
    ("system", system::run),
    ("memory", mdl::run),
    ("files", files::run),
    ("device-files", device_files::run),
    ("variables", variables::variables),
    ("recorder", variables::recorder),
    ("addresses", addresses::run),
    ("shared", kernel_queues::run),
    ("lifetime", lifetime::run),
    ("serve", lifetime::serve),
    ("watchers", watchers::run),
    ("watch", watchers::watch),
    ("security", security::run),
    ("object-security", object_security::run),
    ("resources", resources::run),
    ("tables", tables::run),
    ("characters", crt::run),
    ("registry", registry::keys::run),
    ("registry-callbacks", registry::callbacks::run),
    ("registry-callbacks-nest", registry::callbacks::nest),
    ("registry-callbacks-refer", registry::callbacks::refer),
    ("registry-callbacks-driver", registry::callbacks::open_of_driver),
    ("registry-callbacks-fail", registry::callbacks::fail),
    ("registry-callbacks-provide", registry::callbacks::provide),
    ("registry-callbacks-wait", registry::callbacks::wait_for_callback),
    ("registry-relative", registry::relative::relative),
    ("registry-table", registry::query_table::table),
    ("named-events", named_events::run),
    ("activities", activities::run),
    ("wmi", wmi::run),
    ("power-settings", power_settings::run),
    ("power-framework", power_framework::run),
    ("once", run_once::run),
    ("apcs", apcs::run),
    ("namespace", namespace::run),
    ("images", run_once::images),
    ("attach", run_once::attach),
    ("no-memory", run_once::no_memory),
];

/// The service that adds devices.
const DEVICES: &str = "devices";

/// The service that adds devices with components that idle.
const COMPONENTS: &str = "components";

etw_driver_support::entry!(driver_entry);

fn driver_entry(driver: &mut DRIVER_OBJECT, service: Service<'_>) -> NTSTATUS {
    call::note_driver(driver);
    let mut config = WDF_DRIVER_CONFIG {
        EvtDriverUnload: Some(unload),
        DriverInitFlags: wdk_sys::_WDF_DRIVER_INIT_FLAGS::WdfDriverInitNonPnpDriver.cast_unsigned(),
        ..config()
    };
    registry::keys::note_path(service.path());
    if service.is(DEVICES) {
        config.EvtDriverDeviceAdd = Some(plug_and_play::add);
        config.DriverInitFlags = 0;
    }
    if service.is(COMPONENTS) {
        config.EvtDriverDeviceAdd = Some(power_framework::add);
        config.DriverInitFlags = 0;
    }
    let status = create_driver(driver, service, config, None);
    if status != wdk_sys::STATUS_SUCCESS {
        return status;
    }
    let faults = [dpc::FAULTS, run_once::FAULTS, apcs::FAULTS];
    let mut tables = [SERVICES, dpc::SERVICES, violations::SERVICES].into_iter().chain(faults);
    if let Some(run) = tables.find_map(|table| service.find(table)) {
        run();
        wdk::println!("done {}", call::checks());
    }
    status
}

/// `EvtDriverUnload`.
extern "C" fn unload(_driver: WDFDRIVER) {
    threads::stop();
    lifetime::stop();
    watchers::stop();
    power_settings::stop();
}
