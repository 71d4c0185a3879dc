//! The registration of routines that watch the system.

use super::watchers::{Form, Watchers};
use crate::services::ntoskrnl::ob::filters::has_integrity_check;
use crate::{
    execution::routine::Routine,
    ground::{NtResult, NtStatus, irql::Irql},
    services::ntoskrnl::context::{Context, Entries},
};

const PASSIVE: Irql = Irql::PASSIVE_LEVEL;
const APC: Irql = Irql::APC_LEVEL;

pub const ENTRIES: Entries = &[
    ("PsSetCreateProcessNotifyRoutine", PASSIVE, Routine::of(set_process_routine)),
    ("PsSetCreateProcessNotifyRoutineEx", PASSIVE, Routine::of(set_process_routine_ex)),
    ("PsSetCreateProcessNotifyRoutineEx2", PASSIVE, Routine::of(set_process_routine_ex2)),
    ("PsSetCreateThreadNotifyRoutine", PASSIVE, Routine::of(set_thread_routine)),
    ("PsSetCreateThreadNotifyRoutineEx", PASSIVE, Routine::of(set_thread_routine_ex)),
    ("PsRemoveCreateThreadNotifyRoutine", APC, Routine::of(remove_thread_routine)),
    ("PsSetLoadImageNotifyRoutine", PASSIVE, Routine::of(set_image_routine)),
    ("PsSetLoadImageNotifyRoutineEx", PASSIVE, Routine::of(set_image_routine_ex)),
    ("PsRemoveLoadImageNotifyRoutine", PASSIVE, Routine::of(remove_image_routine)),
];

/// The maximum number of routines of each kind, as on Windows.
const MAX: usize = 64;

/// `STATUS_PROCEDURE_NOT_FOUND`: the routine is not registered.
const PROCEDURE_NOT_FOUND: NtStatus = NtStatus::from_bits(0xC000_007A);

/// Removes one registration of a routine from a list.
fn take<T: PartialEq>(all: &mut Vec<T>, routine: &T) -> NtResult {
    let at = all.iter().position(|one| one == routine).ok_or(PROCEDURE_NOT_FOUND)?;
    all.remove(at);
    Ok(())
}

fn change_process_routine(context: &Context, routine: u64, form: Form, remove: bool) -> NtResult {
    if form == Form::Extended && !has_integrity_check(context, routine) {
        return Err(NtStatus::ACCESS_DENIED);
    }
    let routine = (routine, form);
    context.with_state(|Watchers { processes: all, .. }| {
        if remove {
            return take(all, &routine);
        }
        if all.contains(&routine) || all.len() >= MAX {
            return Err(NtStatus::INVALID_PARAMETER);
        }
        all.push(routine);
        Ok(())
    })
}

fn set_process_routine(context: &Context, routine: u64, remove: bool) -> NtResult {
    change_process_routine(context, routine, Form::Plain, remove)
}

fn set_process_routine_ex(context: &Context, routine: u64, remove: bool) -> NtResult {
    change_process_routine(context, routine, Form::Extended, remove)
}

/// Registers or removes a process routine. The only type is `PsCreateProcessNotifySubsystems`,
/// which covers processes of all subsystems.
fn set_process_routine_ex2(context: &Context, kind: u32, routine: u64, remove: bool) -> NtResult {
    if kind != 0 {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    set_process_routine_ex(context, routine, remove)
}

/// Adds a routine. The same routine can be registered several times.
fn add(all: &mut Vec<u64>, routine: u64) -> NtResult {
    if all.len() >= MAX {
        return Err(NtStatus::INSUFFICIENT_RESOURCES);
    }
    all.push(routine);
    Ok(())
}

fn set_thread_routine(context: &Context, routine: u64) -> NtResult {
    context.with_state(|all: &mut Watchers| add(&mut all.threads, routine))
}

fn set_thread_routine_ex(context: &Context, kind: u32, routine: u64) -> NtResult {
    /// `PsCreateThreadNotifyNonSystem` and `PsCreateThreadNotifySubsystems`.
    const KINDS: u32 = 2;
    if kind >= KINDS {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    set_thread_routine(context, routine)
}

fn remove_thread_routine(context: &Context, routine: u64) -> NtResult {
    context.with_state(|all: &mut Watchers| take(&mut all.threads, &routine))
}

fn set_image_routine(context: &Context, routine: u64) -> NtResult {
    context.with_state(|all: &mut Watchers| add(&mut all.images, routine))
}

fn set_image_routine_ex(context: &Context, routine: u64, flags: u64) -> NtResult {
    /// `PS_IMAGE_NOTIFY_CONFLICTING_ARCHITECTURE`.
    const FLAGS: u64 = 1;
    if flags & !FLAGS != 0 {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    set_image_routine(context, routine)
}

fn remove_image_routine(context: &Context, routine: u64) -> NtResult {
    context.with_state(|all: &mut Watchers| take(&mut all.images, &routine))
}
