//! Schedules for threads that run together.

use std::time::Duration;

use parking_lot::{Condvar, Mutex};

/// A schedule for threads that run together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schedule {
    /// The threads take turns on one processor. A turn can end wherever a driver calls the kernel
    /// below `DISPATCH_LEVEL`. The seed decides where turns end and which thread runs next, so that
    /// the same seed repeats the same run.
    Seeded(u64),
    /// The threads run in parallel, each on its own processor. Pageable memory stays accessible at
    /// every IRQL, because the threads' IRQLs differ; addresses that drivers pass to ETW are still
    /// checked. The kernel's clock follows the host's clock until the threads have finished.
    Parallel,
}

/// A baton that threads pass to each other. Only the thread that holds it runs.
pub struct Baton {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    running: usize,
    alive: Vec<bool>,
    random: fastrand::Rng,
    /// The number of consecutive turns without progress.
    fruitless: usize,
}

/// The number of turns per thread without progress after which the threads count as deadlocked.
pub(super) const HOPELESS: usize = 10_000;

impl Baton {
    /// Creates a baton for `threads` threads. The seed decides which thread starts.
    pub fn new(threads: usize, seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        Self {
            state: Mutex::new(State {
                running: random.usize(..threads.max(1)),
                alive: vec![true; threads],
                random,
                fruitless: 0,
            }),
            changed: Condvar::new(),
        }
    }

    /// Waits for the thread's turn.
    pub fn wait(&self, thread: usize) {
        let mut state = self.state.lock();
        while state.running != thread {
            self.changed.wait(&mut state);
        }
    }

    fn hand_on(&self, state: &mut State) {
        let others: Vec<usize> = (0..state.alive.len())
            .filter(|thread| state.alive.get(*thread) == Some(&true))
            .collect();
        if let Some(next) = state.random.choice(others) {
            state.running = next;
        }
        self.changed.notify_all();
    }

    /// Marks a point at which the thread's turn can end.
    pub fn point(&self, thread: usize) {
        {
            let mut state = self.state.lock();
            state.fruitless = 0;
            if state.random.u8(..4) != 0 {
                return;
            }
            self.hand_on(&mut state);
        }
        self.wait(thread);
    }

    /// Lets another thread run. Returns `false` if no thread has made progress for a long time.
    pub fn give_way(&self, thread: usize) -> bool {
        {
            let mut state = self.state.lock();
            state.fruitless += 1;
            if state.fruitless > HOPELESS * state.alive.len() {
                return false;
            }
            self.hand_on(&mut state);
        }
        self.wait(thread);
        true
    }

    /// Removes the thread from the schedule.
    pub fn finish(&self, thread: usize) {
        let mut state = self.state.lock();
        state.fruitless = 0;
        if let Some(alive) = state.alive.get_mut(thread) {
            *alive = false;
        }
        self.hand_on(&mut state);
    }
}

/// The maximum time that a thread on its own processor waits for another thread before the wait
/// counts as a deadlock, counted in steps of [`STEP`].
const PATIENCE: Duration = Duration::from_secs(30);
const STEP: Duration = Duration::from_micros(20);

/// Lets the threads on other processors run for a moment. `looks` is the number of previous pauses
/// in this wait. Returns `false` if the wait has taken too long.
pub fn pause(looks: u128) -> bool {
    if looks < 100 {
        std::thread::yield_now();
    } else {
        std::thread::sleep(STEP);
    }
    looks < PATIENCE.as_micros() / STEP.as_micros()
}
