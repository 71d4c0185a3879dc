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
        },
        managers::registry::value::{MAX_VALUE, RegistryValue},
        strings::read_unicode_string,
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

/// Sets the value that the driver named.
fn set(context: &Context, key: u64, name: u64, value: RegistryValue) -> NtResult {
    id_of(context, key).and_then(|key| {
        let name = read_unicode_string(context, name);
        context.registry().set_value(key, &name, value)
    })
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
        let start =
            memory.with(context, |memory| memory.part(part.buffer_offset, part.buffer_length));
        (start.ok_or(NtStatus::INVALID_PARAMETER)?, part.buffer_length)
    };
    let bytes = bytes_at(context, start, size)?;
    set(context, key, name, RegistryValue::from_bytes(kind, bytes))
}

fn assign_string(context: &Context, key: u64, name: u64, string: Handle<TextData>) -> NtResult {
    let text = string.with(context, |text| text.to_text());
    set(context, key, name, RegistryValue::Text(text))
}

fn assign_unicode_string(context: &Context, key: u64, name: u64, value: u64) -> NtResult {
    let text = read_unicode_string(context, value);
    set(context, key, name, RegistryValue::Text(text))
}

fn assign_multi_string(context: &Context, key: u64, name: u64, collection: u64) -> NtResult {
    let texts = items(context, collection)
        .into_iter()
        .map(|string| context.with::<TextData, _>(string, |text| text.to_text()))
        .collect();
    set(context, key, name, RegistryValue::Texts(texts))
}

fn remove_value(context: &Context, key: u64, name: u64) -> NtResult {
    id_of(context, key).and_then(|key| {
        let name = read_unicode_string(context, name);
        context.registry().remove_value(key, &name)
    })
}
