//! Values of a key.

use wdk_sys::{
    NTSTATUS, PVOID, STATUS_BUFFER_OVERFLOW, STATUS_BUFFER_TOO_SMALL, STATUS_INVALID_HANDLE,
    STATUS_INVALID_PARAMETER, STATUS_NO_MORE_ENTRIES, STATUS_OBJECT_NAME_NOT_FOUND,
};

use super::common::{close, open};
use crate::{
    call::{NULL, call, pointer, same},
    names::{is_text, with_string},
};

/// `KEY_VALUE_INFORMATION_CLASS`.
const BASIC: u64 = 0;
const FULL: u64 = 1;
const PARTIAL: u64 = 2;

/// Queries a value. Returns the status and the required length.
fn query(key: PVOID, name: &[u8], class: u64, buffer: &mut [u8], room: u64) -> (NTSTATUS, u32) {
    let mut length = 0_u32;
    let address = if room == 0 { NULL } else { buffer.as_mut_ptr().cast() };
    let status = with_string(name, |name| {
        call!(ZwQueryValueKey, key, name, class, address, room, &mut length)
    });
    (status, length)
}

/// Sets a value, and returns the status.
pub fn set(key: PVOID, name: &[u8], kind: u64, data: &[u8]) -> NTSTATUS {
    let address = data.as_ptr();
    with_string(name, |name| call!(ZwSetValueKey, key, name, 0, kind, address, data.len()))
}

fn delete(key: PVOID, name: &[u8]) -> NTSTATUS {
    with_string(name, |name| call!(ZwDeleteValueKey, key, name))
}

fn number(buffer: &[u8], at: usize) -> u32 {
    let mut bytes = [0; 4];
    bytes.copy_from_slice(&buffer[at..at + 4]);
    u32::from_le_bytes(bytes)
}

/// Reads the values that the test has set: `Number` is 42, `Text` is `hello`.
pub fn read(key: PVOID) {
    let mut buffer = [0xEE_u8; 64];
    same!(query(key, b"number", PARTIAL, &mut buffer, 64) == (0, 16), true);
    same!(number(&buffer, 4), 4);
    same!(number(&buffer, 8), 4);
    same!(number(&buffer, 12), 42);
    same!(buffer[16], 0xEE);
    // Zeros at the end of a name are ignored.
    same!(query(key, b"Number\0", PARTIAL, &mut buffer, 64) == (0, 16), true);

    same!(query(key, b"Text", BASIC, &mut buffer, 64) == (0, 20), true);
    same!((number(&buffer, 4), number(&buffer, 8)) == (1, 8), true);
    same!(is_text(&buffer[12..20], b"Text"), true);

    // The data follow the name, at an offset that is a multiple of four.
    same!(query(key, b"text", FULL, &mut buffer, 64) == (0, 40), true);
    same!(number(&buffer, 8), 28);
    same!((number(&buffer, 12), number(&buffer, 16)) == (12, 8), true);
    same!(is_text(&buffer[28..40], b"hello\0"), true);

    let mut buffer = [0xEE_u8; 64];
    same!(query(key, b"Text", PARTIAL, &mut buffer, 0) == (STATUS_BUFFER_TOO_SMALL, 24), true);
    same!(query(key, b"Text", PARTIAL, &mut buffer, 11) == (STATUS_BUFFER_TOO_SMALL, 24), true);
    same!(buffer[0], 0xEE);
    same!(query(key, b"Text", PARTIAL, &mut buffer, 12) == (STATUS_BUFFER_OVERFLOW, 24), true);
    same!((number(&buffer, 8), buffer[12]) == (12, 0xEE), true);
    same!(query(key, b"Text", PARTIAL, &mut buffer, 16) == (STATUS_BUFFER_OVERFLOW, 24), true);
    same!(is_text(&buffer[12..16], b"he") && buffer[16] == 0xEE, true);
    same!(query(key, b"Text", FULL, &mut buffer, 19) == (STATUS_BUFFER_TOO_SMALL, 40), true);
    same!(query(key, b"Text", FULL, &mut buffer, 39) == (STATUS_BUFFER_OVERFLOW, 40), true);
    same!(query(key, b"Text", BASIC, &mut buffer, 12) == (STATUS_BUFFER_OVERFLOW, 20), true);

    same!(query(key, b"Missing", PARTIAL, &mut buffer, 64).0, STATUS_OBJECT_NAME_NOT_FOUND);
    same!(query(key, b"Text", 99, &mut buffer, 64).0, STATUS_INVALID_PARAMETER);
    same!(query(pointer(0x4444), b"Text", PARTIAL, &mut buffer, 64).0, STATUS_INVALID_HANDLE);
}

