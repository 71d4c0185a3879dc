//! Work items: driver routines that run on kernel threads at `PASSIVE_LEVEL`.

use crate::{
    execution::routine::{At, Callback, Memory, routine},
    ground::{abi::DeviceObject, memory, opaque::IoWorkItem},
    services::{
        managers::pool::Tag,
        ntoskrnl::{
            context::{Context, Entries},
            ke::threads::{Job, queue_work},
        },
    },
};

pub const ENTRIES: Entries = &[
    routine("IoAllocateWorkItem", allocate),
    routine("IoFreeWorkItem", free),
    routine("IoInitializeWorkItem", initialize),
    routine("IoUninitializeWorkItem", uninitialize),
    routine("IoSizeofWorkItem", size),
    routine("IoQueueWorkItem", queue),
    routine("IoQueueWorkItemEx", queue_ex),
];

/// The size of an `IO_WORKITEM`. No header declares it.
const SIZE: u32 = 0x58;

/// The tag of allocated work items.
const TAG: Tag = Tag(u32::from_le_bytes(*b"IoWi"));

/// The known work items.
#[derive(Default)]
struct Items(Vec<Item>);

struct Item {
    address: u64,
    /// The device or driver object.
    object: u64,
    is_queued: bool,
    /// Set if `IoAllocateWorkItem` returned it.
    is_allocated: bool,
}

fn add(context: &Context, address: u64, object: u64, is_allocated: bool) {
    context.with_state(|Items(items)| {
        items.retain(|item| item.address != address);
        items.push(Item { address, object, is_queued: false, is_allocated });
    });
}

/// Runs `body` on a work item. Bugchecks if no work item is at the address.
fn with<R>(context: &Context, address: u64, body: impl FnOnce(&mut Item) -> R) -> R {
    let result = context
        .with_state(|Items(items)| items.iter_mut().find(|item| item.address == address).map(body));
    result.unwrap_or_else(|| context.stop_for_wrong(address, "a work item"))
}

fn forget(context: &Context, address: u64) {
    if with(context, address, |item| item.is_queued) {
        context.stop_for_misuse("for a work item that is queued");
    }
    context.state().get::<Items>().0.retain(|item| item.address != address);
}

fn allocate(context: &Context, device: At<DeviceObject>) -> At<IoWorkItem> {
    let Some(address) = context.allocate(SIZE as usize, TAG, false) else {
        return At::NULL;
    };
    add(context, address, device.0, true);
    At::new(address)
}

fn free(context: &Context, item: At<IoWorkItem>) {
    if !with(context, item.0, |item| item.is_allocated) {
        context.stop_for_misuse("for a work item that IoAllocateWorkItem did not return");
    }
    forget(context, item.0);
    context.free_own(item.0);
}

fn initialize(context: &Context, device: Memory, item: At<IoWorkItem>) {
    context.write_bytes(item.0, &[0; SIZE as usize]);
    add(context, item.0, device.0, false);
}

fn uninitialize(context: &Context, item: At<IoWorkItem>) {
    if with(context, item.0, |item| item.is_allocated) {
        context.stop_for_misuse("for a work item from IoAllocateWorkItem");
    }
    forget(context, item.0);
}

const fn size(_context: &Context) -> u32 {
    SIZE
}

fn queue(
    context: &Context,
    item: At<IoWorkItem>,
    routine: Callback,
    _queue: u32,
    work_item_context: Memory,
) {
    const DEVICE: i16 = 3;
    let object = with(context, item.0, |item| item.object);
    if memory::read::<i16>(object) != Ok(DEVICE) {
        context.stop_for_misuse(&format!(
            "for a work item of 0x{object:016X}, which is not a device object; IoQueueWorkItemEx also \
             takes a work item of a driver object"
        ));
    }
    let object = enqueue(context, item.0);
    run(context, item.0, routine.0, [object, work_item_context.0, 0]);
}

fn queue_ex(
    context: &Context,
    item: At<IoWorkItem>,
    routine: Callback,
    _queue: u32,
    work_item_context: Memory,
) {
    let object = enqueue(context, item.0);
    run(context, item.0, routine.0, [object, work_item_context.0, item.0]);
}

/// Marks a work item as queued. Returns its object.
fn enqueue(context: &Context, item: u64) -> u64 {
    let queued = with(context, item, |item| {
        let was_queued = std::mem::replace(&mut item.is_queued, true);
        (!was_queued).then_some(item.object)
    });
    queued.unwrap_or_else(|| context.stop_for_misuse("for a work item that is already queued"))
}

fn run(context: &Context, item: u64, routine: u64, arguments: [u64; 3]) {
    queue_work(
        context,
        &Job {
            what: "the work item's routine",
            routine,
            arguments,
            before: |context, item| with(context, item, |item| item.is_queued = false),
            about: item,
        },
    );
}
