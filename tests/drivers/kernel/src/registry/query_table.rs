//! The query tables of `RtlQueryRegistryValues`.

use core::ffi::c_void;

use super::{
    common::{BUFFER_TOO_SMALL, INVALID_PARAMETER, NOT_FOUND, TYPE_MISMATCH, close, create, open},
    values::set,
};
use crate::{
    call::{Routine, at, call, low, same},
    names::{is_text, with_text},
};

/// `RTL_QUERY_REGISTRY_*`.
const SUBKEY: u32 = 0x1;
const TOPKEY: u32 = 0x2;
const REQUIRED: u32 = 0x4;
const NO_VALUE: u32 = 0x8;
const NO_EXPAND: u32 = 0x10;
const DIRECT: u32 = 0x20;
const DELETE: u32 = 0x40;
const TYPE_CHECK: u32 = 0x100;
const TYPE_SHIFT: u32 = 24;

const SZ: u32 = 1;
const DWORD: u32 = 4;
const BINARY: u32 = 3;
const MULTI_SZ: u32 = 7;

/// A table entry.
#[repr(C)]
#[derive(Clone, Copy)]
struct Entry {
    routine: u64,
    flags: u32,
    name: u64,
    context: u64,
    default_type: u32,
    default_data: u64,
    default_length: u32,
}

impl Entry {
    const END: Self = Self {
        routine: 0,
        flags: 0,
        name: 0,
        context: 0,
        default_type: 0,
        default_data: 0,
        default_length: 0,
    };
}

/// The arguments of the routine's calls, oldest first.
#[derive(Clone, Copy, Default)]
struct Called {
    kind: u32,
    length: u32,
    has_name: bool,
    first: u8,
}

#[derive(Default)]
struct Calls {
    all: [Called; 8],
    count: usize,
    /// The status that the routine returns.
    status: u32,
}

/// `RTL_QUERY_REGISTRY_ROUTINE`.
unsafe extern "C" fn called(
    name: *const u16,
    kind: u32,
    data: *const u8,
    length: u32,
    context: *mut c_void,
    entry_context: *mut c_void,
) -> i32 {
    // SAFETY: every query in this module passes its calls as the context.
    let calls = unsafe { &mut *context.cast::<Calls>() };
    same!(entry_context as u64, 0x77);
    let first = if length == 0 {
        0
    } else {
        // SAFETY: the data are `length` bytes long.
        unsafe { *data }
    };
    if let Some(slot) = calls.all.get_mut(calls.count) {
        *slot = Called { kind, length, has_name: !name.is_null(), first };
    }
    calls.count += 1;
    calls.status.cast_signed()
}

fn routine() -> u64 {
    called as *const c_void as u64
}

/// Queries values of this service's `Parameters` with table entries.
fn query(entries: &[Entry], calls: &mut Calls) -> u32 {
    let mut table = [Entry::END; 6];
    table[..entries.len()].copy_from_slice(entries);
    let path = br"registry-table\Parameters";
    low(with_text(path, |path| {
        call!("RtlQueryRegistryValues", 1, path, at(&mut table), at(calls), 0)
    }))
}

/// Queries one value with an entry that has these flags.
fn one(name: &[u8], entry: Entry, calls: &mut Calls) -> u32 {
    with_text(name, |name| query(&[Entry { name, ..entry }], calls))
}

/// Returns an entry that calls the routine.
fn calling(flags: u32) -> Entry {
    Entry { routine: routine(), flags, context: 0x77, ..Entry::END }
}

/// Returns an entry that stores a value of a type.
fn storing<T>(flags: u32, kind: u32, to: &mut T) -> Entry {
    Entry {
        flags: DIRECT | TYPE_CHECK | NO_EXPAND | flags,
        context: at(to),
        default_type: kind << TYPE_SHIFT,
        ..Entry::END
    }
}

/// Uses values that the test has set: `Number` is 42, `Text` is `hello`, `List` is `a` and `bc`,
/// `Bytes` is six bytes long, and `Expand` is `%X%`.
pub fn table() {
    routines();
    defaults();
    direct();
    texts();
    subkeys();
    deleting();
    mistakes();
    by_handle();
}

