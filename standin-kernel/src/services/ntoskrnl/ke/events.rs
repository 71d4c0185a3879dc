//! Events, mutexes and semaphores, and the waits for them.

use super::{
    dispatcher::{self, set_state},
    header::{header_of, initialize, kind},
    thread_objects,
};
use crate::{
    execution::routine::{Routine, low_half},
    ground::{
        abi::{DispatcherHeader, Mutant, Semaphore},
        irql::Irql,
    },
    services::ntoskrnl::context::{Context, Entries},
};

const HIGH: Irql = Irql::HIGH_LEVEL;
const DISPATCH: Irql = Irql::DISPATCH_LEVEL;

pub const ENTRIES: Entries = &[
    ("KeInitializeEvent", HIGH, Routine::Three(initialize_event)),
    ("KeSetEvent", DISPATCH, Routine::Three(set_event)),
    ("KePulseEvent", DISPATCH, Routine::Three(pulse_event)),
    ("KeClearEvent", DISPATCH, Routine::One(clear_event)),
    ("KeResetEvent", DISPATCH, Routine::One(reset_event)),
    ("KeReadStateEvent", DISPATCH, Routine::One(read_event)),
    ("KeInitializeMutex", HIGH, Routine::Two(initialize_mutex)),
    ("KeReleaseMutex", DISPATCH, Routine::Two(release_mutex)),
    ("KeReadStateMutex", DISPATCH, Routine::One(read_mutex)),
    ("KeInitializeSemaphore", DISPATCH, Routine::Three(initialize_semaphore)),
    ("KeReleaseSemaphore", DISPATCH, Routine::Four(release_semaphore)),
    ("KeReadStateSemaphore", DISPATCH, Routine::One(read_semaphore)),
    ("KeWaitForSingleObject", DISPATCH, Routine::Five(wait_for_single_object)),
    ("KeWaitForMultipleObjects", DISPATCH, Routine::Eight(wait_for_multiple_objects)),
];

const EVENTS: &[u8] = &[kind::NOTIFICATION_EVENT, kind::SYNCHRONIZATION_EVENT];

fn initialize_event(context: &Context, event: u64, its_kind: u64, state: u64) -> u64 {
    let its_kind = if low_half(its_kind) == 0 {
        kind::NOTIFICATION_EVENT
    } else {
        kind::SYNCHRONIZATION_EVENT
    };
    let state = i32::from(state & 0xFF != 0);
    initialize(context, event, its_kind, size_of::<DispatcherHeader>(), state);
    0
}

/// Bugchecks if a routine that signals an object is told, above `APC_LEVEL`, that a wait follows.
fn check_wait(context: &Context, wait: u64) {
    if wait & 0xFF != 0 {
        context.require_irql(Irql::APC_LEVEL, "with Wait");
    }
}

fn set_event(context: &Context, event: u64, _increment: u64, wait: u64) -> u64 {
    check_wait(context, wait);
    header_of(context, event, EVENTS);
    to_register(set_state(context, event, 1))
}

/// Ends the waits for an event and resets it.
fn pulse_event(context: &Context, event: u64, _increment: u64, wait: u64) -> u64 {
    check_wait(context, wait);
    header_of(context, event, EVENTS);
    let before = set_state(context, event, 1);
    set_state(context, event, 0);
    to_register(before)
}

fn clear_event(context: &Context, event: u64) -> u64 {
    reset_event(context, event);
    0
}

fn reset_event(context: &Context, event: u64) -> u64 {
    header_of(context, event, EVENTS);
    to_register(set_state(context, event, 0))
}

fn read_event(context: &Context, event: u64) -> u64 {
    to_register(header_of(context, event, EVENTS).signal_state)
}

fn initialize_mutex(context: &Context, mutex: u64, _level: u64) -> u64 {
    let entry = mutex.wrapping_add(size_of::<DispatcherHeader>() as u64);
    let mutant = Mutant {
        header: DispatcherHeader {
            kind: 0,
            reserved: 0,
            units: 0,
            reserved_1: 0,
            signal_state: 0,
            waiters: [0; 2],
        },
        list_entry: [entry; 2],
        owner: 0,
        abandoned: 0,
        apc_disable: 1,
        reserved: [0; 6],
    };
    context.write(mutex, &mutant);
    initialize(context, mutex, kind::MUTANT, size_of::<Mutant>(), 1);
    0
}

