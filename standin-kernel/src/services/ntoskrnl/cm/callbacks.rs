//! Callbacks for the registry.

use crate::{
    execution::routine::Routine,
    ground::{irql::Irql, status::NtStatus},
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
    ("CmGetCallbackVersion", APC, Routine::Two(registry_callback_version)),
    ("CmRegisterCallback", APC, Routine::Three(register_registry)),
    ("CmRegisterCallbackEx", APC, Routine::Six(register_registry_ex)),
    ("CmUnRegisterCallback", APC, Routine::One(unregister_registry)),
];

/// Stores the version of registry callbacks, which is 1.1 since Windows 7.
fn registry_callback_version(context: &Context, major: u64, minor: u64) -> u64 {
    for at in [major, minor] {
        if at != 0 {
            context.write(at, &1_u32);
        }
    }
    0
}

fn register_registry(context: &Context, routine: u64, _argument: u64, cookie: u64) -> u64 {
    let key = add_filter(context, Watched::Registry, None, vec![routine]);
    context.write(cookie, &key.unwrap_or(0));
    NtStatus::SUCCESS.to_register()
}

fn register_registry_ex(
    context: &Context,
    routine: u64,
    altitude: u64,
    _driver: u64,
    _argument: u64,
    cookie: u64,
    _reserved: u64,
) -> u64 {
    let altitude = read_unicode_string(context, altitude);
    if altitude.is_empty() || routine == 0 {
        return NtStatus::INVALID_PARAMETER.to_register();
    }
    let key = add_filter(context, Watched::Registry, Some(altitude), vec![routine]);
    let Some(key) = key else {
        return ALTITUDE_COLLISION.to_register();
    };
    context.write(cookie, &key);
    NtStatus::SUCCESS.to_register()
}

fn unregister_registry(context: &Context, cookie: u64) -> u64 {
    if remove_filter(context, Watched::Registry, cookie) {
        NtStatus::SUCCESS.to_register()
    } else {
        NtStatus::INVALID_PARAMETER.to_register()
    }
}
