//! Spin locks and wait locks.

use std::thread::ThreadId;

use super::{
    driver::driver_of,
    object::{create, read_attributes},
    state::framework::{Context, Data, Entries},
    wait,
};
use crate::{
    execution::routine::Routine,
    ground::{irql::Irql, rule::Rule, status::NtStatus},
    services::verifier::Verifier,
};

/// A spin lock. A thread that waits for the lock lets other threads run until it is free. If
/// none of them can release it, that is a deadlock.
#[derive(Default)]
pub struct SpinLockData {
    /// The owner and its IRQL before the acquisition.
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
    ("WdfSpinLockCreate", Routine::Three(spin_lock_create)),
    ("WdfSpinLockAcquire", Routine::Two(spin_lock_acquire)),
    ("WdfSpinLockRelease", Routine::Two(spin_lock_release)),
    ("WdfWaitLockCreate", Routine::Three(wait_lock_create)),
    ("WdfWaitLockAcquire", Routine::Three(wait_lock_acquire)),
    ("WdfWaitLockRelease", Routine::Two(wait_lock_release)),
];

/// Creates a lock, whose parent is the driver unless the attributes name another.
fn create_lock(context: &Context, data: impl Data, attributes: u64, lock: u64) -> NtStatus {
    let attributes = read_attributes(context, attributes);
    let parent = driver_of(context);
    match create(context, data, attributes.as_ref(), parent) {
        Ok(handle) => {
            context.write(lock, &handle);
            NtStatus::SUCCESS
        }
        Err(status) => status,
    }
}

fn spin_lock_create(context: &Context, _globals: u64, attributes: u64, lock: u64) -> u64 {
    let data = SpinLockData::default();
    create_lock(context, data, attributes, lock).to_register()
}

fn spin_lock_acquire(context: &Context, _globals: u64, lock: u64) -> u64 {
    let this = context.id();
    if context
        .with::<SpinLockData, _>(lock, |lock| lock.held.is_some_and(|(owner, _)| owner == this))
    {
        context.stop(
            Rule::Deadlock,
            format!(
                "WdfSpinLockAcquire was called from {} for a lock that its caller already holds",
                context.caller()
            ),
        );
    }
    let before = context.raise_irql(Irql::DISPATCH_LEVEL);
    context.wait_for("a spin lock that is never released", || {
        context.with::<SpinLockData, _>(lock, |lock| {
            let free = lock.held.is_none();
            if free {
                lock.held = Some((this, before));
            }
            free.then_some(())
        })
    });
    0
}

fn spin_lock_release(context: &Context, _globals: u64, lock: u64) -> u64 {
    let this = context.id();
    let released = context
        .with::<SpinLockData, _>(lock, |lock| lock.held.take_if(|(owner, _)| *owner == this));
    let Some((_, before)) = released else {
        context.stop(
            Rule::IrqlNotLowered,
            format!(
                "WdfSpinLockRelease was called from {} for a lock that its caller does not hold",
                context.caller()
            ),
        );
    };
    context.lower_irql(before);
    0
}

fn wait_lock_create(context: &Context, _globals: u64, attributes: u64, lock: u64) -> u64 {
    let data = WaitLockData::default();
    create_lock(context, data, attributes, lock).to_register()
}

/// Acquires a lock. The timeout is in units of 100 ns: negative ones are relative to now, others
/// count from 1601, and 0 does not wait.
fn wait_lock_acquire(context: &Context, _globals: u64, lock: u64, timeout: u64) -> u64 {
    let call = context.call();
    let timeout: Option<i64> = (timeout != 0).then(|| context.read(timeout));
    let place = || context.caller();
    if timeout != Some(0) && call.irql > Irql::PASSIVE_LEVEL {
        context.stop(
            Rule::IrqlTooHigh,
            format!(
                "WdfWaitLockAcquire was called to wait at {} from {}; the highest IRQL for a \
                 wait is {}",
                call.irql,
                place(),
                Irql::PASSIVE_LEVEL
            ),
        );
    }
    let this = context.id();
    let take = |lock: &mut WaitLockData| {
        let free = lock.held.is_none();
        if free {
            lock.held = Some(this);
        }
        free
    };
    if context.with::<WaitLockData, _>(lock, take) {
        context.verifier().note_wait_lock(context, lock);
        return NtStatus::SUCCESS.to_register();
    }
    let clock = context.clock();
    let own = context.with::<WaitLockData, _>(lock, |lock| lock.held == Some(this));
    let deadline = match timeout {
        Some(0) => return NtStatus::TIMEOUT.to_register(),
        Some(time @ ..0) => Some(clock.last().saturating_sub(time)),
        Some(time) => Some(time.saturating_sub(clock.boot_time())),
        None if own => context.stop(
            Rule::Deadlock,
            format!(
                "WdfWaitLockAcquire was called from {} for a lock that its caller already holds",
                place()
            ),
        ),
        None => None,
    };
    let taken = wait::wait_until(context, deadline, |context| {
        context.framework().get::<WaitLockData>(lock).is_ok_and(take)
    });
    if taken {
        context.verifier().note_wait_lock(context, lock);
        NtStatus::SUCCESS.to_register()
    } else if deadline.is_some() {
        NtStatus::TIMEOUT.to_register()
    } else {
        context.stop(
            Rule::Deadlock,
            format!(
                "WdfWaitLockAcquire was called from {} for a lock that is never released",
                place()
            ),
        )
    }
}

fn wait_lock_release(context: &Context, _globals: u64, lock: u64) -> u64 {
    Verifier::note_wait_lock_released(context, lock);
    if context.with::<WaitLockData, _>(lock, |lock| lock.held.take()).is_none() {
        context.stop(
            Rule::Deadlock,
            format!(
                "WdfWaitLockRelease was called from {} for a lock that is not held",
                context.caller()
            ),
        );
    }
    0
}
