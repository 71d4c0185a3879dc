//! Files on the system volume.

use wdk_sys::{
    NTSTATUS, PVOID, STATUS_ACCESS_DENIED, STATUS_BUFFER_OVERFLOW, STATUS_CANNOT_DELETE,
    STATUS_END_OF_FILE, STATUS_FILE_IS_A_DIRECTORY, STATUS_INFO_LENGTH_MISMATCH,
    STATUS_INVALID_HANDLE, STATUS_INVALID_INFO_CLASS, STATUS_INVALID_PARAMETER,
    STATUS_NOT_A_DIRECTORY, STATUS_OBJECT_NAME_COLLISION, STATUS_OBJECT_NAME_INVALID,
    STATUS_OBJECT_NAME_NOT_FOUND, STATUS_OBJECT_PATH_NOT_FOUND, STATUS_OBJECT_TYPE_MISMATCH,
    STATUS_SHARING_VIOLATION,
};

use crate::{
    call::{NULL, at, call, pointer, same},
    file_systems,
    names::{with_attributes, with_string},
    namespace::{is_named, of_file},
};

/// The access rights for reading and writing, and for synchronous use.
const READ: u64 = 0x8010_0000;
const WRITE: u64 = 0x4010_0000;
const APPEND: u64 = 0x10_0004;
const DELETE: u64 = 0x1_0000;
const SYNCHRONOUS: u64 = 0x20;
/// The operations on a file.
const OPEN: u64 = 1;
const CREATE: u64 = 2;
const OPEN_IF: u64 = 3;
const OVERWRITE_IF: u64 = 5;

/// The result of an open: the status, the information in the status block, and the handle.
type Opened = (NTSTATUS, u64, PVOID);

fn open(name: &[u8], access: u64, share: u64, disposition: u64, options: u64) -> Opened {
    open_below(NULL, name, access, share, disposition, options)
}

fn open_below(
    root: PVOID,
    name: &[u8],
    access: u64,
    share: u64,
    disposition: u64,
    options: u64,
) -> Opened {
    let (mut handle, mut block) = (NULL, [0_u64; 2]);
    let status = with_attributes(root, name, 0x240, |attributes| {
        call!(
            ZwCreateFile, &mut handle, access, attributes, &mut block, NULL, 0x80, share,
            disposition, options, NULL, 0
        )
    });
    same!(block[0], status);
    (status, block[1], handle)
}

/// Returns the status of an attempt to open a file, and closes the handle.
fn attempt(name: &[u8], access: u64, share: u64, disposition: u64, options: u64) -> NTSTATUS {
    let (status, _, handle) = open(name, access, share, disposition, options);
    if status == 0 {
        call!(ZwClose, handle);
    }
    status
}

/// The direction of a transfer: `ZwReadFile` or `ZwWriteFile`.
#[derive(Clone, Copy)]
enum Transfer {
    Read,
    Write,
}

fn transfer(
    routine: Transfer,
    handle: PVOID,
    buffer: &mut [u8],
    offset: Option<i64>,
) -> (NTSTATUS, u64) {
    transfer_with(NULL, routine, handle, buffer, offset)
}

fn transfer_with(
    event: PVOID,
    routine: Transfer,
    handle: PVOID,
    buffer: &mut [u8],
    offset: Option<i64>,
) -> (NTSTATUS, u64) {
    let mut block = [0_u64; 2];
    let mut place = offset.unwrap_or(0);
    let place = if offset.is_some() { at(&mut place) } else { NULL };
    let (length, to) = (buffer.len(), buffer.as_mut_ptr());
    let status = match routine {
        Transfer::Read => {
            call!(ZwReadFile, handle, event, None, NULL, &mut block, to, length, place, NULL)
        }
        Transfer::Write => {
            call!(ZwWriteFile, handle, event, None, NULL, &mut block, to, length, place, NULL)
        }
    };
    (status, block[1])
}

/// Checks the type and the size of a file handle's object.
fn is_file_object(handle: PVOID) {
    let mut object = NULL;
    same!(call!(ObReferenceObjectByHandle, handle, 0, NULL, 0, &mut object, NULL), 0);
    // SAFETY: a `FILE_OBJECT` is longer.
    same!(unsafe { *(object as *const u32) }, 5 | 0xD8 << 16);
    call!(ObfDereferenceObject, object);
}

