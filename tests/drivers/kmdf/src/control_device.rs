//! A control device: the driver creates it itself, without hardware.

use etw_driver_support::{check, made};
use wdk_sys::{
    NT_SUCCESS, NTSTATUS, STATUS_INSUFFICIENT_RESOURCES, WDF_NO_OBJECT_ATTRIBUTES, WDFDRIVER,
};

use crate::{
    device::configure_files,
    framework::{counted, utf16, wdf},
    queues,
};

const SDDL: [u16; 15] = utf16(b"D:P(A;;GA;;;SY)");
const NAME: [u16; 19] = utf16(br"\Device\KmdfControl");
const LINK: [u16; 23] = utf16(br"\DosDevices\KmdfControl");

/// Creates the device.
pub fn create(driver: WDFDRIVER) -> NTSTATUS {
    let sddl = counted(&SDDL);
    let mut init = wdf!(WdfControlDeviceInitAllocate, driver, &raw const sddl);
    if init.is_null() {
        return STATUS_INSUFFICIENT_RESOURCES;
    }
    let name = counted(&NAME);
    let status = wdf!(WdfDeviceInitAssignName, init, &raw const name);
    if !NT_SUCCESS(status) {
        wdf!(WdfDeviceInitFree, init);
        return status;
    }
    configure_files(init);
    let (status, device) =
        made(|handle| wdf!(WdfDeviceCreate, &raw mut init, WDF_NO_OBJECT_ATTRIBUTES, handle));
    if !NT_SUCCESS(status) {
        wdf!(WdfDeviceInitFree, init);
        return status;
    }
    let link = counted(&LINK);
    check!(wdf!(WdfDeviceCreateSymbolicLink, device, &raw const link));
    let status = queues::create(device);
    if NT_SUCCESS(status) {
        wdf!(WdfControlFinishInitializing, device);
    }
    status
}
