//! Named objects: directories, links, sections and processes.

use core::{
    ffi::c_void,
    sync::atomic::{AtomicU32, Ordering},
};

use crate::{
    call::{Routine, address, at, boolean, call, driver, low, same},
    names::{is_text, with_attributes, with_string},
    objects::{Object, SUCCESS, TIMEOUT},
    threads,
};

const NOT_FOUND: u32 = 0xC000_0034;
const PATH_NOT_FOUND: u32 = 0xC000_003A;
const COLLISION: u32 = 0xC000_0035;
const TYPE_MISMATCH: u32 = 0xC000_0024;
const LENGTH_MISMATCH: u32 = 0xC000_0004;
const TOO_SMALL: u32 = 0xC000_0023;
const INVALID_HANDLE: u32 = 0xC000_0008;
const INVALID_PARAMETER: u32 = 0xC000_000D;
const INVALID_PARAMETER_MIX: u32 = 0xC000_0030;
const INVALID_CID: u32 = 0xC000_000B;

/// `OBJ_PERMANENT`, `OBJ_CASE_INSENSITIVE` and `OBJ_OPENIF`.
const PERMANENT: u64 = 0x10;
const PLAIN: u64 = 0x40;
const OPEN_IF: u64 = 0xC0;

const CURRENT: u64 = u64::MAX;

pub fn run() {
    drivers();
    directories();
    types();
    lists();
    links();
    query_objects();
    sections();
    processes();
    waits();
    processors();
    stacks();
}

/// Opens or creates an object with a routine whose parameters are a handle's address, rights and
/// attributes.
fn by_name(routine: &str, root: u64, name: &[u8], flags: u64, more: &[u64]) -> (u32, u64) {
    let mut handle = 0x5555_u64;
    let mut arguments = [at(&mut handle), 0x000F_0001, 0, 0, 0, 0, 0];
    arguments[3..3 + more.len()].copy_from_slice(more);
    let status = with_attributes(root, name, flags, |attributes| {
        arguments[2] = attributes;
        Routine::find(routine).call(&arguments)
    });
    (low(status), handle)
}

fn close(handle: u64) {
    same!(low(call!("ZwClose", handle)), 0);
}

/// Returns the object type to which an exported variable points.
pub fn kind(variable: &str) -> u64 {
    // SAFETY: the variable is exported, and points to a type.
    unsafe { *(Routine::find(variable).address() as *const u64) }
}

/// References an object by its name. Returns the status and the object.
fn reference(name: &[u8], kind: u64) -> (u32, u64) {
    let mut object = 0_u64;
    let status = with_string(name, |name| {
        call!("ObReferenceObjectByName", name, PLAIN, 0, 0, kind, 0, 0, at(&mut object))
    });
    (low(status), object)
}

