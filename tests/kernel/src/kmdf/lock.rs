//! Spin locks.

use std::thread::ThreadId;

use super::{
    Entries, Routine,
    object::{Kind, create, read_attributes},
};
use crate::{irql::Irql, status::NtStatus, thread, verifier::Rule};

/// A spin lock. Where one processor runs driver code, one that is taken when it is wanted
/// can never become free, for whoever holds it cannot be interrupted.
#[derive(Default)]
pub struct SpinLockData {
    /// The owner, and its IRQL before it acquired the lock.
    held: Option<(ThreadId, Irql)>,
}

pub const ENTRIES: Entries = &[
    ("WdfSpinLockCreate", Routine::Three(spin_lock_create)),
    ("WdfSpinLockAcquire", Routine::Two(spin_lock_acquire)),
    ("WdfSpinLockRelease", Routine::Two(spin_lock_release)),
];

extern "win64" fn spin_lock_create(_globals: u64, attributes: u64, lock: u64) -> u64 {
    let thread = thread::current();
    let attributes = read_attributes(&thread, attributes);
    let kind = Kind::SpinLock(SpinLockData::default());
    let parent = super::driver::driver_of(&thread);
    match create(&thread, kind, attributes.as_ref(), parent) {
        Ok(handle) => {
            thread.write(lock, &handle);
            NtStatus::SUCCESS.to_register()
        }
        Err(status) => status.to_register(),
    }
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
