//! Registrations, from `EtwRegister` to `EtwUnregister`.

use std::sync::Arc;

use etl_file::Guid;

use super::{
    callback,
    notify::{Cause, notify},
    service::Context,
    state::{DISABLE, Form, HandleError, Notification, Registration},
    traits::{CheckedTraits, check_traits, provider_name},
    unspecified::GroupDenial,
};
use crate::{
    execution::call::Call,
    ground::{
        NtResult, NtStatus, backtrace::Explained, bugcheck::Violation, rule::Rule, tally::Tally,
    },
};

/// The first handle. Handles look like kernel addresses and are never null or in user space.
const FIRST_HANDLE: u64 = 0xFFFF_B000_0000_0000;

const HANDLE_STEP: u64 = 0x80;

/// Registers a provider, given the addresses of its GUID and of the variable for the handle.
pub fn register_at(
    context: &Context,
    provider: u64,
    callback: u64,
    argument: u64,
    slot: u64,
    form: Form,
) -> NtResult {
    if provider == 0 || slot == 0 {
        context.warn(Rule::RegisterPointer, || {
            "with a null pointer for the provider id or the handle".to_owned()
        });
        return Err(NtStatus::INVALID_PARAMETER);
    }
    context.check_address("a provider id", provider, 16);
    context.check_address("a pointer for the handle", slot, 8);
    let provider = Guid::from_bytes(context.read(provider));
    // The variable is checked before the registration is created.
    let before: u64 = context.read(slot);
    if let Some(status) = context.faults().take(context.call().name) {
        context.etw().left_by_failures.insert(before);
        return Err(status);
    }
    // A value that is not a registration's handle was never a handle, for instance uninitialized
    // memory.
    if context.etw().registration_at(before).is_some() {
        context.warn(Rule::HandleOverwritten, || {
            format!(
                "with a handle variable that contains the handle 0x{before:016X}, which is not \
                 released; the old handle is lost"
            )
        });
    }
    let handle = register(context, provider, callback, argument, form);
    context.write(slot, &handle);
    Ok(())
}

/// Creates a registration. If sessions already enable its GUID, notifies the registration before its
/// handle is stored (ETW-2.6, R-E9).
pub fn register(
    context: &Context,
    provider: Guid,
    callback: u64,
    argument: u64,
    form: Form,
) -> u64 {
    let (handle, enabled) = {
        let mut etw = context.etw();
        let handle = FIRST_HANDLE + etw.issued * HANDLE_STEP;
        etw.issued += 1;
        etw.registered.entry(provider).or_default();
        etw.registrations.insert(
            handle,
            Registration {
                provider,
                form,
                callback,
                context: argument,
                traits: None,
                group: None,
                honours_types: false,
                registered_by: context.call(),
                backtrace: context.short_backtrace(),
                in_callback: None,
                writes: Arc::new(Tally::new(context.config().processors)),
            },
        );
        etw.enable_for_every_provider(provider);
        let enabled = !etw.enable_infos_of_handle(handle).is_empty();
        (handle, enabled)
    };
    if enabled {
        let cause =
            Cause { filters: context.etw().unspecified.filters_at_registration, ..Cause::CHANGE };
        context.while_registering(|| notify(context, handle, cause));
    }
    handle
}

/// Ends a registration, after waiting for a running enable callback (ETW-2.12).
pub fn unregister(context: &Context, handle: u64) -> NtResult {
    let this = context.id();
    let known = || match context.etw().registration(handle) {
        Ok(registration) => match registration.in_callback {
            Some(other) if other != this => None,
            mine => Some(Ok(mine.is_some())),
        },
        Err(error) => Some(Err(error)),
    };
    match context.wait_for("an enable callback to return", known) {
        Ok(true) => context.stop_call(
            Rule::UnregisterInCallback,
            "inside the registration's own enable callback, where it would wait for itself",
        ),
        Ok(false) => {
            let churn;
            let tell = {
                let mut etw = context.etw();
                let enabled = !etw.enable_infos_of_handle(handle).is_empty();
                let registration = etw.registrations.remove(&handle);
                etw.released.insert(handle);
                churn = registration.as_ref().is_some_and(|one| etw.churns(one));
                registration
                    .filter(|_| enabled && etw.unspecified.disabled_at_unregistration)
                    .filter(|registration| registration.callback != 0)
            };
            if churn {
                context.warn(Rule::RegistrationChurn, || {
                    "for a registration with only a few events; register the provider once per \
                     driver load"
                        .to_owned()
                });
            }
            // O5: the callback can be notified after the registration has ended.
            if let Some(registration) = tell {
                let disable = Notification::of_disable(handle, &registration);
                callback::call(context, &disable, Guid::NULL, DISABLE);
            }
            Ok(())
        }
        Err(error) => Err(refuse(context, handle, &error)),
    }
}

