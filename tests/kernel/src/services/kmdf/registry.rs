//! The parameters of services in the registry.

use std::collections::{BTreeMap, HashMap};

use super::{
    driver::DriverData,
    object::{create, delete, read_attributes},
    state::{
        framework::{Context, Data, Entries},
        text::{TextData, text_bytes},
    },
};
use crate::{
    execution::routine::{Routine, low_half},
    ground::{abi::UnicodeString, memory, status::NtStatus},
    services::strings::read_unicode_string,
};

/// A value in the registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RegistryValue {
    /// `REG_DWORD`.
    Dword(u32),
    /// `REG_QWORD`.
    Qword(u64),
    /// `REG_SZ`.
    Text(String),
    /// `REG_MULTI_SZ`.
    Texts(Vec<String>),
    /// `REG_BINARY`.
    Binary(Vec<u8>),
}

impl From<u32> for RegistryValue {
    fn from(value: u32) -> Self {
        Self::Dword(value)
    }
}

impl From<u64> for RegistryValue {
    fn from(value: u64) -> Self {
        Self::Qword(value)
    }
}

impl From<&str> for RegistryValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<Vec<u8>> for RegistryValue {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Binary(bytes)
    }
}

impl RegistryValue {
    /// The type: `REG_SZ` or another `REG_*` constant.
    const fn kind(&self) -> u32 {
        match self {
            Self::Text(_) => 1,
            Self::Binary(_) => 3,
            Self::Dword(_) => 4,
            Self::Texts(_) => 7,
            Self::Qword(_) => 11,
        }
    }

    /// The value's bytes, as the registry stores them.
    fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Dword(value) => value.to_le_bytes().to_vec(),
            Self::Qword(value) => value.to_le_bytes().to_vec(),
            Self::Text(text) => text_bytes(text),
            Self::Texts(texts) => {
                let mut bytes: Vec<u8> = texts.iter().flat_map(|text| text_bytes(text)).collect();
                bytes.extend([0, 0]);
                bytes
            }
            Self::Binary(bytes) => bytes.clone(),
        }
    }
}

/// The values of every service's parameters key. Names are compared without regard
/// to case, as the registry does.
#[derive(Default)]
pub struct Parameters(HashMap<String, BTreeMap<String, RegistryValue>>);

impl Parameters {
    /// Sets a value in a service's parameters key.
    pub fn set(&mut self, service: &str, name: &str, value: RegistryValue) {
        self.0
            .entry(service.to_lowercase())
            .or_default()
            .insert(name.to_lowercase(), value);
    }

    /// Returns a value in a service's parameters key.
    pub fn get(&self, service: &str, name: &str) -> Option<RegistryValue> {
        self.0
            .get(&service.to_lowercase())?
            .get(&name.to_lowercase())
            .cloned()
    }
}

/// An open parameters key.
pub struct KeyData {
    service: String,
}

impl Data for KeyData {
    const NAME: &'static str = "WDFKEY";
}

pub const ENTRIES: Entries = &[
    (
        "WdfDriverOpenParametersRegistryKey",
        Routine::Five(open_parameters),
    ),
    ("WdfRegistryClose", Routine::Two(close)),
    ("WdfRegistryQueryULong", Routine::Four(query_ulong)),
    (
        "WdfRegistryQueryUnicodeString",
        Routine::Five(query_unicode_string),
    ),
    ("WdfRegistryQueryString", Routine::Four(query_string)),
    ("WdfRegistryQueryValue", Routine::Seven(query_value)),
    ("WdfRegistryAssignULong", Routine::Four(assign_ulong)),
];

fn open_parameters(
    context: &Context,
    _globals: u64,
    driver: u64,
    _access: u64,
    attributes: u64,
    key: u64,
) -> u64 {
    let service = context.with::<DriverData, _>(driver, |driver| driver.service());
    let attributes = read_attributes(context, attributes);
    let data = KeyData { service };
    match create(context, data, attributes.as_ref(), Some(driver)) {
        Ok(handle) => {
            context.write(key, &handle);
            NtStatus::SUCCESS.to_register()
        }
        Err(status) => status.to_register(),
    }
}

