//! Compares the framework with Microsoft's source: its behavior for objects, and the callbacks of
//! devices that fail or are stopped. `docs/reference/kmdf-objects.md` describes the behavior of the
//! source.

use crate::bench::{Bench, CLIENT, assert_says, lines};
use crate::{common, kmdf_commands as commands};
use standin_kernel::{BugCheck, Device, Driver, Kernel, KernelError};

/// The last callbacks of a device that was started.
const GONE: [&str; 2] = ["device_cleanup", "device_destroy"];

#[test]
fn objects_are_those_of_the_source() {
    let bench = Bench::new();
    bench.command(commands::FACTS);
    let mut printed = bench.news();
    let done = printed.pop().unwrap_or_default();
    assert_eq!(printed, [""; 0], "{done}");
    let facts: u32 = done.strip_prefix("done ").unwrap_or("?").parse().unwrap();
    assert!(facts > 100, "{done}");
    // The framework ignores these calls.
    let warnings = bench.kernel.warnings();
    let parts = [
        "a WDFDRIVER that only the framework may delete",
        "a WDFDEVICE that only the framework may delete",
        "a WDFOBJECT that was already deleted; the framework ignores",
        "for a timer that was deleted",
        "with Wait inside the timer's own callback",
        "inside the callback of the same work item",
        "with a WDF_PNPPOWER_EVENT_CALLBACKS whose Size is",
        "with invalid attributes (STATUS_WDF_PARENT_ASSIGNMENT_NOT_ALLOWED",
        "with 0, which is not a WDF_DEVICE_FAILED_ACTION",
        "with index 5",
    ];
    for part in parts {
        let is_there = warnings.iter().any(|warning| warning.message.contains(part));
        assert!(is_there, "{part}: {warnings:#?}");
    }
    bench.leave();
}

/// Makes the driver run the call with this name.
fn act(bench: &Bench, name: &str) -> Result<(), KernelError> {
    bench.file.device_control(commands::FACTS, name.as_bytes(), 0).map(|_| ())
}

/// Misuse, the first parameter of `WDF_VIOLATION`, and whether the second parameter is a handle.
const STOPS: &[(&str, u64, bool)] = &[
    ("recursive-lock", 2, true),
    ("null-result", 4, false),
    ("null-buffer", 4, false),
    ("null-description", 4, false),
    ("null-handle", 5, false),
    ("wrong-kind", 5, true),
    ("assign-allocated", 5, true),
    ("too-many-dereferences", 7, true),
    ("no-lock", 0xB, true),
    ("lock-of-another", 0xB, true),
];

#[test]
fn misuse_bugchecks_with_the_parameters_of_the_source() {
    for (name, code, has_handle) in STOPS {
        let BugCheck { code: stop, parameters, message, .. } =
            common::bugcheck(act(&Bench::new(), name));
        assert_eq!((stop, parameters[0]), (0x10D, *code), "{name}");
        assert_eq!(parameters[1] != 0, *has_handle, "{name}");
        if *name == "too-many-dereferences" {
            assert!(message.contains("to which the driver holds no reference"), "{message}");
        }
        // The third parameter is the address of the call, or 1 for a spin lock.
        assert_eq!(parameters[2] != 0, *code == 4 || *name == "lock-of-another", "{name}");
    }
}

#[test]
fn a_wait_lock_has_one_owner() {
    let bugcheck = common::bugcheck(act(&Bench::new(), "wait-lock-twice"));
    assert_says(&bugcheck, &["WdfWaitLockAcquire", "its caller already holds"]);
}

/// Loads the driver under a service name, and adds its device.
fn started(service: &str) -> (Kernel, Driver, Device) {
    let kernel = Kernel::new();
    let driver = kernel.load_as(&common::kmdf(), service).unwrap();
    let device = driver.add_device().unwrap();
    (kernel, driver, device)
}

/// Returns the lines that the driver prints while `body` runs.
fn printed(kernel: &Kernel, body: impl FnOnce()) -> Vec<String> {
    let before = lines(kernel).len();
    body();
    lines(kernel)[before..].to_vec()
}

#[test]
fn a_device_that_is_stopped_releases_its_hardware_and_starts_again() {
    let (kernel, driver, device) = started("kmdf");
    let file = device.open(CLIENT).unwrap();
    let news = printed(&kernel, || device.rebalance().unwrap());
    assert_eq!(
        news,
        [
            "query_stop", "io_suspend", "d0_exit_pre_interrupts", "d0_exit to 5",
            "release_hardware", "prepare_hardware", "d0_entry from 5", "d0_entry_post_interrupts",
            "io_restart",
        ]
    );
    file.close().unwrap();
    common::leave(driver, &device);
}

#[test]
fn a_driver_refuses_that_its_device_is_stopped() {
    let (kernel, driver, device) = started("fail-query-stop");
    let news = printed(&kernel, || {
        let error = device.rebalance().unwrap_err().to_string();
        assert!(error.contains("EvtDeviceQueryStop returned"), "{error}");
    });
    assert_eq!(news, ["query_stop"]);
    common::leave(driver, &device);
}

#[test]
fn a_device_stays_while_its_driver_holds_it() {
    let bench = Bench::new();
    for name in ["hold", "hold", "release"] {
        act(&bench, name).unwrap();
    }
    assert!(matches!(bench.device.rebalance(), Err(KernelError::VetoedStop(_))));
    act(&bench, "release").unwrap();
    bench.device.rebalance().unwrap();
    bench.leave();
}

#[test]
fn a_device_that_fails_to_leave_its_working_state_is_removed() {
    type Leaves = fn(&Device) -> Result<(), KernelError>;
    let ways: [(&[&str], &str, Leaves); 2] = [
        (&[], "d0_exit to 4", Device::power_cycle),
        (&["query_stop"], "d0_exit to 5", Device::rebalance),
    ];
    let end = ["release_hardware", "io_flush", "surprise_removal", "io_cleanup"];
    for (service, (query, exit, leave)) in ["fail-suspend", "fail-pre", "fail-exit"]
        .iter()
        .flat_map(|service| ways.map(|way| (service, way)))
    {
        let (kernel, driver, device) = started(service);
        let news = printed(&kernel, || assert!(leave(&device).is_err(), "{service}"));
        let left = ["io_suspend", "d0_exit_pre_interrupts", exit];
        assert_eq!(news, [query, &left, &end, &GONE].concat(), "{service}");
        common::leave(driver, &device);
    }
}
