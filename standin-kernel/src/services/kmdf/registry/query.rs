//! The routines that read values.

use super::keys::id_of;
use crate::{
    execution::routine::Routine,
    ground::{abi::UnicodeString, status::NtStatus},
    services::{
        kmdf::{
            buffer::make_filled,
            collection::{CollectionData, push},
            driver::driver_of,
            object::{create, give, read_attributes},
            state::{
                framework::{Context, Entries},
                text::TextData,
            },
        },
        managers::registry::value::{RegistryValue, split_list},
        strings::{read_unicode_string, text_bytes},
    },
};

pub const ENTRIES: Entries = &[
    ("WdfRegistryQueryULong", Routine::Four(query_ulong)),
    ("WdfRegistryQueryUnicodeString", Routine::Five(query_unicode_string)),
    ("WdfRegistryQueryString", Routine::Four(query_string)),
    ("WdfRegistryQueryMultiString", Routine::Five(query_multi_string)),
    ("WdfRegistryQueryValue", Routine::Seven(query_value)),
    ("WdfRegistryQueryMemory", Routine::Seven(query_memory)),
];

/// Returns the value that a driver names.
fn find(context: &Context, key: u64, name: u64) -> Result<RegistryValue, NtStatus> {
    let key = id_of(context, key)?;
    let name = read_unicode_string(context, name);
    let (_, value) = context.registry().value(key, &name)?;
    Ok(value)
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
    context.write_bytes(string.buffer, &bytes);
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
    context.write_bytes(value, &bytes);
    NtStatus::SUCCESS.to_register()
}

fn query_memory(context: &Context, arguments: [u64; 7]) -> u64 {
    let [_globals, key, name, _pool, attributes, memory, kind] = arguments;
    let found = match find(context, key, name) {
        Ok(found) => found,
        Err(status) => return status.to_register(),
    };
    let bytes = found.bytes();
    if bytes.is_empty() {
        return NtStatus::RESOURCE_DATA_NOT_FOUND.to_register();
    }
    let made = make_filled(context, &bytes, attributes);
    if made.is_ok() && kind != 0 {
        context.write(kind, &found.kind());
    }
    give(context, made, memory)
}

/// Adds a string object to a collection for each string of a `REG_MULTI_SZ` value.
fn query_multi_string(
    context: &Context,
    _globals: u64,
    key: u64,
    name: u64,
    attributes: u64,
    collection: u64,
) -> u64 {
    context.with::<CollectionData, _>(collection, |_| ());
    let texts = match find(context, key, name) {
        Ok(RegistryValue::Texts(texts)) => texts,
        Ok(RegistryValue::Other(7, bytes)) => split_list(&bytes),
        Ok(_) => return NtStatus::OBJECT_TYPE_MISMATCH.to_register(),
        Err(status) => return status.to_register(),
    };
    let attributes = read_attributes(context, attributes);
    let parent = driver_of(context);
    for text in texts {
        let made = TextData::new(&text)
            .ok_or(NtStatus::INTEGER_OVERFLOW)
            .and_then(|data| create(context, data, attributes.as_ref(), parent));
        match made {
            Ok(string) => push(context, collection, string),
            Err(status) => return status.to_register(),
        }
    }
    NtStatus::SUCCESS.to_register()
}
