//! The watchdog, which ends driver code that does not return.
//!
//! The watchdog thread checks the threads that run driver code. If a thread has used its limit of
//! processor time without calling the kernel, the watchdog sends it a signal, after which it
//! continues in [`super::traps`]. If a thread keeps calling the kernel, it is stopped in one of
//! those calls. The limit is processor time, so a slow machine does not stop a driver.

use std::{
    mem::MaybeUninit,
    sync::{
        Arc, Once,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use nix::libc;
use parking_lot::Mutex;

use crate::ground::signals;

/// The interval between two checks.
const PERIOD: Duration = Duration::from_millis(50);

/// The number of limits that a driver may use if it calls the kernel meanwhile.
const WITH_CALLS: u32 = 6;

/// The threads that are watched.
static WATCHED: Mutex<Vec<Seen>> = Mutex::new(Vec::new());

/// A thread, as the watchdog saw it last.
struct Seen {
    watched: Arc<Watched>,
    /// The number of steps at that time.
    steps: u64,
    /// The processor time of the last step, and that of the entry into driver code.
    since: Option<(Duration, Duration)>,
}

/// A thread that runs driver code.
struct Watched {
    thread: libc::pthread_t,
    limit: Duration,
    /// Set while driver code runs, or a routine that it called.
    is_inside: AtomicBool,
    /// The number of times that driver code was entered or left, on any path.
    steps: AtomicU64,
    /// Set if the next call to the kernel must end the driver.
    is_over: AtomicBool,
}

/// The watch over a thread, which ends when this is dropped.
pub struct Watch(Arc<Watched>);

impl Watch {
    /// Starts to watch this thread.
    pub fn over_this_thread(limit: Duration) -> Self {
        static STARTED: Once = Once::new();
        STARTED.call_once(|| {
            // Without a watchdog, the only fault that goes unreported is a driver that loops
            // forever.
            let started = std::thread::Builder::new()
                .name("watchdog".to_owned())
                .spawn(look);
            drop(started);
        });
        // SAFETY: the function has no preconditions.
        let thread = unsafe { libc::pthread_self() };
        let watched = Arc::new(Watched {
            thread,
            limit,
            is_inside: AtomicBool::new(false),
            steps: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
        });
        WATCHED.lock().push(Seen {
            watched: Arc::clone(&watched),
            steps: 0,
            since: None,
        });
        Self(watched)
    }

    /// Returns the limit.
    pub fn limit(&self) -> Duration {
        self.0.limit
    }

    /// Notes that driver code is entered from outside, or left for good.
    pub fn set_inside(&self, inside: bool) {
        self.0.is_inside.store(inside, Ordering::Relaxed);
        self.note_step();
    }

    /// Notes that driver code is entered or left.
    pub fn note_step(&self) {
        // This thread alone writes the number.
        let steps = self.0.steps.load(Ordering::Relaxed);
        self.0.steps.store(steps.wrapping_add(1), Ordering::Relaxed);
    }

    /// Returns whether the driver has used its time although it calls the kernel.
    pub fn is_over(&self) -> bool {
        self.0.is_over.load(Ordering::Relaxed)
    }

    /// Returns the time after which a driver that calls the kernel is stopped.
    pub fn limit_with_calls(&self) -> Duration {
        self.0.limit.saturating_mul(WITH_CALLS)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // The lock also keeps the watchdog from a thread that has ended.
        WATCHED
            .lock()
            .retain(|seen| !Arc::ptr_eq(&seen.watched, &self.0));
    }
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
            watched.is_over.store(false, Ordering::Relaxed);
            return;
        }
        let Some(now) = processor_time(watched.thread) else {
            return;
        };
        let steps = watched.steps.load(Ordering::Relaxed);
        let (mut since_step, since_entry) = self.since.unwrap_or((now, now));
        if steps != self.steps {
            since_step = now;
        }
        if now.saturating_sub(since_step) >= watched.limit {
            signals::interrupt(watched.thread);
            // The signal has no effect in the kernel's own code.
            since_step = now;
        }
        let limit = watched.limit.saturating_mul(WITH_CALLS);
        if now.saturating_sub(since_entry) >= limit {
            watched.is_over.store(true, Ordering::Relaxed);
        }
        self.steps = steps;
        self.since = Some((since_step, since_entry));
    }
}

/// Returns the processor time that a thread has used.
fn processor_time(thread: libc::pthread_t) -> Option<Duration> {
    let mut clock = 0;
    // SAFETY: the thread runs, since it leaves the list before it ends, and the result's place is
    // a local.
    let found = unsafe { libc::pthread_getcpuclockid(thread, &raw mut clock) };
    if found != 0 {
        return None;
    }
    let mut time = MaybeUninit::<libc::timespec>::zeroed();
    // SAFETY: the result's place is a local.
    let read = unsafe { libc::clock_gettime(clock, time.as_mut_ptr()) };
    if read != 0 {
        return None;
    }
    // SAFETY: zeros are a valid time, and the call has set it.
    let time = unsafe { time.assume_init() };
    let seconds = u64::try_from(time.tv_sec).ok()?;
    Some(Duration::new(seconds, u32::try_from(time.tv_nsec).ok()?))
}
