//! Remove locks (`IO_REMOVE_LOCK`), which keep a device until its requests are done.

use std::collections::HashMap;

use super::super::{
    context::{Context, Entries},
    dispatcher::{check_may_wait, set_state},
    header::{initialize as initialize_header, kind},
};
use crate::{
    execution::{coroutine::wait_until, routine::Routine},
    ground::{
        abi::DispatcherHeader, backtrace::Backtrace, irql::Irql, pnp_abi::RemoveLock, rule::Rule,
        status::NtStatus,
    },
};

const PASSIVE: Irql = Irql::PASSIVE_LEVEL;
const DISPATCH: Irql = Irql::DISPATCH_LEVEL;

pub const ENTRIES: Entries = &[
    (
        "IoInitializeRemoveLockEx",
        PASSIVE,
        Routine::Five(initialize),
    ),
    ("IoAcquireRemoveLockEx", DISPATCH, Routine::Five(acquire)),
    ("IoReleaseRemoveLockEx", DISPATCH, Routine::Three(release)),
    (
        "IoReleaseRemoveLockAndWaitEx",
        PASSIVE,
        Routine::Three(release_and_wait),
    ),
];

/// `STATUS_DELETE_PENDING`.
const DELETE_PENDING: NtStatus = NtStatus::from_bits(0xC000_0056);

/// The locks by their addresses, with who holds them: the tag and the place of each acquisition.
#[derive(Default)]
struct Locks(HashMap<u64, Vec<(u64, Backtrace)>>);

/// The offset of the event in a lock.
const EVENT: u64 = std::mem::offset_of!(RemoveLock, event) as u64;

fn initialize(
    context: &Context,
    lock: u64,
    _tag: u64,
    _minutes: u64,
    _highest: u64,
    size: u64,
) -> u64 {
    if (size & 0xFFFF_FFFF) < size_of::<RemoveLock>() as u64 {
        context.stop_for_misuse(&format!(
            "for a remove lock of {} bytes; it has at least {}",
            size & 0xFFFF_FFFF,
            size_of::<RemoveLock>()
        ));
    }
    let event = lock.wrapping_add(EVENT);
    initialize_header(
        context,
        event,
        kind::SYNCHRONIZATION_EVENT,
        size_of::<DispatcherHeader>(),
        0,
    );
    let mut value: RemoveLock = context.read(lock);
    value.removed = 0;
    value.count = 1;
    context.write(lock, &value);
    context.state().get::<Locks>().0.insert(lock, Vec::new());
    0
}

/// Runs `body` on a lock's holders. Bugchecks if the lock was not initialized.
fn with<R>(context: &Context, lock: u64, body: impl FnOnce(&mut Vec<(u64, Backtrace)>) -> R) -> R {
    let result = context.state().get::<Locks>().0.get_mut(&lock).map(body);
    result.unwrap_or_else(|| {
        context.stop_for_misuse(&format!(
            "with the remove lock at 0x{lock:016X}, which was not initialized"
        ))
    })
}

/// Acquires a lock, unless its device is being removed.
fn acquire(context: &Context, lock: u64, tag: u64, _file: u64, _line: u64, _size: u64) -> u64 {
    with(context, lock, |_| ());
    let mut value: RemoveLock = context.read(lock);
    if value.removed != 0 {
        return DELETE_PENDING.to_register();
    }
    value.count = value.count.saturating_add(1);
    context.write(lock, &value);
    let backtrace = context.short_backtrace();
    with(context, lock, |holders| holders.push((tag, backtrace)));
    NtStatus::SUCCESS.to_register()
}

/// Takes one of a lock's acquisitions with a tag.
fn take(context: &Context, lock: u64, tag: u64) {
    let taken = with(context, lock, |holders| {
        let at = holders.iter().rposition(|(its, _)| *its == tag);
        at.map(|at| holders.remove(at))
    });
    if taken.is_none() {
        context.stop_for_misuse(&format!(
            "for the remove lock at 0x{lock:016X}, which is not acquired with the tag 0x{tag:016X}"
        ));
    }
    let mut value: RemoveLock = context.read(lock);
    value.count = value.count.saturating_sub(1);
    context.write(lock, &value);
}

fn release(context: &Context, lock: u64, tag: u64, _size: u64) -> u64 {
    take(context, lock, tag);
    if context.read::<RemoveLock>(lock).count == 0 {
        set_state(context, lock.wrapping_add(EVENT), 1);
    }
    0
}

/// Releases a lock of a device that is being removed, and waits until nobody holds it.
fn release_and_wait(context: &Context, lock: u64, tag: u64, _size: u64) -> u64 {
    take(context, lock, tag);
    check_may_wait(context);
    let mut value: RemoveLock = context.read(lock);
    value.removed = 1;
    // The device itself counts as a holder.
    value.count = value.count.saturating_sub(1);
    context.write(lock, &value);
    let is_free = || with(context, lock, |holders| holders.is_empty());
    if !wait_until(context, None, is_free) {
        let caller = context.caller();
        let held = describe(context, lock);
        context.stop(
            Rule::Deadlock,
            format!(
                "{} was called from {caller} and waits forever for the remove lock, {held}",
                context.call().name
            ),
        );
    }
    0
}

/// Describes who holds a lock.
fn describe(context: &Context, lock: u64) -> String {
    let holders = with(context, lock, |holders| {
        let first = holders.first().cloned();
        first.map(|(tag, backtrace)| (tag, backtrace, holders.len()))
    });
    let Some((tag, backtrace, count)) = holders else {
        return "which nobody holds".to_owned();
    };
    let place = context.explain(&backtrace).place;
    format!(
        "which was acquired with the tag 0x{tag:016X} from {place} and never released ({count} in all)"
    )
}

/// Forgets the locks in memory that goes away. Returns who still holds one of them.
pub fn memory_gone(context: &Context, from: u64, to: u64) -> Option<String> {
    let inside: Vec<u64> = {
        let mut state = context.state();
        let locks = state.get::<Locks>().0.keys().copied();
        locks.filter(|lock| (from..to).contains(lock)).collect()
    };
    let held = inside.iter().find_map(|lock| {
        let is_held = with(context, *lock, |holders| !holders.is_empty());
        is_held.then(|| describe(context, *lock))
    });
    let mut state = context.state();
    let locks = &mut state.get::<Locks>().0;
    for lock in inside {
        locks.remove(&lock);
    }
    held
}
