//! Device controls that query the framework, and other short device controls.

use core::ptr;

use wdk_sys::{GUID, PVOID, STATUS_SUCCESS, ULONG, WDFDEVICE, WDFREQUEST};

use crate::{
    commands,
    framework::{complete, wdf},
    interrupt, mode,
};

/// Runs a command of this module. Returns false if the command belongs to another module.
pub fn device_control(device: WDFDEVICE, request: WDFREQUEST, code: ULONG) -> bool {
    match code {
        commands::QUERIES => {
            query(device);
            print_file(device, request);
        }
        commands::BUGCHECK => {
            wdf!(WdfVerifierKeBugCheck, 0xE2, 1, 2, 3, 4);
        }
        commands::RESOURCE_LISTS => {
            interrupt::change_resources();
            let special = wdk_sys::_WDF_SPECIAL_FILE_TYPE::WdfSpecialFilePaging;
            wdf!(WdfDeviceSetSpecialFileSupport, device, special, 1);
            let woken = wdf!(WdfDeviceIndicateWakeStatus, device, STATUS_SUCCESS);
            let pending = wdf!(WdfDeviceIndicateWakeStatus, device, wdk_sys::STATUS_PENDING);
            wdk::println!("wake {woken:x} {pending:x}");
        }
        commands::VETO => mode::refuse_removal(),
        _ => return false,
    }
    complete(request, STATUS_SUCCESS);
    true
}

fn query(device: WDFDEVICE) {
    let guid = GUID::default();
    let mut buffer = 0_u32;
    let status = wdf!(
        WdfObjectQuery,
        device.cast(),
        &raw const guid,
        4,
        (&raw mut buffer).cast::<core::ffi::c_void>() as PVOID
    );
    let info = wdf!(WdfGetTriageInfo).cast::<[u32; 2]>();
    // SAFETY: the information starts with the framework's version.
    let [major, minor] = unsafe { *info };
    let traced = wdf!(WdfDriverRegisterTraceInfo, ptr::null_mut(), None, ptr::null_mut());
    wdk::println!("query {status:x} version {major}.{minor} trace {traced:x}");
}

fn print_file(device: WDFDEVICE, request: WDFREQUEST) {
    let file = wdf!(WdfRequestGetFileObject, request);
    let flags = wdf!(WdfFileObjectGetFlags, file);
    let object = wdf!(WdfFileObjectWdmGetFileObject, file);
    let same = wdf!(WdfDeviceGetFileObject, device, object) == file;
    let other = wdf!(WdfDeviceGetFileObject, device, ptr::null_mut()).is_null();
    let process = wdf!(WdfFileObjectGetInitiatorProcessId, file);
    // SAFETY: the framework returns the file's object, which exists as long as the file.
    let object = unsafe { &*object };
    let own = wdf!(WdfDeviceWdmGetDeviceObject, device);
    wdk::println!(
        "file {flags:x} type {} {} {same} {other} of {process}",
        object.Type,
        object.DeviceObject == own
    );
    let sender = wdf!(WdfRequestGetRequestorProcessId, request);
    let is_reserved = wdf!(WdfRequestIsReserved, request);
    wdk::println!("request of {sender}, {is_reserved}");
}
