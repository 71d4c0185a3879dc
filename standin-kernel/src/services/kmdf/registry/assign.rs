//! Routines that write and remove values.

use super::keys::{KeyData, id_of};
use crate::{
    execution::routine::{At, Handle, Memory, routine},
    ground::{
        NtResult, NtStatus,
        abi::{MemoryOffset, UnicodeString},
    },
    services::{
        kmdf::{
            object::{
                collection::{CollectionData, items},
                memory::MemoryData,
                string::read_text,
            },
            state::{
                framework::{Context, Entries},
                text::TextData,
            },
        },
        managers::registry::value::{MAX_VALUE, RegistryValue},
    },
};

pub const ENTRIES: Entries = &[
    routine("WdfRegistryAssignULong", assign_ulong),
    routine("WdfRegistryAssignValue", assign_value),
    routine("WdfRegistryAssignMemory", assign_memory),
    routine("WdfRegistryAssignString", assign_string),
    routine("WdfRegistryAssignUnicodeString", assign_unicode_string),
    routine("WdfRegistryAssignMultiString", assign_multi_string),
    routine("WdfRegistryRemoveValue", remove_value),
];

/// Sets the value with the name that the driver passed.
fn set(context: &Context, key: u64, name: u64, value: RegistryValue) -> NtResult {
    let key = id_of(context, key)?;
    context.registry().set_value(key, &read_text(context, name)?, value)
}

/// Returns the bytes of a value at an address that the driver passed.
fn bytes_at(context: &Context, address: u64, length: u64) -> NtResult<Vec<u8>> {
    let length = usize::try_from(length)
        .ok()
        .filter(|length| *length <= MAX_VALUE)
        .ok_or(NtStatus::INSUFFICIENT_RESOURCES)?;
    Ok(context.read_bytes(address, length))
}

fn assign_ulong(
    context: &Context,
    key: Handle<KeyData>,
    name: At<UnicodeString>,
    value: u32,
) -> NtResult {
    set(context, key.0, name.0, RegistryValue::Dword(value))
}

fn assign_value(
    context: &Context,
    key: Handle<KeyData>,
    name: At<UnicodeString>,
    kind: u32,
    length: u32,
    value: Memory,
) -> NtResult {
    let bytes = bytes_at(context, value.0, u64::from(length))?;
    set(context, key.0, name.0, RegistryValue::from_bytes(kind, bytes))
}

fn assign_memory(
    context: &Context,
    key: Handle<KeyData>,
    name: At<UnicodeString>,
    kind: u32,
    memory: Handle<MemoryData>,
    offset: At<MemoryOffset>,
) -> NtResult {
    let (start, size) = memory.with(context, |memory| memory.range());
    let (start, size) = if offset.is_null() {
        (start, size)
    } else {
        let part = offset.read(context);
        let chosen =
            memory.with(context, |memory| memory.part(part.buffer_offset, part.buffer_length));
        let rest = size.saturating_sub(part.buffer_offset);
        let length = if part.buffer_length == 0 { rest } else { part.buffer_length };
        (chosen.ok_or(NtStatus::INTEGER_OVERFLOW)?, length)
    };
    let bytes = bytes_at(context, start, size)?;
    set(context, key.0, name.0, RegistryValue::from_bytes(kind, bytes))
}

fn assign_string(
    context: &Context,
    key: Handle<KeyData>,
    name: At<UnicodeString>,
    string: Handle<TextData>,
) -> NtResult {
    let text = string.with(context, |text| text.to_text());
    set(context, key.0, name.0, RegistryValue::Text(text))
}

fn assign_unicode_string(
    context: &Context,
    key: Handle<KeyData>,
    name: At<UnicodeString>,
    value: At<UnicodeString>,
) -> NtResult {
    let text = read_text(context, value.0)?;
    set(context, key.0, name.0, RegistryValue::Text(text))
}

/// `REG_MULTI_SZ`.
const MULTI_STRING: u32 = 7;

fn assign_multi_string(
    context: &Context,
    key: Handle<KeyData>,
    name: At<UnicodeString>,
    collection: Handle<CollectionData>,
) -> NtResult {
    let text_of = |item: u64| {
        let mut framework = context.framework();
        framework.get::<TextData>(item).map(|text| text.to_text())
    };
    let texts: Result<Vec<String>, _> =
        items(context, collection.0).into_iter().map(text_of).collect();
    // Some items are not strings.
    let texts = texts.map_err(|_| NtStatus::INVALID_PARAMETER)?;
    // The framework also terminates an empty list with two NULs.
    let bytes = if texts.is_empty() { vec![0; 4] } else { RegistryValue::Texts(texts).bytes() };
    set(context, key.0, name.0, RegistryValue::from_bytes(MULTI_STRING, bytes))
}

fn remove_value(context: &Context, key: Handle<KeyData>, name: At<UnicodeString>) -> NtResult {
    let key = id_of(context, key.0)?;
    context.registry().remove_value(key, &read_text(context, name.0)?)
}
