//! Descriptions of devices, device interfaces, symbolic links, and settings.

use core::ptr;

use etw_driver_support::{guid, made, sized};
use wdk_sys::{
    GUID, NTSTATUS, PWDFDEVICE_INIT, STATUS_INVALID_DEVICE_REQUEST, STATUS_INVALID_DEVICE_STATE,
    STATUS_INVALID_SECURITY_DESCR, STATUS_OBJECT_NAME_NOT_FOUND, STATUS_SUCCESS, UNICODE_STRING,
    WDF_DEVICE_PROPERTY_DATA, WDF_NO_OBJECT_ATTRIBUTES, WDF_OBJECT_ATTRIBUTES,
    WDF_PNPPOWER_EVENT_CALLBACKS, WDFDEVICE, WDFOBJECT, WDFSTRING,
};

use super::common::{
    INVALID_PARAMETER, STATUS_WDF_PARENT_ASSIGNMENT_NOT_ALLOWED, letters, log, logged, same,
};
use crate::framework::{attributes, child_of, counted, utf16, wdf};

const NONE: *mut WDF_OBJECT_ATTRIBUTES = WDF_NO_OBJECT_ATTRIBUTES;
const SDDL: [u16; 15] = utf16(b"D:P(A;;GA;;;SY)");
const WRONG: [u16; 5] = utf16(b"wrong");
const LINK: [u16; 18] = utf16(br"\DosDevices\Facts2");
const REFERENCE: [u16; 5] = utf16(b"facts");
const CHILD: [u16; 10] = utf16(br"KMDF\Facts");
const OTHER_CASE: [u16; 5] = utf16(b"Facts");
static CLASS: GUID = guid(0x5f8a_2f0e, 1, 2, [3; 8]);

/// Describes a control device. Its name is generated unless the driver changes that.
fn describe(device: WDFDEVICE, sddl: &'static [u16]) -> PWDFDEVICE_INIT {
    let sddl = counted(sddl);
    let driver = wdf!(WdfDeviceGetDriver, device);
    wdf!(WdfControlDeviceInitAllocate, driver, &raw const sddl)
}

fn create(
    init: &mut PWDFDEVICE_INIT,
    attributes: *mut WDF_OBJECT_ATTRIBUTES,
) -> (NTSTATUS, WDFDEVICE) {
    made(|handle| wdf!(WdfDeviceCreate, init, attributes, handle))
}

pub fn check(device: WDFDEVICE) {
    check_descriptions(device);
    check_names(device);
    wdf!(WdfDeviceSetFailed, device, 0);
    let (_, string) = made(|handle| wdf!(WdfStringCreate, ptr::null(), NONE, handle));
    let name = wdf!(WdfDeviceRetrieveDeviceName, device, string);
    same!("name-missing", name, INVALID_PARAMETER);
    check_interfaces(device, string);
    wdf!(WdfObjectDelete, string.cast());
    check_children(device);
}

/// Creates two static children, and adds the second one.
fn check_children(device: WDFDEVICE) {
    logged();
    let child = || {
        let mut init = wdf!(WdfPdoInitAllocate, device);
        let id = counted(&CHILD);
        let _status = wdf!(WdfPdoInitAssignDeviceID, init, &raw const id);
        let mut own = attributes();
        own.EvtCleanupCallback = Some(cleaned_up);
        create(&mut init, &raw mut own).1
    };
    let first = child();
    wdf!(WdfObjectDelete, first.cast());
    same!("static-child", (first.is_null(), logged()), (false, letters(b"c")));
    let second = child();
    let status = wdf!(WdfFdoAddStaticChild, device, second);
    wdf!(WdfObjectDelete, second.cast());
    same!("static-child-added", (status, logged()), (STATUS_SUCCESS, 0));
}

extern "C" fn cleaned_up(_: WDFOBJECT) {
    log(b'c');
}

