//! Routines that take a path relative to a predefined key (`Rtl*Registry*`).

use super::{query_table, strings::terminated};
use crate::{
    execution::routine::{At, Memory, routine},
    ground::{NtResult, NtStatus, abi::QueryRegistryTable},
    services::{
        managers::registry::store::KeyId,
        ntoskrnl::{
            cm::{
                keys::{create_key, key_of},
                values::{remove_value, set_value},
            },
            context::{Context, Entries},
        },
    },
};

pub const ENTRIES: Entries = &[
    routine("RtlQueryRegistryValues", query),
    // If the system provides it, newer headers call this routine instead.
    routine("RtlQueryRegistryValuesEx", query),
    routine("RtlWriteRegistryValue", write),
    routine("RtlDeleteRegistryValue", delete),
    routine("RtlCheckRegistryKey", check),
    routine("RtlCreateRegistryKey", create),
];

/// `RTL_REGISTRY_HANDLE`: the path is a handle.
const HANDLE: u32 = 0x4000_0000;
/// `RTL_REGISTRY_OPTIONAL`. It does not affect the status.
const OPTIONAL: u32 = 0x8000_0000;

/// The keys to which paths are relative, indexed by `RTL_REGISTRY_*`. The first entry is for
/// absolute paths, and the last is the key of a system process's user.
const KEYS: [&str; 6] = [
    "",
    r"\Registry\Machine\System\CurrentControlSet\Services",
    r"\Registry\Machine\System\CurrentControlSet\Control",
    r"\Registry\Machine\Software\Microsoft\Windows NT\CurrentVersion",
    r"\Registry\Machine\Hardware\DeviceMap",
    r"\Registry\User\.Default",
];

/// A key as a driver specifies it.
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

/// Returns the key that a relative path and its base specify.
fn named(context: &Context, relative_to: u32, path: u64) -> NtResult<Named> {
    if relative_to & HANDLE != 0 {
        return Ok(Named::Handle(path));
    }
    let number = (relative_to & !OPTIONAL) as usize;
    let start = KEYS.get(number).ok_or(NtStatus::INVALID_PARAMETER)?;
    let path = text_at(context, path);
    Ok(Named::Path(if start.is_empty() { path } else { format!(r"{start}\{path}") }))
}

/// Opens the key that a driver specifies.
fn open(context: &Context, relative_to: u32, path: u64) -> NtResult<KeyId> {
    match named(context, relative_to, path)? {
        Named::Path(path) => context.registry().open(None, &path),
        Named::Handle(handle) => key_of(context, handle),
    }
}

/// Opens the key that a driver specifies, or creates it if only the last segment does not exist.
fn open_or_create(context: &Context, relative_to: u32, path: u64) -> NtResult<KeyId> {
    match named(context, relative_to, path)? {
        Named::Path(path) => create_key(context, &path),
        Named::Handle(handle) => key_of(context, handle),
    }
}

fn query(
    context: &Context,
    relative_to: u32,
    path: At<u16>,
    table: At<QueryRegistryTable>,
    routine_context: Memory,
    environment: Memory,
) -> NtResult {
    let key = open(context, relative_to, path.0)?;
    query_table::query(context, key, table.0, [routine_context.0, environment.0])
}

fn write(
    context: &Context,
    relative_to: u32,
    path: At<u16>,
    name: At<u16>,
    kind: u32,
    data: Memory,
    length: u32,
) -> NtResult {
    let key = open_or_create(context, relative_to, path.0)?;
    set_value(context, key, &text_at(context, name.0), kind, (data.0, length))
}

fn delete(context: &Context, relative_to: u32, path: At<u16>, name: At<u16>) -> NtResult {
    let key = open(context, relative_to, path.0)?;
    remove_value(context, key, &text_at(context, name.0))
}

fn check(context: &Context, relative_to: u32, path: At<u16>) -> NtResult {
    open(context, relative_to, path.0).map(|_| ())
}

fn create(context: &Context, relative_to: u32, path: At<u16>) -> NtResult {
    open_or_create(context, relative_to, path.0).map(|_| ())
}
