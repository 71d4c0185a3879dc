//! Local time, and the timer resolution.

use crate::{
    execution::routine::{At, routine},
    services::ntoskrnl::{
        context::{Context, Entries},
        ke::times::tick,
    },
};

pub const ENTRIES: Entries = &[
    routine("ExSystemTimeToLocalTime", copy),
    routine("ExLocalTimeToSystemTime", copy),
    routine("ExQueryTimerResolution", query_resolution),
    routine("ExSetTimerResolution", set_resolution),
];

/// Converts between system time and local time, which are equal in the stand-in kernel.
fn copy(context: &Context, from: At<i64>, converted_time: At<i64>) {
    let time = from.read(context);
    converted_time.write(context, time);
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

fn query_resolution(context: &Context, longest: At<u32>, shortest: At<u32>, current: At<u32>) {
    let now = context.state().get::<Resolution>().current();
    for (to, value) in [(longest, tick()), (shortest, SHORTEST), (current, now)] {
        context.write(to.0, &value);
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
