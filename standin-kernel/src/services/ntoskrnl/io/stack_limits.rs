//! The limits of the kernel stack.

use crate::{
    execution::routine::Routine,
    ground::irql::Irql,
    services::ntoskrnl::context::{Context, Entries},
};

pub const ENTRIES: Entries = &[
    ("IoGetStackLimits", Irql::APC_LEVEL, Routine::Two(stack_limits)),
    ("IoGetInitialStack", Irql::APC_LEVEL, Routine::Zero(stack_top)),
    ("IoWithinStackLimits", Irql::APC_LEVEL, Routine::Two(is_in_stack)),
];

fn stack_top(context: &Context) -> u64 {
    context.stack().top()
}

/// Returns whether a region is in the stack of the current thread.
fn is_in_stack(context: &Context, start: u64, size: u64) -> u64 {
    let stack = context.stack().addresses();
    let end = start.checked_add(size);
    u64::from(stack.contains(&start) && end.is_some_and(|end| end <= stack.end))
}

fn stack_limits(context: &Context, low: u64, high: u64) -> u64 {
    context.write(low, &context.stack().bottom());
    context.write(high, &context.stack().top());
    0
}