const FILE: &[u8] = br"\??\C:\Sub\File.txt";

pub fn run() {
    patterns();
    file_systems::run();
    same!(attempt(FILE, READ, 7, OPEN, SYNCHRONOUS), STATUS_OBJECT_PATH_NOT_FOUND);
    same!(attempt(br"\??\C:\Sub", READ, 7, CREATE, 1), 0);
    same!(attempt(FILE, READ, 7, OPEN, SYNCHRONOUS), STATUS_OBJECT_NAME_NOT_FOUND);
    let (status, happened, handle) = open(FILE, READ | WRITE, 0, CREATE, SYNCHRONOUS);
    same!((status, happened) == (0, 2), true);
    same!(attempt(FILE, READ, 7, OPEN, SYNCHRONOUS), STATUS_SHARING_VIOLATION);
    same!(attempt(br"\??\C:\SUB\FILE.TXT", READ, 7, CREATE, 0), STATUS_OBJECT_NAME_COLLISION);
    is_file_object(handle);
    // The duplicate has the same number as the handle that it replaces.
    let mut handle = handle;
    let source = handle;
    let duplicated = call!(
        ZwDuplicateObject,
        pointer(usize::MAX),
        source,
        pointer(usize::MAX),
        &mut handle,
        0,
        0,
        3
    );
    same!(duplicated, 0);
    same!(handle != source, true);
    contents(handle);
    waits(handle);
    queries(handle);
    information(handle);
    same!(call!(ZwClose, handle), 0);
    let (status, happened, handle) = open(FILE, READ, 7, OPEN_IF, SYNCHRONOUS);
    same!((status, happened) == (0, 1), true);
    // A handle's rights are checked only for calls from user mode.
    same!(transfer(Transfer::Write, handle, &mut [1], Some(0)) == (0, 1), true);
    let mut end = 1_u64;
    let mut block = [0_u64; 2];
    same!(call!(ZwSetInformationFile, handle, &mut block, &mut end, 8, 20), 0);
    names(handle);
    for_drivers();
    sharing();
    call!(ZwClose, handle);
    let (_, _, handle) = open(FILE, APPEND, 7, OPEN, SYNCHRONOUS);
    // The handle appends to the end, regardless of the offset.
    same!(transfer(Transfer::Write, handle, &mut [2, 3], Some(0)) == (0, 2), true);
    let mut buffer = [0_u8; 4];
    same!(transfer(Transfer::Read, handle, &mut buffer, Some(0)) == (0, 3), true);
    same!(buffer == [1, 2, 3, 0], true);
    let mut object = NULL;
    same!(call!(ObReferenceObjectByHandle, handle, 0, NULL, 0, &mut object, NULL), 0);
    same!(is_named(object, br"\Device\HarddiskVolume1\Sub\File.txt"), true);
    call!(ObfDereferenceObject, object);
    of_file(handle, 3);
    same!(transfer(Transfer::Read, handle, &mut buffer, Some(0)) == (0, 3), true);
    same!(buffer == [0x21, 2, 3, 0], true);
    call!(ZwClose, handle);
    let (status, happened, handle) =
        open(FILE, WRITE | DELETE, 7, OVERWRITE_IF, SYNCHRONOUS | 0x1000);
    same!((status, happened) == (0, 3), true);
    call!(ZwClose, handle);
    same!(attempt(FILE, READ, 7, OPEN, SYNCHRONOUS), STATUS_OBJECT_NAME_NOT_FOUND);
    same!(attempt(br"\??\C:\Sub", READ, 7, OPEN, 0x40), STATUS_FILE_IS_A_DIRECTORY);
    same!(attempt(br"\??\C:\..\outside", READ, 7, OPEN, 0), STATUS_OBJECT_NAME_INVALID);
    same!(attempt(br"\??\C:\link\etc\passwd", READ, 7, OPEN, 0), STATUS_ACCESS_DENIED);
    same!(attempt(br"\??\D:\file", READ, 7, OPEN, 0), STATUS_OBJECT_PATH_NOT_FOUND);
    same!(attempt(br"\Device\Absent", READ, 7, OPEN, 0), STATUS_OBJECT_NAME_NOT_FOUND);
    same!(attempt(br"\Device\Absent\file", READ, 7, OPEN, 0), STATUS_OBJECT_PATH_NOT_FOUND);
    same!(attempt(br"\SystemRoot\log.txt", WRITE, 7, OVERWRITE_IF, 0), 0);
}

