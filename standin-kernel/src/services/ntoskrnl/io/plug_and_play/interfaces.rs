//! The routines that register, enable and find device interfaces, and access properties.

use etl_file::Guid;

use crate::{
    execution::{
        routine::{At, Memory, routine},
        strings::{read_unicode_string, text_bytes},
    },
    ground::{
        NtResult, NtStatus,
        abi::{DeviceObject, UnicodeString},
        opaque::PropertyKey,
    },
    services::{
        managers::{
            device_properties::{self, KeyedProperty, PropertyName, named},
            plug_and_play::{InterfaceInstance, link},
            pool::Tag,
        },
        ntoskrnl::context::{Context, Entries},
    },
};

pub const ENTRIES: Entries = &[
    routine("IoRegisterDeviceInterface", register),
    routine("IoSetDeviceInterfaceState", set_state),
    routine("IoGetDeviceInterfaces", list),
    routine("IoSetDevicePropertyData", set_device_property),
    routine("IoGetDevicePropertyData", get_device_property),
    routine("IoSetDeviceInterfacePropertyData", set_property),
    routine("IoGetDeviceInterfacePropertyData", get_property),
];

/// The pool tag of the Plug and Play manager's memory that drivers free.
const TAG: Tag = Tag(u32::from_le_bytes(*b"Pp  "));

