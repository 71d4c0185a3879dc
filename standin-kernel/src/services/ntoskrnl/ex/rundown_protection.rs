//! Rundown protection, with and without cache-aware references.

use super::{
    pool,
    rundowns::{self, Allocated},
};
use crate::{
    execution::routine::{At, Routine},
    ground::{irql::Irql, memory},
    services::{
        managers::pool::Tag,
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
    ("ExInitializeRundownProtection", HIGH, Routine::of(initialize_word)),
    ("ExReInitializeRundownProtection", HIGH, Routine::of(initialize_again)),
    ("ExAcquireRundownProtection", HIGH, Routine::of(protect)),
    ("ExAcquireRundownProtectionEx", HIGH, Routine::of(protect_times)),
    ("ExReleaseRundownProtection", DISPATCH, Routine::of(unprotect)),
    ("ExReleaseRundownProtectionEx", DISPATCH, Routine::of(unprotect_times)),
    ("ExWaitForRundownProtectionRelease", APC, Routine::of(wait_for_release)),
    ("ExRundownCompleted", HIGH, Routine::of(complete_rundown)),
    ("ExAllocateCacheAwareRundownProtection", APC, Routine::of(allocate_aware)),
    ("ExFreeCacheAwareRundownProtection", APC, Routine::of(free_aware)),
    ("ExSizeOfRundownProtectionCacheAware", APC, Routine::of(size_of_aware)),
    ("ExInitializeRundownProtectionCacheAware", APC, Routine::of(initialize_aware)),
    ("ExReInitializeRundownProtectionCacheAware", HIGH, Routine::of(initialize_again)),
    ("ExAcquireRundownProtectionCacheAware", HIGH, Routine::of(protect)),
    ("ExAcquireRundownProtectionCacheAwareEx", HIGH, Routine::of(protect_times)),
    ("ExReleaseRundownProtectionCacheAware", DISPATCH, Routine::of(unprotect)),
    ("ExReleaseRundownProtectionCacheAwareEx", DISPATCH, Routine::of(unprotect_times)),
    ("ExWaitForRundownProtectionReleaseCacheAware", APC, Routine::of(wait_for_release)),
    ("ExRundownCompletedCacheAware", HIGH, Routine::of(complete_rundown)),
];

/// The size of a cache-aware rundown reference. No header declares it. In the stand-in kernel, the
/// reference is one word in its own cache line.
const AWARE_SIZE: usize = 64;

/// Allocates a rundown reference with a pool type and a tag. Returns null if memory is exhausted.
fn allocate_aware(context: &Context, pool_type: u32, tag: u32) -> u64 {
    /// The bit that is set in pool types for paged pool.
    const PAGED: u32 = 1;
    if context.faults().take("ExAllocatePool2").is_some() {
        return 0;
    }
    let Some(reference) = context.allocate(AWARE_SIZE, Tag(tag), pool_type & PAGED != 0) else {
        return 0;
    };
    context.state().get::<Allocated>().0.insert(reference);
    reference
}

fn free_aware(context: &Context, reference: u64) {
    let is_allocated = rundowns::forget(context, reference);
    // A block that the driver has freed with another routine is no longer a rundown reference.
    if !is_allocated && context.pool().freed_at(reference).is_none() {
        context.stop_for_misuse(
            "for rundown protection that ExAllocateCacheAwareRundownProtection did not return",
        );
    }
    pool::free_block(context, reference);
}

const fn size_of_aware(_context: &Context) -> u64 {
    AWARE_SIZE as u64
}

fn initialize_aware(context: &Context, reference: u64, size: u64) {
    if size < AWARE_SIZE as u64 {
        context.stop_for_misuse(&format!(
            "for rundown protection of {size} bytes; ExSizeOfRundownProtectionCacheAware returns \
             {AWARE_SIZE}"
        ));
    }
    initialize_word(context, reference);
}

/// The value of a rundown reference: bit 0 is set once the rundown has started, and each holder adds 2.
const ACTIVE: u64 = 1;

const HOLDER: u64 = 2;

fn initialize_again(context: &Context, reference: At<u64>) {
    if reference.read(context) != ACTIVE {
        context.stop_for_misuse("before the rundown has completed");
    }
    reference.write(context, 0_u64);
}

fn protect(context: &Context, reference: u64) -> bool {
    protect_times(context, reference, 1)
}

/// Acquires protection `count` times. Returns `false` if the rundown has started.
fn protect_times(context: &Context, reference: u64, count: u32) -> bool {
    let taken = HOLDER.wrapping_mul(count.into());
    let protect = |value: u64| (value & ACTIVE == 0).then(|| value.wrapping_add(taken));
    change_word(context, reference, protect).is_some()
}

fn unprotect(context: &Context, reference: u64) {
    unprotect_times(context, reference, 1);
}

fn unprotect_times(context: &Context, reference: u64, count: u32) {
    let given_back = HOLDER.wrapping_mul(count.into());
    let unprotect = |value: u64| {
        let left = (value & !ACTIVE).checked_sub(given_back)?;
        Some(left | (value & ACTIVE))
    };
    if change_word(context, reference, unprotect).is_none() {
        context.stop_for_misuse("for rundown protection that its caller does not hold");
    }
}

fn wait_for_release(context: &Context, reference: u64) {
    change_word(context, reference, |value| Some(value | ACTIVE));
    wait(context, "rundown protection that is never released", || {
        memory::read::<u64>(reference).is_ok_and(|value| value & !ACTIVE == 0)
    });
}

fn complete_rundown(context: &Context, reference: At<u64>) {
    reference.write(context, ACTIVE);
}