/// The pattern is in upper case, and the name is converted to it by the caller's table, if any.
fn patterns() {
    let matches = |name: &[u8], ignores_case: u64, table: PVOID| {
        with_string(b"N?M<.SYS", |pattern| {
            with_string(name, |name| {
                call!(FsRtlIsNameInExpression, pattern, name, ignores_case, table)
            })
        })
    };
    same!(matches(b"NAME.SYS", 0, NULL), true);
    same!(matches(b"name.sys", 0, NULL), false);
    same!(matches(b"name.sys", 1, NULL), true);
    same!(matches(b"NAME.SYS", 1, at(&mut [u16::from(b'x'); 128])), false);
}

fn contents(handle: PVOID) {
    let mut text = *b"0123456789";
    same!(transfer(Transfer::Write, handle, &mut text, None) == (0, 10), true);
    // The position is at the end.
    let mut buffer = [0_u8; 4];
    same!(transfer(Transfer::Read, handle, &mut buffer, None).0, STATUS_END_OF_FILE);
    same!(transfer(Transfer::Read, handle, &mut buffer, Some(8)) == (0, 2), true);
    same!(buffer[..2] == *b"89", true);
    same!(transfer(Transfer::Read, handle, &mut buffer, Some(2)) == (0, 4), true);
    same!(transfer(Transfer::Read, handle, &mut buffer, None) == (0, 4), true);
    same!(buffer == *b"6789", true);
    // Writes at the end of the file.
    same!(transfer(Transfer::Write, handle, &mut text[..2], Some(-1)) == (0, 2), true);
    same!(transfer(Transfer::Read, pointer(0x4444), &mut buffer, None).0, 0xC000_0008_u32);
}

/// A transfer sets its event, and the handle of a file can be waited for.
fn waits(handle: PVOID) {
    let (mut event, mut now, mut buffer, mut text) = (NULL, 0_i64, [0_u8; 4], *b"0123");
    same!(call!(ZwCreateEvent, &mut event, 0x1F_0003, NULL, 0, 1), 0);
    let mut wait = |handle: PVOID| call!(ZwWaitForSingleObject, handle, 0, &mut now);
    let mut read =
        |event, offset| transfer_with(event, Transfer::Read, handle, &mut buffer, offset);
    same!(read(event, Some(100)).0, STATUS_END_OF_FILE);
    same!(wait(event), 0x102);
    same!(read(event, Some(0)) == (0, 4), true);
    same!(wait(event), 0);
    same!(transfer_with(event, Transfer::Write, handle, &mut text, Some(0)) == (0, 4), true);
    same!(wait(event), 0);
    same!(wait(handle), 0);
    same!(
        transfer_with(pointer(0x4444), Transfer::Read, handle, &mut [0], Some(0)).0,
        STATUS_INVALID_HANDLE
    );
    same!(
        transfer_with(handle, Transfer::Read, handle, &mut [0], Some(0)).0,
        STATUS_OBJECT_TYPE_MISMATCH
    );
    call!(ZwClose, event);
}

