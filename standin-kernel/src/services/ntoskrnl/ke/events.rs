//! Events, mutexes and semaphores, and waits for them.

use zerocopy::FromZeros;

use super::{
    dispatcher::{self, set_state, set_state_boosting},
    header::{header_of, initialize, kind},
    thread_objects,
};
use crate::{
    execution::routine::{At, Memory, routine},
    ground::{
        NtStatus,
        abi::{DispatcherHeader, Mutant, Semaphore},
        irql::Irql,
        opaque::{KernelEvent, WaitBlock},
        rule::Rule,
    },
    services::ntoskrnl::context::{Context, Entries},
};

pub const ENTRIES: Entries = &[
    routine("KeInitializeEvent", initialize_event),
    routine("KeSetEvent", set_event),
    routine("KePulseEvent", pulse_event),
    routine("KeClearEvent", clear_event),
    routine("KeResetEvent", reset_event),
    routine("KeReadStateEvent", read_event),
    routine("KeInitializeMutex", initialize_mutex),
    routine("KeReleaseMutex", release_mutex),
    routine("KeReadStateMutex", read_mutex),
    routine("KeInitializeSemaphore", initialize_semaphore),
    routine("KeReleaseSemaphore", release_semaphore),
    routine("KeReadStateSemaphore", read_semaphore),
    routine("KeWaitForSingleObject", wait_for_single_object),
    routine("KeWaitForMultipleObjects", wait_for_multiple_objects),
];

const EVENTS: &[u8] = &[kind::NOTIFICATION_EVENT, kind::SYNCHRONIZATION_EVENT];

fn initialize_event(context: &Context, event: At<KernelEvent>, event_type: u32, state: bool) {
    let event_type =
        if event_type == 0 { kind::NOTIFICATION_EVENT } else { kind::SYNCHRONIZATION_EVENT };
    let state = i32::from(state);
    initialize(context, event.0, event_type, size_of::<DispatcherHeader>(), state);
}

/// Bugchecks if a routine that signals an object is called above `APC_LEVEL` with `Wait` set.
fn check_wait(context: &Context, wait: bool) {
    if wait {
        context.require_irql(Irql::APC_LEVEL, "with Wait");
    }
}

fn set_event(context: &Context, event: At<KernelEvent>, increment: i32, wait: bool) -> i32 {
    check_wait(context, wait);
    header_of(context, event.0, EVENTS);
    set_state_boosting(context, event.0, 1, increment)
}

/// Ends the waits for an event and resets it.
fn pulse_event(context: &Context, event: At<KernelEvent>, increment: i32, wait: bool) -> i32 {
    check_wait(context, wait);
    header_of(context, event.0, EVENTS);
    let before = set_state_boosting(context, event.0, 1, increment);
    set_state(context, event.0, 0);
    before
}

fn clear_event(context: &Context, event: At<KernelEvent>) {
    reset_event(context, event);
}

fn reset_event(context: &Context, event: At<KernelEvent>) -> i32 {
    header_of(context, event.0, EVENTS);
    set_state(context, event.0, 0)
}

/// Returns the state of an event. The routine only reads it, so Windows does not notice that an event was
/// not initialized.
fn read_event(context: &Context, event: At<KernelEvent>) -> i32 {
    let header: DispatcherHeader = context.read(event.0);
    if header.wait_list_head[0] == 0 {
        context.warn(
            Rule::UninitializedEvent,
            &format!("with the event at 0x{event:016X}, which was not initialized"),
        );
        return header.signal_state;
    }
    header_of(context, event.0, EVENTS).signal_state
}

fn initialize_mutex(context: &Context, mutex: At<Mutant>, _level: u32) {
    let entry = mutex.0.wrapping_add(size_of::<DispatcherHeader>() as u64);
    let mutant = Mutant { mutant_list_entry: [entry; 2], apc_disable: 1, ..Mutant::new_zeroed() };
    mutex.write(context, mutant);
    initialize(context, mutex.0, kind::MUTANT, size_of::<Mutant>(), 1);
}

