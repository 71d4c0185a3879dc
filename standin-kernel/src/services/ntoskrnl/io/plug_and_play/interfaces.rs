//! The routines that register, enable and find device interfaces, and access properties.

use crate::{
    execution::routine::{At, Routine},
    ground::{NtResult, NtStatus, abi::UnicodeString, irql::Irql},
    services::{
        managers::{
            device_properties::{self, KeyedProperty, PropertyName, named},
            plug_and_play::{InterfaceInstance, link},
            pool::Tag,
        },
        ntoskrnl::context::{Context, Entries},
        strings::{read_unicode_string, text_bytes},
    },
};

const PASSIVE: Irql = Irql::PASSIVE_LEVEL;

pub const ENTRIES: Entries = &[
    ("IoRegisterDeviceInterface", PASSIVE, Routine::of(register)),
    ("IoSetDeviceInterfaceState", PASSIVE, Routine::of(set_state)),
    ("IoGetDeviceInterfaces", PASSIVE, Routine::of(list)),
    ("IoSetDevicePropertyData", PASSIVE, Routine::of(set_device_property)),
    ("IoGetDevicePropertyData", PASSIVE, Routine::of(get_device_property)),
    ("IoSetDeviceInterfacePropertyData", PASSIVE, Routine::of(set_property)),
    ("IoGetDeviceInterfacePropertyData", PASSIVE, Routine::of(get_property)),
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
    physical: u64,
    class: u64,
    reference: u64,
    name: At<UnicodeString>,
) -> NtResult<NtStatus> {
    let class: [u8; 16] = context.read(class);
    let reference =
        if reference == 0 { String::new() } else { read_unicode_string(context, reference) };
    let node = context.devices().node(physical);
    let node = node.filter(|_| !reference.contains(['\\', '/']));
    let node = node.ok_or(NtStatus::INVALID_DEVICE_REQUEST)?;
    let link = link(&node.instance, class, &reference);
    let bytes = text_bytes(&link);
    let maximum_length =
        u16::try_from(bytes.len()).map_err(|_| NtStatus::INVALID_DEVICE_REQUEST)?;
    let buffer = allocate(context, bytes.len())?;
    let exists = find(context, &link).is_ok();
    context.devices().add_interface(physical, class, &reference);
    context.write_bytes(buffer, &bytes);
    let value = UnicodeString { length: maximum_length - 2, maximum_length, reserved: 0, buffer };
    name.write(context, value);
    Ok(if exists { NtStatus::OBJECT_NAME_EXISTS } else { NtStatus::SUCCESS })
}

fn set_state(context: &Context, name: u64, enable: bool) -> NtResult<NtStatus> {
    let name = name_at(context, name)?;
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
fn list(context: &Context, class: u64, physical: u64, flags: u32, links: At<u64>) -> NtResult {
    /// `DEVICE_INTERFACE_INCLUDE_NONACTIVE`.
    const INCLUDE_NONACTIVE: u32 = 1;
    let class: [u8; 16] = context.read(class);
    if physical != 0 && context.devices().node(physical).is_none() {
        links.write(context, 0_u64);
        return Err(NtStatus::INVALID_DEVICE_REQUEST);
    }
    let every_one = flags & INCLUDE_NONACTIVE != 0;
    let mut all = context.devices().interfaces();
    all.retain(|one| {
        one.class == class
            && (physical == 0 || one.physical == physical)
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
    name: u64,
    key: u64,
    locale: u32,
    _flags: u32,
    kind: u32,
    size: u32,
    data: u64,
) -> NtResult {
    store(context, property(context, name, key, locale)?, (kind, size, data));
    Ok(())
}

fn set_device_property(
    context: &Context,
    physical: u64,
    key: u64,
    locale: u32,
    _flags: u32,
    kind: u32,
    size: u32,
    data: u64,
) -> NtResult {
    store(context, device_property(context, physical, key, locale)?, (kind, size, data));
    Ok(())
}

fn store(context: &Context, property: PropertyName, (kind, size, data): (u32, u32, u64)) {
    let value = (data != 0).then(|| (kind, context.bytes(data, u64::from(size))));
    context.registry().properties.set(property, value);
}

fn get_property(
    context: &Context,
    name: u64,
    key: u64,
    locale: u32,
    _flags: u32,
    size: u32,
    data: u64,
    required: At<u32>,
    kind: At<u32>,
) -> NtResult {
    let found = context.registry().properties.get(&property(context, name, key, locale)?);
    load(context, found.ok_or(NtStatus::OBJECT_NAME_NOT_FOUND)?, (size, data), required, kind)
}

fn get_device_property(
    context: &Context,
    physical: u64,
    key: u64,
    locale: u32,
    _flags: u32,
    size: u32,
    data: u64,
    required: At<u32>,
    kind: At<u32>,
) -> NtResult {
    let property = device_property(context, physical, key, locale)?;
    let found = match context.registry().properties.get(&property) {
        Some(found) => found,
        None => device_properties::of_system(&property.1, &property.0, |number| {
            let missing = Err(NtStatus::OBJECT_NAME_NOT_FOUND);
            context.devices().property(physical, number).unwrap_or(missing)
        })?,
    };
    load(context, found, (size, data), required, kind)
}

fn load(
    context: &Context,
    (its_kind, bytes): KeyedProperty,
    (size, data): (u32, u64),
    required: At<u32>,
    kind: At<u32>,
) -> NtResult {
    // Windows accepts a null size pointer, and returns the type even if the buffer is too small.
    required.write_optional(context, u32::try_from(bytes.len()).unwrap_or(u32::MAX));
    kind.write(context, its_kind);
    if (size as usize) < bytes.len() {
        return Err(NtStatus::BUFFER_TOO_SMALL);
    }
    context.write_bytes(data, &bytes);
    Ok(())
}
