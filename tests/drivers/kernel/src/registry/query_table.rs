//! The query tables of `RtlQueryRegistryValues`.

use core::ptr;

use wdk_sys::{
    NTSTATUS, PVOID, PWSTR, REG_BINARY as BINARY, REG_DWORD as DWORD, REG_MULTI_SZ as MULTI_SZ,
    REG_SZ as SZ, RTL_QUERY_REGISTRY_DELETE as DELETE, RTL_QUERY_REGISTRY_DIRECT as DIRECT,
    RTL_QUERY_REGISTRY_NOEXPAND as NO_EXPAND, RTL_QUERY_REGISTRY_NOVALUE as NO_VALUE,
    RTL_QUERY_REGISTRY_REQUIRED as REQUIRED, RTL_QUERY_REGISTRY_SUBKEY as SUBKEY,
    RTL_QUERY_REGISTRY_TABLE, RTL_QUERY_REGISTRY_TOPKEY as TOPKEY,
    RTL_QUERY_REGISTRY_TYPECHECK as TYPE_CHECK, STATUS_BUFFER_TOO_SMALL, STATUS_INVALID_HANDLE,
    STATUS_INVALID_PARAMETER, STATUS_OBJECT_NAME_NOT_FOUND, STATUS_OBJECT_TYPE_MISMATCH,
    STATUS_UNSUCCESSFUL,
};

use super::{
    common::{close, create, open},
    values::set,
};
use crate::{
    call::{NULL, at, call, pointer, same},
    names::{is_text, with_text},
};

/// The bit at which the type starts in the field for the default's type.
const TYPE_SHIFT: u32 = 24;

type Entry = RTL_QUERY_REGISTRY_TABLE;

/// The end of a table.
const END: Entry = Entry {
    QueryRoutine: None,
    Flags: 0,
    Name: ptr::null_mut(),
    EntryContext: NULL,
    DefaultType: 0,
    DefaultData: NULL,
    DefaultLength: 0,
};

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
    status: NTSTATUS,
}

/// `RTL_QUERY_REGISTRY_ROUTINE`.
unsafe extern "C" fn called(
    name: PWSTR,
    kind: u32,
    data: PVOID,
    length: u32,
    context: PVOID,
    entry_context: PVOID,
) -> NTSTATUS {
    // SAFETY: every query in this module passes its calls as the context.
    let calls = unsafe { &mut *context.cast::<Calls>() };
    same!(entry_context, 0x77);
    let first = if length == 0 {
        0
    } else {
        // SAFETY: the data are `length` bytes long.
        unsafe { *data.cast::<u8>() }
    };
    if let Some(slot) = calls.all.get_mut(calls.count) {
        *slot = Called { kind, length, has_name: !name.is_null(), first };
    }
    calls.count += 1;
    calls.status
}

/// Queries values of this service's `Parameters` with table entries.
fn query(entries: &[Entry], calls: &mut Calls) -> NTSTATUS {
    let mut table = [END; 6];
    table[..entries.len()].copy_from_slice(entries);
    let path = br"registry-table\Parameters";
    with_text(path, |path| call!(RtlQueryRegistryValues, 1, path, &mut table, calls, NULL))
}

/// Queries one value with an entry that has these flags.
fn one(name: &[u8], entry: Entry, calls: &mut Calls) -> NTSTATUS {
    with_text(name, |name| query(&[Entry { Name: name.cast(), ..entry }], calls))
}

/// Returns an entry that calls the routine.
fn calling(flags: u32) -> Entry {
    Entry { QueryRoutine: Some(called), Flags: flags, EntryContext: pointer(0x77), ..END }
}

