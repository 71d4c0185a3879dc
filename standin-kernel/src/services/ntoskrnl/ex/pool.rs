//! Routines that allocate and free pool.

use super::{resources, rundowns};
use crate::{
    execution::routine::{At, Memory, routine},
    ground::{NtStatus, irql::Irql, rule::Rule},
    services::{
        managers::pool::{FreeError, Tag, Wanted},
        ntoskrnl::{
            context::{Context, Entries},
            ke::{dpc, timers},
            live_irps,
        },
    },
};

pub const ENTRIES: Entries = &[
    routine("ExAllocatePool2", ex_allocate_pool2),
    routine("ExAllocatePool3", ex_allocate_pool3),
    routine("ExAllocatePool", ex_allocate_pool),
    routine("ExAllocatePoolWithTag", ex_allocate_pool_with_tag),
    routine("ExAllocatePoolWithQuota", ex_allocate_pool_with_quota),
    routine("ExAllocatePoolWithQuotaTag", ex_allocate_pool_with_quota_tag),
    routine("ExAllocatePoolWithTagPriority", ex_allocate_pool_with_tag_priority),
    routine("ExFreePool", ex_free_pool),
    routine("ExFreePoolWithTag", ex_free_pool_with_tag),
];

/// `POOL_FLAG_RAISE_ON_FAILURE`.
const POOL_FLAG_RAISE_ON_FAILURE: u64 = 0x20;

const POOL_FLAG_UNINITIALIZED: u64 = 0x2;

const POOL_FLAG_CACHE_ALIGNED: u64 = 0x8;

const POOL_FLAG_NON_PAGED: u64 = 0x40;

const POOL_FLAG_NON_PAGED_EXECUTE: u64 = 0x80;

const POOL_FLAG_PAGED: u64 = 0x100;

/// The maximum size of a block. The maximum on Windows is smaller.
const LARGEST: u64 = 1 << 30;

/// Allocates a block for the current call, or returns null. `of_flags` has the flags of
/// `ExAllocatePool2`.
fn allocate(context: &Context, size: u64, tag: u32, of_flags: u64) -> u64 {
    let call = context.call();
    let paged = of_flags & POOL_FLAG_PAGED != 0;
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
    // An injected fault in the newest routine also makes the older routines fail.
    if size > LARGEST || context.faults().take("ExAllocatePool2").is_some() {
        return 0;
    }
    let wanted = Wanted {
        size: usize::try_from(size).unwrap_or(usize::MAX),
        tag: Tag(tag),
        paged,
        uninitialized: of_flags & POOL_FLAG_UNINITIALIZED != 0,
        cache_aligned: of_flags & POOL_FLAG_CACHE_ALIGNED != 0,
    };
    context.pool().allocate(wanted, context, call).unwrap_or(0)
}

fn ex_allocate_pool2(context: &Context, flags: u64, size: u64, tag: u32) -> Memory {
    let kinds = flags & (POOL_FLAG_PAGED | POOL_FLAG_NON_PAGED | POOL_FLAG_NON_PAGED_EXECUTE);
    let block =
        if kinds.is_power_of_two() && size > 0 { allocate(context, size, tag, flags) } else { 0 };
    At::new(allocated(context, block, flags & POOL_FLAG_RAISE_ON_FAILURE != 0))
}

/// Returns a block. Raises an exception if it is null and the caller requested one.
fn allocated(context: &Context, block: u64, raises: bool) -> u64 {
    if block == 0 && raises {
        context
            .raise_exception(NtStatus::INSUFFICIENT_RESOURCES, "to raise an exception on failure,");
    }
    block
}

/// Allocates a block. Extended parameters have no effect that a driver can observe, but a required
/// parameter of an unknown type makes the call fail. See [`ex_allocate_pool2`].
fn ex_allocate_pool3(
    context: &Context,
    flags: u64,
    size: u64,
    tag: u32,
    parameters: Memory,
    count: u32,
) -> Memory {
    /// `PoolExtendedParameterMax`, and the bit that marks a parameter as optional.
    const TYPES: u64 = 4;
    const OPTIONAL: u64 = 0x100;
    let is_unknown = |number: u64| {
        let parameter: u64 = context.read(parameters.0.wrapping_add(number * 16));
        parameter & 0xFF >= TYPES && parameter & OPTIONAL == 0
    };
    if (count != 0 && parameters.is_null()) || (0..u64::from(count)).any(is_unknown) {
        return At::new(allocated(context, 0, flags & POOL_FLAG_RAISE_ON_FAILURE != 0));
    }
    ex_allocate_pool2(context, flags, size, tag)
}

