//! The runner, which runs jobs on a kernel's processor.

use std::{rc::Rc, sync::Arc};

use crossbeam_channel::Sender;
use parking_lot::Mutex;

use super::leak_guard::Guard;
use crate::{
    execution::{
        context::Context,
        identity::Identity,
        schedule::Baton,
        thread::{self, Host, Thread},
        traps,
    },
    ground::bugcheck::BugCheck,
    services::{
        composition::system::System,
        etw::{controller, service::Context as EtwContext},
        kmdf::state::framework::Context as KmdfContext,
        ntoskrnl::context::Context as NtContext,
    },
};

/// The maximum number of work items that run after the job that queued them. A work item that
/// queues itself every time continues after the next job.
const PER_JOB: usize = 1000;

type Job = Box<dyn FnOnce(&Rc<Thread>) + Send>;

/// A kernel's services, and the processor that runs jobs on them.
#[derive(Clone)]
pub struct Runner {
    system: Arc<System>,
    jobs: Sender<Job>,
    /// `None` for threads that run a test's work, because these threads may briefly outlive the
    /// test's handles.
    guard: Option<Arc<Guard>>,
}

impl Runner {
    /// Starts a processor.
    ///
    /// # Panics
    ///
    /// Panics if the operating system cannot create a thread.
    pub fn start(system: Arc<System>) -> Self {
        let (jobs, inbox) = crossbeam_channel::unbounded::<Job>();
        let services = Arc::clone(&system);
        std::thread::Builder::new()
            .name("processor 0".to_owned())
            .spawn(move || {
                let thread = start_thread(&services, 0, None);
                for job in inbox {
                    job(&thread);
                }
            })
            .expect("a thread can be started");
        Self { guard: Some(Arc::new(Guard::new(&system))), system, jobs }
    }

    /// Returns the guard against drivers and devices that are left behind.
    pub fn guard(&self) -> Option<&Guard> {
        self.guard.as_deref()
    }

    /// Returns a runner that does not count as a handle for the guard.
    pub fn without_guard(&self) -> Self {
        Self { guard: None, ..self.clone() }
    }

    /// Returns the kernel's services.
    pub fn system(&self) -> &System {
        &self.system
    }

    /// Turns the current operating system thread into a thread of the kernel.
    pub fn adopt_thread(&self, processor: u16, baton: Option<(Arc<Baton>, usize)>) -> Rc<Thread> {
        start_thread(&self.system, processor, baton)
    }

    /// Returns the number of calls from drivers into the kernel.
    pub fn calls(&self) -> u64 {
        self.system.environment.calls()
    }

    /// Adds the calls that drivers made on a thread.
    pub fn count_calls(&self, thread: &Thread) {
        self.system.environment.count_calls(thread.take_calls());
    }

    /// Runs a job with the framework's context. See [`Self::run`].
    pub fn kmdf<R: Send + 'static>(
        &self,
        identity: Identity,
        job: impl FnOnce(&KmdfContext) -> R + Send + 'static,
    ) -> Result<R, BugCheck> {
        self.run(identity, |context| job(&System::kmdf_context(context.clone())))
    }

    /// Runs a job with the context of ntoskrnl.exe's routines. See [`Self::run`].
    pub fn ntoskrnl<R: Send + 'static>(
        &self,
        identity: Identity,
        job: impl FnOnce(&NtContext) -> R + Send + 'static,
    ) -> Result<R, BugCheck> {
        self.run(identity, |context| job(&System::ntoskrnl_context(context.clone())))
    }

    /// Runs a job with the ETW runtime's context. See [`Self::run`].
    pub fn etw<R: Send + 'static>(
        &self,
        identity: Identity,
        job: impl FnOnce(&EtwContext) -> R + Send + 'static,
    ) -> Result<R, BugCheck> {
        self.run(identity, |context| job(&System::etw_context(context.clone())))
    }

    /// Runs a job on the kernel's processor, and waits until it returns or the kernel bugchecks.
    ///
    /// # Errors
    ///
    /// Returns an error if the kernel bugchecks or has bugchecked.
    pub fn run<R: Send + 'static>(
        &self,
        identity: Identity,
        job: impl FnOnce(&Context) -> R + Send + 'static,
    ) -> Result<R, BugCheck> {
        let result = Arc::new(Mutex::new(None));
        let slot = Arc::clone(&result);
        self.run_boxed(identity, Box::new(move |context| *slot.lock() = Some(job(context))))?;
        let result = result.lock().take();
        Ok(result.expect("the job has returned"))
    }

    /// Runs a job like [`Self::run`]. This code is compiled once, not for each job.
    fn run_boxed(
        &self,
        identity: Identity,
        job: Box<dyn FnOnce(&Context) + Send>,
    ) -> Result<(), BugCheck> {
        let environment = &self.system.environment;
        if let Some(bugcheck) = environment.crashed() {
            return Err(bugcheck);
        }
        // A thread that belongs to the kernel runs the job itself.
        if let Some(thread) = thread::try_current()
            && Arc::ptr_eq(thread.environment(), environment)
        {
            thread.turn_may_end();
            thread.as_identity(identity, || finish(&thread, job));
            return Ok(());
        }
        let (answer, result) = crossbeam_channel::bounded(1);
        let stopped = answer.clone();
        let runner = self.without_guard();
        let sent = self.jobs.send(Box::new(move |thread| {
            // Sending fails only when the caller has stopped waiting, so no result is lost.
            let on_bugcheck = Box::new(move |bugcheck| drop(stopped.send(Err(bugcheck))));
            thread.run_job(identity, on_bugcheck, || {
                finish(thread, job);
                runner.count_calls(thread);
                drop(answer.send(Ok(())));
            });
        }));
        assert!(sent.is_ok(), "the processor outlives the kernel's handles");
        result.recv().unwrap_or_else(|_| {
            Err(environment.crashed().expect("only a bugcheck ends a job early"))
        })
    }
}

/// Turns the current operating system thread into a thread of a kernel.
fn start_thread(
    system: &Arc<System>,
    processor: u16,
    baton: Option<(Arc<Baton>, usize)>,
) -> Rc<Thread> {
    let environment = Arc::clone(&system.environment);
    let host: Arc<dyn Host> = Arc::<System>::clone(system);
    let thread = Thread::become_current(environment, host, processor, baton);
    traps::watch_this_thread(&thread);
    thread
}

/// Runs a job, and then the work that it queued.
fn finish(thread: &Rc<Thread>, job: Box<dyn FnOnce(&Context) + Send>) {
    job(&Context::of_job(thread));
    let context = Context::of_job(thread);
    for _ in 0..PER_JOB {
        if !thread.host().run_work(thread, context.call()) {
            break;
        }
    }
    controller::after_job(&System::etw_context(context));
}