/// Returns whether a name has the form of an interface's link: `\??\DEVICE#{CLASS}`, optionally
/// followed by `\REFERENCE`.
fn is_link(name: &str) -> bool {
    let rest = name.strip_prefix(r"\??\").or_else(|| name.strip_prefix(r"\\?\"));
    let main = rest.and_then(|rest| rest.split('\\').next());
    let class = main.and_then(|main| main.rsplit_once("#{")?.1.strip_suffix('}'));
    class.is_some_and(|class| class.len() == "01234567-89ab-cdef-0123-456789abcdef".len())
}

/// Returns the name at an address that the driver passed, which can be null.
fn name_at(context: &Context, name: u64) -> NtResult<String> {
    if name == 0 {
        Err(NtStatus::INVALID_PARAMETER)
    } else {
        Ok(read_unicode_string(context, name))
    }
}

/// Returns the interface with this symbolic link.
pub fn find(context: &Context, name: &str) -> NtResult<InterfaceInstance> {
    if !name.starts_with(r"\??\") && !name.starts_with(r"\\?\") {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    let name = format!(r"\??\{}", name.get(4..).unwrap_or_default());
    let mut all = context.devices().interfaces().into_iter();
    all.find(|one| one.link().eq_ignore_ascii_case(&name)).ok_or(NtStatus::OBJECT_NAME_NOT_FOUND)
}

fn allocate(context: &Context, size: usize) -> NtResult<u64> {
    context.allocate(size, TAG, true).ok_or(NtStatus::INSUFFICIENT_RESOURCES)
}

fn register(
    context: &Context,
    physical: At<DeviceObject>,
    class: At<Guid>,
    reference: At<UnicodeString>,
    name: At<UnicodeString>,
) -> NtResult<NtStatus> {
    let class: [u8; 16] = context.read(class.0);
    let reference =
        if reference.is_null() { String::new() } else { read_unicode_string(context, reference.0) };
    let node = context.devices().node(physical.0);
    let node = node.filter(|_| !reference.contains(['\\', '/']));
    let node = node.ok_or(NtStatus::INVALID_DEVICE_REQUEST)?;
    let link = link(&node.instance, class, &reference);
    let bytes = text_bytes(&link);
    let maximum_length =
        u16::try_from(bytes.len()).map_err(|_| NtStatus::INVALID_DEVICE_REQUEST)?;
    let buffer = allocate(context, bytes.len())?;
    let exists = find(context, &link).is_ok();
    context.devices().add_interface(physical.0, class, &reference);
    context.write_bytes(buffer, &bytes);
    let value =
        UnicodeString { length: maximum_length - 2, maximum_length, buffer, ..Default::default() };
    name.write(context, value);
    Ok(if exists { NtStatus::OBJECT_NAME_EXISTS } else { NtStatus::SUCCESS })
}

fn set_state(context: &Context, name: At<UnicodeString>, enable: bool) -> NtResult<NtStatus> {
    let name = name_at(context, name.0)?;
    if !is_link(&name) {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    let found = find(context, &name)?;
    if found.is_enabled == enable {
        let already =
            if enable { NtStatus::OBJECT_NAME_EXISTS } else { NtStatus::OBJECT_NAME_NOT_FOUND };
        return Ok(already);
    }
    context.devices().set_interface(&found.link(), enable);
    Ok(NtStatus::SUCCESS)
}

/// Stores a list of the symbolic links of a class's interfaces. The driver frees the list.
fn list(
    context: &Context,
    class: At<Guid>,
    physical: At<DeviceObject>,
    flags: u32,
    links: At<u64>,
) -> NtResult {
    /// `DEVICE_INTERFACE_INCLUDE_NONACTIVE`.
    const INCLUDE_NONACTIVE: u32 = 1;
    let class: [u8; 16] = context.read(class.0);
    if !physical.is_null() && context.devices().node(physical.0).is_none() {
        links.write(context, 0_u64);
        return Err(NtStatus::INVALID_DEVICE_REQUEST);
    }
    let every_one = flags & INCLUDE_NONACTIVE != 0;
    let mut all = context.devices().interfaces();
    all.retain(|one| {
        one.class == class
            && (physical.is_null() || one.physical == physical.0)
            && (every_one || (one.is_enabled && one.is_started))
    });
    let mut bytes: Vec<u8> = all.iter().flat_map(|one| text_bytes(&one.link())).collect();
    bytes.extend([0, 0]);
    let buffer = allocate(context, bytes.len());
    links.write(context, buffer.unwrap_or(0));
    context.write_bytes(buffer?, &bytes);
    Ok(())
}

/// Returns the name of a property of an existing interface.
fn property(context: &Context, name: u64, key: u64, locale: u32) -> NtResult<PropertyName> {
    let found = find(context, &name_at(context, name)?)?;
    named(&found.link(), context.read(key), locale)
}

/// Returns the name of a property of a device, given its physical `DEVICE_OBJECT`.
fn device_property(
    context: &Context,
    physical: u64,
    key: u64,
    locale: u32,
) -> NtResult<PropertyName> {
    let node = context.devices().node(physical).ok_or(NtStatus::INVALID_DEVICE_REQUEST)?;
    named(&node.instance, context.read(key), locale)
}

/// Sets a property, or deletes it if there are no data.
fn set_property(
    context: &Context,
    name: At<UnicodeString>,
    key: At<PropertyKey>,
    locale: u32,
    _flags: u32,
    kind: u32,
    size: u32,
    data: Memory,
) -> NtResult {
    store(context, property(context, name.0, key.0, locale)?, (kind, size, data.0));
    Ok(())
}

fn set_device_property(
    context: &Context,
    physical: At<DeviceObject>,
    key: At<PropertyKey>,
    locale: u32,
    _flags: u32,
    kind: u32,
    size: u32,
    data: Memory,
) -> NtResult {
    store(context, device_property(context, physical.0, key.0, locale)?, (kind, size, data.0));
    Ok(())
}

fn store(context: &Context, property: PropertyName, (kind, size, data): (u32, u32, u64)) {
    let value = (data != 0).then(|| (kind, context.bytes(data, u64::from(size))));
    context.registry().properties.set(property, value);
}

fn get_property(
    context: &Context,
    name: At<UnicodeString>,
    key: At<PropertyKey>,
    locale: u32,
    _flags: u32,
    size: u32,
    data: Memory,
    required: At<u32>,
    kind: At<u32>,
) -> NtResult {
    let found = context.registry().properties.get(&property(context, name.0, key.0, locale)?);
    let found = match found {
        Some(found) => found,
        None => property_of_system(context, name.0, key.0)?,
    };
    load(context, found, (size, data.0), required, kind)
}

/// Returns a property that the Plug and Play manager gives every interface: `DEVPKEY_DeviceInterface_Enabled`
/// or `DEVPKEY_DeviceInterface_ClassGuid`.
fn property_of_system(context: &Context, name: u64, key: u64) -> NtResult<KeyedProperty> {
    const FORMAT: [u8; 16] = *b"\x6E\x51\x6E\x02\x14\xB8\x4B\x41\x83\xCD\x85\x6D\x6F\xEF\x48\x22";
    const ENABLED: u32 = 3;
    const CLASS: u32 = 4;
    /// `DEVPROP_TYPE_GUID` and `DEVPROP_TYPE_BOOLEAN`, whose true value is -1.
    const GUID: u32 = 0xD;
    const BOOLEAN: u32 = 0x11;
    let format: [u8; 16] = context.read(key);
    let number: u32 = context.read(key.wrapping_add(16));
    let found = find(context, &name_at(context, name)?)?;
    match number {
        ENABLED if format == FORMAT => Ok((BOOLEAN, vec![if found.is_enabled { 0xFF } else { 0 }])),
        CLASS if format == FORMAT => Ok((GUID, found.class.to_vec())),
        _ => Err(NtStatus::OBJECT_NAME_NOT_FOUND),
    }
}

fn get_device_property(
    context: &Context,
    physical: At<DeviceObject>,
    key: At<PropertyKey>,
    locale: u32,
    _flags: u32,
    size: u32,
    data: Memory,
    required: At<u32>,
    kind: At<u32>,
) -> NtResult {
    let property = device_property(context, physical.0, key.0, locale)?;
    let found = match context.registry().properties.get(&property) {
        Some(found) => found,
        None => device_properties::of_system(&property.1, &property.0, |number| {
            let missing = Err(NtStatus::OBJECT_NAME_NOT_FOUND);
            context.devices().property(physical.0, number).unwrap_or(missing)
        })?,
    };
    load(context, found, (size, data.0), required, kind)
}

fn load(
    context: &Context,
    (property_type, bytes): KeyedProperty,
    (size, data): (u32, u64),
    required: At<u32>,
    kind: At<u32>,
) -> NtResult {
    // Windows accepts a null size pointer, and returns the type even if the buffer is too small.
    required.write_optional(context, u32::try_from(bytes.len()).unwrap_or(u32::MAX));
    kind.write(context, property_type);
    if (size as usize) < bytes.len() {
        return Err(NtStatus::BUFFER_TOO_SMALL);
    }
    context.write_bytes(data, &bytes);
    Ok(())
}
