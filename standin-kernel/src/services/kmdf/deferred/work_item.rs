//! Work items: driver routines that run on a system thread.

use std::thread::ThreadId;

use crate::{
    execution::routine::{At, Handle, Out, routine},
    ground::{
        NtResult, NtStatus,
        abi::{ObjectAttributes, WorkItemConfig},
        irql::Irql,
        rule::Rule,
    },
    services::kmdf::{
        lifetime::{create, get_parent, give, hold, release, with_parent},
        state::framework::{Context, Data, Entries, ObjectRoutine},
        synchronization::{
            presentation,
            presentation::{Lock, serialization},
            wait,
        },
        work::{Work, WorkKind, forget_work, queue_work},
    },
};

/// A work item.
pub struct WorkItemData {
    function: u64,
    /// The lock that is held while the function runs.
    lock: Option<Lock>,
    queued: bool,
    /// The thread that runs the function.
    runner: Option<ThreadId>,
}

impl Data for WorkItemData {
    const NAME: &'static str = "WDFWORKITEM";
    const IS_PASSIVE: bool = true;
    const BEFORE_DELETE: Option<ObjectRoutine> = Some(finish_before_delete);
}

pub const ENTRIES: Entries = &[
    routine("WdfWorkItemCreate", work_item_create),
    routine("WdfWorkItemEnqueue", work_item_enqueue),
    routine("WdfWorkItemFlush", work_item_flush),
    routine("WdfWorkItemGetParentObject", get_parent::<WorkItemData>),
];

fn work_item_create(
    context: &Context,
    config: At<WorkItemConfig>,
    attributes: At<ObjectAttributes>,
    work_item: Out<WorkItemData>,
) -> NtResult {
    let attributes = with_parent(context, attributes.0)?;
    let config = config.read(context);
    if config.size as usize != size_of::<WorkItemConfig>() {
        return Err(NtStatus::INFO_LENGTH_MISMATCH);
    }
    if config.evt_work_item_func == 0 {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    let is_serialized = config.automatic_serialization != 0;
    let made =
        serialization(context, attributes.parent_object, is_serialized, true).and_then(|lock| {
            let data = WorkItemData {
                function: config.evt_work_item_func,
                lock,
                queued: false,
                runner: None,
            };
            create(context, data, Some(&attributes), None)
        });
    give(context, made, work_item.0)
}

fn work_item_enqueue(context: &Context, work_item: Handle<WorkItemData>) {
    work_item.check(context);
    if context.framework().is_disposing(work_item.0) {
        context.warn_of_misuse(|| "for a work item that was deleted; it does not run".to_owned());
        return;
    }
    let routine = work_item.with(context, |item| {
        let was_queued = core::mem::replace(&mut item.queued, true);
        (!was_queued).then_some(item.function)
    });
    if let Some(routine) = routine {
        queue_work(
            context,
            Work { kind: WorkKind::Item, routine, handle: work_item.0, run: run_item },
        );
    }
}

fn work_item_flush(context: &Context, work_item: Handle<WorkItemData>) {
    let this = context.id();
    if work_item.with(context, |item| item.runner == Some(this)) {
        context.warn_of_misuse(|| {
            "inside the callback of the same work item; the framework does not wait".to_owned()
        });
        return;
    }
    wait_for(context, work_item.0);
}

/// Waits until a work item is neither queued nor running.
fn wait_for(context: &Context, item: u64) {
    let is_over = wait::wait_until(context, None, |context| {
        context
            .framework()
            .get::<WorkItemData>(item)
            .map_or(true, |item| !item.queued && item.runner.is_none())
    });
    if !is_over {
        context.stop_call(Rule::Deadlock, "and would wait forever for a work item's callback");
    }
}

fn run_item(context: &Context, item: u64) {
    let this = context.id();
    let found = context.framework().get::<WorkItemData>(item).map(|data| {
        data.runner = Some(this);
        // From now on, the work item can be queued again.
        core::mem::take(&mut data.queued).then_some((data.function, data.lock))
    });
    let Ok(found) = found else {
        return;
    };
    hold(context, item);
    if let Some((function, lock)) = found {
        presentation::locked(context, lock, || {
            context.call_driver("EvtWorkItem", function, [item])
        });
    }
    if let Ok(data) = context.framework().get::<WorkItemData>(item) {
        data.runner = None;
    }
    release(context, item);
}

/// Waits for a work item before its deletion, unless the work item's own callback deletes it.
fn finish_before_delete(context: &Context, handle: u64) {
    let this = context.id();
    let is_own = context.is::<WorkItemData>(handle, |item| item.runner == Some(this));
    if is_own {
        return;
    }
    if context.irql() > Irql::PASSIVE_LEVEL {
        // At this IRQL, the caller cannot wait.
        forget_work(context, WorkKind::Item, handle);
    } else {
        wait_for(context, handle);
    }
}
