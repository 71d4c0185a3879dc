//! Work items: driver routines that run on kernel threads at `PASSIVE_LEVEL`.

use crate::{
    execution::routine::Routine,
    ground::irql::Irql,
    services::{
        managers::pool::Tag,
        ntoskrnl::{
            context::{Context, Entries},
            ke::threads::{Job, queue_work},
        },
    },
};

const DISPATCH: Irql = Irql::DISPATCH_LEVEL;
const HIGH: Irql = Irql::HIGH_LEVEL;

pub const ENTRIES: Entries = &[
    ("IoAllocateWorkItem", DISPATCH, Routine::of(allocate)),
    ("IoFreeWorkItem", DISPATCH, Routine::of(free)),
    ("IoInitializeWorkItem", HIGH, Routine::of(initialize)),
    ("IoUninitializeWorkItem", HIGH, Routine::of(uninitialize)),
    ("IoSizeofWorkItem", HIGH, Routine::of(size)),
    ("IoQueueWorkItem", DISPATCH, Routine::of(queue)),
    ("IoQueueWorkItemEx", DISPATCH, Routine::of(queue_ex)),
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

fn allocate(context: &Context, device: u64) -> u64 {
    let Some(address) = context.allocate(SIZE as usize, TAG, false) else {
        return 0;
    };
    add(context, address, device, true);
    address
}

fn free(context: &Context, item: u64) {
    if !with(context, item, |item| item.is_allocated) {
        context.stop_for_misuse("for a work item that IoAllocateWorkItem did not return");
    }
    forget(context, item);
    context.free_own(item);
}

fn initialize(context: &Context, device: u64, item: u64) {
    context.write_bytes(item, &[0; SIZE as usize]);
    add(context, item, device, false);
}

fn uninitialize(context: &Context, item: u64) {
    if with(context, item, |item| item.is_allocated) {
        context.stop_for_misuse("for a work item from IoAllocateWorkItem");
    }
    forget(context, item);
}

const fn size(_context: &Context) -> u32 {
    SIZE
}

fn queue(context: &Context, item: u64, routine: u64, _queue: u32, its_context: u64) {
    let object = enqueue(context, item);
    run(context, item, routine, [object, its_context, 0]);
}

fn queue_ex(context: &Context, item: u64, routine: u64, _queue: u32, its_context: u64) {
    let object = enqueue(context, item);
    run(context, item, routine, [object, its_context, item]);
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
