//! Remove locks (`IO_REMOVE_LOCK`), which keep a device alive until its requests are complete.

use std::collections::HashMap;

use crate::{
    execution::{
        coroutine::wait_until,
        routine::{At, Memory, routine},
    },
    ground::{
        NtResult, NtStatus,
        abi::{DispatcherHeader, RemoveLock},
        backtrace::Backtrace,
        memory,
        opaque::IoRemoveLock,
        rule::Rule,
    },
    services::ntoskrnl::{
        context::{Context, Entries},
        ke::{
            dispatcher::{check_may_wait, signal_in},
            header::{initialize as initialize_header, kind},
        },
    },
};

pub const ENTRIES: Entries = &[
    routine("IoInitializeRemoveLockEx", initialize),
    routine("IoAcquireRemoveLockEx", acquire),
    routine("IoReleaseRemoveLockEx", release),
    routine("IoReleaseRemoveLockAndWaitEx", release_and_wait),
];

/// `STATUS_DELETE_PENDING`.
const DELETE_PENDING: NtStatus = NtStatus::from_bits(0xC000_0056);

/// The holders of the locks, by lock address.
#[derive(Default)]
struct Locks(HashMap<u64, Holders>);

/// The tag of each acquisition of a lock, and its backtrace.
type Holders = Vec<(u64, Backtrace)>;

/// The offsets of a lock's fields.
const REMOVED: u64 = std::mem::offset_of!(RemoveLock, removed) as u64;
const COUNT: u64 = std::mem::offset_of!(RemoveLock, io_count) as u64;
const EVENT: u64 = std::mem::offset_of!(RemoveLock, remove_event) as u64;

fn initialize(
    context: &Context,
    lock: At<IoRemoveLock>,
    _tag: u32,
    _minutes: u32,
    _highest: u32,
    size: u32,
) {
    if (size as usize) < size_of::<RemoveLock>() {
        context.stop_for_misuse(&format!(
            "for a remove lock of {size} bytes; its size must be at least {}",
            size_of::<RemoveLock>()
        ));
    }
    let event = lock.0.wrapping_add(EVENT);
    let event_size = size_of::<DispatcherHeader>();
    initialize_header(context, event, kind::SYNCHRONIZATION_EVENT, event_size, 0);
    context.update(lock.0, |value: &mut RemoveLock| {
        value.removed = 0;
        value.io_count = 1;
    });
    context.state().get::<Locks>().0.insert(lock.0, Vec::new());
}

/// Bugchecks because a lock was not initialized.
fn stop_for_unknown(context: &Context, lock: u64) -> ! {
    context.stop_for_misuse(&format!(
        "with the remove lock at 0x{lock:016X}, which was not initialized"
    ))
}

/// Runs `body` on a lock's holders. Bugchecks if the lock was not initialized.
fn with<R>(context: &Context, lock: u64, body: impl FnOnce(&mut Holders) -> R) -> R {
    let result = context.with_state(|Locks(all)| all.get_mut(&lock).map(body));
    result.unwrap_or_else(|| stop_for_unknown(context, lock))
}

/// Runs `body` on a lock's holders and fields, and stores the fields, atomically. The lock's memory
/// may be freed after that. Bugchecks if the lock was not initialized.
fn change<R>(
    context: &Context,
    lock: u64,
    body: impl FnOnce(&mut Holders, &mut RemoveLock) -> Change<R>,
) -> R {
    let result = context.atomically(|state| {
        let Some(holders) = state.get::<Locks>().0.get_mut(&lock) else {
            return Ok(None);
        };
        let mut value: RemoveLock = memory::read(lock)?;
        let change = body(holders, &mut value);
        // The event between these fields belongs to the waiting thread.
        memory::write(lock.wrapping_add(REMOVED), &value.removed)?;
        memory::write(lock.wrapping_add(COUNT), &value.io_count)?;
        if change.signals {
            signal_in(state, lock.wrapping_add(EVENT))?;
        }
        Ok(Some(change.result))
    });
    result.unwrap_or_else(|| stop_for_unknown(context, lock))
}

