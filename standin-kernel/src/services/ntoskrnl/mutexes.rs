//! Fast and guarded mutexes, push locks, and rundown protection.

use super::{
    context::{Context, Entries},
    header::{initialize as initialize_header, kind},
    pool,
    rundowns::{self, Allocated},
    thread_objects,
};
use crate::{
    execution::{
        coroutine::wait_until,
        routine::{Routine, low_half},
    },
    ground::{
        abi::{DispatcherHeader, FastMutex},
        irql::Irql,
        memory,
        rule::Rule,
    },
    services::pool::{Tag, Wanted},
};

const HIGH: Irql = Irql::HIGH_LEVEL;
const APC: Irql = Irql::APC_LEVEL;
const DISPATCH: Irql = Irql::DISPATCH_LEVEL;

pub const ENTRIES: Entries = &[
    ("ExAcquireFastMutex", APC, Routine::One(acquire_fast)),
    ("ExTryToAcquireFastMutex", APC, Routine::One(try_fast)),
    ("ExReleaseFastMutex", APC, Routine::One(release_fast)),
    ("ExAcquireFastMutexUnsafe", APC, Routine::One(acquire_plain)),
    ("ExReleaseFastMutexUnsafe", APC, Routine::One(release_plain)),
    ("KeInitializeGuardedMutex", APC, Routine::One(initialize)),
    ("KeAcquireGuardedMutex", APC, Routine::One(acquire_guarded)),
    ("KeTryToAcquireGuardedMutex", APC, Routine::One(try_guarded)),
    ("KeReleaseGuardedMutex", APC, Routine::One(release_guarded)),
    ("KeAcquireGuardedMutexUnsafe", APC, Routine::One(acquire_guarded_plain)),
    ("KeReleaseGuardedMutexUnsafe", APC, Routine::One(release_plain)),
    ("ExInitializePushLock", HIGH, Routine::One(initialize_word)),
    ("ExAcquirePushLockExclusiveEx", APC, Routine::Two(acquire_exclusive)),
    ("ExAcquirePushLockSharedEx", APC, Routine::Two(acquire_shared)),
    ("ExReleasePushLockExclusiveEx", APC, Routine::Two(release_exclusive)),
    ("ExReleasePushLockSharedEx", APC, Routine::Two(release_shared)),
    ("ExInitializeRundownProtection", HIGH, Routine::One(initialize_word)),
    ("ExReInitializeRundownProtection", HIGH, Routine::One(initialize_again)),
    ("ExAcquireRundownProtection", HIGH, Routine::One(protect)),
    ("ExAcquireRundownProtectionEx", HIGH, Routine::Two(protect_times)),
    ("ExReleaseRundownProtection", DISPATCH, Routine::One(unprotect)),
    ("ExReleaseRundownProtectionEx", DISPATCH, Routine::Two(unprotect_times)),
    ("ExWaitForRundownProtectionRelease", APC, Routine::One(wait_for_release)),
    ("ExRundownCompleted", HIGH, Routine::One(complete_rundown)),
    ("ExAllocateCacheAwareRundownProtection", APC, Routine::Two(allocate_aware)),
    ("ExFreeCacheAwareRundownProtection", APC, Routine::One(free_aware)),
    ("ExSizeOfRundownProtectionCacheAware", APC, Routine::Zero(size_of_aware)),
    ("ExInitializeRundownProtectionCacheAware", APC, Routine::Two(initialize_aware)),
    ("ExReInitializeRundownProtectionCacheAware", HIGH, Routine::One(initialize_again)),
    ("ExAcquireRundownProtectionCacheAware", HIGH, Routine::One(protect)),
    ("ExAcquireRundownProtectionCacheAwareEx", HIGH, Routine::Two(protect_times)),
    ("ExReleaseRundownProtectionCacheAware", DISPATCH, Routine::One(unprotect)),
    ("ExReleaseRundownProtectionCacheAwareEx", DISPATCH, Routine::Two(unprotect_times)),
    ("ExWaitForRundownProtectionReleaseCacheAware", APC, Routine::One(wait_for_release)),
    ("ExRundownCompletedCacheAware", HIGH, Routine::One(complete_rundown)),
];

fn initialize(context: &Context, mutex: u64) -> u64 {
    let event = DispatcherHeader {
        kind: 0,
        reserved: 0,
        units: 0,
        reserved_1: 0,
        signal_state: 0,
        waiters: [0; 2],
    };
    let value = FastMutex {
        count: 1,
        reserved: 0,
        owner: 0,
        contention: 0,
        reserved_1: 0,
        event,
        old_irql: 0,
        reserved_2: 0,
    };
    context.write(mutex, &value);
    let event = mutex.wrapping_add(std::mem::offset_of!(FastMutex, event) as u64);
    let size = size_of::<DispatcherHeader>();
    initialize_header(context, event, kind::SYNCHRONIZATION_EVENT, size, 0);
    0
}

