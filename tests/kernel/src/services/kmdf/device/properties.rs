//! The properties of a device that the plug-and-play manager keeps (`DEVICE_REGISTRY_PROPERTY`).

use super::{
    super::{
        buffer::make_filled,
        object::give,
        state::{
            device::{DeviceData, Identity},
            framework::{Context, Entries},
        },
    },
    capabilities::ChildrensBus,
    init::with_init,
};
use crate::{
    execution::routine::{Routine, low_half},
    ground::{memory, status::NtStatus},
    services::strings::text_bytes,
};

pub const ENTRIES: Entries = &[
    ("WdfDeviceQueryProperty", Routine::Six(query)),
    ("WdfDeviceAllocAndQueryProperty", Routine::Six(allocate)),
    ("WdfFdoInitQueryProperty", Routine::Six(init_query)),
    (
        "WdfFdoInitAllocAndQueryProperty",
        Routine::Six(init_allocate),
    ),
];

/// `DEVICE_REGISTRY_PROPERTY`.
mod property {
    pub const DESCRIPTION: u32 = 0;
    pub const HARDWARE_ID: u32 = 1;
    pub const COMPATIBLE_IDS: u32 = 2;
    pub const CLASS_NAME: u32 = 5;
    pub const CLASS_GUID: u32 = 6;
    pub const DRIVER_KEY: u32 = 7;
    pub const MANUFACTURER: u32 = 8;
    pub const FRIENDLY_NAME: u32 = 9;
    pub const LOCATION: u32 = 10;
    pub const PHYSICAL_NAME: u32 = 11;
    pub const BUS_TYPE: u32 = 12;
    pub const LEGACY_BUS: u32 = 13;
    pub const BUS_NUMBER: u32 = 14;
    pub const ENUMERATOR: u32 = 15;
    pub const INSTALL_STATE: u32 = 18;
    pub const REMOVAL_POLICY: u32 = 19;
    pub const CONTAINER: u32 = 22;
    /// One more than the last.
    pub const END: u32 = 23;
}

/// The class that a driver without one is installed in: `System`.
pub const CLASS: (&str, &str) = ("System", "{4d36e97d-e325-11ce-bfc1-08002be10318}");

/// The properties that a test gives a device, by number.
#[derive(Clone, Default)]
pub struct GivenProperties(pub Vec<(u32, String)>);

/// Returns the bytes of a list of strings, as `REG_MULTI_SZ`.
fn list_bytes(texts: &[String]) -> Vec<u8> {
    let mut bytes: Vec<u8> = texts.iter().flat_map(|text| text_bytes(text)).collect();
    bytes.extend([0, 0]);
    bytes
}

/// Returns a property, or the status that says that the device does not have it.
fn find(
    identity: &Identity,
    given: &GivenProperties,
    bus: &ChildrensBus,
    property: u32,
) -> Result<Vec<u8>, NtStatus> {
    let missing = NtStatus::OBJECT_NAME_NOT_FOUND;
    let text = |text: &str| {
        if text.is_empty() {
            Err(missing)
        } else {
            Ok(text_bytes(text))
        }
    };
    let list = |texts: &[String]| {
        if texts.is_empty() {
            Err(missing)
        } else {
            Ok(list_bytes(texts))
        }
    };
    if let Some((_, value)) = given.0.iter().find(|(number, _)| *number == property) {
        return Ok(text_bytes(value));
    }
    match property {
        property::DESCRIPTION => text(&identity.description),
        property::HARDWARE_ID => list(&identity.hardware_ids),
        property::COMPATIBLE_IDS => list(&identity.compatible_ids),
        property::CLASS_NAME => text(CLASS.0),
        property::CLASS_GUID => text(CLASS.1),
        property::DRIVER_KEY => text(&identity.driver_key),
        property::LOCATION => text(&identity.location),
        property::PHYSICAL_NAME => text(&identity.physical_name),
        property::ENUMERATOR => text(identity.instance.split('\\').next().unwrap_or_default()),
        // The device is installed; its removal policy is that of a device that stays.
        property::INSTALL_STATE => Ok(0_u32.to_le_bytes().to_vec()),
        property::REMOVAL_POLICY => Ok(1_u32.to_le_bytes().to_vec()),
        property::BUS_TYPE | property::LEGACY_BUS | property::BUS_NUMBER => {
            let bus = bus.0.as_ref().ok_or(missing)?;
            Ok(match property {
                property::BUS_TYPE => bus
                    .bus_type_guid
                    .iter()
                    .flat_map(|word| word.to_le_bytes())
                    .collect(),
                property::LEGACY_BUS => bus.legacy_bus_type.to_le_bytes().to_vec(),
                _ => bus.bus_number.to_le_bytes().to_vec(),
            })
        }
        property::CONTAINER => text(&identity.container),
        property::MANUFACTURER | property::FRIENDLY_NAME => Err(missing),
        property if property < property::END => Err(missing),
        _ => Err(NtStatus::INVALID_PARAMETER),
    }
}

