//! Work items: routines of the driver's that run on a system thread, at
//! `PASSIVE_LEVEL`, after the step that queued them.

use super::{
    Entries, Routine, device, lock_framework,
    object::{Kind, create, read_attributes},
    queue, wait,
};
use crate::{
    abi::WorkItemConfig,
    irql::Irql,
    status::NtStatus,
    thread::{self, Identity, Thread},
    verifier::Rule,
};

/// The system thread that runs work items.
const WORKER: Identity = Identity {
    process: Identity::SYSTEM.process,
    thread: 12,
};

/// How much work one step may lead to. A work item that queues itself for ever goes
/// on after the next step.
const PER_STEP: usize = 1000;

/// Something to do on a system thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// A work item's function.
    Item(u64),
    /// Events of a queue whose callbacks must not be called above `PASSIVE_LEVEL`.
    Queue(u64),
    /// The end of a device that its driver declared failed.
    FailedDevice(u64),
}

/// A work item.
pub struct WorkItemData {
    function: u64,
    queued: bool,
    running: bool,
}

pub const ENTRIES: Entries = &[
    ("WdfWorkItemCreate", Routine::Four(work_item_create)),
    ("WdfWorkItemEnqueue", Routine::Two(work_item_enqueue)),
    ("WdfWorkItemFlush", Routine::Two(work_item_flush)),
    (
        "WdfWorkItemGetParentObject",
        Routine::Two(super::timer::get_parent::<WorkItemData>),
    ),
];

extern "win64" fn work_item_create(
    _globals: u64,
    config: u64,
    attributes: u64,
    work_item: u64,
) -> u64 {
    let thread = thread::current();
    let config: WorkItemConfig = thread.read(config);
    if config.size as usize != size_of::<WorkItemConfig>() {
        return NtStatus::INFO_LENGTH_MISMATCH.to_register();
    }
    if config.function == 0 {
        return NtStatus::INVALID_PARAMETER.to_register();
    }
    let Some(attributes) = read_attributes(&thread, attributes).filter(|found| found.parent != 0)
    else {
        return NtStatus::WDF_PARENT_NOT_SPECIFIED.to_register();
    };
    let kind = Kind::WorkItem(WorkItemData {
        function: config.function,
        queued: false,
        running: false,
    });
    match create(&thread, kind, Some(&attributes), None) {
        Ok(handle) => {
            thread.write(work_item, &handle);
            NtStatus::SUCCESS.to_register()
        }
        Err(status) => status.to_register(),
    }
}

extern "win64" fn work_item_enqueue(_globals: u64, work_item: u64) -> u64 {
    let thread = thread::current();
    let newly = thread.with::<WorkItemData, _>(work_item, |item| {
        !core::mem::replace(&mut item.queued, true)
    });
    if newly {
        queue_work(&thread, Work::Item(work_item));
    }
    0
}

extern "win64" fn work_item_flush(_globals: u64, work_item: u64) -> u64 {
    let thread = thread::current();
    let call = thread.call();
    if thread.with::<WorkItemData, _>(work_item, |item| item.running) {
        thread.stop(
            Rule::Deadlock,
            format!(
                "WdfWorkItemFlush was called from {} in the callback of the work item that it \
                 waits for",
                thread.shared().place(call.return_address)
            ),
        );
    }
    wait::wait_until(&thread, None, |thread| {
        lock_framework(thread.shared())
            .get::<WorkItemData>(work_item)
            .map_or(true, |item| !item.queued)
    });
    0
}

/// Queues something for a system thread.
pub fn queue_work(thread: &Thread, work: Work) {
    let queue = &mut lock_framework(thread.shared()).work;
    if !queue.contains(&work) {
        queue.push_back(work);
    }
}

/// Does what the last step queued, and what that leads to.
pub fn run_work(thread: &Thread) {
    for _ in 0..PER_STEP {
        if !run_one(thread) {
            return;
        }
    }
}

/// Does the first thing that is queued; whether there was one.
pub fn run_one(thread: &Thread) -> bool {
    if thread.irql() > Irql::PASSIVE_LEVEL {
        return false;
    }
    let Some(work) = lock_framework(thread.shared()).work.pop_front() else {
        return false;
    };
    thread.as_identity(WORKER, || match work {
        Work::Item(item) => run_item(thread, item),
        Work::Queue(queue) => queue::dispatch(thread, queue),
        Work::FailedDevice(device) => device::surprise_remove(thread, device),
    });
    true
}

fn run_item(thread: &Thread, item: u64) {
    let function = lock_framework(thread.shared())
        .get::<WorkItemData>(item)
        .ok()
        .and_then(|data| {
            data.running = true;
            // It may be queued again from now on.
            core::mem::take(&mut data.queued).then_some(data.function)
        });
    if let Some(function) = function {
        thread.call_driver("EvtWorkItem", function, [item]);
    }
    if let Ok(data) = lock_framework(thread.shared()).get::<WorkItemData>(item) {
        data.running = false;
    }
}

/// A work item that is being deleted runs before, if it was queued.
pub fn finish_before_delete(thread: &Thread, handle: u64) {
    let is_queued = lock_framework(thread.shared())
        .get::<WorkItemData>(handle)
        .is_ok_and(|item| item.queued && !item.running);
    if is_queued {
        lock_framework(thread.shared())
            .work
            .retain(|work| *work != Work::Item(handle));
        thread.as_identity(WORKER, || run_item(thread, handle));
    }
}
