//! The watchdog, which ends driver code that does not return.
//!
//! The watchdog thread checks the threads that run driver code. If a thread has used its limit of
//! processor time without calling the kernel, the watchdog interrupts it, and the thread
//! continues in [`super::traps`]. A thread that keeps calling the kernel is stopped in one of those
//! calls. The limit applies to processor time, so a driver is not stopped because the host is slow.

use std::{
    sync::{
        Arc, Once,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;

use crate::ground::host::Interruption;

/// The interval between two checks.
const PERIOD: Duration = Duration::from_millis(50);

/// The multiple of the limit that a driver may use if it calls the kernel during that time.
const WITH_CALLS: u32 = 6;

/// The threads that are watched.
static WATCHED: Mutex<Vec<Seen>> = Mutex::new(Vec::new());

/// A thread, as of the watchdog's last check.
struct Seen {
    watched: Arc<Watched>,
    /// The number of steps at the last check.
    steps: u64,
    /// The number of entries at the last check.
    entries: u64,
    /// The thread's processor time at the last step, and at the entry into driver code.
    since: Option<(Duration, Duration)>,
}

/// A thread that runs driver code. The thread changes this data in each call, so the data has its
/// own cache lines.
#[repr(align(128))]
struct Watched {
    interruption: Interruption,
    limit: Duration,
    /// Set while driver code, or a routine that it called, is running.
    is_inside: AtomicBool,
    /// The number of times that driver code was entered or left, including by calls to the kernel.
    steps: AtomicU64,
    /// The number of times that driver code was entered from outside.
    entries: AtomicU64,
    /// The number of the entry whose next call to the kernel must end the driver, or 0.
    over: AtomicU64,
}

/// The watch over a thread. Ends when dropped.
pub struct Watch(Arc<Watched>);

impl Watch {
    /// Starts to watch this thread.
    pub fn over_this_thread(limit: Duration) -> Self {
        static STARTED: Once = Once::new();
        STARTED.call_once(|| {
            // If the watchdog cannot be started, only endless loops in drivers go unreported.
            let started = std::thread::Builder::new().name("watchdog".to_owned()).spawn(look);
            drop(started);
        });
        let watched = Arc::new(Watched {
            interruption: Interruption::of_this_thread(),
            limit,
            is_inside: AtomicBool::new(false),
            steps: AtomicU64::new(0),
            entries: AtomicU64::new(0),
            over: AtomicU64::new(0),
        });
        WATCHED.lock().push(Seen {
            watched: Arc::clone(&watched),
            steps: 0,
            entries: 0,
            since: None,
        });
        Self(watched)
    }

    /// Returns the limit.
    pub fn limit(&self) -> Duration {
        self.0.limit
    }

    /// Returns the processor time that the thread has used.
    pub fn used(&self) -> Option<Duration> {
        self.0.interruption.processor_time()
    }

    /// Records that driver code is entered from outside, or left completely.
    pub fn set_inside(&self, inside: bool) {
        if inside {
            increment(&self.0.entries);
        }
        self.0.is_inside.store(inside, Ordering::Relaxed);
        self.note_step();
    }

    /// Records that driver code is entered or left, including by a call to the kernel.
    pub fn note_step(&self) {
        increment(&self.0.steps);
    }

    /// Returns whether the driver has exceeded its time although it calls the kernel.
    pub fn is_over(&self) -> bool {
        // If an earlier entry exceeded its time, that entry has returned, so its time no longer
        // matters.
        self.0.over.load(Ordering::Relaxed) == self.0.entries.load(Ordering::Relaxed)
    }

    /// Returns the time after which a driver that calls the kernel is stopped.
    pub fn limit_with_calls(&self) -> Duration {
        self.0.limit.saturating_mul(WITH_CALLS)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // The lock also prevents the watchdog from accessing a thread that has ended.
        WATCHED.lock().retain(|seen| !Arc::ptr_eq(&seen.watched, &self.0));
        // The watched thread drops the watch, so this ends its own interruptions.
        Interruption::end();
    }
}

/// Increments a number that only this thread writes.
fn increment(number: &AtomicU64) {
    let next = number.load(Ordering::Relaxed).wrapping_add(1);
    number.store(next, Ordering::Relaxed);
}

/// Checks the threads forever.
fn look() {
    loop {
        std::thread::sleep(PERIOD);
        for seen in WATCHED.lock().iter_mut() {
            seen.look();
        }
    }
}

impl Seen {
    fn look(&mut self) {
        let watched = &*self.watched;
        if !watched.is_inside.load(Ordering::Relaxed) {
            self.since = None;
            return;
        }
        let Some(now) = watched.interruption.processor_time() else {
            return;
        };
        let steps = watched.steps.load(Ordering::Relaxed);
        let entries = watched.entries.load(Ordering::Relaxed);
        let (mut since_step, mut since_entry) = self.since.unwrap_or((now, now));
        if entries != self.entries {
            // Since the last check, the driver has returned and was entered again.
            since_entry = now;
        }
        if steps != self.steps {
            since_step = now;
        }
        if now.saturating_sub(since_step) >= watched.limit {
            // The interruption has no effect in the kernel's own code.
            if watched.interruption.interrupt() {
                since_step = now;
            }
        }
        let limit = watched.limit.saturating_mul(WITH_CALLS);
        if now.saturating_sub(since_entry) >= limit {
            watched.over.store(entries, Ordering::Relaxed);
        }
        self.steps = steps;
        self.entries = entries;
        self.since = Some((since_step, since_entry));
    }
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;

    use super::*;

    /// Spends processor time on this thread.
    fn work(watch: &Watch, time: Duration) {
        let start = watch.used().unwrap();
        while watch.used().unwrap().saturating_sub(start) < time {
            black_box(0);
        }
    }

    #[test]
    fn driver_code_that_returns_each_time_is_not_over() {
        let limit = Duration::from_millis(40);
        let watch = Watch::over_this_thread(limit);
        for _ in 0..60 {
            watch.set_inside(true);
            work(&watch, limit / 4);
            assert!(!watch.is_over());
            watch.set_inside(false);
        }
    }

    #[test]
    fn driver_code_that_calls_and_does_not_return_is_over() {
        let limit = Duration::from_millis(40);
        let watch = Watch::over_this_thread(limit);
        watch.set_inside(true);
        for _ in 0..60 {
            work(&watch, limit / 4);
            watch.note_step();
        }
        assert!(watch.is_over());
        // The next entry starts with its full time limit.
        watch.set_inside(false);
        watch.set_inside(true);
        assert!(!watch.is_over());
        watch.set_inside(false);
    }
}
