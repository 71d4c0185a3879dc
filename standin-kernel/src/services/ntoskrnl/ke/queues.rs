//! Queues from which threads take entries (`KQUEUE`).
//!
//! A queue's limit on concurrently running threads has no effect, because threads take turns and do
//! not compete for processors.

use super::{
    dispatcher::{Waits, check_may_wait},
    header::{header_of, initialize, kind},
    spin_locks::{BACK, insert_between, unlink},
};
use crate::{
    execution::routine::{At, Routine},
    ground::{NtStatus, abi::DispatcherHeader, executive_abi::KernelQueue, irql::Irql},
    services::ntoskrnl::context::{Context, Entries},
};

const DISPATCH: Irql = Irql::DISPATCH_LEVEL;

pub const ENTRIES: Entries = &[
    ("KeInitializeQueue", DISPATCH, Routine::of(initialize_queue)),
    ("KeReadStateQueue", DISPATCH, Routine::of(read_state)),
    ("KeInsertQueue", DISPATCH, Routine::of(insert_tail)),
    ("KeInsertHeadQueue", DISPATCH, Routine::of(insert_head)),
    ("KeRemoveQueue", DISPATCH, Routine::of(remove)),
    ("KeRundownQueue", DISPATCH, Routine::of(run_down)),
];

/// The offset of a queue's entries.
const LIST: u64 = std::mem::offset_of!(KernelQueue, entries) as u64;

/// `STATUS_ABANDONED`: the queue was run down.
const ABANDONED: u64 = 0x80;

/// The waits for a queue's entries. A wait's result is the entry, or the status that ended the wait.
type QueueWaits = Waits<u64, u64>;

fn initialize_queue(context: &Context, queue: At<KernelQueue>, count: u32) {
    let count = match count {
        0 => u32::from(context.processors()),
        count => count,
    };
    let list = |offset: usize| [queue.0.wrapping_add(offset as u64); 2];
    initialize(context, queue.0, kind::QUEUE, size_of::<KernelQueue>(), 0);
    queue.update(context, |value| {
        value.entries = list(std::mem::offset_of!(KernelQueue, entries));
        value.current = 0;
        value.maximum = count;
        value.threads = list(std::mem::offset_of!(KernelQueue, threads));
    });
}

/// Returns the number of entries. Bugchecks if the queue was not initialized.
fn entries(context: &Context, queue: u64) -> i32 {
    header_of(context, queue, &[kind::QUEUE]).signal_state
}

/// Changes the number of entries, and returns the previous number.
fn count(context: &Context, queue: u64, change: i32) -> i32 {
    context.update(queue, |header: &mut DispatcherHeader| {
        let changed = header.signal_state.wrapping_add(change);
        std::mem::replace(&mut header.signal_state, changed)
    })
}

fn read_state(context: &Context, queue: u64) -> i32 {
    entries(context, queue)
}

/// Delivers an entry, or the status that ends a wait, to the thread that started waiting last, as on
/// Windows. Returns whether a thread was waiting.
fn give(context: &Context, queue: u64, result: u64) -> bool {
    context.with_state(|waits: &mut QueueWaits| {
        let wait = waits.unended().rev().find(|wait| wait.value == queue);
        wait.map(|wait| wait.result = Some(result)).is_some()
    })
}

/// Inserts an entry. Returns the previous number of entries.
fn insert(context: &Context, queue: u64, entry: u64, at_head: bool) -> i32 {
    let before = entries(context, queue);
    if before == 0 && give(context, queue, entry) {
        return 0;
    }
    let list = queue.wrapping_add(LIST);
    let [first, end]: [u64; 2] = context.read(list);
    if at_head {
        insert_between(context, entry, list, first);
    } else {
        insert_between(context, entry, end, list);
    }
    count(context, queue, 1)
}

fn insert_tail(context: &Context, queue: u64, entry: u64) -> i32 {
    insert(context, queue, entry, false)
}

fn insert_head(context: &Context, queue: u64, entry: u64) -> i32 {
    insert(context, queue, entry, true)
}

/// Removes the first entry, waiting for one if necessary. Returns its address, or the status that ended
/// the wait.
fn remove(context: &Context, queue: u64, _mode: i8, timeout: At<i64>) -> u64 {
    let timeout = timeout.read_optional(context);
    if timeout != Some(0) {
        context.require_irql(Irql::APC_LEVEL, "to wait");
    }
    if entries(context, queue) > 0 {
        let first: u64 = context.read(queue.wrapping_add(LIST));
        unlink(context, first);
        count(context, queue, -1);
        return first;
    }
    if timeout == Some(0) {
        return u64::from(NtStatus::TIMEOUT.bits());
    }
    check_may_wait(context);
    let id = context.with_state(|waits: &mut QueueWaits| waits.begin(queue, None));
    let result = QueueWaits::finish(context, id, timeout);
    result.unwrap_or_else(|| NtStatus::TIMEOUT.bits().into())
}

/// Ends the waits for entries, and removes all entries. Returns the first entry, which is still
/// linked to the other entries, or null.
fn run_down(context: &Context, queue: u64) -> u64 {
    let left = entries(context, queue);
    while give(context, queue, ABANDONED) {}
    let list = queue.wrapping_add(LIST);
    let [first, end]: [u64; 2] = context.read(list);
    count(context, queue, left.wrapping_neg());
    context.write(list, &[list; 2]);
    if first == list {
        return 0;
    }
    context.write(end, &first);
    context.write(first.wrapping_add(BACK), &end);
    first
}
