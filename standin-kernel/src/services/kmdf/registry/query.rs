//! Routines that read values.

use super::keys::{KeyData, id_of};
use crate::{
    execution::{
        routine::{At, Handle, Memory, Out, routine},
        strings::units,
    },
    ground::{
        NtResult, NtStatus,
        abi::{ObjectAttributes, UnicodeString},
    },
    services::{
        kmdf::{
            binding::driver_of,
            lifetime::{create, give, read_attributes},
            object::{
                collection::{CollectionData, push},
                memory::{MemoryData, make_filled},
                string::read_text,
            },
            state::{
                framework::{Context, Entries},
                text::TextData,
            },
        },
        managers::registry::value::split_list,
    },
};

pub const ENTRIES: Entries = &[
    routine("WdfRegistryQueryULong", query_ulong),
    routine("WdfRegistryQueryUnicodeString", query_unicode_string),
    routine("WdfRegistryQueryString", query_string),
    routine("WdfRegistryQueryMultiString", query_multi_string),
    routine("WdfRegistryQueryValue", query_value),
    routine("WdfRegistryQueryMemory", query_memory),
];

/// Returns the type and the bytes of the value with the name that the driver passed.
fn find(context: &Context, key: u64, name: u64) -> NtResult<(u32, Vec<u8>)> {
    let key = id_of(context, key)?;
    let name = read_text(context, name)?;
    let (_, value) = context.registry().value(key, &name)?;
    Ok((value.kind(), value.bytes()))
}

/// Returns whether a type is `REG_SZ` or `REG_EXPAND_SZ`.
const fn is_text(kind: u32) -> bool {
    matches!(kind, 1 | 2)
}

/// Returns a string value's bytes without the terminating NUL.
fn without_nul(bytes: &[u8]) -> &[u8] {
    bytes.strip_suffix(&[0, 0]).unwrap_or(bytes)
}

fn size_of_text(bytes: &[u8]) -> u16 {
    u16::try_from(bytes.len()).unwrap_or(u16::MAX)
}

fn query_ulong(
    context: &Context,
    key: Handle<KeyData>,
    name: At<UnicodeString>,
    value: At<u32>,
) -> NtResult {
    const DWORD: u32 = 4;
    context.require(value.0);
    let (kind, bytes) = find(context, key.0, name.0)?;
    if kind != DWORD {
        return Err(NtStatus::OBJECT_TYPE_MISMATCH);
    }
    // The missing bytes of a shorter value are 0.
    let mut number = [0; 4];
    number.get_mut(..bytes.len()).ok_or(NtStatus::BUFFER_OVERFLOW)?.copy_from_slice(&bytes);
    context.write(value.0, &u32::from_le_bytes(number));
    Ok(())
}

/// Copies a string. The reported length includes the NUL; the length in the `UNICODE_STRING` does
/// not include it.
fn query_unicode_string(
    context: &Context,
    key: Handle<KeyData>,
    name: At<UnicodeString>,
    length: At<u16>,
    value: At<UnicodeString>,
) -> NtResult {
    let string: Option<UnicodeString> = context.read_optional(value.0);
    if let Some(string) = &string {
        read_text(context, value.0)?;
        if string.maximum_length == 0 {
            return Err(NtStatus::INVALID_PARAMETER);
        }
    }
    let (kind, bytes) = find(context, key.0, name.0)?;
    let room = string.map_or(0, |string| string.maximum_length);
    let fits = bytes.len() <= usize::from(room);
    if fits && !is_text(kind) {
        return Err(NtStatus::OBJECT_TYPE_MISMATCH);
    }
    context.write_optional(length.0, &size_of_text(&bytes));
    let Some(mut string) = string.filter(|_| fits) else {
        return if fits { Ok(()) } else { Err(NtStatus::BUFFER_OVERFLOW) };
    };
    context.write_bytes(string.buffer, &bytes);
    string.length = size_of_text(without_nul(&bytes));
    context.write(value.0, &string);
    Ok(())
}

fn query_string(
    context: &Context,
    key: Handle<KeyData>,
    name: At<UnicodeString>,
    string: Handle<TextData>,
) -> NtResult {
    string.check(context);
    let (kind, bytes) = find(context, key.0, name.0)?;
    if !is_text(kind) {
        return Err(NtStatus::OBJECT_TYPE_MISMATCH);
    }
    if bytes.is_empty() {
        return Err(NtStatus::RESOURCE_DATA_NOT_FOUND);
    }
    let text = String::from_utf16_lossy(&units(without_nul(&bytes)));
    let new = TextData::new(&text).ok_or(NtStatus::INVALID_BUFFER_SIZE)?;
    string.with(context, |text| *text = new);
    Ok(())
}

fn query_value(
    context: &Context,
    key: Handle<KeyData>,
    name: At<UnicodeString>,
    length: u32,
    value: Memory,
    length_queried: At<u32>,
    kind: At<u32>,
) -> NtResult {
    let (found, bytes) = find(context, key.0, name.0)?;
    context.write_optional(length_queried.0, &u32::try_from(bytes.len()).unwrap_or(u32::MAX));
    context.write_optional(kind.0, &found);
    let room = if value.is_null() { 0 } else { length as usize };
    if bytes.len() > room {
        return Err(NtStatus::BUFFER_OVERFLOW);
    }
    if !value.is_null() {
        context.write_bytes(value.0, &bytes);
    }
    Ok(())
}

fn query_memory(
    context: &Context,
    key: Handle<KeyData>,
    name: At<UnicodeString>,
    _pool: u32,
    attributes: At<ObjectAttributes>,
    memory: Out<MemoryData>,
    kind: At<u32>,
) -> NtResult {
    let (found, bytes) = find(context, key.0, name.0)?;
    if bytes.is_empty() {
        return Err(NtStatus::RESOURCE_DATA_NOT_FOUND);
    }
    let made = make_filled(context, &bytes, attributes.0);
    if made.is_ok() && !kind.is_null() {
        context.write(kind.0, &found);
    }
    give(context, made, memory.0)
}

/// `REG_MULTI_SZ`.
const MULTI_STRING: u32 = 7;

/// Adds a string object to a collection for each string of a `REG_MULTI_SZ` value.
fn query_multi_string(
    context: &Context,
    key: Handle<KeyData>,
    name: At<UnicodeString>,
    attributes: At<ObjectAttributes>,
    collection: Handle<CollectionData>,
) -> NtResult {
    collection.check(context);
    let (kind, bytes) = find(context, key.0, name.0)?;
    if kind != MULTI_STRING {
        return Err(NtStatus::OBJECT_TYPE_MISMATCH);
    }
    if bytes.is_empty() {
        return Err(NtStatus::RESOURCE_DATA_NOT_FOUND);
    }
    if !bytes.len().is_multiple_of(2) || !bytes.ends_with(&[0; 4]) {
        return Err(NtStatus::OBJECT_TYPE_MISMATCH);
    }
    let attributes = read_attributes(context, attributes.0);
    let parent = driver_of(context);
    for text in split_list(&bytes) {
        let data = TextData::new(&text).ok_or(NtStatus::INTEGER_OVERFLOW)?;
        push(context, collection.0, create(context, data, attributes.as_ref(), parent)?);
    }
    Ok(())
}
