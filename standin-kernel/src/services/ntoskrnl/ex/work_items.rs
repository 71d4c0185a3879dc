//! Work items that are not associated with a device.

use crate::{
    execution::routine::{At, routine},
    ground::abi::WorkQueueItem,
    services::ntoskrnl::{
        context::{Context, Entries},
        ke::threads::{Job, queue_work},
    },
};

pub const ENTRIES: Entries = &[routine("ExQueueWorkItem", queue_executive)];

/// Queues a work item whose memory and fields belong to the driver.
fn queue_executive(context: &Context, item: At<WorkQueueItem>, _queue: u32) {
    let value = item.read(context);
    if value.worker_routine == 0 {
        context.stop_for_misuse("with a work item that was not initialized");
    }
    queue_work(
        context,
        &Job {
            what: "the work item's routine",
            routine: value.worker_routine,
            arguments: [value.parameter, 0, 0],
            before: |_, _| {},
            about: item.0,
        },
    );
}
