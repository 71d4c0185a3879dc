//! Spin locks and wait locks.

use std::thread::ThreadId;

use super::{
    Entries, Routine, lock_framework,
    object::{Kind, create, read_attributes},
    wait,
};
use crate::{
    irql::Irql,
    status::NtStatus,
    thread::{self, Thread},
    verifier::Rule,
};

/// A spin lock. Where one processor runs driver code, one that is taken when it is wanted
/// can never become free, for whoever holds it cannot be interrupted.
#[derive(Default)]
pub struct SpinLockData {
    /// The owner, and its IRQL before it acquired the lock.
    held: Option<(ThreadId, Irql)>,
}

/// A wait lock.
#[derive(Default)]
pub struct WaitLockData {
    /// Who acquired it.
    held: Option<ThreadId>,
}

pub const ENTRIES: Entries = &[
    ("WdfSpinLockCreate", Routine::Three(spin_lock_create)),
    ("WdfSpinLockAcquire", Routine::Two(spin_lock_acquire)),
    ("WdfSpinLockRelease", Routine::Two(spin_lock_release)),
    ("WdfWaitLockCreate", Routine::Three(wait_lock_create)),
    ("WdfWaitLockAcquire", Routine::Three(wait_lock_acquire)),
    ("WdfWaitLockRelease", Routine::Two(wait_lock_release)),
];

/// Makes a lock, the driver's unless the attributes say otherwise.
fn create_lock(thread: &Thread, kind: Kind, attributes: u64, lock: u64) -> NtStatus {
    let attributes = read_attributes(thread, attributes);
    let parent = super::driver::driver_of(thread);
    match create(thread, kind, attributes.as_ref(), parent) {
        Ok(handle) => {
            thread.write(lock, &handle);
            NtStatus::SUCCESS
        }
        Err(status) => status,
    }
}

extern "win64" fn spin_lock_create(_globals: u64, attributes: u64, lock: u64) -> u64 {
    let kind = Kind::SpinLock(SpinLockData::default());
    create_lock(&thread::current(), kind, attributes, lock).to_register()
}

extern "win64" fn spin_lock_acquire(_globals: u64, lock: u64) -> u64 {
    let thread = thread::current();
    let call = thread.call();
    let this = std::thread::current().id();
    if thread.with::<SpinLockData, _>(lock, |lock| {
        lock.held.is_some_and(|(owner, _)| owner == this)
    }) {
        thread.stop(
            Rule::Deadlock,
            format!(
                "WdfSpinLockAcquire was called from {} for a lock that its caller holds",
                thread.shared().place(call.return_address)
            ),
        );
    }
    let before = thread.raise_irql(Irql::DISPATCH_LEVEL);
    thread.wait_for("a spin lock that is held", || {
        thread.with::<SpinLockData, _>(lock, |lock| {
            let free = lock.held.is_none();
            if free {
                lock.held = Some((this, before));
            }
            free.then_some(())
        })
    });
    0
}

extern "win64" fn spin_lock_release(_globals: u64, lock: u64) -> u64 {
    let thread = thread::current();
    let call = thread.call();
    let this = std::thread::current().id();
    let released =
        thread.with::<SpinLockData, _>(lock, |lock| lock.held.take_if(|(owner, _)| *owner == this));
    let Some((_, before)) = released else {
        thread.stop(
            Rule::IrqlNotLowered,
            format!(
                "WdfSpinLockRelease was called from {} for a lock that its caller does not hold",
                thread.shared().place(call.return_address)
            ),
        );
    };
    thread.lower_irql(before);
    0
}

extern "win64" fn wait_lock_create(_globals: u64, attributes: u64, lock: u64) -> u64 {
    let kind = Kind::WaitLock(WaitLockData::default());
    create_lock(&thread::current(), kind, attributes, lock).to_register()
}

/// A timeout is in units of 100 ns: negative ones from now on, others since 1601,
/// and 0 for a try.
extern "win64" fn wait_lock_acquire(_globals: u64, lock: u64, timeout: u64) -> u64 {
    let thread = thread::current();
    let call = thread.call();
    let timeout: Option<i64> = (timeout != 0).then(|| thread.read(timeout));
    let place = || thread.shared().place(call.return_address);
    if timeout != Some(0) && call.irql > Irql::PASSIVE_LEVEL {
        thread.stop(
            Rule::IrqlTooHigh,
            format!(
                "WdfWaitLockAcquire was called to wait at {} from {}; the highest IRQL it may \
                 wait at is {}",
                call.irql,
                place(),
                Irql::PASSIVE_LEVEL
            ),
        );
    }
    let this = std::thread::current().id();
    let take = |lock: &mut WaitLockData| {
        let free = lock.held.is_none();
        if free {
            lock.held = Some(this);
        }
        free
    };
    if thread.with::<WaitLockData, _>(lock, take) {
        thread.note_wait_lock(lock);
        return NtStatus::SUCCESS.to_register();
    }
    let clock = &thread.shared().clock;
    let own = thread.with::<WaitLockData, _>(lock, |lock| lock.held == Some(this));
    let deadline = match timeout {
        Some(0) => return NtStatus::TIMEOUT.to_register(),
        Some(time @ ..0) => Some(clock.last().saturating_sub(time)),
        Some(time) => Some(time.saturating_sub(clock.boot_time())),
        None if own => thread.stop(
            Rule::Deadlock,
            format!(
                "WdfWaitLockAcquire was called from {} for a lock that its caller holds",
                place()
            ),
        ),
        None => None,
    };
    let taken = wait::wait_until(&thread, deadline, |thread| {
        lock_framework(thread.shared())
            .get::<WaitLockData>(lock)
            .is_ok_and(take)
    });
    if taken {
        thread.note_wait_lock(lock);
        NtStatus::SUCCESS.to_register()
    } else if deadline.is_some() {
        NtStatus::TIMEOUT.to_register()
    } else {
        thread.stop(
            Rule::Deadlock,
            format!(
                "WdfWaitLockAcquire was called from {} for a lock that nothing releases",
                place()
            ),
        )
    }
}

extern "win64" fn wait_lock_release(_globals: u64, lock: u64) -> u64 {
    let thread = thread::current();
    let call = thread.call();
    thread.note_wait_lock_released(lock);
    if thread
        .with::<WaitLockData, _>(lock, |lock| lock.held.take())
        .is_none()
    {
        thread.stop(
            Rule::Deadlock,
            format!(
                "WdfWaitLockRelease was called from {} for a lock that is not held",
                thread.shared().place(call.return_address)
            ),
        );
    }
    0
}