/// Checks the name of an object.
pub fn is_named(object: u64, name: &[u8]) -> bool {
    let (mut buffer, mut needed) = ([0_u64; 32], 0_u32);
    let size = 16 + if name.is_empty() { 0 } else { 2 * name.len() as u32 + 2 };
    let to = at(&mut buffer);
    let short = low(call!("ObQueryNameString", object, 0, 0, at(&mut needed)));
    same!(short, LENGTH_MISMATCH);
    same!(needed, size);
    // The I/O manager warns of a file's name that does not fit.
    let of_file = name.starts_with(br"\Device\HarddiskVolume1\");
    let expected = if of_file { 0x8000_0005 } else { LENGTH_MISMATCH };
    same!(low(call!("ObQueryNameString", object, to, size - 1, at(&mut needed))), expected);
    same!(low(call!("ObQueryNameString", object, to, size, at(&mut needed))), 0);
    let length = 2 * name.len() as u64;
    let room = if name.is_empty() { 0 } else { length + 2 };
    same!(buffer[0], length | room << 16);
    same!(buffer[1], if name.is_empty() { 0 } else { to + 16 });
    // SAFETY: the name follows the string in the buffer.
    let bytes = unsafe { core::slice::from_raw_parts((to + 16) as *const u8, 2 * name.len()) };
    is_text(bytes, name)
}

fn drivers() {
    const NAME: &[u8] = br"\driver\NAMESPACE";
    let driver_type = kind("IoDriverObjectType");
    same!(reference(NAME, driver_type) == (0, driver()), true);
    same!(is_named(driver(), br"\Driver\namespace"), true);
    call!("ObfDereferenceObject", driver());
    same!(reference(NAME, kind("IoFileObjectType")).0, TYPE_MISMATCH);
    same!(reference(br"\Driver\missing", driver_type).0, NOT_FOUND);
    same!(reference(br"\Missing\driver", driver_type).0, PATH_NOT_FOUND);
    same!(reference(b"Driver", 0).0, 0xC000_003B_u32);
    same!(reference(br"\Driver\", 0).0, 0xC000_0033_u32);
    same!(reference(b"", 0).0, 0xC000_0033_u32);
    let mut device = 0_u64;
    let status = with_string(br"\Device\Namespace", |name| {
        call!("IoCreateDevice", driver(), 0, name, 0x22, 0, 0, at(&mut device))
    });
    same!(low(status), 0);
    same!(is_named(device, br"\Device\Namespace"), true);
    // A device is opened instead.
    same!(reference(br"\Device\Namespace", kind("IoDeviceObjectType")).0, TYPE_MISMATCH);
    call!("IoDeleteDevice", device);
    same!(is_named(call!("PsGetCurrentProcess"), b""), true);
}

fn directories() {
    const CREATE: &str = "ZwCreateDirectoryObject";
    const OPEN: &str = "ZwOpenDirectoryObject";
    same!(by_name(OPEN, 0, br"\Mine", PLAIN, &[]) == (NOT_FOUND, 0), true);
    same!(by_name(CREATE, 0, br"\No\Mine", PLAIN, &[]).0, PATH_NOT_FOUND);
    let (status, mine) = by_name(CREATE, 0, br"\Mine", PLAIN, &[]);
    same!(status, 0);
    same!(by_name(CREATE, 0, br"\MINE", PLAIN, &[]).0, COLLISION);
    let (status, again) = by_name(CREATE, 0, br"\MINE", OPEN_IF, &[]);
    same!(status, 0x4000_0000_u32);
    close(again);
    same!(by_name(CREATE, 0, br"\Callback", PLAIN, &[]).0, COLLISION);
    // The name is relative to a directory's handle.
    let (status, inner) = by_name(CREATE, mine, b"Inner", PLAIN, &[]);
    same!(status, 0);
    let (status, event) = by_name("ZwCreateEvent", inner, b"Event", PLAIN, &[1, 0]);
    same!(status, 0);
    same!(by_name("ZwOpenEvent", 0, br"\Mine\Inner\EVENT", PLAIN, &[]).0, 0);
    let (status, object) = reference(br"\mine\inner\event", kind("ExEventObjectType"));
    same!(status, 0);
    same!(is_named(object, br"\Mine\Inner\Event"), true);
    call!("ObfDereferenceObject", object);
    same!(by_name("ZwOpenEvent", event, b"Event", PLAIN, &[]).0, TYPE_MISMATCH);
    same!(by_name("ZwOpenEvent", inner, br"\Event", PLAIN, &[]).0, 0xC000_003B_u32);
    for handle in [event, inner, mine] {
        close(handle);
    }
    same!(by_name(OPEN, 0, br"\Mine", PLAIN, &[]).0, NOT_FOUND);
    // A permanent object stays until it is made temporary.
    let (status, kept) = by_name(CREATE, 0, br"\Kept", PLAIN | PERMANENT, &[]);
    same!(status, 0);
    close(kept);
    let (status, kept) = by_name(OPEN, 0, br"\kept", PLAIN, &[]);
    same!(status, 0);
    same!(low(call!("ZwMakeTemporaryObject", kept)), 0);
    close(kept);
    same!(by_name(OPEN, 0, br"\Kept", PLAIN, &[]).0, NOT_FOUND);
}

/// Objects of all types share one set of names.
fn types() {
    const NAME: &[u8] = br"\BaseNamedObjects\Shared";
    const MISMATCH: u32 = TYPE_MISMATCH;
    let (_, event) = by_name("ZwCreateEvent", 0, NAME, PLAIN, &[1, 0]);
    let mut size = 4096_i64;
    let of_section = [at(&mut size), READ_WRITE, COMMIT, 0];
    with_string(br"\Callback", |target| {
        let creates: [(&str, &[u64]); 3] = [
            ("ZwCreateSection", &of_section),
            ("ZwCreateDirectoryObject", &[]),
            ("ZwCreateSymbolicLinkObject", &[target]),
        ];
        for (routine, more) in creates {
            same!(by_name(routine, 0, NAME, PLAIN, more).0, COLLISION);
            same!(by_name(routine, 0, NAME, OPEN_IF, more).0, MISMATCH);
            same!(by_name(routine, 0, br"\BaseNamedObjects\Shared\In", PLAIN, more).0, MISMATCH);
        }
        same!(
            with_string(NAME, |name| low(call!("IoCreateSymbolicLink", name, target))),
            COLLISION
        );
        // Links without names are different objects.
        let links =
            [(); 2].map(|()| by_name("ZwCreateSymbolicLinkObject", 0, b"", PLAIN, &[target]));
        for (status, link) in links {
            same!(status, 0);
            close(link);
        }
    });
    for routine in ["ZwOpenSection", "ZwOpenDirectoryObject", "ZwOpenSymbolicLinkObject"] {
        same!(by_name(routine, 0, NAME, PLAIN, &[]).0, MISMATCH);
    }
    with_string(NAME, |name| {
        let mut device = 0_u64;
        let made = call!("IoCreateDevice", driver(), 0, name, 0x22, 0, 0, at(&mut device));
        same!(low(made), COLLISION);
        same!(low(call!("IoDeleteSymbolicLink", name)), MISMATCH);
        let mut attributes = [48, 0, name, PLAIN, 0, 0];
        for (creates, expected) in [(0, MISMATCH), (1, COLLISION)] {
            let (mut callback, attributes) = (0_u64, at(&mut attributes));
            let made = call!("ExCreateCallback", at(&mut callback), attributes, creates, 1);
            same!(low(made), expected);
        }
    });
    close(event);
    let mut device = 0_u64;
    with_string(br"\Device\Shared", |name| {
        call!("IoCreateDevice", driver(), 0, name, 0x22, 0, 0, at(&mut device));
        let mut handle = 0_u64;
        same!(call!("IoCreateNotificationEvent", name, at(&mut handle)), 0);
    });
    same!(by_name("ZwCreateEvent", 0, br"\Device\Shared", PLAIN, &[1, 0]).0, COLLISION);
    same!(by_name("ZwCreateSection", 0, br"\Device\Shared", OPEN_IF, &of_section).0, MISMATCH);
    call!("IoDeleteDevice", device);
    same!(by_name("ZwCreateEvent", 0, br"\Callback\PowerState", PLAIN, &[1, 0]).0, COLLISION);
}

fn lists() {
    let (_, list) = by_name("ZwCreateDirectoryObject", 0, br"\List", PLAIN, &[]);
    let (_, b) = by_name("ZwCreateEvent", list, b"Bee", PLAIN, &[1, 0]);
    let (_, a) = by_name("ZwCreateDirectoryObject", list, b"Ant", PLAIN, &[]);
    let (mut buffer, mut position, mut size) = ([0_u64; 32], 9_u32, 0_u32);
    let to = at(&mut buffer);
    let mut query = |length: u64, single: u64, restart: u64| {
        let (at_position, at_size) = (at(&mut position), at(&mut size));
        let status = low(call!(
            "ZwQueryDirectoryObject", list, to, length, single, restart, at_position, at_size
        ));
        (status, position, size)
    };
    // An entry consists of two strings, zeros, and the characters of `Ant` and `Directory`.
    same!(query(91, 1, 1) == (TOO_SMALL, 9, 92), true);
    same!(query(92, 1, 1) == (0, 1, 92), true);
    same!(query(256, 1, 0) == (0, 2, 84), true);
    same!(query(256, 1, 0).0, 0x8000_001A_u32);
    // The second entry does not fit.
    same!(query(100, 0, 1) == (0x105, 1, 92), true);
    same!(query(256, 0, 1) == (0, 2, 144), true);
    same!(buffer[0], 6 | 8 << 16);
    same!(buffer[2], 0x12 | 0x14 << 16);
    same!(buffer[4], 6 | 8 << 16);
    same!(buffer[8..12] == [0; 4], true);
    // SAFETY: the strings are in the buffer.
    let text = |at: u64, length: usize| unsafe {
        core::slice::from_raw_parts(at as *const u8, 2 * length)
    };
    same!(is_text(text(buffer[1], 3), b"Ant"), true);
    same!(is_text(text(buffer[3], 9), b"Directory"), true);
    same!(is_text(text(buffer[5], 3), b"Bee"), true);
    same!(is_text(text(buffer[7], 5), b"Event"), true);
    for handle in [a, b, list] {
        close(handle);
    }
}

/// Reads the target of a link into a buffer of this size.
fn target(link: u64, room: u16, wants_size: bool) -> (u32, u64, u32, [u8; 64]) {
    let (mut bytes, mut size) = ([0x55_u8; 64], 0_u32);
    let mut string = [u64::from(room) << 16, at(&mut bytes)];
    let needed = if wants_size { at(&mut size) } else { 0 };
    let status = low(call!("ZwQuerySymbolicLinkObject", link, at(&mut string), needed));
    (status, string[0] & 0xFFFF, size, bytes)
}

fn links() {
    const CREATE: &str = "ZwCreateSymbolicLinkObject";
    const OPEN: &str = "ZwOpenSymbolicLinkObject";
    same!(by_name(OPEN, 0, br"\Device\Link", PLAIN, &[]) == (NOT_FOUND, 0), true);
    let (status, link) = with_string(br"\Callback", |target| {
        // The string has room for a terminator.
        // SAFETY: the string is this function's own.
        unsafe { *((target + 2) as *mut u16) = 20 };
        by_name(CREATE, 0, br"\Device\Link", PLAIN, &[target])
    });
    same!(status, 0);
    let (status, again) = by_name(OPEN, 0, br"\Device\LINK", PLAIN, &[]);
    same!(status, 0);
    for (room, wants_size, expected) in [
        (0, true, (TOO_SMALL, 0, 20)),
        (18, true, (TOO_SMALL, 0, 20)),
        (20, true, (0, 18, 20)),
        (17, false, (TOO_SMALL, 0, 0)),
        (18, false, (0, 18, 0)),
    ] {
        let (status, length, size, bytes) = target(again, room, wants_size);
        same!((status, length, size) == expected, true);
        let is_read = status == 0;
        same!(is_text(&bytes[..18], br"\Callback"), is_read);
        same!(bytes[18], if is_read && wants_size { 0 } else { 0x55 });
    }
    // The link refers to the directory.
    let (status, directory) = by_name("ZwOpenDirectoryObject", 0, br"\Device\Link", PLAIN, &[]);
    same!(status, 0);
    same!(target(directory, 64, true).0, TYPE_MISMATCH);
    close(directory);
    same!(by_name(OPEN, 0, br"\Callback", PLAIN, &[]).0, TYPE_MISMATCH);
    close(link);
    close(again);
    same!(by_name(OPEN, 0, br"\Device\Link", PLAIN, &[]).0, NOT_FOUND);
    let mut bad = [0x0012_0012_u64, 0];
    same!(by_name(CREATE, 0, br"\Device\Link", PLAIN, &[at(&mut bad)]).0, 0xC000_0005_u32);
    bad[0] = 0x0004_0006;
    same!(by_name(CREATE, 0, br"\Device\Link", PLAIN, &[at(&mut bad)]).0, INVALID_PARAMETER);
    // The links are those that the I/O manager creates, and the volume's link.
    with_string(br"\DosDevices\Namespace", |name| {
        let made = with_string(br"\Device\Somewhere", |to| call!("IoCreateSymbolicLink", name, to));
        same!(low(made), 0);
        let (status, link) = by_name(OPEN, 0, br"\??\Namespace", PLAIN, &[]);
        same!(status, 0);
        let (status, length, _, bytes) = target(link, 64, false);
        same!(status == 0 && length == 34, true);
        same!(is_text(&bytes[..34], br"\Device\Somewhere"), true);
        same!(low(call!("IoDeleteSymbolicLink", name)), 0);
        // The name exists as long as the link has a handle.
        same!(by_name(OPEN, link, b"", PLAIN, &[]).0, TYPE_MISMATCH);
        let (status, other) = by_name(OPEN, 0, br"\??\Namespace", PLAIN, &[]);
        same!(status, 0);
        close(link);
        close(other);
        same!(low(call!("IoDeleteSymbolicLink", name)), NOT_FOUND);
    });
    let (status, volume) = by_name(OPEN, 0, br"\??\C:", PLAIN, &[]);
    same!(status, 0);
    let (_, length, _, bytes) = target(volume, 64, false);
    same!(is_text(&bytes[..length as usize], br"\Device\HarddiskVolume1"), true);
    close(volume);
}

fn query_objects() {
    let (mut buffer, mut needed) = ([0_u32; 64], 0_u32);
    let (_, handle) = by_name("ZwOpenDirectoryObject", 0, br"\Windows", PLAIN, &[]);
    let to = at(&mut buffer);
    let mut query = |handle: u64, class: u64, length: u64| {
        let status = low(call!("ZwQueryObject", handle, class, to, length, at(&mut needed)));
        (status, needed)
    };
    same!(query(handle, 0, 0) == (LENGTH_MISMATCH, 56), true);
    same!(query(handle, 0, 57).0, LENGTH_MISMATCH);
    same!(query(handle, 0, 56) == (0, 56), true);
    same!(buffer[1], 0x000F_000F_u32);
    same!(buffer[2], 1);
    same!(buffer[3] > 1, true);
    // The values are the sizes of the name and type information.
    same!(buffer[9] == 34 && buffer[10] == 124, true);
    same!(query(handle, 1, 34) == (0, 34), true);
    same!(query(handle, 1, 33).0, LENGTH_MISMATCH);
    same!(query(handle, 2, 124) == (0, 124), true);
    same!(query(handle, 2, 123).0, LENGTH_MISMATCH);
    same!(buffer[0], 0x12 | 0x14 << 16);
    same!(query(handle, 4, 2) == (0, 2), true);
    same!(query(handle, 77, 256).0, 0xC000_0003_u32);
    same!(query(0x1234, 0, 56).0, INVALID_HANDLE);
    close(handle);
    let (_, key) = crate::registry::common::open(0, br"\Registry\Machine\System", 1);
    same!(query(key, 2, 256).0, 0);
    // The name is `Key`.
    same!(buffer[0], 6 | 8 << 16);
    same!(query(key, 1, 256).0, 0);
    same!(buffer[0] & 0xFFFF, 2 * br"\REGISTRY\MACHINE\SYSTEM".len() as u32);
    close(key);
}

/// Creates a section. Returns the status and the handle.
fn section(name: &[u8], size: i64, protection: u64, allocation: u64, file: u64) -> (u32, u64) {
    let (mut handle, mut size) = (0_u64, size);
    let size = if size == -1 { 0 } else { at(&mut size) };
    let status = with_attributes(0, name, PLAIN, |attributes| {
        call!(
            "ZwCreateSection",
            at(&mut handle),
            0x000F_001F,
            attributes,
            size,
            protection,
            allocation,
            file
        )
    });
    (low(status), handle)
}

/// Maps a view. Returns the status, the address and the size.
fn map(section: u64, offset: i64, size: u64, inherit: u64, protection: u64) -> (u32, u64, u64) {
    let (mut base, mut size, mut offset) = (0_u64, size, offset);
    let status = call!(
        "ZwMapViewOfSection",
        section,
        CURRENT,
        at(&mut base),
        0,
        0,
        at(&mut offset),
        at(&mut size),
        inherit,
        0,
        protection
    );
    (low(status), base, size)
}

/// `SEC_COMMIT`, `PAGE_READONLY` and `PAGE_READWRITE`.
const COMMIT: u64 = 0x0800_0000;
const READ: u64 = 2;
const READ_WRITE: u64 = 4;

fn sections() {
    const COPY: u64 = 8;
    const EXECUTE: u64 = 0x10;
    const EXECUTE_READ: u64 = 0x20;
    const NAME: &[u8] = br"\BaseNamedObjects\Section";
    same!(section(b"", -1, READ_WRITE, COMMIT, 0).0, 0xC000_00F2_u32);
    same!(section(b"", 0, READ_WRITE, COMMIT, 0).0, 0xC000_00F2_u32);
    same!(section(b"", 4096, READ_WRITE, 0, 0).0, 0xC000_00F4_u32);
    same!(section(b"", 4096, READ_WRITE, COMMIT | COMMIT >> 1, 0).0, 0xC000_00F4_u32);
    same!(section(b"", 4096, READ_WRITE, 0x0100_0000, 0).0, 0xC000_0020_u32);
    same!(section(b"", -2, READ_WRITE, COMMIT, 0).0, 0xC000_0040_u32);
    same!(section(b"", 4096, 0x33, COMMIT, 0).0, 0xC000_0045_u32);
    same!(section(b"", i64::MAX, READ_WRITE, COMMIT, 0).0, 0xC000_0017_u32);
    same!(section(b"", 4096, READ_WRITE, COMMIT, 0x1234).0, INVALID_HANDLE);
    let (status, first) = section(NAME, 0x1_8001, READ_WRITE, COMMIT, 0);
    same!(status, 0);
    same!(section(NAME, 4096, READ_WRITE, COMMIT, 0).0, COLLISION);
    let (status, second) = by_name("ZwOpenSection", 0, NAME, PLAIN, &[]);
    same!(status, 0);
    let (status, base, size) = map(first, 0, 0, 2, READ_WRITE);
    same!(status == 0 && size == 0x1_9000, true);
    let (status, other, size) = map(second, 0x1_0000, 1, 1, READ);
    same!(status == 0 && size == 4096, true);
    // SAFETY: the views are mapped, and have as many bytes.
    unsafe { *((base + 0x1_0000) as *mut u32) = 0x1234_5678 };
    // SAFETY: as above.
    same!(unsafe { *(other as *const u32) }, 0x1234_5678);
    same!(map(first, 0, 0x1_9001, 2, READ).0, 0xC000_001F_u32);
    same!(map(first, 0x2_0000, 0, 2, READ).0, 0xC000_001F_u32);
    same!(map(first, 4096, 0, 2, READ).0, 0xC000_0220_u32);
    same!(map(first, 0, 0, 3, READ).0, 0xC000_00F6_u32);
    same!(map(first, 0, 0, 2, 0x33).0, 0xC000_0045_u32);
    same!(map(0x1234, 0, 0, 2, READ).0, INVALID_HANDLE);
    let mut object = 0_u64;
    let section_type = kind("MmSectionObjectType");
    let found = call!("ObReferenceObjectByHandle", first, 4, section_type, 0, at(&mut object), 0);
    same!(low(found), 0);
    same!(is_named(object, NAME), true);
    close(first);
    close(second);
    same!(by_name("ZwOpenSection", 0, NAME, PLAIN, &[]).0, NOT_FOUND);
    let (mut system, mut size) = (0_u64, 8_u64);
    let mapped = call!("MmMapViewInSystemSpace", object, at(&mut system), at(&mut size));
    same!(low(mapped) == 0 && size == 4096, true);
    call!("ObfDereferenceObject", object);
    for view in [base, other] {
        same!(low(call!("ZwUnmapViewOfSection", CURRENT, view)), 0);
    }
    // SAFETY: the section exists as long as a view of it.
    same!(unsafe { *(system as *const u32) }, 0);
    same!(low(call!("MmUnmapViewInSystemSpace", system)), 0);
    same!(low(call!("ZwUnmapViewOfSection", CURRENT, system)), 0xC000_0019_u32);
    // The protection of a view has no right that the section lacks: a copy of a page needs only that to
    // read it.
    for (of_section, fits, does_not) in [
        (READ, [READ, COPY], [READ_WRITE, EXECUTE]),
        (READ_WRITE, [READ_WRITE, COPY], [EXECUTE, EXECUTE_READ]),
        (COPY, [READ, COPY], [READ_WRITE, EXECUTE_READ]),
        (EXECUTE, [EXECUTE; 2], [READ, EXECUTE_READ]),
        (EXECUTE_READ, [EXECUTE, READ], [READ_WRITE, 0x40]),
    ] {
        let (_, limited) = section(b"", 4096, of_section, COMMIT, 0);
        for protection in fits {
            let (status, base, _) = map(limited, 0, 0, 2, protection);
            same!(status, 0);
            call!("ZwUnmapViewOfSection", CURRENT, base);
        }
        for protection in does_not {
            same!(map(limited, 0, 0, 2, protection).0, 0xC000_004E_u32);
        }
        close(limited);
    }
}

/// A section contains a file's contents, and writes to it change the file.
pub fn of_file(file: u64, length: u64) {
    same!(section(b"", length as i64 + 1, READ, COMMIT, file).0, 0xC000_0040_u32);
    let (status, handle) = section(b"", -1, READ_WRITE, COMMIT, file);
    same!(status, 0);
    let (status, base, _) = map(handle, 0, 0, 2, READ_WRITE);
    same!(status, 0);
    close(handle);
    // SAFETY: the view is mapped, and is at least one page long.
    unsafe { *(base as *mut u8) ^= 0x20 };
    same!(low(call!("ZwUnmapViewOfSection", CURRENT, base)), 0);
}

fn processes() {
    let id = call!("PsGetCurrentProcessId");
    let thread = call!("PsGetCurrentThreadId");
    let open = |client: &mut [u64; 2], name: &[u8]| {
        by_name("ZwOpenProcess", 0, name, 0x200, &[at(client)])
    };
    same!(open(&mut [0x7FFC, 0], b"").0, INVALID_CID);
    same!(open(&mut [0, 0], b"").0, INVALID_CID);
    same!(open(&mut [id, 0x7FFC], b"").0, INVALID_CID);
    same!(open(&mut [id, 0], br"\Name").0, INVALID_PARAMETER_MIX);
    same!(by_name("ZwOpenProcess", 0, b"", 0x200, &[0]).0, INVALID_PARAMETER_MIX);
    let (status, by_thread) = open(&mut [0, thread], b"");
    same!(status, 0);
    close(by_thread);
    let (status, process) = open(&mut [id, 0], b"");
    same!(status, 0);
    let (mut buffer, mut needed) = ([0_u64; 32], 0_u32);
    let to = at(&mut buffer);
    let mut query = |handle: u64, class: u64, length: u64| {
        let needed_at = at(&mut needed);
        let status = call!("ZwQueryInformationProcess", handle, class, to, length, needed_at);
        (low(status), needed)
    };
    same!(query(process, 0, 47) == (LENGTH_MISMATCH, 48), true);
    same!(query(process, 0, 49).0, LENGTH_MISMATCH);
    same!(query(process, 0, 48) == (0, 48), true);
    same!(buffer[0] & 0xFFFF_FFFF == 0x103 && buffer[4] == id, true);
    same!(query(CURRENT, 26, 8) == (0, 8), true);
    same!(buffer[0], 0);
    same!(query(CURRENT, 24, 4) == (0, 4), true);
    same!(query(CURRENT, 4, 32) == (0, 32), true);
    let created = call!("PsGetProcessCreateTimeQuadPart", call!("PsGetCurrentProcess"));
    same!(buffer[0], created);
    // The system process has no image.
    same!(query(CURRENT, 27, 256).0, 0);
    same!(buffer[1], to + 16);
    same!(query(CURRENT, 27, 16).0, LENGTH_MISMATCH);
    same!(query(CURRENT, 999, 8).0, 0xC000_0003_u32);
    same!(query(u64::MAX - 1, 0, 48).0, TYPE_MISMATCH);
    same!(query(0x1234, 0, 48).0, INVALID_HANDLE);
    close(process);
}

fn waits() {
    let mut events = [0_u64; 2];
    for event in &mut events {
        same!(low(call!("ZwCreateEvent", at(event), 0x1F_0003, 0, 1, 0)), 0);
    }
    let all = events.as_mut_ptr() as u64;
    let mut now = 0_u64;
    let now = at(&mut now);
    let wait = |count: u64, handles: u64, kind: u64| {
        low(call!("ZwWaitForMultipleObjects", count, handles, kind, 0, now))
    };
    same!(wait(0, all, 1), 0xC000_00EF_u32);
    same!(wait(65, all, 1), 0xC000_00EF_u32);
    same!(wait(2, all, 2), 0xC000_00F1_u32);
    same!(wait(2, all, 1), TIMEOUT);
    call!("ZwSetEvent", events[1], 0);
    same!(wait(2, all, 0), TIMEOUT);
    same!(wait(2, all, 1), 1);
    for event in events {
        call!("ZwSetEvent", event, 0);
    }
    same!(wait(2, all, 0), SUCCESS);
    same!(wait(1, at(&mut [events[0], 0x1234]), 1), TIMEOUT);
    same!(wait(2, at(&mut [events[0], 0x1234]), 1), INVALID_HANDLE);
    same!(wait(2, at(&mut [events[0], events[0]]), 0), INVALID_PARAMETER_MIX);
    for event in events {
        close(event);
    }
}

fn processors() {
    call!("KeSetSystemAffinityThread", 1);
    same!(call!("KeSetSystemAffinityThreadEx", 1), 1);
    call!("KeRevertToUserAffinityThread");
    same!(call!("KeSetSystemAffinityThreadEx", 1), 0);
    call!("KeRevertToUserAffinityThreadEx", 0);
    for feature in 0..64 {
        // SAFETY: the stand-in kernel serves reads of the page.
        let shown = unsafe { ((0xFFFF_F780_0000_0274_u64 + feature) as *const u8).read_volatile() };
        same!(boolean(call!("ExIsProcessorFeaturePresent", feature)), shown != 0);
    }
    // The features are SSE2 and RDTSC, and a feature that no x64 processor has.
    same!(boolean(call!("ExIsProcessorFeaturePresent", 10)), true);
    same!(boolean(call!("ExIsProcessorFeaturePresent", 8)), true);
    same!(boolean(call!("ExIsProcessorFeaturePresent", 0)), false);
    same!(boolean(call!("ExIsProcessorFeaturePresent", u32::MAX)), false);
}

/// The maximum size of a stack expansion, and the part of the expansion that the routine uses.
const EXPANSION: u64 = 0x1_1800;
const USED: usize = 0xF000;

fn stacks() {
    let expand = |routine: unsafe extern "C" fn(*mut c_void), parameter: u64, size: u64| {
        let routine = address(routine as *const c_void);
        low(call!("KeExpandKernelStackAndCallout", routine, parameter, size))
    };
    let limits = || {
        let (mut low, mut high) = (0_u64, 0_u64);
        call!("IoGetStackLimits", at(&mut low), at(&mut high));
        high - low
    };
    let before = limits();
    let mut filled = 0_u64;
    same!(expand(fill, at(&mut filled), EXPANSION), 0);
    same!(filled, 7 * USED as u64);
    same!(limits(), before);
    same!(expand(fill, at(&mut filled), EXPANSION + 1), 0xC000_00F1_u32);
    let by = Routine::find("KeExpandKernelStackAndCalloutEx");
    let lower = Routine::find("KeLowerIrql");
    let raised = call!("KfRaiseIrql", 2);
    let routine = address(nothing as *const c_void);
    let waiting = low(by.call(&[routine, 0, EXPANSION, 1, 0]));
    let without = low(by.call(&[routine, 0, EXPANSION, 0, 0]));
    lower.call(&[raised]);
    same!(waiting, 0xC000_00F2_u32);
    same!(without, 0);
    // Each expansion has its own space, up to the limit of all stacks.
    same!(expand(nest, 0, EXPANSION), 0);
    same!(NESTED[0].load(Ordering::Relaxed) > 8, true);
    same!(NESTED[1].load(Ordering::Relaxed), 0xC000_00FD_u32);
    same!(limits(), before);
    // This also works on a thread that the driver created.
    let mut event = Object::new();
    threads::join(threads::start(expand_in_thread, event.at()));
    same!(event.0[0], 7 * USED as u64);
}

unsafe extern "C" fn expand_in_thread(to: *mut c_void) {
    let routine = address(fill as *const c_void);
    let expanded = call!("KeExpandKernelStackAndCalloutEx", routine, to as u64, EXPANSION, 1, 0);
    same!(low(expanded), 0);
}

/// The number of nested expansions, and the status of the first one that failed.
static NESTED: [AtomicU32; 2] = [const { AtomicU32::new(0) }; 2];

/// Fills the expansion, and expands the stack again.
#[expect(clippy::large_stack_arrays, reason = "the tested routine gives it the stack")]
unsafe extern "C" fn nest(_context: *mut c_void) {
    let mut memory = [0_u8; USED];
    core::hint::black_box(&mut memory).fill(7);
    let routine = address(nest as *const c_void);
    let status = low(call!("KeExpandKernelStackAndCallout", routine, 0, EXPANSION));
    NESTED[0].fetch_add(1, Ordering::Relaxed);
    if status != 0 {
        NESTED[1].store(status, Ordering::Relaxed);
    }
    core::hint::black_box(&mut memory);
}

const unsafe extern "C" fn nothing(_context: *mut c_void) {}

/// Uses more stack than a thread has without an expansion.
#[expect(clippy::large_stack_arrays, reason = "the tested routine gives it the stack")]
unsafe extern "C" fn fill(to: *mut c_void) {
    let mut memory = [0_u8; USED];
    core::hint::black_box(&mut memory).fill(7);
    let sum = memory.iter().map(|byte| u64::from(*byte)).sum();
    // SAFETY: the caller passes the address of its own variable.
    unsafe { *to.cast::<u64>() = sum };
}
