//! The limits of the kernel stack.

use crate::{
    execution::routine::{At, Routine},
    ground::irql::Irql,
    services::ntoskrnl::context::{Context, Entries},
};

pub const ENTRIES: Entries = &[
    ("IoGetStackLimits", Irql::APC_LEVEL, Routine::of(stack_limits)),
    ("IoGetInitialStack", Irql::APC_LEVEL, Routine::of(stack_top)),
    ("IoWithinStackLimits", Irql::APC_LEVEL, Routine::of(is_in_stack)),
];

fn stack_top(context: &Context) -> u64 {
    context.stack().top()
}

/// Returns whether a region is in the stack of the current thread.
fn is_in_stack(context: &Context, start: u64, size: u64) -> u32 {
    let stack = context.stack().addresses();
    let end = start.checked_add(size);
    (stack.contains(&start) && end.is_some_and(|end| end <= stack.end)).into()
}

fn stack_limits(context: &Context, low: At<u64>, high: At<u64>) {
    low.write(context, context.stack().bottom());
    high.write(context, context.stack().top());
}
