//! Spin locks and wait locks.

use std::thread::ThreadId;

use super::wait;
use crate::{
    execution::routine::{At, Handle, Out, routine},
    ground::{NtResult, NtStatus, abi::ObjectAttributes, irql::Irql, rule::Rule},
    services::{
        kmdf::{
            binding::driver_of,
            lifetime::create_from,
            state::framework::{Context, Data, Entries, Violation},
        },
        verifier::warnings::Verifier,
    },
};

/// A spin lock. A thread that waits for the lock lets other threads run until it is free. If none
/// of them can release the lock, the threads are deadlocked.
#[derive(Default)]
pub struct SpinLockData {
    /// The owner, and its IRQL before the acquisition.
    held: Option<(ThreadId, Irql)>,
}

/// A wait lock.
#[derive(Default)]
pub struct WaitLockData {
    /// The owner.
    held: Option<ThreadId>,
}

impl Data for SpinLockData {
    const NAME: &'static str = "WDFSPINLOCK";
}

impl Data for WaitLockData {
    const NAME: &'static str = "WDFWAITLOCK";
}

pub const ENTRIES: Entries = &[
    routine("WdfSpinLockCreate", spin_lock_create),
    routine("WdfSpinLockAcquire", spin_lock_acquire),
    routine("WdfSpinLockRelease", spin_lock_release),
    routine("WdfWaitLockCreate", wait_lock_create),
    routine("WdfWaitLockAcquire", wait_lock_acquire),
    routine("WdfWaitLockRelease", wait_lock_release),
];

/// Creates a lock. Its parent is the driver unless the attributes specify another object.
fn create_lock(context: &Context, data: impl Data, attributes: u64, lock: u64) -> NtResult {
    let handle = create_from(context, data, attributes, driver_of(context))?;
    context.write(lock, &handle);
    Ok(())
}

fn spin_lock_create(
    context: &Context,
    attributes: At<ObjectAttributes>,
    lock: Out<SpinLockData>,
) -> NtResult {
    let data = SpinLockData::default();
    create_lock(context, data, attributes.0, lock.0)
}

fn spin_lock_acquire(context: &Context, lock: Handle<SpinLockData>) {
    let this = context.id();
    if lock.with(context, |lock| lock.held.is_some_and(|(owner, _)| owner == this)) {
        context.stop_call(Rule::Deadlock, "for a lock that its caller already holds");
    }
    let before = context.raise_irql(Irql::DISPATCH_LEVEL);
    context.wait_for("a spin lock that is never released", || {
        lock.with(context, |lock| {
            let free = lock.held.is_none();
            if free {
                lock.held = Some((this, before));
            }
            free.then_some(())
        })
    });
}

fn spin_lock_release(context: &Context, lock: Handle<SpinLockData>) {
    let this = context.id();
    let released = lock.with(context, |lock| lock.held.take_if(|(owner, _)| *owner == this));
    let Some((_, before)) = released else {
        /// The third parameter of `WDF_VIOLATION` if the caller is not the owner.
        const NOT_OWNER: u64 = 1;
        let what = "for a lock that its caller does not hold";
        context.violate(Violation::Lock, [lock.0, NOT_OWNER], what);
    };
    context.lower_irql(before);
}

fn wait_lock_create(
    context: &Context,
    attributes: At<ObjectAttributes>,
    lock: Out<WaitLockData>,
) -> NtResult {
    let data = WaitLockData::default();
    create_lock(context, data, attributes.0, lock.0)
}

/// Acquires a lock. The timeout is in units of 100 ns: a negative value is relative to now, a
/// positive value counts from 1601, and with 0 the call does not wait.
fn wait_lock_acquire(context: &Context, lock: Handle<WaitLockData>, timeout: At<i64>) -> NtStatus {
    let timeout: Option<i64> = context.read_optional(timeout.0);
    if timeout != Some(0) {
        context.check_irql(Irql::PASSIVE_LEVEL, "to wait", "a wait");
    }
    let this = context.id();
    let take = |lock: &mut WaitLockData| {
        let free = lock.held.is_none();
        if free {
            lock.held = Some(this);
        }
        free
    };
    if lock.with(context, take) {
        context.verifier().note_wait_lock(context, lock.0);
        return NtStatus::SUCCESS;
    }
    let clock = context.clock();
    let own = lock.with(context, |lock| lock.held == Some(this));
    let deadline = match timeout {
        Some(0) => return NtStatus::TIMEOUT,
        Some(time @ ..0) => Some(clock.last().saturating_sub(time)),
        Some(time) => Some(time.saturating_sub(clock.boot_time())),
        None if own => {
            context.stop_call(Rule::Deadlock, "for a lock that its caller already holds")
        }
        None => None,
    };
    let taken = wait::wait_until(context, deadline, |context| {
        context.framework().get::<WaitLockData>(lock.0).is_ok_and(take)
    });
    if taken {
        context.verifier().note_wait_lock(context, lock.0);
        NtStatus::SUCCESS
    } else if deadline.is_some() {
        NtStatus::TIMEOUT
    } else {
        context.stop_call(Rule::Deadlock, "for a lock that is never released")
    }
}

fn wait_lock_release(context: &Context, lock: Handle<WaitLockData>) {
    Verifier::note_wait_lock_released(context, lock.0);
    if lock.with(context, |lock| lock.held.take()).is_none() {
        context.stop_call(Rule::Deadlock, "for a lock that is not held");
    }
}
