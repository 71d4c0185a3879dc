//! Registry callbacks: their registration, and what they ask about keys.

use crate::{
    execution::routine::{At, Routine},
    ground::{NtResult, NtStatus, irql::Irql},
    services::{
        managers::pool::Tag,
        ntoskrnl::{
            context::{Context, Entries},
            ex::pool,
            ob::filters::{
                ALTITUDE_COLLISION, Routines, Watched, add_filter, close_filter, registered,
                remove_filter,
            },
            zw::{key_operations, keys},
        },
        strings::{read_unicode_string, store_unicode_string},
    },
};

const APC: Irql = Irql::APC_LEVEL;

pub const ENTRIES: Entries = &[
    ("CmGetCallbackVersion", APC, Routine::of(registry_callback_version)),
    ("CmRegisterCallback", APC, Routine::of(register_registry)),
    ("CmRegisterCallbackEx", APC, Routine::of(register_registry_ex)),
    ("CmUnRegisterCallback", APC, Routine::of(unregister_registry)),
    ("CmCallbackGetKeyObjectID", APC, Routine::of(key_object_id)),
    ("CmCallbackGetKeyObjectIDEx", APC, Routine::of(key_object_id_ex)),
    ("CmCallbackReleaseKeyObjectIDEx", APC, Routine::of(release_key_object_id)),
    ("CmSetCallbackObjectContext", APC, Routine::of(set_object_context)),
    ("CmGetBoundTransaction", APC, Routine::of(bound_transaction)),
];

/// The tag of the names that drivers release.
const TAG: Tag = Tag(u32::from_le_bytes(*b"CMcb"));

/// Stores the version of registry callbacks: 1.1, as since Windows 7.
fn registry_callback_version(context: &Context, major: At<u32>, minor: At<u32>) {
    for at in [major, minor] {
        at.write_optional(context, 1);
    }
}

fn register_registry(context: &Context, routine: u64, argument: u64, cookie: At<u64>) -> NtStatus {
    let routines = Routines { before: routine, ..Routines::default() };
    let key = add_filter(context, Watched::Registry, None, vec![routines], argument);
    cookie.write(context, key.unwrap_or(0));
    NtStatus::SUCCESS
}

fn register_registry_ex(
    context: &Context,
    routine: u64,
    altitude: u64,
    _driver: u64,
    argument: u64,
    cookie: At<u64>,
    _reserved: u64,
) -> NtResult {
    let altitude = read_unicode_string(context, altitude);
    if altitude.is_empty() || routine == 0 {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    let routines = Routines { before: routine, ..Routines::default() };
    let key = add_filter(context, Watched::Registry, Some(altitude), vec![routines], argument);
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
    object: u64,
    id: At<u64>,
    name: At<u64>,
) -> NtResult {
    must_be_registered(context, cookie.read(context))?;
    let number = keys::number_of(context, object).ok_or(NtStatus::INVALID_PARAMETER)?;
    if name.0 != 0 {
        name.write(context, keys::name_block_of(context, object)?);
    }
    id.write_optional(context, number);
    Ok(())
}

/// Stores a key's identifier, and its name in a block that the driver releases.
fn key_object_id_ex(
    context: &Context,
    cookie: At<u64>,
    object: u64,
    id: At<u64>,
    name: At<u64>,
    flags: u32,
) -> NtResult {
    must_be_registered(context, cookie.read(context))?;
    let number = keys::number_of(context, object).filter(|_| flags == 0);
    let number = number.ok_or(NtStatus::INVALID_PARAMETER)?;
    if name.0 != 0 {
        let text = keys::name_of(context, object).ok_or(NtStatus::KEY_DELETED)?;
        let block = store_unicode_string(context, &text, |size| context.allocate(size, TAG, true));
        name.write(context, block.ok_or(NtStatus::INSUFFICIENT_RESOURCES)?);
    }
    id.write_optional(context, number);
    Ok(())
}

fn release_key_object_id(context: &Context, name: u64) {
    pool::free_block(context, name);
}

fn set_object_context(
    context: &Context,
    object: u64,
    cookie: At<u64>,
    new: u64,
    old: At<u64>,
) -> NtResult {
    let cookie = cookie.read(context);
    must_be_registered(context, cookie)?;
    keys::number_of(context, object).ok_or(NtStatus::INVALID_PARAMETER)?;
    old.write_optional(context, key_operations::replace_context(context, object, cookie, new));
    Ok(())
}

/// Returns the transaction of a key: none, because this kernel has no transactions.
const fn bound_transaction(_context: &Context, _cookie: u64, _object: u64) -> u64 {
    0
}
