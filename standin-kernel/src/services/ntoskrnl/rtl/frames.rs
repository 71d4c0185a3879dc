//! Call stacks that drivers capture for their own diagnostics.

use crate::{
    execution::routine::{At, Memory, low_half, routine},
    ground::backtrace::Step,
    services::ntoskrnl::context::{Context, Entries},
};

pub const ENTRIES: Entries = &[
    routine("RtlCaptureStackBackTrace", capture),
    routine("RtlWalkFrameChain", walk),
    routine("RtlPcToFileHeader", image_of),
];

/// Returns the return addresses on the call stack of the caller, innermost first. The stand-in
/// kernel's own functions are omitted.
fn addresses(context: &Context) -> impl Iterator<Item = u64> {
    context.backtrace().into_iter().filter_map(|step| match step {
        Step::Code(frame) => Some(frame.address),
        Step::Routine(_) => None,
    })
}

/// Stores up to `count` addresses. Returns the stored addresses.
fn store(
    context: &Context,
    back_trace: u64,
    all: impl Iterator<Item = u64>,
    count: usize,
) -> Vec<u64> {
    let stored: Vec<u64> = all.take(count).collect();
    for (at, address) in (back_trace..).step_by(8).zip(&stored) {
        context.write(at, address);
    }
    stored
}

/// Stores return addresses after skipping the first `skip`, and a hash that is their sum. Returns
/// the number of stored addresses. If `count` is 0, stores nothing.
fn capture(context: &Context, skip: u32, count: u32, back_trace: At<u64>, hash: At<u32>) -> u16 {
    if count == 0 {
        return 0;
    }
    let stored =
        store(context, back_trace.0, addresses(context).skip(skip as usize), count as usize);
    let sum = stored.iter().fold(0_u32, |sum, one| sum.wrapping_add(low_half(*one)));
    hash.write_optional(context, sum);
    u16::try_from(stored.len()).unwrap_or(u16::MAX)
}

/// Stores and returns the base address of the image that contains an address, or null.
fn image_of(context: &Context, address: Memory, base: At<u64>) -> Memory {
    let found = context.environment().images.base_of(address.0).unwrap_or(0);
    base.write(context, found);
    At::new(found)
}

/// Stores return addresses. Returns the number of addresses that were walked, including addresses
/// that the flags skip. There are no user-mode frames. See [`capture`].
fn walk(context: &Context, callers: At<u64>, count: u32, flags: u32) -> u32 {
    /// `RTL_WALK_USER_MODE_STACK`.
    const USER_MODE: u32 = 1;
    /// `RTL_STACK_WALKING_MODE_FRAMES_TO_SKIP_SHIFT`: the bit position of the number of frames to skip.
    const SKIP_SHIFT: u32 = 8;
    if flags & USER_MODE != 0 {
        return 0;
    }
    let skip = (flags >> SKIP_SHIFT) as usize;
    let met = addresses(context).count().min(count as usize);
    store(context, callers.0, addresses(context).skip(skip), met.saturating_sub(skip));
    u32::try_from(met).unwrap_or(u32::MAX)
}
