//! The registrations of routines that watch the system.

use super::{
    context::{Context, Entries},
    data,
    watchers::{Filter, Form, Watched, Watchers},
};
use crate::{
    execution::routine::{Routine, low_half},
    ground::{
        arena::Block,
        executive_abi::{ObjectCallbacks, ObjectOperation},
        irql::Irql,
        memory,
        status::NtStatus,
    },
    services::strings::read_unicode_string,
};

const PASSIVE: Irql = Irql::PASSIVE_LEVEL;
const APC: Irql = Irql::APC_LEVEL;

pub const ENTRIES: Entries = &[
    ("PsSetCreateProcessNotifyRoutine", PASSIVE, Routine::Two(set_process_routine)),
    ("PsSetCreateProcessNotifyRoutineEx", PASSIVE, Routine::Two(set_process_routine_ex)),
    ("PsSetCreateProcessNotifyRoutineEx2", PASSIVE, Routine::Three(set_process_routine_ex2)),
    ("PsSetCreateThreadNotifyRoutine", PASSIVE, Routine::One(set_thread_routine)),
    ("PsSetCreateThreadNotifyRoutineEx", PASSIVE, Routine::Two(set_thread_routine_ex)),
    ("PsRemoveCreateThreadNotifyRoutine", APC, Routine::One(remove_thread_routine)),
    ("PsSetLoadImageNotifyRoutine", PASSIVE, Routine::One(set_image_routine)),
    ("PsSetLoadImageNotifyRoutineEx", PASSIVE, Routine::Two(set_image_routine_ex)),
    ("PsRemoveLoadImageNotifyRoutine", PASSIVE, Routine::One(remove_image_routine)),
    ("CmGetCallbackVersion", APC, Routine::Two(registry_callback_version)),
    ("CmRegisterCallback", APC, Routine::Three(register_registry)),
    ("CmRegisterCallbackEx", APC, Routine::Six(register_registry_ex)),
    ("CmUnRegisterCallback", APC, Routine::One(unregister_registry)),
    ("ObRegisterCallbacks", APC, Routine::Two(register_handles)),
    ("ObUnRegisterCallbacks", APC, Routine::One(unregister_handles)),
    ("ObGetFilterVersion", Irql::HIGH_LEVEL, Routine::Zero(filter_version)),
];

/// The number of routines that Windows keeps of each kind.
const MOST: usize = 64;

/// `STATUS_PROCEDURE_NOT_FOUND`: the routine is not registered.
const PROCEDURE_NOT_FOUND: NtStatus = NtStatus::from_bits(0xC000_007A);
/// `STATUS_FLT_INSTANCE_ALTITUDE_COLLISION`.
const ALTITUDE_COLLISION: NtStatus = NtStatus::from_bits(0xC01C_0011);

/// Returns whether the image that a routine is in was linked with `/INTEGRITYCHECK`, without which Windows
/// refuses the routine.
fn has_integrity_check(context: &Context, routine: u64) -> bool {
    /// The offset of the headers' offset in an image.
    const HEADERS: u64 = 0x3C;
    /// The offset of `DllCharacteristics` from the headers: after the signature and the file header.
    const CHARACTERISTICS: u64 = 24 + 70;
    /// `IMAGE_DLLCHARACTERISTICS_FORCE_INTEGRITY`.
    const FORCE_INTEGRITY: u16 = 0x80;
    let read = || {
        let base = context.environment().images.base_of(routine)?;
        let headers: u32 = memory::read(base + HEADERS).ok()?;
        let at = base + u64::from(headers) + CHARACTERISTICS;
        memory::read::<u16>(at).ok()
    };
    read().is_some_and(|flags| flags & FORCE_INTEGRITY != 0)
}

fn change_process_routine(context: &Context, routine: u64, form: Form, remove: u64) -> NtStatus {
    if form == Form::Extended && !has_integrity_check(context, routine) {
        return NtStatus::ACCESS_DENIED;
    }
    let mut state = context.state();
    let all = &mut state.get::<Watchers>().processes;
    let known = all.iter().position(|one| *one == (routine, form));
    match (known, remove & 0xFF != 0) {
        (Some(at), true) => {
            all.remove(at);
            NtStatus::SUCCESS
        }
        (None, true) => PROCEDURE_NOT_FOUND,
        (None, false) if all.len() < MOST => {
            all.push((routine, form));
            NtStatus::SUCCESS
        }
        (_, false) => NtStatus::INVALID_PARAMETER,
    }
}

fn set_process_routine(context: &Context, routine: u64, remove: u64) -> u64 {
    change_process_routine(context, routine, Form::Plain, remove).to_register()
}

fn set_process_routine_ex(context: &Context, routine: u64, remove: u64) -> u64 {
    change_process_routine(context, routine, Form::Extended, remove).to_register()
}

/// `PsCreateProcessNotifySubsystems` is the only type: processes of all subsystems.
fn set_process_routine_ex2(context: &Context, kind: u64, routine: u64, remove: u64) -> u64 {
    if low_half(kind) != 0 {
        return NtStatus::INVALID_PARAMETER.to_register();
    }
    set_process_routine_ex(context, routine, remove)
}

/// Adds a routine, which may be registered several times.
fn add(context: &Context, of: fn(&mut Watchers) -> &mut Vec<u64>, routine: u64) -> u64 {
    let mut state = context.state();
    let all = of(state.get::<Watchers>());
    if all.len() >= MOST {
        return NtStatus::INSUFFICIENT_RESOURCES.to_register();
    }
    all.push(routine);
    NtStatus::SUCCESS.to_register()
}

