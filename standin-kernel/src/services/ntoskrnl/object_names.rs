//! The names and types of objects: finds objects by name, and returns the names of objects.

use zerocopy::IntoBytes;

use super::{
    context::{Context, Entries},
    data,
    ex::callbacks,
    io::{devices, drivers},
    ob::{directories, handles},
    object_security, sections,
    zw::{events, files, keys},
};
use crate::{
    execution::routine::{At, Routine},
    ground::{
        NtResult, NtStatus,
        abi::{FileObject, UnicodeString},
        executive_abi::{ObjectBasicInformation, ObjectTypeInformation},
        irql::Irql,
        memory,
    },
    services::strings::{read_unicode_string, text_bytes, units},
};

pub const ENTRIES: Entries = &[
    ("ObReferenceObjectByName", Irql::PASSIVE_LEVEL, Routine::of(reference_by_name)),
    ("ObQueryNameString", Irql::APC_LEVEL, Routine::of(query_name)),
    ("ZwQueryObject", Irql::PASSIVE_LEVEL, Routine::of(query)),
];

/// The type of a symbolic link. No variable that drivers can import points to it.
pub const LINK: &str = "ObpSymbolicLinkObjectType";
const CALLBACK: &str = "ExCallbackObjectType";
const DEVICE: &str = "IoDeviceObjectType";

/// The object types: the variable that points to each, its name, and the mask of all rights.
const TYPES: [(&str, &str, u32); 13] = [
    ("CmKeyObjectType", "Key", 0x000F_003F),
    ("ExEventObjectType", "Event", 0x001F_0003),
    (CALLBACK, "Callback", 0x001F_0001),
    (DEVICE, "Device", 0x001F_01FF),
    ("IoDriverObjectType", "Driver", 0x001F_01FF),
    ("IoFileObjectType", "File", 0x001F_01FF),
    ("MmSectionObjectType", "Section", 0x000F_001F),
    (directories::TYPE, "Directory", 0x000F_000F),
    (LINK, "SymbolicLink", 0x000F_0001),
    ("PsProcessType", "Process", 0x001F_FFFF),
    ("PsThreadType", "Thread", 0x001F_FFFF),
    ("ExSemaphoreObjectType", "Semaphore", 0x001F_0003),
    ("SeTokenObjectType", "Token", 0x000F_01FF),
];

/// Returns the name of a type and the mask of all its rights.
pub fn type_of(variable: &str) -> (&'static str, u32) {
    let found = TYPES.iter().find(|(known, ..)| *known == variable);
    found.map_or(("Unknown", 0), |(_, name, rights)| (*name, *rights))
}

/// An object in the object manager's namespace.
#[derive(Clone, Debug)]
pub struct Named {
    pub object: u64,
    pub name: String,
    /// The name of the variable that points to the object's type.
    pub type_name: &'static str,
}

/// Returns the objects that have names.
pub fn all(context: &Context) -> Vec<Named> {
    let links = devices::links(context).into_iter().map(|link| (link.object(), link.name));
    [
        (directories::TYPE, directories::all(context)),
        (LINK, links.collect()),
        (DEVICE, devices::named(context)),
        ("IoDriverObjectType", drivers::all(context)),
        ("ExEventObjectType", events::named(context)),
        ("MmSectionObjectType", sections::named(context)),
        (CALLBACK, callbacks::named(context)),
    ]
    .into_iter()
    .flat_map(|(type_name, all)| {
        all.into_iter().map(move |(object, name)| Named { object, name, type_name })
    })
    .collect()
}

const OBJECT_NAME_INVALID: NtStatus = NtStatus::from_bits(0xC000_0033);
const OBJECT_PATH_NOT_FOUND: NtStatus = NtStatus::from_bits(0xC000_003A);

/// The result of resolving a name.
enum Walk {
    /// The object, and the remaining part of the name.
    Object(Named, String),
    /// The name to which a link refers.
    Link(String),
}

