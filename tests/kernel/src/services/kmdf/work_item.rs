//! Work items: driver routines that run on a system thread.

use super::{
    object::{create, get_parent, read_attributes},
    state::framework::{Context, Data, Entries, ObjectRoutine},
    wait,
    work::{WORKER, Work, WorkKind, forget_work, queue_work},
};
use crate::{
    execution::routine::Routine,
    ground::{abi::WorkItemConfig, rule::Rule, status::NtStatus},
};

/// A work item.
pub struct WorkItemData {
    function: u64,
    queued: bool,
    running: bool,
}

impl Data for WorkItemData {
    const NAME: &'static str = "WDFWORKITEM";
    const BEFORE_DELETE: Option<ObjectRoutine> = Some(finish_before_delete);
}

pub const ENTRIES: Entries = &[
    ("WdfWorkItemCreate", Routine::Four(work_item_create)),
    ("WdfWorkItemEnqueue", Routine::Two(work_item_enqueue)),
    ("WdfWorkItemFlush", Routine::Two(work_item_flush)),
    (
        "WdfWorkItemGetParentObject",
        Routine::Two(get_parent::<WorkItemData>),
    ),
];

fn work_item_create(
    context: &Context,
    _globals: u64,
    config: u64,
    attributes: u64,
    work_item: u64,
) -> u64 {
    let config: WorkItemConfig = context.read(config);
    if config.size as usize != size_of::<WorkItemConfig>() {
        return NtStatus::INFO_LENGTH_MISMATCH.to_register();
    }
    if config.function == 0 {
        return NtStatus::INVALID_PARAMETER.to_register();
    }
    let Some(attributes) = read_attributes(context, attributes).filter(|found| found.parent != 0)
    else {
        return NtStatus::WDF_PARENT_NOT_SPECIFIED.to_register();
    };
    let data = WorkItemData {
        function: config.function,
        queued: false,
        running: false,
    };
    match create(context, data, Some(&attributes), None) {
        Ok(handle) => {
            context.write(work_item, &handle);
            NtStatus::SUCCESS.to_register()
        }
        Err(status) => status.to_register(),
    }
}

fn work_item_enqueue(context: &Context, _globals: u64, work_item: u64) -> u64 {
    let newly = context.with::<WorkItemData, _>(work_item, |item| {
        !core::mem::replace(&mut item.queued, true)
    });
    if newly {
        queue_work(
            context,
            Work {
                kind: WorkKind::Item,
                handle: work_item,
                run: run_item,
            },
        );
    }
    0
}

fn work_item_flush(context: &Context, _globals: u64, work_item: u64) -> u64 {
    if context.with::<WorkItemData, _>(work_item, |item| item.running) {
        context.stop(
            Rule::Deadlock,
            format!(
                "WdfWorkItemFlush was called from {} inside the callback of the same work item, \
                 where it would wait for itself",
                context.caller()
            ),
        );
    }
    wait::wait_until(context, None, |context| {
        context
            .framework()
            .get::<WorkItemData>(work_item)
            .map_or(true, |item| !item.queued)
    });
    0
}

fn run_item(context: &Context, item: u64) {
    let function = context
        .framework()
        .get::<WorkItemData>(item)
        .ok()
        .and_then(|data| {
            data.running = true;
            // From here on, the work item can be queued again.
            core::mem::take(&mut data.queued).then_some(data.function)
        });
    if let Some(function) = function {
        context.call_driver("EvtWorkItem", function, [item]);
    }
    if let Ok(data) = context.framework().get::<WorkItemData>(item) {
        data.running = false;
    }
}

/// Runs a queued work item before its deletion.
pub fn finish_before_delete(context: &Context, handle: u64) {
    let is_queued = context
        .framework()
        .get::<WorkItemData>(handle)
        .is_ok_and(|item| item.queued && !item.running);
    if is_queued {
        forget_work(context, WorkKind::Item, handle);
        context.as_identity(WORKER, || run_item(context, handle));
    }
}
