//! Registry callbacks: their registration, and what they ask about keys.

use super::{key_operations, keys};
use crate::{
    execution::{
        routine::{At, Callback, Memory, routine},
        strings::{read_unicode_string, store_unicode_string},
    },
    ground::{NtResult, NtStatus, abi::UnicodeString},
    services::{
        managers::pool::Tag,
        ntoskrnl::{
            context::{Context, Entries},
            ex::pool,
            ob::filters::{
                ALTITUDE_COLLISION, Routines, Watched, add_filter, close_filter, registered,
                remove_filter,
            },
        },
    },
};

pub const ENTRIES: Entries = &[
    routine("CmGetCallbackVersion", registry_callback_version),
    routine("CmRegisterCallback", register_registry),
    routine("CmRegisterCallbackEx", register_registry_ex),
    routine("CmUnRegisterCallback", unregister_registry),
    routine("CmCallbackGetKeyObjectID", key_object_id),
    routine("CmCallbackGetKeyObjectIDEx", key_object_id_ex),
    routine("CmCallbackReleaseKeyObjectIDEx", release_key_object_id),
    routine("CmSetCallbackObjectContext", set_object_context),
    routine("CmGetBoundTransaction", bound_transaction),
];

/// The tag of the names that drivers release.
const TAG: Tag = Tag(u32::from_le_bytes(*b"CMcb"));

/// Stores the version of registry callbacks: 1.1, as since Windows 7.
fn registry_callback_version(context: &Context, major: At<u32>, minor: At<u32>) {
    for at in [major, minor] {
        at.write_optional(context, 1);
    }
}

fn register_registry(
    context: &Context,
    routine: Callback,
    argument: Memory,
    cookie: At<u64>,
) -> NtStatus {
    let routines = Routines { before: routine.0, ..Routines::default() };
    let key = add_filter(context, Watched::Registry, None, vec![routines], argument.0);
    cookie.write(context, key.unwrap_or(0));
    NtStatus::SUCCESS
}

fn register_registry_ex(
    context: &Context,
    routine: Callback,
    altitude: At<UnicodeString>,
    _driver: Memory,
    argument: Memory,
    cookie: At<u64>,
    _reserved: Memory,
) -> NtResult {
    let altitude = read_unicode_string(context, altitude.0);
    if altitude.is_empty() || routine == Callback(0) {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    let routines = Routines { before: routine.0, ..Routines::default() };
    let key = add_filter(context, Watched::Registry, Some(altitude), vec![routines], argument.0);
    cookie.write(context, key.ok_or(ALTITUDE_COLLISION)?);
    Ok(())
}

fn unregister_registry(context: &Context, cookie: u64) -> NtResult {
    if !close_filter(context, Watched::Registry, cookie) {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    key_operations::clean_up_contexts(context, |_, registration| registration == cookie);
    remove_filter(context, Watched::Registry, cookie);
    Ok(())
}

/// Fails if no registration has a cookie.
fn must_be_registered(context: &Context, cookie: u64) -> NtResult {
    let all = registered(context, Watched::Registry);
    let is_registered = all.iter().any(|one| one.key == cookie);
    if is_registered { Ok(()) } else { Err(NtStatus::INVALID_PARAMETER) }
}

/// Stores a key's identifier, and its name in a block that lives as long as the key's object.
fn key_object_id(
    context: &Context,
    cookie: At<u64>,
    object: Memory,
    id: At<u64>,
    name: At<u64>,
) -> NtResult {
    must_be_registered(context, cookie.read(context))?;
    let number = keys::number_of(context, object.0).ok_or(NtStatus::INVALID_PARAMETER)?;
    if !name.is_null() {
        name.write(context, keys::name_block_of(context, object.0)?);
    }
    id.write_optional(context, number);
    Ok(())
}

/// Stores a key's identifier, and its name in a block that the driver releases.
fn key_object_id_ex(
    context: &Context,
    cookie: At<u64>,
    object: Memory,
    id: At<u64>,
    name: At<u64>,
    flags: u32,
) -> NtResult {
    must_be_registered(context, cookie.read(context))?;
    let number = keys::number_of(context, object.0).filter(|_| flags == 0);
    let number = number.ok_or(NtStatus::INVALID_PARAMETER)?;
    if !name.is_null() {
        let text = keys::name_of(context, object.0).ok_or(NtStatus::KEY_DELETED)?;
        let block = store_unicode_string(context, &text, |size| context.allocate(size, TAG, true));
        name.write(context, block.ok_or(NtStatus::INSUFFICIENT_RESOURCES)?);
    }
    id.write_optional(context, number);
    Ok(())
}

fn release_key_object_id(context: &Context, name: At<UnicodeString>) {
    pool::free_block(context, name.0);
}

fn set_object_context(
    context: &Context,
    object: Memory,
    cookie: At<u64>,
    new: Memory,
    old: At<u64>,
) -> NtResult {
    let cookie = cookie.read(context);
    must_be_registered(context, cookie)?;
    keys::number_of(context, object.0).ok_or(NtStatus::INVALID_PARAMETER)?;
    old.write_optional(context, key_operations::replace_context(context, object.0, cookie, new.0));
    Ok(())
}

/// Returns the transaction of a key: none, because this kernel has no transactions.
const fn bound_transaction(_context: &Context, _cookie: At<i64>, _object: Memory) -> Memory {
    At::NULL
}