fn close(context: &Context, _globals: u64, key: u64) -> u64 {
    context.with::<KeyData, _>(key, |_| ());
    delete(context, key);
    0
}

/// Returns the value that a driver names.
fn find(context: &Context, key: u64, name: u64) -> Result<RegistryValue, NtStatus> {
    let service = context.with::<KeyData, _>(key, |key| key.service.clone());
    let name = read_unicode_string(context, name);
    context
        .framework()
        .part::<Parameters>()
        .get(&service, &name)
        .ok_or(NtStatus::OBJECT_NAME_NOT_FOUND)
}

/// Returns the string value with the name that a driver passed.
fn find_text(context: &Context, key: u64, name: u64) -> Result<String, NtStatus> {
    match find(context, key, name)? {
        RegistryValue::Text(text) => Ok(text),
        _ => Err(NtStatus::OBJECT_TYPE_MISMATCH),
    }
}

fn query_ulong(context: &Context, _globals: u64, key: u64, name: u64, value: u64) -> u64 {
    match find(context, key, name) {
        Ok(RegistryValue::Dword(found)) => {
            context.write(value, &found);
            NtStatus::SUCCESS.to_register()
        }
        Ok(_) => NtStatus::OBJECT_TYPE_MISMATCH.to_register(),
        Err(status) => status.to_register(),
    }
}

/// Copies a string. The reported length includes the NUL; the length in the `UNICODE_STRING` does
/// not.
fn query_unicode_string(
    context: &Context,
    _globals: u64,
    key: u64,
    name: u64,
    length: u64,
    value: u64,
) -> u64 {
    let bytes = match find_text(context, key, name) {
        Ok(text) => text_bytes(&text),
        Err(status) => return status.to_register(),
    };
    let Ok(needed) = u16::try_from(bytes.len()) else {
        return NtStatus::INTEGER_OVERFLOW.to_register();
    };
    if length != 0 {
        context.write(length, &needed);
    }
    if value == 0 {
        return NtStatus::BUFFER_OVERFLOW.to_register();
    }
    let mut string: UnicodeString = context.read(value);
    if string.maximum_length < needed {
        return NtStatus::BUFFER_OVERFLOW.to_register();
    }
    if let Err(error) = memory::write_bytes(string.buffer, &bytes) {
        context.stop_for_address(error);
    }
    string.length = needed - 2;
    context.write(value, &string);
    NtStatus::SUCCESS.to_register()
}

fn query_string(context: &Context, _globals: u64, key: u64, name: u64, string: u64) -> u64 {
    let found = find_text(context, key, name)
        .and_then(|text| TextData::new(&text).ok_or(NtStatus::INTEGER_OVERFLOW));
    match found {
        Ok(found) => {
            context.with::<TextData, _>(string, |text| *text = found);
            NtStatus::SUCCESS.to_register()
        }
        Err(status) => status.to_register(),
    }
}

fn query_value(context: &Context, arguments: [u64; 7]) -> u64 {
    let [_globals, key, name, length, value, length_queried, kind] = arguments;
    let found = match find(context, key, name) {
        Ok(found) => found,
        Err(status) => return status.to_register(),
    };
    let bytes = found.bytes();
    if length_queried != 0 {
        let needed = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        context.write(length_queried, &needed);
    }
    if kind != 0 {
        context.write(kind, &found.kind());
    }
    if value == 0 || length & 0xFFFF_FFFF < bytes.len() as u64 {
        return NtStatus::BUFFER_OVERFLOW.to_register();
    }
    if let Err(error) = memory::write_bytes(value, &bytes) {
        context.stop_for_address(error);
    }
    NtStatus::SUCCESS.to_register()
}

fn assign_ulong(context: &Context, _globals: u64, key: u64, name: u64, value: u64) -> u64 {
    let service = context.with::<KeyData, _>(key, |key| key.service.clone());
    let name = read_unicode_string(context, name);
    let value = RegistryValue::Dword(low_half(value));
    context
        .framework()
        .part::<Parameters>()
        .set(&service, &name, value);
    NtStatus::SUCCESS.to_register()
}
