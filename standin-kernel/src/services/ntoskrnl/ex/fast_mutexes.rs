//! Fast mutexes.

use crate::{
    execution::routine::Routine,
    ground::{abi::FastMutex, irql::Irql},
    services::ntoskrnl::{
        context::{Context, Entries},
        ke::mutexes::{give_back, release_plain, take, try_take},
    },
};

const APC: Irql = Irql::APC_LEVEL;

pub const ENTRIES: Entries = &[
    ("ExAcquireFastMutex", APC, Routine::of(acquire_fast)),
    ("ExTryToAcquireFastMutex", APC, Routine::of(try_fast)),
    ("ExReleaseFastMutex", APC, Routine::of(release_fast)),
    ("ExAcquireFastMutexUnsafe", APC, Routine::of(acquire_plain)),
    ("ExReleaseFastMutexUnsafe", APC, Routine::of(release_plain)),
];

/// Raises the IRQL, and stores the previous IRQL in the mutex.
fn raise(context: &Context, mutex: u64) {
    let before = context.raise_irql(APC);
    let at = mutex.wrapping_add(std::mem::offset_of!(FastMutex, old_irql) as u64);
    context.write(at, &u32::from(before.number()));
}

fn acquire_fast(context: &Context, mutex: u64) {
    take(context, mutex);
    raise(context, mutex);
}

fn try_fast(context: &Context, mutex: u64) -> bool {
    let taken = try_take(context, mutex);
    if taken {
        raise(context, mutex);
    }
    taken
}

fn release_fast(context: &Context, mutex: u64) {
    context.require_at_least(APC);
    let value = give_back(context, mutex);
    context.lower_irql(Irql::from_number((value.old_irql & 0xFF) as u8));
}

fn acquire_plain(context: &Context, mutex: u64) {
    take(context, mutex);
}
