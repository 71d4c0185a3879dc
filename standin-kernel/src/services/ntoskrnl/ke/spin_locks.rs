//! Spin locks.

use crate::{
    execution::routine::{At, routine},
    ground::{abi::LockQueueHandle, irql::Irql, memory, rule::Rule},
    services::ntoskrnl::context::{Context, Entries},
};
use std::{collections::HashMap, thread::ThreadId};

const DISPATCH: Irql = Irql::DISPATCH_LEVEL;

pub const ENTRIES: Entries = &[
    routine("KeInitializeSpinLock", initialize),
    routine("KeAcquireSpinLockRaiseToDpc", acquire_raising),
    routine("KeReleaseSpinLock", release_lowering),
    routine("KeAcquireSpinLockAtDpcLevel", acquire_at_dispatch),
    routine("KeReleaseSpinLockFromDpcLevel", release_at_dispatch),
    routine("KeTryToAcquireSpinLockAtDpcLevel", try_at_dispatch),
    routine("KeTestSpinLock", test),
    routine("KeAcquireInStackQueuedSpinLock", acquire_queued),
    routine("KeReleaseInStackQueuedSpinLock", release_queued),
    routine("KeAcquireInStackQueuedSpinLockAtDpcLevel", acquire_queued_at_dispatch),
    routine("KeReleaseInStackQueuedSpinLockFromDpcLevel", release_queued_at_dispatch),
    // Threaded DPCs run below `DISPATCH_LEVEL`, and other DPCs at that level.
    routine("KeAcquireSpinLockForDpc", acquire_raising),
    routine("KeReleaseSpinLockForDpc", release_lowering),
    routine("KeAcquireInStackQueuedSpinLockForDpc", acquire_queued),
    routine("KeReleaseInStackQueuedSpinLockForDpc", release_queued),
];

/// The held locks, by address, and their owners.
#[derive(Default)]
struct Held(HashMap<u64, ThreadId>);

/// The value of a held lock. Drivers can only test whether it is 0.
const LOCKED: u64 = 1;

fn initialize(context: &Context, lock: At<u64>) {
    lock.write(context, 0_u64);
    context.state().get::<Held>().0.remove(&lock.0);
}

/// The result of an attempt to acquire a lock.
enum Attempt {
    Taken,
    HeldBy(ThreadId),
    /// A spin lock cannot have this value.
    NotALock(u64),
}

/// Acquires a lock if it is free. Otherwise, returns its owner.
fn try_take(context: &Context, lock: u64) -> Result<(), ThreadId> {
    let attempt = context.atomically(|state| {
        let value: u64 = memory::read(lock)?;
        let held = &mut state.get::<Held>().0;
        if value == 0 {
            memory::write(lock, &LOCKED)?;
            // Another object may previously have been at this address.
            held.insert(lock, context.id());
            return Ok(Attempt::Taken);
        }
        let owner = held.get(&lock).copied();
        Ok(owner.map_or(Attempt::NotALock(value), Attempt::HeldBy))
    });
    match attempt {
        Attempt::Taken => Ok(()),
        Attempt::HeldBy(owner) => Err(owner),
        Attempt::NotALock(value) => context.stop_for_misuse(&format!(
            "with the spin lock at 0x{lock:016X}, whose value is 0x{value:X}: it was not initialized"
        )),
    }
}

/// Acquires a lock at the current IRQL, which is at least `DISPATCH_LEVEL`.
pub fn take(context: &Context, lock: u64) {
    match try_take(context, lock) {
        Ok(()) => {}
        Err(owner) if owner == context.id() => {
            context.stop_call(Rule::Deadlock, "for a spin lock that its caller already holds")
        }
        Err(_) => {
            context.wait_for("a spin lock that is never released", || try_take(context, lock).ok());
        }
    }
}

pub fn give_back(context: &Context, lock: u64) {
    let is_owner = context.atomically(|state| {
        let held = &mut state.get::<Held>().0;
        let is_owner = held.get(&lock) == Some(&context.id());
        if is_owner {
            memory::write(lock, &0_u64)?;
            held.remove(&lock);
        }
        Ok(is_owner)
    });
    if !is_owner {
        context.stop_call(Rule::IrqlNotLowered, "for a spin lock that its caller does not hold");
    }
}

fn acquire_raising(context: &Context, lock: At<u64>) -> u8 {
    let before = context.raise_irql(DISPATCH);
    take(context, lock.0);
    before.number()
}

fn release_lowering(context: &Context, lock: At<u64>, irql: u8) {
    context.require_at_least(DISPATCH);
    give_back(context, lock.0);
    context.lower_irql(Irql::from_number(irql));
}

fn acquire_at_dispatch(context: &Context, lock: At<u64>) {
    context.require_at_least(DISPATCH);
    take(context, lock.0);
}

fn release_at_dispatch(context: &Context, lock: At<u64>) {
    context.require_at_least(DISPATCH);
    give_back(context, lock.0);
}

fn try_at_dispatch(context: &Context, lock: At<u64>) -> bool {
    context.require_at_least(DISPATCH);
    try_take(context, lock.0).is_ok()
}

fn test(context: &Context, lock: At<u64>) -> bool {
    lock.read(context) == 0
}

fn acquire_queued(context: &Context, lock: At<u64>, handle: At<LockQueueHandle>) {
    let before = context.raise_irql(DISPATCH);
    enter_queue(context, lock.0, handle.0, before);
}

fn acquire_queued_at_dispatch(context: &Context, lock: At<u64>, handle: At<LockQueueHandle>) {
    context.require_at_least(DISPATCH);
    enter_queue(context, lock.0, handle.0, context.irql());
}

fn enter_queue(context: &Context, lock: u64, handle: u64, before: Irql) {
    take(context, lock);
    let value =
        LockQueueHandle { lock_queue: [0, lock], old_irql: before.number(), ..Default::default() };
    context.write(handle, &value);
}

fn release_queued(context: &Context, handle: At<LockQueueHandle>) {
    context.require_at_least(DISPATCH);
    let value = handle.read(context);
    give_back(context, value.lock_queue[1]);
    context.lower_irql(Irql::from_number(value.old_irql));
}

fn release_queued_at_dispatch(context: &Context, handle: At<LockQueueHandle>) {
    context.require_at_least(DISPATCH);
    let value = handle.read(context);
    give_back(context, value.lock_queue[1]);
}

/// The offset of a list entry's backward link.
pub const BACK: u64 = 8;

/// Bugchecks if the links around an entry are inconsistent, as Windows does.
pub fn check_links(context: &Context, before: u64, after: u64) {
    let forward: u64 = context.read(before);
    let back: u64 = context.read(after.wrapping_add(BACK));
    if forward != after || back != before {
        context.stop_for_misuse("with a list whose links are corrupt");
    }
}

/// Inserts an entry between two adjacent entries of a list.
pub fn insert_between(context: &Context, entry: u64, before: u64, after: u64) {
    check_links(context, before, after);
    context.write(entry, &[after, before]);
    context.write(before, &entry);
    context.write(after.wrapping_add(BACK), &entry);
}

/// Removes an entry from its list.
pub fn unlink(context: &Context, entry: u64) {
    let [next, before]: [u64; 2] = context.read(entry);
    check_links(context, before, entry);
    check_links(context, entry, next);
    context.write(before, &next);
    context.write(next.wrapping_add(BACK), &before);
}