/// Returns a property of a device.
pub fn of_device(context: &Context, device: u64, property: u64) -> Result<Vec<u8>, NtStatus> {
    let (identity, given, is_control, parent) = context.with::<DeviceData, _>(device, |device| {
        let given = device.part::<GivenProperties>().clone();
        let identity = device.init.identity.clone();
        (identity, given, device.is_control(), device.init.child_of)
    });
    if is_control {
        return Err(NtStatus::INVALID_DEVICE_REQUEST);
    }
    let bus = parent.map_or_else(ChildrensBus::default, |parent| bus_of(context, parent));
    find(&identity, &given, &bus, low_half(property))
}

fn bus_of(context: &Context, parent: u64) -> ChildrensBus {
    context.framework().get::<DeviceData>(parent).map_or_else(
        |_| ChildrensBus::default(),
        |parent| ChildrensBus(parent.part::<ChildrensBus>().0),
    )
}

/// Returns a property of the device that a driver is about to create.
fn of_init(context: &Context, init: u64, property: u64) -> Result<Vec<u8>, NtStatus> {
    let (identity, given, is_function) = with_init(context, init, |init| {
        let given = init.parts.get::<GivenProperties>().clone();
        let is_function = init.control_of.is_none() && init.child_of.is_none();
        (init.identity.clone(), given, is_function)
    });
    if !is_function {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    find(
        &identity,
        &given,
        &ChildrensBus::default(),
        low_half(property),
    )
}

/// Copies a property to a driver's buffer, and writes its length.
pub fn copy_out(
    context: &Context,
    found: Result<Vec<u8>, NtStatus>,
    length: u64,
    buffer: u64,
    result_length: u64,
) -> u64 {
    let bytes = match found {
        Ok(bytes) => bytes,
        Err(status) => {
            context.write(result_length, &0_u32);
            return status.to_register();
        }
    };
    let needed = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    context.write(result_length, &needed);
    if low_half(length) < needed {
        return NtStatus::BUFFER_TOO_SMALL.to_register();
    }
    if let Err(error) = memory::write_bytes(buffer, &bytes) {
        context.stop_for_address(error);
    }
    NtStatus::SUCCESS.to_register()
}

/// Creates a memory object with a property.
pub fn give_memory(
    context: &Context,
    found: Result<Vec<u8>, NtStatus>,
    attributes: u64,
    memory: u64,
) -> u64 {
    let made = found.and_then(|bytes| make_filled(context, &bytes, attributes));
    give(context, made, memory)
}

fn query(
    context: &Context,
    _globals: u64,
    device: u64,
    property: u64,
    length: u64,
    buffer: u64,
    result_length: u64,
) -> u64 {
    let found = of_device(context, device, property);
    copy_out(context, found, length, buffer, result_length)
}

fn allocate(
    context: &Context,
    _globals: u64,
    device: u64,
    property: u64,
    _pool: u64,
    attributes: u64,
    memory: u64,
) -> u64 {
    let found = of_device(context, device, property);
    give_memory(context, found, attributes, memory)
}

fn init_query(
    context: &Context,
    _globals: u64,
    init: u64,
    property: u64,
    length: u64,
    buffer: u64,
    result_length: u64,
) -> u64 {
    let found = of_init(context, init, property);
    copy_out(context, found, length, buffer, result_length)
}

fn init_allocate(
    context: &Context,
    _globals: u64,
    init: u64,
    property: u64,
    _pool: u64,
    attributes: u64,
    memory: u64,
) -> u64 {
    let found = of_init(context, init, property);
    give_memory(context, found, attributes, memory)
}
