//! Spin locks, and the lists that routines change under one.

use std::{collections::HashMap, thread::ThreadId};

use super::context::{Context, Entries};
use crate::{
    execution::routine::{Routine, low_half},
    ground::{
        abi::LockQueueHandle,
        irql::Irql,
        memory::{self, BadAddress},
        rule::Rule,
    },
};

const HIGH: Irql = Irql::HIGH_LEVEL;
const DISPATCH: Irql = Irql::DISPATCH_LEVEL;

pub const ENTRIES: Entries = &[
    ("KeInitializeSpinLock", HIGH, Routine::One(initialize)),
    ("KeAcquireSpinLockRaiseToDpc", DISPATCH, Routine::One(acquire_raising)),
    ("KeReleaseSpinLock", DISPATCH, Routine::Two(release_lowering)),
    ("KeAcquireSpinLockAtDpcLevel", HIGH, Routine::One(acquire_at_dispatch)),
    ("KeReleaseSpinLockFromDpcLevel", HIGH, Routine::One(release_at_dispatch)),
    ("KeTryToAcquireSpinLockAtDpcLevel", HIGH, Routine::One(try_at_dispatch)),
    ("KeTestSpinLock", HIGH, Routine::One(test)),
    ("KeAcquireInStackQueuedSpinLock", DISPATCH, Routine::Two(acquire_queued)),
    ("KeReleaseInStackQueuedSpinLock", DISPATCH, Routine::One(release_queued)),
    ("KeAcquireInStackQueuedSpinLockAtDpcLevel", HIGH, Routine::Two(acquire_queued_at_dispatch)),
    ("KeReleaseInStackQueuedSpinLockFromDpcLevel", HIGH, Routine::One(release_queued_at_dispatch)),
    // A threaded DPC runs below `DISPATCH_LEVEL`, others at it.
    ("KeAcquireSpinLockForDpc", DISPATCH, Routine::One(acquire_raising)),
    ("KeReleaseSpinLockForDpc", DISPATCH, Routine::Two(release_lowering)),
    ("KeAcquireInStackQueuedSpinLockForDpc", DISPATCH, Routine::Two(acquire_queued)),
    ("KeReleaseInStackQueuedSpinLockForDpc", DISPATCH, Routine::One(release_queued)),
    ("ExInterlockedInsertHeadList", HIGH, Routine::Three(insert_head)),
    ("ExInterlockedInsertTailList", HIGH, Routine::Three(insert_tail)),
    ("ExInterlockedRemoveHeadList", HIGH, Routine::Two(remove_head)),
    ("ExInterlockedPushEntryList", HIGH, Routine::Three(push_entry)),
    ("ExInterlockedPopEntryList", HIGH, Routine::Two(pop_entry)),
    ("ExInterlockedAddUlong", HIGH, Routine::Three(add_ulong)),
    ("InitializeSListHead", HIGH, Routine::One(initialize_slist)),
    ("ExpInterlockedPushEntrySList", HIGH, Routine::Two(push_slist)),
    ("ExpInterlockedPopEntrySList", HIGH, Routine::One(pop_slist)),
    ("ExpInterlockedFlushSList", HIGH, Routine::One(flush_slist)),
    ("ExQueryDepthSList", HIGH, Routine::One(slist_depth)),
];

/// The held locks by address, each with its owner.
#[derive(Default)]
struct Held(HashMap<u64, ThreadId>);

/// The value of a lock that is held. Drivers can only test that it is not 0.
const LOCKED: u64 = 1;

fn initialize(context: &Context, lock: u64) -> u64 {
    context.write(lock, &0_u64);
    context.state().get::<Held>().0.remove(&lock);
    0
}

/// The result of an attempt to take a lock.
enum Attempt {
    Taken,
    HeldBy(ThreadId),
    /// The value is not that of a lock.
    NotALock(u64),
}

