//! The kernel's clock.

use std::{
    sync::atomic::{AtomicI64, Ordering},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// The number of seconds from 1601-01-01 to 1970-01-01.
const EPOCH_DIFFERENCE: u64 = 11_644_473_600;
/// The time between the kernel's start and the first event, so that no
/// reading is zero.
const UPTIME: i64 = 60 * Clock::FREQUENCY;

/// A clock that advances only when it is read or advanced explicitly, so that equal runs read equal
/// times. It counts units of 100 ns, as the performance counter of current Windows versions does,
/// and one reading takes a microsecond.
pub struct Clock {
    /// `FILETIME` (100 ns since 1601-01-01 UTC) of the kernel's start.
    boot: i64,
    ticks: AtomicI64,
}

impl Clock {
    /// Ticks per second of the performance counter.
    pub const FREQUENCY: i64 = 10_000_000;
    const READING: i64 = 10;

    /// Creates a clock whose first reading is `now`.
    pub fn starting_at(now: SystemTime) -> Self {
        let since_1970 = now.duration_since(UNIX_EPOCH).unwrap_or_default();
        let since_1601 = since_1970 + Duration::from_secs(EPOCH_DIFFERENCE);
        Self {
            boot: ticks(since_1601).saturating_sub(UPTIME),
            ticks: AtomicI64::new(UPTIME),
        }
    }

    /// Reads the performance counter. Each reading is later than the one before.
    pub fn counter(&self) -> i64 {
        self.ticks.fetch_add(Self::READING, Ordering::Relaxed) + Self::READING
    }

    /// Returns the performance counter's last reading without advancing the clock.
    pub fn last(&self) -> i64 {
        self.ticks.load(Ordering::Relaxed)
    }

    /// Returns the `FILETIME` of a reading of the counter.
    pub const fn file_time(&self, counter: i64) -> i64 {
        self.boot.saturating_add(counter)
    }

    /// Returns the `FILETIME` of the kernel's start.
    pub const fn boot_time(&self) -> i64 {
        self.boot
    }

    /// Advances the clock to `counter`, if that is later.
    pub fn move_to(&self, counter: i64) {
        self.ticks.fetch_max(counter, Ordering::Relaxed);
    }
}

/// Returns a duration in units of 100 ns.
pub fn ticks(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos() / 100).unwrap_or(i64::MAX)
}
