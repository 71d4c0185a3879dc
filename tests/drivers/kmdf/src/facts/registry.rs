//! Values and keys in the registry.

use core::{ptr, slice};

use etw_driver_support::made;
use wdk_sys::{
    KEY_READ, KEY_SET_VALUE, NTSTATUS, PLUGPLAY_REGKEY_DEVICE, REG_BINARY, REG_DWORD,
    REG_EXPAND_SZ, REG_MULTI_SZ, REG_SZ, STATUS_BUFFER_OVERFLOW, STATUS_INTEGER_OVERFLOW,
    STATUS_OBJECT_NAME_NOT_FOUND, STATUS_OBJECT_TYPE_MISMATCH, STATUS_RESOURCE_DATA_NOT_FOUND,
    STATUS_SUCCESS, ULONG, UNICODE_STRING, USHORT, WDF_NO_OBJECT_ATTRIBUTES, WDFCOLLECTION,
    WDFDEVICE, WDFKEY, WDFMEMORY, WDFMEMORY_OFFSET, WDFSTRING,
};

use super::common::{INVALID_PARAMETER, object, same};
use crate::framework::{attributes, counted, utf16, wdf};

const NONE: *mut wdk_sys::WDF_OBJECT_ATTRIBUTES = WDF_NO_OBJECT_ATTRIBUTES;
const NAME: [u16; 4] = utf16(b"Fact");
const MISSING: [u16; 7] = utf16(b"Missing");

/// A key, and the value that the facts describe.
struct Facts {
    key: WDFKEY,
    name: UNICODE_STRING,
}

impl Facts {
    /// Stores the value.
    fn store(&self, kind: ULONG, bytes: &mut [u8]) -> NTSTATUS {
        let (length, bytes) = (bytes.len() as ULONG, bytes.as_mut_ptr().cast());
        wdf!(WdfRegistryAssignValue, self.key, &raw const self.name, kind, length, bytes)
    }

    /// Returns the status, the size and the bytes of a query into a buffer of `room` bytes.
    fn query(&self, room: ULONG) -> (NTSTATUS, ULONG, [u8; 4]) {
        let (mut bytes, mut length) = ([0_u8; 4], 0);
        let to = if room == 0 { ptr::null_mut() } else { bytes.as_mut_ptr().cast() };
        let status = wdf!(
            WdfRegistryQueryValue,
            self.key,
            &raw const self.name,
            room,
            to,
            &raw mut length,
            ptr::null_mut()
        );
        (status, length, bytes)
    }

    fn number(&self) -> (NTSTATUS, ULONG) {
        let mut number = 0;
        let name = &raw const self.name;
        (wdf!(WdfRegistryQueryULong, self.key, name, &raw mut number), number)
    }

    /// Returns the status, the size and the length of a query of a string into a buffer of `room`
    /// bytes.
    fn text(&self, room: Option<USHORT>) -> (NTSTATUS, USHORT, USHORT) {
        let (mut units, mut size) = ([0_u16; 8], 0);
        let mut text = UNICODE_STRING {
            Length: 0,
            MaximumLength: room.unwrap_or(0),
            Buffer: units.as_mut_ptr(),
        };
        let to = if room.is_none() { ptr::null_mut() } else { &raw mut text };
        let name = &raw const self.name;
        let status = wdf!(WdfRegistryQueryUnicodeString, self.key, name, &raw mut size, to);
        (status, size, text.Length)
    }

    fn string(&self, string: WDFSTRING) -> NTSTATUS {
        wdf!(WdfRegistryQueryString, self.key, &raw const self.name, string)
    }

    fn strings(&self, strings: WDFCOLLECTION) -> NTSTATUS {
        wdf!(WdfRegistryQueryMultiString, self.key, &raw const self.name, NONE, strings)
    }

    fn memory(&self) -> (NTSTATUS, WDFMEMORY) {
        let pool = wdk_sys::_POOL_TYPE::NonPagedPoolNx;
        made(|handle| {
            wdf!(
                WdfRegistryQueryMemory,
                self.key,
                &raw const self.name,
                pool,
                NONE,
                handle,
                ptr::null_mut()
            )
        })
    }

    fn assign_memory(&self, memory: WDFMEMORY, part: (usize, usize)) -> NTSTATUS {
        let mut part = WDFMEMORY_OFFSET { BufferOffset: part.0, BufferLength: part.1 };
        let name = &raw const self.name;
        wdf!(WdfRegistryAssignMemory, self.key, name, REG_BINARY, memory, &raw mut part)
    }
}

