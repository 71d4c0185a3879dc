//! Handles of directories and symbolic links.

use crate::{
    execution::{
        kinds::NtObject,
        routine::{At, Handle, Memory, Out, routine},
        strings::text_bytes,
    },
    ground::{
        NtResult, NtStatus,
        abi::{ObjectAttributesNt, UnicodeString},
        memory,
    },
    services::ntoskrnl::{
        context::{Context, Entries},
        ob::{
            handles,
            handles::{Opening, Target},
            namespace,
            namespace::{DIRECTORY, LINK, Named, Place},
            object_attributes,
        },
        object_names::type_of,
    },
};

pub const ENTRIES: Entries = &[
    routine("ZwCreateDirectoryObject", create_directory),
    routine("ZwOpenDirectoryObject", open_directory),
    routine("ZwQueryDirectoryObject", query_directory),
    routine("ZwCreateSymbolicLinkObject", create_link),
    routine("ZwOpenSymbolicLinkObject", open_link),
    routine("ZwQuerySymbolicLinkObject", query_link),
    routine("ZwMakeTemporaryObject", make_handle_temporary),
    routine("ObMakeTemporaryObject", make_temporary),
];

/// `OBJ_PERMANENT`.
const PERMANENT: u32 = 0x10;

/// Opens a handle to a directory or link.
fn open_handle(context: &Context, object: u64, type_name: &'static str, opening: Opening) -> u64 {
    if !handles::is_in_use(context, object) {
        handles::own(context, object, namespace::delete_temporary);
    }
    let target = Target { type_name, object, close: |_, _| {}, has_reference: false };
    handles::open(context, target, opening)
}

/// Opens a named object, which must be of this type. On failure, stores a null handle.
fn open(
    context: &Context,
    handle: Out<NtObject>,
    access: u32,
    attributes: u64,
    type_name: &'static str,
) -> NtResult {
    handle.write(context, 0);
    let attributes = object_attributes::read(context, attributes)?;
    let found = namespace::open(context, &attributes, type_name)?;
    let opening = Opening { attributes: attributes.flags, access };
    handle.write(context, open_handle(context, found, type_name, opening));
    Ok(())
}

/// Creates a directory, or a link to a target. If the attributes allow it, opens the existing
/// object with the name instead.
fn create(
    context: &Context,
    handle: Out<NtObject>,
    access: u32,
    attributes: u64,
    target: Option<namespace::Target>,
) -> NtResult<NtStatus> {
    let type_name = if target.is_some() { LINK } else { DIRECTORY };
    let attributes = object_attributes::read(context, attributes)?;
    let place = namespace::place_for(context, Some(&attributes), type_name)?;
    let status = place.status();
    let object = match place {
        Place::Existing(object) => object,
        Place::New(name) => {
            let is_permanent = attributes.flags & PERMANENT != 0;
            namespace::create(&mut context.state(), name.as_deref(), target, is_permanent)
        }
    };
    let opening = Opening { attributes: attributes.flags, access };
    handle.write(context, open_handle(context, object, type_name, opening));
    Ok(status)
}

fn create_directory(
    context: &Context,
    handle: Out<NtObject>,
    access: u32,
    attributes: At<ObjectAttributesNt>,
) -> NtResult<NtStatus> {
    create(context, handle, access, attributes.0, None)
}

fn open_directory(
    context: &Context,
    handle: Out<NtObject>,
    access: u32,
    attributes: At<ObjectAttributesNt>,
) -> NtResult {
    open(context, handle, access, attributes.0, DIRECTORY)
}

/// Returns the objects in a directory, with their names.
fn inside(context: &Context, directory: u64) -> Vec<Named> {
    let Some(key) = namespace::name_of(context, directory).map(|name| namespace::key(&name)) else {
        return Vec::new();
    };
    let mut all = namespace::all(context);
    all.retain_mut(|one| {
        let Some((directory, last)) = namespace::split(&one.name) else {
            return false;
        };
        let is_inside = namespace::key(directory) == key;
        one.name = last.to_owned();
        is_inside
    });
    all.sort_by_key(|one| one.name.to_lowercase());
    all
}