fn routines() {
    let mut calls = Calls::default();
    same!(one(b"number", calling(0), &mut calls), 0);
    same!(calls.count, 1);
    let call = calls.all[0];
    same!((call.kind, call.length, call.first) == (DWORD, 4, 42), true);
    same!(call.has_name, true);
    // Each string of a list is passed in its own call, unless the entry forbids this.
    let mut calls = Calls::default();
    same!(one(b"List", calling(0), &mut calls), 0);
    same!(calls.count, 2);
    same!(calls.all[0].kind == SZ && calls.all[0].length == 4, true);
    same!(calls.all[1].first == b'b' && calls.all[1].length == 6, true);
    let mut calls = Calls::default();
    same!(one(b"List", calling(NO_EXPAND), &mut calls), 0);
    same!((calls.count, calls.all[0].kind) == (1, MULTI_SZ), true);
    same!(calls.all[0].length, 12);
    let mut calls = Calls::default();
    same!(one(b"Expand", calling(0), &mut calls), 0);
    same!(calls.all[0].kind, SZ);
    let mut calls = Calls::default();
    same!(one(b"Expand", calling(NO_EXPAND), &mut calls), 0);
    same!(calls.all[0].kind, 2);
    // An entry without a name is called for all values, or once if there are no values.
    let mut calls = Calls::default();
    same!(query(&[calling(NO_EXPAND)], &mut calls), 0);
    same!(calls.count, 5);
    let mut calls = Calls::default();
    same!(query(&[calling(NO_VALUE)], &mut calls), 0);
    same!((calls.count, calls.all[0].has_name) == (1, false), true);
    // Every failure status that the routine returns ends the query, with one exception.
    let mut calls = Calls { status: 0xC000_0001, ..Calls::default() };
    same!(query(&[calling(0)], &mut calls), 0xC000_0001);
    same!(calls.count, 1);
    let mut calls = Calls { status: BUFFER_TOO_SMALL, ..Calls::default() };
    same!(query(&[calling(NO_EXPAND)], &mut calls), 0);
    same!(calls.count, 5);
}

fn defaults() {
    let mut calls = Calls::default();
    same!(one(b"Missing", calling(0), &mut calls), 0);
    same!(calls.count, 0);
    same!(one(b"Missing", calling(REQUIRED), &mut calls), NOT_FOUND);
    let mut number = 5_u32;
    let default = Entry {
        default_type: DWORD,
        default_data: at(&mut number),
        default_length: 4,
        ..calling(REQUIRED)
    };
    same!(one(b"Missing", default, &mut calls), 0);
    same!((calls.count, calls.all[0].first) == (1, 5), true);
    // The length of a string can be omitted.
    let mut calls = Calls::default();
    with_text(b"abc", |text| {
        let default = Entry { default_type: SZ, default_data: text, ..calling(0) };
        same!(one(b"Missing", default, &mut calls), 0);
    });
    same!((calls.all[0].kind, calls.all[0].length) == (SZ, 8), true);
    let mut calls = Calls::default();
    with_text(b"ab\0c", |list| {
        let default = Entry { default_type: MULTI_SZ, default_data: list, ..calling(0) };
        same!(one(b"Missing", default, &mut calls), 0);
    });
    same!((calls.count, calls.all[1].first) == (2, b'c'), true);
    // A default is also stored directly.
    let mut stored = 0_u32;
    let default = Entry {
        default_type: DWORD << TYPE_SHIFT | DWORD,
        default_data: at(&mut number),
        default_length: 4,
        ..storing(0, DWORD, &mut stored)
    };
    same!(one(b"Missing", default, &mut Calls::default()), 0);
    same!(stored, 5);
}

