//! Registry keys: those of drivers and devices, and those that a driver opens by name.

use super::super::{
    device::init::with_init,
    driver::{DriverData, driver_of},
    object::{create, delete, give, read_attributes},
    state::{
        device::DeviceData,
        framework::{Context, Data, Entries},
        registry::{Registry, hardware_path, parameters_path, software_path},
    },
};
use crate::{
    execution::routine::{Routine, low_half},
    ground::status::NtStatus,
    services::strings::read_unicode_string,
};

/// Access rights of keys.
pub mod access {
    pub const QUERY_VALUE: u32 = 0x1;
    pub const SET_VALUE: u32 = 0x2;
    pub const CREATE_SUB_KEY: u32 = 0x4;
    pub const DELETE: u32 = 0x1_0000;
    /// `KEY_READ`, `KEY_WRITE`, `KEY_ALL_ACCESS`.
    const READ: u32 = 0x2_0019;
    const WRITE: u32 = 0x2_0006;
    const ALL: u32 = 0xF_003F;
    const MAXIMUM_ALLOWED: u32 = 0x0200_0000;
    const GENERIC_ALL: u32 = 0x1000_0000;
    const GENERIC_EXECUTE: u32 = 0x2000_0000;
    const GENERIC_WRITE: u32 = 0x4000_0000;
    const GENERIC_READ: u32 = 0x8000_0000;

    /// Returns the rights that an access mask asks for, with generic rights replaced.
    pub const fn granted(mask: u32) -> u32 {
        let mut rights = mask & ALL;
        if mask & (GENERIC_READ | GENERIC_EXECUTE) != 0 {
            rights |= READ;
        }
        if mask & GENERIC_WRITE != 0 {
            rights |= WRITE;
        }
        if mask & (GENERIC_ALL | MAXIMUM_ALLOWED) != 0 {
            rights |= ALL;
        }
        rights
    }
}

/// An open key.
pub struct KeyData {
    path: String,
    rights: u32,
    /// Set if the key was removed through this object.
    is_removed: bool,
}

impl Data for KeyData {
    const NAME: &'static str = "WDFKEY";
}

pub const ENTRIES: Entries = &[
    (
        "WdfDriverOpenParametersRegistryKey",
        Routine::Five(open_parameters),
    ),
    ("WdfDeviceOpenRegistryKey", Routine::Six(open_device_key)),
    ("WdfFdoInitOpenRegistryKey", Routine::Six(open_init_key)),
    ("WdfRegistryOpenKey", Routine::Six(open)),
    ("WdfRegistryCreateKey", Routine::Eight(create_key)),
    ("WdfRegistryClose", Routine::Two(close)),
    ("WdfRegistryRemoveKey", Routine::Two(remove)),
];

/// Returns the path of an open key, if it was opened with these rights.
pub fn path_of(context: &Context, key: u64, rights: u32) -> Result<String, NtStatus> {
    context.with::<KeyData, _>(key, |key| {
        if key.is_removed {
            Err(NtStatus::KEY_DELETED)
        } else if key.rights & rights == rights {
            Ok(key.path.clone())
        } else {
            Err(NtStatus::ACCESS_DENIED)
        }
    })
}

/// Creates a key object.
fn key_object(
    context: &Context,
    path: String,
    mask: u64,
    attributes: u64,
    parent: Option<u64>,
) -> Result<u64, NtStatus> {
    let attributes = read_attributes(context, attributes);
    let data = KeyData {
        path,
        rights: access::granted(low_half(mask)),
        is_removed: false,
    };
    create(context, data, attributes.as_ref(), parent)
}

fn open_parameters(
    context: &Context,
    _globals: u64,
    driver: u64,
    mask: u64,
    attributes: u64,
    key: u64,
) -> u64 {
    let service = context.with::<DriverData, _>(driver, |driver| driver.service());
    let path = parameters_path(&service);
    context.framework().part::<Registry>().create(&path);
    let created = key_object(context, path, mask, attributes, Some(driver));
    give(context, created, key)
}

/// Returns the path of a device's key of a type.
fn device_path(instance: &str, driver_key: &str, kind: u64) -> Result<String, NtStatus> {
    /// `PLUGPLAY_REGKEY_DEVICE` and `PLUGPLAY_REGKEY_DRIVER`.
    const DEVICE: u32 = 1;
    const DRIVER: u32 = 2;
    /// `PLUGPLAY_REGKEY_CURRENT_HWPROFILE`.
    const HARDWARE_PROFILE: u32 = 4;
    let kind = low_half(kind);
    let path = match kind & !HARDWARE_PROFILE {
        DEVICE => hardware_path(instance),
        DRIVER => software_path(driver_key),
        _ => return Err(NtStatus::INVALID_PARAMETER),
    };
    Ok(if kind & HARDWARE_PROFILE == 0 {
        path
    } else {
        path.replacen(
            r"\System\CurrentControlSet",
            r"\System\CurrentControlSet\Hardware Profiles\Current\System\CurrentControlSet",
            1,
        )
    })
}