/// Takes a mutex that is free.
fn try_take(context: &Context, mutex: u64) -> bool {
    let thread = thread_objects::current(context);
    let is_taken = context.atomically(|_| {
        let mut value: FastMutex = memory::read(mutex)?;
        if value.count > 1 || value.event.kind != kind::SYNCHRONIZATION_EVENT {
            return Ok(None);
        }
        let is_free = value.count == 1;
        if is_free {
            value.count = 0;
            value.owner = thread;
            memory::write(mutex, &value)?;
        }
        Ok(Some(is_free))
    });
    is_taken.unwrap_or_else(|| {
        context.stop_for_misuse(&format!(
            "with the mutex at 0x{mutex:016X}, which was not initialized"
        ))
    })
}

/// Changes a word of a lock as one step: writes what `change` returns, if that is a value. Returns it.
fn change_word(
    context: &Context,
    word: u64,
    change: impl FnOnce(u64) -> Option<u64>,
) -> Option<u64> {
    context.atomically(|_| {
        let changed = change(memory::read(word)?);
        if let Some(value) = changed {
            memory::write(word, &value)?;
        }
        Ok(changed)
    })
}

/// Waits until `ready` returns `true`. `what` completes "waits forever for".
fn wait(context: &Context, what: &str, ready: impl FnMut() -> bool) {
    if !wait_until(context, None, ready) {
        context.stop(
            Rule::Deadlock,
            format!(
                "{} was called from {} and waits forever for {what}",
                context.call().name,
                context.caller()
            ),
        );
    }
}

fn take(context: &Context, mutex: u64) {
    if try_take(context, mutex) {
        return;
    }
    let value: FastMutex = context.read(mutex);
    if value.owner == thread_objects::current(context) {
        context.stop(
            Rule::Deadlock,
            format!(
                "{} was called from {} for a mutex that its caller already owns",
                context.call().name,
                context.caller()
            ),
        );
    }
    wait(context, "a mutex that is never released", || try_take(context, mutex));
}

fn give_back(context: &Context, mutex: u64) -> FastMutex {
    let thread = thread_objects::current(context);
    let before = context.atomically(|_| {
        let value: FastMutex = memory::read(mutex)?;
        if value.count == 1 || value.owner != thread {
            return Ok(None);
        }
        let mut free: FastMutex = memory::read(mutex)?;
        free.count = 1;
        free.owner = 0;
        memory::write(mutex, &free)?;
        Ok(Some(value))
    });
    before.unwrap_or_else(|| context.stop_for_misuse("for a mutex that its caller does not own"))
}

/// Raises the IRQL and stores the previous one in the mutex.
fn raise(context: &Context, mutex: u64) {
    let before = context.raise_irql(APC);
    let at = mutex.wrapping_add(std::mem::offset_of!(FastMutex, old_irql) as u64);
    context.write(at, &u32::from(before.number()));
}

fn acquire_fast(context: &Context, mutex: u64) -> u64 {
    take(context, mutex);
    raise(context, mutex);
    0
}

fn try_fast(context: &Context, mutex: u64) -> u64 {
    let taken = try_take(context, mutex);
    if taken {
        raise(context, mutex);
    }
    u64::from(taken)
}

fn release_fast(context: &Context, mutex: u64) -> u64 {
    context.require_at_least(APC);
    let value = give_back(context, mutex);
    context.lower_irql(Irql::from_number((value.old_irql & 0xFF) as u8));
    0
}

fn acquire_plain(context: &Context, mutex: u64) -> u64 {
    take(context, mutex);
    0
}

/// Acquires a guarded mutex, which its thread has in a guarded region.
fn acquire_guarded(context: &Context, mutex: u64) -> u64 {
    thread_objects::enter_guarded(context);
    take(context, mutex);
    0
}

/// Acquires a guarded mutex for a thread that gets no asynchronous procedure calls already.
fn acquire_guarded_plain(context: &Context, mutex: u64) -> u64 {
    if !thread_objects::gets_no_calls(context) {
        context.stop_for_misuse("outside a guarded region and below APC_LEVEL");
    }
    take(context, mutex);
    0
}

fn try_guarded(context: &Context, mutex: u64) -> u64 {
    let is_taken = try_take(context, mutex);
    if is_taken {
        thread_objects::enter_guarded(context);
    }
    u64::from(is_taken)
}

fn release_guarded(context: &Context, mutex: u64) -> u64 {
    give_back(context, mutex);
    thread_objects::leave_guarded(context)
}

fn release_plain(context: &Context, mutex: u64) -> u64 {
    give_back(context, mutex);
    0
}

/// Initializes a push lock or a rundown reference, which are words.
fn initialize_word(context: &Context, word: u64) -> u64 {
    context.write(word, &0_u64);
    0
}

/// A push lock's value: held exclusively, or this for each that shares it.
const EXCLUSIVE: u64 = 1;
const SHARED: u64 = 0x10;

