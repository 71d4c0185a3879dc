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
    ("ExAcquireFastMutex", APC, Routine::One(acquire_fast)),
    ("ExTryToAcquireFastMutex", APC, Routine::One(try_fast)),
    ("ExReleaseFastMutex", APC, Routine::One(release_fast)),
    ("ExAcquireFastMutexUnsafe", APC, Routine::One(acquire_plain)),
    ("ExReleaseFastMutexUnsafe", APC, Routine::One(release_plain)),
];

/// Raises the IRQL and stores the previous one in the mutex.
fn raise(context: &Context, mutex: u64) {
    let before = context.raise_irql(APC);
    let at = mutex.wrapping_add(std::mem::offset_of!(FastMutex, old_irql) as u64);
    context.write(at, &u32::from(before.number()));
}

fn acquire_fast(context: &Context, mutex: u64) -> u64 {
    take(context, mutex);
    raise(context, mutex);
    0
}

fn try_fast(context: &Context, mutex: u64) -> u64 {
    let taken = try_take(context, mutex);
    if taken {
        raise(context, mutex);
    }
    u64::from(taken)
}

fn release_fast(context: &Context, mutex: u64) -> u64 {
    context.require_at_least(APC);
    let value = give_back(context, mutex);
    context.lower_irql(Irql::from_number((value.old_irql & 0xFF) as u8));
    0
}

fn acquire_plain(context: &Context, mutex: u64) -> u64 {
    take(context, mutex);
    0
}
