//! Fast mutexes.

use crate::{
    execution::routine::{At, routine},
    ground::{abi::FastMutex, irql::Irql},
    services::ntoskrnl::{
        context::{Context, Entries},
        ke::mutexes::{give_back, release_plain, take, try_take},
    },
};

const APC: Irql = Irql::APC_LEVEL;

pub const ENTRIES: Entries = &[
    routine("ExAcquireFastMutex", acquire_fast),
    routine("ExTryToAcquireFastMutex", try_fast),
    routine("ExReleaseFastMutex", release_fast),
    routine("ExAcquireFastMutexUnsafe", acquire_plain),
    routine("ExReleaseFastMutexUnsafe", release_plain),
];

/// Raises the IRQL, and stores the previous IRQL in the mutex.
fn raise(context: &Context, mutex: u64) {
    let before = context.raise_irql(APC);
    let at = mutex.wrapping_add(std::mem::offset_of!(FastMutex, old_irql) as u64);
    context.write(at, &u32::from(before.number()));
}

fn acquire_fast(context: &Context, mutex: At<FastMutex>) {
    take(context, mutex.0);
    raise(context, mutex.0);
}

fn try_fast(context: &Context, mutex: At<FastMutex>) -> bool {
    let taken = try_take(context, mutex.0);
    if taken {
        raise(context, mutex.0);
    }
    taken
}

fn release_fast(context: &Context, mutex: At<FastMutex>) {
    context.require_at_least(APC);
    let value = give_back(context, mutex.0);
    context.lower_irql(Irql::from_number((value.old_irql & 0xFF) as u8));
}

fn acquire_plain(context: &Context, mutex: At<FastMutex>) {
    take(context, mutex.0);
}