/// The classes of information with names, and those that summarize others.
fn queries(handle: PVOID) {
    let (mut block, mut buffer) = ([0_u64; 2], [0_u32; 40]);
    let to = at(&mut buffer);
    let mut query = |class: u64, length: u64| {
        let of_block = at(&mut block);
        let status = call!(ZwQueryInformationFile, handle, of_block, to, length, class);
        (status, block[1])
    };
    let name = 2 * br"\Sub\File.txt".len() as u64;
    same!(query(9, 7).0, STATUS_INFO_LENGTH_MISMATCH);
    same!(query(9, 4 + name - 1) == (STATUS_BUFFER_OVERFLOW, 4 + name - 1), true);
    same!(query(9, 4 + name) == (0, 4 + name), true);
    same!(buffer[0] == name as u32 && buffer[1] == u32::from(b'\\') | u32::from(b'S') << 16, true);
    same!(query(18, 103).0, STATUS_INFO_LENGTH_MISMATCH);
    same!(query(18, 104) == (STATUS_BUFFER_OVERFLOW, 104), true);
    same!(query(18, 160) == (0, 100 + name), true);
    // The attributes, the size, the mode and the length of the name.
    same!(buffer[8] == 0x20 && buffer[12] == 12 && buffer[22] == SYNCHRONOUS as u32, true);
    same!(buffer[24], name);
    // The rights to read and write are specific ones.
    same!(buffer[19], 0x12_019F);
    same!(query(34, 56) == (0, 56), true);
    same!(buffer[10] == 12 && buffer[12] == 0x20, true);
    same!(query(35, 8) == (0, 8), true);
    same!(query(6, 8) == (0, 8), true);
}

