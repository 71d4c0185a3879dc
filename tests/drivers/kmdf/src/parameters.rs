//! The service's parameters in the registry.

use core::{ptr, slice};

use etw_driver_support::made;
use wdk_sys::{
    KEY_READ, KEY_SET_VALUE, NTSTATUS, PVOID, ULONG, UNICODE_STRING, USHORT,
    WDF_NO_OBJECT_ATTRIBUTES, WDFDRIVER,
};

use crate::framework::{counted, utf16, wdf};

const NUMBER: [u16; 6] = utf16(b"Number");
const TEXT: [u16; 4] = utf16(b"Text");
const BYTES: [u16; 5] = utf16(b"Bytes");
const MISSING: [u16; 7] = utf16(b"Missing");
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
    for (what, name) in [
        ("number", counted(&NUMBER)),
        ("missing", counted(&MISSING)),
        ("text as number", counted(&TEXT)),
    ] {
        let mut number: ULONG = 0;
        let status = wdf!(WdfRegistryQueryULong, key, &raw const name, &raw mut number);
        wdk::println!("{what} {status:x} {number}");
    }
    let name = counted(&TEXT);
    for room in [16, 2] {
        let mut units = [0_u16; 16];
        let mut text =
            UNICODE_STRING { Length: 0, MaximumLength: room * 2, Buffer: units.as_mut_ptr() };
        let mut length: USHORT = 0;
        let status = wdf!(
            WdfRegistryQueryUnicodeString, key, &raw const name, &raw mut length, &raw mut text
        );
        wdk::println!("length {length}");
        print_text("text", status, &text);
    }
    let (_status, string) =
        made(|handle| wdf!(WdfStringCreate, ptr::null(), WDF_NO_OBJECT_ATTRIBUTES, handle));
    let status = wdf!(WdfRegistryQueryString, key, &raw const name, string);
    let mut text = UNICODE_STRING::default();
    wdf!(WdfStringGetUnicodeString, string, &raw mut text);
    print_text("string", status, &text);
    let name = counted(&BYTES);
    let mut bytes = [0_u8; 4];
    let mut queried: ULONG = 0;
    let mut kind: ULONG = 0;
    let status = wdf!(
        WdfRegistryQueryValue,
        key,
        &raw const name,
        4,
        (&raw mut bytes).cast::<core::ffi::c_void>() as PVOID,
        &raw mut queried,
        &raw mut kind
    );
    wdk::println!("bytes {status:x} {queried} {kind} {bytes:?}");
    let seen = counted(&SEEN);
    let _status = wdf!(WdfRegistryAssignULong, key, &raw const seen, 1);
    wdf!(WdfRegistryClose, key);
    wdk_sys::STATUS_SUCCESS
}