fn release_mutex(context: &Context, mutex: At<Mutant>, wait: bool) -> i32 {
    /// `MUTANT_INCREMENT`.
    const MUTANT_INCREMENT: i32 = 1;
    check_wait(context, wait);
    header_of(context, mutex.0, &[kind::MUTANT]);
    let thread = thread_objects::current(context);
    let before = dispatcher::change(context, mutex.0, MUTANT_INCREMENT, |mutant: &mut Mutant| {
        let before = mutant.header.signal_state;
        if before > 0 || mutant.owner_thread != thread.0 {
            return None;
        }
        mutant.header.signal_state = before.saturating_add(1);
        let is_free = mutant.header.signal_state == 1;
        if is_free {
            mutant.owner_thread = 0;
        }
        Some((before, is_free && mutant.apc_disable != 0))
    });
    let Some((before, leaves_region)) = before else {
        context.stop_for_misuse("for a mutex that its caller does not own");
    };
    if leaves_region {
        thread_objects::release_mutex(context);
    }
    before
}

fn read_mutex(context: &Context, mutex: At<Mutant>) -> i32 {
    header_of(context, mutex.0, &[kind::MUTANT]).signal_state
}

fn initialize_semaphore(context: &Context, semaphore: At<Semaphore>, count: i32, limit: i32) {
    if limit <= 0 || !(0..=limit).contains(&count) {
        context.stop_for_misuse(&format!("with the count {count} and the limit {limit}"));
    }
    semaphore.write(context, Semaphore { limit, ..Semaphore::new_zeroed() });
    initialize(context, semaphore.0, kind::SEMAPHORE, size_of::<Semaphore>(), count);
}

fn release_semaphore(
    context: &Context,
    semaphore: At<Semaphore>,
    increment: i32,
    adjustment: i32,
    wait: bool,
) -> i32 {
    check_wait(context, wait);
    header_of(context, semaphore.0, &[kind::SEMAPHORE]);
    let released = dispatcher::change(context, semaphore.0, increment, |value: &mut Semaphore| {
        let before = value.header.signal_state;
        let after = before.checked_add(adjustment).filter(|_| adjustment > 0);
        let Some(after) = after.filter(|after| *after <= value.limit) else {
            return Err((before, value.limit));
        };
        value.header.signal_state = after;
        Ok(before)
    });
    match released {
        Ok(before) => before,
        // Windows raises STATUS_SEMAPHORE_LIMIT_EXCEEDED, which drivers do not expect.
        Err((before, limit)) => context.stop_for_misuse(&format!(
            "to add {adjustment} to a semaphore's count of {before}; its limit is {limit}"
        )),
    }
}

fn read_semaphore(context: &Context, semaphore: At<Semaphore>) -> i32 {
    header_of(context, semaphore.0, &[kind::SEMAPHORE]).signal_state
}

fn wait_for_single_object(
    context: &Context,
    object: Memory,
    _reason: u32,
    _mode: i8,
    _alertable: bool,
    timeout: At<i64>,
) -> NtStatus {
    dispatcher::wait(context, vec![object.0], false, timeout.read_optional(context))
}

fn wait_for_multiple_objects(
    context: &Context,
    count: u32,
    objects: At<u64>,
    wait_type: u32,
    _reason: u32,
    _mode: i8,
    _alertable: bool,
    timeout: At<i64>,
    blocks: At<WaitBlock>,
) -> NtStatus {
    /// `THREAD_WAIT_OBJECTS`: the number of wait blocks in a thread.
    const OF_THREAD: u32 = 3;
    /// `MAXIMUM_WAIT_OBJECTS`.
    const MAXIMUM: u32 = 64;
    let limit = if blocks.is_null() { OF_THREAD } else { MAXIMUM };
    if count == 0 || count > limit {
        context.stop_for_misuse(&format!(
            "with {count} objects; with{} an array of wait blocks, it accepts 1 to {limit}",
            if blocks.is_null() { "out" } else { "" }
        ));
    }
    let read = |number: u32| -> u64 { context.read(objects.0.wrapping_add(u64::from(number) * 8)) };
    let objects: Vec<u64> = (0..count).map(read).collect();
    // WaitAll is 0, and WaitAny is 1.
    dispatcher::wait(context, objects, wait_type == 0, timeout.read_optional(context))
}