fn open_device_key(
    context: &Context,
    _globals: u64,
    device: u64,
    kind: u64,
    mask: u64,
    attributes: u64,
    key: u64,
) -> u64 {
    let (identity, is_control) = context.with::<DeviceData, _>(device, |device| {
        (device.init.identity.clone(), device.is_control())
    });
    if is_control {
        return NtStatus::INVALID_DEVICE_REQUEST.to_register();
    }
    let path = device_path(&identity.instance, &identity.driver_key, kind);
    let created = path.and_then(|path| {
        context.framework().part::<Registry>().create(&path);
        key_object(context, path, mask, attributes, Some(device))
    });
    give(context, created, key)
}

fn open_init_key(
    context: &Context,
    _globals: u64,
    init: u64,
    kind: u64,
    mask: u64,
    attributes: u64,
    key: u64,
) -> u64 {
    let identity = with_init(context, init, |init| {
        let is_function = init.control_of.is_none() && init.child_of.is_none();
        is_function.then(|| init.identity.clone())
    });
    let Some(identity) = identity else {
        return NtStatus::INVALID_PARAMETER.to_register();
    };
    let path = device_path(&identity.instance, &identity.driver_key, kind);
    let parent = driver_of(context);
    let created = path.and_then(|path| {
        context.framework().part::<Registry>().create(&path);
        key_object(context, path, mask, attributes, parent)
    });
    give(context, created, key)
}

/// Returns the path of a key that a driver names, below a parent key or absolute.
fn named_path(context: &Context, parent: u64, name: u64, rights: u32) -> Result<String, NtStatus> {
    let name = read_unicode_string(context, name);
    if parent == 0 {
        return if name.starts_with('\\') {
            Ok(name)
        } else {
            Err(NtStatus::OBJECT_PATH_SYNTAX_BAD)
        };
    }
    let parent = path_of(context, parent, rights)?;
    if name.starts_with('\\') {
        Err(NtStatus::OBJECT_PATH_SYNTAX_BAD)
    } else {
        Ok(format!(r"{parent}\{name}"))
    }
}

fn open(
    context: &Context,
    _globals: u64,
    parent: u64,
    name: u64,
    mask: u64,
    attributes: u64,
    key: u64,
) -> u64 {
    let created = named_path(context, parent, name, 0).and_then(|path| {
        if context.framework().part::<Registry>().exists(&path) {
            key_object(context, path, mask, attributes, driver_of(context))
        } else {
            Err(NtStatus::OBJECT_NAME_NOT_FOUND)
        }
    });
    give(context, created, key)
}

fn create_key(context: &Context, arguments: [u64; 8]) -> u64 {
    /// `REG_CREATED_NEW_KEY` and `REG_OPENED_EXISTING_KEY`.
    const NEW: u32 = 1;
    const EXISTING: u32 = 2;
    let [
        _globals,
        parent,
        name,
        mask,
        _options,
        disposition,
        attributes,
        key,
    ] = arguments;
    let created = named_path(context, parent, name, access::CREATE_SUB_KEY).and_then(|path| {
        let is_new = context.framework().part::<Registry>().create(&path);
        if disposition != 0 {
            context.write(disposition, if is_new { &NEW } else { &EXISTING });
        }
        key_object(context, path, mask, attributes, driver_of(context))
    });
    give(context, created, key)
}

fn close(context: &Context, _globals: u64, key: u64) -> u64 {
    context.with::<KeyData, _>(key, |_| ());
    delete(context, key);
    0
}

/// Removes a key from the registry and closes it.
fn remove(context: &Context, _globals: u64, key: u64) -> u64 {
    let path = match path_of(context, key, access::DELETE) {
        Ok(path) => path,
        Err(status) => return status.to_register(),
    };
    if !context.framework().part::<Registry>().remove(&path) {
        return NtStatus::CANNOT_DELETE.to_register();
    }
    context.with::<KeyData, _>(key, |key| key.is_removed = true);
    delete(context, key);
    NtStatus::SUCCESS.to_register()
}
