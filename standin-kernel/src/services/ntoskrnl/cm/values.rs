//! Routines that read, set and delete values.

use super::{
    changes, key_information,
    key_operations::Operation,
    keys::{indexed_words, notify_for},
};
use crate::{
    execution::{
        kinds::NtObject,
        routine::{At, Handle, Memory, routine},
        strings::read_unicode_string,
    },
    ground::{NtResult, NtStatus, abi::UnicodeString},
    services::{
        managers::registry::{
            store::KeyId,
            value::{MAX_VALUE, RegistryValue},
        },
        ntoskrnl::context::{Context, Entries},
    },
};

pub const ENTRIES: Entries = &[
    routine("ZwQueryValueKey", query),
    routine("ZwEnumerateValueKey", enumerate),
    routine("ZwSetValueKey", set),
    routine("ZwDeleteValueKey", delete),
];

/// Returns the value name at an address that the driver passed. Trailing zeros are ignored.
fn name_at(context: &Context, address: u64) -> String {
    let name = read_unicode_string(context, address);
    name.trim_end_matches('\0').to_owned()
}

fn query(
    context: &Context,
    handle: Handle<NtObject>,
    name: At<UnicodeString>,
    class: u32,
    buffer: Memory,
    length: u32,
    result_length: At<u32>,
) -> NtResult {
    key_information::check_value_class(context, class)?;
    let words = [name.0, class.into(), buffer.0, length.into(), result_length.0];
    notify_for(context, Operation::QUERY_VALUE, handle.0, &words, |key| {
        let (name, value) = context.registry().value(key, &name_at(context, name.0))?;
        let information = key_information::of_value(&name, &value, class);
        key_information::give(context, &information, (buffer.0, length), result_length)
    })
}

fn enumerate(
    context: &Context,
    handle: Handle<NtObject>,
    index: u32,
    class: u32,
    buffer: Memory,
    length: u32,
    result_length: At<u32>,
) -> NtResult {
    key_information::check_value_class(context, class)?;
    let words = indexed_words(index, class, (buffer.0, length), result_length);
    notify_for(context, Operation::ENUMERATE_VALUE, handle.0, &words, |key| {
        let (name, value) = context.registry().value_at(key, index)?;
        let information = key_information::of_value(&name, &value, class);
        key_information::give(context, &information, (buffer.0, length), result_length)
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
    // The same value again is no change.
    let is_same = context.registry().value(key, name).is_ok_and(|(_, before)| before == value);
    context.registry().set_value(key, name, value)?;
    if is_same {
        return Ok(());
    }
    changes::changed(context, &context.registry().path(key)?, changes::LAST_SET);
    Ok(())
}

/// Deletes a value.
pub fn remove_value(context: &Context, key: KeyId, name: &str) -> NtResult {
    context.registry().remove_value(key, name)?;
    changes::changed(context, &context.registry().path(key)?, changes::LAST_SET);
    Ok(())
}

fn set(
    context: &Context,
    handle: Handle<NtObject>,
    name: At<UnicodeString>,
    title: u32,
    kind: u32,
    data: Memory,
    length: u32,
) -> NtResult {
    let words = [name.0, u64::from(title) | u64::from(kind) << 32, data.0, length.into()];
    notify_for(context, Operation::SET_VALUE, handle.0, &words, |key| {
        // If there is no name, the routine sets the key's default value.
        let name = if name.is_null() { String::new() } else { name_at(context, name.0) };
        set_value(context, key, &name, kind, (data.0, length))
    })
}

fn delete(context: &Context, handle: Handle<NtObject>, name: At<UnicodeString>) -> NtResult {
    notify_for(context, Operation::DELETE_VALUE, handle.0, &[name.0], |key| {
        remove_value(context, key, &name_at(context, name.0))
    })
}