fn remove(context: &Context, of: fn(&mut Watchers) -> &mut Vec<u64>, routine: u64) -> u64 {
    let mut state = context.state();
    let all = of(state.get::<Watchers>());
    let Some(at) = all.iter().position(|one| *one == routine) else {
        return PROCEDURE_NOT_FOUND.to_register();
    };
    all.remove(at);
    NtStatus::SUCCESS.to_register()
}

fn set_thread_routine(context: &Context, routine: u64) -> u64 {
    add(context, |all| &mut all.threads, routine)
}

fn set_thread_routine_ex(context: &Context, kind: u64, routine: u64) -> u64 {
    /// `PsCreateThreadNotifyNonSystem` and `PsCreateThreadNotifySubsystems`.
    const KINDS: u32 = 2;
    if low_half(kind) >= KINDS {
        return NtStatus::INVALID_PARAMETER.to_register();
    }
    set_thread_routine(context, routine)
}

fn remove_thread_routine(context: &Context, routine: u64) -> u64 {
    remove(context, |all| &mut all.threads, routine)
}

fn set_image_routine(context: &Context, routine: u64) -> u64 {
    add(context, |all| &mut all.images, routine)
}

fn set_image_routine_ex(context: &Context, routine: u64, flags: u64) -> u64 {
    /// `PS_IMAGE_NOTIFY_CONFLICTING_ARCHITECTURE`.
    const FLAGS: u64 = 1;
    if flags & !FLAGS != 0 {
        return NtStatus::INVALID_PARAMETER.to_register();
    }
    set_image_routine(context, routine)
}

fn remove_image_routine(context: &Context, routine: u64) -> u64 {
    remove(context, |all| &mut all.images, routine)
}

/// Registers routines at an altitude. Returns the key, unless another registration has the altitude.
fn add_filter(
    context: &Context,
    watched: Watched,
    altitude: Option<String>,
    routines: Vec<u64>,
) -> Option<u64> {
    let mut state = context.state();
    let watchers = state.get::<Watchers>();
    let has_altitude = |one: &Filter| one.watched == watched && one.altitude == altitude;
    if altitude.is_some() && watchers.filters.iter().any(has_altitude) {
        return None;
    }
    let memory = Block::zeroed(0x40);
    watchers.issued += 1;
    let key = match watched {
        Watched::Registry => watchers.issued,
        Watched::Handles => memory.address(),
    };
    let filter = Filter::new(watched, key, altitude, routines, memory);
    watchers.filters.push(filter);
    Some(key)
}

fn remove_filter(context: &Context, watched: Watched, key: u64) -> bool {
    let mut state = context.state();
    let filters = &mut state.get::<Watchers>().filters;
    let before = filters.len();
    filters.retain(|one| (one.watched, one.key) != (watched, key));
    filters.len() < before
}

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

/// `OB_FLT_REGISTRATION_VERSION`.
const VERSION: u16 = 0x100;

const fn filter_version(_context: &Context) -> u64 {
    VERSION as u64
}

/// Returns the routines of a registration for handles, or the status that it fails with.
fn routines_of(context: &Context, value: &ObjectCallbacks) -> Result<Vec<u64>, NtStatus> {
    const STEP: usize = size_of::<ObjectOperation>();
    /// `OB_OPERATION_HANDLE_CREATE` and `OB_OPERATION_HANDLE_DUPLICATE`.
    const OPERATIONS: u32 = 3;
    if value.version != VERSION || value.count == 0 {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    let mut routines = Vec::new();
    for at in (value.operations..).step_by(STEP).take(usize::from(value.count)) {
        let operation: ObjectOperation = context.read(at);
        let kind: u64 = context.read(operation.kind);
        let types = ["PsProcessType", "PsThreadType", "ExDesktopObjectType"];
        let is_supported = types.iter().any(|name| data::object_type(name) == Some(kind));
        let is_valid = operation.operations & !OPERATIONS == 0 && operation.operations != 0;
        let given = [operation.before, operation.after];
        let given: Vec<u64> = given.into_iter().filter(|routine| *routine != 0).collect();
        if !is_supported || !is_valid || given.is_empty() {
            return Err(NtStatus::INVALID_PARAMETER);
        }
        routines.extend(given);
    }
    let is_allowed = |routine: &u64| has_integrity_check(context, *routine);
    if !routines.iter().all(is_allowed) {
        return Err(NtStatus::ACCESS_DENIED);
    }
    Ok(routines)
}

fn register_handles(context: &Context, registration: u64, handle: u64) -> u64 {
    let value: ObjectCallbacks = context.read(registration);
    let routines = match routines_of(context, &value) {
        Ok(routines) => routines,
        Err(status) => return status.to_register(),
    };
    let at = std::mem::offset_of!(ObjectCallbacks, altitude) as u64;
    let altitude = read_unicode_string(context, registration.wrapping_add(at));
    let Some(key) = add_filter(context, Watched::Handles, Some(altitude), routines) else {
        return ALTITUDE_COLLISION.to_register();
    };
    context.write(handle, &key);
    NtStatus::SUCCESS.to_register()
}

fn unregister_handles(context: &Context, handle: u64) -> u64 {
    if !remove_filter(context, Watched::Handles, handle) {
        context.stop_for_misuse(&format!(
            "with 0x{handle:016X}, which is not a registration of ObRegisterCallbacks"
        ));
    }
    0
}
