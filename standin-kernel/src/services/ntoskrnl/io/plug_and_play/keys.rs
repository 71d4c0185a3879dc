//! The routines that open the registry keys of devices, device interfaces and drivers.

use super::interfaces::find;
use crate::{
    execution::{
        kinds::NtObject,
        routine::{At, Out, routine},
        strings::read_unicode_string,
    },
    ground::{
        NtResult, NtStatus,
        abi::{DeviceObject, DriverExtension, DriverObject, UnicodeString},
    },
    services::{
        managers::registry::paths::{device_path, parameters_path, service_path},
        ntoskrnl::{
            cm::keys,
            context::{Context, Entries},
        },
    },
};

pub const ENTRIES: Entries = &[
    routine("IoOpenDeviceRegistryKey", open_device_key),
    routine("IoOpenDeviceInterfaceRegistryKey", open_interface_key),
    routine("IoOpenDriverRegistryKey", open_driver_key),
];

/// Opens a key, creates it if necessary, and stores its handle.
fn open(context: &Context, path: &str, mask: u32, handle: Out<NtObject>) -> NtResult {
    keys::create_all(context, path, mask, handle)
}

fn open_device_key(
    context: &Context,
    physical: At<DeviceObject>,
    kind: u32,
    mask: u32,
    handle: Out<NtObject>,
) -> NtResult {
    let node = context.devices().node(physical.0).ok_or(NtStatus::INVALID_PARAMETER)?;
    let path = device_path(&node.instance, &node.driver_key, kind);
    open(context, &path.ok_or(NtStatus::INVALID_PARAMETER)?, mask, handle)
}

fn open_interface_key(
    context: &Context,
    link: At<UnicodeString>,
    mask: u32,
    handle: Out<NtObject>,
) -> NtResult {
    let found = find(context, &read_unicode_string(context, link.0))?;
    open(context, &found.key(), mask, handle)
}

fn open_driver_key(
    context: &Context,
    driver: At<DriverObject>,
    kind: u32,
    mask: u32,
    flags: u32,
    handle: Out<NtObject>,
) -> NtResult {
    /// `DriverRegKeyParameters`, `DriverRegKeyPersistentState` and `DriverRegKeySharedPersistentState`.
    const PARAMETERS: u32 = 0;
    const STATE: u32 = 1;
    const SHARED_STATE: u32 = 2;
    let service = service_of(context, driver.0);
    // Microsoft does not document the locations of the state keys.
    let path = match kind {
        PARAMETERS if flags == 0 => parameters_path(&service),
        STATE if flags == 0 => format!(r"{}\State", service_path(&service)),
        SHARED_STATE if flags == 0 => format!(r"{}\SharedState", service_path(&service)),
        _ => return Err(NtStatus::INVALID_PARAMETER),
    };
    open(context, &path, mask, handle)
}

/// Returns the name of a driver's service: the last segment of the name in the driver extension.
fn service_of(context: &Context, driver: u64) -> String {
    /// `IO_TYPE_DRIVER`.
    const TYPE: i16 = 4;
    let object: DriverObject = context.read(driver);
    if object.kind != TYPE {
        context.stop_for_wrong(driver, "a driver object");
    }
    let offset = std::mem::offset_of!(DriverExtension, service_key_name) as u64;
    let name = read_unicode_string(context, object.driver_extension.wrapping_add(offset));
    name.rsplit('\\').next().unwrap_or_default().to_owned()
}
