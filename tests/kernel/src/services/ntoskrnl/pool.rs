//! The routines that allocate and free pool.

use super::context::Context;
use crate::{
    execution::routine::low_half,
    ground::{irql::Irql, rule::Rule},
    services::pool::{FreeError, Tag, Wanted},
};

const POOL_FLAG_UNINITIALIZED: u64 = 0x2;

const POOL_FLAG_NON_PAGED: u64 = 0x40;

const POOL_FLAG_NON_PAGED_EXECUTE: u64 = 0x80;

const POOL_FLAG_PAGED: u64 = 0x100;

pub fn ex_allocate_pool2(context: &Context, flags: u64, size: u64, tag: u64) -> u64 {
    let call = context.call();
    let paged = flags & POOL_FLAG_PAGED != 0;
    let kinds = flags & (POOL_FLAG_PAGED | POOL_FLAG_NON_PAGED | POOL_FLAG_NON_PAGED_EXECUTE);
    if !kinds.is_power_of_two() || size == 0 {
        return 0;
    }
    if paged && call.irql > Irql::APC_LEVEL {
        context.stop(
            Rule::IrqlTooHigh,
            format!(
                "ExAllocatePool2 was called for paged pool at {} from {}; the highest IRQL for \
                 paged pool is {}",
                call.irql,
                context.caller(),
                Irql::APC_LEVEL
            ),
        );
    }
    let Ok(size) = usize::try_from(size) else {
        return 0;
    };
    // The largest pool block on Windows is far smaller.
    if size > 1 << 30 {
        return 0;
    }
    if context.faults().take("ExAllocatePool2").is_some() {
        return 0;
    }
    let tag = Tag(low_half(tag));
    let wanted = Wanted {
        size,
        tag,
        paged,
        uninitialized: flags & POOL_FLAG_UNINITIALIZED != 0,
    };
    context.pool().allocate(wanted, context, call)
}

pub fn ex_free_pool(context: &Context, address: u64) -> u64 {
    free(context, address, None);
    0
}

pub fn ex_free_pool_with_tag(context: &Context, address: u64, tag: u64) -> u64 {
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
    let result = context.pool().free(address, context, call);
    match result {
        Ok(found) => {
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
