//! The services' parameters in the registry, and strings to read them into.

use std::collections::{BTreeMap, HashMap};

use super::{
    Entries, Routine,
    driver::{self, DriverData, read_unicode_string},
    lock_framework,
    object::{Kind, create, read_attributes},
};
use crate::{
    abi::UnicodeString,
    memory,
    pool::Block,
    status::NtStatus,
    thread::{self, Thread},
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

/// UTF-16 with a NUL at the end.
fn text_bytes(text: &str) -> Vec<u8> {
    text.encode_utf16()
        .chain([0])
        .flat_map(u16::to_le_bytes)
        .collect()
}

impl RegistryValue {
    /// `REG_SZ` and the others.
    const fn kind(&self) -> u32 {
        match self {
            Self::Text(_) => 1,
            Self::Binary(_) => 3,
            Self::Dword(_) => 4,
            Self::Texts(_) => 7,
            Self::Qword(_) => 11,
        }
    }

    /// As the registry keeps it.
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
    /// Sets a value of a service's.
    pub fn set(&mut self, service: &str, name: &str, value: RegistryValue) {
        self.0
            .entry(service.to_lowercase())
            .or_default()
            .insert(name.to_lowercase(), value);
    }

    /// A value of a service's.
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

/// A string object.
pub struct TextData {
    text: Block,
    /// In bytes, without the NUL.
    length: u16,
}

impl TextData {
    /// A copy of a text; none if it is longer than a counted string can be.
    pub fn new(text: &str) -> Option<Self> {
        let bytes = text_bytes(text);
        let length = u16::try_from(bytes.len()).ok()?.checked_sub(2)?;
        let block = Block::zeroed(bytes.len());
        memory::write_bytes(block.address(), &bytes).ok()?;
        Some(Self {
            text: block,
            length,
        })
    }

    /// The string as a driver sees it; its text lives as long as the object.
    pub const fn counted(&self) -> UnicodeString {
        UnicodeString {
            length: self.length,
            maximum_length: self.length + 2,
            reserved: 0,
            buffer: self.text.address(),
        }
    }
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
    ("WdfStringCreate", Routine::Four(string_create)),
    ("WdfStringGetUnicodeString", Routine::Three(string_get)),
];

extern "win64" fn open_parameters(
    _globals: u64,
    driver: u64,
    _access: u64,
    attributes: u64,
    key: u64,
) -> u64 {
    let thread = thread::current();
    let service = thread.with::<DriverData, _>(driver, |driver| driver.service());
    let attributes = read_attributes(&thread, attributes);
    let kind = Kind::Key(KeyData { service });
    match create(&thread, kind, attributes.as_ref(), Some(driver)) {
        Ok(handle) => {
            thread.write(key, &handle);
            NtStatus::SUCCESS.to_register()
        }
        Err(status) => status.to_register(),
    }
}

extern "win64" fn close(_globals: u64, key: u64) -> u64 {
    let thread = thread::current();
    thread.with::<KeyData, _>(key, |_| ());
    super::object::delete(&thread, key);
    0
}

/// The value that a driver names.
fn find(thread: &Thread, key: u64, name: u64) -> Result<RegistryValue, NtStatus> {
    let service = thread.with::<KeyData, _>(key, |key| key.service.clone());
    let name = read_unicode_string(thread, name);
    lock_framework(thread.shared())
        .parameters
        .get(&service, &name)
        .ok_or(NtStatus::OBJECT_NAME_NOT_FOUND)
}

/// The text that a driver names.
fn find_text(thread: &Thread, key: u64, name: u64) -> Result<String, NtStatus> {
    match find(thread, key, name)? {
        RegistryValue::Text(text) => Ok(text),
        _ => Err(NtStatus::OBJECT_TYPE_MISMATCH),
    }
}

extern "win64" fn query_ulong(_globals: u64, key: u64, name: u64, value: u64) -> u64 {
    let thread = thread::current();
    match find(&thread, key, name) {
        Ok(RegistryValue::Dword(found)) => {
            thread.write(value, &found);
            NtStatus::SUCCESS.to_register()
        }
        Ok(_) => NtStatus::OBJECT_TYPE_MISMATCH.to_register(),
        Err(status) => status.to_register(),
    }
}

/// The length that is reported counts the NUL, the one in the string does not.
extern "win64" fn query_unicode_string(
    _globals: u64,
    key: u64,
    name: u64,
    length: u64,
    value: u64,
) -> u64 {
    let thread = thread::current();
    let bytes = match find_text(&thread, key, name) {
        Ok(text) => text_bytes(&text),
        Err(status) => return status.to_register(),
    };
    let Ok(needed) = u16::try_from(bytes.len()) else {
        return NtStatus::INTEGER_OVERFLOW.to_register();
    };
    if length != 0 {
        thread.write(length, &needed);
    }
    if value == 0 {
        return NtStatus::BUFFER_OVERFLOW.to_register();
    }
    let mut string: UnicodeString = thread.read(value);
    if string.maximum_length < needed {
        return NtStatus::BUFFER_OVERFLOW.to_register();
    }
    if let Err(error) = memory::write_bytes(string.buffer, &bytes) {
        thread.stop_for_address(error);
    }
    string.length = needed - 2;
    thread.write(value, &string);
    NtStatus::SUCCESS.to_register()
}

extern "win64" fn query_string(_globals: u64, key: u64, name: u64, string: u64) -> u64 {
    let thread = thread::current();
    let found = find_text(&thread, key, name)
        .and_then(|text| TextData::new(&text).ok_or(NtStatus::INTEGER_OVERFLOW));
    match found {
        Ok(found) => {
            thread.with::<TextData, _>(string, |text| *text = found);
            NtStatus::SUCCESS.to_register()
        }
        Err(status) => status.to_register(),
    }
}

extern "win64" fn query_value(
    _globals: u64,
    key: u64,
    name: u64,
    length: u64,
    value: u64,
    length_queried: u64,
    kind: u64,
) -> u64 {
    let thread = thread::current();
    let found = match find(&thread, key, name) {
        Ok(found) => found,
        Err(status) => return status.to_register(),
    };
    let bytes = found.bytes();
    if length_queried != 0 {
        let needed = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        thread.write(length_queried, &needed);
    }
    if kind != 0 {
        thread.write(kind, &found.kind());
    }
    if value == 0 || length & 0xFFFF_FFFF < bytes.len() as u64 {
        return NtStatus::BUFFER_OVERFLOW.to_register();
    }
    if let Err(error) = memory::write_bytes(value, &bytes) {
        thread.stop_for_address(error);
    }
    NtStatus::SUCCESS.to_register()
}

extern "win64" fn assign_ulong(_globals: u64, key: u64, name: u64, value: u64) -> u64 {
    let thread = thread::current();
    let service = thread.with::<KeyData, _>(key, |key| key.service.clone());
    let name = read_unicode_string(&thread, name);
    let value = RegistryValue::Dword(crate::ntoskrnl::low_half(value));
    lock_framework(thread.shared())
        .parameters
        .set(&service, &name, value);
    NtStatus::SUCCESS.to_register()
}

extern "win64" fn string_create(_globals: u64, text: u64, attributes: u64, string: u64) -> u64 {
    let thread = thread::current();
    let text = if text == 0 {
        String::new()
    } else {
        read_unicode_string(&thread, text)
    };
    let Some(data) = TextData::new(&text) else {
        return NtStatus::INTEGER_OVERFLOW.to_register();
    };
    let attributes = read_attributes(&thread, attributes);
    let parent = driver::driver_of(&thread);
    match create(&thread, Kind::Text(data), attributes.as_ref(), parent) {
        Ok(handle) => {
            thread.write(string, &handle);
            NtStatus::SUCCESS.to_register()
        }
        Err(status) => status.to_register(),
    }
}

extern "win64" fn string_get(_globals: u64, string: u64, unicode: u64) -> u64 {
    let thread = thread::current();
    let counted = thread.with::<TextData, _>(string, |text| text.counted());
    thread.write(unicode, &counted);
    0
}
