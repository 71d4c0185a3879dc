//! Threads that a driver creates, and kernel threads that run a driver's work items.
//!
//! Each has its own operating system thread, and so its own stack, so that it can wait in the
//! middle of driver code. It runs only while another thread of the kernel has resumed it and waits
//! for its next pause. A thread and the coroutine that it resumes therefore never run at the same
//! time, and identical runs interleave identically.

use std::{io, rc::Rc, sync::Arc, time::Duration};

use crossbeam_channel::{Receiver, Sender, bounded};

use super::{
    context::Context,
    identity::Identity,
    thread::Thread,
    traps,
    yielder::{Pause, Yielder},
};

/// A coroutine, as seen by the threads that resume it.
pub struct Coroutine {
    resume: Sender<()>,
    pauses: Receiver<Pause>,
}

impl Coroutine {
    /// Creates a coroutine, which starts when it is first resumed.
    ///
    /// # Errors
    ///
    /// Returns an error if the operating system cannot create a thread.
    pub fn spawn(
        of: &Thread,
        identity: Identity,
        body: impl FnOnce(&Context) + Send + 'static,
    ) -> io::Result<Self> {
        let environment = Arc::clone(of.environment());
        let host = Arc::clone(of.host());
        let processor = of.processor();
        let (resume, resumed) = bounded(1);
        let (pause, pauses) = bounded(1);
        std::thread::Builder::new().name(format!("system thread {}", identity.thread)).spawn(
            move || {
                // The resuming side drops the sender if the kernel ends before the coroutine
                // starts.
                if resumed.recv().is_err() {
                    return;
                }
                let thread = Thread::become_current(environment, host, processor, None);
                traps::watch_this_thread(&thread);
                let crashed = pause.clone();
                let ended = pause.clone();
                thread.enter_coroutine(Yielder::new(resumed, pause));
                let on_bugcheck = Box::new(move |bugcheck| {
                    drop(crashed.send(Pause::BugCheck(Box::new(bugcheck))));
                });
                thread.run_job(identity, on_bugcheck, || {
                    body(&Context::of_job(&thread));
                });
                thread.environment().count_calls(thread.take_calls());
                drop(ended.send(Pause::Ended));
            },
        )?;
        Ok(Self { resume, pauses })
    }

    /// Lets the coroutine run until it pauses. A bugcheck in the coroutine also ends `by`.
    pub fn resume(&self, by: &Thread) -> Pause {
        // Sending fails only after the coroutine has ended, which the receiver below then reports.
        let _sent = self.resume.send(());
        match self.pauses.recv() {
            Ok(Pause::BugCheck(bugcheck)) => by.end_with(*bugcheck),
            Ok(pause) => pause,
            Err(_) => Pause::Ended,
        }
    }
}

/// The number of times that a wait lets other threads run before it advances time.
const LOOKS: u32 = 10_000;

/// The number of steps after which a wait without a deadline may count as endless. Without this
/// limit, a periodic timer could prolong the wait forever.
const STEPS: u32 = 10_000;

/// The number of work items after which time advances although more items are queued, so that work
/// that queues itself again does not stop the clock.
const WORK_AT_A_TIME: u32 = 1000;

/// Detects that a wait without a deadline is endless although time could still pass. The wait must
/// take many steps, and as much processor time as driver code may use without calling the kernel.
struct Patience<'a> {
    context: &'a Context,
    steps: u32,
    /// The processor time at the end of the first [`STEPS`].
    since: Option<Duration>,
}

impl<'a> Patience<'a> {
    const fn new(context: &'a Context) -> Self {
        Self { context, steps: 0, since: None }
    }

    /// Counts a step. Returns whether the limit is exceeded.
    fn is_over(&mut self) -> bool {
        self.steps = self.steps.saturating_add(1);
        // The first steps take only a fraction of a second, so the processor time is not read.
        if self.steps < STEPS || !self.steps.is_multiple_of(100) {
            return false;
        }
        let watch = &self.context.watch;
        match (self.since, watch.used()) {
            (Some(since), Some(now)) => now.saturating_sub(since) >= watch.limit(),
            (None, Some(now)) => {
                self.since = Some(now);
                false
            }
            (_, None) => true,
        }
    }
}

/// Waits until `ready` returns `true` or the counter reads `deadline`. Returns the last result of
/// `ready`. Without a deadline, `false` means that the kernel has no work left that could change
/// the result, or that its work has not changed the result for a long time.
pub fn wait_until(
    context: &Context,
    deadline: Option<i64>,
    mut ready: impl FnMut() -> bool,
) -> bool {
    let thread: &Rc<Thread> = context.thread();
    let host = context.host();
    let clock = host.clock();
    let has_passed = || deadline.is_some_and(|deadline| clock.last() >= deadline);
    if context.coroutine().is_some() {
        // The threads that resume this one fire the timers, and detect that no work is left.
        let is_ready = loop {
            if ready() {
                break true;
            }
            if has_passed() {
                break false;
            }
            context.pause(deadline);
        };
        context.wait_is_over();
        return is_ready;
    }
    let mut patience = Patience::new(context);
    let (mut all_looks, mut looks, mut work) = (0, 0, 0);
    while !ready() {
        if has_passed() || (deadline.is_none() && patience.is_over()) {
            return ready();
        }
        if work < WORK_AT_A_TIME && host.run_work(thread, context.call()) {
            work += 1;
            continue;
        }
        let next = [host.next_due(), deadline].into_iter().flatten().min();
        let is_due = next.is_some_and(|next| next <= clock.last());
        if !is_due && looks < LOOKS && context.has_company() && context.give_way(all_looks) {
            all_looks += 1;
            looks += 1;
            continue;
        }
        match next {
            Some(next) => host.fire_timers(thread, context.call(), next),
            None if work < WORK_AT_A_TIME => return ready(),
            None => {}
        }
        (looks, work) = (0, 0);
    }
    true
}

/// Lets time pass until the counter reads `until`: fires timers as they come due, and runs pending work.
pub fn pass_time(context: &Context, until: i64) {
    if context.coroutine().is_some() {
        // Other threads run even if `until` has already passed.
        context.pause(Some(until));
        wait_until(context, Some(until), || false);
        return;
    }
    let host = context.host();
    let mut work = 0;
    let mut is_idle = !context.has_company();
    loop {
        if work < WORK_AT_A_TIME && host.run_work(context.thread(), context.call()) {
            work += 1;
            is_idle = false;
            continue;
        }
        work = 0;
        match host.next_due().filter(|due| *due <= until) {
            Some(due) => host.fire_timers(context.thread(), context.call(), due),
            None => break,
        }
        is_idle = false;
    }
    if is_idle && host.next_due().is_none() {
        context.thread().note_idle_wait();
    }
    host.fire_timers(context.thread(), context.call(), until);
}
