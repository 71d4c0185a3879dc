//! The device properties that the Plug and Play manager stores (`DEVICE_REGISTRY_PROPERTY`).

use std::collections::BTreeMap;

use etw_wire::Guid;
use parking_lot::Mutex;

use crate::{
    NtStatus,
    execution::strings::{text_bytes, units},
    ground::NtResult,
};

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

/// The property of an interface or device: the interface's link or the device's instance path in upper
/// case, the property key (`DEVPROPKEY`), and the locale.
pub type PropertyName = (String, [u8; 20], u32);

/// The type (`DEVPROPTYPE`) and the data of a property.
pub type KeyedProperty = (u32, Vec<u8>);

/// The properties that drivers have set.
#[derive(Default)]
pub struct KeyedProperties(Mutex<BTreeMap<PropertyName, KeyedProperty>>);

impl KeyedProperties {
    /// Returns a property.
    pub fn get(&self, name: &PropertyName) -> Option<KeyedProperty> {
        self.0.lock().get(name).cloned()
    }

    /// Sets a property, or deletes it if there is no value.
    pub fn set(&self, name: PropertyName, value: Option<KeyedProperty>) {
        let mut all = self.0.lock();
        match value {
            Some(value) => all.insert(name, value),
            None => all.remove(&name),
        };
    }
}

/// Returns the name of a property of a device or an interface.
pub fn named(owner: &str, key: [u8; 20], locale: u32) -> NtResult<PropertyName> {
    /// `LOCALE_USER_DEFAULT` and `LOCALE_SYSTEM_DEFAULT`, which are placeholders for other locales.
    const DEFAULTS: [u32; 2] = [0x400, 0x800];
    if DEFAULTS.contains(&locale) {
        return Err(NtStatus::UNSUCCESSFUL);
    }
    Ok((owner.to_uppercase(), key, locale))
}

/// `DEVPROP_TYPE_UINT32`, `DEVPROP_TYPE_GUID`, `DEVPROP_TYPE_STRING` and `DEVPROP_TYPE_STRING_LIST`.
mod kind {
    pub const UINT32: u32 = 0x07;
    pub const GUID: u32 = 0x0D;
    pub const STRING: u32 = 0x12;
    pub const STRING_LIST: u32 = 0x2012;
}

/// The format of `DEVPKEY_Device_DeviceDesc` and the other keys for the properties that the system has
/// had since Windows 2000, with the identifiers, properties and types of these keys.
const DEVICE: Guid = Guid::from_u128(0xA45C_254E_DF1C_4EFD_8020_67D1_46A8_50E0);
const KEYS: [(u32, u32, u32); 14] = [
    (2, property::DESCRIPTION, kind::STRING),
    (3, property::HARDWARE_ID, kind::STRING_LIST),
    (4, property::COMPATIBLE_IDS, kind::STRING_LIST),
    (9, property::CLASS_NAME, kind::STRING),
    (10, property::CLASS_GUID, kind::GUID),
    (11, property::DRIVER_KEY, kind::STRING),
    (13, property::MANUFACTURER, kind::STRING),
    (14, property::FRIENDLY_NAME, kind::STRING),
    (15, property::LOCATION, kind::STRING),
    (16, property::PHYSICAL_NAME, kind::STRING),
    (21, property::BUS_TYPE, kind::GUID),
    (22, property::LEGACY_BUS, kind::UINT32),
    (23, property::BUS_NUMBER, kind::UINT32),
    (24, property::ENUMERATOR, kind::STRING),
];
/// `DEVPKEY_Device_InstanceId` and `DEVPKEY_Device_ContainerId`.
const INSTANCE: (Guid, u32) = (Guid::from_u128(0x78C3_4FC8_104A_4ACA_9EA4_524D_5299_6E57), 256);
const CONTAINER: (Guid, u32) = (Guid::from_u128(0x8C7E_D206_3F8A_4827_B3AB_AE9E_1FAE_FC6C), 2);

/// Returns the property of a device that the system itself provides for a key. `find` returns a
/// property by number (`DEVICE_REGISTRY_PROPERTY`).
pub fn of_system(
    key: &[u8; 20],
    instance: &str,
    find: impl FnOnce(u32) -> NtResult<Vec<u8>>,
) -> NtResult<KeyedProperty> {
    let missing = NtStatus::OBJECT_NAME_NOT_FOUND;
    let [format @ .., a, b, c, d] = *key;
    let key = (Guid::from_bytes(format), u32::from_le_bytes([a, b, c, d]));
    if key == INSTANCE {
        return Ok((kind::STRING, text_bytes(instance)));
    }
    let known = KEYS.iter().find(|(id, ..)| (DEVICE, *id) == key);
    let known = known.map(|(_, number, kind)| (*number, *kind));
    let container = (key == CONTAINER).then_some((property::CONTAINER, kind::GUID));
    let (number, kind) = known.or(container).ok_or(missing)?;
    let bytes = find(number)?;
    if kind == kind::GUID && bytes.len() != 16 {
        let text = String::from_utf16_lossy(&units(&bytes));
        let guid = Guid::parse(text.trim_matches(['{', '}', '\0'])).map_err(|_| missing)?;
        return Ok((kind, guid.to_bytes().to_vec()));
    }
    Ok((kind, bytes))
}
