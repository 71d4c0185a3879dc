//! Opens keys with paths relative to the system's keys.

use wdk_sys::{
    NTSTATUS, STATUS_INVALID_HANDLE, STATUS_INVALID_PARAMETER, STATUS_KEY_DELETED,
    STATUS_OBJECT_NAME_NOT_FOUND,
};

use super::common::{READ, close, open};
use crate::{
    call::{NULL, call, pointer, same},
    names::with_text,
};

/// `RTL_REGISTRY_*`.
const ABSOLUTE: u64 = 0;
const SERVICES: u64 = 1;
const CONTROL: u64 = 2;
const WINDOWS_NT: u64 = 3;
const DEVICE_MAP: u64 = 4;
const USER: u64 = 5;
const HANDLE: u64 = 0x4000_0000;
const OPTIONAL: u64 = 0x8000_0000;

fn check(relative_to: u64, path: &[u8]) -> NTSTATUS {
    with_text(path, |path| call!(RtlCheckRegistryKey, relative_to, path))
}

fn create(relative_to: u64, path: &[u8]) -> NTSTATUS {
    with_text(path, |path| call!(RtlCreateRegistryKey, relative_to, path))
}

fn write(relative_to: u64, path: &[u8], name: &[u8], number: u32) -> NTSTATUS {
    let mut number = number;
    with_text(path, |path| {
        with_text(name, |name| {
            call!(RtlWriteRegistryValue, relative_to, path, name, 4, &mut number, 4)
        })
    })
}

fn delete(relative_to: u64, path: &[u8], name: &[u8]) -> NTSTATUS {
    with_text(path, |path| {
        with_text(name, |name| call!(RtlDeleteRegistryValue, relative_to, path, name))
    })
}

pub fn relative() {
    same!(check(SERVICES, b"registry-relative"), 0);
    same!(check(ABSOLUTE, br"\Registry\Machine\System"), 0);
    same!(check(ABSOLUTE, b"System"), 0xC000_003B_u32);
    same!(check(SERVICES, b"nobody"), STATUS_OBJECT_NAME_NOT_FOUND);
    // Marking a key as optional does not create it.
    same!(check(SERVICES | OPTIONAL, b"nobody"), STATUS_OBJECT_NAME_NOT_FOUND);
    same!(check(6, b"nobody"), STATUS_INVALID_PARAMETER);
    for relative_to in [CONTROL, WINDOWS_NT, DEVICE_MAP, USER] {
        same!(check(relative_to, b""), 0);
        same!(check(relative_to, b"Test"), STATUS_OBJECT_NAME_NOT_FOUND);
        same!(create(relative_to, br"Test\Below"), STATUS_OBJECT_NAME_NOT_FOUND);
        same!(create(relative_to, b"Test"), 0);
        same!(create(relative_to, b"Test"), 0);
        same!(write(relative_to, b"Test", b"Number", 7), 0);
        same!(delete(relative_to, b"Test", b"number"), 0);
        same!(delete(relative_to, b"Test", b"number"), STATUS_OBJECT_NAME_NOT_FOUND);
    }
    // A missing key is created, but its missing parents are not.
    same!(write(DEVICE_MAP, b"SERIALCOMM", b"Port", 1), 0);
    same!(write(DEVICE_MAP, br"Two\Keys", b"Port", 1), STATUS_OBJECT_NAME_NOT_FOUND);
    same!(delete(DEVICE_MAP, b"Nothing", b"Port"), STATUS_OBJECT_NAME_NOT_FOUND);
    let (_, map) = open(NULL, br"\Registry\Machine\Hardware\DeviceMap\SERIALCOMM", 0xF_003F);
    let delete_of_handle =
        || with_text(b"Port", |name| call!(RtlDeleteRegistryValue, HANDLE, map, name));
    same!(delete_of_handle(), 0);
    same!(call!(RtlCheckRegistryKey, HANDLE, map), 0);
    same!(call!(RtlCheckRegistryKey, HANDLE, pointer(0x4444)), STATUS_INVALID_HANDLE);
    call!(ZwDeleteKey, map);
    same!(delete_of_handle(), STATUS_KEY_DELETED);
    close(map);
    let (_, reader) = open(NULL, br"\Registry\Machine\Hardware\DeviceMap\Test", READ);
    let mut number = 1_u32;
    let written = with_text(b"Number", |name| {
        call!(RtlWriteRegistryValue, HANDLE, reader, name, 4, &mut number, 4)
    });
    same!(written, 0);
    close(reader);
}