pub fn check(device: WDFDEVICE) {
    let rights = KEY_READ | KEY_SET_VALUE;
    let (_, key) = made(|handle| {
        wdf!(WdfDeviceOpenRegistryKey, device, PLUGPLAY_REGKEY_DEVICE, rights, NONE, handle)
    });
    let facts = Facts { key, name: counted(&NAME) };
    check_values(&facts);
    check_texts(&facts);
    check_lists(&facts);
    check_keys(&facts);
    wdf!(WdfRegistryClose, key);
}

fn check_values(facts: &Facts) {
    same!("query-missing", facts.query(4).0, STATUS_OBJECT_NAME_NOT_FOUND);
    let _stored = facts.store(REG_BINARY, &mut [1, 2, 3]);
    same!("query-value-too-small", facts.query(2), (STATUS_BUFFER_OVERFLOW, 3, [0; 4]));
    same!("query-value-size", facts.query(0), (STATUS_BUFFER_OVERFLOW, 3, [0; 4]));
    same!("query-value", facts.query(4), (STATUS_SUCCESS, 3, [1, 2, 3, 0]));
    let (status, memory) = facts.memory();
    let mut size = 0;
    let buffer = wdf!(WdfMemoryGetBuffer, memory, &raw mut size);
    // SAFETY: the framework returned the buffer with this size.
    let found = unsafe { slice::from_raw_parts(buffer.cast::<u8>(), size) };
    same!("query-memory", (status, found), (STATUS_SUCCESS, &[1, 2, 3][..]));
    wdf!(WdfObjectDelete, memory.cast());
    same!("query-ulong-type", facts.number(), (STATUS_OBJECT_TYPE_MISMATCH, 0));
    let _stored = facts.store(REG_DWORD, &mut [1; 8]);
    same!("query-ulong-long", facts.number(), (STATUS_BUFFER_OVERFLOW, 0));
    let _stored = facts.store(REG_BINARY, &mut []);
    same!("query-empty", facts.query(0), (STATUS_SUCCESS, 0, [0; 4]));
    same!("query-memory-empty", facts.memory().0, STATUS_RESOURCE_DATA_NOT_FOUND);
    let mut bytes = [1_u8, 2, 3, 4];
    let buffer = bytes.as_mut_ptr().cast();
    let (_, memory) = made(|handle| wdf!(WdfMemoryCreatePreallocated, NONE, buffer, 4, handle));
    let past = [(1, 4), (5, 0)].map(|part| facts.assign_memory(memory, part));
    same!("assign-memory-past-the-end", past, [STATUS_INTEGER_OVERFLOW; 2]);
    let middle = facts.assign_memory(memory, (1, 2));
    same!("assign-memory-part", (middle, facts.query(4).2), (STATUS_SUCCESS, [2, 3, 0, 0]));
    let whole = facts.assign_memory(memory, (0, 0));
    same!("assign-memory-no-length", (whole, facts.query(4).2), (STATUS_SUCCESS, [1, 2, 3, 4]));
    wdf!(WdfObjectDelete, memory.cast());
    let odd = UNICODE_STRING { Length: 7, ..facts.name };
    let status = wdf!(WdfRegistryAssignULong, facts.key, &raw const odd, 1);
    same!("value-name-odd", status, INVALID_PARAMETER);
    let remove = || wdf!(WdfRegistryRemoveValue, facts.key, &raw const facts.name);
    same!("remove-missing", [remove(), remove()], [STATUS_SUCCESS, STATUS_OBJECT_NAME_NOT_FOUND]);
}

fn check_texts(facts: &Facts) {
    let (_, string) = made(|handle| wdf!(WdfStringCreate, ptr::null(), NONE, handle));
    let _stored = facts.store(REG_DWORD, &mut [1, 0, 0, 0]);
    same!("query-text-type", facts.text(Some(16)), (STATUS_OBJECT_TYPE_MISMATCH, 0, 0));
    same!("query-text-type-too-small", facts.text(None), (STATUS_BUFFER_OVERFLOW, 4, 0));
    same!("query-string-type", facts.string(string), STATUS_OBJECT_TYPE_MISMATCH);
    let mut text = *b"a\0b\0\0\0";
    let _stored = facts.store(REG_EXPAND_SZ, &mut text);
    same!("query-text-expand", facts.text(Some(16)), (STATUS_SUCCESS, 6, 4));
    same!("query-string-expand", facts.string(string), STATUS_SUCCESS);
    same!("query-text-no-room", facts.text(Some(0)), (INVALID_PARAMETER, 0, 0));
    same!("query-text-too-small", facts.text(Some(4)), (STATUS_BUFFER_OVERFLOW, 6, 0));
    let _stored = facts.store(REG_SZ, &mut text[..4]);
    same!("query-text-unterminated", facts.text(Some(16)), (STATUS_SUCCESS, 4, 4));
    let _stored = facts.store(REG_SZ, &mut []);
    same!("query-string-empty", facts.string(string), STATUS_RESOURCE_DATA_NOT_FOUND);
    let name = counted(&NAME);
    let status =
        wdf!(WdfRegistryAssignUnicodeString, facts.key, &raw const facts.name, &raw const name);
    same!("assign-text", (status, facts.text(None).1), (STATUS_SUCCESS, 10));
    wdf!(WdfObjectDelete, string.cast());
}

