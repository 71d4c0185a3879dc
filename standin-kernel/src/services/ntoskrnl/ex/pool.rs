//! The routines that allocate and free pool.

use super::{exceptions, resources, rundowns};
use crate::{
    execution::routine::{Routine, low_half},
    ground::{irql::Irql, rule::Rule, status::NtStatus},
    services::{
        managers::pool::{FreeError, Tag, Wanted},
        ntoskrnl::{
            context::{Context, Entries},
            irps,
            ke::{dpc, timers},
        },
    },
};

const DISPATCH: Irql = Irql::DISPATCH_LEVEL;

pub const ENTRIES: Entries = &[
    ("ExAllocatePool2", DISPATCH, Routine::Three(ex_allocate_pool2)),
    ("ExAllocatePool3", DISPATCH, Routine::Five(ex_allocate_pool3)),
    ("ExAllocatePool", DISPATCH, Routine::Two(ex_allocate_pool)),
    ("ExAllocatePoolWithTag", DISPATCH, Routine::Three(ex_allocate_pool_with_tag)),
    ("ExAllocatePoolWithQuotaTag", DISPATCH, Routine::Three(ex_allocate_pool_with_quota_tag)),
    ("ExAllocatePoolWithTagPriority", DISPATCH, Routine::Four(ex_allocate_pool_with_tag_priority)),
    ("ExFreePool", DISPATCH, Routine::One(ex_free_pool)),
    ("ExFreePoolWithTag", DISPATCH, Routine::Two(ex_free_pool_with_tag)),
];

/// `POOL_FLAG_RAISE_ON_FAILURE`.
const POOL_FLAG_RAISE_ON_FAILURE: u64 = 0x20;

const POOL_FLAG_UNINITIALIZED: u64 = 0x2;

const POOL_FLAG_NON_PAGED: u64 = 0x40;

const POOL_FLAG_NON_PAGED_EXECUTE: u64 = 0x80;

const POOL_FLAG_PAGED: u64 = 0x100;

/// The largest block. That of Windows is smaller.
const LARGEST: u64 = 1 << 30;

/// Allocates a block for the current call, or returns null.
fn allocate(context: &Context, size: u64, tag: u64, paged: bool, uninitialized: bool) -> u64 {
    let call = context.call();
    if paged && call.irql > Irql::APC_LEVEL {
        context.stop(
            Rule::IrqlTooHigh,
            format!(
                "{} was called for paged pool at {} from {}; the highest IRQL for paged pool is {}",
                call.name,
                call.irql,
                context.caller(),
                Irql::APC_LEVEL
            ),
        );
    }
    // An injected failure of the newest routine fails the older ones too.
    if size > LARGEST || context.faults().take("ExAllocatePool2").is_some() {
        return 0;
    }
    let wanted = Wanted {
        size: usize::try_from(size).unwrap_or(usize::MAX),
        tag: Tag(low_half(tag)),
        paged,
        uninitialized,
    };
    context.pool().allocate(wanted, context, call).unwrap_or(0)
}

fn ex_allocate_pool2(context: &Context, flags: u64, size: u64, tag: u64) -> u64 {
    let kinds = flags & (POOL_FLAG_PAGED | POOL_FLAG_NON_PAGED | POOL_FLAG_NON_PAGED_EXECUTE);
    if !kinds.is_power_of_two() || size == 0 {
        return failed(context, flags & POOL_FLAG_RAISE_ON_FAILURE != 0);
    }
    let paged = flags & POOL_FLAG_PAGED != 0;
    let block = allocate(context, size, tag, paged, flags & POOL_FLAG_UNINITIALIZED != 0);
    if block == 0 {
        return failed(context, flags & POOL_FLAG_RAISE_ON_FAILURE != 0);
    }
    block
}

/// Returns null, or bugchecks: the exception that the caller asked for has no handler here.
fn failed(context: &Context, raises: bool) -> u64 {
    if raises {
        exceptions::raise(
            context,
            NtStatus::INSUFFICIENT_RESOURCES,
            "to raise an exception on failure,",
        );
    }
    0
}

/// Allocates as `ExAllocatePool2` does. The extended parameters do not change what a driver observes,
/// but a required one of an unknown type fails the call.
fn ex_allocate_pool3(
    context: &Context,
    flags: u64,
    size: u64,
    tag: u64,
    parameters: u64,
    count: u64,
) -> u64 {
    /// `PoolExtendedParameterMax`, and the bit of an optional parameter.
    const TYPES: u64 = 4;
    const OPTIONAL: u64 = 0x100;
    let is_unknown = |number: u64| {
        let parameter: u64 = context.read(parameters.wrapping_add(number * 16));
        parameter & 0xFF >= TYPES && parameter & OPTIONAL == 0
    };
    let count = u64::from(low_half(count));
    if (count != 0 && parameters == 0) || (0..count).any(is_unknown) {
        return failed(context, flags & POOL_FLAG_RAISE_ON_FAILURE != 0);
    }
    ex_allocate_pool2(context, flags, size, tag)
}

