//! Threads that start at the same time, each on its own processor and with its own stack.

use std::{
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, anyhow};
use fastrand::Rng;
use nix::time::{ClockId, clock_gettime};

use crate::processors::stay_on;

/// The size of a thread's stack in the Windows kernel.
const STACK: usize = 24 << 10;

/// The size of a page.
const PAGE: usize = 4 << 10;

/// The elapsed time and processor time of one thread.
#[derive(Clone, Copy, Debug)]
pub struct Time {
    /// The elapsed time.
    pub passed: Duration,
    /// The time for which the thread had its processor.
    pub on_processor: Duration,
}

impl Time {
    /// Returns the fraction of the time that the thread waited for its processor.
    pub fn waited(&self) -> f64 {
        1.0 - (self.on_processor.as_secs_f64() / self.passed.as_secs_f64()).min(1.0)
    }
}

fn on_processor() -> Result<Duration> {
    let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID)
        .context("cannot read the thread's processor time")?;
    Ok(Duration::from(time))
}

/// Runs `work` once on the calling thread.
pub fn once(work: impl Fn()) -> Result<Time> {
    let on_processor_before = on_processor()?;
    let start = Instant::now();
    work();
    Ok(Time {
        passed: start.elapsed(),
        on_processor: on_processor()?.saturating_sub(on_processor_before),
    })
}

/// Runs `work` on one thread per processor, all at the same time.
///
/// The stacks have the size of Windows kernel stacks plus a few pages. The number of pages varies
/// between calls, so that the distances vary: a provider can select the memory that a thread writes
/// to by its stack address.
pub fn together(processors: &[usize], rng: &mut Rng, work: impl Fn() + Sync) -> Result<Vec<Time>> {
    let ready = AtomicUsize::new(0);
    let is_cancelled = AtomicBool::new(false);
    let one = |processor: usize| {
        let pinned = stay_on(processor);
        ready.fetch_add(1, Ordering::AcqRel);
        while ready.load(Ordering::Acquire) < processors.len() {
            if is_cancelled.load(Ordering::Acquire) {
                return Err(anyhow!("another thread could not be started"));
            }
            thread::yield_now();
        }
        pinned.with_context(|| format!("cannot run a thread on processor {processor} only"))?;
        once(&work)
    };
    thread::scope(|scope| {
        let mut threads = Vec::new();
        for processor in processors {
            let size = STACK + PAGE * rng.usize(0..16);
            let started =
                thread::Builder::new().stack_size(size).spawn_scoped(scope, || one(*processor));
            // The scope waits for the threads that have already started.
            threads.push(started.inspect_err(|_| is_cancelled.store(true, Ordering::Release)));
        }
        let mut times = Vec::new();
        for started in threads {
            let thread = started.context("cannot start a thread")?;
            let time = thread.join().map_err(|_| anyhow!("a thread panicked"))?;
            times.push(time?);
        }
        Ok(times)
    })
}

#[cfg(test)]
mod tests {
    use std::{
        collections::BTreeSet,
        sync::{Barrier, Mutex},
    };

    use super::*;
    use crate::processors::usable;

    #[test]
    fn threads_run_at_the_same_time() {
        let processors: Vec<usize> = usable().unwrap().into_iter().take(2).collect();
        // Each thread waits for the others, so sequential threads would never end.
        let all = Barrier::new(processors.len());
        let times = together(&processors, &mut Rng::with_seed(1), || {
            all.wait();
        });
        assert_eq!(times.unwrap().len(), processors.len());
    }

    #[test]
    fn the_distance_of_the_stacks_varies() {
        let processors: Vec<usize> = usable().unwrap().into_iter().cycle().take(2).collect();
        let mut rng = Rng::with_seed(1);
        let mut distances = BTreeSet::new();
        for _ in 0..8 {
            let stacks = Mutex::new(Vec::new());
            let work = || {
                let here = 0_u8;
                stacks.lock().unwrap().push((&raw const here).addr());
            };
            together(&processors, &mut rng, work).unwrap();
            let stacks = stacks.into_inner().unwrap();
            distances.insert(stacks[0].abs_diff(stacks[1]) / PAGE);
        }
        assert!(distances.len() >= 4, "{distances:?}");
    }

    #[test]
    fn a_processor_that_does_not_exist_is_an_error() {
        let error = together(&[1000], &mut Rng::with_seed(1), || {}).unwrap_err();
        assert_eq!(error.to_string(), "cannot run a thread on processor 1000 only");
    }

    #[test]
    fn a_thread_that_sleeps_has_waited() {
        let time = once(|| thread::sleep(Duration::from_millis(20))).unwrap();
        assert!(time.waited() > 0.5, "{time:?}");
    }
}
