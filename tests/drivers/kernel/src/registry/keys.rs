//! Keys that are accessed by handle.

use core::sync::atomic::{AtomicPtr, Ordering};

use wdk_sys::{
    NTSTATUS, PCUNICODE_STRING, PVOID, STATUS_BUFFER_OVERFLOW, STATUS_BUFFER_TOO_SMALL,
    STATUS_CANNOT_DELETE, STATUS_CHILD_MUST_BE_VOLATILE, STATUS_INVALID_HANDLE,
    STATUS_INVALID_PARAMETER, STATUS_KEY_DELETED, STATUS_NO_MORE_ENTRIES,
    STATUS_OBJECT_NAME_NOT_FOUND, STATUS_OBJECT_PATH_SYNTAX_BAD, STATUS_OBJECT_TYPE_MISMATCH,
    STATUS_PENDING, UNICODE_STRING,
};

use super::{
    common::{ALL, READ, SOFTWARE, close, create, open},
    values,
};
use crate::{
    call::{NULL, call, pointer, same},
    names::{is_text, with_attributes, with_string},
};

/// The address of the registry path that `DriverEntry` received.
static PATH: AtomicPtr<UNICODE_STRING> = AtomicPtr::new(core::ptr::null_mut());

/// Stores the registry path, which is valid during `DriverEntry`.
pub fn note_path(path: PCUNICODE_STRING) {
    PATH.store(path.cast_mut(), Ordering::Relaxed);
}

/// Opens the key at the registry path.
fn open_service() -> PVOID {
    let mut handle = NULL;
    let mut attributes = [48, 0, PATH.load(Ordering::Relaxed) as u64, 0x240, 0, 0];
    same!(call!(ZwOpenKey, &mut handle, ALL, &mut attributes), 0);
    handle
}

pub fn run() {
    let service = open_service();
    name(service);
    opening(service);
    let (status, parameters) = open(service, b"PARAMETERS", ALL);
    same!(status, 0);
    values::read(parameters);
    values::write(parameters);
    values::enumerate(parameters);
    close(parameters);
    close(service);
    creating();
    describing();
    changes();
}

/// Requests for a notification of the next change of a key.
fn changes() {
    /// `REG_NOTIFY_CHANGE_NAME` and `REG_NOTIFY_CHANGE_LAST_SET`.
    const NAME: u32 = 1;
    const VALUE: u32 = 4;
    const ENUM_DIR: u64 = 0x10C;
    let (_, software) = open(NULL, SOFTWARE, ALL);
    let (_, key, _) = create(software, b"Watched", ALL, 0);
    let mut event = NULL;
    same!(call!(ZwCreateEvent, &mut event, 0x1F_0003, NULL, 0, 0), 0);
    let request = |block: &mut [u64; 2], filter: u32, tree: u32| {
        call!(ZwNotifyChangeKey, key, event, None, NULL, block, filter, tree, NULL, 0, 1)
    };
    // Returns whether the event is set.
    let is_set = || {
        let mut now = 0_i64;
        call!(ZwWaitForSingleObject, event, 0, &mut now) == 0
    };
    let mut block = [0_u64; 2];
    same!(request(&mut block, 0, 0), STATUS_INVALID_PARAMETER);
    same!(request(&mut block, VALUE, 0), STATUS_PENDING);
    let (_, below, _) = create(key, b"Below", ALL, 0);
    same!((is_set(), block[0]) == (false, 0), true);
    let mut data = 7_u32;
    with_string(b"Value", |name| call!(ZwSetValueKey, key, name, 0, 4, &mut data, 4));
    same!((is_set(), block[0]) == (true, ENUM_DIR), true);
    // The same value again is no change.
    same!(request(&mut block, VALUE, 0), STATUS_PENDING);
    with_string(b"Value", |name| call!(ZwSetValueKey, key, name, 0, 4, &mut data, 4));
    same!(is_set(), false);
    with_string(b"Value", |name| call!(ZwDeleteValueKey, key, name));
    same!(is_set(), true);
    // One request is for one change, and of the tree below only if it says so.
    let (mut own, mut tree) = ([0_u64; 2], [0_u64; 2]);
    same!(request(&mut own, NAME, 0), STATUS_PENDING);
    same!(request(&mut tree, NAME, 1), STATUS_PENDING);
    let (_, deep, _) = create(below, b"Deep", ALL, 0);
    same!((own[0], tree[0]) == (0, ENUM_DIR), true);
    same!(call!(ZwDeleteKey, deep), 0);
    close(deep);
    same!(own[0], 0);
    same!(call!(ZwDeleteKey, below), 0);
    close(below);
    same!(own[0], ENUM_DIR);
    // Closing the handle ends a request.
    same!(request(&mut own, NAME, 0), STATUS_PENDING);
    close(key);
    same!(own[0], 0x10B);
    close(event);
    let (_, key) = open(software, b"Watched", ALL);
    same!(call!(ZwDeleteKey, key), 0);
    close(key);
    close(software);
}

