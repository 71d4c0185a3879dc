//! Routines that write and remove values.

use super::keys::id_of;
use crate::{
    execution::routine::{Handle, Routine},
    ground::{NtResult, NtStatus, framework_abi::MemoryOffset},
    services::{
        kmdf::{
            buffer::MemoryData,
            collection::items,
            state::{
                framework::{Context, Entries},
                text::TextData,
            },
            text_routines::read_text,
        },
        managers::registry::value::{MAX_VALUE, RegistryValue},
    },
};

pub const ENTRIES: Entries = &[
    ("WdfRegistryAssignULong", Routine::after_globals(assign_ulong)),
    ("WdfRegistryAssignValue", Routine::after_globals(assign_value)),
    ("WdfRegistryAssignMemory", Routine::after_globals(assign_memory)),
    ("WdfRegistryAssignString", Routine::after_globals(assign_string)),
    ("WdfRegistryAssignUnicodeString", Routine::after_globals(assign_unicode_string)),
    ("WdfRegistryAssignMultiString", Routine::after_globals(assign_multi_string)),
    ("WdfRegistryRemoveValue", Routine::after_globals(remove_value)),
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

fn assign_ulong(context: &Context, key: u64, name: u64, value: u32) -> NtResult {
    set(context, key, name, RegistryValue::Dword(value))
}

fn assign_value(
    context: &Context,
    key: u64,
    name: u64,
    kind: u32,
    length: u32,
    value: u64,
) -> NtResult {
    let bytes = bytes_at(context, value, u64::from(length))?;
    set(context, key, name, RegistryValue::from_bytes(kind, bytes))
}

fn assign_memory(
    context: &Context,
    key: u64,
    name: u64,
    kind: u32,
    memory: Handle<MemoryData>,
    offset: u64,
) -> NtResult {
    let (start, size) = memory.with(context, |memory| memory.range());
    let (start, size) = if offset == 0 {
        (start, size)
    } else {
        let part: MemoryOffset = context.read(offset);
        let chosen =
            memory.with(context, |memory| memory.part(part.buffer_offset, part.buffer_length));
        let rest = size.saturating_sub(part.buffer_offset);
        let length = if part.buffer_length == 0 { rest } else { part.buffer_length };
        (chosen.ok_or(NtStatus::INTEGER_OVERFLOW)?, length)
    };
    let bytes = bytes_at(context, start, size)?;
    set(context, key, name, RegistryValue::from_bytes(kind, bytes))
}

fn assign_string(context: &Context, key: u64, name: u64, string: Handle<TextData>) -> NtResult {
    let text = string.with(context, |text| text.to_text());
    set(context, key, name, RegistryValue::Text(text))
}

fn assign_unicode_string(context: &Context, key: u64, name: u64, value: u64) -> NtResult {
    let text = read_text(context, value)?;
    set(context, key, name, RegistryValue::Text(text))
}

/// `REG_MULTI_SZ`.
const MULTI_STRING: u32 = 7;

fn assign_multi_string(context: &Context, key: u64, name: u64, collection: u64) -> NtResult {
    let text_of = |item: u64| {
        let mut framework = context.framework();
        framework.get::<TextData>(item).map(|text| text.to_text())
    };
    let texts: Result<Vec<String>, _> =
        items(context, collection).into_iter().map(text_of).collect();
    // Some items are not strings.
    let texts = texts.map_err(|_| NtStatus::INVALID_PARAMETER)?;
    // The framework also terminates an empty list with two NULs.
    let bytes = if texts.is_empty() { vec![0; 4] } else { RegistryValue::Texts(texts).bytes() };
    set(context, key, name, RegistryValue::from_bytes(MULTI_STRING, bytes))
}

fn remove_value(context: &Context, key: u64, name: u64) -> NtResult {
    let key = id_of(context, key)?;
    context.registry().remove_value(key, &read_text(context, name)?)
}
