//! Several threads of a test that run together.

use std::sync::Arc;

use crossbeam_channel::{RecvError, Sender};

use super::{error::KernelError, kernel::Kernel, runner::Runner};
use crate::{
    execution::schedule::{Baton, Schedule},
    ground::bugcheck::BugCheck,
};

/// The work of one thread for [`Kernel::together`].
pub type Work = Box<dyn FnOnce() + Send>;

/// The outcome of a thread's work.
enum End {
    Done,
    Panicked(Box<dyn std::any::Any + Send>),
    BugCheck(BugCheck),
}

impl Kernel {
    /// Runs each item of work on its own thread, and waits until all are done. The threads can use
    /// the kernel like any other thread.
    ///
    /// # Errors
    ///
    /// Returns an error if the kernel bugchecks.
    ///
    /// # Panics
    ///
    /// Panics if one of the threads panics, or if the operating system cannot create a thread.
    pub fn together(&self, schedule: Schedule, work: Vec<Work>) -> Result<(), KernelError> {
        let runner = self.runner();
        if let Some(bugcheck) = runner.system().environment.crashed() {
            return Err(bugcheck.into());
        }
        let baton = match schedule {
            Schedule::Seeded(seed) => Some(Arc::new(Baton::new(work.len(), seed))),
            Schedule::Parallel => None,
        };
        let parallel = schedule == Schedule::Parallel;
        runner.system().environment.set_parallel(parallel);
        runner.system().clock.set_running(parallel);
        let (over, ends) = crossbeam_channel::unbounded();
        let count = work.len();
        for (number, work) in work.into_iter().enumerate() {
            let processor =
                if parallel { u16::try_from(number).unwrap_or(0) % self.processors() } else { 0 };
            let runner = runner.without_guard();
            let baton = baton.clone().map(|baton| (baton, number));
            let over = over.clone();
            std::thread::Builder::new()
                .name(format!("thread {number}"))
                .spawn(move || run_work(&runner, processor, baton, &over, work))
                .expect("a thread can be started");
        }
        let mut result = Ok(());
        for _ in 0..count {
            match ends.recv() {
                Ok(End::Done) => {}
                Ok(End::Panicked(payload)) => std::panic::resume_unwind(payload),
                Ok(End::BugCheck(bugcheck)) => {
                    result = Err(bugcheck.into());
                    break;
                }
                Err(RecvError) => break,
            }
        }
        runner.system().environment.set_parallel(false);
        if result.is_ok() {
            // After a bugcheck, other threads may still use the clock until they stop at a routine.
            runner.system().clock.set_running(false);
        }
        result
    }
}

/// Runs work on a thread of its own.
fn run_work(
    runner: &Runner,
    processor: u16,
    baton: Option<(Arc<Baton>, usize)>,
    over: &Sender<End>,
    work: Work,
) {
    if let Some((baton, number)) = &baton {
        baton.wait(*number);
    }
    let thread = runner.adopt_thread(processor, baton.clone());
    let stopped = over.clone();
    thread.watch(Box::new(move |bugcheck| {
        // Sending fails only when the receiver has stopped waiting.
        drop(stopped.send(End::BugCheck(bugcheck)));
    }));
    let end = match std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)) {
        Ok(()) => runner.system().environment.crashed().map_or(End::Done, End::BugCheck),
        Err(payload) => End::Panicked(payload),
    };
    runner.count_calls(&thread);
    drop(over.send(end));
    if let Some((baton, number)) = baton {
        baton.finish(number);
    }
}
