//! Directories and symbolic links in the object manager's namespace, and their handles.

use super::{
    context::{Context, Entries},
    io::devices,
    ob::{
        directories,
        handles::{self, Target},
        object_attributes::{self, Attributes, OPEN_IF},
    },
    object_names::{LINK, Named, all, find, type_of},
};
use crate::{
    execution::routine::{At, Routine},
    ground::{NtResult, NtStatus, abi::UnicodeString, irql::Irql, memory},
    services::strings::text_bytes,
};

const PASSIVE: Irql = Irql::PASSIVE_LEVEL;

pub const ENTRIES: Entries = &[
    ("ZwCreateDirectoryObject", PASSIVE, Routine::of(create_directory)),
    ("ZwOpenDirectoryObject", PASSIVE, Routine::of(open_directory)),
    ("ZwQueryDirectoryObject", PASSIVE, Routine::of(query_directory)),
    ("ZwCreateSymbolicLinkObject", PASSIVE, Routine::of(create_link)),
    ("ZwOpenSymbolicLinkObject", PASSIVE, Routine::of(open_link)),
    ("ZwQuerySymbolicLinkObject", PASSIVE, Routine::of(query_link)),
    ("ZwMakeTemporaryObject", PASSIVE, Routine::of(make_handle_temporary)),
    ("ObMakeTemporaryObject", Irql::APC_LEVEL, Routine::of(make_temporary)),
];

const OBJECT_PATH_NOT_FOUND: NtStatus = NtStatus::from_bits(0xC000_003A);

/// `OBJ_PERMANENT`.
const PERMANENT: u32 = 0x10;

/// Opens a handle to a directory or link.
fn open_handle(context: &Context, object: u64, type_name: &'static str) -> u64 {
    if !handles::is_in_use(context, object) {
        handles::own(context, object, |context, object| {
            directories::delete_temporary(context, object);
            devices::delete_temporary_link(context, object);
        });
    }
    handles::open(context, Target { type_name, object, close: |_, _| {}, has_reference: false })
}

/// Opens a named object, which must be of the given type. On failure, the handle is null.
fn open(context: &Context, handle: At<u64>, attributes: u64, type_name: &'static str) -> NtResult {
    handle.write(context, 0);
    let attributes = object_attributes::read(context, attributes)?;
    let name = directories::full_name(context, &attributes)?;
    let (found, rest) = find(context, &name, type_name != LINK)?;
    if found.type_name != type_name || !rest.is_empty() {
        return Err(NtStatus::OBJECT_TYPE_MISMATCH);
    }
    handle.write(context, open_handle(context, found.object, type_name));
    Ok(())
}

/// Creates an object of a type, or opens the existing object with the name if the attributes allow
/// it. `make` receives the name, and whether the object is permanent.
fn create(
    context: &Context,
    handle: At<u64>,
    attributes: &Attributes,
    type_name: &'static str,
    make: impl FnOnce(&str, bool) -> NtResult<u64>,
) -> NtResult<NtStatus> {
    let name = directories::full_name(context, attributes)?;
    let mut status = NtStatus::SUCCESS;
    let existing = match find(context, &name, type_name != LINK) {
        Ok((found, rest)) if rest.is_empty() => Some(found),
        _ => None,
    };
    let object = match existing {
        Some(_) if attributes.flags & OPEN_IF == 0 => return Err(NtStatus::OBJECT_NAME_COLLISION),
        Some(found) if found.type_name != type_name => return Err(NtStatus::OBJECT_TYPE_MISMATCH),
        Some(found) => {
            status = NtStatus::OBJECT_NAME_EXISTS;
            found.object
        }
        None => {
            if !name.is_empty() {
                let (directory, _) = directories::split(&name)?;
                if !directories::exists(context, directory) {
                    return Err(OBJECT_PATH_NOT_FOUND);
                }
            }
            make(&name, attributes.flags & PERMANENT != 0)?
        }
    };
    handle.write(context, open_handle(context, object, type_name));
    Ok(status)
}

fn create_directory(
    context: &Context,
    handle: At<u64>,
    _access: u32,
    attributes: u64,
) -> NtResult<NtStatus> {
    let attributes = object_attributes::read(context, attributes)?;
    create(context, handle, &attributes, directories::TYPE, |name, is_permanent| {
        Ok(directories::create(context, name, is_permanent))
    })
}

fn open_directory(context: &Context, handle: At<u64>, _access: u32, attributes: u64) -> NtResult {
    open(context, handle, attributes, directories::TYPE)
}

/// Returns the objects in a directory, with their names.
fn inside(context: &Context, directory: u64) -> Vec<Named> {
    let mut all = all(context);
    let name = all.iter().find(|one| one.object == directory).map(|one| one.name.clone());
    let Some(key) = name.map(|name| directories::key(&name)) else {
        return Vec::new();
    };
    all.retain_mut(|one| {
        let Ok((directory, last)) = directories::split(&one.name) else {
            return false;
        };
        let is_inside = directories::key(directory) == key;
        one.name = last.to_owned();
        is_inside
    });
    all.sort_by_key(|one| one.name.to_lowercase());
    all
}