/// Resolves a name from the root to an object or a link.
fn walk(context: &Context, name: &str, follows_last: bool) -> NtResult<Walk> {
    let all = all(context);
    let find = |name: &str| {
        let key = directories::key(name);
        all.iter().find(|one| directories::key(&one.name) == key)
    };
    if name == r"\" {
        return find(name)
            .map(|root| Walk::Object(root.clone(), String::new()))
            .ok_or(NtStatus::OBJECT_NAME_NOT_FOUND);
    }
    if !name.starts_with('\\') {
        return Err(NtStatus::OBJECT_PATH_SYNTAX_BAD);
    }
    let ends = name.match_indices('\\').skip(1).map(|(at, _)| at).chain([name.len()]);
    for end in ends {
        let (start, rest) = name.split_at_checked(end).ok_or(OBJECT_NAME_INVALID)?;
        let is_last = rest.is_empty();
        if start.ends_with('\\') {
            return Err(OBJECT_NAME_INVALID);
        }
        match find(start) {
            Some(one) if one.type_name == directories::TYPE && !is_last => {}
            Some(one) if one.type_name == LINK && (follows_last || !is_last) => {
                let links = devices::links(context);
                let link = links.iter().find(|link| link.object() == one.object);
                let target = link.map(devices::Link::target).unwrap_or_default();
                return Ok(Walk::Link(target + rest));
            }
            Some(one) => return Ok(Walk::Object(one.clone(), rest.to_owned())),
            None if is_last => return Err(NtStatus::OBJECT_NAME_NOT_FOUND),
            // A device's name may contain a directory that was never created.
            None if has_names_below(&all, start) => {}
            None => return Err(OBJECT_PATH_NOT_FOUND),
        }
    }
    Err(NtStatus::OBJECT_NAME_NOT_FOUND)
}

fn has_names_below(all: &[Named], start: &str) -> bool {
    let start = directories::key(start);
    all.iter().any(|one| {
        let key = directories::key(&one.name);
        key.strip_prefix(&start).is_some_and(|rest| rest.starts_with('\\'))
    })
}

/// Finds the object with a name. If the name ends with a link, `follows_last` selects its target
/// instead of the link. Returns the object, and the remaining part of the name.
pub fn find(context: &Context, name: &str, follows_last: bool) -> NtResult<(Named, String)> {
    /// The maximum number of links that the object manager follows.
    const MAX_LINKS: u32 = 32;
    let mut name = name.to_owned();
    for _ in 0..MAX_LINKS {
        match walk(context, &name, follows_last)? {
            Walk::Object(named, rest) => return Ok((named, rest)),
            Walk::Link(target) => name = target,
        }
    }
    Err(NtStatus::OBJECT_NAME_NOT_FOUND)
}

fn reference_by_name(
    context: &Context,
    name: At<UnicodeString>,
    _attributes: u32,
    _state: u64,
    _access: u32,
    kind: u64,
    _mode: i8,
    _parse_context: u64,
    object: At<u64>,
) -> NtResult {
    let text = if name.0 == 0 { String::new() } else { read_unicode_string(context, name.0) };
    if text.is_empty() {
        return Err(OBJECT_NAME_INVALID);
    }
    let (found, rest) = find(context, &text, true)?;
    // Opening a device yields a file object, as IoGetDeviceObjectPointer does.
    let is_wrong = kind != 0 && data::object_type(found.type_name) != Some(kind);
    if is_wrong || !rest.is_empty() || found.type_name == DEVICE {
        return Err(NtStatus::OBJECT_TYPE_MISMATCH);
    }
    handles::reference(context, found.object);
    object.write(context, found.object);
    Ok(())
}

/// Returns the name of an object, or an empty name.
pub fn name_of(context: &Context, object: u64) -> String {
    let named = all(context).into_iter().find(|one| one.object == object);
    named
        .map(|one| one.name)
        .or_else(|| files::name_of(context, object))
        .or_else(|| name_of_opened_device(context, object))
        .or_else(|| keys::name_of(context, object))
        .unwrap_or_default()
}

