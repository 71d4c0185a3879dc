//! The routines that open the keys of devices, their interfaces, and drivers.

use super::interfaces::find;
use crate::{
    execution::routine::{Routine, low_half},
    ground::{
        abi::{DriverExtension, DriverObject},
        irql::Irql,
        status::NtStatus,
    },
    services::{
        managers::registry::paths::{device_path, parameters_path, service_path},
        ntoskrnl::{
            context::{Context, Entries},
            zw::keys::open_handle,
        },
        strings::read_unicode_string,
    },
};

const PASSIVE: Irql = Irql::PASSIVE_LEVEL;

pub const ENTRIES: Entries = &[
    ("IoOpenDeviceRegistryKey", PASSIVE, Routine::Four(open_device_key)),
    ("IoOpenDeviceInterfaceRegistryKey", PASSIVE, Routine::Three(open_interface_key)),
    ("IoOpenDriverRegistryKey", PASSIVE, Routine::Five(open_driver_key)),
];

/// Opens a key, which exists then, and stores its handle.
fn give(context: &Context, path: Result<String, NtStatus>, handle: u64) -> u64 {
    let opened = path.and_then(|path| context.registry().create_all(&path));
    match opened {
        Ok(key) => {
            let value = open_handle(context, key);
            context.write(handle, &value);
            NtStatus::SUCCESS.to_register()
        }
        Err(status) => status.to_register(),
    }
}

fn open_device_key(context: &Context, physical: u64, kind: u64, _mask: u64, handle: u64) -> u64 {
    let node = context.devices().node(physical);
    let path = node.ok_or(NtStatus::INVALID_DEVICE_REQUEST).and_then(|node| {
        device_path(&node.instance, &node.driver_key, low_half(kind))
            .ok_or(NtStatus::INVALID_PARAMETER)
    });
    give(context, path, handle)
}

fn open_interface_key(context: &Context, link: u64, _mask: u64, handle: u64) -> u64 {
    let found = find(context, &read_unicode_string(context, link));
    give(context, found.map(|found| found.key()), handle)
}

fn open_driver_key(
    context: &Context,
    driver: u64,
    kind: u64,
    _mask: u64,
    flags: u64,
    handle: u64,
) -> u64 {
    /// `DriverRegKeyParameters`, `DriverRegKeyPersistentState` and `DriverRegKeySharedPersistentState`.
    const PARAMETERS: u32 = 0;
    const STATE: u32 = 1;
    const SHARED_STATE: u32 = 2;
    let service = service_of(context, driver);
    // Microsoft does not say where the keys of states are.
    let path = match low_half(kind) {
        _ if low_half(flags) != 0 => Err(NtStatus::INVALID_PARAMETER),
        PARAMETERS => Ok(parameters_path(&service)),
        STATE => Ok(format!(r"{}\State", service_path(&service))),
        SHARED_STATE => Ok(format!(r"{}\SharedState", service_path(&service))),
        _ => Err(NtStatus::INVALID_PARAMETER),
    };
    give(context, path, handle)
}

/// Returns the name of a driver's service: the last part of the name that the driver's extension has.
fn service_of(context: &Context, driver: u64) -> String {
    /// `IO_TYPE_DRIVER`.
    const TYPE: i16 = 4;
    let object: DriverObject = context.read(driver);
    if object.kind != TYPE {
        context.stop_for_misuse(&format!("with 0x{driver:016X}, which is not a driver object"));
    }
    let offset = std::mem::offset_of!(DriverExtension, service_key_name) as u64;
    let name = read_unicode_string(context, object.driver_extension.wrapping_add(offset));
    name.rsplit('\\').next().unwrap_or_default().to_owned()
}
