//! The kernel's clock.

use std::{
    sync::atomic::{AtomicBool, AtomicI64, Ordering},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use crossbeam_utils::CachePadded;

/// The number of seconds from 1601-01-01 to 1970-01-01.
const EPOCH_DIFFERENCE: u64 = 11_644_473_600;
/// The time between the kernel's start and the first event, so that no
/// reading is zero.
const UPTIME: i64 = 60 * Clock::FREQUENCY;

/// A clock that advances only when it is read or advanced explicitly, so that identical runs read
/// identical times. It counts units of 100 ns, like the performance counter of current Windows
/// versions, and each reading advances it by a microsecond.
///
/// While threads run in parallel, no two runs are identical, so the clock follows the host's clock.
/// Reading it then changes no memory, because a changed cache line would move between the
/// processors.
pub struct Clock {
    /// `FILETIME` (100 ns since 1601-01-01 UTC) of the kernel's start.
    boot: i64,
    /// Each reading writes to this value, so it has a cache line of its own.
    ticks: CachePadded<AtomicI64>,
    /// The reading at the last clock interrupt that fired a timer or ended a wait.
    interrupt: AtomicI64,
    /// Set while the clock follows the host's clock.
    is_running: AtomicBool,
    /// The reading at the time `origin`, while the clock follows the host's clock.
    at_origin: AtomicI64,
    origin: Instant,
}

impl Clock {
    /// The number of ticks of the performance counter per second.
    pub const FREQUENCY: i64 = 10_000_000;
    /// The interval of the clock interrupt and of the coarse times: 15.625 ms.
    pub const TICK: i64 = 156_250;
    /// The shortest clock interrupt interval that a program or driver can request: 0.5 ms. Unless
    /// its due time has already passed, a timer fires no sooner after it is set, and no period is
    /// shorter.
    pub const SHORTEST_TICK: i64 = 5_000;
    const READING: i64 = 10;

    /// Creates a clock whose first reading is `now`.
    pub fn starting_at(now: SystemTime) -> Self {
        let since_1970 = now.duration_since(UNIX_EPOCH).unwrap_or_default();
        let since_1601 = since_1970 + Duration::from_secs(EPOCH_DIFFERENCE);
        Self {
            boot: ticks(since_1601).saturating_sub(UPTIME),
            ticks: CachePadded::new(AtomicI64::new(UPTIME)),
            interrupt: AtomicI64::new(UPTIME),
            is_running: AtomicBool::new(false),
            at_origin: AtomicI64::new(0),
            origin: Instant::now(),
        }
    }

    /// Starts or stops following the host's clock. No other thread may use this clock during the
    /// call.
    pub fn set_running(&self, running: bool) {
        if running == self.is_running.load(Ordering::Acquire) {
            return;
        }
        if running {
            let next = self.last().saturating_add(Self::READING);
            let at_origin = next.saturating_sub(ticks(self.origin.elapsed()));
            self.at_origin.store(at_origin, Ordering::Release);
        } else {
            self.ticks.fetch_max(self.running(), Ordering::Relaxed);
        }
        self.is_running.store(running, Ordering::Release);
    }

    /// Returns the reading while the clock follows the host's clock.
    fn running(&self) -> i64 {
        let at_origin = self.at_origin.load(Ordering::Acquire);
        at_origin.saturating_add(ticks(self.origin.elapsed()))
    }

    /// Reads the performance counter. Each reading is later than the previous reading or, if the
    /// clock follows the host's clock, not earlier.
    pub fn counter(&self) -> i64 {
        if self.is_running.load(Ordering::Acquire) {
            return self.running();
        }
        self.ticks.fetch_add(Self::READING, Ordering::Relaxed) + Self::READING
    }

    /// Returns the performance counter's last reading without advancing the clock.
    pub fn last(&self) -> i64 {
        if self.is_running.load(Ordering::Acquire) {
            return self.running();
        }
        self.ticks.load(Ordering::Relaxed)
    }

    /// Returns the counter's reading at a time in units of 100 ns: a negative time is relative to
    /// now, and any other time counts from 1601.
    pub fn reading_of(&self, time: i64) -> i64 {
        if time < 0 { self.last().saturating_sub(time) } else { time.saturating_sub(self.boot) }
    }

    /// Returns the reading at which a timer fires, given its due time in the form that
    /// [`Self::reading_of`] accepts. Returns `None` if the timer fires immediately because an
    /// absolute time has passed.
    pub fn due(&self, time: i64) -> Option<i64> {
        let now = self.last();
        let due = self.reading_of(time);
        let has_passed = time >= 0 && due <= now;
        (!has_passed).then(|| due.max(now.saturating_add(Self::SHORTEST_TICK)))
    }

    /// Converts a reading of the counter to a `FILETIME`.
    pub const fn file_time(&self, counter: i64) -> i64 {
        self.boot.saturating_add(counter)
    }

    /// Returns the `FILETIME` of the kernel's start.
    pub const fn boot_time(&self) -> i64 {
        self.boot
    }

    /// Advances the clock to a clock interrupt at `counter`, which fires a timer or ends a wait.
    pub fn interrupt_at(&self, counter: i64) {
        self.move_to(counter);
        self.interrupt.fetch_max(counter, Ordering::Relaxed);
    }

    /// Returns the reading at the last clock interrupt, given a reading of the counter.
    pub fn last_interrupt(&self, counter: i64) -> i64 {
        let tick = counter.saturating_sub(counter.rem_euclid(Self::TICK));
        self.interrupt.load(Ordering::Relaxed).max(tick).min(counter)
    }

    /// Advances the clock to `counter`, if that is later than its reading.
    pub fn move_to(&self, counter: i64) {
        if self.is_running.load(Ordering::Acquire) {
            // Several threads may advance the clock at the same time, so this stores the reading at
            // the origin instead of adding to it.
            let at_origin = counter.saturating_sub(ticks(self.origin.elapsed()));
            self.at_origin.fetch_max(at_origin, Ordering::AcqRel);
            return;
        }
        self.ticks.fetch_max(counter, Ordering::Relaxed);
    }
}

/// Converts a duration to units of 100 ns.
pub fn ticks(duration: Duration) -> i64 {
    let seconds = i64::try_from(duration.as_secs()).unwrap_or(i64::MAX);
    let rest = i64::from(duration.subsec_nanos() / 100);
    seconds.saturating_mul(Clock::FREQUENCY).saturating_add(rest)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    fn clock() -> Clock {
        Clock::starting_at(UNIX_EPOCH)
    }

    #[test]
    fn a_stopped_clock_advances_by_its_readings_only() {
        let clock = clock();
        let first = clock.counter();
        std::thread::sleep(Duration::from_millis(1));
        assert_eq!(clock.last(), first);
        assert_eq!(clock.counter(), first + Clock::READING);
        clock.move_to(first + 100);
        clock.move_to(first);
        assert_eq!(clock.counter(), first + 100 + Clock::READING);
    }

    #[test]
    fn a_running_clock_never_goes_back() {
        let clock = clock();
        clock.move_to(clock.last() + 50 * Clock::FREQUENCY);
        let mut last = clock.counter();
        for round in 0..6 {
            clock.set_running(round % 2 == 0);
            for _ in 0..100 {
                let next = clock.counter();
                assert!(next >= last, "{last} {next}");
                assert!(clock.last() >= next);
                last = next;
            }
            // No two consecutive readings were far apart.
            last += Clock::FREQUENCY;
            clock.move_to(last);
            let moved = clock.last();
            assert!((last..last + Clock::FREQUENCY).contains(&moved), "{last} {moved}");
        }
    }

    #[test]
    fn a_thread_reads_a_time_after_that_of_the_thread_that_woke_it() {
        let clock = clock();
        clock.set_running(true);
        let clock = &clock;
        std::thread::scope(|scope| {
            let (there, at_other) = std::sync::mpsc::sync_channel(0);
            let (back, at_this) = std::sync::mpsc::sync_channel(0);
            scope.spawn(move || {
                for time in at_other {
                    let now = clock.counter();
                    assert!(now >= time);
                    back.send(now).unwrap();
                }
            });
            for _ in 0..1000 {
                there.send(clock.counter()).unwrap();
                let time = at_this.recv().unwrap();
                assert!(clock.counter() >= time);
            }
            drop(there);
        });
    }

    #[test]
    fn threads_that_wait_for_the_same_time_advance_a_running_clock_once() {
        const ROUNDS: usize = 100_000;
        const WAIT: i64 = 100 * Clock::FREQUENCY;
        let clock = clock();
        clock.set_running(true);
        let until: Vec<i64> = (1..).take(ROUNDS).map(|round| round * WAIT).collect();
        let (arrived, too_far) = (AtomicUsize::new(0), AtomicUsize::new(0));
        // The threads wait actively at each step, so that they advance the clock at the same time.
        let pass = |all: usize| {
            arrived.fetch_add(1, Ordering::AcqRel);
            while arrived.load(Ordering::Acquire) < all {
                std::thread::yield_now();
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for (round, until) in until.iter().enumerate() {
                        pass(4 * round + 2);
                        clock.move_to(*until);
                        pass(4 * round + 4);
                        if clock.last() >= until + WAIT {
                            too_far.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                });
            }
        });
        assert_eq!(too_far.into_inner(), 0);
    }

    #[test]
    fn a_timer_fires_at_once_or_at_a_later_tick() {
        let clock = clock();
        let now = clock.last();
        assert_eq!(clock.due(-60_000), Some(now + 60_000));
        assert_eq!(clock.due(-1), Some(now + Clock::SHORTEST_TICK));
        assert_eq!(clock.due(i64::MIN), Some(i64::MAX));
        for passed in [0, 1, clock.file_time(now)] {
            assert_eq!(clock.due(passed), None);
        }
        let soon = clock.file_time(now + 1);
        assert_eq!(clock.due(soon), Some(now + Clock::SHORTEST_TICK));
        assert_eq!(clock.reading_of(soon), now + 1);
    }

    #[test]
    fn coarse_times_advance_by_each_wait() {
        let clock = clock();
        let before = clock.last_interrupt(clock.counter());
        clock.move_to(clock.last() + Clock::TICK / 4);
        assert_eq!(clock.last_interrupt(clock.counter()), before);
        for wait in [20_000, 500_000, Clock::SHORTEST_TICK] {
            let before = clock.last_interrupt(clock.counter());
            clock.interrupt_at(clock.last() + wait);
            let after = clock.last_interrupt(clock.counter());
            assert!(after - before >= wait, "{wait}: {before} {after}");
        }
    }

    #[test]
    fn durations_are_in_units_of_100_ns() {
        assert_eq!(ticks(Duration::new(3, 1_234_567)), 30_012_345);
        assert_eq!(ticks(Duration::MAX), i64::MAX);
    }
}
