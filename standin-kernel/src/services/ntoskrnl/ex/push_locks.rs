//! Push locks.

use crate::{
    execution::routine::Routine,
    ground::irql::Irql,
    services::ntoskrnl::{
        context::{Context, Entries},
        ke::mutexes::{change_word, initialize_word, wait},
    },
};

const HIGH: Irql = Irql::HIGH_LEVEL;
const APC: Irql = Irql::APC_LEVEL;

pub const ENTRIES: Entries = &[
    ("ExInitializePushLock", HIGH, Routine::of(initialize_word)),
    ("ExAcquirePushLockExclusiveEx", APC, Routine::of(acquire_exclusive)),
    ("ExAcquirePushLockSharedEx", APC, Routine::of(acquire_shared)),
    ("ExReleasePushLockExclusiveEx", APC, Routine::of(release_exclusive)),
    ("ExReleasePushLockSharedEx", APC, Routine::of(release_shared)),
];

/// The value of a push lock that is held exclusively. Each thread that shares the lock adds
/// `SHARED`.
const EXCLUSIVE: u64 = 1;

const SHARED: u64 = 0x10;

fn acquire_exclusive(context: &Context, lock: u64, _flags: u32) {
    wait(context, "a push lock that is never released", || {
        change_word(context, lock, |value| (value == 0).then_some(EXCLUSIVE)).is_some()
    });
}

fn acquire_shared(context: &Context, lock: u64, _flags: u32) {
    let share = |value: u64| (value & EXCLUSIVE == 0).then(|| value.wrapping_add(SHARED));
    wait(context, "a push lock that is never released", || {
        change_word(context, lock, share).is_some()
    });
}

fn release_exclusive(context: &Context, lock: u64, _flags: u32) {
    let is_held = |value: u64| (value == EXCLUSIVE).then_some(0);
    if change_word(context, lock, is_held).is_none() {
        context.stop_for_misuse("for a push lock that is not held exclusively");
    }
}

fn release_shared(context: &Context, lock: u64, _flags: u32) {
    let is_shared = |value: u64| (value & EXCLUSIVE == 0).then(|| value.checked_sub(SHARED));
    if change_word(context, lock, |value| is_shared(value).flatten()).is_none() {
        context.stop_for_misuse("for a push lock that is not shared");
    }
}
