//! The device properties that the Plug and Play manager stores (`DEVICE_REGISTRY_PROPERTY`).

use crate::{NtStatus, ground::NtResult, services::strings::text_bytes};

/// The identity of a device for the Plug and Play manager, as reported by its bus.
#[derive(Clone, Debug, Default)]
pub struct Identity {
    /// The device instance path, for instance `ROOT\SAMPLE\0000`.
    pub instance: String,
    pub hardware_ids: Vec<String>,
    pub compatible_ids: Vec<String>,
    pub description: String,
    pub location: String,
    /// The name that the bus assigned to the physical device.
    pub physical_name: String,
    /// The container id, or an empty string.
    pub container: String,
    /// The name of the driver key, below the key of all classes.
    pub driver_key: String,
}

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
    /// One more than the last property.
    pub const END: u32 = 23;
}

/// The class of drivers without their own class: `System`.
pub const CLASS: (&str, &str) = ("System", "{4d36e97d-e325-11ce-bfc1-08002be10318}");

/// The bus of a device, if the bus driver reports it (`PNP_BUS_INFORMATION`).
#[derive(Clone, Copy, Debug)]
pub struct Bus {
    /// The GUID of the bus type.
    pub kind: [u32; 4],
    /// `INTERFACE_TYPE`.
    pub legacy: u32,
    pub number: u32,
}

/// Encodes a list of strings as `REG_MULTI_SZ`.
pub fn list_bytes(texts: &[String]) -> Vec<u8> {
    let mut bytes: Vec<u8> = texts.iter().flat_map(|text| text_bytes(text)).collect();
    bytes.extend([0, 0]);
    bytes
}

/// Returns a property, or the status for a device that lacks it.
pub fn find(
    identity: &Identity,
    given: &[(u32, String)],
    bus: Option<&Bus>,
    property: u32,
) -> NtResult<Vec<u8>> {
    let missing = NtStatus::OBJECT_NAME_NOT_FOUND;
    let text = |text: &str| {
        if text.is_empty() { Err(missing) } else { Ok(text_bytes(text)) }
    };
    let list = |texts: &[String]| {
        if texts.is_empty() { Err(missing) } else { Ok(list_bytes(texts)) }
    };
    if let Some((_, value)) = given.iter().find(|(number, _)| *number == property) {
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
        // The device is installed, and no removal is expected.
        property::INSTALL_STATE => Ok(0_u32.to_le_bytes().to_vec()),
        property::REMOVAL_POLICY => Ok(1_u32.to_le_bytes().to_vec()),
        property::BUS_TYPE | property::LEGACY_BUS | property::BUS_NUMBER => {
            let bus = bus.ok_or(missing)?;
            Ok(match property {
                property::BUS_TYPE => bus.kind.iter().flat_map(|word| word.to_le_bytes()).collect(),
                property::LEGACY_BUS => bus.legacy.to_le_bytes().to_vec(),
                _ => bus.number.to_le_bytes().to_vec(),
            })
        }
        property::CONTAINER => text(&identity.container),
        property::MANUFACTURER | property::FRIENDLY_NAME => Err(missing),
        property if property < property::END => Err(missing),
        _ => Err(NtStatus::INVALID_PARAMETER),
    }
}
