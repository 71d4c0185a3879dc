//! Schedules: how several threads of a kernel run together.

use std::time::Duration;

use parking_lot::{Condvar, Mutex};

/// The schedule of threads that run together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schedule {
    /// One processor: the threads take turns. A turn can end wherever a driver calls the
    /// kernel below `DISPATCH_LEVEL`, and the seed decides where it does and whose is next.
    /// The same seed is the same run.
    Seeded(u64),
    /// Each thread is a processor of its own, and all run at once. Pageable memory stays
    /// accessible, since one thread's IRQL is not the other's; what drivers pass to ETW is
    /// checked all the same.
    Parallel,
}

/// A baton that several threads hand on: who has it runs.
pub struct Baton {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    running: usize,
    alive: Vec<bool>,
    random: fastrand::Rng,
    /// The number of times in a row that a thread that could not continue handed the baton on.
    fruitless: usize,
}

/// After so many turns for each thread in which none could go on, none ever will.
const HOPELESS: usize = 10_000;

impl Baton {
    /// Returns a baton for so many threads; the seed says which of them starts.
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

    /// A point where the turn can end.
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

    /// Lets another thread run. Returns `false` if none has made progress for long.
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

    /// The thread has done its part.
    pub fn finish(&self, thread: usize) {
        let mut state = self.state.lock();
        state.fruitless = 0;
        if let Some(alive) = state.alive.get_mut(thread) {
            *alive = false;
        }
        self.hand_on(&mut state);
    }
}

/// The longest that a thread on its own processor waits for another, in steps of
/// [`STEP`], before that is a deadlock.
const PATIENCE: Duration = Duration::from_secs(30);
const STEP: Duration = Duration::from_micros(20);

/// Lets the threads of other processors run for a moment, having done so `looks` times
/// already; whether there is still hope.
pub fn pause(looks: u128) -> bool {
    if looks < 100 {
        std::thread::yield_now();
    } else {
        std::thread::sleep(STEP);
    }
    looks < PATIENCE.as_micros() / STEP.as_micros()
}
