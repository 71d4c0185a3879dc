//! Local times, and the resolution of timers.

use crate::{
    execution::routine::{Routine, low_half},
    ground::{clock::Clock, irql::Irql},
    services::ntoskrnl::context::{Context, Entries},
};

const APC: Irql = Irql::APC_LEVEL;
const HIGH: Irql = Irql::HIGH_LEVEL;

pub const ENTRIES: Entries = &[
    ("ExSystemTimeToLocalTime", HIGH, Routine::Two(copy)),
    ("ExLocalTimeToSystemTime", HIGH, Routine::Two(copy)),
    ("ExQueryTimerResolution", HIGH, Routine::Three(query_resolution)),
    ("ExSetTimerResolution", APC, Routine::Two(set_resolution)),
];

/// Converts between the system's time and the local one, which are the same.
fn copy(context: &Context, from: u64, to: u64) -> u64 {
    let time: i64 = context.read(from);
    context.write(to, &time);
    0
}

/// The shortest interval between ticks that a driver may ask for, in units of 100 ns.
const SHORTEST: u32 = 5000;

/// Returns the interval between two ticks in units of 100 ns.
fn tick() -> u32 {
    u32::try_from(Clock::TICK).unwrap_or(u32::MAX)
}

/// What drivers have set. The clock of this kernel ticks as before.
#[derive(Default)]
struct Resolution {
    /// The requests that were not taken back.
    requests: u32,
    /// The shortest interval among them, if there is one.
    interval: Option<u32>,
}

impl Resolution {
    /// Returns the interval between two ticks that drivers are told.
    fn current(&self) -> u32 {
        self.interval.unwrap_or_else(tick)
    }
}

fn query_resolution(context: &Context, longest: u64, shortest: u64, current: u64) -> u64 {
    let now = context.state().get::<Resolution>().current();
    for (to, value) in [(longest, tick()), (shortest, SHORTEST), (current, now)] {
        context.write(to, &value);
    }
    0
}

/// Shortens the interval between two ticks, or takes a request to do so back: the last one restores the
/// default. Returns the interval.
fn set_resolution(context: &Context, desired: u64, sets: u64) -> u64 {
    let mut state = context.state();
    let resolution = state.get::<Resolution>();
    if sets & 0xFF != 0 {
        let desired = low_half(desired).max(SHORTEST);
        resolution.requests += 1;
        resolution.interval = Some(desired.min(resolution.current()));
    } else {
        resolution.requests = resolution.requests.saturating_sub(1);
        if resolution.requests == 0 {
            resolution.interval = None;
        }
    }
    u64::from(resolution.current())
}