/// Lists the objects in a directory, starting at the caller's position.
fn query_directory(
    context: &Context,
    handle: Handle<NtObject>,
    buffer: Memory,
    length: u32,
    is_single: bool,
    restarts: bool,
    position: At<u32>,
    needed: At<u32>,
) -> NtResult<NtStatus> {
    /// The size of `OBJECT_DIRECTORY_INFORMATION`: two strings, the name and the type.
    const ENTRY: usize = 2 * size_of::<UnicodeString>();
    let target = handles::target_of(context, handle.0)?;
    if target.type_name != DIRECTORY {
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
    // A zeroed entry terminates the list.
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
    let mut entry = buffer;
    let mut text_at = buffer.0.wrapping_add((ENTRY * (fitting.len() + 1)) as u64);
    for bytes in fitting.iter().flatten() {
        let room = u16::try_from(bytes.len()).unwrap_or(u16::MAX);
        let length = room.saturating_sub(2);
        let string =
            UnicodeString { length, maximum_length: room, buffer: text_at, ..Default::default() };
        context.write(entry.0, &string);
        context.write_bytes(text_at, bytes);
        entry = At::new(entry.0.wrapping_add(size_of::<UnicodeString>() as u64));
        text_at = text_at.wrapping_add(bytes.len() as u64);
    }
    context.write(entry.0, &[0_u64; ENTRY / 8]);
    position.write(context, start.saturating_add(u32::try_from(fitting.len()).unwrap_or(u32::MAX)));
    needed.write_optional(context, u32::try_from(total).unwrap_or(u32::MAX));
    let is_all = is_single || fitting.len() == left.len();
    Ok(if is_all { NtStatus::SUCCESS } else { NtStatus::MORE_ENTRIES })
}

fn create_link(
    context: &Context,
    handle: Out<NtObject>,
    access: u32,
    attributes: At<ObjectAttributesNt>,
    target: At<UnicodeString>,
) -> NtResult<NtStatus> {
    let string = target.read(context);
    let room = string.maximum_length & !1;
    if !string.length.is_multiple_of(2) || room == 0 || string.length > room {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    let bytes = memory::read_bytes(string.buffer, string.length.into());
    let bytes = bytes.map_err(|_| NtStatus::ACCESS_VIOLATION)?;
    create(context, handle, access, attributes.0, Some(namespace::Target { bytes, room }))
}

fn open_link(
    context: &Context,
    handle: Out<NtObject>,
    access: u32,
    attributes: At<ObjectAttributesNt>,
) -> NtResult {
    open(context, handle, access, attributes.0, LINK)
}

/// Stores the target of a link. If the caller requests the size, its buffer must be large enough
/// for the whole string that specified the target.
fn query_link(
    context: &Context,
    handle: Handle<NtObject>,
    link_target: At<UnicodeString>,
    needed: At<u32>,
) -> NtResult {
    let object = handles::target_of(context, handle.0)?;
    let link = namespace::target_of(context, object.object);
    let namespace::Target { mut bytes, room } = link.ok_or(NtStatus::OBJECT_TYPE_MISMATCH)?;
    let string = link_target.read(context);
    let length = u16::try_from(bytes.len()).map_err(|_| NtStatus::UNSUCCESSFUL)?;
    if !needed.is_null() {
        needed.write(context, room.into());
        if room >= length.saturating_add(2) {
            bytes.extend([0; 2]);
        }
    }
    let wanted = if needed.is_null() { length } else { room };
    if string.maximum_length < wanted {
        return Err(NtStatus::BUFFER_TOO_SMALL);
    }
    context.write_bytes(string.buffer, &bytes);
    link_target.write(context, UnicodeString { length, ..string });
    Ok(())
}

/// Makes the object of a handle temporary: it exists only while it has handles or references.
fn make_handle_temporary(context: &Context, handle: Handle<NtObject>) -> NtResult {
    let target = handles::target_of(context, handle.0)?;
    make_temporary(context, At::new(target.object));
    Ok(())
}

/// Makes an object temporary. Objects other than directories and links are always temporary.
fn make_temporary(context: &Context, object: Memory) {
    let is_known = namespace::make_temporary(&mut context.state(), object.0);
    if is_known && handles::is_unused(context, object.0) {
        namespace::delete_temporary(context, object.0);
    }
}