fn check_descriptions(device: WDFDEVICE) {
    let mut init = describe(device, &SDDL);
    let status = wdf!(WdfDeviceInitAssignSDDLString, init, ptr::null());
    same!("control-without-sddl", status, STATUS_INVALID_DEVICE_REQUEST);
    let odd = UNICODE_STRING { Length: 7, ..counted(&SDDL) };
    let status = wdf!(WdfDeviceInitAssignName, init, &raw const odd);
    same!("device-name-odd", status, INVALID_PARAMETER);
    let status = create(&mut init, &mut child_of(device.cast())).0;
    same!("device-parent", status, STATUS_WDF_PARENT_ASSIGNMENT_NOT_ALLOWED);
    let mut callbacks = sized!(WDF_PNPPOWER_EVENT_CALLBACKS {});
    callbacks.Size -= 1;
    wdf!(WdfDeviceInitSetPnpPowerEventCallbacks, init, &raw mut callbacks);
    wdf!(WdfDeviceInitSetRequestAttributes, init, &mut child_of(device.cast()));
    let (status, made) = create(&mut init, NONE);
    same!("wrong-callbacks-ignored", (status, init), (STATUS_SUCCESS, ptr::null_mut()));
    let link = counted(&LINK);
    let status = wdf!(WdfDeviceCreateSymbolicLink, made, &raw const link);
    same!("link-without-name", status, STATUS_INVALID_DEVICE_STATE);
    same!("characteristics", wdf!(WdfDeviceGetCharacteristics, made), 0x180);
    let status = wdf!(WdfDeviceCreateDeviceInterface, made, &raw const CLASS, ptr::null());
    same!("interface-of-control", status, STATUS_INVALID_DEVICE_REQUEST);
    check_keyed_properties(device, made);
    wdf!(WdfObjectDelete, made.cast());
    let mut init = describe(device, &WRONG);
    same!("sddl-wrong", create(&mut init, NONE).0, INVALID_PARAMETER);
    wdf!(WdfDeviceInitFree, init);
    let mut init = describe(device, &SDDL);
    wdf!(WdfDeviceInitSetCharacteristics, init, 0, 0);
    same!("sddl-without-name", create(&mut init, NONE).0, STATUS_INVALID_SECURITY_DESCR);
    wdf!(WdfDeviceInitFree, init);
}

/// Checks the properties by key of the device and of a control device.
fn check_keyed_properties(device: WDFDEVICE, control: WDFDEVICE) {
    let key = wdk_sys::DEVPROPKEY { fmtid: guid(9, 0, 0, [0; 8]), pid: 2 };
    let mut property = sized!(WDF_DEVICE_PROPERTY_DATA { PropertyKey: &raw const key });
    let mut assign = |device, length: u32| {
        let mut value = 5_u32;
        let data = (&raw mut value).cast();
        wdf!(WdfDeviceAssignProperty, device, &raw mut property, 7, length, data)
    };
    same!("property-set-on-control", assign(control, 4), STATUS_INVALID_DEVICE_STATE);
    same!("property-without-length", assign(device, 0), INVALID_PARAMETER);
    same!("property-of-control-without-length", assign(control, 0), INVALID_PARAMETER);
    let query = |device, length: u32, size: u32| {
        let mut property = WDF_DEVICE_PROPERTY_DATA { Size: size, ..property };
        let (mut needed, mut kind, mut value) = (1_u32, 1_u32, 0_u32);
        let (data, needed_at) = ((&raw mut value).cast(), &raw mut needed);
        let kind_at = &raw mut kind;
        let at = &raw mut property;
        let status = wdf!(WdfDeviceQueryPropertyEx, device, at, length, data, needed_at, kind_at);
        (status, needed, kind)
    };
    let size = property.Size;
    let (state, missing) = (STATUS_INVALID_DEVICE_STATE, STATUS_OBJECT_NAME_NOT_FOUND);
    same!("property-of-control", query(control, 4, size), (state, 0, 0));
    same!("property-missing", query(device, 4, size), (missing, 0, 0));
    let mismatch = wdk_sys::STATUS_INFO_LENGTH_MISMATCH;
    same!("property-wrong-size", query(control, 0, 8), (mismatch, 1, 1));
}

fn check_names(device: WDFDEVICE) {
    let link = counted(&LINK);
    let second = wdf!(WdfDeviceCreateSymbolicLink, device, &raw const link);
    same!("link-twice", second, STATUS_INVALID_DEVICE_REQUEST);
    let empty = UNICODE_STRING { Length: 0, ..link };
    let status = wdf!(WdfDeviceCreateSymbolicLink, device, &raw const empty);
    same!("link-empty", status, STATUS_INVALID_DEVICE_REQUEST);
}

fn check_interfaces(device: WDFDEVICE, string: WDFSTRING) {
    let odd = UNICODE_STRING { Length: 3, ..counted(&REFERENCE) };
    let status = wdf!(WdfDeviceCreateDeviceInterface, device, &raw const CLASS, &raw const odd);
    same!("interface-reference-odd", status, INVALID_PARAMETER);
    let reference = counted(&REFERENCE);
    let find = |reference: *const UNICODE_STRING| {
        wdf!(WdfDeviceRetrieveDeviceInterfaceString, device, &raw const CLASS, reference, string)
    };
    same!("interface-missing", find(&raw const reference), STATUS_OBJECT_NAME_NOT_FOUND);
    let created =
        wdf!(WdfDeviceCreateDeviceInterface, device, &raw const CLASS, &raw const reference);
    same!("interface-found", (created, find(&raw const reference)), (STATUS_SUCCESS, 0));
    let other = counted(&OTHER_CASE);
    same!("interface-case", find(&raw const other), STATUS_OBJECT_NAME_NOT_FOUND);
    same!("interface-without-reference", find(ptr::null()), STATUS_OBJECT_NAME_NOT_FOUND);
}
