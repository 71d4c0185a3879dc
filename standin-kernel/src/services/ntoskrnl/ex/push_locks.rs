//! Push locks.

use crate::{
    execution::routine::{Memory, routine},
    services::ntoskrnl::{
        context::{Context, Entries},
        ke::mutexes::{change_word, initialize_word, wait},
    },
};

pub const ENTRIES: Entries = &[
    routine("ExInitializePushLock", initialize_word::<u64>),
    routine("ExAcquirePushLockExclusiveEx", acquire_exclusive),
    routine("ExAcquirePushLockSharedEx", acquire_shared),
    routine("ExReleasePushLockExclusiveEx", release_exclusive),
    routine("ExReleasePushLockSharedEx", release_shared),
];

/// The value of a push lock that is held exclusively. Each thread that shares the lock adds
/// `SHARED`.
const EXCLUSIVE: u64 = 1;

const SHARED: u64 = 0x10;

fn acquire_exclusive(context: &Context, lock: Memory, _flags: u32) {
    wait(context, "a push lock that is never released", || {
        change_word(context, lock.0, |value| (value == 0).then_some(EXCLUSIVE)).is_some()
    });
}

fn acquire_shared(context: &Context, lock: Memory, _flags: u32) {
    let share = |value: u64| (value & EXCLUSIVE == 0).then(|| value.wrapping_add(SHARED));
    wait(context, "a push lock that is never released", || {
        change_word(context, lock.0, share).is_some()
    });
}

fn release_exclusive(context: &Context, lock: Memory, _flags: u32) {
    let is_held = |value: u64| (value == EXCLUSIVE).then_some(0);
    if change_word(context, lock.0, is_held).is_none() {
        context.stop_for_misuse("for a push lock that is not held exclusively");
    }
}

fn release_shared(context: &Context, lock: Memory, _flags: u32) {
    let is_shared = |value: u64| (value & EXCLUSIVE == 0).then(|| value.checked_sub(SHARED));
    if change_word(context, lock.0, |value| is_shared(value).flatten()).is_none() {
        context.stop_for_misuse("for a push lock that is not shared");
    }
}
