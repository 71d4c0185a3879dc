//! The limits of the kernel stack.

use crate::{
    execution::{
        routine::{At, Callback, Memory, routine},
        stack::NoRoom,
    },
    ground::{NtResult, NtStatus, irql::Irql},
    services::ntoskrnl::context::{Context, Entries},
};

pub const ENTRIES: Entries = &[
    routine("IoGetStackLimits", stack_limits),
    routine("IoGetInitialStack", stack_top),
    routine("KeExpandKernelStackAndCallout", expand),
    routine("KeExpandKernelStackAndCalloutEx", expand_by),
    routine("IoWithinStackLimits", is_in_stack),
];

fn stack_top(context: &Context) -> Memory {
    At::new(context.stack().top())
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

/// Calls a driver routine with at least `size` bytes of stack.
fn expand(context: &Context, routine: Callback, parameter: Memory, size: u64) -> NtResult {
    expand_by(context, routine, parameter, size, context.irql() < Irql::DISPATCH_LEVEL, At::NULL)
}

/// Calls a driver routine with at least `size` bytes of stack. In the stand-in kernel, expansion
/// never waits for memory. See [`expand`].
fn expand_by(
    context: &Context,
    routine: Callback,
    parameter: Memory,
    size: u64,
    waits: bool,
    _reserved: Memory,
) -> NtResult {
    /// `MAXIMUM_EXPANSION_SIZE`.
    const MAXIMUM: usize = 0x1_1800;
    const STACK_OVERFLOW: NtStatus = NtStatus::from_bits(0xC000_00FD);
    const INVALID_PARAMETER_3: NtStatus = NtStatus::from_bits(0xC000_00F1);
    const INVALID_PARAMETER_4: NtStatus = NtStatus::from_bits(0xC000_00F2);
    let size = usize::try_from(size).ok().filter(|size| *size <= MAXIMUM);
    let size = size.ok_or(INVALID_PARAMETER_3)?;
    if waits && context.irql() >= Irql::DISPATCH_LEVEL {
        return Err(INVALID_PARAMETER_4);
    }
    let what = "the routine that runs on an expanded stack";
    let call = || {
        context.call_driver(what, routine.0, [parameter.0]);
    };
    context.stacks().with_room(context.stack(), size, call).map_err(|reason| match reason {
        NoRoom::Range => STACK_OVERFLOW,
        NoRoom::Memory => NtStatus::NO_MEMORY,
    })
}
