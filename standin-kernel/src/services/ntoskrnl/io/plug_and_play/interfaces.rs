//! The routines that register, enable and find device interfaces, and those for their properties.

use std::collections::BTreeMap;

use crate::{
    execution::routine::{Routine, low_half},
    ground::{abi::UnicodeString, irql::Irql, status::NtStatus},
    services::{
        managers::{
            plug_and_play::{InterfaceInstance, link},
            pool::{Tag, Wanted},
        },
        ntoskrnl::context::{Context, Entries},
        strings::{read_unicode_string, text_bytes},
    },
};

const PASSIVE: Irql = Irql::PASSIVE_LEVEL;

pub const ENTRIES: Entries = &[
    ("IoRegisterDeviceInterface", PASSIVE, Routine::Four(register)),
    ("IoSetDeviceInterfaceState", PASSIVE, Routine::Two(set_state)),
    ("IoGetDeviceInterfaces", PASSIVE, Routine::Four(list)),
    ("IoSetDeviceInterfacePropertyData", PASSIVE, Routine::Seven(set_property)),
    ("IoGetDeviceInterfacePropertyData", PASSIVE, Routine::Eight(get_property)),
];

/// The tag of the plug-and-play manager's memory that drivers free: `Pp  `.
const TAG: Tag = Tag(u32::from_le_bytes(*b"Pp  "));

