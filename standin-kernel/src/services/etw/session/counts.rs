//! The counters and timestamps of a session.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use etl_file::{
    ClockType,
    write::{Buffer, Losses},
};

use super::config::SessionConfig;
use crate::ground::{clock::Clock, flight};

/// The counters of a session's losses.
#[derive(Default)]
pub struct Counts {
    pub events_lost: AtomicU32,
    pub log_buffers_lost: AtomicU32,
    pub events_in_lost_buffers: AtomicU64,
    pub stacks_not_captured: AtomicU64,
}

impl Counts {
    pub fn losses(&self) -> Losses {
        Losses {
            events_lost: self.events_lost.load(Ordering::Relaxed),
            buffers_lost: self.log_buffers_lost.load(Ordering::Relaxed),
        }
    }

    /// Records the losses so far for the parent process.
    pub fn note_losses(&self, session: u16) {
        let losses = self.losses();
        flight::note_losses(session, losses.events_lost, losses.buffers_lost);
    }

    pub fn lose_buffer(&self, buffer: &Buffer) {
        let events = u64::from(buffer.count());
        self.log_buffers_lost.fetch_add(1, Ordering::Relaxed);
        self.events_in_lost_buffers.fetch_add(events, Ordering::Relaxed);
    }
}

/// Converts a reading of the counter to a session timestamp.
pub const fn stamp(config: &SessionConfig, clock: &Clock, counter: i64) -> i64 {
    match config.clock {
        ClockType::SystemTime => clock.file_time(counter),
        _ => counter,
    }
}
