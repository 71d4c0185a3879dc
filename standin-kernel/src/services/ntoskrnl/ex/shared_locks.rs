//! Reader/writer spin locks (`EX_SPIN_LOCK`).

use std::{collections::HashMap, thread::ThreadId};

use crate::{
    execution::routine::{At, routine},
    ground::{irql::Irql, memory, rule::Rule},
    services::ntoskrnl::context::{Context, Entries},
};

const DISPATCH: Irql = Irql::DISPATCH_LEVEL;

pub const ENTRIES: Entries = &[
    routine("ExAcquireSpinLockShared", acquire_raising::<false>),
    routine("ExAcquireSpinLockExclusive", acquire_raising::<true>),
    routine("ExReleaseSpinLockShared", release_lowering::<false>),
    routine("ExReleaseSpinLockExclusive", release_lowering::<true>),
    routine("ExAcquireSpinLockSharedAtDpcLevel", acquire::<false>),
    routine("ExAcquireSpinLockExclusiveAtDpcLevel", acquire::<true>),
    routine("ExReleaseSpinLockSharedFromDpcLevel", release::<false>),
    routine("ExReleaseSpinLockExclusiveFromDpcLevel", release::<true>),
    routine("ExTryAcquireSpinLockSharedAtDpcLevel", try_acquire::<false>),
    routine("ExTryAcquireSpinLockExclusiveAtDpcLevel", try_acquire::<true>),
    routine("ExTryConvertSharedSpinLockExclusive", convert),
];

/// The value of an exclusively held lock. Otherwise, the value is the number of sharing threads.
const EXCLUSIVE: u32 = 0x8000_0000;

/// The owners of held locks, by address. A thread that shares a lock twice is listed twice.
#[derive(Default)]
struct Held(HashMap<u64, Vec<ThreadId>>);

/// The result of an attempt to acquire a lock.
enum Attempt {
    Taken,
    /// Other threads hold the lock.
    Busy,
    /// The current thread itself holds the lock, so it would deadlock.
    Own,
    /// The lock's value was not written by these routines.
    Corrupt(u32),
    BadAddress(memory::BadAddress),
}

/// Tries to acquire a lock atomically.
fn attempt<const ALONE: bool>(context: &Context, lock: u64) -> Attempt {
    let mut state = context.state();
    let held = &mut state.get::<Held>().0;
    let value: u32 = match memory::read(lock) {
        Ok(value) => value,
        Err(error) => return Attempt::BadAddress(error),
    };
    let owners = held.entry(lock).or_default();
    if value == 0 {
        // Another lock may previously have been at this address.
        owners.clear();
    } else if owners.is_empty() {
        return Attempt::Corrupt(value);
    }
    let may_share = !ALONE && value & EXCLUSIVE == 0;
    if value != 0 && !may_share {
        return if owners.contains(&context.id()) { Attempt::Own } else { Attempt::Busy };
    }
    owners.push(context.id());
    let taken = if ALONE { EXCLUSIVE } else { value + 1 };
    match memory::write(lock, &taken) {
        Ok(()) => Attempt::Taken,
        Err(error) => Attempt::BadAddress(error),
    }
}

/// Tries to acquire a lock. Returns whether it succeeded. Bugchecks if a lock cannot have the
/// current value.
fn take<const ALONE: bool>(context: &Context, lock: u64) -> bool {
    match attempt::<ALONE>(context, lock) {
        Attempt::Taken => true,
        Attempt::Busy | Attempt::Own => false,
        Attempt::Corrupt(value) => context.stop_for_misuse(&format!(
            "with the spin lock at 0x{lock:016X}, whose value is 0x{value:X}: it was not initialized"
        )),
        Attempt::BadAddress(error) => context.stop_for_address(error),
    }
}

fn acquire<const ALONE: bool>(context: &Context, lock: At<i32>) {
    context.require_at_least(DISPATCH);
    wait_for::<ALONE>(context, lock.0);
}

fn wait_for<const ALONE: bool>(context: &Context, lock: u64) {
    match attempt::<ALONE>(context, lock) {
        Attempt::Taken => return,
        Attempt::Own => {
            context.stop_call(Rule::Deadlock, "for a spin lock that its caller already holds")
        }
        _ => {}
    }
    context.wait_for("a spin lock that is never released", || {
        take::<ALONE>(context, lock).then_some(())
    });
}

fn acquire_raising<const ALONE: bool>(context: &Context, lock: At<i32>) -> u8 {
    let before = context.raise_irql(DISPATCH);
    wait_for::<ALONE>(context, lock.0);
    before.number()
}

fn try_acquire<const ALONE: bool>(context: &Context, lock: At<i32>) -> u32 {
    context.require_at_least(DISPATCH);
    take::<ALONE>(context, lock.0).into()
}

/// Releases a lock. Bugchecks if the thread does not hold it in this mode.
fn give_back<const ALONE: bool>(context: &Context, lock: u64) {
    let is_owner = {
        let mut state = context.state();
        let owners = state.get::<Held>().0.get_mut(&lock);
        let value = memory::read::<u32>(lock).unwrap_or(0);
        let at = owners.as_ref().and_then(|owners| {
            let mut owners = owners.iter();
            owners.position(|owner| *owner == context.id())
        });
        match (owners, at) {
            (Some(owners), Some(at)) if (value & EXCLUSIVE != 0) == ALONE && value != 0 => {
                owners.remove(at);
                let left = if ALONE { 0 } else { value - 1 };
                memory::write(lock, &left).is_ok()
            }
            _ => false,
        }
    };
    if !is_owner {
        context.stop_call(
            Rule::IrqlNotLowered,
            &format!(
                "for a spin lock that its caller does not {}",
                if ALONE { "hold alone" } else { "share" }
            ),
        );
    }
}

fn release<const ALONE: bool>(context: &Context, lock: At<i32>) {
    context.require_at_least(DISPATCH);
    give_back::<ALONE>(context, lock.0);
}

fn release_lowering<const ALONE: bool>(context: &Context, lock: At<i32>, irql: u8) {
    context.require_at_least(DISPATCH);
    give_back::<ALONE>(context, lock.0);
    context.lower_irql(Irql::from_number(irql));
}

/// Converts the caller's shared access to exclusive access, if no other thread shares the lock.
fn convert(context: &Context, lock: At<i32>) -> u32 {
    context.require_at_least(DISPATCH);
    let is_alone = {
        let mut state = context.state();
        let owners = state.get::<Held>().0.get(&lock.0);
        let is_alone = owners.map(|owners| owners.as_slice() == [context.id()]);
        if is_alone == Some(true) && memory::read::<u32>(lock.0) == Ok(1) {
            Some(memory::write(lock.0, &EXCLUSIVE).is_ok())
        } else {
            let shares = owners.is_some_and(|owners| owners.contains(&context.id()));
            shares.then_some(false)
        }
    };
    is_alone.map_or_else(
        || context.stop_for_misuse("for a spin lock that its caller does not share"),
        u32::from,
    )
}
