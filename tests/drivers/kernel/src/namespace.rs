//! Named objects: directories, links, sections and processes.

use core::{
    ffi::c_void,
    sync::atomic::{AtomicU32, Ordering},
};

use wdk_sys::{
    HANDLE, NTSTATUS, PEXPAND_STACK_CALLOUT, PVOID, STATUS_BUFFER_OVERFLOW,
    STATUS_BUFFER_TOO_SMALL, STATUS_INFO_LENGTH_MISMATCH, STATUS_INVALID_CID,
    STATUS_INVALID_HANDLE, STATUS_INVALID_PARAMETER, STATUS_INVALID_PARAMETER_MIX,
    STATUS_OBJECT_NAME_COLLISION, STATUS_OBJECT_NAME_NOT_FOUND, STATUS_OBJECT_PATH_NOT_FOUND,
    STATUS_OBJECT_TYPE_MISMATCH, STATUS_SUCCESS, STATUS_TIMEOUT,
};

use crate::{
    call::{NULL, at, call, driver, pointer, same},
    dispatcher::Object,
    names::{is_text, with_attributes, with_string},
    registry::common::close,
    threads,
    variables::object_type,
};

/// `OBJ_PERMANENT`, `OBJ_CASE_INSENSITIVE` and `OBJ_OPENIF`.
const PERMANENT: u64 = 0x10;
const PLAIN: u64 = 0x40;
const OPEN_IF: u64 = 0xC0;

const CURRENT: PVOID = pointer(usize::MAX);

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

/// A routine that opens or creates an object, with its arguments after a handle's address, rights and
/// attributes.
#[derive(Clone, Copy)]
enum ByName {
    CreateEvent,
    OpenEvent,
    CreateDirectory,
    OpenDirectory,
    /// The size of the section, its protection, and its file.
    CreateSection(i64, u64, PVOID),
    OpenSection,
    /// The target's name.
    CreateLink(PVOID),
    OpenLink,
    /// The identifiers of the process and of a thread.
    OpenProcess(PVOID),
}

/// Opens or creates an object. Returns the status and the handle.
fn by_name(routine: ByName, root: PVOID, name: &[u8], flags: u64) -> (NTSTATUS, PVOID) {
    const ACCESS: u32 = 0x000F_0001;
    let mut handle = pointer(0x5555);
    let to = &mut handle;
    let status = with_attributes(root, name, flags, |of| match routine {
        ByName::CreateEvent => call!(ZwCreateEvent, to, ACCESS, of, 1, 0),
        ByName::OpenEvent => call!(ZwOpenEvent, to, ACCESS, of),
        ByName::CreateDirectory => call!(ZwCreateDirectoryObject, to, ACCESS, of),
        ByName::OpenDirectory => call!(ZwOpenDirectoryObject, to, ACCESS, of),
        ByName::CreateSection(mut size, protection, file) => {
            call!(ZwCreateSection, to, ACCESS, of, &mut size, protection, COMMIT, file)
        }
        ByName::OpenSection => call!(ZwOpenSection, to, ACCESS, of),
        ByName::CreateLink(target) => call!(ZwCreateSymbolicLinkObject, to, ACCESS, of, target),
        ByName::OpenLink => call!(ZwOpenSymbolicLinkObject, to, ACCESS, of),
        ByName::OpenProcess(client) => call!(ZwOpenProcess, to, ACCESS, of, client),
    });
    (status, handle)
}

/// References an object by its name. Returns the status and the object.
fn reference(name: &[u8], kind: PVOID) -> (NTSTATUS, PVOID) {
    let mut object = NULL;
    let status = with_string(name, |name| {
        call!(ObReferenceObjectByName, name, PLAIN, NULL, 0, kind, 0, NULL, &mut object)
    });
    (status, object)
}

