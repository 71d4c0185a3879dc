//! The routines that read, set and delete values.

use super::{
    information::{self, status_of},
    keys::key_of,
};
use crate::{
    execution::routine::{Routine, low_half},
    ground::{irql::Irql, status::NtStatus},
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
    ("ZwQueryValueKey", PASSIVE, Routine::Six(query)),
    ("ZwEnumerateValueKey", PASSIVE, Routine::Six(enumerate)),
    ("ZwSetValueKey", PASSIVE, Routine::Six(set)),
    ("ZwDeleteValueKey", PASSIVE, Routine::Two(delete)),
];

/// Returns the name of a value at an address from the driver. Zeros at its end do not count.
fn name_at(context: &Context, address: u64) -> String {
    let name = read_unicode_string(context, address);
    name.trim_end_matches('\0').to_owned()
}

fn query(
    context: &Context,
    handle: u64,
    name: u64,
    class: u64,
    buffer: u64,
    length: u64,
    result_length: u64,
) -> u64 {
    let class = low_half(class);
    let information = information::check_value_class(context, class)
        .and_then(|()| key_of(context, handle))
        .and_then(|key| context.registry().value(key, &name_at(context, name)))
        .map(|(name, value)| information::of_value(&name, &value, class));
    information::give(context, information, [buffer, length, result_length])
}

fn enumerate(
    context: &Context,
    handle: u64,
    index: u64,
    class: u64,
    buffer: u64,
    length: u64,
    result_length: u64,
) -> u64 {
    let class = low_half(class);
    let information = information::check_value_class(context, class)
        .and_then(|()| key_of(context, handle))
        .and_then(|key| context.registry().value_at(key, low_half(index)))
        .map(|(name, value)| information::of_value(&name, &value, class));
    information::give(context, information, [buffer, length, result_length])
}

/// Sets a value to the bytes at an address from the driver.
pub fn set_value(
    context: &Context,
    key: KeyId,
    name: &str,
    kind: u64,
    [data, length]: [u64; 2],
) -> Result<(), NtStatus> {
    let length = u64::from(low_half(length));
    if length > MAX_VALUE as u64 {
        return Err(NtStatus::INSUFFICIENT_RESOURCES);
    }
    let bytes = if length == 0 { Vec::new() } else { context.bytes(data, length) };
    let value = RegistryValue::from_bytes(low_half(kind), bytes);
    context.registry().set_value(key, name, value)
}

fn set(
    context: &Context,
    handle: u64,
    name: u64,
    _title: u64,
    kind: u64,
    data: u64,
    length: u64,
) -> u64 {
    let result = key_of(context, handle).and_then(|key| {
        // Without a name, it is the key's default value.
        let name = if name == 0 { String::new() } else { name_at(context, name) };
        set_value(context, key, &name, kind, [data, length])
    });
    status_of(result)
}

fn delete(context: &Context, handle: u64, name: u64) -> u64 {
    let result = key_of(context, handle)
        .and_then(|key| context.registry().remove_value(key, &name_at(context, name)));
    status_of(result)
}