fn check_lists(facts: &Facts) {
    let (_, strings) = made(|handle| wdf!(WdfCollectionCreate, NONE, handle));
    let assign = || wdf!(WdfRegistryAssignMultiString, facts.key, &raw const facts.name, strings);
    same!("query-list-type", facts.strings(strings), STATUS_OBJECT_TYPE_MISMATCH);
    same!("assign-empty-list", (assign(), facts.query(4)), (0, (STATUS_SUCCESS, 4, [0; 4])));
    let (_, item) = object(&mut attributes());
    let _added = wdf!(WdfCollectionAdd, strings, item);
    same!("assign-list-of-others", assign(), INVALID_PARAMETER);
    wdf!(WdfCollectionRemoveItem, strings, 0);
    wdf!(WdfObjectDelete, item);
    let name = counted(&MISSING);
    let (_, text) = made(|handle| wdf!(WdfStringCreate, &raw const name, NONE, handle));
    let added = [0, 1].map(|_| wdf!(WdfCollectionAdd, strings, text.cast()));
    let (_, found) = made(|handle| wdf!(WdfCollectionCreate, NONE, handle));
    let queried = (added, assign(), facts.strings(found));
    same!("assign-list", queried, ([STATUS_SUCCESS; 2], STATUS_SUCCESS, STATUS_SUCCESS));
    let mut last = UNICODE_STRING::default();
    let of = wdf!(WdfCollectionGetLastItem, found).cast();
    wdf!(WdfStringGetUnicodeString, of, &raw mut last);
    let count = wdf!(WdfCollectionGetCount, found);
    same!("assign-list-items", (count, last.Length), (2, name.Length));
    let missing = wdf!(WdfRegistryQueryMultiString, facts.key, &raw const name, NONE, found);
    same!("query-list-missing", missing, STATUS_OBJECT_NAME_NOT_FOUND);
    wdf!(WdfObjectDelete, found.cast());
    for _ in 0..2 {
        wdf!(WdfCollectionRemoveItem, strings, 0);
    }
    let _stored = facts.store(REG_MULTI_SZ, &mut []);
    same!("query-list-empty", facts.strings(strings), STATUS_RESOURCE_DATA_NOT_FOUND);
    let mut values = *b"a\0\0\0b\0\0\0\0\0";
    let _stored = facts.store(REG_MULTI_SZ, &mut values[..8]);
    same!("query-list-unterminated", facts.strings(strings), STATUS_OBJECT_TYPE_MISMATCH);
    let _stored = facts.store(REG_MULTI_SZ, &mut values);
    let status = facts.strings(strings);
    let count = wdf!(WdfCollectionGetCount, strings);
    same!("query-list", (status, count), (STATUS_SUCCESS, 2));
    wdf!(WdfObjectDelete, strings.cast());
}

fn check_keys(facts: &Facts) {
    let rights = KEY_READ | KEY_SET_VALUE;
    let missing = counted(&MISSING);
    let open = || {
        made(|handle| wdf!(WdfRegistryOpenKey, facts.key, &raw const missing, rights, NONE, handle))
    };
    same!("open-missing", open(), (STATUS_OBJECT_NAME_NOT_FOUND, ptr::null_mut()));
    let create = || {
        let mut disposition = 0;
        let (_, key) = made(|handle| {
            wdf!(
                WdfRegistryCreateKey, facts.key, &raw const missing, rights, 0,
                &raw mut disposition, NONE, handle
            )
        });
        (key, disposition)
    };
    let [(first, new), (second, existing)] = [create(), create()];
    same!("create-disposition", [new, existing], [1, 2]);
    wdf!(WdfRegistryClose, second);
    let removed = wdf!(WdfRegistryRemoveKey, first);
    same!("remove-key", (removed, open().0), (STATUS_SUCCESS, STATUS_OBJECT_NAME_NOT_FOUND));
}