/// A key's path is the system's own name for the key.
fn name(service: PVOID) {
    const NAME: &[u8] = br"\REGISTRY\MACHINE\SYSTEM\ControlSet001\Services\registry";
    let mut buffer = [0_u8; 200];
    let mut length = 0_u32;
    same!(call!(ZwQueryKey, service, 3, &mut buffer, 200, &mut length), 0);
    same!(length, 4 + 2 * NAME.len());
    same!(buffer[0], 2 * NAME.len());
    same!(is_text(&buffer[4..length as usize], NAME), true);
    same!(call!(ZwQueryKey, service, 3, &mut buffer, 8, &mut length), STATUS_BUFFER_OVERFLOW);
    same!(call!(ZwQueryKey, service, 3, NULL, 0, &mut length), STATUS_BUFFER_TOO_SMALL);
    same!(length, 4 + 2 * NAME.len());
}

fn opening(service: PVOID) {
    same!(open(service, b"Missing", READ).0, STATUS_OBJECT_NAME_NOT_FOUND);
    same!(open(service, br"Missing\Too", READ).0, STATUS_OBJECT_NAME_NOT_FOUND);
    same!(open(NULL, br"Registry\Machine", READ).0, STATUS_OBJECT_PATH_SYNTAX_BAD);
    same!(open(service, br"\Parameters", READ).0, STATUS_OBJECT_PATH_SYNTAX_BAD);
    same!(open(NULL, br"\Nothing", READ).0, STATUS_OBJECT_NAME_NOT_FOUND);
    same!(open(NULL, br"\Nothing\Here", READ).0, 0xC000_003A_u32);
    same!(open(pointer(0x4444), b"Parameters", READ).0, STATUS_INVALID_HANDLE);
    // If the name is empty, the root is opened again. Rights are checked only for calls from user
    // mode.
    let (status, again) = open(service, b"", 1);
    same!(status, 0);
    same!(call!(ZwDeleteKey, again), STATUS_CANNOT_DELETE);
    close(again);
    let mut event = NULL;
    call!(ZwCreateEvent, &mut event, 0x1F_0003, NULL, 0, 0);
    same!(open(event, b"Parameters", READ).0, STATUS_OBJECT_TYPE_MISMATCH);
    same!(call!(ZwFlushKey, event), STATUS_OBJECT_TYPE_MISMATCH);
    close(event);
    same!(call!(ZwFlushKey, service), 0);
    let (mut handle, mut attributes) = (NULL, [47_u64, 0, 0, 0x240, 0, 0]);
    same!(call!(ZwOpenKey, &mut handle, READ, &mut attributes), STATUS_INVALID_PARAMETER);
    with_attributes(service, b"Parameters", 0x240, |attributes| {
        let with = |options: u64, handle: &mut PVOID| {
            call!(ZwOpenKeyEx, handle, READ, attributes, options)
        };
        same!(with(1, &mut handle), STATUS_INVALID_PARAMETER);
        same!(with(0, &mut handle), 0);
    });
    close(handle);
}

fn creating() {
    let (_, software) = open(NULL, SOFTWARE, ALL);
    same!(create(software, br"One\Two", ALL, 0).0, STATUS_OBJECT_NAME_NOT_FOUND);
    same!(create(NULL, br"\Registry\Machine\New", ALL, 0).0, STATUS_INVALID_PARAMETER);
    same!(create(software, b"One", ALL, 0x20).0, STATUS_INVALID_PARAMETER);
    let (status, one, new) = create(software, b"One", ALL, 0);
    same!((status, new) == (0, 1), true);
    let (status, again, existing) = create(software, b"ONE", READ, 0);
    same!((status, existing) == (0, 2), true);
    // The parent was opened for reading, which does not restrict drivers.
    let (status, other, _) = create(again, b"Other", READ, 0);
    same!(status, 0);
    same!(call!(ZwDeleteKey, other), 0);
    close(other);
    let (status, two, _) = create(one, b"Two", ALL, 1);
    same!(status, 0);
    same!(create(two, b"Three", ALL, 0).0, STATUS_CHILD_MUST_BE_VOLATILE);
    same!(call!(ZwDeleteKey, again), STATUS_CANNOT_DELETE);
    same!(call!(ZwDeleteKey, one), STATUS_CANNOT_DELETE);
    same!(call!(ZwDeleteKey, two), 0);
    same!(call!(ZwDeleteKey, one), 0);
    // A handle of a deleted key can only be closed.
    let mut length = 0_u32;
    same!(call!(ZwQueryKey, again, 0, NULL, 0, &mut length), STATUS_KEY_DELETED);
    same!(call!(ZwDeleteKey, one), STATUS_KEY_DELETED);
    same!(create(one, b"Two", ALL, 0).0, STATUS_KEY_DELETED);
    same!(open(software, b"One", READ).0, STATUS_OBJECT_NAME_NOT_FOUND);
    // A new key with the same name is a different key.
    let (_, other, new) = create(software, b"One", ALL, 0);
    same!(new, 1);
    same!(call!(ZwDeleteKey, one), STATUS_KEY_DELETED);
    same!(call!(ZwDeleteKey, other), 0);
    for handle in [software, one, again, two, other] {
        close(handle);
    }
}

