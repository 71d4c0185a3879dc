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
    execution::routine::{At, routine},
    ground::{
        NtStatus,
        abi::{DispatcherHeader, KernelQueue},
        irql::Irql,
        opaque::ListEntry,
    },
    services::ntoskrnl::context::{Context, Entries},
};

pub const ENTRIES: Entries = &[
    routine("KeInitializeQueue", initialize_queue),
    routine("KeReadStateQueue", read_state),
    routine("KeInsertQueue", insert_tail),
    routine("KeInsertHeadQueue", insert_head),
    routine("KeRemoveQueue", remove),
    routine("KeRundownQueue", run_down),
];

/// The offset of a queue's entries.
const LIST: u64 = std::mem::offset_of!(KernelQueue, entry_list_head) as u64;

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
        value.entry_list_head = list(std::mem::offset_of!(KernelQueue, entry_list_head));
        value.current_count = 0;
        value.maximum_count = count;
        value.thread_list_head = list(std::mem::offset_of!(KernelQueue, thread_list_head));
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

fn read_state(context: &Context, queue: At<KernelQueue>) -> i32 {
    entries(context, queue.0)
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

fn insert_tail(context: &Context, queue: At<KernelQueue>, entry: At<ListEntry>) -> i32 {
    insert(context, queue.0, entry.0, false)
}

fn insert_head(context: &Context, queue: At<KernelQueue>, entry: At<ListEntry>) -> i32 {
    insert(context, queue.0, entry.0, true)
}

/// Removes the first entry, waiting for one if necessary. Returns its address, or the status that ended
/// the wait.
fn remove(context: &Context, queue: At<KernelQueue>, _mode: i8, timeout: At<i64>) -> At<ListEntry> {
    let timeout = timeout.read_optional(context);
    if timeout != Some(0) {
        context.require_irql(Irql::APC_LEVEL, "to wait");
    }
    if entries(context, queue.0) > 0 {
        let first: u64 = context.read(queue.0.wrapping_add(LIST));
        unlink(context, first);
        count(context, queue.0, -1);
        return At::new(first);
    }
    if timeout == Some(0) {
        return At::new(u64::from(NtStatus::TIMEOUT.bits()));
    }
    check_may_wait(context);
    let id = context.with_state(|waits: &mut QueueWaits| waits.begin(queue.0, None));
    let result = QueueWaits::finish(context, id, timeout);
    At::new(result.unwrap_or_else(|| NtStatus::TIMEOUT.bits().into()))
}

/// Ends the waits for entries, and removes all entries. Returns the first entry, which is still
/// linked to the other entries, or null.
fn run_down(context: &Context, queue: At<KernelQueue>) -> At<ListEntry> {
    let left = entries(context, queue.0);
    while give(context, queue.0, ABANDONED) {}
    let list = queue.0.wrapping_add(LIST);
    let [first, end]: [u64; 2] = context.read(list);
    count(context, queue.0, left.wrapping_neg());
    context.write(list, &[list; 2]);
    if first == list {
        return At::NULL;
    }
    context.write(end, &first);
    context.write(first.wrapping_add(BACK), &end);
    At::new(first)
}
