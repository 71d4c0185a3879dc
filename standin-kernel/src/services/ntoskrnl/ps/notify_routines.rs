//! The registrations of routines that watch the system.

use super::watchers::{Form, Watchers};
use crate::services::ntoskrnl::ob::filters::has_integrity_check;
use crate::{
    execution::routine::{Routine, low_half},
    ground::{irql::Irql, status::NtStatus},
    services::ntoskrnl::context::{Context, Entries},
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
];

/// The number of routines that Windows keeps of each kind.
const MOST: usize = 64;

/// `STATUS_PROCEDURE_NOT_FOUND`: the routine is not registered.
const PROCEDURE_NOT_FOUND: NtStatus = NtStatus::from_bits(0xC000_007A);

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