/// The results of a query for a key: the status, the length, and the numbers.
fn query(handle: PVOID, class: u64, room: u64) -> (NTSTATUS, u32, [u32; 16]) {
    let mut buffer = [0_u32; 16];
    let mut length = 0_u32;
    let status = call!(ZwQueryKey, handle, class, &mut buffer, room, &mut length);
    (status, length, buffer)
}

fn describing() {
    let (_, key, _) = create(NULL, br"\Registry\Machine\Software\Describe", ALL, 0);
    let (_, short, _) = create(key, b"B", ALL, 0);
    let mut handle = NULL;
    crate::names::with_string(b"class", |class| {
        with_attributes(key, b"Alpha", 0x240, |attributes| {
            call!(ZwCreateKey, &mut handle, ALL, attributes, 0, class, 0, NULL)
        })
    });
    values::set(key, b"value", 4, &[1, 2, 3, 4]);
    // KEY_FULL_INFORMATION
    let (status, length, full) = query(key, 2, 64);
    same!((status, length) == (0, 44), true);
    same!(full[3], u32::MAX);
    same!(full[5..11] == [2, 10, 10, 1, 10, 4], true);
    let (status, length, full) = query(handle, 2, 64);
    same!((status, length) == (0, 54), true);
    same!((full[3], full[4]) == (44, 10), true);
    same!(query(handle, 2, 44).0, STATUS_BUFFER_OVERFLOW);
    same!(query(handle, 2, 43).0, STATUS_BUFFER_TOO_SMALL);
    // KEY_CACHED_INFORMATION
    let (status, length, cached) = query(key, 4, 64);
    same!((status, length) == (0, 40), true);
    same!(cached[3..9] == [2, 10, 1, 10, 4, 16], true);
    // KEY_NODE_INFORMATION: the class follows the name.
    let (status, length, node) = query(handle, 1, 64);
    same!((status, length) == (0, 46), true);
    same!(node[3..6] == [36, 10, 10], true);
    same!(query(key, 99, 64).0, STATUS_INVALID_PARAMETER);
    same!(query(pointer(0x4444), 0, 64).0, STATUS_INVALID_HANDLE);
    enumerating(key);
    for handle in [handle, short, key] {
        same!(call!(ZwDeleteKey, handle), 0);
        close(handle);
    }
}

/// Keys are enumerated in the order of their names.
fn enumerating(key: PVOID) {
    let mut buffer = [0_u8; 64];
    let mut length = 0_u32;
    for (index, name) in [b"Alpha".as_slice(), b"B"].iter().enumerate() {
        same!(call!(ZwEnumerateKey, key, index, 0, &mut buffer, 64, &mut length), 0);
        same!(length, 16 + 2 * name.len());
        same!(is_text(&buffer[16..length as usize], name), true);
    }
    let enumerate = |index: u64, class: u64, room: u64, length: &mut u32| {
        call!(ZwEnumerateKey, key, index, class, NULL, room, length)
    };
    same!(enumerate(2, 0, 0, &mut length), STATUS_NO_MORE_ENTRIES);
    same!(enumerate(0, 0, 0, &mut length), STATUS_BUFFER_TOO_SMALL);
    same!(length, 26);
    // Enumerating does not return a key's path.
    same!(enumerate(0, 3, 0, &mut length), STATUS_INVALID_PARAMETER);
}

/// Deletes the key of a link.
pub fn link() {
    create(NULL, br"\Registry\Machine\Software\Link", ALL, 2);
}

/// Opens a key with a name that is not in memory.
pub fn name_gone() {
    let (mut handle, mut attributes) = (NULL, [48_u64, 0, 0x10, 0x240, 0, 0]);
    call!(ZwOpenKey, &mut handle, READ, &mut attributes);
}