fn release_mutex(context: &Context, mutex: u64, wait: u64) -> u64 {
    check_wait(context, wait);
    header_of(context, mutex, &[kind::MUTANT]);
    let thread = thread_objects::current(context);
    let before = dispatcher::change(context, mutex, |mutant: &mut Mutant| {
        let before = mutant.header.signal_state;
        if before > 0 || mutant.owner != thread {
            return None;
        }
        mutant.header.signal_state = before.saturating_add(1);
        if mutant.header.signal_state == 1 {
            mutant.owner = 0;
        }
        Some(before)
    });
    to_register(
        before
            .unwrap_or_else(|| context.stop_for_misuse("for a mutex that its caller does not own")),
    )
}

fn read_mutex(context: &Context, mutex: u64) -> u64 {
    to_register(header_of(context, mutex, &[kind::MUTANT]).signal_state)
}

fn initialize_semaphore(context: &Context, semaphore: u64, count: u64, limit: u64) -> u64 {
    let (count, limit) = (low_half(count).cast_signed(), low_half(limit).cast_signed());
    if limit <= 0 || !(0..=limit).contains(&count) {
        context.stop_for_misuse(&format!("with the count {count} and the limit {limit}"));
    }
    let value = Semaphore {
        header: DispatcherHeader {
            kind: 0,
            reserved: 0,
            units: 0,
            reserved_1: 0,
            signal_state: 0,
            waiters: [0; 2],
        },
        limit,
        reserved: 0,
    };
    context.write(semaphore, &value);
    initialize(context, semaphore, kind::SEMAPHORE, size_of::<Semaphore>(), count);
    0
}

fn release_semaphore(
    context: &Context,
    semaphore: u64,
    _increment: u64,
    adjustment: u64,
    wait: u64,
) -> u64 {
    check_wait(context, wait);
    header_of(context, semaphore, &[kind::SEMAPHORE]);
    let adjustment = low_half(adjustment).cast_signed();
    let released = dispatcher::change(context, semaphore, |value: &mut Semaphore| {
        let before = value.header.signal_state;
        let after = before.checked_add(adjustment).filter(|_| adjustment > 0);
        let Some(after) = after.filter(|after| *after <= value.limit) else {
            return Err((before, value.limit));
        };
        value.header.signal_state = after;
        Ok(before)
    });
    match released {
        Ok(before) => to_register(before),
        // Windows raises STATUS_SEMAPHORE_LIMIT_EXCEEDED, which no driver expects.
        Err((before, limit)) => context.stop_for_misuse(&format!(
            "to add {adjustment} to a semaphore's count of {before}; its limit is {limit}"
        )),
    }
}

fn read_semaphore(context: &Context, semaphore: u64) -> u64 {
    to_register(header_of(context, semaphore, &[kind::SEMAPHORE]).signal_state)
}

/// Reads a timeout that may be missing.
fn timeout_at(context: &Context, address: u64) -> Option<i64> {
    (address != 0).then(|| context.read(address))
}

fn wait_for_single_object(
    context: &Context,
    object: u64,
    _reason: u64,
    _mode: u64,
    _alertable: u64,
    timeout: u64,
) -> u64 {
    let timeout = timeout_at(context, timeout);
    dispatcher::wait(context, vec![object], false, timeout).to_register()
}

fn wait_for_multiple_objects(context: &Context, arguments: [u64; 8]) -> u64 {
    /// `THREAD_WAIT_OBJECTS`: the wait blocks that a thread has.
    const OF_THREAD: u32 = 3;
    /// `MAXIMUM_WAIT_OBJECTS`.
    const MAXIMUM: u32 = 64;
    let [count, objects, wait_type, _reason, _mode, _alertable, timeout, blocks] = arguments;
    let count = low_half(count);
    let limit = if blocks == 0 { OF_THREAD } else { MAXIMUM };
    if count == 0 || count > limit {
        context.stop_for_misuse(&format!(
            "with {count} objects; with{} an array of wait blocks, it takes 1 to {limit}",
            if blocks == 0 { "out" } else { "" }
        ));
    }
    let read = |number: u32| -> u64 { context.read(objects.wrapping_add(u64::from(number) * 8)) };
    let objects: Vec<u64> = (0..count).map(read).collect();
    let timeout = timeout_at(context, timeout);
    // WaitAll is 0, and WaitAny is 1.
    let all = low_half(wait_type) == 0;
    dispatcher::wait(context, objects, all, timeout).to_register()
}

const fn to_register(value: i32) -> u64 {
    value.cast_unsigned() as u64
}