fn direct() {
    let mut calls = Calls::default();
    let mut number = [0_u32; 2];
    same!(one(b"Number", storing(REQUIRED, DWORD, &mut number), &mut calls), 0);
    same!(number == [42, 0], true);
    same!(one(b"Text", storing(0, DWORD, &mut number), &mut calls), TYPE_MISMATCH);
    same!(one(b"Missing", storing(REQUIRED, DWORD, &mut number), &mut calls), NOT_FOUND);
    // If there is no type check, only keys that no one but the system can write are allowed.
    let unchecked = Entry { flags: DIRECT, default_type: 0, ..storing(0, DWORD, &mut number) };
    same!(one(b"Number", unchecked, &mut calls), 0);
    // Longer data are preceded by their size. A negative size requests only the data.
    let mut bytes = [-6_i32, 0];
    same!(one(b"Bytes", storing(0, BINARY, &mut bytes), &mut calls), 0);
    same!(bytes[0].cast_unsigned() == 0x0403_0201 && bytes[1] == 0x0605, true);
    let mut bytes = [-5_i32, 0];
    same!(one(b"Bytes", storing(0, BINARY, &mut bytes), &mut calls), BUFFER_TOO_SMALL);
    let mut bytes = [14_u32, 0, 0, 0];
    same!(one(b"Bytes", storing(0, BINARY, &mut bytes), &mut calls), 0);
    same!(bytes == [6, BINARY, 0x0403_0201, 0x0605], true);
    let mut bytes = [13_u32, 0, 0, 0];
    same!(one(b"Bytes", storing(0, BINARY, &mut bytes), &mut calls), BUFFER_TOO_SMALL);
    same!(bytes[1], 0);
}

fn texts() {
    let mut calls = Calls::default();
    let mut buffer = [0_u8; 32];
    let mut string = [12_u64 << 16, buffer.as_mut_ptr() as u64];
    same!(one(b"Text", storing(0, SZ, &mut string), &mut calls), 0);
    same!(string[0], 0x000C_000A);
    same!(is_text(&buffer[..12], b"hello\0"), true);
    let mut string = [11_u64 << 16, buffer.as_mut_ptr() as u64];
    same!(one(b"Text", storing(0, SZ, &mut string), &mut calls), BUFFER_TOO_SMALL);
    // If the string has no buffer, one is allocated.
    let mut string = [0_u64; 2];
    same!(one(b"List", storing(0, MULTI_SZ, &mut string), &mut calls), 0);
    same!(string[0], 0x000C_000A);
    // SAFETY: the routine allocated the buffer with this size.
    let bytes = unsafe { core::slice::from_raw_parts(string[1] as *const u8, 12) };
    same!(is_text(bytes, b"a\0bc\0\0"), true);
    call!("RtlFreeUnicodeString", at(&mut string));
    // The strings of a list are not stored one after another.
    let split = Entry { flags: DIRECT | TYPE_CHECK, ..storing(0, MULTI_SZ, &mut string) };
    same!(one(b"List", split, &mut calls), INVALID_PARAMETER);
    // The stand-in kernel has no system environment; it uses the driver's environment.
    let mut string = [32_u64 << 16, buffer.as_mut_ptr() as u64];
    let mut table =
        [Entry { flags: DIRECT | TYPE_CHECK, ..storing(0, 2, &mut string) }, Entry::END];
    let status = with_text(b"A=1\0X=right\0", |environment| {
        with_text(b"Expand", |name| {
            table[0].name = name;
            with_text(br"registry-table\Parameters", |path| {
                call!("RtlQueryRegistryValuesEx", 1, path, at(&mut table), 0, environment)
            })
        })
    });
    same!(low(status), 0);
    same!(is_text(&buffer[..12], b"right\0"), true);
}

