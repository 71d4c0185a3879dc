//! Rundown protection, with and without cache-aware references.

use super::{
    pool,
    rundowns::{self, Allocated},
};
use crate::{
    execution::routine::{Routine, low_half},
    ground::{irql::Irql, memory},
    services::{
        managers::pool::{Tag, Wanted},
        ntoskrnl::{
            context::{Context, Entries},
            ke::mutexes::{change_word, initialize_word, wait},
        },
    },
};

const HIGH: Irql = Irql::HIGH_LEVEL;
const APC: Irql = Irql::APC_LEVEL;
const DISPATCH: Irql = Irql::DISPATCH_LEVEL;

pub const ENTRIES: Entries = &[
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
