//! The routines that take a path relative to a key that the system knows (`Rtl*Registry*`).

use super::{query_table, strings::terminated};
use crate::{
    execution::routine::{Routine, low_half},
    ground::{irql::Irql, status::NtStatus},
    services::{
        managers::registry::store::{KeyId, NewKey},
        ntoskrnl::{
            context::{Context, Entries},
            zw::{information::status_of, keys::key_of, values::set_value},
        },
    },
};

const PASSIVE: Irql = Irql::PASSIVE_LEVEL;

pub const ENTRIES: Entries = &[
    ("RtlQueryRegistryValues", PASSIVE, Routine::Five(query)),
    // The headers of newer kits call this one instead, if the system has it.
    ("RtlQueryRegistryValuesEx", PASSIVE, Routine::Five(query)),
    ("RtlWriteRegistryValue", PASSIVE, Routine::Six(write)),
    ("RtlDeleteRegistryValue", PASSIVE, Routine::Three(delete)),
    ("RtlCheckRegistryKey", PASSIVE, Routine::Two(check)),
    ("RtlCreateRegistryKey", PASSIVE, Routine::Two(create)),
];

/// `RTL_REGISTRY_HANDLE`: the path is a handle.
const HANDLE: u32 = 0x4000_0000;
/// `RTL_REGISTRY_OPTIONAL`, which changes no status.
const OPTIONAL: u32 = 0x8000_0000;

/// The keys that paths are relative to, by `RTL_REGISTRY_*`. The first stands for absolute paths, the
/// last for the user of a system process.
const KEYS: [&str; 6] = [
    "",
    r"\Registry\Machine\System\CurrentControlSet\Services",
    r"\Registry\Machine\System\CurrentControlSet\Control",
    r"\Registry\Machine\Software\Microsoft\Windows NT\CurrentVersion",
    r"\Registry\Machine\Hardware\DeviceMap",
    r"\Registry\User\.Default",
];

/// What a driver names.
enum Named {
    Path(String),
    Handle(u64),
}

fn text_at(context: &Context, address: u64) -> String {
    if address == 0 {
        return String::new();
    }
    String::from_utf16_lossy(&terminated::<true>(context, address))
}

/// Returns what a path and the key that it is relative to name.
fn named(context: &Context, relative_to: u64, path: u64) -> Result<Named, NtStatus> {
    let relative_to = low_half(relative_to);
    if relative_to & HANDLE != 0 {
        return Ok(Named::Handle(path));
    }
    let number = (relative_to & !OPTIONAL) as usize;
    let start = KEYS.get(number).ok_or(NtStatus::INVALID_PARAMETER)?;
    let path = text_at(context, path);
    Ok(Named::Path(if start.is_empty() { path } else { format!(r"{start}\{path}") }))
}

/// Opens the key that a driver names.
fn open(context: &Context, relative_to: u64, path: u64) -> Result<KeyId, NtStatus> {
    match named(context, relative_to, path)? {
        Named::Path(path) => context.registry().open(None, &path),
        Named::Handle(handle) => key_of(context, handle),
    }
}

/// Opens the key that a driver names, or creates it if only the last part of its path does not exist.
fn open_or_create(context: &Context, relative_to: u64, path: u64) -> Result<KeyId, NtStatus> {
    match named(context, relative_to, path)? {
        Named::Path(path) => {
            let created = context.registry().create(None, &path, NewKey::default());
            created.map(|(key, _)| key)
        }
        Named::Handle(handle) => key_of(context, handle),
    }
}

fn query(
    context: &Context,
    relative_to: u64,
    path: u64,
    table: u64,
    its_context: u64,
    environment: u64,
) -> u64 {
    let result = open(context, relative_to, path)
        .and_then(|key| query_table::query(context, key, table, [its_context, environment]));
    status_of(result)
}

fn write(
    context: &Context,
    relative_to: u64,
    path: u64,
    name: u64,
    kind: u64,
    data: u64,
    length: u64,
) -> u64 {
    let result = open_or_create(context, relative_to, path).and_then(|key| {
        let name = text_at(context, name);
        set_value(context, key, &name, kind, [data, length])
    });
    status_of(result)
}

fn delete(context: &Context, relative_to: u64, path: u64, name: u64) -> u64 {
    let result = open(context, relative_to, path).and_then(|key| {
        let name = text_at(context, name);
        context.registry().remove_value(key, &name)
    });
    status_of(result)
}

fn check(context: &Context, relative_to: u64, path: u64) -> u64 {
    status_of(open(context, relative_to, path).map(|_| ()))
}

fn create(context: &Context, relative_to: u64, path: u64) -> u64 {
    status_of(open_or_create(context, relative_to, path).map(|_| ()))
}