/// Returns the interface of a symbolic link.
pub fn find(context: &Context, name: &str) -> Result<InterfaceInstance, NtStatus> {
    if !name.starts_with(r"\??\") && !name.starts_with(r"\\?\") {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    let name = format!(r"\??\{}", name.get(4..).unwrap_or_default());
    let mut all = context.devices().interfaces().into_iter();
    all.find(|one| one.link().eq_ignore_ascii_case(&name)).ok_or(NtStatus::OBJECT_NAME_NOT_FOUND)
}

fn allocate(context: &Context, size: usize) -> Option<u64> {
    let wanted = Wanted { size, tag: TAG, paged: true, uninitialized: false };
    context.pool().allocate(wanted, context, context.call())
}

fn register(context: &Context, physical: u64, class: u64, reference: u64, name: u64) -> u64 {
    let class: [u8; 16] = context.read(class);
    let reference =
        if reference == 0 { String::new() } else { read_unicode_string(context, reference) };
    let node = context.devices().node(physical);
    let Some(node) = node.filter(|_| !reference.contains(['\\', '/'])) else {
        return NtStatus::INVALID_DEVICE_REQUEST.to_register();
    };
    let link = link(&node.instance, class, &reference);
    let bytes = text_bytes(&link);
    let Ok(maximum_length) = u16::try_from(bytes.len()) else {
        return NtStatus::INVALID_DEVICE_REQUEST.to_register();
    };
    let Some(buffer) = allocate(context, bytes.len()) else {
        return NtStatus::INSUFFICIENT_RESOURCES.to_register();
    };
    let exists = find(context, &link).is_ok();
    context.devices().add_interface(physical, class, &reference);
    context.write_bytes(buffer, &bytes);
    let value = UnicodeString { length: maximum_length - 2, maximum_length, reserved: 0, buffer };
    context.write(name, &value);
    if exists {
        NtStatus::OBJECT_NAME_EXISTS.to_register()
    } else {
        NtStatus::SUCCESS.to_register()
    }
}

fn set_state(context: &Context, name: u64, enable: u64) -> u64 {
    let enable = enable & 0xFF != 0;
    let found = match find(context, &read_unicode_string(context, name)) {
        Ok(found) => found,
        Err(status) => return status.to_register(),
    };
    if found.is_enabled == enable {
        return if enable {
            NtStatus::OBJECT_NAME_EXISTS.to_register()
        } else {
            NtStatus::OBJECT_NAME_NOT_FOUND.to_register()
        };
    }
    context.devices().set_interface(&found.link(), enable);
    NtStatus::SUCCESS.to_register()
}

/// Stores a list of the symbolic links of a class's interfaces, which the driver frees.
fn list(context: &Context, class: u64, physical: u64, flags: u64, links: u64) -> u64 {
    /// `DEVICE_INTERFACE_INCLUDE_NONACTIVE`.
    const INCLUDE_NONACTIVE: u32 = 1;
    let class: [u8; 16] = context.read(class);
    if physical != 0 && context.devices().node(physical).is_none() {
        context.write(links, &0_u64);
        return NtStatus::INVALID_DEVICE_REQUEST.to_register();
    }
    let every_one = low_half(flags) & INCLUDE_NONACTIVE != 0;
    let mut all = context.devices().interfaces();
    all.retain(|one| {
        one.class == class
            && (physical == 0 || one.physical == physical)
            && (every_one || (one.is_enabled && one.is_started))
    });
    let mut bytes: Vec<u8> = all.iter().flat_map(|one| text_bytes(&one.link())).collect();
    bytes.extend([0, 0]);
    let Some(buffer) = allocate(context, bytes.len()) else {
        context.write(links, &0_u64);
        return NtStatus::INSUFFICIENT_RESOURCES.to_register();
    };
    context.write_bytes(buffer, &bytes);
    context.write(links, &buffer);
    NtStatus::SUCCESS.to_register()
}

/// A property of an interface: the interface's link in capitals, the property's key and the locale.
type PropertyName = (String, [u8; 20], u32);

/// The properties that drivers set, each with its type.
#[derive(Default)]
struct Properties(BTreeMap<PropertyName, (u32, Vec<u8>)>);

/// Returns the name of a property of an interface that exists.
fn property(context: &Context, name: u64, key: u64, locale: u64) -> Result<PropertyName, NtStatus> {
    /// `LOCALE_USER_DEFAULT` and `LOCALE_SYSTEM_DEFAULT`, which stand for others.
    const DEFAULTS: [u32; 2] = [0x400, 0x800];
    let found = find(context, &read_unicode_string(context, name))?;
    let locale = low_half(locale);
    if DEFAULTS.contains(&locale) {
        return Err(NtStatus::UNSUCCESSFUL);
    }
    Ok((found.link().to_uppercase(), context.read(key), locale))
}

/// Sets a property, or deletes it if there are no data.
fn set_property(context: &Context, arguments: [u64; 7]) -> u64 {
    let [name, key, locale, _flags, kind, size, data] = arguments;
    let property = match property(context, name, key, locale) {
        Ok(property) => property,
        Err(status) => return status.to_register(),
    };
    let value = (data != 0).then(|| {
        let bytes = context.bytes(data, u64::from(low_half(size)));
        (low_half(kind), bytes)
    });
    let mut state = context.state();
    let all = &mut state.get::<Properties>().0;
    match value {
        Some(value) => {
            all.insert(property, value);
        }
        None => {
            all.remove(&property);
        }
    }
    NtStatus::SUCCESS.to_register()
}

fn get_property(context: &Context, arguments: [u64; 8]) -> u64 {
    let [name, key, locale, _flags, size, data, required, kind] = arguments;
    let found = property(context, name, key, locale).and_then(|property| {
        let mut state = context.state();
        let found = state.get::<Properties>().0.get(&property).cloned();
        found.ok_or(NtStatus::OBJECT_NAME_NOT_FOUND)
    });
    let (its_kind, bytes) = match found {
        Ok(found) => found,
        Err(status) => return status.to_register(),
    };
    context.write(required, &u32::try_from(bytes.len()).unwrap_or(u32::MAX));
    if (low_half(size) as usize) < bytes.len() {
        return NtStatus::BUFFER_TOO_SMALL.to_register();
    }
    context.write_bytes(data, &bytes);
    context.write(kind, &its_kind);
    NtStatus::SUCCESS.to_register()
}
