//! Routines that read values.

use super::keys::id_of;
use crate::{
    execution::routine::{Handle, Routine},
    ground::{NtResult, NtStatus, abi::UnicodeString},
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
    ("WdfRegistryQueryULong", Routine::after_globals(query_ulong)),
    ("WdfRegistryQueryUnicodeString", Routine::after_globals(query_unicode_string)),
    ("WdfRegistryQueryString", Routine::after_globals(query_string)),
    ("WdfRegistryQueryMultiString", Routine::after_globals(query_multi_string)),
    ("WdfRegistryQueryValue", Routine::after_globals(query_value)),
    ("WdfRegistryQueryMemory", Routine::after_globals(query_memory)),
];

/// Returns the value that the driver named.
fn find(context: &Context, key: u64, name: u64) -> NtResult<RegistryValue> {
    let key = id_of(context, key)?;
    let name = read_unicode_string(context, name);
    let (_, value) = context.registry().value(key, &name)?;
    Ok(value)
}

/// Returns the string value that the driver named.
fn find_text(context: &Context, key: u64, name: u64) -> NtResult<String> {
    match find(context, key, name)? {
        RegistryValue::Text(text) => Ok(text),
        _ => Err(NtStatus::OBJECT_TYPE_MISMATCH),
    }
}

fn query_ulong(context: &Context, key: u64, name: u64, value: u64) -> NtResult {
    let RegistryValue::Dword(found) = find(context, key, name)? else {
        return Err(NtStatus::OBJECT_TYPE_MISMATCH);
    };
    context.write(value, &found);
    Ok(())
}

/// Copies a string. The reported length includes the NUL; the length in the `UNICODE_STRING` does
/// not.
fn query_unicode_string(
    context: &Context,
    key: u64,
    name: u64,
    length: u64,
    value: u64,
) -> NtResult {
    let bytes = text_bytes(&find_text(context, key, name)?);
    let needed = u16::try_from(bytes.len()).map_err(|_| NtStatus::INTEGER_OVERFLOW)?;
    context.write_optional(length, &needed);
    if value == 0 {
        return Err(NtStatus::BUFFER_OVERFLOW);
    }
    let mut string: UnicodeString = context.read(value);
    if string.maximum_length < needed {
        return Err(NtStatus::BUFFER_OVERFLOW);
    }
    context.write_bytes(string.buffer, &bytes);
    string.length = needed - 2;
    context.write(value, &string);
    Ok(())
}

fn query_string(context: &Context, key: u64, name: u64, string: Handle<TextData>) -> NtResult {
    let found = find_text(context, key, name)
        .and_then(|text| TextData::new(&text).ok_or(NtStatus::INTEGER_OVERFLOW));
    let found = found?;
    string.with(context, |text| *text = found);
    Ok(())
}

fn query_value(
    context: &Context,
    key: u64,
    name: u64,
    length: u32,
    value: u64,
    length_queried: u64,
    kind: u64,
) -> NtResult {
    let found = find(context, key, name)?;
    let bytes = found.bytes();
    if length_queried != 0 {
        let needed = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        context.write(length_queried, &needed);
    }
    context.write_optional(kind, &found.kind());
    if value == 0 || (length as usize) < bytes.len() {
        return Err(NtStatus::BUFFER_OVERFLOW);
    }
    context.write_bytes(value, &bytes);
    Ok(())
}

fn query_memory(
    context: &Context,
    key: u64,
    name: u64,
    _pool: u32,
    attributes: u64,
    memory: u64,
    kind: u64,
) -> NtResult {
    let found = find(context, key, name)?;
    let bytes = found.bytes();
    if bytes.is_empty() {
        return Err(NtStatus::RESOURCE_DATA_NOT_FOUND);
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
    key: u64,
    name: u64,
    attributes: u64,
    collection: Handle<CollectionData>,
) -> NtResult {
    collection.check(context);
    let texts = match find(context, key, name)? {
        RegistryValue::Texts(texts) => texts,
        RegistryValue::Other(7, bytes) => split_list(&bytes),
        _ => return Err(NtStatus::OBJECT_TYPE_MISMATCH),
    };
    let attributes = read_attributes(context, attributes);
    let parent = driver_of(context);
    for text in texts {
        let data = TextData::new(&text).ok_or(NtStatus::INTEGER_OVERFLOW)?;
        push(context, collection.0, create(context, data, attributes.as_ref(), parent)?);
    }
    Ok(())
}
