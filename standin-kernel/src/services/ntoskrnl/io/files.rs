//! Files in a folder that the test provides. Files outside the folder are inaccessible.

use std::{
    collections::HashMap,
    fs::{self, File, OpenOptions},
    io::{ErrorKind, Read, Seek, SeekFrom, Write},
    iter,
    path::{Path, PathBuf},
};

use zerocopy::FromZeros;

use super::{
    build,
    device_files::{self, Sender},
    send,
};
use crate::{
    execution::{
        kinds::NtObject,
        routine::{At, Callback, Handle, Memory, Out, routine},
        strings::read_unicode_string,
    },
    ground::{
        NtResult, NtStatus,
        abi::{FileBasic, FileObject, IoStatusBlock, ObjectAttributesNt},
        arena::Block,
        host, memory,
        opaque::IoDriverCreateContext,
    },
    services::{
        managers::create_parameters::SYNCHRONOUS_IO,
        ntoskrnl::{
            context::{Context, Entries, Ntoskrnl},
            ex::named_events,
            ke::dispatcher,
            ob::{
                handles::{self, Opening, Target},
                namespace,
            },
        },
    },
};

pub const ENTRIES: Entries = &[
    routine("ZwCreateFile", create),
    routine("IoCreateFile", create_for_driver),
    routine("IoCreateFileEx", create_for_driver_with_context),
    routine("IoCreateFileSpecifyDeviceObjectHint", create_for_driver_with_context),
    routine("ZwOpenFile", open),
    routine("ZwReadFile", read),
    routine("ZwWriteFile", write),
    routine("ZwFlushBuffersFile", flush),
    routine("ZwSetInformationFile", set),
    routine("ZwDeleteFile", delete),
];

const OBJECT_PATH_NOT_FOUND: NtStatus = NtStatus::from_bits(0xC000_003A);
const OBJECT_PATH_SYNTAX_BAD: NtStatus = NtStatus::from_bits(0xC000_003B);
const OBJECT_NAME_INVALID: NtStatus = NtStatus::from_bits(0xC000_0033);
const SHARING_VIOLATION: NtStatus = NtStatus::from_bits(0xC000_0043);
const DELETE_PENDING: NtStatus = NtStatus::from_bits(0xC000_0056);
pub const FILE_IS_A_DIRECTORY: NtStatus = NtStatus::from_bits(0xC000_00BA);
const NOT_A_DIRECTORY: NtStatus = NtStatus::from_bits(0xC000_0103);
const DIRECTORY_NOT_EMPTY: NtStatus = NtStatus::from_bits(0xC000_0101);
const END_OF_FILE: NtStatus = NtStatus::from_bits(0xC000_0011);
const DISK_FULL: NtStatus = NtStatus::from_bits(0xC000_007F);
const UNEXPECTED_IO_ERROR: NtStatus = NtStatus::from_bits(0xC000_00E9);

/// The access rights that this kernel evaluates.
mod access {
    pub const READ_DATA: u32 = 0x1;
    pub const WRITE_DATA: u32 = 0x2;
    pub const APPEND_DATA: u32 = 0x4;
    pub const DELETE: u32 = 0x1_0000;
    pub const GENERIC_ALL: u32 = 0x1000_0000;
    pub const GENERIC_WRITE: u32 = 0x4000_0000;
    pub const GENERIC_READ: u32 = 0x8000_0000;
}

/// The create options that this kernel evaluates.
mod option {
    pub const DIRECTORY: u32 = 0x1;
    pub const SYNCHRONOUS: u32 = 0x10 | 0x20;
    pub const NON_DIRECTORY: u32 = 0x40;
    pub const DELETE_ON_CLOSE: u32 = 0x1000;
    /// The options that are part of a file's mode: how it is cached, synchronized and deleted.
    pub const MODE: u32 = 0x2 | 0x4 | 0x8 | SYNCHRONOUS | DELETE_ON_CLOSE;
}

/// The folder, and the open files by object address.
#[derive(Default)]
struct Files {
    folder: Option<PathBuf>,
    open: HashMap<u64, OpenFile>,
}

