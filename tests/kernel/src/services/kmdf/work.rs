//! Work on a system thread, at `PASSIVE_LEVEL`, after the step that queued it.

use std::collections::VecDeque;

use super::state::framework::{Context, ObjectRoutine};
use crate::{execution::identity::Identity, ground::irql::Irql};

/// The system thread that runs work items.
pub const WORKER: Identity = Identity {
    process: Identity::SYSTEM.process,
    thread: 12,
};

/// The most work that one step may lead to. A work item that queues itself for ever goes
/// on after the next step.
const PER_STEP: usize = 1000;

/// Something to do on a system thread: a routine for an object.
#[derive(Clone, Copy)]
pub struct Work {
    /// The kind of work: the same kind for the same object is queued once.
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
    /// The end of a device that its driver declared failed.
    FailedDevice,
}

/// The work that is queued.
#[derive(Default)]
struct WorkQueue(VecDeque<Work>);

/// Queues something for a system thread.
pub fn queue_work(context: &Context, work: Work) {
    let mut framework = context.framework();
    let queue = &mut framework.part::<WorkQueue>().0;
    let is_queued = |queued: &Work| (queued.kind, queued.handle) == (work.kind, work.handle);
    if !queue.iter().any(is_queued) {
        queue.push_back(work);
    }
}

/// Forgets work of a kind that is queued for an object.
pub fn forget_work(context: &Context, kind: WorkKind, handle: u64) {
    let mut framework = context.framework();
    let queue = &mut framework.part::<WorkQueue>().0;
    queue.retain(|work| (work.kind, work.handle) != (kind, handle));
}

/// Does what the last step queued, and what that leads to.
pub fn run_work(context: &Context) {
    for _ in 0..PER_STEP {
        if !run_one(context) {
            return;
        }
    }
}

/// Does the first thing that is queued. Returns whether there was one.
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
