//! The names and types of objects. Routines reference objects by name, and return the names of
//! objects.

use zerocopy::IntoBytes;

use crate::{
    execution::{
        kinds::NtObject,
        routine::{At, Handle, Memory, routine},
        strings::{read_unicode_string, text_bytes, units},
    },
    ground::{
        NtResult, NtStatus,
        abi::{
            AccessState, FileObject, ObjectBasicInformation, ObjectTypeInformation, UnicodeString,
        },
        memory,
        opaque::{ObjectNameInformation, ObjectType},
    },
    services::ntoskrnl::{
        cm::keys,
        context::{Context, Entries},
        io::{devices, files},
        ob::{
            handles, namespace,
            namespace::{CALLBACK, DIRECTORY, LINK, find},
        },
        object_security, variables,
    },
};

pub const ENTRIES: Entries = &[
    routine("ObReferenceObjectByName", reference_by_name),
    routine("ObQueryNameString", query_name),
    routine("ZwQueryObject", query),
];

/// The object types. Each has the name of the variable that points to it, its own name, and the
/// mask of all rights.
const TYPES: [(&str, &str, u32); 13] = [
    ("CmKeyObjectType", "Key", 0x000F_003F),
    ("ExEventObjectType", "Event", 0x001F_0003),
    (CALLBACK, "Callback", 0x001F_0001),
    (devices::TYPE, "Device", 0x001F_01FF),
    ("IoDriverObjectType", "Driver", 0x001F_01FF),
    ("IoFileObjectType", "File", 0x001F_01FF),
    ("MmSectionObjectType", "Section", 0x000F_001F),
    (DIRECTORY, "Directory", 0x000F_000F),
    (LINK, "SymbolicLink", 0x000F_0001),
    ("PsProcessType", "Process", 0x001F_FFFF),
    ("PsThreadType", "Thread", 0x001F_FFFF),
    ("ExSemaphoreObjectType", "Semaphore", 0x001F_0003),
    ("SeTokenObjectType", "Token", 0x000F_01FF),
];

/// Returns the name of the type to which a variable points, and the mask of all its rights.
pub fn type_of(variable: &str) -> (&'static str, u32) {
    let found = TYPES.iter().find(|(known, ..)| *known == variable);
    found.map_or(("Unknown", 0), |(_, name, rights)| (*name, *rights))
}

const OBJECT_NAME_INVALID: NtStatus = NtStatus::from_bits(0xC000_0033);

fn reference_by_name(
    context: &Context,
    name: At<UnicodeString>,
    _attributes: u32,
    _state: At<AccessState>,
    _access: u32,
    kind: At<ObjectType>,
    _mode: i8,
    _parse_context: Memory,
    object: At<u64>,
) -> NtResult {
    let text = if name.is_null() { String::new() } else { read_unicode_string(context, name.0) };
    if text.is_empty() {
        return Err(OBJECT_NAME_INVALID);
    }
    let (found, rest) = find(context, &text, true)?;
    // Opening a device yields a file object, as IoGetDeviceObjectPointer does.
    let is_wrong = !kind.is_null() && variables::object_type(found.type_name) != Some(kind.0);
    if is_wrong || !rest.is_empty() || found.type_name == devices::TYPE {
        return Err(NtStatus::OBJECT_TYPE_MISMATCH);
    }
    handles::reference(context, At::new(found.object));
    object.write(context, found.object);
    Ok(())
}

/// Returns the name of an object, or an empty string.
pub fn name_of(context: &Context, object: u64) -> String {
    namespace::name_of(context, object)
        .or_else(|| files::name_of(context, object))
        .or_else(|| name_of_opened_device(context, object))
        .or_else(|| keys::name_of(context, object))
        .unwrap_or_default()
}

/// Returns the name of a file on a device: the device's name followed by the opened name.
fn name_of_opened_device(context: &Context, object: u64) -> Option<String> {
    let file = memory::read::<FileObject>(object).ok()?;
    let is_file = file.kind == FileObject::TYPE && file.size == FileObject::SIZE;
    let device = is_file.then(|| devices::name_of(context, file.device_object))?;
    let bytes = memory::read_bytes(file.file_name.buffer, file.file_name.length.into()).ok()?;
    Some(device.unwrap_or_default() + &String::from_utf16_lossy(&units(&bytes)))
}

fn query_name(
    context: &Context,
    object: Memory,
    object_name_info: At<ObjectNameInformation>,
    length: u32,
    needed: At<u32>,
) -> NtResult {
    // This bugchecks if there is no object at the address.
    object_security::must_be_object(context, object.0);
    store_name(context, object.0, object_name_info.0, length, needed)
}

/// Stores the name of an object. For a file, the I/O manager reports a name that does not fit as a warning,
/// although it stores nothing of it here.
fn store_name(
    context: &Context,
    object: u64,
    buffer: u64,
    length: u32,
    needed: At<u32>,
) -> NtResult {
    let stored = store(context, buffer, length, needed, &[], &name_of(context, object));
    let is_file = object_security::type_of(context, object) == Some("IoFileObjectType");
    if stored.is_err() && is_file && length as usize >= size_of::<UnicodeString>() {
        return Err(NtStatus::BUFFER_OVERFLOW);
    }
    stored
}

/// Stores a counted string: the fields of its structure, then the characters. An empty string has a
/// null address.
fn store(
    context: &Context,
    buffer: u64,
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
    let place = buffer.wrapping_add((STRING + fields.len()) as u64);
    let string = UnicodeString {
        length: room.saturating_sub(2),
        maximum_length: room,
        buffer: if bytes.is_empty() { 0 } else { place },
        ..Default::default()
    };
    context.write(buffer, &string);
    context.write_bytes(buffer.wrapping_add(STRING as u64), fields);
    context.write_bytes(place, &bytes);
    Ok(())
}

/// Describes the object of a handle.
fn query(
    context: &Context,
    handle: Handle<NtObject>,
    class: i32,
    object_information: Memory,
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
    let target = handles::target_of(context, handle.0)?;
    let (type_name, rights) = type_of(target.type_name);
    let fixed: Vec<u8> = match class {
        NAME => return store_name(context, target.object, object_information.0, length, needed),
        TYPE => return store(context, object_information.0, length, needed, &[0; REST], type_name),
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
                granted_access: handles::granted(context, handle.0, rights),
                handle_count: of_handles.max(1),
                // The count includes the reference of this call.
                pointer_count: references.max(1).saturating_add(1),
                reserved: [0, 0, 0, 0, 0, name_size, type_size, 0, 0, 0],
            };
            value.as_bytes().to_vec()
        }
    };
    needed.write_optional(context, u32::try_from(fixed.len()).unwrap_or(u32::MAX));
    if length as usize != fixed.len() {
        return Err(NtStatus::INFO_LENGTH_MISMATCH);
    }
    context.write_bytes(object_information.0, &fixed);
    Ok(())
}