/// Returns an entry that stores a value of a type.
const fn storing<T>(flags: u32, kind: u32, to: &mut T) -> Entry {
    Entry {
        Flags: DIRECT | TYPE_CHECK | NO_EXPAND | flags,
        EntryContext: at(to),
        DefaultType: kind << TYPE_SHIFT,
        ..END
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
    let mut calls = Calls { status: STATUS_UNSUCCESSFUL, ..Calls::default() };
    same!(query(&[calling(0)], &mut calls), 0xC000_0001_u32);
    same!(calls.count, 1);
    let mut calls = Calls { status: STATUS_BUFFER_TOO_SMALL, ..Calls::default() };
    same!(query(&[calling(NO_EXPAND)], &mut calls), 0);
    same!(calls.count, 5);
}

fn defaults() {
    let mut calls = Calls::default();
    same!(one(b"Missing", calling(0), &mut calls), 0);
    same!(calls.count, 0);
    same!(one(b"Missing", calling(REQUIRED), &mut calls), STATUS_OBJECT_NAME_NOT_FOUND);
    let mut number = 5_u32;
    let default = Entry {
        DefaultType: DWORD,
        DefaultData: at(&mut number),
        DefaultLength: 4,
        ..calling(REQUIRED)
    };
    same!(one(b"Missing", default, &mut calls), 0);
    same!((calls.count, calls.all[0].first) == (1, 5), true);
    // The length of a string can be omitted.
    let mut calls = Calls::default();
    with_text(b"abc", |text| {
        let default = Entry { DefaultType: SZ, DefaultData: text, ..calling(0) };
        same!(one(b"Missing", default, &mut calls), 0);
    });
    same!((calls.all[0].kind, calls.all[0].length) == (SZ, 8), true);
    let mut calls = Calls::default();
    with_text(b"ab\0c", |list| {
        let default = Entry { DefaultType: MULTI_SZ, DefaultData: list, ..calling(0) };
        same!(one(b"Missing", default, &mut calls), 0);
    });
    same!((calls.count, calls.all[1].first) == (2, b'c'), true);
    // A default is also stored directly.
    let mut stored = 0_u32;
    let default = Entry {
        DefaultType: DWORD << TYPE_SHIFT | DWORD,
        DefaultData: at(&mut number),
        DefaultLength: 4,
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
    same!(one(b"Text", storing(0, DWORD, &mut number), &mut calls), STATUS_OBJECT_TYPE_MISMATCH);
    same!(
        one(b"Missing", storing(REQUIRED, DWORD, &mut number), &mut calls),
        STATUS_OBJECT_NAME_NOT_FOUND
    );
    // If there is no type check, only keys that no one but the system can write are allowed.
    let unchecked = Entry { Flags: DIRECT, DefaultType: 0, ..storing(0, DWORD, &mut number) };
    same!(one(b"Number", unchecked, &mut calls), 0);
    // Longer data are preceded by their size. A negative size requests only the data.
    let mut bytes = [-6_i32, 0];
    same!(one(b"Bytes", storing(0, BINARY, &mut bytes), &mut calls), 0);
    same!(bytes[0].cast_unsigned() == 0x0403_0201 && bytes[1] == 0x0605, true);
    let mut bytes = [-5_i32, 0];
    same!(one(b"Bytes", storing(0, BINARY, &mut bytes), &mut calls), STATUS_BUFFER_TOO_SMALL);
    let mut bytes = [14_u32, 0, 0, 0];
    same!(one(b"Bytes", storing(0, BINARY, &mut bytes), &mut calls), 0);
    same!(bytes == [6, BINARY, 0x0403_0201, 0x0605], true);
    let mut bytes = [13_u32, 0, 0, 0];
    same!(one(b"Bytes", storing(0, BINARY, &mut bytes), &mut calls), STATUS_BUFFER_TOO_SMALL);
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
    same!(one(b"Text", storing(0, SZ, &mut string), &mut calls), STATUS_BUFFER_TOO_SMALL);
    // If the string has no buffer, one is allocated.
    let mut string = [0_u64; 2];
    same!(one(b"List", storing(0, MULTI_SZ, &mut string), &mut calls), 0);
    same!(string[0], 0x000C_000A);
    // SAFETY: the routine allocated the buffer with this size.
    let bytes = unsafe { core::slice::from_raw_parts(string[1] as *const u8, 12) };
    same!(is_text(bytes, b"a\0bc\0\0"), true);
    call!(RtlFreeUnicodeString, &mut string);
    // The strings of a list are not stored one after another.
    let split = Entry { Flags: DIRECT | TYPE_CHECK, ..storing(0, MULTI_SZ, &mut string) };
    same!(one(b"List", split, &mut calls), STATUS_INVALID_PARAMETER);
    // The stand-in kernel has no system environment; it uses the driver's environment.
    let mut string = [32_u64 << 16, buffer.as_mut_ptr() as u64];
    let mut table = [Entry { Flags: DIRECT | TYPE_CHECK, ..storing(0, 2, &mut string) }, END];
    let status = with_text(b"A=1\0X=right\0", |environment| {
        with_text(b"Expand", |name| {
            table[0].Name = name.cast();
            with_text(br"registry-table\Parameters", |path| {
                call!(RtlQueryRegistryValuesEx, 1, path, &mut table, NULL, environment)
            })
        })
    });
    same!(status, 0);
    same!(is_text(&buffer[..12], b"right\0"), true);
}

fn subkeys() {
    let (_, parameters) = open(
        NULL,
        br"\Registry\Machine\System\CurrentControlSet\Services\registry-table\Parameters",
        0xF_003F,
    );
    let (_, below, _) = create(parameters, b"Below", 0xF_003F, 0);
    set(below, b"Number", 4, &[7, 0, 0, 0]);
    let (mut inner, mut outer) = (0_u32, 0_u32);
    let mut calls = Calls::default();
    with_text(b"Number", |number| {
        with_text(b"Below", |below| {
            let enter = Entry { Flags: SUBKEY, Name: below.cast(), ..END };
            let entries = [
                enter,
                Entry { Name: number.cast(), ..storing(0, DWORD, &mut inner) },
                Entry { Name: number.cast(), ..storing(TOPKEY, DWORD, &mut outer) },
                // The path of a second key also starts at the top, and that key's values can be
                // reported.
                Entry { Name: below.cast(), ..calling(SUBKEY) },
            ];
            same!(query(&entries, &mut calls), 0);
        });
    });
    same!((inner, outer, calls.count) == (7, 42, 1), true);
    let missing = Entry { Flags: SUBKEY, ..END };
    same!(one(b"Missing", missing, &mut calls), STATUS_OBJECT_NAME_NOT_FOUND);
    call!(ZwDeleteKey, below);
    close(below);
    // The key has no values.
    let (_, empty, _) = create(parameters, b"Empty", 0xF_003F, 0);
    let all = Entry {
        QueryRoutine: Some(called),
        Flags: SUBKEY | REQUIRED,
        EntryContext: pointer(0x77),
        ..END
    };
    same!(one(b"Empty", all, &mut calls), STATUS_OBJECT_NAME_NOT_FOUND);
    call!(ZwDeleteKey, empty);
    close(empty);
    close(parameters);
}

fn deleting() {
    let path = br"\Registry\Machine\System\CurrentControlSet\Services\registry-table\Parameters";
    let (_, key) = open(NULL, path, 0xF_003F);
    set(key, b"Once", 4, &[9, 0, 0, 0]);
    let mut number = 0_u32;
    let mut calls = Calls::default();
    same!(one(b"Once", storing(DELETE, DWORD, &mut number), &mut calls), 0);
    same!(number, 9);
    same!(
        one(b"Once", storing(REQUIRED, DWORD, &mut number), &mut calls),
        STATUS_OBJECT_NAME_NOT_FOUND
    );
    let (_, below, _) = create(key, b"Below", 0xF_003F, 0);
    for name in [b"a", b"b", b"c"] {
        set(below, name, 4, &[1, 0, 0, 0]);
    }
    let every = calling(SUBKEY | DELETE);
    same!(one(b"Below", every, &mut calls), 0);
    same!(calls.count, 3);
    same!(one(b"Below", every, &mut calls), 0);
    same!(calls.count, 3);
    call!(ZwDeleteKey, below);
    close(below);
    close(key);
}

fn mistakes() {
    let mut calls = Calls::default();
    let mut number = 0_u32;
    // The entry requires a name but no routine.
    same!(query(&[storing(0, DWORD, &mut number)], &mut calls), STATUS_INVALID_PARAMETER);
    let both = Entry { QueryRoutine: Some(called), ..storing(0, DWORD, &mut number) };
    same!(one(b"Number", both, &mut calls), STATUS_INVALID_PARAMETER);
    let neither = END;
    same!(one(b"Number", neither, &mut calls), STATUS_INVALID_PARAMETER);
    let nameless = Entry { Flags: SUBKEY, ..END };
    same!(query(&[nameless], &mut calls), STATUS_INVALID_PARAMETER);
    same!(calls.count, 0);
    let mut table = [END];
    let missing = with_text(b"nobody", |path| {
        call!(RtlQueryRegistryValues, 0x8000_0001_u32, path, &mut table, NULL, NULL)
    });
    same!(missing, STATUS_OBJECT_NAME_NOT_FOUND);
}

fn by_handle() {
    let path = br"\Registry\Machine\System\CurrentControlSet\Services\registry-table\Parameters";
    let (_, key) = open(NULL, path, 1);
    let mut number = 0_u32;
    let mut table = [storing(0, DWORD, &mut number), END];
    let status = with_text(b"Number", |name| {
        table[0].Name = name.cast();
        call!(RtlQueryRegistryValues, 0x4000_0000, key, &mut table, NULL, NULL)
    });
    same!((status, number) == (0, 42), true);
    close(key);
    let closed = call!(RtlQueryRegistryValues, 0x4000_0000, key, &mut table, NULL, NULL);
    same!(closed, STATUS_INVALID_HANDLE);
}

/// Stores a value from a key that users can write, without checking the value's type.
pub fn unchecked() {
    let mut number = 7_u32;
    with_text(b"Number", |name| {
        call!(RtlWriteRegistryValue, 5, NULL, name, 4, &mut number, 4);
        let mut table =
            [Entry { Flags: DIRECT, Name: name.cast(), EntryContext: at(&mut number), ..END }, END];
        call!(RtlQueryRegistryValues, 5, NULL, &mut table, NULL, NULL);
    });
}
