//! Device controls that query the framework, and other short device controls.

use core::ptr;

use etw_driver_support::made;
use wdk_sys::{
    GUID, PVOID, STATUS_SUCCESS, ULONG, WDF_NO_OBJECT_ATTRIBUTES, WDFDEVICE, WDFREQUEST,
};

use crate::{
    commands,
    framework::{child_of, complete, counted, utf16, wdf},
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
        commands::MULTI_STRING => use_strings(device),
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

const NAME: [u16; 7] = utf16(b"Several");
const FIRST: [u16; 5] = utf16(b"first");
const SECOND: [u16; 3] = utf16(b"two");

/// Writes a value of two strings, and reads it into a collection.
fn use_strings(device: WDFDEVICE) {
    let (opened, key) = made(|handle| {
        wdf!(
            WdfDeviceOpenRegistryKey,
            device,
            wdk_sys::PLUGPLAY_REGKEY_DEVICE,
            wdk_sys::KEY_READ | wdk_sys::KEY_SET_VALUE,
            WDF_NO_OBJECT_ATTRIBUTES,
            handle
        )
    });
    let mut attributes = child_of(device.cast());
    let (_status, strings) = made(|handle| wdf!(WdfCollectionCreate, &raw mut attributes, handle));
    for text in [counted(&FIRST), counted(&SECOND)] {
        let (_status, string) =
            made(|handle| wdf!(WdfStringCreate, &raw const text, &raw mut attributes, handle));
        let _status = wdf!(WdfCollectionAdd, strings, string.cast());
    }
    let name = counted(&NAME);
    let assigned = wdf!(WdfRegistryAssignMultiString, key, &raw const name, strings);
    let (_status, found) = made(|handle| wdf!(WdfCollectionCreate, &raw mut attributes, handle));
    let queried =
        wdf!(WdfRegistryQueryMultiString, key, &raw const name, &raw mut attributes, found);
    let count = wdf!(WdfCollectionGetCount, found);
    let mut text = wdk_sys::UNICODE_STRING::default();
    let last = wdf!(WdfCollectionGetLastItem, found);
    wdf!(WdfStringGetUnicodeString, last.cast(), &raw mut text);
    let missing = counted(&FIRST);
    let absent =
        wdf!(WdfRegistryQueryMultiString, key, &raw const missing, &raw mut attributes, found);
    wdk::println!(
        "strings {opened:x} {assigned:x} {queried:x} {count} of {} then {absent:x}",
        text.Length
    );
    wdf!(WdfRegistryClose, key);
}
