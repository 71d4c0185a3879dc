//! The threads that drivers create, and the threads that run work items.

use std::{collections::HashSet, sync::Arc};

use super::{apcs, dispatcher::satisfy, thread_objects};
use crate::{
    execution::{
        coroutine::{Coroutine, wait_until},
        identity::Identity,
        yielder::Pause,
    },
    ground::{
        NtStatus,
        backtrace::{Backtrace, Explained},
        bugcheck::Violation,
        irql::Irql,
        rule::Rule,
    },
    services::ntoskrnl::context::{Context, Ntoskrnl},
};

/// The id of the first thread that a driver creates. Ids are multiples of 4.
const FIRST_ID: u32 = 0x100;
const ID_STEP: u32 = 4;
/// The ids of threads that run work items: ids below the drivers' range, and ids above it. The
/// lowest free id is used.
const WORKER_IDS: [std::ops::Range<u32>; 2] = [0x20..FIRST_ID, 0x4000_0000..u32::MAX];

/// The threads that have not ended.
#[derive(Default)]
struct Threads {
    issued: u32,
    /// The total number of threads created.
    started: u64,
    all: Vec<SystemThread>,
    /// The index of the thread that runs next.
    next: usize,
}

struct SystemThread {
    /// A number that is unique among all threads of the kernel, including threads that have ended.
    number: u64,
    identity: Identity,
    kind: Kind,
    routine: u64,
    /// `None` while the thread is running.
    coroutine: Option<Coroutine>,
    /// The counter's reading at which the thread's wait ends.
    deadline: Option<i64>,
    /// The name of the routine that created the thread or queued the work.
    by: &'static str,
    backtrace: Backtrace,
}

/// The kind of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A thread that a driver created.
    Drivers,
    /// A thread that a driver created, and that keeps the driver's image loaded until the thread
    /// ends.
    KeepsDriver,
    /// A thread that runs work items.
    Worker,
}

/// A driver routine that a thread runs.
pub struct Job {
    /// The routine's name in messages.
    pub what: &'static str,
    /// The routine.
    pub routine: u64,
    /// Its arguments.
    pub arguments: [u64; 3],
    /// Called with `about` on the thread before the routine.
    pub before: fn(&Context, u64),
    /// The object to which the job belongs.
    pub about: u64,
}

/// Queues work for a kernel thread.
pub fn queue_work(context: &Context, job: &Job) {
    queue_body(context, job.routine, call_job(job));
}

/// Queues work for a kernel thread, which calls a driver routine.
pub fn queue_body(context: &Context, routine: u64, body: impl FnOnce(&Context) + Send + 'static) {
    let thread = context.with_state(|threads: &mut Threads| {
        let used: HashSet<u32> = threads.all.iter().map(|one| one.identity.thread).collect();
        let mut ids = WORKER_IDS.into_iter().flatten().step_by(ID_STEP as usize);
        ids.find(|id| !used.contains(id))
    });
    let thread =
        thread.unwrap_or_else(|| context.stop_for_misuse("with too many queued work items"));
    if let Err(error) = start(context, thread, Kind::Worker, routine, body) {
        context.stop(Rule::Internal, format!("no thread for a work item can be started: {error}"));
    }
}

/// Returns the body of a thread that runs a job.
fn call_job(job: &Job) -> impl FnOnce(&Context) + Send + use<> {
    let Job { what, routine, arguments, before, about } = *job;
    move |context| {
        before(context, about);
        context.call_driver(what, routine, arguments);
    }
}

/// Creates a thread that calls a driver routine.
fn start(
    context: &Context,
    thread: u32,
    kind: Kind,
    routine: u64,
    body: impl FnOnce(&Context) + Send + 'static,
) -> std::io::Result<Identity> {
    let identity = Identity { process: Identity::SYSTEM.process, thread };
    let nt: Arc<Ntoskrnl> = Arc::clone(context.ntoskrnl());
    let coroutine = Coroutine::spawn(context, identity, move |execution| {
        let context = Context::new(nt, execution.clone());
        // An APC can be queued before the thread runs.
        apcs::deliver(&context);
        body(&context);
        end(&context, kind, routine);
    })?;
    let backtrace = context.short_backtrace();
    let mut state = context.state();
    let threads = state.get::<Threads>();
    threads.started += 1;
    threads.all.push(SystemThread {
        number: threads.started,
        identity,
        kind,
        routine,
        coroutine: Some(coroutine),
        deadline: None,
        by: context.call().name,
        backtrace,
    });
    Ok(identity)
}

/// Ends the current thread, whose routine has returned. Its kernel APCs run first.
fn end(context: &Context, kind: Kind, routine: u64) {
    /// `KERNEL_APC_PENDING_DURING_EXIT`.
    const APC_PENDING_DURING_EXIT: u32 = 0x20;
    let sentence = |how: &str| {
        let routine = context.environment().images.function(routine);
        format!("the routine {routine} of a system thread ended {how}")
    };
    if thread_objects::is_attached(context) {
        context.stop(Rule::ObjectMisused, sentence("while the thread was attached to a process"));
    }
    let disabled = thread_objects::disable_count(context);
    if disabled != 0 {
        let sentence = sentence(
            "in a critical or guarded region that it had entered, or as the owner of a mutex, so that \
             APCs are disabled",
        );
        if kind == Kind::Worker {
            context.stop(Rule::ObjectMisused, sentence);
        }
        // The documented parameters are an APC's address, the disable count, the IRQL, and a
        // reserved number. Windows checks the count before it looks for an APC, and so passes 0 and
        // 1 for the others.
        let parameters = [0, disabled.into(), 0, 1];
        let backtrace = context.backtrace();
        context.bugcheck(APC_PENDING_DURING_EXIT, parameters, sentence, &backtrace);
    }
    if thread_objects::end_impersonation(context) && kind == Kind::Worker {
        /// `IMPERSONATING_WORKER_THREAD`.
        const IMPERSONATING: u32 = 0xDF;
        let sentence =
            sentence("while it impersonated a client, as which the next work item would run");
        let backtrace = context.backtrace();
        context.bugcheck(IMPERSONATING, [routine, 0, 0, 0], sentence, &backtrace);
    }
    apcs::deliver(context);
    thread_objects::note_end(context);
    apcs::run_down(context);
    satisfy(context);
}