/// `POOL_TYPE`: the bit of paged pool, and of an allocation that raises an exception or, for quota,
/// that does not.
const PAGED_POOL: u64 = 1;
const POOL_RAISE_IF_ALLOCATION_FAILURE: u64 = 16;
const POOL_QUOTA_FAIL_INSTEAD_OF_RAISE: u64 = 8;
/// `POOL_ZERO_ALLOCATION`, which `ExAllocatePoolZero` sets.
const POOL_ZERO_ALLOCATION: u64 = 1024;
/// The tag of blocks without one.
const NO_TAG: u64 = 0x656E_6F4E;

fn ex_allocate_pool(context: &Context, kind: u64, size: u64) -> u64 {
    ex_allocate_pool_with_tag(context, kind, size, NO_TAG)
}

/// Allocates a block, which is not initialized. A size of 0 is what Driver Verifier stops a driver for.
fn ex_allocate_pool_with_tag(context: &Context, kind: u64, size: u64, tag: u64) -> u64 {
    let block = allocate_by_type(context, kind, size, tag);
    if block == 0 {
        return failed(context, kind & POOL_RAISE_IF_ALLOCATION_FAILURE != 0);
    }
    block
}

fn allocate_by_type(context: &Context, kind: u64, size: u64, tag: u64) -> u64 {
    if size == 0 || low_half(tag) == 0 {
        context.stop(
            Rule::BadFree,
            format!(
                "{} was called from {} with a size or a tag of 0",
                context.call().name,
                context.caller()
            ),
        );
    }
    let is_zeroed = kind & POOL_ZERO_ALLOCATION != 0;
    allocate(context, size, tag, kind & PAGED_POOL != 0, !is_zeroed)
}

fn ex_allocate_pool_with_quota_tag(context: &Context, kind: u64, size: u64, tag: u64) -> u64 {
    let block = allocate_by_type(context, kind, size, tag);
    if block == 0 {
        return failed(context, kind & POOL_QUOTA_FAIL_INSTEAD_OF_RAISE == 0);
    }
    block
}

fn ex_allocate_pool_with_tag_priority(
    context: &Context,
    kind: u64,
    size: u64,
    tag: u64,
    _priority: u64,
) -> u64 {
    ex_allocate_pool_with_tag(context, kind, size, tag)
}

fn ex_free_pool(context: &Context, address: u64) -> u64 {
    free_block(context, address);
    0
}

/// Frees a block of any tag.
pub fn free_block(context: &Context, address: u64) {
    free(context, address, None);
}

fn ex_free_pool_with_tag(context: &Context, address: u64, tag: u64) -> u64 {
    free(context, address, Some(Tag(low_half(tag))));
    0
}

/// Frees a block; a tag of 0 matches any.
fn free(context: &Context, address: u64, tag: Option<Tag>) {
    let call = context.call();
    let from = || context.caller();
    let is_paged = context.pool().is_paged(address) == Some(true);
    if is_paged && call.irql > Irql::APC_LEVEL {
        context.stop(
            Rule::IrqlTooHigh,
            format!(
                "{} was called at {} from {} for a block of paged pool",
                call.name,
                call.irql,
                from()
            ),
        );
    }
    let size = context.pool().size(address).unwrap_or(0) as u64;
    let is_inside = |at: u64| at.checked_sub(address).is_some_and(|offset| offset < size);
    let timers = timers::take_set(context, is_inside);
    let dpcs = dpc::take_queued(context, |dpc, _| is_inside(dpc));
    if !timers.is_empty() || !dpcs.is_empty() {
        context.stop(
            Rule::LeftQueued,
            format!(
                "{} was called from {} for a block with a {}",
                call.name,
                from(),
                if dpcs.is_empty() { "timer that is set" } else { "DPC that is queued" }
            ),
        );
    }
    if resources::forget_inside(context, is_inside) > 0 {
        context.stop(
            Rule::LeftQueued,
            format!(
                "{} was called from {} for a block with a resource (ERESOURCE) that was not deleted",
                call.name,
                from()
            ),
        );
    }
    if irps::forget_inside(context, is_inside) {
        context.stop(
            Rule::LeftQueued,
            format!(
                "{} was called from {} for a block with a request that another driver has",
                call.name,
                from()
            ),
        );
    }
    let result = context.pool().free(address, context, call);
    match result {
        Ok(found) => {
            rundowns::forget(context, address);
            if let Some(tag) = tag.filter(|tag| tag.0 != 0 && *tag != found) {
                context.stop(
                    Rule::BadFree,
                    format!(
                        "{} was called from {} with the tag {tag} for a block with the tag {found}",
                        call.name,
                        from()
                    ),
                );
            }
        }
        Err(FreeError::Twice(earlier)) => context.stop(
            Rule::BadFree,
            format!(
                "{} was called from {} for a block with the tag {} that {} had freed from {}",
                call.name,
                from(),
                earlier.tag,
                earlier.by.name,
                context.explain(&earlier.backtrace).place
            ),
        ),
        Err(FreeError::NotPool) => context.stop(
            Rule::BadFree,
            format!(
                "{} was called from {} for 0x{address:016X}, which is not a pool block",
                call.name,
                from()
            ),
        ),
    }
}