pub fn write(key: PVOID) {
    let mut buffer = [0_u8; 64];
    same!(set(key, b"New", 3, &[1, 2, 3]), 0);
    same!(query(key, b"NEW", PARTIAL, &mut buffer, 64) == (0, 15), true);
    same!(buffer[12..15] == [1, 2, 3], true);
    // The name is from the first call, and the type from the last call.
    same!(set(key, b"NEW", 77, &[9]), 0);
    same!(query(key, b"new", BASIC, &mut buffer, 64) == (0, 18), true);
    same!(number(&buffer, 4), 77);
    same!(is_text(&buffer[12..18], b"New"), true);
    same!(set(key, b"Empty", 3, &[]), 0);
    same!(query(key, b"Empty", FULL, &mut buffer, 64) == (0, 30), true);
    same!((number(&buffer, 8), number(&buffer, 12)) == (u32::MAX, 0), true);
    // The default value has no name.
    let mut data = 7_u32;
    same!(call!(ZwSetValueKey, key, NULL, 0, 4, &mut data, 4), 0);
    same!(query(key, b"", PARTIAL, &mut buffer, 64) == (0, 16), true);
    same!(number(&buffer, 12), 7);
    for name in [b"New".as_slice(), b"Empty", b""] {
        same!(delete(key, name), 0);
        same!(delete(key, name), STATUS_OBJECT_NAME_NOT_FOUND);
    }
    // A handle's rights do not restrict drivers.
    let (_, reader) = open(key, b"", 1);
    same!(set(reader, b"New", 3, &[1]), 0);
    same!(delete(reader, b"New"), 0);
    let (_, writer) = open(key, b"", 2);
    same!(query(writer, b"Text", PARTIAL, &mut buffer, 64).0, 0);
    same!(set(writer, b"Seen", 4, &[1, 0, 0, 0]), 0);
    close(reader);
    close(writer);
    // The maximum size of a value is 1 MB.
    let too_large =
        with_string(b"Large", |name| call!(ZwSetValueKey, key, name, 0, 3, &mut data, 0x10_0001));
    same!(too_large, 0xC000_009A_u32);
}

/// Values are enumerated in the order in which they were set.
pub fn enumerate(key: PVOID) {
    let mut buffer = [0_u8; 64];
    let mut length = 0_u32;
    let names: [&[u8]; 3] = [b"Number", b"Text", b"Seen"];
    for (index, name) in names.iter().enumerate() {
        same!(call!(ZwEnumerateValueKey, key, index, BASIC, &mut buffer, 64, &mut length), 0);
        same!(is_text(&buffer[12..length as usize], name), true);
    }
    let enumerate = |index: u64, class: u64, length: &mut u32| {
        call!(ZwEnumerateValueKey, key, index, class, NULL, 0, length)
    };
    same!(enumerate(3, BASIC, &mut length), STATUS_NO_MORE_ENTRIES);
    same!(enumerate(0, PARTIAL, &mut length), STATUS_BUFFER_TOO_SMALL);
    same!(length, 16);
    same!(enumerate(0, 99, &mut length), STATUS_INVALID_PARAMETER);
}