/// Takes a lock that is free. Returns its owner if it is not.
fn try_take(context: &Context, lock: u64) -> Result<(), ThreadId> {
    let attempt = context.atomically(|state| {
        let value: u64 = memory::read(lock)?;
        let held = &mut state.get::<Held>().0;
        if value == 0 {
            memory::write(lock, &LOCKED)?;
            // Another object may have been at this address.
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
fn take(context: &Context, lock: u64) {
    match try_take(context, lock) {
        Ok(()) => {}
        Err(owner) if owner == context.id() => context.stop(
            Rule::Deadlock,
            format!(
                "{} was called from {} for a spin lock that its caller already holds",
                context.call().name,
                context.caller()
            ),
        ),
        Err(_) => {
            context.wait_for("a spin lock that is never released", || try_take(context, lock).ok());
        }
    }
}

fn give_back(context: &Context, lock: u64) {
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
        context.stop(
            Rule::IrqlNotLowered,
            format!(
                "{} was called from {} for a spin lock that its caller does not hold",
                context.call().name,
                context.caller()
            ),
        );
    }
}

fn acquire_raising(context: &Context, lock: u64) -> u64 {
    let before = context.raise_irql(DISPATCH);
    take(context, lock);
    u64::from(before.number())
}

fn release_lowering(context: &Context, lock: u64, irql: u64) -> u64 {
    context.require_at_least(DISPATCH);
    give_back(context, lock);
    context.lower_irql(Irql::from_number((irql & 0xFF) as u8));
    0
}

fn acquire_at_dispatch(context: &Context, lock: u64) -> u64 {
    context.require_at_least(DISPATCH);
    take(context, lock);
    0
}

fn release_at_dispatch(context: &Context, lock: u64) -> u64 {
    context.require_at_least(DISPATCH);
    give_back(context, lock);
    0
}

fn try_at_dispatch(context: &Context, lock: u64) -> u64 {
    context.require_at_least(DISPATCH);
    u64::from(try_take(context, lock).is_ok())
}

/// Returns whether a lock is free.
fn test(context: &Context, lock: u64) -> u64 {
    let value: u64 = context.read(lock);
    u64::from(value == 0)
}

fn acquire_queued(context: &Context, lock: u64, handle: u64) -> u64 {
    let before = context.raise_irql(DISPATCH);
    enter_queue(context, lock, handle, before);
    0
}

fn acquire_queued_at_dispatch(context: &Context, lock: u64, handle: u64) -> u64 {
    context.require_at_least(DISPATCH);
    enter_queue(context, lock, handle, context.irql());
    0
}

fn enter_queue(context: &Context, lock: u64, handle: u64, before: Irql) {
    take(context, lock);
    let value = LockQueueHandle { queue: [0, lock], old_irql: before.number(), reserved: [0; 7] };
    context.write(handle, &value);
}

fn release_queued(context: &Context, handle: u64) -> u64 {
    context.require_at_least(DISPATCH);
    let value: LockQueueHandle = context.read(handle);
    give_back(context, value.queue[1]);
    context.lower_irql(Irql::from_number(value.old_irql));
    0
}

fn release_queued_at_dispatch(context: &Context, handle: u64) -> u64 {
    context.require_at_least(DISPATCH);
    let value: LockQueueHandle = context.read(handle);
    give_back(context, value.queue[1]);
    0
}

/// Runs `body` with a lock held and interrupts masked.
fn locked<R>(context: &Context, lock: u64, body: impl FnOnce() -> R) -> R {
    let before = context.raise_irql(context.irql().max(Irql::HIGH_LEVEL));
    take(context, lock);
    let result = body();
    give_back(context, lock);
    context.lower_irql(before);
    result
}

/// The offset of a list entry's link back.
pub const BACK: u64 = 8;

/// Returns a list's first or last entry, or null if the list is empty.
fn neighbour(context: &Context, head: u64, link: u64) -> u64 {
    let entry: u64 = context.read(head.wrapping_add(link));
    if entry == head { 0 } else { entry }
}

/// Bugchecks if the links around an entry do not lead to it and back, as Windows does.
pub fn check_links(context: &Context, before: u64, after: u64) {
    let forward: u64 = context.read(before);
    let back: u64 = context.read(after.wrapping_add(BACK));
    if forward != after || back != before {
        context.stop_for_misuse("with a list whose links are corrupt");
    }
}

/// Inserts an entry between two neighbours of a list.
pub fn insert_between(context: &Context, entry: u64, before: u64, after: u64) {
    check_links(context, before, after);
    context.write(entry, &[after, before]);
    context.write(before, &entry);
    context.write(after.wrapping_add(BACK), &entry);
}

/// Takes an entry out of its list.
pub fn unlink(context: &Context, entry: u64) {
    let [next, before]: [u64; 2] = context.read(entry);
    check_links(context, before, entry);
    check_links(context, entry, next);
    context.write(before, &next);
    context.write(next.wrapping_add(BACK), &before);
}

fn insert_head(context: &Context, head: u64, entry: u64, lock: u64) -> u64 {
    locked(context, lock, || {
        let first = neighbour(context, head, 0);
        let after: u64 = context.read(head);
        insert_between(context, entry, head, after);
        first
    })
}

fn insert_tail(context: &Context, head: u64, entry: u64, lock: u64) -> u64 {
    locked(context, lock, || {
        let last = neighbour(context, head, BACK);
        let before: u64 = context.read(head.wrapping_add(BACK));
        insert_between(context, entry, before, head);
        last
    })
}

fn remove_head(context: &Context, head: u64, lock: u64) -> u64 {
    locked(context, lock, || {
        let first = neighbour(context, head, 0);
        if first != 0 {
            unlink(context, first);
        }
        first
    })
}

fn push_entry(context: &Context, head: u64, entry: u64, lock: u64) -> u64 {
    locked(context, lock, || {
        let first: u64 = context.read(head);
        context.write(entry, &first);
        context.write(head, &entry);
        first
    })
}

fn pop_entry(context: &Context, head: u64, lock: u64) -> u64 {
    locked(context, lock, || {
        let first: u64 = context.read(head);
        if first != 0 {
            let next: u64 = context.read(first);
            context.write(head, &next);
        }
        first
    })
}

fn add_ulong(context: &Context, addend: u64, increment: u64, lock: u64) -> u64 {
    locked(context, lock, || {
        let before: u32 = context.read(addend);
        context.write(addend, &before.wrapping_add(low_half(increment)));
        u64::from(before)
    })
}

/// A sequenced list's header: the depth in the low 16 bits and a count of changes above it, then the
/// address of the first entry, whose low 4 bits are 0.
type SListHeader = [u64; 2];

const DEPTH: u64 = 0xFFFF;
const SEQUENCE_STEP: u64 = 0x1_0000;

/// Changes a sequenced list as one step.
fn change_slist<R>(
    context: &Context,
    head: u64,
    body: impl FnOnce(&mut SListHeader) -> Result<R, BadAddress>,
) -> R {
    if !head.is_multiple_of(16) {
        context.stop_for_misuse("with a list header that is not aligned to 16 bytes");
    }
    context.atomically(|_| {
        let mut header: SListHeader = memory::read(head)?;
        let result = body(&mut header)?;
        header[0] = header[0].wrapping_add(SEQUENCE_STEP);
        memory::write(head, &header)?;
        Ok(result)
    })
}

fn initialize_slist(context: &Context, head: u64) -> u64 {
    if !head.is_multiple_of(16) {
        context.stop_for_misuse("with a list header that is not aligned to 16 bytes");
    }
    context.write(head, &[0_u64; 2]);
    0
}

fn push_slist(context: &Context, head: u64, entry: u64) -> u64 {
    if !entry.is_multiple_of(16) {
        context.stop_for_misuse("with a list entry that is not aligned to 16 bytes");
    }
    change_slist(context, head, |header| {
        let first = header[1] & !0xF;
        memory::write(entry, &first)?;
        header[1] = entry;
        header[0] = (header[0] & !DEPTH) | (header[0].wrapping_add(1) & DEPTH);
        Ok(first)
    })
}

fn pop_slist(context: &Context, head: u64) -> u64 {
    change_slist(context, head, |header| {
        let first = header[1] & !0xF;
        if first != 0 {
            header[1] = memory::read(first)?;
            header[0] = (header[0] & !DEPTH) | (header[0].wrapping_sub(1) & DEPTH);
        }
        Ok(first)
    })
}

fn flush_slist(context: &Context, head: u64) -> u64 {
    change_slist(context, head, |header| {
        header[0] &= !DEPTH;
        Ok(std::mem::take(&mut header[1]) & !0xF)
    })
}

fn slist_depth(context: &Context, head: u64) -> u64 {
    let header: SListHeader = context.read(head);
    header[0] & DEPTH
}
