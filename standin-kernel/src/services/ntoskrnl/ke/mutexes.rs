//! Mutexes that threads own, and words of locks that change atomically.

use super::{header::kind, thread_objects};
use crate::{
    execution::{coroutine::wait_until, routine::At},
    ground::{
        abi::{FastMutex, Pointee},
        memory,
        rule::Rule,
    },
    services::ntoskrnl::context::Context,
};

/// Acquires a mutex if it is free.
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
            value.owner = thread.0;
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

/// Changes a word of a lock atomically. If `change` returns a value, writes and returns it.
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

/// Waits until `ready` returns `true`. `what` completes "would wait forever for".
pub fn wait(context: &Context, what: &str, ready: impl FnMut() -> bool) {
    if !wait_until(context, None, ready) {
        context.stop_call(Rule::Deadlock, &format!("and would wait forever for {what}"));
    }
}

pub fn take(context: &Context, mutex: u64) {
    if try_take(context, mutex) {
        return;
    }
    let value: FastMutex = context.read(mutex);
    if value.owner == thread_objects::current(context).0 {
        context.stop_call(Rule::Deadlock, "for a mutex that its caller already owns");
    }
    wait(context, "a mutex that is never released", || try_take(context, mutex));
}

pub fn give_back(context: &Context, mutex: u64) -> FastMutex {
    let thread = thread_objects::current(context);
    let before = context.atomically(|_| {
        let value: FastMutex = memory::read(mutex)?;
        if value.count == 1 || value.owner != thread.0 {
            return Ok(None);
        }
        memory::write(mutex, &FastMutex { count: 1, owner: 0, ..value })?;
        Ok(Some(value))
    });
    before.unwrap_or_else(|| context.stop_for_misuse("for a mutex that its caller does not own"))
}

pub fn release_plain(context: &Context, mutex: At<FastMutex>) {
    give_back(context, mutex.0);
}

/// Initializes a push lock or a rundown reference, each of which is a word.
pub fn initialize_word<T: Pointee>(context: &Context, word: At<T>) {
    context.write(word.0, &0_u64);
}
