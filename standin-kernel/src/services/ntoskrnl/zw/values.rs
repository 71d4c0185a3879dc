//! Routines that read, set and delete values.

use super::{
    information,
    key_operations::Operation,
    keys::{indexed_words, notify_for},
};
use crate::{
    execution::routine::{At, Routine},
    ground::{NtResult, NtStatus, irql::Irql},
    services::{
        managers::registry::{
            store::KeyId,
            value::{MAX_VALUE, RegistryValue},
        },
        ntoskrnl::context::{Context, Entries},
        strings::read_unicode_string,
    },
};

const PASSIVE: Irql = Irql::PASSIVE_LEVEL;

pub const ENTRIES: Entries = &[
    ("ZwQueryValueKey", PASSIVE, Routine::of(query)),
    ("ZwEnumerateValueKey", PASSIVE, Routine::of(enumerate)),
    ("ZwSetValueKey", PASSIVE, Routine::of(set)),
    ("ZwDeleteValueKey", PASSIVE, Routine::of(delete)),
];

/// Returns the value name at an address that the driver passed. Trailing zeros are ignored.
fn name_at(context: &Context, address: u64) -> String {
    let name = read_unicode_string(context, address);
    name.trim_end_matches('\0').to_owned()
}

fn query(
    context: &Context,
    handle: u64,
    name: u64,
    class: u32,
    buffer: u64,
    length: u32,
    result_length: At<u32>,
) -> NtResult {
    information::check_value_class(context, class)?;
    let words = [name, class.into(), buffer, length.into(), result_length.0];
    notify_for(context, Operation::QUERY_VALUE, handle, &words, |key| {
        let (name, value) = context.registry().value(key, &name_at(context, name))?;
        let information = information::of_value(&name, &value, class);
        information::give(context, &information, (buffer, length), result_length)
    })
}

fn enumerate(
    context: &Context,
    handle: u64,
    index: u32,
    class: u32,
    buffer: u64,
    length: u32,
    result_length: At<u32>,
) -> NtResult {
    information::check_value_class(context, class)?;
    let words = indexed_words(index, class, (buffer, length), result_length);
    notify_for(context, Operation::ENUMERATE_VALUE, handle, &words, |key| {
        let (name, value) = context.registry().value_at(key, index)?;
        let information = information::of_value(&name, &value, class);
        information::give(context, &information, (buffer, length), result_length)
    })
}

/// Sets a value to the bytes at an address that the driver passed.
pub fn set_value(
    context: &Context,
    key: KeyId,
    name: &str,
    kind: u32,
    (data, length): (u64, u32),
) -> NtResult {
    if length as usize > MAX_VALUE {
        return Err(NtStatus::INSUFFICIENT_RESOURCES);
    }
    let bytes = if length == 0 { Vec::new() } else { context.read_bytes(data, length as usize) };
    let value = RegistryValue::from_bytes(kind, bytes);
    context.registry().set_value(key, name, value)
}

fn set(
    context: &Context,
    handle: u64,
    name: u64,
    title: u32,
    kind: u32,
    data: u64,
    length: u32,
) -> NtResult {
    let words = [name, u64::from(title) | u64::from(kind) << 32, data, length.into()];
    notify_for(context, Operation::SET_VALUE, handle, &words, |key| {
        // If there is no name, the routine sets the key's default value.
        let name = if name == 0 { String::new() } else { name_at(context, name) };
        set_value(context, key, &name, kind, (data, length))
    })
}

fn delete(context: &Context, handle: u64, name: u64) -> NtResult {
    notify_for(context, Operation::DELETE_VALUE, handle, &[name], |key| {
        context.registry().remove_value(key, &name_at(context, name))
    })
}