/// Returns the name of a file on a device: the device's name followed by the opened name.
fn name_of_opened_device(context: &Context, object: u64) -> Option<String> {
    let file = memory::read::<FileObject>(object).ok()?;
    let is_file = file.kind == FileObject::TYPE && file.size == FileObject::SIZE;
    let device = is_file.then(|| devices::written_name_of(context, file.device))?;
    let bytes = memory::read_bytes(file.name.buffer, file.name.length.into()).ok()?;
    Some(device.unwrap_or_default() + &String::from_utf16_lossy(&units(&bytes)))
}

fn query_name(context: &Context, object: u64, to: u64, length: u32, needed: At<u32>) -> NtResult {
    // Bugchecks if there is no object at the address.
    object_security::must_be_object(context, object);
    store(context, to, length, needed, &[], &name_of(context, object))
}

/// Stores a counted string: the fields of its structure, then the text. An empty text has a null
/// address.
fn store(
    context: &Context,
    to: u64,
    length: u32,
    needed: At<u32>,
    fields: &[u8],
    text: &str,
) -> NtResult {
    const STRING: usize = size_of::<UnicodeString>();
    let bytes = if text.is_empty() { Vec::new() } else { text_bytes(text) };
    let size = STRING + fields.len() + bytes.len();
    needed.write_optional(context, u32::try_from(size).unwrap_or(u32::MAX));
    if (length as usize) < size {
        return Err(NtStatus::INFO_LENGTH_MISMATCH);
    }
    let room = u16::try_from(bytes.len()).map_err(|_| NtStatus::UNSUCCESSFUL)?;
    let place = to.wrapping_add((STRING + fields.len()) as u64);
    let string = UnicodeString {
        length: room.saturating_sub(2),
        maximum_length: room,
        reserved: 0,
        buffer: if bytes.is_empty() { 0 } else { place },
    };
    context.write(to, &string);
    context.write_bytes(to.wrapping_add(STRING as u64), fields);
    context.write_bytes(place, &bytes);
    Ok(())
}

/// Describes the object of a handle.
fn query(
    context: &Context,
    handle: u64,
    class: i32,
    to: u64,
    length: u32,
    needed: At<u32>,
) -> NtResult {
    /// `ObjectBasicInformation`, `ObjectNameInformation`, `ObjectTypeInformation` and
    /// `ObjectHandleFlagInformation`.
    const BASIC: i32 = 0;
    const NAME: i32 = 1;
    const TYPE: i32 = 2;
    const FLAGS: i32 = 4;
    /// The size of `OBJECT_TYPE_INFORMATION` after the name.
    const REST: usize = size_of::<ObjectTypeInformation>() - size_of::<UnicodeString>();
    if ![BASIC, NAME, TYPE, FLAGS].contains(&class) {
        return Err(NtStatus::INVALID_INFO_CLASS);
    }
    let target = handles::target_of(context, handle)?;
    let (type_name, rights) = type_of(target.type_name);
    let fixed: Vec<u8> = match class {
        NAME => {
            let name = name_of(context, target.object);
            return store(context, to, length, needed, &[], &name);
        }
        TYPE => return store(context, to, length, needed, &[0; REST], type_name),
        FLAGS => vec![0; 2],
        _ => {
            let (of_handles, references) = handles::counts(context, target.object);
            let size_of_string = |text: &str, fixed: usize| {
                let size = if text.is_empty() { 0 } else { fixed + text_bytes(text).len() };
                u32::try_from(size).unwrap_or(u32::MAX)
            };
            let name = name_of(context, target.object);
            let name_size = size_of_string(&name, size_of::<UnicodeString>());
            let type_size = size_of_string(type_name, size_of::<ObjectTypeInformation>());
            let value = ObjectBasicInformation {
                attributes: 0,
                access: rights,
                handles: of_handles.max(1),
                // The count includes the reference of this call.
                pointers: references.max(1).saturating_add(1),
                reserved: [0, 0, 0, 0, 0, name_size, type_size, 0, 0, 0],
            };
            value.as_bytes().to_vec()
        }
    };
    needed.write_optional(context, u32::try_from(fixed.len()).unwrap_or(u32::MAX));
    if length as usize != fixed.len() {
        return Err(NtStatus::INFO_LENGTH_MISMATCH);
    }
    context.write_bytes(to, &fixed);
    Ok(())
}
