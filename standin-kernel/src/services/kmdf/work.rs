//! Work that runs on a system thread, at `PASSIVE_LEVEL`, after the step that queued it. The
//! framework's own work runs on the thread that waits for it. A driver's routine runs on a separate
//! thread, so that it can wait.

use std::collections::VecDeque;

use crate::{
    execution::identity::Identity,
    ground::irql::Irql,
    services::kmdf::state::framework::{Context, ObjectRoutine},
};

/// The system thread that runs the framework's own work.
const WORKER: Identity = Identity { process: Identity::SYSTEM.process, thread: 12 };

/// A routine to run for an object on a system thread.
#[derive(Clone, Copy)]
pub struct Work {
    /// The kind of work. For each object, only one item of each kind can be queued at a time.
    pub kind: WorkKind,
    /// The driver routine that the work calls, or 0 for the framework's own work.
    pub routine: u64,
    /// The object.
    pub handle: u64,
    /// The routine.
    pub run: ObjectRoutine,
}

/// A kind of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkKind {
    /// A work item's function.
    Item,
    /// Events of a queue whose callbacks must be called at `PASSIVE_LEVEL`.
    Queue,
    /// The work item of an interrupt.
    Interrupt,
    /// The function of a timer that is called at `PASSIVE_LEVEL`.
    Timer,
    /// New children of a bus device, or changes to a child list.
    NewChildren,
    /// The removal of a child that its driver reported missing.
    MissingChild,
    /// The ejection of a child.
    EjectedChild,
    /// The removal of a device that its driver declared failed.
    FailedDevice,
    /// The deletion of an object that must be cleaned up at `PASSIVE_LEVEL`.
    Deletion,
    /// The destruction of such an object, after the last reference is released.
    Destruction,
}

#[derive(Default)]
struct WorkQueue(VecDeque<Work>);

/// Queues work for a system thread. Returns `false` if it is already queued.
pub fn queue_work(context: &Context, work: Work) -> bool {
    let mut framework = context.framework();
    let queue = &mut framework.part::<WorkQueue>().0;
    let is_queued = |queued: &Work| (queued.kind, queued.handle) == (work.kind, work.handle);
    let is_new = !queue.iter().any(is_queued);
    if is_new {
        queue.push_back(work);
    }
    is_new
}

/// Removes queued work of this kind for an object.
pub fn forget_work(context: &Context, kind: WorkKind, handle: u64) {
    let mut framework = context.framework();
    let queue = &mut framework.part::<WorkQueue>().0;
    queue.retain(|work| (work.kind, work.handle) != (kind, handle));
}

/// The outcome of running the first queued work.
pub enum Next {
    /// No work was queued.
    None,
    /// The work has run.
    Ran,
    /// The work calls a driver routine, which needs its own thread.
    OfDriver(Work),
}

/// Takes the first queued work, and runs it if it belongs to the framework itself.
pub fn run_one(context: &Context) -> Next {
    if context.irql() > Irql::PASSIVE_LEVEL {
        return Next::None;
    }
    let next = context.framework().part::<WorkQueue>().0.pop_front();
    match next {
        None => Next::None,
        Some(work) if work.routine != 0 => Next::OfDriver(work),
        Some(work) => {
            context.as_identity(WORKER, || (work.run)(context, work.handle));
            Next::Ran
        }
    }
}