/// Checks the name of an object.
pub fn is_named(object: PVOID, name: &[u8]) -> bool {
    let (mut buffer, mut needed) = ([0_u64; 32], 0_u32);
    let size = 16 + if name.is_empty() { 0 } else { 2 * name.len() as u32 + 2 };
    let to = at(&mut buffer);
    same!(call!(ObQueryNameString, object, NULL, 0, &mut needed), STATUS_INFO_LENGTH_MISMATCH);
    same!(needed, size);
    // The I/O manager warns of a file's name that does not fit.
    let of_file = name.starts_with(br"\Device\HarddiskVolume1\");
    let expected = if of_file { STATUS_BUFFER_OVERFLOW } else { STATUS_INFO_LENGTH_MISMATCH };
    same!(call!(ObQueryNameString, object, to, size - 1, &mut needed), expected);
    same!(call!(ObQueryNameString, object, to, size, &mut needed), 0);
    let length = 2 * name.len() as u64;
    let room = if name.is_empty() { 0 } else { length + 2 };
    same!(buffer[0], length | room << 16);
    same!(buffer[1], if name.is_empty() { 0 } else { to as u64 + 16 });
    // SAFETY: the name follows the string in the buffer.
    let bytes = unsafe {
        core::slice::from_raw_parts(to.wrapping_byte_add(16).cast::<u8>(), 2 * name.len())
    };
    is_text(bytes, name)
}

fn drivers() {
    const NAME: &[u8] = br"\driver\NAMESPACE";
    let driver_type = object_type("IoDriverObjectType");
    same!(reference(NAME, driver_type) == (0, driver().cast()), true);
    same!(is_named(driver().cast(), br"\Driver\namespace"), true);
    call!(ObfDereferenceObject, driver());
    same!(reference(NAME, object_type("IoFileObjectType")).0, STATUS_OBJECT_TYPE_MISMATCH);
    same!(reference(br"\Driver\missing", driver_type).0, STATUS_OBJECT_NAME_NOT_FOUND);
    same!(reference(br"\Missing\driver", driver_type).0, STATUS_OBJECT_PATH_NOT_FOUND);
    same!(reference(b"Driver", NULL).0, 0xC000_003B_u32);
    same!(reference(br"\Driver\", NULL).0, 0xC000_0033_u32);
    same!(reference(b"", NULL).0, 0xC000_0033_u32);
    let mut device = NULL;
    let status = with_string(br"\Device\Namespace", |name| {
        call!(IoCreateDevice, driver(), 0, name, 0x22, 0, 0, &mut device)
    });
    same!(status, 0);
    same!(is_named(device, br"\Device\Namespace"), true);
    // A device is opened instead.
    same!(
        reference(br"\Device\Namespace", object_type("IoDeviceObjectType")).0,
        STATUS_OBJECT_TYPE_MISMATCH
    );
    call!(IoDeleteDevice, device);
    same!(is_named(call!(PsGetCurrentProcess).cast(), b""), true);
}

fn directories() {
    const CREATE: ByName = ByName::CreateDirectory;
    const OPEN: ByName = ByName::OpenDirectory;
    same!(by_name(OPEN, NULL, br"\Mine", PLAIN) == (STATUS_OBJECT_NAME_NOT_FOUND, NULL), true);
    same!(by_name(CREATE, NULL, br"\No\Mine", PLAIN).0, STATUS_OBJECT_PATH_NOT_FOUND);
    let (status, mine) = by_name(CREATE, NULL, br"\Mine", PLAIN);
    same!(status, 0);
    same!(by_name(CREATE, NULL, br"\MINE", PLAIN).0, STATUS_OBJECT_NAME_COLLISION);
    let (status, again) = by_name(CREATE, NULL, br"\MINE", OPEN_IF);
    same!(status, 0x4000_0000_u32);
    close(again);
    same!(by_name(CREATE, NULL, br"\Callback", PLAIN).0, STATUS_OBJECT_NAME_COLLISION);
    // The name is relative to a directory's handle.
    let (status, inner) = by_name(CREATE, mine, b"Inner", PLAIN);
    same!(status, 0);
    let (status, event) = by_name(ByName::CreateEvent, inner, b"Event", PLAIN);
    same!(status, 0);
    same!(by_name(ByName::OpenEvent, NULL, br"\Mine\Inner\EVENT", PLAIN).0, 0);
    let (status, object) = reference(br"\mine\inner\event", object_type("ExEventObjectType"));
    same!(status, 0);
    same!(is_named(object, br"\Mine\Inner\Event"), true);
    call!(ObfDereferenceObject, object);
    same!(by_name(ByName::OpenEvent, event, b"Event", PLAIN).0, STATUS_OBJECT_TYPE_MISMATCH);
    same!(by_name(ByName::OpenEvent, inner, br"\Event", PLAIN).0, 0xC000_003B_u32);
    for handle in [event, inner, mine] {
        close(handle);
    }
    same!(by_name(OPEN, NULL, br"\Mine", PLAIN).0, STATUS_OBJECT_NAME_NOT_FOUND);
    // A permanent object stays until it is made temporary.
    let (status, kept) = by_name(CREATE, NULL, br"\Kept", PLAIN | PERMANENT);
    same!(status, 0);
    close(kept);
    let (status, kept) = by_name(OPEN, NULL, br"\kept", PLAIN);
    same!(status, 0);
    same!(call!(ZwMakeTemporaryObject, kept), 0);
    close(kept);
    same!(by_name(OPEN, NULL, br"\Kept", PLAIN).0, STATUS_OBJECT_NAME_NOT_FOUND);
}

/// Objects of all types share one set of names.
fn types() {
    const NAME: &[u8] = br"\BaseNamedObjects\Shared";
    const MISMATCH: NTSTATUS = STATUS_OBJECT_TYPE_MISMATCH;
    const OF_SECTION: ByName = ByName::CreateSection(4096, READ_WRITE, NULL);
    let (_, event) = by_name(ByName::CreateEvent, NULL, NAME, PLAIN);
    with_string(br"\Callback", |target| {
        for routine in [OF_SECTION, ByName::CreateDirectory, ByName::CreateLink(target)] {
            same!(by_name(routine, NULL, NAME, PLAIN).0, STATUS_OBJECT_NAME_COLLISION);
            same!(by_name(routine, NULL, NAME, OPEN_IF).0, MISMATCH);
            same!(by_name(routine, NULL, br"\BaseNamedObjects\Shared\In", PLAIN).0, MISMATCH);
        }
        same!(
            with_string(NAME, |name| call!(IoCreateSymbolicLink, name, target)),
            STATUS_OBJECT_NAME_COLLISION
        );
        // Links without names are different objects.
        let links = [(); 2].map(|()| by_name(ByName::CreateLink(target), NULL, b"", PLAIN));
        for (status, link) in links {
            same!(status, 0);
            close(link);
        }
    });
    for routine in [ByName::OpenSection, ByName::OpenDirectory, ByName::OpenLink] {
        same!(by_name(routine, NULL, NAME, PLAIN).0, MISMATCH);
    }
    with_string(NAME, |name| {
        let mut device = NULL;
        let made = call!(IoCreateDevice, driver(), 0, name, 0x22, 0, 0, &mut device);
        same!(made, STATUS_OBJECT_NAME_COLLISION);
        same!(call!(IoDeleteSymbolicLink, name), MISMATCH);
        let mut attributes = [48, 0, name as u64, PLAIN, 0, 0];
        for (creates, expected) in [(0, MISMATCH), (1, STATUS_OBJECT_NAME_COLLISION)] {
            let (mut callback, attributes) = (NULL, at(&mut attributes));
            same!(call!(ExCreateCallback, &mut callback, attributes, creates, 1), expected);
        }
    });
    close(event);
    let mut device = NULL;
    with_string(br"\Device\Shared", |name| {
        call!(IoCreateDevice, driver(), 0, name, 0x22, 0, 0, &mut device);
        let mut handle = NULL;
        same!(call!(IoCreateNotificationEvent, name, &mut handle), 0);
    });
    same!(
        by_name(ByName::CreateEvent, NULL, br"\Device\Shared", PLAIN).0,
        STATUS_OBJECT_NAME_COLLISION
    );
    same!(by_name(OF_SECTION, NULL, br"\Device\Shared", OPEN_IF).0, MISMATCH);
    call!(IoDeleteDevice, device);
    same!(
        by_name(ByName::CreateEvent, NULL, br"\Callback\PowerState", PLAIN).0,
        STATUS_OBJECT_NAME_COLLISION
    );
}

fn lists() {
    let (_, list) = by_name(ByName::CreateDirectory, NULL, br"\List", PLAIN);
    let (_, b) = by_name(ByName::CreateEvent, list, b"Bee", PLAIN);
    let (_, a) = by_name(ByName::CreateDirectory, list, b"Ant", PLAIN);
    let (mut buffer, mut position, mut size) = ([0_u64; 32], 9_u32, 0_u32);
    let to = at(&mut buffer);
    let mut query = |length: u64, single: u64, restart: u64| {
        let (at_position, at_size) = (at(&mut position), at(&mut size));
        let status =
            call!(ZwQueryDirectoryObject, list, to, length, single, restart, at_position, at_size);
        (status, position, size)
    };
    // An entry consists of two strings, zeros, and the characters of `Ant` and `Directory`.
    same!(query(91, 1, 1) == (STATUS_BUFFER_TOO_SMALL, 9, 92), true);
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
fn target(link: PVOID, room: u16, wants_size: bool) -> (NTSTATUS, u64, u32, [u8; 64]) {
    let (mut bytes, mut size) = ([0x55_u8; 64], 0_u32);
    let mut string = [u64::from(room) << 16, at(&mut bytes) as u64];
    let needed = if wants_size { at(&mut size) } else { NULL };
    let status = call!(ZwQuerySymbolicLinkObject, link, &mut string, needed);
    (status, string[0] & 0xFFFF, size, bytes)
}

fn links() {
    const CREATE: fn(PVOID) -> ByName = ByName::CreateLink;
    const OPEN: ByName = ByName::OpenLink;
    same!(
        by_name(OPEN, NULL, br"\Device\Link", PLAIN) == (STATUS_OBJECT_NAME_NOT_FOUND, NULL),
        true
    );
    let (status, link) = with_string(br"\Callback", |target| {
        // The string has room for a terminator.
        // SAFETY: the string is this function's own.
        unsafe { *target.wrapping_byte_add(2).cast::<u16>() = 20 };
        by_name(CREATE(target), NULL, br"\Device\Link", PLAIN)
    });
    same!(status, 0);
    let (status, again) = by_name(OPEN, NULL, br"\Device\LINK", PLAIN);
    same!(status, 0);
    for (room, wants_size, expected) in [
        (0, true, (STATUS_BUFFER_TOO_SMALL, 0, 20)),
        (18, true, (STATUS_BUFFER_TOO_SMALL, 0, 20)),
        (20, true, (0, 18, 20)),
        (17, false, (STATUS_BUFFER_TOO_SMALL, 0, 0)),
        (18, false, (0, 18, 0)),
    ] {
        let (status, length, size, bytes) = target(again, room, wants_size);
        same!((status, length, size) == expected, true);
        let is_read = status == 0;
        same!(is_text(&bytes[..18], br"\Callback"), is_read);
        same!(bytes[18], if is_read && wants_size { 0 } else { 0x55 });
    }
    // The link refers to the directory.
    let (status, directory) = by_name(ByName::OpenDirectory, NULL, br"\Device\Link", PLAIN);
    same!(status, 0);
    same!(target(directory, 64, true).0, STATUS_OBJECT_TYPE_MISMATCH);
    close(directory);
    same!(by_name(OPEN, NULL, br"\Callback", PLAIN).0, STATUS_OBJECT_TYPE_MISMATCH);
    close(link);
    close(again);
    same!(by_name(OPEN, NULL, br"\Device\Link", PLAIN).0, STATUS_OBJECT_NAME_NOT_FOUND);
    let mut bad = [0x0012_0012_u64, 0];
    same!(by_name(CREATE(at(&mut bad)), NULL, br"\Device\Link", PLAIN).0, 0xC000_0005_u32);
    bad[0] = 0x0004_0006;
    same!(by_name(CREATE(at(&mut bad)), NULL, br"\Device\Link", PLAIN).0, STATUS_INVALID_PARAMETER);
    // The links are those that the I/O manager creates, and the volume's link.
    with_string(br"\DosDevices\Namespace", |name| {
        let made = with_string(br"\Device\Somewhere", |to| call!(IoCreateSymbolicLink, name, to));
        same!(made, 0);
        let (status, link) = by_name(OPEN, NULL, br"\??\Namespace", PLAIN);
        same!(status, 0);
        let (status, length, _, bytes) = target(link, 64, false);
        same!(status == 0 && length == 34, true);
        same!(is_text(&bytes[..34], br"\Device\Somewhere"), true);
        same!(call!(IoDeleteSymbolicLink, name), 0);
        // The name exists as long as the link has a handle.
        same!(by_name(OPEN, link, b"", PLAIN).0, STATUS_OBJECT_TYPE_MISMATCH);
        let (status, other) = by_name(OPEN, NULL, br"\??\Namespace", PLAIN);
        same!(status, 0);
        close(link);
        close(other);
        same!(call!(IoDeleteSymbolicLink, name), STATUS_OBJECT_NAME_NOT_FOUND);
    });
    let (status, volume) = by_name(OPEN, NULL, br"\??\C:", PLAIN);
    same!(status, 0);
    let (_, length, _, bytes) = target(volume, 64, false);
    same!(is_text(&bytes[..length as usize], br"\Device\HarddiskVolume1"), true);
    close(volume);
}

fn query_objects() {
    let (mut buffer, mut needed) = ([0_u32; 64], 0_u32);
    let (_, handle) = by_name(ByName::OpenDirectory, NULL, br"\Windows", PLAIN);
    let to = at(&mut buffer);
    let mut query = |handle: PVOID, class: u64, length: u64| {
        let status = call!(ZwQueryObject, handle, class, to, length, &mut needed);
        (status, needed)
    };
    same!(query(handle, 0, 0) == (STATUS_INFO_LENGTH_MISMATCH, 56), true);
    same!(query(handle, 0, 57).0, STATUS_INFO_LENGTH_MISMATCH);
    same!(query(handle, 0, 56) == (0, 56), true);
    same!(buffer[1], 0x000F_0001_u32);
    same!(buffer[2], 1);
    same!(buffer[3] > 1, true);
    // The values are the sizes of the name and type information.
    same!(buffer[9] == 34 && buffer[10] == 124, true);
    same!(query(handle, 1, 34) == (0, 34), true);
    same!(query(handle, 1, 33).0, STATUS_INFO_LENGTH_MISMATCH);
    same!(query(handle, 2, 124) == (0, 124), true);
    same!(query(handle, 2, 123).0, STATUS_INFO_LENGTH_MISMATCH);
    same!(buffer[0], 0x12 | 0x14 << 16);
    same!(query(handle, 4, 2) == (0, 2), true);
    same!(query(handle, 77, 256).0, 0xC000_0003_u32);
    same!(query(pointer(0x1234), 0, 56).0, STATUS_INVALID_HANDLE);
    close(handle);
    let (_, key) = crate::registry::common::open(NULL, br"\Registry\Machine\System", 1);
    same!(query(key, 2, 256).0, 0);
    // The name is `Key`.
    same!(buffer[0], 6 | 8 << 16);
    same!(query(key, 1, 256).0, 0);
    same!(buffer[0] & 0xFFFF, 2 * br"\REGISTRY\MACHINE\SYSTEM".len() as u32);
    close(key);
}

/// Creates a section. Returns the status and the handle.
fn section(
    name: &[u8],
    size: i64,
    protection: u64,
    allocation: u64,
    file: PVOID,
) -> (NTSTATUS, PVOID) {
    let (mut handle, mut size) = (NULL, size);
    let size = if size == -1 { NULL } else { at(&mut size) };
    let status = with_attributes(NULL, name, PLAIN, |attributes| {
        call!(
            ZwCreateSection, &mut handle, 0x000F_001F, attributes, size, protection, allocation,
            file
        )
    });
    (status, handle)
}

/// Maps a view. Returns the status, the address and the size.
fn map(
    section: PVOID,
    offset: i64,
    size: u64,
    inherit: u64,
    protection: u64,
) -> (NTSTATUS, PVOID, u64) {
    let (mut base, mut size, mut offset) = (NULL, size, offset);
    let status = call!(
        ZwMapViewOfSection, section, CURRENT, &mut base, 0, 0, &mut offset, &mut size, inherit, 0,
        protection
    );
    (status, base, size)
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
    same!(section(b"", -1, READ_WRITE, COMMIT, NULL).0, 0xC000_00F2_u32);
    same!(section(b"", 0, READ_WRITE, COMMIT, NULL).0, 0xC000_00F2_u32);
    same!(section(b"", 4096, READ_WRITE, 0, NULL).0, 0xC000_00F4_u32);
    same!(section(b"", 4096, READ_WRITE, COMMIT | COMMIT >> 1, NULL).0, 0xC000_00F4_u32);
    same!(section(b"", 4096, READ_WRITE, 0x0100_0000, NULL).0, 0xC000_0020_u32);
    same!(section(b"", -2, READ_WRITE, COMMIT, NULL).0, 0xC000_0040_u32);
    same!(section(b"", 4096, 0x33, COMMIT, NULL).0, 0xC000_0045_u32);
    same!(section(b"", i64::MAX, READ_WRITE, COMMIT, NULL).0, 0xC000_0017_u32);
    same!(section(b"", 4096, READ_WRITE, COMMIT, pointer(0x1234)).0, STATUS_INVALID_HANDLE);
    let (status, first) = section(NAME, 0x1_8001, READ_WRITE, COMMIT, NULL);
    same!(status, 0);
    same!(section(NAME, 4096, READ_WRITE, COMMIT, NULL).0, STATUS_OBJECT_NAME_COLLISION);
    let (status, second) = by_name(ByName::OpenSection, NULL, NAME, PLAIN);
    same!(status, 0);
    let (status, base, size) = map(first, 0, 0, 2, READ_WRITE);
    same!(status == 0 && size == 0x1_9000, true);
    let (status, other, size) = map(second, 0x1_0000, 1, 1, READ);
    same!(status == 0 && size == 4096, true);
    // SAFETY: the views are mapped, and have as many bytes.
    unsafe { *base.wrapping_byte_add(0x1_0000).cast::<u32>() = 0x1234_5678 };
    // SAFETY: as above.
    same!(unsafe { *other.cast::<u32>() }, 0x1234_5678);
    same!(map(first, 0, 0x1_9001, 2, READ).0, 0xC000_001F_u32);
    same!(map(first, 0x2_0000, 0, 2, READ).0, 0xC000_001F_u32);
    same!(map(first, 4096, 0, 2, READ).0, 0xC000_0220_u32);
    same!(map(first, 0, 0, 3, READ).0, 0xC000_00F6_u32);
    same!(map(first, 0, 0, 2, 0x33).0, 0xC000_0045_u32);
    same!(map(pointer(0x1234), 0, 0, 2, READ).0, STATUS_INVALID_HANDLE);
    let mut object = NULL;
    let section_type = object_type("MmSectionObjectType");
    same!(call!(ObReferenceObjectByHandle, first, 4, section_type, 0, &mut object, NULL), 0);
    same!(is_named(object, NAME), true);
    close(first);
    close(second);
    same!(by_name(ByName::OpenSection, NULL, NAME, PLAIN).0, STATUS_OBJECT_NAME_NOT_FOUND);
    let (mut system, mut size) = (NULL, 8_u64);
    let mapped = call!(MmMapViewInSystemSpace, object, &mut system, &mut size);
    same!(mapped == 0 && size == 4096, true);
    call!(ObfDereferenceObject, object);
    for view in [base, other] {
        same!(call!(ZwUnmapViewOfSection, CURRENT, view), 0);
    }
    // SAFETY: the section exists as long as a view of it.
    same!(unsafe { *system.cast::<u32>() }, 0);
    same!(call!(MmUnmapViewInSystemSpace, system), 0);
    same!(call!(ZwUnmapViewOfSection, CURRENT, system), 0xC000_0019_u32);
    // The protection of a view has no right that the section lacks: a copy of a page needs only that to
    // read it.
    for (of_section, fits, does_not) in [
        (READ, [READ, COPY], [READ_WRITE, EXECUTE]),
        (READ_WRITE, [READ_WRITE, COPY], [EXECUTE, EXECUTE_READ]),
        (COPY, [READ, COPY], [READ_WRITE, EXECUTE_READ]),
        (EXECUTE, [EXECUTE; 2], [READ, EXECUTE_READ]),
        (EXECUTE_READ, [EXECUTE, READ], [READ_WRITE, 0x40]),
    ] {
        let (_, limited) = section(b"", 4096, of_section, COMMIT, NULL);
        for protection in fits {
            let (status, base, _) = map(limited, 0, 0, 2, protection);
            same!(status, 0);
            call!(ZwUnmapViewOfSection, CURRENT, base);
        }
        for protection in does_not {
            same!(map(limited, 0, 0, 2, protection).0, 0xC000_004E_u32);
        }
        close(limited);
    }
}

/// A section contains a file's contents, and writes to it change the file.
pub fn of_file(file: PVOID, length: u64) {
    same!(section(b"", length as i64 + 1, READ, COMMIT, file).0, 0xC000_0040_u32);
    let (status, handle) = section(b"", -1, READ_WRITE, COMMIT, file);
    same!(status, 0);
    let (status, base, _) = map(handle, 0, 0, 2, READ_WRITE);
    same!(status, 0);
    close(handle);
    // SAFETY: the view is mapped, and is at least one page long.
    unsafe { *base.cast::<u8>() ^= 0x20 };
    same!(call!(ZwUnmapViewOfSection, CURRENT, base), 0);
}

fn processes() {
    let id = call!(PsGetCurrentProcessId);
    let thread = call!(PsGetCurrentThreadId);
    let open = |client: &mut [HANDLE; 2], name: &[u8]| {
        by_name(ByName::OpenProcess(at(client)), NULL, name, 0x200)
    };
    same!(open(&mut [pointer(0x7FFC), NULL], b"").0, STATUS_INVALID_CID);
    same!(open(&mut [NULL, NULL], b"").0, STATUS_INVALID_CID);
    same!(open(&mut [id, pointer(0x7FFC)], b"").0, STATUS_INVALID_CID);
    same!(open(&mut [id, NULL], br"\Name").0, STATUS_INVALID_PARAMETER_MIX);
    same!(by_name(ByName::OpenProcess(NULL), NULL, b"", 0x200).0, STATUS_INVALID_PARAMETER_MIX);
    let (status, by_thread) = open(&mut [NULL, thread], b"");
    same!(status, 0);
    close(by_thread);
    let (status, process) = open(&mut [id, NULL], b"");
    same!(status, 0);
    let (mut buffer, mut needed) = ([0_u64; 32], 0_u32);
    let to = at(&mut buffer);
    let mut query = |handle: PVOID, class: u64, length: u64| {
        let needed_at = at(&mut needed);
        let status = call!(ZwQueryInformationProcess, handle, class, to, length, needed_at);
        (status, needed)
    };
    same!(query(process, 0, 47) == (STATUS_INFO_LENGTH_MISMATCH, 48), true);
    same!(query(process, 0, 49).0, STATUS_INFO_LENGTH_MISMATCH);
    same!(query(process, 0, 48) == (0, 48), true);
    same!(buffer[0] & 0xFFFF_FFFF == 0x103 && buffer[4] == id as u64, true);
    same!(query(CURRENT, 26, 8) == (0, 8), true);
    same!(buffer[0], 0);
    same!(query(CURRENT, 24, 4) == (0, 4), true);
    same!(query(CURRENT, 4, 32) == (0, 32), true);
    let created = call!(PsGetProcessCreateTimeQuadPart, call!(PsGetCurrentProcess));
    same!(buffer[0], created);
    // The system process has no image.
    same!(query(CURRENT, 27, 256).0, 0);
    same!(buffer[1], to as u64 + 16);
    same!(query(CURRENT, 27, 16).0, STATUS_INFO_LENGTH_MISMATCH);
    same!(query(CURRENT, 999, 8).0, 0xC000_0003_u32);
    same!(query(pointer(usize::MAX - 1), 0, 48).0, STATUS_OBJECT_TYPE_MISMATCH);
    same!(query(pointer(0x1234), 0, 48).0, STATUS_INVALID_HANDLE);
    close(process);
}

fn waits() {
    let mut events = [NULL; 2];
    for event in &mut events {
        same!(call!(ZwCreateEvent, event, 0x1F_0003, NULL, 1, 0), 0);
    }
    let all = events.as_mut_ptr().cast();
    let mut now = 0_i64;
    let now = at(&mut now);
    let wait = |count: u64, handles: PVOID, kind: u64| {
        call!(ZwWaitForMultipleObjects, count, handles, kind, 0, now)
    };
    same!(wait(0, all, 1), 0xC000_00EF_u32);
    same!(wait(65, all, 1), 0xC000_00EF_u32);
    same!(wait(2, all, 2), 0xC000_00F1_u32);
    same!(wait(2, all, 1), STATUS_TIMEOUT);
    call!(ZwSetEvent, events[1], NULL);
    same!(wait(2, all, 0), STATUS_TIMEOUT);
    same!(wait(2, all, 1), 1);
    for event in events {
        call!(ZwSetEvent, event, NULL);
    }
    same!(wait(2, all, 0), STATUS_SUCCESS);
    same!(wait(1, at(&mut [events[0], pointer(0x1234)]), 1), STATUS_TIMEOUT);
    same!(wait(2, at(&mut [events[0], pointer(0x1234)]), 1), STATUS_INVALID_HANDLE);
    same!(wait(2, at(&mut [events[0], events[0]]), 0), STATUS_INVALID_PARAMETER_MIX);
    for event in events {
        close(event);
    }
}

fn processors() {
    call!(KeSetSystemAffinityThread, 1);
    same!(call!(KeSetSystemAffinityThreadEx, 1), 1);
    call!(KeRevertToUserAffinityThread);
    same!(call!(KeSetSystemAffinityThreadEx, 1), 0);
    call!(KeRevertToUserAffinityThreadEx, 0);
    for feature in 0..64 {
        // SAFETY: the stand-in kernel serves reads of the page.
        let shown = unsafe { ((0xFFFF_F780_0000_0274_u64 + feature) as *const u8).read_volatile() };
        same!(call!(ExIsProcessorFeaturePresent, feature), shown != 0);
    }
    // The features are SSE2 and RDTSC, and a feature that no x64 processor has.
    same!(call!(ExIsProcessorFeaturePresent, 10), true);
    same!(call!(ExIsProcessorFeaturePresent, 8), true);
    same!(call!(ExIsProcessorFeaturePresent, 0), false);
    same!(call!(ExIsProcessorFeaturePresent, u32::MAX), false);
}

/// The maximum size of a stack expansion, and the part of the expansion that the routine uses.
const EXPANSION: u64 = 0x1_1800;
const USED: usize = 0xF000;

fn stacks() {
    let expand = |routine: unsafe extern "C" fn(*mut c_void), parameter: PVOID, size: u64| {
        let routine: PEXPAND_STACK_CALLOUT = Some(routine);
        call!(KeExpandKernelStackAndCallout, routine, parameter, size)
    };
    let limits = || {
        let (mut low, mut high) = (0_u64, 0_u64);
        call!(IoGetStackLimits, &mut low, &mut high);
        high - low
    };
    let before = limits();
    let mut filled = 0_u64;
    same!(expand(fill, at(&mut filled), EXPANSION), 0);
    same!(filled, 7 * USED as u64);
    same!(limits(), before);
    same!(expand(fill, at(&mut filled), EXPANSION + 1), 0xC000_00F1_u32);
    let raised = call!(KfRaiseIrql, 2);
    let routine: PEXPAND_STACK_CALLOUT = Some(nothing);
    let waiting = call!(KeExpandKernelStackAndCalloutEx, routine, NULL, EXPANSION, 1, NULL);
    let without = call!(KeExpandKernelStackAndCalloutEx, routine, NULL, EXPANSION, 0, NULL);
    call!(KeLowerIrql, raised);
    same!(waiting, 0xC000_00F2_u32);
    same!(without, 0);
    // Each expansion has its own space, up to the limit of all stacks.
    same!(expand(nest, NULL, EXPANSION), 0);
    same!(NESTED[0].load(Ordering::Relaxed) > 8, true);
    same!(NESTED[1].load(Ordering::Relaxed), 0xC000_00FD_u32);
    same!(limits(), before);
    // This also works on a thread that the driver created.
    let mut event = Object::new();
    threads::join(threads::start(expand_in_thread, event.at()));
    same!(event.0[0], 7 * USED as u64);
}

unsafe extern "C" fn expand_in_thread(to: *mut c_void) {
    let routine: PEXPAND_STACK_CALLOUT = Some(fill);
    same!(call!(KeExpandKernelStackAndCalloutEx, routine, to, EXPANSION, 1, NULL), 0);
}

/// The number of nested expansions, and the status of the first one that failed.
static NESTED: [AtomicU32; 2] = [const { AtomicU32::new(0) }; 2];

/// Fills the expansion, and expands the stack again.
#[expect(clippy::large_stack_arrays, reason = "the tested routine gives it the stack")]
unsafe extern "C" fn nest(_context: PVOID) {
    let mut memory = [0_u8; USED];
    core::hint::black_box(&mut memory).fill(7);
    let routine: PEXPAND_STACK_CALLOUT = Some(nest);
    let status = call!(KeExpandKernelStackAndCallout, routine, NULL, EXPANSION);
    NESTED[0].fetch_add(1, Ordering::Relaxed);
    if status != 0 {
        NESTED[1].store(status.cast_unsigned(), Ordering::Relaxed);
    }
    core::hint::black_box(&mut memory);
}

const unsafe extern "C" fn nothing(_context: *mut c_void) {}

/// Uses more stack than a thread has without an expansion.
#[expect(clippy::large_stack_arrays, reason = "the tested routine gives it the stack")]
unsafe extern "C" fn fill(to: PVOID) {
    let mut memory = [0_u8; USED];
    core::hint::black_box(&mut memory).fill(7);
    let sum = memory.iter().map(|byte| u64::from(*byte)).sum();
    // SAFETY: the caller passes the address of its own variable.
    unsafe { *to.cast::<u64>() = sum };
}
