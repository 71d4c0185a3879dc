//! Threads that a driver creates, and the kernel's own that run a driver's work items.
//!
//! Each has an operating system thread, and with it a stack of its own, so that it can wait in the
//! middle of driver code. It runs only while another thread of the kernel resumes it and waits for its
//! next pause: two of them never run at the same time because of a resumption, and equal runs
//! interleave equally.

use std::{io, rc::Rc, sync::Arc};

use crossbeam_channel::{Receiver, Sender, bounded};

use super::{
    context::Context,
    identity::Identity,
    inside::{Inside, Pause},
    thread::Thread,
    traps,
};

/// A coroutine, seen from the threads that resume it.
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
        std::thread::Builder::new()
            .name(format!("system thread {}", identity.thread))
            .spawn(move || {
                // Dropped by the other side if the kernel ends before the coroutine starts.
                if resumed.recv().is_err() {
                    return;
                }
                let thread = Thread::become_current(environment, host, processor, None);
                traps::watch_this_thread(&thread);
                let crashed = pause.clone();
                let ended = pause.clone();
                thread.enter_coroutine(Inside::new(resumed, pause));
                let on_bugcheck = Box::new(move |bugcheck| {
                    drop(crashed.send(Pause::BugCheck(Box::new(bugcheck))));
                });
                thread.run_job(identity, on_bugcheck, || {
                    body(&Context::of_job(&thread));
                });
                thread.environment().count_calls(thread.take_calls());
                drop(ended.send(Pause::Ended));
            })?;
        Ok(Self { resume, pauses })
    }

    /// Lets the coroutine run until it pauses. A bugcheck in it ends `by` too.
    pub fn resume(&self, by: &Thread) -> Pause {
        // Sending fails only after the end, which the receiver below then reports.
        let _sent = self.resume.send(());
        match self.pauses.recv() {
            Ok(Pause::BugCheck(bugcheck)) => by.end_with(*bugcheck),
            Ok(pause) => pause,
            Err(_) => Pause::Ended,
        }
    }
}

/// The number of steps after which a wait counts as endless. A periodic timer could otherwise
/// keep it running forever.
const PATIENCE: u32 = 10_000;

/// Waits until `ready` returns `true`, or until the counter reads `deadline`. Returns the last
/// result of `ready`. Without a deadline, `false` means that this kernel has no work left that
/// could change the result.
pub fn wait_until(
    context: &Context,
    deadline: Option<i64>,
    mut ready: impl FnMut() -> bool,
) -> bool {
    let thread: &Rc<Thread> = context.thread();
    let host = context.host();
    let clock = host.clock();
    if context.coroutine().is_some() {
        // The threads that resume this one fire the timers, and know when nothing is left to do.
        let is_ready = loop {
            if ready() {
                break true;
            }
            if deadline.is_some_and(|deadline| clock.last() >= deadline) {
                break false;
            }
            context.pause(deadline);
        };
        context.wait_is_over();
        return is_ready;
    }
    let mut looks = 0;
    for _ in 0..PATIENCE {
        if ready() {
            return true;
        }
        if host.run_work(thread, context.call()) {
            continue;
        }
        let due = host.next_due();
        let due = due.filter(|due| deadline.is_none_or(|deadline| *due <= deadline));
        if context.has_company() && context.give_way(looks) {
            looks += 1;
        } else if let Some(due) = due {
            host.fire_timers(thread, context.call(), due);
        } else {
            break;
        }
    }
    if let Some(deadline) = deadline {
        clock.move_to(deadline);
    }
    ready()
}

/// Lets time pass until the counter reads `until`: fires the timers that come due, and runs the work
/// that waits.
pub fn pass_time(context: &Context, until: i64) {
    if context.coroutine().is_some() {
        wait_until(context, Some(until), || false);
        return;
    }
    let host = context.host();
    for _ in 0..PATIENCE {
        if host.run_work(context.thread(), context.call()) {
            continue;
        }
        match host.next_due().filter(|due| *due <= until) {
            Some(due) => host.fire_timers(context.thread(), context.call(), due),
            None => break,
        }
    }
    host.fire_timers(context.thread(), context.call(), until);
}