/// Lists the objects in a directory, starting at the caller's position.
fn query_directory(
    context: &Context,
    handle: u64,
    to: u64,
    length: u32,
    is_single: bool,
    restarts: bool,
    position: At<u32>,
    needed: At<u32>,
) -> NtResult<NtStatus> {
    /// The size of `OBJECT_DIRECTORY_INFORMATION`: two strings, the name and the type.
    const ENTRY: usize = 2 * size_of::<UnicodeString>();
    let target = handles::target_of(context, handle)?;
    if target.type_name != directories::TYPE {
        return Err(NtStatus::OBJECT_TYPE_MISMATCH);
    }
    let start = if restarts { 0 } else { position.read(context) };
    let all = inside(context, target.object);
    let left = all.get(start as usize..).unwrap_or_default();
    let texts = |one: &Named| [&*one.name, type_of(one.type_name).0].map(text_bytes);
    let size = |one: &Named| ENTRY + texts(one).iter().map(Vec::len).sum::<usize>();
    let Some(first) = left.first() else {
        needed.write_optional(context, 0);
        return Ok(NtStatus::NO_MORE_ENTRIES);
    };
    // A zeroed entry ends the list.
    let mut total = ENTRY;
    let limit = if is_single { 1 } else { left.len() };
    let fitting = left.iter().take(limit).take_while(|one| {
        let end = total + size(one);
        let fits = end <= length as usize;
        total = if fits { end } else { total };
        fits
    });
    let fitting: Vec<[Vec<u8>; 2]> = fitting.map(texts).collect();
    if fitting.is_empty() {
        let wanted = u32::try_from(ENTRY + size(first)).unwrap_or(u32::MAX);
        needed.write_optional(context, wanted);
        return Err(NtStatus::BUFFER_TOO_SMALL);
    }
    let mut entry = to;
    let mut text_at = to.wrapping_add((ENTRY * (fitting.len() + 1)) as u64);
    for bytes in fitting.iter().flatten() {
        let room = u16::try_from(bytes.len()).unwrap_or(u16::MAX);
        let length = room.saturating_sub(2);
        let string = UnicodeString { length, maximum_length: room, reserved: 0, buffer: text_at };
        context.write(entry, &string);
        context.write_bytes(text_at, bytes);
        entry = entry.wrapping_add(size_of::<UnicodeString>() as u64);
        text_at = text_at.wrapping_add(bytes.len() as u64);
    }
    context.write(entry, &[0_u64; ENTRY / 8]);
    position.write(context, start.saturating_add(u32::try_from(fitting.len()).unwrap_or(u32::MAX)));
    needed.write_optional(context, u32::try_from(total).unwrap_or(u32::MAX));
    let is_all = is_single || fitting.len() == left.len();
    Ok(if is_all { NtStatus::SUCCESS } else { NtStatus::MORE_ENTRIES })
}

fn create_link(
    context: &Context,
    handle: At<u64>,
    _access: u32,
    attributes: u64,
    target: At<UnicodeString>,
) -> NtResult<NtStatus> {
    let attributes = object_attributes::read(context, attributes)?;
    let string = target.read(context);
    let room = string.maximum_length & !1;
    if !string.length.is_multiple_of(2) || room == 0 || string.length > room {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    let target = memory::read_bytes(string.buffer, string.length.into());
    let target = target.map_err(|_| NtStatus::ACCESS_VIOLATION)?;
    create(context, handle, &attributes, LINK, |name, is_permanent| {
        devices::add_link(context, name, target, room, is_permanent)
    })
}

fn open_link(context: &Context, handle: At<u64>, _access: u32, attributes: u64) -> NtResult {
    open(context, handle, attributes, LINK)
}

/// Stores the target of a link. If the caller requests the size, its buffer must hold the whole
/// string that specified the target.
fn query_link(context: &Context, handle: u64, to: At<UnicodeString>, needed: At<u32>) -> NtResult {
    let object = handles::target_of(context, handle)?;
    let links = devices::links(context);
    let link = links.iter().find(|link| link.object() == object.object);
    let link = link.ok_or(NtStatus::OBJECT_TYPE_MISMATCH)?;
    let string = to.read(context);
    let length = u16::try_from(link.target.len()).map_err(|_| NtStatus::UNSUCCESSFUL)?;
    let mut bytes = link.target.clone();
    if needed.0 != 0 {
        needed.write(context, link.room.into());
        if link.room >= length.saturating_add(2) {
            bytes.extend([0; 2]);
        }
    }
    let wanted = if needed.0 == 0 { length } else { link.room };
    if string.maximum_length < wanted {
        return Err(NtStatus::BUFFER_TOO_SMALL);
    }
    context.write_bytes(string.buffer, &bytes);
    to.write(context, UnicodeString { length, ..string });
    Ok(())
}

/// Makes the object of a handle temporary: it exists only while it has handles or references.
fn make_handle_temporary(context: &Context, handle: u64) -> NtResult {
    let target = handles::target_of(context, handle)?;
    make_temporary(context, target.object);
    Ok(())
}

/// Makes an object temporary. Objects of other kinds always are.
fn make_temporary(context: &Context, object: u64) {
    let mut state = context.state();
    let is_known = directories::make_temporary(&mut state, object)
        || devices::make_link_temporary(&mut state, object);
    drop(state);
    if is_known && handles::is_unused(context, object) {
        directories::delete_temporary(context, object);
        devices::delete_temporary_link(context, object);
    }
}
