//! Keys that are accessed by handle.

use core::sync::atomic::{AtomicU64, Ordering};

use super::{
    common::{
        ALL, BUFFER_OVERFLOW, BUFFER_TOO_SMALL, CANNOT_DELETE, CHILD_MUST_BE_VOLATILE,
        INVALID_HANDLE, INVALID_PARAMETER, KEY_DELETED, NO_MORE_ENTRIES, NOT_FOUND,
        PATH_SYNTAX_BAD, READ, SOFTWARE, TYPE_MISMATCH, close, create, open,
    },
    values,
};
use crate::{
    call::{at, call, low, same},
    names::{is_text, with_attributes},
};

/// The address of the registry path that `DriverEntry` received.
static PATH: AtomicU64 = AtomicU64::new(0);

/// Stores the registry path, which is valid during `DriverEntry`.
pub fn note_path(path: u64) {
    PATH.store(path, Ordering::Relaxed);
}

/// Opens the key at the registry path.
fn open_service() -> u64 {
    let mut handle = 0_u64;
    let mut attributes = [48, 0, PATH.load(Ordering::Relaxed), 0x240, 0, 0];
    same!(low(call!("ZwOpenKey", at(&mut handle), ALL, at(&mut attributes))), 0);
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
}

/// A key's path is the system's own name for the key.
fn name(service: u64) {
    const NAME: &[u8] = br"\REGISTRY\MACHINE\SYSTEM\ControlSet001\Services\registry";
    let mut buffer = [0_u8; 200];
    let mut length = 0_u32;
    let status = call!("ZwQueryKey", service, 3, at(&mut buffer), 200, at(&mut length));
    same!(low(status), 0);
    same!(length, 4 + 2 * NAME.len());
    same!(buffer[0], 2 * NAME.len());
    same!(is_text(&buffer[4..length as usize], NAME), true);
    let status = call!("ZwQueryKey", service, 3, at(&mut buffer), 8, at(&mut length));
    same!(low(status), BUFFER_OVERFLOW);
    let status = call!("ZwQueryKey", service, 3, 0, 0, at(&mut length));
    same!(low(status), BUFFER_TOO_SMALL);
    same!(length, 4 + 2 * NAME.len());
}

fn opening(service: u64) {
    same!(open(service, b"Missing", READ).0, NOT_FOUND);
    same!(open(service, br"Missing\Too", READ).0, NOT_FOUND);
    same!(open(0, br"Registry\Machine", READ).0, PATH_SYNTAX_BAD);
    same!(open(service, br"\Parameters", READ).0, PATH_SYNTAX_BAD);
    same!(open(0, br"\Nothing", READ).0, NOT_FOUND);
    same!(open(0, br"\Nothing\Here", READ).0, 0xC000_003A);
    same!(open(0x4444, b"Parameters", READ).0, INVALID_HANDLE);
    // If the name is empty, the root is opened again. Rights are checked only for calls from user
    // mode.
    let (status, again) = open(service, b"", 1);
    same!(status, 0);
    same!(low(call!("ZwDeleteKey", again)), CANNOT_DELETE);
    close(again);
    let mut event = 0_u64;
    call!("ZwCreateEvent", at(&mut event), 0x1F_0003, 0, 0, 0);
    same!(open(event, b"Parameters", READ).0, TYPE_MISMATCH);
    same!(low(call!("ZwFlushKey", event)), TYPE_MISMATCH);
    close(event);
    same!(low(call!("ZwFlushKey", service)), 0);
    let (mut handle, mut attributes) = (0_u64, [47_u64, 0, 0, 0x240, 0, 0]);
    let short = call!("ZwOpenKey", at(&mut handle), READ, at(&mut attributes));
    same!(low(short), INVALID_PARAMETER);
    with_attributes(service, b"Parameters", 0x240, |attributes| {
        let with = |options: u64, handle: &mut u64| {
            low(call!("ZwOpenKeyEx", at(handle), READ, attributes, options))
        };
        same!(with(1, &mut handle), INVALID_PARAMETER);
        same!(with(0, &mut handle), 0);
    });
    close(handle);
}