/// Lets the next runnable thread run until it waits. Returns whether the thread ran driver code.
pub fn run_one(context: &Context) -> bool {
    if context.irql() >= Irql::DISPATCH_LEVEL || context.coroutine().is_some() {
        return false;
    }
    let count = context.state().get::<Threads>().all.len();
    (0..count).any(|_| run_next(context))
}

fn run_next(context: &Context) -> bool {
    let taken = context.with_state(|threads: &mut Threads| {
        let at = if threads.next < threads.all.len() { threads.next } else { 0 };
        threads.next = at + 1;
        let thread = threads.all.get_mut(at)?;
        Some((thread.number, thread.coroutine.take()?))
    });
    let Some((number, coroutine)) = taken else {
        return false;
    };
    let pause = coroutine.resume(context);
    let mut state = context.state();
    let threads = state.get::<Threads>();
    let at = threads.all.iter().position(|one| one.number == number);
    let Some(at) = at else {
        // The thread's driver has been unloaded.
        return true;
    };
    match pause {
        Pause::Waits { deadline, has_run } => {
            if let Some(thread) = threads.all.get_mut(at) {
                thread.deadline = deadline;
                thread.coroutine = Some(coroutine);
            }
            has_run
        }
        Pause::Ended | Pause::BugCheck(_) => {
            let ended = threads.all.remove(at);
            if threads.next > at {
                threads.next -= 1;
            }
            drop(state);
            if ended.kind == Kind::Worker {
                thread_objects::forget_thread(context, ended.identity);
            }
            true
        }
    }
}

/// Returns the counter's reading at which the next wait of a thread ends.
pub fn next_due(nt: &Ntoskrnl) -> Option<i64> {
    let now = nt.clock().last();
    let mut state = nt.state();
    let all = state.get::<Threads>().all.iter();
    // A thread whose wait has ended does not need the clock to advance.
    all.filter(|thread| thread.coroutine.is_some())
        .filter_map(|thread| thread.deadline.filter(|due| *due > now))
        .min()
}

/// Reports and removes the threads that run code of a driver that is being unloaded. `belongs`
/// selects the driver's addresses.
pub fn take_left(context: &Context, driver: &str, belongs: impl Fn(u64) -> bool) -> Vec<Violation> {
    // Other threads keep the driver loaded.
    let is_running = |threads: &mut Threads| {
        threads.all.iter().any(|one| one.kind != Kind::Drivers && belongs(one.routine))
    };
    wait_until(context, None, || !context.with_state(is_running));
    let left: Vec<SystemThread> = context.with_state(|threads: &mut Threads| {
        threads.next = 0;
        threads.all.extract_if(.., |one| belongs(one.routine)).collect()
    });
    left.into_iter()
        .map(|thread| {
            let Explained { place, lines, .. } = context.explain(&thread.backtrace);
            let routine = context.environment().images.function(thread.routine);
            let by = thread.by;
            let message = match thread.kind {
                Kind::Drivers => format!(
                    "{driver} was unloaded while its system thread with the routine {routine} runs, \
                     created by {by} from {place}"
                ),
                Kind::KeepsDriver => format!(
                    "{driver} cannot be unloaded: its system thread with the routine {routine}, \
                     created by {by} from {place}, never ends"
                ),
                Kind::Worker => format!(
                    "{driver} cannot be unloaded: the work item's routine {routine}, queued by {by} \
                     from {place}, never returns"
                ),
            };
            Violation::new(Rule::LeftQueued, message, lines)
        })
        .collect()
}

/// Creates a thread that calls a driver routine.
///
/// # Errors
///
/// Returns an error if the operating system cannot create a thread.
pub fn create(
    context: &Context,
    kind: Kind,
    [routine, start_context]: [u64; 2],
) -> std::io::Result<Identity> {
    let thread = context.with_state(|threads: &mut Threads| {
        threads.issued += 1;
        FIRST_ID + (threads.issued - 1) * ID_STEP
    });
    let job = Job {
        what: "the system thread's routine",
        routine,
        arguments: [start_context, 0, 0],
        before: |_, _| {},
        about: 0,
    };
    start(context, thread, kind, routine, call_job(&job))
}

/// Ends the current thread. Returns only on a thread that no driver created.
pub fn terminate(context: &Context, status: NtStatus) -> NtStatus {
    let is_created = context.with_state(|threads: &mut Threads| {
        let mut all = threads.all.iter();
        all.any(|one| one.identity == context.identity() && one.kind != Kind::Worker)
    });
    if context.coroutine().is_none() || !is_created {
        return NtStatus::INVALID_PARAMETER;
    }
    if context.depth() != 1 {
        context.stop_for_misuse("inside a callback, which must return to its caller");
    }
    thread_objects::note_exit_status(context, status);
    context.stack().exit_after(context.call().stack);
    status
}
