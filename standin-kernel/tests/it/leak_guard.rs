//! Dropping a kernel while a driver is loaded or a device exists fails the test.

use crate::common;
use std::panic::{AssertUnwindSafe, catch_unwind};

use standin_kernel::{Driver, Identity, Kernel, KernelError};

/// Returns the message of the panic of `body`, if it panics.
fn panic_of(body: impl FnOnce()) -> Option<String> {
    let payload = catch_unwind(AssertUnwindSafe(body)).err()?;
    let text = payload.downcast_ref::<String>().cloned();
    text.or_else(|| payload.downcast_ref::<&str>().map(|text| (*text).to_owned()))
}

#[test]
fn what_is_left_is_named_with_its_place() {
    let loaded = line!() + 3;
    let said = panic_of(|| {
        let kernel = Kernel::new();
        let driver = kernel.load(&common::sample()).unwrap();
        let device = driver.add_device().unwrap();
        // Other handles of the kernel still exist.
        drop(kernel);
        device.open(Identity::SYSTEM).unwrap().close().unwrap();
    });
    let file = file!();
    let device = format!("the device that was added at {file}:{}:", loaded + 1);
    let driver = format!("etw_sample_driver.sys, which was loaded at {file}:{loaded}:");
    let said = said.unwrap();
    assert!(said.contains(&device) && said.contains(&driver), "{said}");

    let said = panic_of(|| {
        let kernel = Kernel::new();
        let driver = kernel.load(&common::sample()).unwrap();
        driver.add_device().unwrap().remove().unwrap();
    });
    let said = said.unwrap();
    assert!(!said.contains("the device") && said.contains("call `Driver::unload`"));
}

#[test]
fn another_panic_is_not_hidden() {
    let said = panic_of(|| {
        let kernel = Kernel::new();
        let _driver = kernel.load(&common::sample()).unwrap();
        panic!("something else");
    });
    assert_eq!(said.as_deref(), Some("something else"));
}

#[test]
fn what_cannot_be_unloaded_any_more_is_not_left() {
    let unloaded = panic_of(|| {
        let kernel = Kernel::new();
        let driver = kernel.load(&common::sample()).unwrap();
        let device = driver.add_device().unwrap();
        device.surprise_remove().unwrap();
        driver.unload().unwrap();
    });
    assert_eq!(unloaded, None);
    let crashed = panic_of(|| {
        let kernel = Kernel::new();
        let _driver: Driver = kernel.load(&common::sample()).unwrap();
        let crash = kernel.load_as(&common::rules_driver(), "fast-fail");
        assert!(matches!(crash, Err(KernelError::BugCheck(_))));
    });
    assert_eq!(crashed, None);
    let accepted = panic_of(|| {
        let kernel = Kernel::new();
        let _driver: Driver = kernel.load(&common::sample()).unwrap();
        kernel.leave_behind();
    });
    assert_eq!(accepted, None);
    // A driver that leaks has still been unloaded.
    let leaked = panic_of(|| {
        let kernel = Kernel::new();
        let driver = kernel.load_as(&common::rules_driver(), "leaked-pool").unwrap();
        driver.unload().unwrap_err();
    });
    assert_eq!(leaked, None);
}
