//! The operation in progress on each registration, for callbacks that arrive during it.

use core::sync::atomic::{AtomicU8, Ordering};

use etw_probes_interface::{SLOTS, phase};

static PHASES: [AtomicU8; SLOTS] = [const { AtomicU8::new(phase::NOT_REGISTERED) }; SLOTS];

/// Returns the current phase of a registration, one of [`phase`].
pub fn get(slot: u32) -> u8 {
    PHASES.get(slot as usize).map_or(phase::NOT_REGISTERED, |phase| phase.load(Ordering::Acquire))
}

/// Sets the phase of a registration.
pub fn set(slot: u32, phase: u8) {
    if let Some(place) = PHASES.get(slot as usize) {
        place.store(phase, Ordering::Release);
    }
}