/// Returns the status for a call with an invalid handle: an error for 0. Bugchecks if the handle
/// was released or never issued.
pub fn refuse(context: &Context, handle: u64, error: &HandleError) -> NtStatus {
    match error {
        HandleError::Null => NtStatus::INVALID_HANDLE,
        HandleError::Released => context.stop_call(
            Rule::HandleReleased,
            &format!(
                "with the registration handle 0x{handle:016X}, which EtwUnregister had released"
            ),
        ),
        HandleError::NeverIssued if context.etw().left_by_failures.contains(&handle) => {
            context.warn(Rule::HandleOfFailure, || {
                format!("with 0x{handle:016X}, which is not a handle: EtwRegister had failed")
            });
            NtStatus::INVALID_HANDLE
        }
        HandleError::NeverIssued => context.stop_call(
            Rule::HandleNeverIssued,
            &format!("with 0x{handle:016X}, which EtwRegister never returned"),
        ),
    }
}

/// Sets a registration's traits and group. They can be set only once (R-T3, R-T4).
pub fn set_traits(context: &Context, handle: u64, blob: Vec<u8>) -> NtResult {
    let CheckedTraits { group, doubtful } = check_traits(&blob).map_err(|(rule, what)| {
        context.warn(rule, || format!("with traits {what}"));
        NtStatus::INVALID_PARAMETER
    })?;
    for (rule, what) in doubtful {
        context.warn(rule, || format!("with traits {what}"));
    }
    let joined = {
        let mut etw = context.etw();
        let denial = group
            .filter(|group| etw.denied_groups.contains(group))
            .map(|_| etw.unspecified.denied_group)
            .filter(|denial| *denial != GroupDenial::DoesNotApply);
        let registration = etw.registration(handle).map_err(|_| NtStatus::INVALID_HANDLE)?;
        if registration.traits.is_some() {
            let status = etw.unspecified.second_traits;
            drop(etw);
            context.warn(Rule::TraitsSetTwice, || {
                "for a registration that already has traits".to_owned()
            });
            return if status == NtStatus::SUCCESS { Ok(()) } else { Err(status) };
        }
        if denial == Some(GroupDenial::SkipsAllTraits) {
            return Err(NtStatus::ACCESS_DENIED);
        }
        let name = provider_name(&blob);
        registration.traits = Some(blob.into());
        registration.honours_types = true;
        let provider = registration.provider;
        etw.registered.insert(provider, name);
        match denial {
            None => {}
            Some(GroupDenial::SkipsGroupSilently) => return Ok(()),
            Some(_) => return Err(NtStatus::ACCESS_DENIED),
        }
        let before = etw.enable_infos_of_handle(handle).len();
        if let Ok(registration) = etw.registration(handle) {
            registration.group = group;
        }
        etw.enable_infos_of_handle(handle).len() > before
    };
    // Membership and the group's enable info take effect immediately (ETW-5.6).
    if joined {
        notify(context, handle, Cause::CHANGE);
    }
    Ok(())
}

/// Reports and removes the registrations of an unloaded driver. Their callbacks would run
/// code that is no longer mapped (ETW-2.1). `unload` describes the driver's unload routine.
pub fn report_left_registered(
    context: &Context,
    belongs: impl Fn(&Call) -> bool,
    driver: &str,
    unload: Option<&str>,
) -> Vec<Violation> {
    let unload =
        unload.map_or_else(String::new, |routine| format!("; its unload routine is {routine}"));
    let left: Vec<(u64, Registration)> = {
        let mut etw = context.etw();
        let handles: Vec<u64> = etw
            .registrations
            .iter()
            .filter(|(_, registration)| belongs(&registration.registered_by))
            .map(|(handle, _)| *handle)
            .collect();
        handles
            .into_iter()
            .filter_map(|handle| {
                etw.released.insert(handle);
                Some((handle, etw.registrations.remove(&handle)?))
            })
            .collect()
    };
    left.into_iter()
        .map(|(handle, registration)| {
            let Explained { place, lines, .. } = context.explain(&registration.backtrace);
            let missing = match registration.form {
                Form::Modern | Form::Classic => "EtwUnregister",
                Form::Wmi { .. } => "IoWMIRegistrationControl with WMIREG_ACTION_DEREGISTER",
            };
            let message = format!(
                "{driver} was unloaded without {missing} for the provider {{{}}}: its handle \
                 0x{handle:016X} came from {}, called at {} from {place}{unload}",
                registration.provider,
                registration.registered_by.name,
                registration.registered_by.irql,
            );
            Violation::new(Rule::ProviderLeftRegistered, message, lines)
        })
        .collect()
}