/// `POOL_TYPE`: the bits for paged pool and for alignment to a cache line, and the bit for an allocation
/// that raises an exception or, for quota, does not raise one.
const PAGED_POOL: u32 = 1;
const CACHE_ALIGNED: u32 = 4;
const POOL_RAISE_IF_ALLOCATION_FAILURE: u32 = 16;
const POOL_QUOTA_FAIL_INSTEAD_OF_RAISE: u32 = 8;
/// `POOL_ZERO_ALLOCATION`, which `ExAllocatePoolZero` sets.
const POOL_ZERO_ALLOCATION: u32 = 1024;
/// The tag of blocks that were allocated without a tag.
const NO_TAG: u32 = 0x656E_6F4E;

fn ex_allocate_pool(context: &Context, kind: u32, size: u64) -> Memory {
    ex_allocate_pool_with_tag(context, kind, size, NO_TAG)
}

/// Allocates an uninitialized block. Bugchecks for a size of 0, as Driver Verifier does.
fn ex_allocate_pool_with_tag(context: &Context, kind: u32, size: u64, tag: u32) -> Memory {
    let block = allocate_by_type(context, kind, size, tag);
    At::new(allocated(context, block, kind & POOL_RAISE_IF_ALLOCATION_FAILURE != 0))
}

fn allocate_by_type(context: &Context, kind: u32, size: u64, tag: u32) -> u64 {
    if size == 0 || tag == 0 {
        context.stop_call(Rule::BadFree, "with a size or a tag of 0");
    }
    let flags = [
        (kind & PAGED_POOL != 0, POOL_FLAG_PAGED),
        (kind & CACHE_ALIGNED != 0, POOL_FLAG_CACHE_ALIGNED),
        (kind & POOL_ZERO_ALLOCATION == 0, POOL_FLAG_UNINITIALIZED),
    ];
    let flags =
        flags.into_iter().filter(|(is_set, _)| *is_set).fold(0, |all, (_, flag)| all | flag);
    allocate(context, size, tag, flags)
}

fn ex_allocate_pool_with_quota(context: &Context, kind: u32, size: u64) -> Memory {
    ex_allocate_pool_with_quota_tag(context, kind, size, NO_TAG)
}

fn ex_allocate_pool_with_quota_tag(context: &Context, kind: u32, size: u64, tag: u32) -> Memory {
    let block = allocate_by_type(context, kind, size, tag);
    At::new(allocated(context, block, kind & POOL_QUOTA_FAIL_INSTEAD_OF_RAISE == 0))
}

fn ex_allocate_pool_with_tag_priority(
    context: &Context,
    kind: u32,
    size: u64,
    tag: u32,
    _priority: u32,
) -> Memory {
    ex_allocate_pool_with_tag(context, kind, size, tag)
}

fn ex_free_pool(context: &Context, address: Memory) {
    free_block(context, address.0);
}

/// Frees a block with any tag.
pub fn free_block(context: &Context, address: u64) {
    free(context, address, None);
}

fn ex_free_pool_with_tag(context: &Context, address: Memory, tag: u32) {
    free(context, address.0, Some(Tag(tag)));
}

/// Frees a block. A tag of 0 matches any tag.
fn free(context: &Context, address: u64, tag: Option<Tag>) {
    let call = context.call();
    let is_paged = context.pool().is_paged(address) == Some(true);
    if is_paged && call.irql > Irql::APC_LEVEL {
        context.stop(
            Rule::IrqlTooHigh,
            format!(
                "{} was called at {} from {} for a block of paged pool",
                call.name,
                call.irql,
                context.caller()
            ),
        );
    }
    let size = context.pool().size(address).unwrap_or(0) as u64;
    let is_inside = |at: u64| at.checked_sub(address).is_some_and(|offset| offset < size);
    let timers = timers::take_set(context, is_inside);
    let dpcs = dpc::take_queued(context, |dpc, _| is_inside(dpc));
    if !timers.is_empty() || !dpcs.is_empty() {
        let what = if dpcs.is_empty() { "timer that is set" } else { "DPC that is queued" };
        context.stop_call(Rule::LeftQueued, &format!("for a block with a {what}"));
    }
    if resources::forget_inside(context, is_inside) > 0 {
        context.stop_call(
            Rule::LeftQueued,
            "for a block with a resource (ERESOURCE) that was not deleted",
        );
    }
    if live_irps::forget_inside(context, is_inside) {
        context.stop_call(Rule::LeftQueued, "for a block with a request that another driver owns");
    }
    let wrong = match context.pool().free(address, context, call) {
        Ok(found) => {
            rundowns::forget(context, address);
            let Some(tag) = tag.filter(|tag| tag.0 != 0 && *tag != found) else {
                return;
            };
            format!("with the tag {tag} for a block with the tag {found}")
        }
        Err(FreeError::Twice(earlier)) => format!(
            "for a block with the tag {} that {} had freed from {}",
            earlier.tag,
            earlier.by.name,
            context.explain(&earlier.backtrace).place
        ),
        Err(FreeError::NotPool) => {
            format!("for 0x{address:016X}, which is not a pool block")
        }
    };
    context.stop_call(Rule::BadFree, &wrong)
}
