//! Rundown protection, with and without cache-aware references.

use super::{
    pool,
    rundowns::{self, Allocated},
};
use crate::{
    execution::routine::{At, routine},
    ground::{
        abi::Pointee,
        memory,
        opaque::{CacheAwareRundownRef, RundownRef},
    },
    services::{
        managers::pool::Tag,
        ntoskrnl::{
            context::{Context, Entries},
            ke::mutexes::{change_word, initialize_word, wait},
        },
    },
};

pub const ENTRIES: Entries = &[
    routine("ExInitializeRundownProtection", initialize_word::<RundownRef>),
    routine("ExReInitializeRundownProtection", initialize_again::<RundownRef>),
    routine("ExAcquireRundownProtection", protect::<RundownRef>),
    routine("ExAcquireRundownProtectionEx", protect_times::<RundownRef>),
    routine("ExReleaseRundownProtection", unprotect::<RundownRef>),
    routine("ExReleaseRundownProtectionEx", unprotect_times::<RundownRef>),
    routine("ExWaitForRundownProtectionRelease", wait_for_release::<RundownRef>),
    routine("ExRundownCompleted", complete_rundown::<RundownRef>),
    routine("ExAllocateCacheAwareRundownProtection", allocate_aware),
    routine("ExFreeCacheAwareRundownProtection", free_aware),
    routine("ExSizeOfRundownProtectionCacheAware", size_of_aware),
    routine("ExInitializeRundownProtectionCacheAware", initialize_aware),
    routine("ExReInitializeRundownProtectionCacheAware", initialize_again::<CacheAwareRundownRef>),
    routine("ExAcquireRundownProtectionCacheAware", protect::<CacheAwareRundownRef>),
    routine("ExAcquireRundownProtectionCacheAwareEx", protect_times::<CacheAwareRundownRef>),
    routine("ExReleaseRundownProtectionCacheAware", unprotect::<CacheAwareRundownRef>),
    routine("ExReleaseRundownProtectionCacheAwareEx", unprotect_times::<CacheAwareRundownRef>),
    routine(
        "ExWaitForRundownProtectionReleaseCacheAware",
        wait_for_release::<CacheAwareRundownRef>,
    ),
    routine("ExRundownCompletedCacheAware", complete_rundown::<CacheAwareRundownRef>),
];

/// The size of a cache-aware rundown reference. No header declares it. In the stand-in kernel, the
/// reference is one word in its own cache line.
const AWARE_SIZE: usize = 64;

/// Allocates a rundown reference with a pool type and a tag. Returns null if memory is exhausted.
fn allocate_aware(context: &Context, pool_type: u32, tag: u32) -> At<CacheAwareRundownRef> {
    /// The bit that is set in pool types for paged pool.
    const PAGED: u32 = 1;
    if context.faults().take("ExAllocatePool2").is_some() {
        return At::NULL;
    }
    let Some(reference) = context.allocate(AWARE_SIZE, Tag(tag), pool_type & PAGED != 0) else {
        return At::NULL;
    };
    context.state().get::<Allocated>().0.insert(reference);
    At::new(reference)
}

fn free_aware(context: &Context, reference: At<CacheAwareRundownRef>) {
    let is_allocated = rundowns::forget(context, reference.0);
    // A block that the driver has freed with another routine is no longer a rundown reference.
    if !is_allocated && context.pool().freed_at(reference.0).is_none() {
        context.stop_for_misuse(
            "for rundown protection that ExAllocateCacheAwareRundownProtection did not return",
        );
    }
    pool::free_block(context, reference.0);
}

const fn size_of_aware(_context: &Context) -> u64 {
    AWARE_SIZE as u64
}

fn initialize_aware(context: &Context, reference: At<CacheAwareRundownRef>, size: u64) {
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

fn initialize_again<T: Pointee>(context: &Context, reference: At<T>) {
    if reference.cast::<u64>().read(context) != ACTIVE {
        context.stop_for_misuse("before the rundown has completed");
    }
    reference.cast::<u64>().write(context, 0);
}

fn protect<T: Pointee>(context: &Context, reference: At<T>) -> bool {
    protect_times(context, reference, 1)
}

/// Acquires protection `count` times. Returns `false` if the rundown has started.
fn protect_times<T: Pointee>(context: &Context, reference: At<T>, count: u32) -> bool {
    let taken = HOLDER.wrapping_mul(count.into());
    let protect = |value: u64| (value & ACTIVE == 0).then(|| value.wrapping_add(taken));
    change_word(context, reference.0, protect).is_some()
}

fn unprotect<T: Pointee>(context: &Context, reference: At<T>) {
    unprotect_times(context, reference, 1);
}

fn unprotect_times<T: Pointee>(context: &Context, reference: At<T>, count: u32) {
    let given_back = HOLDER.wrapping_mul(count.into());
    let unprotect = |value: u64| {
        let left = (value & !ACTIVE).checked_sub(given_back)?;
        Some(left | (value & ACTIVE))
    };
    if change_word(context, reference.0, unprotect).is_none() {
        context.stop_for_misuse("for rundown protection that its caller does not hold");
    }
}

fn wait_for_release<T: Pointee>(context: &Context, reference: At<T>) {
    change_word(context, reference.0, |value| Some(value | ACTIVE));
    wait(context, "rundown protection that is never released", || {
        memory::read::<u64>(reference.0).is_ok_and(|value| value & !ACTIVE == 0)
    });
}

fn complete_rundown<T: Pointee>(context: &Context, reference: At<T>) {
    reference.cast::<u64>().write(context, ACTIVE);
}
