//! Registry keys: drivers' and devices' keys, and keys that drivers open by name.

use crate::{
    execution::{
        kinds::NtObject,
        routine::{At, Handle, Out, routine},
    },
    ground::{
        NtResult, NtStatus,
        abi::{ObjectAttributes, UnicodeString},
    },
    services::{
        kmdf::{
            binding::{DriverData, driver_of},
            lifetime::{create_from, delete, give, read_attributes},
            object::string::read_text,
            state::{
                device::{DeviceData, DeviceInit},
                framework::{Context, Data, Entries, ObjectRoutine},
            },
        },
        managers::registry::{
            paths::{device_path, parameters_path},
            store::{KeyId, NewKey},
        },
    },
};

/// An open key.
pub struct KeyData {
    key: KeyId,
    /// The handle, once the driver has requested it.
    handle: Option<u64>,
}

impl Data for KeyData {
    const NAME: &'static str = "WDFKEY";
    const IS_PASSIVE: bool = true;

    const BEFORE_DELETE: Option<ObjectRoutine> = Some(close_handle);
}

pub const ENTRIES: Entries = &[
    routine("WdfDriverOpenParametersRegistryKey", open_parameters),
    routine("WdfDeviceOpenRegistryKey", open_device_key),
    routine("WdfFdoInitOpenRegistryKey", open_init_key),
    routine("WdfRegistryOpenKey", open),
    routine("WdfRegistryCreateKey", create_key),
    routine("WdfRegistryClose", close),
    routine("WdfRegistryRemoveKey", remove),
    routine("WdfRegistryWdmGetHandle", handle_of),
];

/// Returns the key to which a key object refers. Its access rights are not checked: Windows checks
/// them only for calls from user mode, and the framework calls from kernel mode.
pub fn id_of(context: &Context, key: u64) -> NtResult<KeyId> {
    let key = context.with::<KeyData, _>(key, |key| key.key);
    if context.registry().exists(key) { Ok(key) } else { Err(NtStatus::KEY_DELETED) }
}

fn key_object(
    context: &Context,
    key: KeyId,
    attributes: u64,
    parent: Option<u64>,
) -> NtResult<u64> {
    create_from(context, KeyData { key, handle: None }, attributes, parent)
}

fn open_parameters(
    context: &Context,
    driver: Handle<DriverData>,
    _mask: u32,
    attributes: At<ObjectAttributes>,
    key: Out<KeyData>,
) -> NtResult {
    let service = driver.with(context, |driver| driver.service());
    let path = parameters_path(&service);
    let created = context.registry().create_all(&path);
    let created =
        created.and_then(|found| key_object(context, found, attributes.0, Some(driver.0)));
    give(context, created, key.0)
}

/// Opens a device's key of this type (`PLUGPLAY_REGKEY_*`), and creates it if necessary.
fn open_device(context: &Context, instance: &str, driver_key: &str, kind: u32) -> NtResult<KeyId> {
    let path = device_path(instance, driver_key, kind);
    let path = path.ok_or(NtStatus::INVALID_PARAMETER)?;
    context.registry().create_all(&path)
}

fn open_device_key(
    context: &Context,
    device: Handle<DeviceData>,
    kind: u32,
    _mask: u32,
    attributes: At<ObjectAttributes>,
    key: Out<KeyData>,
) -> NtResult {
    let (identity, is_control) =
        device.with(context, |device| (device.init.identity.clone(), device.is_control()));
    if is_control {
        return Err(NtStatus::INVALID_DEVICE_STATE);
    }
    if read_attributes(context, attributes.0)
        .is_some_and(|attributes| attributes.parent_object != 0)
    {
        return Err(NtStatus::WDF_PARENT_ASSIGNMENT_NOT_ALLOWED);
    }
    let found = open_device(context, &identity.instance, &identity.driver_key, kind);
    let created = found.and_then(|found| key_object(context, found, attributes.0, Some(device.0)));
    give(context, created, key.0)
}

fn open_init_key(
    context: &Context,
    init: Handle<DeviceInit>,
    kind: u32,
    _mask: u32,
    attributes: At<ObjectAttributes>,
    key: Out<KeyData>,
) -> NtResult {
    let identity = init.with_init(context, |init| {
        let is_function = init.control_of.is_none() && init.child_of.is_none();
        is_function.then(|| init.identity.clone())
    });
    let identity = identity.ok_or(NtStatus::INVALID_PARAMETER)?;
    let found = open_device(context, &identity.instance, &identity.driver_key, kind);
    let parent = driver_of(context);
    let created = found.and_then(|found| key_object(context, found, attributes.0, parent));
    give(context, created, key.0)
}

/// Returns the key to which a path is relative, or `None` if the path is absolute.
fn start(context: &Context, parent: u64) -> NtResult<Option<KeyId>> {
    if parent == 0 {
        return Ok(None);
    }
    id_of(context, parent).map(Some)
}

fn open(
    context: &Context,
    parent: Handle<KeyData>,
    name: At<UnicodeString>,
    _mask: u32,
    attributes: At<ObjectAttributes>,
    key: Out<KeyData>,
) -> NtResult {
    let name = read_text(context, name.0)?;
    let created = start(context, parent.0).and_then(|start| {
        let found = context.registry().open(start, &name)?;
        key_object(context, found, attributes.0, driver_of(context))
    });
    give(context, created, key.0)
}

fn create_key(
    context: &Context,
    parent: Handle<KeyData>,
    name: At<UnicodeString>,
    _mask: u32,
    options: u32,
    disposition: At<u32>,
    attributes: At<ObjectAttributes>,
    key: Out<KeyData>,
) -> NtResult {
    /// `REG_CREATED_NEW_KEY` and `REG_OPENED_EXISTING_KEY`.
    const NEW: u32 = 1;
    const EXISTING: u32 = 2;
    /// `REG_OPTION_VOLATILE`.
    const VOLATILE: u32 = 1;
    let name = read_text(context, name.0)?;
    let new = NewKey { is_volatile: options & VOLATILE != 0, ..NewKey::default() };
    let created = start(context, parent.0).and_then(|start| {
        let (found, is_new) = context.registry().create(start, &name, new)?;
        context.write_optional(disposition.0, if is_new { &NEW } else { &EXISTING });
        key_object(context, found, attributes.0, driver_of(context))
    });
    give(context, created, key.0)
}

/// Returns the key's handle for kernel routines, which is valid until the key is closed.
fn handle_of(context: &Context, key: Handle<KeyData>) -> Handle<NtObject> {
    let (found, handle) = key.with(context, |key| (key.key, key.handle));
    Handle::new(handle.unwrap_or_else(|| {
        let opened = context.registry().open_handle(found);
        key.with(context, |key| key.handle = Some(opened));
        opened
    }))
}

fn close_handle(context: &Context, key: u64) {
    let handle = context.with::<KeyData, _>(key, |key| key.handle.take());
    if let Some(handle) = handle {
        context.registry().close_handle(handle);
    }
}

fn close(context: &Context, key: Handle<KeyData>) {
    key.check(context);
    delete(context, key.0);
}

/// Removes a key from the registry and closes it.
fn remove(context: &Context, key: Handle<KeyData>) -> NtStatus {
    let removed = id_of(context, key.0).and_then(|found| context.registry().delete(found));
    if let Err(status) = removed {
        return status;
    }
    delete(context, key.0);
    NtStatus::SUCCESS
}
