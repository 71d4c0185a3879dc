//! The calls that led to a driver's code, as drivers capture them for their own diagnostics.

use crate::{
    execution::routine::{Routine, low_half},
    ground::{backtrace::Step, irql::Irql},
    services::ntoskrnl::context::{Context, Entries},
};

const HIGH: Irql = Irql::HIGH_LEVEL;

pub const ENTRIES: Entries = &[
    ("RtlCaptureStackBackTrace", HIGH, Routine::Four(capture)),
    ("RtlWalkFrameChain", HIGH, Routine::Three(walk)),
];

/// Returns the return addresses of the calls that led to the caller, the innermost first. The kernel's own
/// functions among them have no addresses here, and are left out.
fn addresses(context: &Context) -> impl Iterator<Item = u64> {
    context.backtrace().into_iter().filter_map(|step| match step {
        Step::Code(frame) => Some(frame.address),
        Step::Routine(_) => None,
    })
}

/// Stores up to `count` addresses. Returns those that were stored.
fn store(context: &Context, to: u64, all: impl Iterator<Item = u64>, count: u64) -> Vec<u64> {
    let count = usize::try_from(low_half(count)).unwrap_or(usize::MAX);
    let stored: Vec<u64> = all.take(count).collect();
    for (at, address) in (to..).step_by(8).zip(&stored) {
        context.write(at, address);
    }
    stored
}

/// Stores return addresses after the first ones, and their sum as a hash. Returns their number.
fn capture(context: &Context, skip: u64, count: u64, to: u64, hash: u64) -> u64 {
    let skip = usize::try_from(low_half(skip)).unwrap_or(usize::MAX);
    let stored = store(context, to, addresses(context).skip(skip), count);
    if hash != 0 {
        let sum = stored.iter().fold(0_u64, |sum, one| sum.wrapping_add(*one));
        context.write(hash, &low_half(sum));
    }
    stored.len() as u64
}

/// Stores return addresses as [`capture`] does, and returns the number of all that the walk met: those at the
/// start that it skips have no place in the array, but count. There are none of user mode.
fn walk(context: &Context, to: u64, count: u64, flags: u64) -> u64 {
    /// `RTL_WALK_USER_MODE_STACK`.
    const USER_MODE: u32 = 1;
    /// `RTL_STACK_WALKING_MODE_FRAMES_TO_SKIP_SHIFT`: the place of the number of addresses to skip.
    const SKIP_SHIFT: u32 = 8;
    if low_half(flags) & USER_MODE != 0 {
        return 0;
    }
    let skip = u64::from(low_half(flags) >> SKIP_SHIFT);
    let met = addresses(context).count() as u64;
    let met = met.min(u64::from(low_half(count)));
    let skipped = usize::try_from(skip).unwrap_or(usize::MAX);
    let rest = addresses(context).skip(skipped);
    store(context, to, rest, met.saturating_sub(skip));
    met
}
