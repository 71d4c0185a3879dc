//! The registration of routines that watch the system.

use super::watchers::{Form, Watchers};
use crate::{
    execution::routine::routine,
    ground::{NtResult, NtStatus},
    services::ntoskrnl::context::{Context, Entries},
};
use crate::{
    execution::routine::{Callback, Memory},
    services::ntoskrnl::ob::filters::has_integrity_check,
};

pub const ENTRIES: Entries = &[
    routine("PsSetCreateProcessNotifyRoutine", set_process_routine),
    routine("PsSetCreateProcessNotifyRoutineEx", set_process_routine_ex),
    routine("PsSetCreateProcessNotifyRoutineEx2", set_process_routine_ex2),
    routine("PsSetCreateThreadNotifyRoutine", set_thread_routine),
    routine("PsSetCreateThreadNotifyRoutineEx", set_thread_routine_ex),
    routine("PsRemoveCreateThreadNotifyRoutine", remove_thread_routine),
    routine("PsSetLoadImageNotifyRoutine", set_image_routine),
    routine("PsSetLoadImageNotifyRoutineEx", set_image_routine_ex),
    routine("PsRemoveLoadImageNotifyRoutine", remove_image_routine),
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
    let place = context.caller();
    context.with_state(|Watchers { processes: all, places, .. }| {
        if remove {
            return take(all, &(routine, form));
        }
        if all.contains(&(routine, form)) || all.len() >= MAX {
            return Err(NtStatus::INVALID_PARAMETER);
        }
        all.push((routine, form));
        places.insert(routine, place);
        Ok(())
    })
}

fn set_process_routine(context: &Context, routine: Callback, remove: bool) -> NtResult {
    change_process_routine(context, routine.0, Form::Plain, remove)
}

fn set_process_routine_ex(context: &Context, routine: Callback, remove: bool) -> NtResult {
    change_process_routine(context, routine.0, Form::Extended, remove)
}

/// Registers or removes a process routine. The only type is `PsCreateProcessNotifySubsystems`,
/// which covers processes of all subsystems.
fn set_process_routine_ex2(
    context: &Context,
    kind: u32,
    routine: Memory,
    remove: bool,
) -> NtResult {
    if kind != 0 {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    set_process_routine_ex(context, Callback(routine.0), remove)
}

/// Adds a routine. The same routine can be registered several times.
fn add(context: &Context, list: fn(&mut Watchers) -> &mut Vec<u64>, routine: u64) -> NtResult {
    let place = context.caller();
    context.with_state(|watchers: &mut Watchers| {
        let all = list(watchers);
        if all.len() >= MAX {
            return Err(NtStatus::INSUFFICIENT_RESOURCES);
        }
        all.push(routine);
        watchers.places.insert(routine, place);
        Ok(())
    })
}

fn set_thread_routine(context: &Context, routine: Callback) -> NtResult {
    add(context, |watchers| &mut watchers.threads, routine.0)
}

fn set_thread_routine_ex(context: &Context, kind: u32, routine: Memory) -> NtResult {
    /// `PsCreateThreadNotifyNonSystem` and `PsCreateThreadNotifySubsystems`.
    const KINDS: u32 = 2;
    if kind >= KINDS {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    set_thread_routine(context, Callback(routine.0))
}

fn remove_thread_routine(context: &Context, routine: Callback) -> NtResult {
    context.with_state(|all: &mut Watchers| take(&mut all.threads, &routine.0))
}

fn set_image_routine(context: &Context, routine: Callback) -> NtResult {
    add(context, |watchers| &mut watchers.images, routine.0)
}

fn set_image_routine_ex(context: &Context, routine: Callback, flags: u64) -> NtResult {
    /// `PS_IMAGE_NOTIFY_CONFLICTING_ARCHITECTURE`.
    const FLAGS: u64 = 1;
    if flags & !FLAGS != 0 {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    set_image_routine(context, routine)
}

fn remove_image_routine(context: &Context, routine: Callback) -> NtResult {
    context.with_state(|all: &mut Watchers| take(&mut all.images, &routine.0))
}
