//! Work on a system thread, at `PASSIVE_LEVEL`, after the step that queued it.

use std::collections::VecDeque;

use super::state::framework::{Context, ObjectRoutine};
use crate::{execution::identity::Identity, ground::irql::Irql};

/// The system thread that runs work items.
pub const WORKER: Identity = Identity {
    process: Identity::SYSTEM.process,
    thread: 12,
};

/// A routine to run for an object on a system thread.
#[derive(Clone, Copy)]
pub struct Work {
    /// The kind of work. Work of one kind is queued once for an object.
    pub kind: WorkKind,
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
    /// Events of a queue whose callbacks must not be called above `PASSIVE_LEVEL`.
    Queue,
    /// The work item of an interrupt.
    Interrupt,
    /// New children of a bus device, or changes of a child list.
    NewChildren,
    /// The end of a child that its driver reported missing.
    MissingChild,
    /// The ejection of a child.
    EjectedChild,
    /// The end of a device that its driver declared failed.
    FailedDevice,
}

/// The queued work.
#[derive(Default)]
struct WorkQueue(VecDeque<Work>);

/// Queues work for a system thread. Returns whether it was not queued yet.
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

/// Removes queued work of a kind for an object.
pub fn forget_work(context: &Context, kind: WorkKind, handle: u64) {
    let mut framework = context.framework();
    let queue = &mut framework.part::<WorkQueue>().0;
    queue.retain(|work| (work.kind, work.handle) != (kind, handle));
}

/// Runs the first queued work. Returns whether there was any.
pub fn run_one(context: &Context) -> bool {
    if context.irql() > Irql::PASSIVE_LEVEL {
        return false;
    }
    let Some(work) = context.framework().part::<WorkQueue>().0.pop_front() else {
        return false;
    };
    context.as_identity(WORKER, || (work.run)(context, work.handle));
    true
}