pub struct OpenFile {
    /// `None` for a directory and for the volume.
    pub file: Option<File>,
    /// Set if the volume is open, not its root directory.
    pub is_volume: bool,
    pub path: PathBuf,
    pub access: u32,
    share: u32,
    /// The create options that remain the file's mode.
    pub mode: u32,
    /// The current position, if the file is open for synchronous use.
    pub position: Option<u64>,
    pub deletes: bool,
    _memory: Block,
}

/// Sets the folder that drivers find at `\??\C:`.
pub fn set_folder(nt: &Ntoskrnl, folder: &Path) {
    let folder = host::folder_of_volume(folder);
    nt.state().get::<Files>().folder = Some(folder);
}

/// Returns the name of a file in the folder: the volume name followed by the path.
pub fn name_of(context: &Context, object: u64) -> Option<String> {
    context.with_state(|files: &mut Files| {
        let path = &files.open.get(&object)?.path;
        let below = path.strip_prefix(files.folder.as_ref()?).ok()?;
        let parts = below.iter().map(|part| part.to_string_lossy().into_owned());
        let parts = iter::once(VOLUME.to_owned()).chain(parts);
        Some(parts.collect::<Vec<_>>().join(r"\"))
    })
}

/// The name of the volume that represents the folder.
pub const VOLUME: &str = r"\Device\HarddiskVolume1";

/// Returns the status that corresponds to an operating system error.
pub fn status_of(error: &std::io::Error) -> NtStatus {
    match error.kind() {
        ErrorKind::NotFound => NtStatus::OBJECT_NAME_NOT_FOUND,
        ErrorKind::AlreadyExists => NtStatus::OBJECT_NAME_COLLISION,
        ErrorKind::PermissionDenied => NtStatus::ACCESS_DENIED,
        ErrorKind::DirectoryNotEmpty => DIRECTORY_NOT_EMPTY,
        ErrorKind::StorageFull => DISK_FULL,
        _ => UNEXPECTED_IO_ERROR,
    }
}

/// Returns the path below the folder that an object manager name denotes.
fn below_volume(name: &str) -> Option<String> {
    /// The name prefixes and the folders that they denote.
    const PREFIXES: [(&str, &str); 5] = [
        (r"\??\c:", ""),
        (r"\dosdevices\c:", ""),
        (r"\global??\c:", ""),
        (r"\device\harddiskvolume1", ""),
        (r"\systemroot", r"\Windows"),
    ];
    PREFIXES.iter().find_map(|(prefix, stands_for)| {
        let start = name.get(..prefix.len())?;
        let rest = name.get(prefix.len()..)?;
        let matches = start.eq_ignore_ascii_case(prefix);
        (matches && (rest.is_empty() || rest.starts_with('\\')))
            .then(|| format!("{stands_for}{rest}"))
    })
}

/// Resolves a Windows path from a folder to a path in the host's file system. Names are compared
/// without regard to case. A path that leaves the folder, through `..` or a symbolic link, is an
/// error. `wants_directory` is set for an open of a directory (`FILE_DIRECTORY_FILE`).
fn resolve(folder: &Path, path: &str, wants_directory: bool) -> NtResult<PathBuf> {
    let mut at = folder.to_owned();
    if !path.is_empty() && at.is_file() {
        return Err(OBJECT_PATH_NOT_FOUND);
    }
    let names = names_of(path);
    for (number, name) in names.iter().enumerate() {
        let is_bad = name.is_empty()
            || *name == "."
            || *name == ".."
            || name.contains(['/', ':', '*', '?', '"', '<', '>', '|'])
            || name.chars().any(char::is_control);
        if is_bad {
            return Err(OBJECT_NAME_INVALID);
        }
        let is_last = number + 1 == names.len();
        at = match find_entry(&at, name) {
            Some(entry) => entry,
            None if is_last => at.join(name),
            None => return Err(OBJECT_PATH_NOT_FOUND),
        };
        if let Ok(metadata) = fs::symlink_metadata(&at) {
            if metadata.is_symlink() {
                return Err(NtStatus::ACCESS_DENIED);
            }
            if !is_last && !metadata.is_dir() {
                return Err(OBJECT_PATH_NOT_FOUND);
            }
            if path.ends_with('\\') && !metadata.is_dir() {
                return Err(if wants_directory { NOT_A_DIRECTORY } else { OBJECT_NAME_INVALID });
            }
        }
    }
    Ok(at)
}

/// Splits a path into names. Windows ignores a second backslash at the start or at the end; any other
/// leads to an empty name.
fn names_of(path: &str) -> Vec<&str> {
    let rest = path.strip_prefix('\\').unwrap_or(path);
    let rest = rest.strip_prefix('\\').unwrap_or(rest);
    if rest.starts_with('\\') {
        return vec![""];
    }
    let rest = rest.strip_suffix('\\').unwrap_or(rest);
    let rest = rest.strip_suffix('\\').unwrap_or(rest);
    if rest.is_empty() { Vec::new() } else { rest.split('\\').collect() }
}

fn find_entry(folder: &Path, name: &str) -> Option<PathBuf> {
    let exact = folder.join(name);
    if fs::symlink_metadata(&exact).is_ok() {
        return Some(exact);
    }
    let wanted = name.to_lowercase();
    let mut found: Vec<PathBuf> = fs::read_dir(folder)
        .ok()?
        .filter_map(Result::ok)
        .filter(|entry| entry.file_name().to_string_lossy().to_lowercase() == wanted)
        .map(|entry| entry.path())
        .collect();
    found.sort();
    found.into_iter().next()
}

/// Returns the path that object attributes specify, and whether they specify the volume itself: its name
/// without a backslash at the end.
fn path_of(context: &Context, attributes: u64, options: u32) -> NtResult<(PathBuf, bool)> {
    let wants_directory = options & option::DIRECTORY != 0;
    let attributes: ObjectAttributesNt = context.read(attributes);
    if attributes.object_name == 0 {
        return Err(OBJECT_PATH_SYNTAX_BAD);
    }
    let name = read_unicode_string(context, attributes.object_name);
    if attributes.root_directory != 0 {
        let root =
            handles::target(context, attributes.root_directory).ok_or(NtStatus::INVALID_HANDLE)?;
        if send::is_open(context, root.object) {
            context.stop_for_unprovided("with a name relative to a file on a device");
        }
        let mut state = context.state();
        let files = state.get::<Files>();
        let root = files.open.get(&root.object).ok_or(NtStatus::OBJECT_TYPE_MISMATCH)?;
        if name.starts_with('\\') {
            return Err(OBJECT_NAME_INVALID);
        }
        if root.is_volume {
            return Err(OBJECT_PATH_NOT_FOUND);
        }
        return Ok((resolve(&root.path, &name, wants_directory)?, false));
    }
    if !name.starts_with('\\') {
        return Err(OBJECT_PATH_SYNTAX_BAD);
    }
    let folder = context.state().get::<Files>().folder.clone();
    let path = below_volume(&name).ok_or_else(|| {
        namespace::find(context, &name, true).err().unwrap_or(OBJECT_PATH_NOT_FOUND)
    })?;
    let folder = folder.ok_or(OBJECT_PATH_NOT_FOUND)?;
    Ok((resolve(&folder, &path, wants_directory)?, path.is_empty()))
}

/// Returns the name in object attributes if it can be a device's: an absolute name outside the volume.
fn device_name(context: &Context, attributes: u64) -> Option<String> {
    let attributes: ObjectAttributesNt = context.read(attributes);
    if attributes.object_name == 0 || attributes.root_directory != 0 {
        return None;
    }
    let name = read_unicode_string(context, attributes.object_name);
    below_volume(&name).is_none().then_some(name)
}

fn create(
    context: &Context,
    handle: Out<NtObject>,
    access: u32,
    attributes: At<ObjectAttributesNt>,
    block: At<IoStatusBlock>,
    _size: At<i64>,
    kind: u32,
    share: u32,
    disposition: u32,
    options: u32,
    _extended: Memory,
    extended_size: u32,
) -> NtResult {
    let wanted = [access, share, disposition, options];
    open_by(context, handle, attributes.0, block, wanted, [kind, extended_size])
}

/// Opens or creates a file for a driver. The options and the driver's context determine which checks and
/// filters Windows applies; there are none here.
#[expect(clippy::too_many_arguments, reason = "the DDI has them")]
fn create_for_driver_with_context(
    context: &Context,
    handle: Out<NtObject>,
    access: u32,
    attributes: At<ObjectAttributesNt>,
    block: At<IoStatusBlock>,
    _size: At<i64>,
    kind: u32,
    share: u32,
    disposition: u32,
    options: u32,
    _extended: Memory,
    extended_size: u32,
    file_type: i32,
    _parameters: Memory,
    _io_options: u32,
    _driver_context: At<IoDriverCreateContext>,
) -> NtResult {
    if file_type != 0 {
        context.stop_for_unprovided("for a named pipe or a mailslot");
    }
    let wanted = [access, share, disposition, options];
    open_by(context, handle, attributes.0, block, wanted, [kind, extended_size])
}

#[expect(clippy::too_many_arguments, reason = "the DDI has them")]
fn create_for_driver(
    context: &Context,
    handle: Out<NtObject>,
    access: u32,
    attributes: At<ObjectAttributesNt>,
    block: At<IoStatusBlock>,
    size: At<i64>,
    kind: u32,
    share: u32,
    disposition: u32,
    options: u32,
    extended: Memory,
    extended_size: u32,
    file_type: i32,
    parameters: Memory,
    io_options: u32,
) -> NtResult {
    create_for_driver_with_context(
        context,
        handle,
        access,
        attributes,
        block,
        size,
        kind,
        share,
        disposition,
        options,
        extended,
        extended_size,
        file_type,
        parameters,
        io_options,
        At::NULL,
    )
}

fn open(
    context: &Context,
    handle: Out<NtObject>,
    access: u32,
    attributes: At<ObjectAttributesNt>,
    block: At<IoStatusBlock>,
    share: u32,
    options: u32,
) -> NtResult {
    /// `FILE_OPEN`.
    const OPEN: u32 = 1;
    open_by(context, handle, attributes.0, block, [access, share, OPEN, options], [0; 2])
}

fn open_by(
    context: &Context,
    handle: Out<NtObject>,
    attributes: u64,
    block: At<IoStatusBlock>,
    wanted: [u32; 4],
    [kind, extended_size]: [u32; 2],
) -> NtResult {
    const BOTH: u32 = option::DIRECTORY | option::NON_DIRECTORY;
    let [.., options] = wanted;
    if options & BOTH == BOTH {
        return finish(context, block, Err(NtStatus::INVALID_PARAMETER));
    }
    let of_device = device_name(context, attributes)
        .and_then(|name| device_files::open(context, &name, wanted, kind));
    let is_device = of_device.is_some();
    if is_device && extended_size > 0 {
        context.stop_for_unprovided("with extended attributes for a device");
    }
    let opened = of_device.unwrap_or_else(|| {
        path_of(context, attributes, options).and_then(|path| open_path(context, path, wanted))
    });
    let done = opened.map(|(object, information)| {
        handles::own(context, object, if is_device { send::close_after_cleanup } else { close });
        let target = Target {
            type_name: "IoFileObjectType",
            object,
            close: if is_device { device_files::handle_closed } else { |_, _| {} },
            has_reference: false,
        };
        let value: ObjectAttributesNt = context.read(attributes);
        let [access, ..] = wanted;
        let opening = Opening { attributes: value.attributes, access };
        handle.write(context, handles::open(context, target, opening));
        information
    });
    finish(context, block, done)
}

/// Stores the result of an operation.
fn finish(context: &Context, block: At<IoStatusBlock>, done: NtResult<u64>) -> NtResult {
    let status = done.err().unwrap_or(NtStatus::SUCCESS).bits();
    block.write(
        context,
        IoStatusBlock { status, information: done.unwrap_or(0), ..Default::default() },
    );
    done.map(drop)
}

/// Opens or creates a file. Returns its object's address, and the status block's information.
fn open_path(
    context: &Context,
    (path, is_volume): (PathBuf, bool),
    [access, share, disposition, options]: [u32; 4],
) -> NtResult<(u64, u64)> {
    // The root directory can only be opened: `FILE_OPEN` or `FILE_OPEN_IF`.
    let is_root = context.with_state(|files: &mut Files| files.folder.as_deref() == Some(&path));
    if is_root && ![1, 3].contains(&disposition) {
        return Err(NtStatus::ACCESS_DENIED);
    }
    if is_root && options & option::DELETE_ON_CLOSE != 0 {
        return Err(NtStatus::CANNOT_DELETE);
    }
    let metadata = fs::symlink_metadata(&path).ok();
    let exists = metadata.is_some();
    // The dispositions are: supersede, open, create, open if, overwrite, overwrite if. Each
    // determines whether the contents are truncated, and the status block's information.
    let (truncates, information) = match (disposition, exists) {
        (0, true) => (true, 0),
        (1 | 3, true) => (false, 1),
        (4 | 5, true) => (true, 3),
        (0 | 2 | 3 | 5, false) => (false, 2),
        (2, true) => return Err(NtStatus::OBJECT_NAME_COLLISION),
        (1 | 4, false) => return Err(NtStatus::OBJECT_NAME_NOT_FOUND),
        _ => return Err(NtStatus::INVALID_PARAMETER),
    };
    let is_directory =
        !is_volume && metadata.map_or(options & option::DIRECTORY != 0, |found| found.is_dir());
    if is_directory && options & option::NON_DIRECTORY != 0 {
        return Err(FILE_IS_A_DIRECTORY);
    }
    if !is_directory && options & option::DIRECTORY != 0 {
        return Err(NOT_A_DIRECTORY);
    }
    let mut state = context.state();
    let files = state.get::<Files>();
    let mut others =
        files.open.values().filter(|other| other.path == path && other.is_volume == is_volume);
    if others.clone().any(|other| other.deletes) {
        return Err(DELETE_PENDING);
    }
    if others.any(|other| conflicts(access, other.share) || conflicts(other.access, share)) {
        return Err(SHARING_VIOLATION);
    }
    let file = if is_volume {
        None
    } else if is_directory {
        if !exists {
            fs::create_dir(&path).map_err(|error| status_of(&error))?;
        }
        None
    } else {
        let opened = OpenOptions::new()
            .read(true)
            .write(true)
            .create(!exists)
            .truncate(truncates)
            .open(&path);
        Some(opened.map_err(|error| status_of(&error))?)
    };
    let memory = Block::zeroed(0x100);
    let object = memory.address();
    let value = FileObject {
        kind: FileObject::TYPE,
        size: FileObject::SIZE,
        flags: if options & option::SYNCHRONOUS == 0 { 0 } else { SYNCHRONOUS_IO },
        // Every operation has ended when its routine returns, so the event stays set.
        event: send::file_event(object, 1),
        ..FileObject::new_zeroed()
    };
    // The kernel's own block is always writable.
    let _written = memory::write(object, &value);
    let opened = OpenFile {
        file,
        is_volume,
        path,
        access,
        share,
        mode: options & option::MODE,
        position: (options & option::SYNCHRONOUS != 0).then_some(0),
        deletes: options & option::DELETE_ON_CLOSE != 0,
        _memory: memory,
    };
    files.open.insert(object, opened);
    Ok((object, information))
}

/// Returns whether the access `wanted` conflicts with another opener's sharing mode.
const fn conflicts(wanted: u32, share: u32) -> bool {
    let reads = can_read(wanted) && share & 1 == 0;
    let writes = can_write(wanted) && share & 2 == 0;
    let deletes = wanted & access::DELETE != 0 && share & 4 == 0;
    reads || writes || deletes
}

const fn can_read(wanted: u32) -> bool {
    wanted & (access::READ_DATA | access::GENERIC_READ | access::GENERIC_ALL) != 0
}

const fn can_write(wanted: u32) -> bool {
    const WRITE: u32 =
        access::WRITE_DATA | access::APPEND_DATA | access::GENERIC_WRITE | access::GENERIC_ALL;
    wanted & WRITE != 0
}

/// Returns whether a handle can write only to the end of a file. Unlike the rights that Windows
/// checks only for calls from user mode, this also applies to drivers, because the I/O manager
/// chooses the position of the write.
const fn only_appends(wanted: u32) -> bool {
    const DATA: u32 = access::WRITE_DATA | access::GENERIC_WRITE | access::GENERIC_ALL;
    wanted & access::APPEND_DATA != 0 && wanted & DATA == 0
}

/// Closes a file that has neither handles nor references.
fn close(context: &Context, object: u64) {
    let closed = context.state().get::<Files>().open.remove(&object);
    if let Some(file) = closed.filter(|file| file.deletes) {
        // As on Windows, a file that cannot be deleted remains.
        let _deleted = if file.file.is_some() {
            fs::remove_file(&file.path)
        } else {
            fs::remove_dir(&file.path)
        };
    }
}

/// Runs `body` on the file of a handle.
pub fn with_file<R>(
    context: &Context,
    handle: u64,
    body: impl FnOnce(&mut OpenFile) -> NtResult<R>,
) -> NtResult<R> {
    let target = handles::target(context, handle).ok_or(NtStatus::INVALID_HANDLE)?;
    with_object(context, target.object, body)
}

/// Runs `body` on the file with a file object.
pub fn with_object<R>(
    context: &Context,
    object: u64,
    body: impl FnOnce(&mut OpenFile) -> NtResult<R>,
) -> NtResult<R> {
    if send::is_open(context, object) {
        context.stop_for_unprovided("for a file on a device");
    }
    let mut state = context.state();
    let file = state.get::<Files>().open.get_mut(&object);
    body(file.ok_or(NtStatus::OBJECT_TYPE_MISMATCH)?)
}

/// `STATUS_INVALID_FILE_FOR_SECTION`: a directory, for example, has no contents.
pub const INVALID_FILE_FOR_SECTION: NtStatus = NtStatus::from_bits(0xC000_0020);

/// Duplicates the file descriptor behind a handle.
pub fn duplicate(context: &Context, handle: u64) -> NtResult<File> {
    with_file(context, handle, |file| {
        let open = file.file.as_ref().ok_or(INVALID_FILE_FOR_SECTION)?;
        open.try_clone().map_err(|error| status_of(&error))
    })
}

/// Returns the offset at which a transfer starts, or `None` for the current position.
fn offset_at(context: &Context, address: At<i64>) -> Option<u64> {
    /// `FILE_USE_FILE_POINTER_POSITION`.
    const CURRENT: i64 = -2;
    if address.is_null() {
        return None;
    }
    let offset = address.read(context);
    (offset != CURRENT).then(|| offset.cast_unsigned())
}

/// The offset that means the end of the file.
const AT_END: u64 = u64::MAX;

fn read(
    context: &Context,
    handle: Handle<NtObject>,
    event: Handle<NtObject>,
    routine: Callback,
    _argument: Memory,
    block: At<IoStatusBlock>,
    buffer: Memory,
    length: u32,
    offset: At<i64>,
    _key: At<u32>,
) -> NtResult<NtStatus> {
    device_files::refuse_apc(context, routine);
    let event = named_events::reset_optional(context, event.0)?;
    let offset = offset_at(context, offset);
    if let Some(file) = device_files::opened(context, handle) {
        let sender = Sender { file, event: event.unwrap_or(0), block };
        return device_files::transfer(context, sender, build::READ, (buffer.0, length), offset);
    }
    let read = with_file(context, handle.0, |file| {
        let start = start_of(file, offset)?;
        let open = file.file.as_mut().ok_or(NtStatus::INVALID_DEVICE_REQUEST)?;
        let mut bytes = Vec::new();
        let done = open
            .seek(SeekFrom::Start(start))
            .and_then(|_| open.take(u64::from(length)).read_to_end(&mut bytes));
        done.map_err(|error| status_of(&error))?;
        if let Some(position) = &mut file.position {
            *position = start.saturating_add(bytes.len() as u64);
        }
        if bytes.is_empty() && length > 0 {
            return Err(END_OF_FILE);
        }
        Ok(bytes)
    });
    let done = read.map(|bytes| {
        context.write_bytes(buffer.0, &bytes);
        bytes.len() as u64
    });
    finish_transfer(context, block, done, event)
}

/// Stores the result of a transfer, and sets its event if the transfer succeeded.
fn finish_transfer(
    context: &Context,
    block: At<IoStatusBlock>,
    done: NtResult<u64>,
    event: Option<u64>,
) -> NtResult<NtStatus> {
    finish_with_handle(context, block, done)?;
    if let Some(event) = event {
        dispatcher::set_state(context, event, 1);
    }
    Ok(NtStatus::SUCCESS)
}

/// Stores the result of a call with a handle, unless the handle is invalid.
fn finish_with_handle(
    context: &Context,
    block: At<IoStatusBlock>,
    done: NtResult<u64>,
) -> NtResult<NtStatus> {
    if !matches!(done, Err(NtStatus::INVALID_HANDLE | NtStatus::OBJECT_TYPE_MISMATCH)) {
        finish(context, block, done)?;
    }
    done.map(|_| NtStatus::SUCCESS)
}

/// Returns the position at which a transfer starts.
fn start_of(file: &OpenFile, offset: Option<u64>) -> NtResult<u64> {
    match (offset, file.position) {
        (Some(AT_END), _) => {
            let open = file.file.as_ref();
            let length = open.and_then(|open| open.metadata().ok());
            Ok(length.map_or(0, |metadata| metadata.len()))
        }
        (Some(offset), _) if offset > i64::MAX.cast_unsigned() => Err(NtStatus::INVALID_PARAMETER),
        (Some(offset), _) => Ok(offset),
        (None, Some(position)) => Ok(position),
        // Only a file that is open for synchronous use has a current position.
        (None, None) => Err(NtStatus::INVALID_PARAMETER),
    }
}

fn write(
    context: &Context,
    handle: Handle<NtObject>,
    event: Handle<NtObject>,
    routine: Callback,
    _argument: Memory,
    block: At<IoStatusBlock>,
    buffer: Memory,
    length: u32,
    offset: At<i64>,
    _key: At<u32>,
) -> NtResult<NtStatus> {
    device_files::refuse_apc(context, routine);
    let event = named_events::reset_optional(context, event.0)?;
    let offset = offset_at(context, offset);
    if let Some(file) = device_files::opened(context, handle) {
        let sender = Sender { file, event: event.unwrap_or(0), block };
        return device_files::transfer(context, sender, build::WRITE, (buffer.0, length), offset);
    }
    let bytes = context.read_bytes(buffer.0, length as usize);
    let written = with_file(context, handle.0, |file| {
        let start = start_of(file, if only_appends(file.access) { Some(AT_END) } else { offset })?;
        let open = file.file.as_mut().ok_or(NtStatus::INVALID_DEVICE_REQUEST)?;
        let done = open.seek(SeekFrom::Start(start)).and_then(|_| open.write_all(&bytes));
        done.map_err(|error| status_of(&error))?;
        if let Some(position) = &mut file.position {
            *position = start.saturating_add(bytes.len() as u64);
        }
        Ok(bytes.len() as u64)
    });
    finish_transfer(context, block, written, event)
}

fn flush(
    context: &Context,
    handle: Handle<NtObject>,
    block: At<IoStatusBlock>,
) -> NtResult<NtStatus> {
    if let Some(file) = device_files::opened(context, handle) {
        return device_files::flush(context, Sender { file, event: 0, block });
    }
    finish_with_handle(context, block, with_file(context, handle.0, |_| Ok(0)))
}

/// The information classes that can be set.
mod class {
    pub const BASIC: u32 = 4;
    pub const DISPOSITION: u32 = 13;
    pub const POSITION: u32 = 14;
    pub const ALLOCATION: u32 = 19;
    pub const END_OF_FILE: u32 = 20;
}

fn set(
    context: &Context,
    handle: Handle<NtObject>,
    block: At<IoStatusBlock>,
    buffer: Memory,
    length: u32,
    kind: u32,
) -> NtResult<NtStatus> {
    let needed = match kind {
        class::BASIC => size_of::<FileBasic>(),
        class::DISPOSITION => 1,
        class::POSITION | class::ALLOCATION | class::END_OF_FILE => 8,
        _ => return Err(NtStatus::INVALID_INFO_CLASS),
    };
    if (length as usize) < needed {
        return Err(NtStatus::INFO_LENGTH_MISMATCH);
    }
    let value: u64 = match kind {
        class::BASIC => 0,
        class::DISPOSITION => u64::from(context.read::<u8>(buffer.0)),
        _ => context.read(buffer.0),
    };
    if kind == class::POSITION
        && let Some(file) = device_files::opened(context, handle)
    {
        context.update(file, |object: &mut FileObject| {
            object.current_byte_offset = value.cast_signed();
        });
        return finish_with_handle(context, block, Ok(0));
    }
    let folder = context.with_state(|files: &mut Files| files.folder.clone());
    let done = with_file(context, handle.0, |file| match kind {
        // The host determines the times, attributes and allocation of files.
        class::BASIC | class::ALLOCATION => Ok(()),
        class::DISPOSITION if value != 0 && folder.as_ref() == Some(&file.path) => {
            Err(NtStatus::CANNOT_DELETE)
        }
        class::DISPOSITION => {
            file.deletes = value != 0;
            Ok(())
        }
        class::POSITION => match &mut file.position {
            Some(position) if i64::try_from(value).is_ok() => {
                *position = value;
                Ok(())
            }
            _ => Err(NtStatus::INVALID_PARAMETER),
        },
        _ => {
            let open = file.file.as_ref().ok_or(NtStatus::INVALID_PARAMETER)?;
            open.set_len(value).map_err(|error| status_of(&error))
        }
    });
    finish_with_handle(context, block, done.map(|()| 0))
}

/// Deletes the file with this name.
fn delete(context: &Context, attributes: At<ObjectAttributesNt>) -> NtResult {
    let wanted = [access::DELETE, 7, 1, option::DELETE_ON_CLOSE];
    let (file, _) = open_path(context, path_of(context, attributes.0, 0)?, wanted)?;
    close(context, file);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_to_the_volume_only() {
        for (name, path) in [
            (r"\??\C:\a\b", Some(r"\a\b")),
            (r"\??\c:", Some("")),
            (r"\DosDevices\C:\a", Some(r"\a")),
            (r"\SystemRoot\Temp", Some(r"\Windows\Temp")),
            (r"\SystemRootless", None),
            (r"\??\C:relative", None),
            (r"\??\D:\a", None),
            (r"\Device\Null", None),
        ] {
            assert_eq!(below_volume(name).as_deref(), path, "{name}");
        }
    }

    #[test]
    fn nothing_leads_out_of_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path();
        fs::create_dir(at.join("Sub")).unwrap();
        fs::write(at.join("Sub/File.txt"), "x").unwrap();
        host::link_folder("/", at.join("link")).unwrap();
        assert_eq!(resolve(at, r"\sub\FILE.TXT", false), Ok(at.join("Sub/File.txt")));
        assert_eq!(resolve(at, r"\sub\new", false), Ok(at.join("Sub/new")));
        assert_eq!(resolve(at, r"\\sub\\", false), Ok(at.join("Sub")));
        for (path, status) in [
            (r"\..\etc", OBJECT_NAME_INVALID),
            (r"\sub\..\..\etc", OBJECT_NAME_INVALID),
            (r"\sub/../../etc", OBJECT_NAME_INVALID),
            (r"\link\etc\passwd", NtStatus::ACCESS_DENIED),
            (r"\link", NtStatus::ACCESS_DENIED),
            (r"\\\", OBJECT_NAME_INVALID),
            (r"\sub\\file.txt", OBJECT_NAME_INVALID),
            (r"\sub\file.txt\", OBJECT_NAME_INVALID),
            (r"\missing\file", OBJECT_PATH_NOT_FOUND),
            (r"\sub\file.txt\more", OBJECT_PATH_NOT_FOUND),
        ] {
            assert_eq!(resolve(at, path, false), Err(status), "{path}");
        }
        assert_eq!(resolve(at, r"\sub\file.txt\", true), Err(NOT_A_DIRECTORY));
    }
}