fn creating() {
    let (_, software) = open(0, SOFTWARE, ALL);
    same!(create(software, br"One\Two", ALL, 0).0, NOT_FOUND);
    same!(create(0, br"\Registry\Machine\New", ALL, 0).0, INVALID_PARAMETER);
    same!(create(software, b"One", ALL, 0x20).0, INVALID_PARAMETER);
    let (status, one, new) = create(software, b"One", ALL, 0);
    same!((status, new) == (0, 1), true);
    let (status, again, existing) = create(software, b"ONE", READ, 0);
    same!((status, existing) == (0, 2), true);
    // The parent was opened for reading, which does not restrict drivers.
    let (status, other, _) = create(again, b"Other", READ, 0);
    same!(status, 0);
    same!(low(call!("ZwDeleteKey", other)), 0);
    close(other);
    let (status, two, _) = create(one, b"Two", ALL, 1);
    same!(status, 0);
    same!(create(two, b"Three", ALL, 0).0, CHILD_MUST_BE_VOLATILE);
    same!(low(call!("ZwDeleteKey", again)), CANNOT_DELETE);
    same!(low(call!("ZwDeleteKey", one)), CANNOT_DELETE);
    same!(low(call!("ZwDeleteKey", two)), 0);
    same!(low(call!("ZwDeleteKey", one)), 0);
    // A handle of a deleted key can only be closed.
    let mut length = 0_u32;
    same!(low(call!("ZwQueryKey", again, 0, 0, 0, at(&mut length))), KEY_DELETED);
    same!(low(call!("ZwDeleteKey", one)), KEY_DELETED);
    same!(create(one, b"Two", ALL, 0).0, KEY_DELETED);
    same!(open(software, b"One", READ).0, NOT_FOUND);
    // A new key with the same name is a different key.
    let (_, other, new) = create(software, b"One", ALL, 0);
    same!(new, 1);
    same!(low(call!("ZwDeleteKey", one)), KEY_DELETED);
    same!(low(call!("ZwDeleteKey", other)), 0);
    for handle in [software, one, again, two, other] {
        close(handle);
    }
}

/// The results of a query for a key: the status, the length, and the numbers.
fn query(handle: u64, class: u64, room: u64) -> (u32, u32, [u32; 16]) {
    let mut buffer = [0_u32; 16];
    let mut length = 0_u32;
    let status = call!("ZwQueryKey", handle, class, at(&mut buffer), room, at(&mut length));
    (low(status), length, buffer)
}

fn describing() {
    let (_, key, _) = create(0, br"\Registry\Machine\Software\Describe", ALL, 0);
    let (_, short, _) = create(key, b"B", ALL, 0);
    let mut handle = 0_u64;
    crate::names::with_string(b"class", |class| {
        with_attributes(key, b"Alpha", 0x240, |attributes| {
            call!("ZwCreateKey", at(&mut handle), ALL, attributes, 0, class, 0, 0)
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
    same!(query(handle, 2, 44).0, BUFFER_OVERFLOW);
    same!(query(handle, 2, 43).0, BUFFER_TOO_SMALL);
    // KEY_CACHED_INFORMATION
    let (status, length, cached) = query(key, 4, 64);
    same!((status, length) == (0, 40), true);
    same!(cached[3..9] == [2, 10, 1, 10, 4, 16], true);
    // KEY_NODE_INFORMATION: the class follows the name.
    let (status, length, node) = query(handle, 1, 64);
    same!((status, length) == (0, 46), true);
    same!(node[3..6] == [36, 10, 10], true);
    same!(query(key, 99, 64).0, INVALID_PARAMETER);
    same!(query(0x4444, 0, 64).0, INVALID_HANDLE);
    enumerating(key);
    for handle in [handle, short, key] {
        same!(low(call!("ZwDeleteKey", handle)), 0);
        close(handle);
    }
}

/// Keys are enumerated in the order of their names.
fn enumerating(key: u64) {
    let mut buffer = [0_u8; 64];
    let mut length = 0_u32;
    for (index, name) in [b"Alpha".as_slice(), b"B"].iter().enumerate() {
        let status = call!("ZwEnumerateKey", key, index, 0, at(&mut buffer), 64, at(&mut length));
        same!(low(status), 0);
        same!(length, 16 + 2 * name.len());
        same!(is_text(&buffer[16..length as usize], name), true);
    }
    let enumerate = |index: u64, class: u64, room: u64, length: &mut u32| {
        low(call!("ZwEnumerateKey", key, index, class, 0, room, at(length)))
    };
    same!(enumerate(2, 0, 0, &mut length), NO_MORE_ENTRIES);
    same!(enumerate(0, 0, 0, &mut length), BUFFER_TOO_SMALL);
    same!(length, 26);
    // Enumerating does not return a key's path.
    same!(enumerate(0, 3, 0, &mut length), INVALID_PARAMETER);
}

/// Deletes the key of a link.
pub fn link() {
    create(0, br"\Registry\Machine\Software\Link", ALL, 2);
}

/// Opens a key with a name that is not in memory.
pub fn name_gone() {
    let (mut handle, mut attributes) = (0_u64, [48_u64, 0, 0x10, 0x240, 0, 0]);
    call!("ZwOpenKey", at(&mut handle), READ, at(&mut attributes));
}