fn acquire_exclusive(context: &Context, lock: u64, _flags: u64) -> u64 {
    wait(context, "a push lock that is never released", || {
        change_word(context, lock, |value| (value == 0).then_some(EXCLUSIVE)).is_some()
    });
    0
}

fn acquire_shared(context: &Context, lock: u64, _flags: u64) -> u64 {
    let share = |value: u64| (value & EXCLUSIVE == 0).then(|| value.wrapping_add(SHARED));
    wait(context, "a push lock that is never released", || {
        change_word(context, lock, share).is_some()
    });
    0
}

fn release_exclusive(context: &Context, lock: u64, _flags: u64) -> u64 {
    let is_held = |value: u64| (value == EXCLUSIVE).then_some(0);
    if change_word(context, lock, is_held).is_none() {
        context.stop_for_misuse("for a push lock that is not held exclusively");
    }
    0
}

fn release_shared(context: &Context, lock: u64, _flags: u64) -> u64 {
    let is_shared = |value: u64| (value & EXCLUSIVE == 0).then(|| value.checked_sub(SHARED));
    if change_word(context, lock, |value| is_shared(value).flatten()).is_none() {
        context.stop_for_misuse("for a push lock that is not shared");
    }
    0
}

/// The size of a rundown reference that is aware of caches, which no header declares. Here it is one word
/// in a cache line.
const AWARE_SIZE: usize = 64;

/// Allocates a rundown reference with a pool type and a tag. Returns null if there is no memory.
fn allocate_aware(context: &Context, pool_type: u64, tag: u64) -> u64 {
    /// The bit of pool types that are paged.
    const PAGED: u32 = 1;
    if context.faults().take("ExAllocatePool2").is_some() {
        return 0;
    }
    let wanted = Wanted {
        size: AWARE_SIZE,
        tag: Tag(low_half(tag)),
        paged: low_half(pool_type) & PAGED != 0,
        uninitialized: false,
    };
    let allocated = context.pool().allocate(wanted, context, context.call());
    let Some(reference) = allocated else {
        return 0;
    };
    context.state().get::<Allocated>().0.insert(reference);
    reference
}

fn free_aware(context: &Context, reference: u64) -> u64 {
    let is_allocated = rundowns::forget(context, reference);
    // A block that the driver has freed by another routine is no longer one of these.
    if !is_allocated && context.pool().freed_at(reference).is_none() {
        context.stop_for_misuse(
            "for rundown protection that ExAllocateCacheAwareRundownProtection did not return",
        );
    }
    pool::free_block(context, reference);
    0
}

const fn size_of_aware(_context: &Context) -> u64 {
    AWARE_SIZE as u64
}

fn initialize_aware(context: &Context, reference: u64, size: u64) -> u64 {
    if size < AWARE_SIZE as u64 {
        context.stop_for_misuse(&format!(
            "for rundown protection of {size} bytes; ExSizeOfRundownProtectionCacheAware says {AWARE_SIZE}"
        ));
    }
    initialize_word(context, reference)
}

/// A rundown reference's value: bit 0 is set once the rundown has started, and each holder counts as
/// this.
const ACTIVE: u64 = 1;
const HOLDER: u64 = 2;

fn initialize_again(context: &Context, reference: u64) -> u64 {
    if context.read::<u64>(reference) != ACTIVE {
        context.stop_for_misuse("before the rundown has completed");
    }
    context.write(reference, &0_u64);
    0
}

fn protect(context: &Context, reference: u64) -> u64 {
    protect_times(context, reference, 1)
}

/// Takes protection `count` times. Returns whether the rundown has not started.
fn protect_times(context: &Context, reference: u64, count: u64) -> u64 {
    let taken = HOLDER.wrapping_mul(count & 0xFFFF_FFFF);
    let protect = |value: u64| (value & ACTIVE == 0).then(|| value.wrapping_add(taken));
    u64::from(change_word(context, reference, protect).is_some())
}

fn unprotect(context: &Context, reference: u64) -> u64 {
    unprotect_times(context, reference, 1)
}

fn unprotect_times(context: &Context, reference: u64, count: u64) -> u64 {
    let given_back = HOLDER.wrapping_mul(count & 0xFFFF_FFFF);
    let unprotect = |value: u64| {
        let left = (value & !ACTIVE).checked_sub(given_back)?;
        Some(left | (value & ACTIVE))
    };
    if change_word(context, reference, unprotect).is_none() {
        context.stop_for_misuse("for rundown protection that its caller does not hold");
    }
    0
}

fn wait_for_release(context: &Context, reference: u64) -> u64 {
    change_word(context, reference, |value| Some(value | ACTIVE));
    wait(context, "rundown protection that is never released", || {
        memory::read::<u64>(reference).is_ok_and(|value| value & !ACTIVE == 0)
    });
    0
}

fn complete_rundown(context: &Context, reference: u64) -> u64 {
    context.write(reference, &ACTIVE);
    0
}
