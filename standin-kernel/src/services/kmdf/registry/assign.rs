//! The routines that write and remove values.

use super::keys::id_of;
use crate::{
    execution::routine::{Routine, low_half},
    ground::{framework_abi::MemoryOffset, status::NtStatus},
    services::{
        kmdf::{
            buffer::MemoryData,
            collection::items,
            object::status_of,
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
    ("WdfRegistryAssignULong", Routine::Four(assign_ulong)),
    ("WdfRegistryAssignValue", Routine::Six(assign_value)),
    ("WdfRegistryAssignMemory", Routine::Six(assign_memory)),
    ("WdfRegistryAssignString", Routine::Four(assign_string)),
    ("WdfRegistryAssignUnicodeString", Routine::Four(assign_unicode_string)),
    ("WdfRegistryAssignMultiString", Routine::Four(assign_multi_string)),
    ("WdfRegistryRemoveValue", Routine::Three(remove_value)),
];

/// Sets the value that a driver names.
fn set(context: &Context, key: u64, name: u64, value: RegistryValue) -> u64 {
    let result = id_of(context, key).and_then(|key| {
        let name = read_unicode_string(context, name);
        context.registry().set_value(key, &name, value)
    });
    status_of(result)
}

/// Returns the bytes of a value at an address from the driver.
fn bytes_at(context: &Context, address: u64, length: u64) -> Result<Vec<u8>, NtStatus> {
    let length = usize::try_from(length)
        .ok()
        .filter(|length| *length <= MAX_VALUE)
        .ok_or(NtStatus::INSUFFICIENT_RESOURCES)?;
    Ok(context.read_bytes(address, length))
}

fn assign_ulong(context: &Context, _globals: u64, key: u64, name: u64, value: u64) -> u64 {
    set(context, key, name, RegistryValue::Dword(low_half(value)))
}

fn assign_value(
    context: &Context,
    _globals: u64,
    key: u64,
    name: u64,
    kind: u64,
    length: u64,
    value: u64,
) -> u64 {
    match bytes_at(context, value, u64::from(low_half(length))) {
        Ok(bytes) => {
            let value = RegistryValue::from_bytes(low_half(kind), bytes);
            set(context, key, name, value)
        }
        Err(status) => status.to_register(),
    }
}

fn assign_memory(
    context: &Context,
    _globals: u64,
    key: u64,
    name: u64,
    kind: u64,
    memory: u64,
    offset: u64,
) -> u64 {
    let (start, size) = context.with::<MemoryData, _>(memory, |memory| memory.range());
    let (start, size) = if offset == 0 {
        (start, size)
    } else {
        let part: MemoryOffset = context.read(offset);
        let start = context.with::<MemoryData, _>(memory, |memory| {
            memory.part(part.buffer_offset, part.buffer_length)
        });
        match start {
            Some(start) => (start, part.buffer_length),
            None => return NtStatus::INVALID_PARAMETER.to_register(),
        }
    };
    match bytes_at(context, start, size) {
        Ok(bytes) => {
            let value = RegistryValue::from_bytes(low_half(kind), bytes);
            set(context, key, name, value)
        }
        Err(status) => status.to_register(),
    }
}

fn assign_string(context: &Context, _globals: u64, key: u64, name: u64, string: u64) -> u64 {
    let text = context.with::<TextData, _>(string, |text| text.to_text());
    set(context, key, name, RegistryValue::Text(text))
}

fn assign_unicode_string(context: &Context, _globals: u64, key: u64, name: u64, value: u64) -> u64 {
    let text = read_unicode_string(context, value);
    set(context, key, name, RegistryValue::Text(text))
}

fn assign_multi_string(
    context: &Context,
    _globals: u64,
    key: u64,
    name: u64,
    collection: u64,
) -> u64 {
    let texts = items(context, collection)
        .into_iter()
        .map(|string| context.with::<TextData, _>(string, |text| text.to_text()))
        .collect();
    set(context, key, name, RegistryValue::Texts(texts))
}

fn remove_value(context: &Context, _globals: u64, key: u64, name: u64) -> u64 {
    let result = id_of(context, key).and_then(|key| {
        let name = read_unicode_string(context, name);
        context.registry().remove_value(key, &name)
    });
    status_of(result)
}
