//! Guarded mutexes.

use zerocopy::FromZeros;

use super::{
    header::{initialize as initialize_header, kind},
    mutexes::{give_back, release_plain, take, try_take},
    thread_objects,
};
use crate::{
    execution::routine::{At, routine},
    ground::abi::{DispatcherHeader, FastMutex},
    services::ntoskrnl::context::{Context, Entries},
};

pub const ENTRIES: Entries = &[
    routine("KeInitializeGuardedMutex", initialize),
    routine("KeAcquireGuardedMutex", acquire_guarded),
    routine("KeTryToAcquireGuardedMutex", try_guarded),
    routine("KeReleaseGuardedMutex", release_guarded),
    routine("KeAcquireGuardedMutexUnsafe", acquire_guarded_plain),
    routine("KeReleaseGuardedMutexUnsafe", release_plain),
];

fn initialize(context: &Context, mutex: At<FastMutex>) {
    mutex.write(context, FastMutex { count: 1, ..FastMutex::new_zeroed() });
    let event = mutex.0.wrapping_add(std::mem::offset_of!(FastMutex, event) as u64);
    let size = size_of::<DispatcherHeader>();
    initialize_header(context, event, kind::SYNCHRONIZATION_EVENT, size, 0);
}

/// Acquires a guarded mutex and enters a guarded region.
fn acquire_guarded(context: &Context, mutex: At<FastMutex>) {
    thread_objects::enter_guarded(context);
    take(context, mutex.0);
}

/// Acquires a guarded mutex on a thread for which APCs are already disabled.
fn acquire_guarded_plain(context: &Context, mutex: At<FastMutex>) {
    if !thread_objects::gets_no_calls(context) {
        context.stop_for_misuse("outside a guarded region and below APC_LEVEL");
    }
    take(context, mutex.0);
}

fn try_guarded(context: &Context, mutex: At<FastMutex>) -> bool {
    let is_taken = try_take(context, mutex.0);
    if is_taken {
        thread_objects::enter_guarded(context);
    }
    is_taken
}

fn release_guarded(context: &Context, mutex: At<FastMutex>) {
    give_back(context, mutex.0);
    thread_objects::leave_guarded(context);
}
