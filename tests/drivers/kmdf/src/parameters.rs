//! The service's parameters in the registry.

use core::{ptr, slice};

use etw_driver_support::made;
use wdk_sys::{
    KEY_READ, KEY_SET_VALUE, NTSTATUS, ULONG, UNICODE_STRING, WDF_NO_OBJECT_ATTRIBUTES, WDFDRIVER,
};

use crate::framework::{counted, utf16, wdf};

const NUMBER: [u16; 6] = utf16(b"Number");
const TEXT: [u16; 4] = utf16(b"Text");
const SEEN: [u16; 4] = utf16(b"Seen");

/// Prints a string, one character per unit.
fn print_text(name: &str, status: NTSTATUS, text: &UNICODE_STRING) {
    let mut bytes = [0_u8; 16];
    let length = usize::from(text.Length) / 2;
    // SAFETY: a counted string has a buffer of its length.
    let units = unsafe { slice::from_raw_parts(text.Buffer, length) };
    for (byte, unit) in bytes.iter_mut().zip(units) {
        *byte = *unit as u8;
    }
    let text = core::str::from_utf8(&bytes[..length.min(bytes.len())]).unwrap_or("?");
    wdk::println!("{name} {status:x} {text}");
}

/// Reads and prints the values.
pub fn print(driver: WDFDRIVER) -> NTSTATUS {
    let (status, key) = made(|handle| {
        wdf!(
            WdfDriverOpenParametersRegistryKey,
            driver,
            KEY_READ | KEY_SET_VALUE,
            WDF_NO_OBJECT_ATTRIBUTES,
            handle
        )
    });
    if status != wdk_sys::STATUS_SUCCESS {
        return status;
    }
    let name = counted(&NUMBER);
    let mut number: ULONG = 0;
    let status = wdf!(WdfRegistryQueryULong, key, &raw const name, &raw mut number);
    wdk::println!("number {status:x} {number}");
    let (_status, string) =
        made(|handle| wdf!(WdfStringCreate, ptr::null(), WDF_NO_OBJECT_ATTRIBUTES, handle));
    let name = counted(&TEXT);
    let status = wdf!(WdfRegistryQueryString, key, &raw const name, string);
    let mut text = UNICODE_STRING::default();
    wdf!(WdfStringGetUnicodeString, string, &raw mut text);
    print_text("string", status, &text);
    let seen = counted(&SEEN);
    let _status = wdf!(WdfRegistryAssignULong, key, &raw const seen, 1);
    wdf!(WdfRegistryClose, key);
    wdk_sys::STATUS_SUCCESS
}