fn subkeys() {
    let (_, parameters) = open(
        0,
        br"\Registry\Machine\System\CurrentControlSet\Services\registry-table\Parameters",
        0xF_003F,
    );
    let (_, below, _) = create(parameters, b"Below", 0xF_003F, 0);
    set(below, b"Number", 4, &[7, 0, 0, 0]);
    let (mut inner, mut outer) = (0_u32, 0_u32);
    let mut calls = Calls::default();
    with_text(b"Number", |number| {
        with_text(b"Below", |below| {
            let enter = Entry { flags: SUBKEY, name: below, ..Entry::END };
            let entries = [
                enter,
                Entry { name: number, ..storing(0, DWORD, &mut inner) },
                Entry { name: number, ..storing(TOPKEY, DWORD, &mut outer) },
                // The path of a second key also starts at the top, and that key's values can be
                // reported.
                Entry { name: below, ..calling(SUBKEY) },
            ];
            same!(query(&entries, &mut calls), 0);
        });
    });
    same!((inner, outer, calls.count) == (7, 42, 1), true);
    let missing = Entry { flags: SUBKEY, ..Entry::END };
    same!(one(b"Missing", missing, &mut calls), NOT_FOUND);
    call!("ZwDeleteKey", below);
    close(below);
    // The key has no values.
    let (_, empty, _) = create(parameters, b"Empty", 0xF_003F, 0);
    let all = Entry { routine: routine(), flags: SUBKEY | REQUIRED, context: 0x77, ..Entry::END };
    same!(one(b"Empty", all, &mut calls), NOT_FOUND);
    call!("ZwDeleteKey", empty);
    close(empty);
    close(parameters);
}

fn deleting() {
    let path = br"\Registry\Machine\System\CurrentControlSet\Services\registry-table\Parameters";
    let (_, key) = open(0, path, 0xF_003F);
    set(key, b"Once", 4, &[9, 0, 0, 0]);
    let mut number = 0_u32;
    let mut calls = Calls::default();
    same!(one(b"Once", storing(DELETE, DWORD, &mut number), &mut calls), 0);
    same!(number, 9);
    same!(one(b"Once", storing(REQUIRED, DWORD, &mut number), &mut calls), NOT_FOUND);
    let (_, below, _) = create(key, b"Below", 0xF_003F, 0);
    for name in [b"a", b"b", b"c"] {
        set(below, name, 4, &[1, 0, 0, 0]);
    }
    let every = calling(SUBKEY | DELETE);
    same!(one(b"Below", every, &mut calls), 0);
    same!(calls.count, 3);
    same!(one(b"Below", every, &mut calls), 0);
    same!(calls.count, 3);
    call!("ZwDeleteKey", below);
    close(below);
    close(key);
}

fn mistakes() {
    let mut calls = Calls::default();
    let mut number = 0_u32;
    // The entry requires a name but no routine.
    same!(query(&[storing(0, DWORD, &mut number)], &mut calls), INVALID_PARAMETER);
    let both = Entry { routine: routine(), ..storing(0, DWORD, &mut number) };
    same!(one(b"Number", both, &mut calls), INVALID_PARAMETER);
    let neither = Entry::END;
    same!(one(b"Number", neither, &mut calls), INVALID_PARAMETER);
    let nameless = Entry { flags: SUBKEY, ..Entry::END };
    same!(query(&[nameless], &mut calls), INVALID_PARAMETER);
    same!(calls.count, 0);
    let mut table = [Entry::END];
    let missing = with_text(b"nobody", |path| {
        call!("RtlQueryRegistryValues", 0x8000_0001_u64, path, at(&mut table), 0, 0)
    });
    same!(low(missing), NOT_FOUND);
}

fn by_handle() {
    let path = br"\Registry\Machine\System\CurrentControlSet\Services\registry-table\Parameters";
    let (_, key) = open(0, path, 1);
    let mut number = 0_u32;
    let mut table = [storing(0, DWORD, &mut number), Entry::END];
    let query = Routine::find("RtlQueryRegistryValues");
    let status = with_text(b"Number", |name| {
        table[0].name = name;
        query.call(&[0x4000_0000, key, at(&mut table), 0, 0])
    });
    same!((low(status), number) == (0, 42), true);
    close(key);
    let closed = query.call(&[0x4000_0000, key, at(&mut table), 0, 0]);
    same!(low(closed), super::common::INVALID_HANDLE);
}

/// Stores a value from a key that users can write, without checking the value's type.
pub fn unchecked() {
    let mut number = 7_u32;
    with_text(b"Number", |name| {
        call!("RtlWriteRegistryValue", 5, 0, name, 4, at(&mut number), 4);
        let mut table =
            [Entry { flags: DIRECT, name, context: at(&mut number), ..Entry::END }, Entry::END];
        call!("RtlQueryRegistryValues", 5, 0, at(&mut table), 0, 0);
    });
}
