//! Fast mutexes, and the words that they, push locks and rundown protection change.

use super::{
    context::{Context, Entries},
    header::kind,
    thread_objects,
};
use crate::{
    execution::{coroutine::wait_until, routine::Routine},
    ground::{abi::FastMutex, irql::Irql, memory, rule::Rule},
};

const APC: Irql = Irql::APC_LEVEL;

pub const ENTRIES: Entries = &[
    ("ExAcquireFastMutex", APC, Routine::One(acquire_fast)),
    ("ExTryToAcquireFastMutex", APC, Routine::One(try_fast)),
    ("ExReleaseFastMutex", APC, Routine::One(release_fast)),
    ("ExAcquireFastMutexUnsafe", APC, Routine::One(acquire_plain)),
    ("ExReleaseFastMutexUnsafe", APC, Routine::One(release_plain)),
];

/// Takes a mutex that is free.
pub fn try_take(context: &Context, mutex: u64) -> bool {
    let thread = thread_objects::current(context);
    let is_taken = context.atomically(|_| {
        let mut value: FastMutex = memory::read(mutex)?;
        if value.count > 1 || value.event.kind != kind::SYNCHRONIZATION_EVENT {
            return Ok(None);
        }
        let is_free = value.count == 1;
        if is_free {
            value.count = 0;
            value.owner = thread;
            memory::write(mutex, &value)?;
        }
        Ok(Some(is_free))
    });
    is_taken.unwrap_or_else(|| {
        context.stop_for_misuse(&format!(
            "with the mutex at 0x{mutex:016X}, which was not initialized"
        ))
    })
}

/// Changes a word of a lock as one step: writes what `change` returns, if that is a value. Returns it.
pub fn change_word(
    context: &Context,
    word: u64,
    change: impl FnOnce(u64) -> Option<u64>,
) -> Option<u64> {
    context.atomically(|_| {
        let changed = change(memory::read(word)?);
        if let Some(value) = changed {
            memory::write(word, &value)?;
        }
        Ok(changed)
    })
}

/// Waits until `ready` returns `true`. `what` completes "waits forever for".
pub fn wait(context: &Context, what: &str, ready: impl FnMut() -> bool) {
    if !wait_until(context, None, ready) {
        context.stop(
            Rule::Deadlock,
            format!(
                "{} was called from {} and waits forever for {what}",
                context.call().name,
                context.caller()
            ),
        );
    }
}

pub fn take(context: &Context, mutex: u64) {
    if try_take(context, mutex) {
        return;
    }
    let value: FastMutex = context.read(mutex);
    if value.owner == thread_objects::current(context) {
        context.stop(
            Rule::Deadlock,
            format!(
                "{} was called from {} for a mutex that its caller already owns",
                context.call().name,
                context.caller()
            ),
        );
    }
    wait(context, "a mutex that is never released", || try_take(context, mutex));
}

pub fn give_back(context: &Context, mutex: u64) -> FastMutex {
    let thread = thread_objects::current(context);
    let before = context.atomically(|_| {
        let value: FastMutex = memory::read(mutex)?;
        if value.count == 1 || value.owner != thread {
            return Ok(None);
        }
        let mut free: FastMutex = memory::read(mutex)?;
        free.count = 1;
        free.owner = 0;
        memory::write(mutex, &free)?;
        Ok(Some(value))
    });
    before.unwrap_or_else(|| context.stop_for_misuse("for a mutex that its caller does not own"))
}

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

pub fn release_plain(context: &Context, mutex: u64) -> u64 {
    give_back(context, mutex);
    0
}

/// Initializes a push lock or a rundown reference, which are words.
pub fn initialize_word(context: &Context, word: u64) -> u64 {
    context.write(word, &0_u64);
    0
}
