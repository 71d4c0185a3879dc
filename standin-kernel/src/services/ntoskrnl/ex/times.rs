//! Local time, and the timer resolution.

use crate::{
    execution::routine::{At, Routine},
    ground::irql::Irql,
    services::ntoskrnl::{
        context::{Context, Entries},
        ke::times::tick,
    },
};

const APC: Irql = Irql::APC_LEVEL;
const HIGH: Irql = Irql::HIGH_LEVEL;

pub const ENTRIES: Entries = &[
    ("ExSystemTimeToLocalTime", HIGH, Routine::of(copy)),
    ("ExLocalTimeToSystemTime", HIGH, Routine::of(copy)),
    ("ExQueryTimerResolution", HIGH, Routine::of(query_resolution)),
    ("ExSetTimerResolution", APC, Routine::of(set_resolution)),
];

/// Converts between system time and local time, which are equal in the stand-in kernel.
fn copy(context: &Context, from: At<i64>, to: At<i64>) {
    let time = from.read(context);
    to.write(context, time);
}

/// The shortest interval between ticks that a driver may request, in units of 100 ns.
const SHORTEST: u32 = 5000;

/// The timer resolution that drivers have set. It has no effect on the kernel's clock.
#[derive(Default)]
struct Resolution {
    /// The number of active requests.
    requests: u32,
    /// The shortest requested interval, if any.
    interval: Option<u32>,
}

impl Resolution {
    /// Returns the interval between two ticks, as reported to drivers.
    fn current(&self) -> u32 {
        self.interval.unwrap_or_else(tick)
    }
}

fn query_resolution(context: &Context, longest: u64, shortest: u64, current: u64) {
    let now = context.state().get::<Resolution>().current();
    for (to, value) in [(longest, tick()), (shortest, SHORTEST), (current, now)] {
        context.write(to, &value);
    }
}

/// Shortens the interval between two ticks, or withdraws such a request. Withdrawing the last request
/// restores the default. Returns the interval.
fn set_resolution(context: &Context, desired: u32, sets: bool) -> u32 {
    let mut state = context.state();
    let resolution = state.get::<Resolution>();
    if sets {
        let desired = desired.max(SHORTEST);
        resolution.requests += 1;
        resolution.interval = Some(desired.min(resolution.current()));
    } else {
        resolution.requests = resolution.requests.saturating_sub(1);
        if resolution.requests == 0 {
            resolution.interval = None;
        }
    }
    resolution.current()
}
