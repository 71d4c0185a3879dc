//! Queues that threads take entries from (`KQUEUE`).
//!
//! The limit of a queue for the threads that run at the same time has no effect: it is about processors,
//! which threads that take turns do not compete for.

use super::{
    dispatcher::{check_may_wait, deadline, stop_for_endless_wait},
    header::{header_of, initialize, kind},
    spin_locks::{BACK, insert_between, unlink},
};
use crate::{
    execution::{
        coroutine::wait_until,
        routine::{Routine, low_half},
    },
    ground::{abi::DispatcherHeader, executive_abi::KernelQueue, irql::Irql, status::NtStatus},
    services::ntoskrnl::context::{Context, Entries},
};

const DISPATCH: Irql = Irql::DISPATCH_LEVEL;

pub const ENTRIES: Entries = &[
    ("KeInitializeQueue", DISPATCH, Routine::Two(initialize_queue)),
    ("KeReadStateQueue", DISPATCH, Routine::One(read_state)),
    ("KeInsertQueue", DISPATCH, Routine::Two(insert_tail)),
    ("KeInsertHeadQueue", DISPATCH, Routine::Two(insert_head)),
    ("KeRemoveQueue", DISPATCH, Routine::Three(remove)),
    ("KeRundownQueue", DISPATCH, Routine::One(run_down)),
];

/// The offset of a queue's entries.
const LIST: u64 = std::mem::offset_of!(KernelQueue, entries) as u64;

/// `STATUS_ABANDONED`: the queue was run down.
const ABANDONED: u64 = 0x80;

/// The threads that wait for entries, oldest first.
#[derive(Default)]
struct Waits {
    issued: u64,
    all: Vec<Wait>,
}

struct Wait {
    id: u64,
    queue: u64,
    /// The entry that the thread got, or the status that ended the wait.
    result: Option<u64>,
}

fn initialize_queue(context: &Context, queue: u64, count: u64) -> u64 {
    let count = match low_half(count) {
        0 => u32::from(context.processors()),
        count => count,
    };
    let list = |offset: usize| [queue.wrapping_add(offset as u64); 2];
    initialize(context, queue, kind::QUEUE, size_of::<KernelQueue>(), 0);
    let header: DispatcherHeader = context.read(queue);
    let value = KernelQueue {
        header,
        entries: list(std::mem::offset_of!(KernelQueue, entries)),
        current: 0,
        maximum: count,
        threads: list(std::mem::offset_of!(KernelQueue, threads)),
    };
    context.write(queue, &value);
    0
}

/// Returns the number of entries. Bugchecks if the queue was not initialized.
fn entries(context: &Context, queue: u64) -> i32 {
    header_of(context, queue, &[kind::QUEUE]).signal_state
}

/// Changes the number of entries, and returns it as it was.
fn count(context: &Context, queue: u64, change: i32) -> i32 {
    let mut header: DispatcherHeader = context.read(queue);
    let before = header.signal_state;
    header.signal_state = before.wrapping_add(change);
    context.write(queue, &header);
    before
}

fn read_state(context: &Context, queue: u64) -> u64 {
    u64::from(entries(context, queue).cast_unsigned())
}

/// Gives an entry, or the status that ends a wait, to the thread that began to wait last, as Windows
/// does. Returns whether one waits.
fn give(context: &Context, queue: u64, result: u64) -> bool {
    let mut state = context.state();
    let mut waits = state.get::<Waits>().all.iter_mut().rev();
    let wait = waits.find(|wait| wait.queue == queue && wait.result.is_none());
    wait.map(|wait| wait.result = Some(result)).is_some()
}

/// Adds an entry. Returns the number of entries before.
fn insert(context: &Context, queue: u64, entry: u64, at_head: bool) -> u64 {
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
    u64::from(count(context, queue, 1).cast_unsigned())
}

fn insert_tail(context: &Context, queue: u64, entry: u64) -> u64 {
    insert(context, queue, entry, false)
}

fn insert_head(context: &Context, queue: u64, entry: u64) -> u64 {
    insert(context, queue, entry, true)
}

/// Takes the first entry, for which the thread waits. Returns its address, or the status that ended the
/// wait.
fn remove(context: &Context, queue: u64, _mode: u64, timeout: u64) -> u64 {
    let timeout: Option<i64> = (timeout != 0).then(|| context.read(timeout));
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
    let deadline = timeout.map(|timeout| deadline(context, timeout));
    let id = {
        let mut state = context.state();
        let waits = state.get::<Waits>();
        waits.issued += 1;
        waits.all.push(Wait { id: waits.issued, queue, result: None });
        waits.issued
    };
    let has_result = || {
        let mut state = context.state();
        let mut waits = state.get::<Waits>().all.iter();
        waits.any(|wait| wait.id == id && wait.result.is_some())
    };
    wait_until(context, deadline, has_result);
    let ended = {
        let mut state = context.state();
        let waits = &mut state.get::<Waits>().all;
        let at = waits.iter().position(|wait| wait.id == id);
        at.map(|at| waits.remove(at))
    };
    match ended.and_then(|wait| wait.result) {
        Some(result) => result,
        None if deadline.is_some() => u64::from(NtStatus::TIMEOUT.bits()),
        None => stop_for_endless_wait(context),
    }
}

/// Ends the waits for entries, and takes all entries. Returns the first of them, which are still linked
/// to each other, or null.
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