/// The result of a change.
struct Change<R> {
    result: R,
    /// Set if the change signals the lock's event.
    signals: bool,
}

impl<R> Change<R> {
    const fn new(result: R) -> Self {
        Self { result, signals: false }
    }
}

/// Acquires a lock, unless its device is being removed.
fn acquire(
    context: &Context,
    lock: At<IoRemoveLock>,
    tag: Memory,
    _file: At<i8>,
    _line: u32,
    _size: u32,
) -> NtResult {
    let backtrace = context.short_backtrace();
    change(context, lock.0, |holders, value| {
        if value.removed != 0 {
            return Change::new(Err(DELETE_PENDING));
        }
        value.io_count = value.io_count.saturating_add(1);
        holders.push((tag.0, backtrace));
        Change::new(Ok(()))
    })
}

/// Removes one acquisition of a lock with this tag. Returns `false` if there is none.
fn take(holders: &mut Holders, value: &mut RemoveLock, tag: u64) -> bool {
    let at = holders.iter().rposition(|(its, _)| *its == tag);
    if let Some(at) = at {
        holders.remove(at);
        value.io_count = value.io_count.saturating_sub(1);
    }
    at.is_some()
}

/// Bugchecks if a lock was not acquired with this tag.
fn must_be_taken(context: &Context, is_taken: bool, lock: u64, tag: u64) {
    if !is_taken {
        context.stop_for_misuse(&format!(
            "for the remove lock at 0x{lock:016X}, which is not acquired with the tag 0x{tag:016X}"
        ));
    }
}

fn release(context: &Context, lock: At<IoRemoveLock>, tag: Memory, _size: u32) {
    let is_taken = change(context, lock.0, |holders, value| {
        let is_taken = take(holders, value, tag.0);
        Change { result: is_taken, signals: is_taken && value.io_count == 0 }
    });
    must_be_taken(context, is_taken, lock.0, tag.0);
}

/// Releases the lock of a device that is being removed, and waits until no thread holds it.
fn release_and_wait(context: &Context, lock: At<IoRemoveLock>, tag: Memory, _size: u32) {
    check_may_wait(context);
    let is_taken = change(context, lock.0, |holders, value| {
        let is_taken = take(holders, value, tag.0);
        if is_taken {
            value.removed = 1;
            // The device itself counts as a holder.
            value.io_count = value.io_count.saturating_sub(1);
        }
        Change::new(is_taken)
    });
    must_be_taken(context, is_taken, lock.0, tag.0);
    let is_free = || with(context, lock.0, |holders| holders.is_empty());
    if !wait_until(context, None, is_free) {
        let held = describe(context, lock.0);
        context.stop_call(
            Rule::Deadlock,
            &format!("and would wait forever for the remove lock, {held}"),
        );
    }
}

/// Describes the holders of a lock.
fn describe(context: &Context, lock: u64) -> String {
    let holders = with(context, lock, |holders| {
        let first = holders.first().cloned();
        first.map(|(tag, backtrace)| (tag, backtrace, holders.len()))
    });
    let Some((tag, backtrace, count)) = holders else {
        return "which no thread holds".to_owned();
    };
    let place = context.explain(&backtrace).place;
    format!(
        "which was acquired with the tag 0x{tag:016X} from {place} and never released ({count} in all)"
    )
}

/// Removes the locks in memory that is being freed. If a lock is still held, describes its holders.
pub fn memory_gone(context: &Context, start: u64, end: u64) -> Option<String> {
    let inside: Vec<u64> = context.with_state(|Locks(all)| {
        all.keys().copied().filter(|lock| (start..end).contains(lock)).collect()
    });
    let held = inside.iter().find_map(|lock| {
        let is_held = with(context, *lock, |holders| !holders.is_empty());
        is_held.then(|| describe(context, *lock))
    });
    context.with_state(|Locks(all)| all.retain(|lock, _| !inside.contains(lock)));
    held
}
