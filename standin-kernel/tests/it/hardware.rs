//! Loads drivers that use routines that the stand-in kernel does not provide: the first call to
//! such a routine causes a bugcheck that names the routine and the driver's line.

use crate::common;
use standin_kernel::{DeviceConfig, Driver, Kernel, KernelError, NtStatus, Resource};

/// Adds a device. This must cause a bugcheck. Returns the bugcheck's message.
fn message_of_adding(driver: &Driver, config: DeviceConfig) -> String {
    common::bugcheck(driver.add_device_with(config)).message
}

/// Checks a message: the routine with its module, the driver's function and line, and the reason.
fn assert_names(message: &str, routine: &str, caller: &str) {
    assert!(message.starts_with(&format!("{routine} was called from tests/drivers/")), "{message}");
    assert!(message.contains(caller) && message.contains("/src/lib.rs:"), "{message}");
    assert!(message.ends_with("the stand-in kernel does not provide it"), "{message}");
}

#[test]
fn a_usb_driver_is_loaded_and_fails_where_it_creates_its_target() {
    let kernel = Kernel::new();
    let driver = kernel.load(&common::hardware("usb")).unwrap();
    assert_eq!(driver.unprovided_imports(), ["usbd.sys!USBD_ParseConfigurationDescriptorEx"]);
    // The stand-in kernel has no USB devices.
    let added = driver.add_device();
    assert!(
        matches!(added, Err(KernelError::Status { status: NtStatus::INVALID_DEVICE_REQUEST, .. })),
        "{:?}",
        added.err()
    );
    driver.unload().unwrap();
}

#[test]
fn a_call_to_an_import_that_is_not_provided_names_the_routine_and_the_line() {
    let kernel = Kernel::new();
    let driver = kernel.load(&common::hardware("interrupt")).unwrap();
    assert_eq!(
        driver.unprovided_imports(),
        [
            "HAL.dll!KeFlushWriteBuffer", "ntoskrnl.exe!MmMapIoSpaceEx",
            "ntoskrnl.exe!MmUnmapIoSpace"
        ]
    );
    let registers = Resource::Memory { start: 0xFEDC_0000, length: 0x1000 };
    let config = DeviceConfig::new().resource(registers);
    assert_names(
        &message_of_adding(&driver, config),
        "ntoskrnl.exe!MmMapIoSpaceEx",
        "etw_interrupt_driver::map_registers",
    );
}
