//! Registry callbacks.

use crate::{
    execution::routine::{At, Routine},
    ground::{NtResult, NtStatus, irql::Irql},
    services::{
        ntoskrnl::{
            context::{Context, Entries},
            ob::filters::{ALTITUDE_COLLISION, Watched, add_filter, remove_filter},
        },
        strings::read_unicode_string,
    },
};

const APC: Irql = Irql::APC_LEVEL;

pub const ENTRIES: Entries = &[
    ("CmGetCallbackVersion", APC, Routine::of(registry_callback_version)),
    ("CmRegisterCallback", APC, Routine::of(register_registry)),
    ("CmRegisterCallbackEx", APC, Routine::of(register_registry_ex)),
    ("CmUnRegisterCallback", APC, Routine::of(unregister_registry)),
];

/// Stores the version of registry callbacks: 1.1, as since Windows 7.
fn registry_callback_version(context: &Context, major: At<u32>, minor: At<u32>) {
    for at in [major, minor] {
        at.write_optional(context, 1);
    }
}

fn register_registry(context: &Context, routine: u64, _argument: u64, cookie: At<u64>) -> NtStatus {
    let key = add_filter(context, Watched::Registry, None, vec![routine]);
    cookie.write(context, key.unwrap_or(0));
    NtStatus::SUCCESS
}

fn register_registry_ex(
    context: &Context,
    routine: u64,
    altitude: u64,
    _driver: u64,
    _argument: u64,
    cookie: At<u64>,
    _reserved: u64,
) -> NtResult {
    let altitude = read_unicode_string(context, altitude);
    if altitude.is_empty() || routine == 0 {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    let key = add_filter(context, Watched::Registry, Some(altitude), vec![routine]);
    cookie.write(context, key.ok_or(ALTITUDE_COLLISION)?);
    Ok(())
}

fn unregister_registry(context: &Context, cookie: u64) -> NtResult {
    if remove_filter(context, Watched::Registry, cookie) {
        Ok(())
    } else {
        Err(NtStatus::INVALID_PARAMETER)
    }
}
