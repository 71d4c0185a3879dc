//! Schedules of threads that run together.

use std::time::Duration;

use parking_lot::{Condvar, Mutex};

/// A schedule of threads that run together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schedule {
    /// The threads take turns on one processor. A turn can end wherever a driver calls the
    /// kernel below `DISPATCH_LEVEL`; the seed decides where turns end and which thread is
    /// next. The same seed repeats the same run.
    Seeded(u64),
    /// The threads run at the same time, each on a processor of its own. Pageable memory stays
    /// accessible at every IRQL, because the threads' IRQLs differ; the addresses that drivers
    /// pass to ETW are still checked. The kernel's clock runs with the machine's until the threads
    /// are done.
    Parallel,
}

/// A baton that several threads pass on. The thread that has the baton runs.
pub struct Baton {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    running: usize,
    alive: Vec<bool>,
    random: fastrand::Rng,
    /// The number of consecutive turns in which a thread could not continue.
    fruitless: usize,
}

/// The number of turns per thread without progress after which the threads are deadlocked.
pub(super) const HOPELESS: usize = 10_000;

impl Baton {
    /// Creates a baton for a number of threads; the seed decides which thread starts.
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

    /// Marks a point where the thread's turn can end.
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

    /// Ends the thread's part in the schedule.
    pub fn finish(&self, thread: usize) {
        let mut state = self.state.lock();
        state.fruitless = 0;
        if let Some(alive) = state.alive.get_mut(thread) {
            *alive = false;
        }
        self.hand_on(&mut state);
    }
}

/// The longest time that a thread on its own processor waits for another thread, in steps of
/// [`STEP`], before the wait counts as a deadlock.
const PATIENCE: Duration = Duration::from_secs(30);
const STEP: Duration = Duration::from_micros(20);

/// Lets the threads of other processors run for a moment. `looks` is the number of earlier
/// pauses of the same wait. Returns `false` if the wait has taken too long.
pub fn pause(looks: u128) -> bool {
    if looks < 100 {
        std::thread::yield_now();
    } else {
        std::thread::sleep(STEP);
    }
    looks < PATIENCE.as_micros() / STEP.as_micros()
}
