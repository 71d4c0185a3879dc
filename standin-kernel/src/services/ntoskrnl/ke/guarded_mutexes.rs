//! Guarded mutexes.

use zerocopy::FromZeros;

use super::{
    header::{initialize as initialize_header, kind},
    mutexes::{give_back, release_plain, take, try_take},
    thread_objects,
};
use crate::{
    execution::routine::{At, Routine},
    ground::{
        abi::{DispatcherHeader, FastMutex},
        irql::Irql,
    },
    services::ntoskrnl::context::{Context, Entries},
};

const APC: Irql = Irql::APC_LEVEL;

pub const ENTRIES: Entries = &[
    ("KeInitializeGuardedMutex", APC, Routine::of(initialize)),
    ("KeAcquireGuardedMutex", APC, Routine::of(acquire_guarded)),
    ("KeTryToAcquireGuardedMutex", APC, Routine::of(try_guarded)),
    ("KeReleaseGuardedMutex", APC, Routine::of(release_guarded)),
    ("KeAcquireGuardedMutexUnsafe", APC, Routine::of(acquire_guarded_plain)),
    ("KeReleaseGuardedMutexUnsafe", APC, Routine::of(release_plain)),
];

fn initialize(context: &Context, mutex: At<FastMutex>) {
    mutex.write(context, FastMutex { count: 1, ..FastMutex::new_zeroed() });
    let event = mutex.0.wrapping_add(std::mem::offset_of!(FastMutex, event) as u64);
    let size = size_of::<DispatcherHeader>();
    initialize_header(context, event, kind::SYNCHRONIZATION_EVENT, size, 0);
}

/// Acquires a guarded mutex and enters a guarded region.
fn acquire_guarded(context: &Context, mutex: u64) {
    thread_objects::enter_guarded(context);
    take(context, mutex);
}

/// Acquires a guarded mutex on a thread for which APCs are already disabled.
fn acquire_guarded_plain(context: &Context, mutex: u64) {
    if !thread_objects::gets_no_calls(context) {
        context.stop_for_misuse("outside a guarded region and below APC_LEVEL");
    }
    take(context, mutex);
}

fn try_guarded(context: &Context, mutex: u64) -> bool {
    let is_taken = try_take(context, mutex);
    if is_taken {
        thread_objects::enter_guarded(context);
    }
    is_taken
}

fn release_guarded(context: &Context, mutex: u64) {
    give_back(context, mutex);
    thread_objects::leave_guarded(context);
}
