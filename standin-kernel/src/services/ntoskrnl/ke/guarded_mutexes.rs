//! Guarded mutexes.

use super::{
    header::{initialize as initialize_header, kind},
    mutexes::{give_back, release_plain, take, try_take},
    thread_objects,
};
use crate::{
    execution::routine::Routine,
    ground::{
        abi::{DispatcherHeader, FastMutex},
        irql::Irql,
    },
    services::ntoskrnl::context::{Context, Entries},
};

const APC: Irql = Irql::APC_LEVEL;

pub const ENTRIES: Entries = &[
    ("KeInitializeGuardedMutex", APC, Routine::One(initialize)),
    ("KeAcquireGuardedMutex", APC, Routine::One(acquire_guarded)),
    ("KeTryToAcquireGuardedMutex", APC, Routine::One(try_guarded)),
    ("KeReleaseGuardedMutex", APC, Routine::One(release_guarded)),
    ("KeAcquireGuardedMutexUnsafe", APC, Routine::One(acquire_guarded_plain)),
    ("KeReleaseGuardedMutexUnsafe", APC, Routine::One(release_plain)),
];

fn initialize(context: &Context, mutex: u64) -> u64 {
    let event = DispatcherHeader {
        kind: 0,
        reserved: 0,
        units: 0,
        reserved_1: 0,
        signal_state: 0,
        waiters: [0; 2],
    };
    let value = FastMutex {
        count: 1,
        reserved: 0,
        owner: 0,
        contention: 0,
        reserved_1: 0,
        event,
        old_irql: 0,
        reserved_2: 0,
    };
    context.write(mutex, &value);
    let event = mutex.wrapping_add(std::mem::offset_of!(FastMutex, event) as u64);
    let size = size_of::<DispatcherHeader>();
    initialize_header(context, event, kind::SYNCHRONIZATION_EVENT, size, 0);
    0
}

/// Acquires a guarded mutex, which its thread has in a guarded region.
fn acquire_guarded(context: &Context, mutex: u64) -> u64 {
    thread_objects::enter_guarded(context);
    take(context, mutex);
    0
}

/// Acquires a guarded mutex for a thread that gets no asynchronous procedure calls already.
fn acquire_guarded_plain(context: &Context, mutex: u64) -> u64 {
    if !thread_objects::gets_no_calls(context) {
        context.stop_for_misuse("outside a guarded region and below APC_LEVEL");
    }
    take(context, mutex);
    0
}

fn try_guarded(context: &Context, mutex: u64) -> u64 {
    let is_taken = try_take(context, mutex);
    if is_taken {
        thread_objects::enter_guarded(context);
    }
    u64::from(is_taken)
}

fn release_guarded(context: &Context, mutex: u64) -> u64 {
    give_back(context, mutex);
    thread_objects::leave_guarded(context)
}