/// Names that the file system refuses, or that lead to something else. `file` is open.
fn names(file: PVOID) {
    same!(
        attempt(br"\??\C:\Sub\File.txt\", READ, 7, OPEN, SYNCHRONOUS),
        STATUS_OBJECT_NAME_INVALID
    );
    same!(
        attempt(br"\??\C:\Sub\\File.txt", READ, 7, OPEN, SYNCHRONOUS),
        STATUS_OBJECT_NAME_INVALID
    );
    same!(attempt(br"\??\C:\\Sub\\", READ, 7, OPEN, 1), 0);
    same!(attempt(br"\??\C:\Sub\\\", READ, 7, OPEN, 1), STATUS_OBJECT_NAME_INVALID);
    same!(attempt(br"\??\C:\", READ, 7, CREATE, 1), STATUS_ACCESS_DENIED);
    same!(attempt(br"\??\C:\", READ, 7, OPEN, 0x1001), STATUS_CANNOT_DELETE);
    // Without a backslash, the name is the volume's.
    same!(attempt(br"\??\C:", READ, 7, OPEN, 0x40), 0);
    same!(attempt(br"\??\C:", READ, 7, OPEN, 1), STATUS_NOT_A_DIRECTORY);
    same!(attempt(br"\??\C:\", READ, 7, OPEN, 0x40), STATUS_FILE_IS_A_DIRECTORY);
    same!(attempt(FILE, READ, 7, OPEN, 0x41), STATUS_INVALID_PARAMETER);
    let (_, _, folder) = open(br"\??\C:\Sub", READ, 7, OPEN, 1);
    let below = |root, name| {
        let (status, _, handle) = open_below(root, name, READ, 7, OPEN, SYNCHRONOUS);
        if status == 0 {
            call!(ZwClose, handle);
        }
        status
    };
    same!(below(folder, b"File.txt"), 0);
    same!(below(folder, br"\File.txt"), STATUS_OBJECT_NAME_INVALID);
    same!(below(file, b"File.txt"), STATUS_OBJECT_PATH_NOT_FOUND);
    same!(below(file, b""), 0);
    call!(ZwClose, folder);
    let (_, _, volume) = open(br"\??\C:", READ, 7, OPEN, SYNCHRONOUS);
    same!(below(volume, b"Sub"), STATUS_OBJECT_PATH_NOT_FOUND);
    call!(ZwClose, volume);
    let (mut buffer, mut needed) = ([0_u64; 16], 0_u32);
    let mut query = |length: u64| {
        let to = at(&mut buffer);
        (call!(ZwQueryObject, file, 1, to, length, &mut needed), needed)
    };
    let whole = 16 + 2 * (br"\Device\HarddiskVolume1\Sub\File.txt".len() as u32 + 1);
    same!(query(0) == (STATUS_INFO_LENGTH_MISMATCH, whole), true);
    same!(query(16) == (STATUS_BUFFER_OVERFLOW, whole), true);
    same!(query(whole.into()).0, 0);
}

fn information(handle: PVOID) {
    let mut block = [0_u64; 2];
    let mut standard = [0_u64; 3];
    same!(call!(ZwQueryInformationFile, handle, &mut block, &mut standard, 24, 5), 0);
    same!((standard[1], standard[2], block[1]) == (12, 1, 24), true);
    let (mut object, mut size) = (NULL, 0_u64);
    same!(call!(ObReferenceObjectByHandle, handle, 0, NULL, 0, &mut object, NULL), 0);
    same!(call!(FsRtlGetFileSize, object, &mut size), 0);
    same!(size, 12);
    call!(ObfDereferenceObject, object);
    let short = call!(ZwQueryInformationFile, handle, &mut block, &mut standard, 23, 5);
    same!(short, STATUS_INFO_LENGTH_MISMATCH);
    let other = call!(ZwQueryInformationFile, handle, &mut block, &mut standard, 24, 99);
    same!(other, STATUS_INVALID_INFO_CLASS);
    let mut end = 3_u64;
    same!(call!(ZwSetInformationFile, handle, &mut block, &mut end, 8, 20), 0);
    let mut position = 1_u64;
    same!(call!(ZwSetInformationFile, handle, &mut block, &mut position, 8, 14), 0);
    let mut buffer = [0_u8; 4];
    same!(transfer(Transfer::Read, handle, &mut buffer, None) == (0, 2), true);
    same!(buffer[..2] == *b"12", true);
}

/// Opens a file as drivers do in other drivers' names: the arguments are those of `ZwCreateFile`, and more.
fn for_drivers() {
    let (mut handle, mut block) = (NULL, [0_u64; 2]);
    let (to, block_at) = (&raw mut handle, &raw mut block);
    let creates: [&dyn Fn(PVOID) -> NTSTATUS; 3] = [
        &|of| {
            call!(
                IoCreateFile, to, READ, of, block_at, NULL, 0x80, 7, OPEN, SYNCHRONOUS, NULL, 0, 0,
                NULL, 0x100
            )
        },
        &|of| {
            call!(
                IoCreateFileEx, to, READ, of, block_at, NULL, 0x80, 7, OPEN, SYNCHRONOUS, NULL, 0,
                0, NULL, 0x100, NULL
            )
        },
        &|of| {
            call!(
                IoCreateFileSpecifyDeviceObjectHint, to, READ, of, block_at, NULL, 0x80, 7, OPEN,
                SYNCHRONOUS, NULL, 0, 0, NULL, 0x100, NULL
            )
        },
    ];
    for create in creates {
        let status = with_attributes(NULL, FILE, 0x240, create);
        same!((status, block[1]) == (0, 1), true);
        call!(ZwClose, handle);
    }
}

/// The counts of a file's opens, which a driver keeps.
fn sharing() {
    /// `FILE_OBJECT`.
    type File = [u64; 27];
    let (mut first, mut second, mut third): (File, File, File) = ([0; 27], [0; 27], [0; 27]);
    let mut opens = [9_u32; 7];
    call!(IoSetShareAccess, 1, 1, &mut first, &mut opens);
    same!(opens == [1, 1, 0, 0, 1, 0, 0], true);
    let check = |access: u64, share: u64, file: &mut File, opens: &mut [u32; 7], adds: u64| {
        call!(IoCheckShareAccess, access, share, file, opens, adds)
    };
    same!(check(2, 3, &mut second, &mut opens, 1), STATUS_SHARING_VIOLATION);
    same!(check(1, 2, &mut second, &mut opens, 1), STATUS_SHARING_VIOLATION);
    same!(check(1, 1, &mut second, &mut opens, 0), 0);
    same!(opens == [1, 1, 0, 0, 1, 0, 0], true);
    call!(IoUpdateShareAccess, &mut second, &mut opens);
    same!(opens == [2, 2, 0, 0, 2, 0, 0], true);
    // An open that reads only attributes does not count.
    same!(check(0x80, 0, &mut third, &mut opens, 1), 0);
    same!(opens == [2, 2, 0, 0, 2, 0, 0], true);
    call!(IoRemoveShareAccess, &mut first, &mut opens);
    same!(opens == [1, 1, 0, 0, 1, 0, 0], true);
}
