//! Lists and numbers that routines change atomically, with or without a spin lock.

use crate::{
    execution::routine::{At, routine},
    ground::{
        irql::Irql,
        memory::{self, BadAddress},
        opaque::{InterlockedEntry, InterlockedList, ListEntry, SingleListEntry},
    },
    services::ntoskrnl::{
        context::{Context, Entries},
        ke::spin_locks::{BACK, give_back, insert_between, take, unlink},
    },
};

pub const ENTRIES: Entries = &[
    routine("ExInterlockedInsertHeadList", insert_head),
    routine("ExInterlockedInsertTailList", insert_tail),
    routine("ExInterlockedRemoveHeadList", remove_head),
    routine("ExInterlockedPushEntryList", push_entry),
    routine("ExInterlockedPopEntryList", pop_entry),
    routine("ExInterlockedAddUlong", add_ulong),
    routine("InitializeSListHead", initialize_slist),
    routine("ExpInterlockedPushEntrySList", push_slist),
    routine("ExpInterlockedPopEntrySList", pop_slist),
    routine("ExpInterlockedFlushSList", flush_slist),
    routine("ExQueryDepthSList", slist_depth),
];

/// Runs `body` with a lock held and interrupts masked.
fn locked<R>(context: &Context, lock: u64, body: impl FnOnce() -> R) -> R {
    let before = context.raise_irql(context.irql().max(Irql::HIGH_LEVEL));
    take(context, lock);
    let result = body();
    give_back(context, lock);
    context.lower_irql(before);
    result
}

/// Returns the first or last entry of a list, or null if the list is empty.
fn neighbour(context: &Context, head: u64, link: u64) -> u64 {
    let entry: u64 = context.read(head.wrapping_add(link));
    if entry == head { 0 } else { entry }
}

fn insert_head(
    context: &Context,
    head: At<ListEntry>,
    entry: At<ListEntry>,
    lock: At<u64>,
) -> At<ListEntry> {
    At::new(locked(context, lock.0, || {
        let first = neighbour(context, head.0, 0);
        let after: u64 = context.read(head.0);
        insert_between(context, entry.0, head.0, after);
        first
    }))
}

fn insert_tail(
    context: &Context,
    head: At<ListEntry>,
    entry: At<ListEntry>,
    lock: At<u64>,
) -> At<ListEntry> {
    At::new(locked(context, lock.0, || {
        let last = neighbour(context, head.0, BACK);
        let before: u64 = context.read(head.0.wrapping_add(BACK));
        insert_between(context, entry.0, before, head.0);
        last
    }))
}

fn remove_head(context: &Context, head: At<ListEntry>, lock: At<u64>) -> At<ListEntry> {
    At::new(locked(context, lock.0, || {
        let first = neighbour(context, head.0, 0);
        if first != 0 {
            unlink(context, first);
        }
        first
    }))
}

fn push_entry(
    context: &Context,
    head: At<SingleListEntry>,
    entry: At<SingleListEntry>,
    lock: At<u64>,
) -> At<SingleListEntry> {
    At::new(locked(context, lock.0, || {
        let first: u64 = context.read(head.0);
        context.write(entry.0, &first);
        context.write(head.0, &entry.0);
        first
    }))
}

fn pop_entry(context: &Context, head: At<SingleListEntry>, lock: At<u64>) -> At<SingleListEntry> {
    At::new(locked(context, lock.0, || {
        let first: u64 = context.read(head.0);
        if first != 0 {
            let next: u64 = context.read(first);
            context.write(head.0, &next);
        }
        first
    }))
}

fn add_ulong(context: &Context, addend: At<u32>, increment: u32, lock: At<u64>) -> u32 {
    locked(context, lock.0, || {
        let before = addend.read(context);
        addend.write(context, before.wrapping_add(increment));
        before
    })
}

/// The header of a sequenced list: the depth in the low 16 bits and a change count above it, then
/// the address of the first entry, whose low 4 bits are 0.
type SListHeader = [u64; 2];

const DEPTH: u64 = 0xFFFF;
const SEQUENCE_STEP: u64 = 0x1_0000;

/// Changes a sequenced list atomically.
fn change_slist<R>(
    context: &Context,
    head: u64,
    body: impl FnOnce(&mut SListHeader) -> Result<R, BadAddress>,
) -> R {
    if !head.is_multiple_of(16) {
        context.stop_for_misuse("with a list header that is not aligned to 16 bytes");
    }
    context.atomically(|_| {
        let mut header: SListHeader = memory::read(head)?;
        let result = body(&mut header)?;
        header[0] = header[0].wrapping_add(SEQUENCE_STEP);
        memory::write(head, &header)?;
        Ok(result)
    })
}

fn initialize_slist(context: &Context, head: At<InterlockedList>) {
    if !head.0.is_multiple_of(16) {
        context.stop_for_misuse("with a list header that is not aligned to 16 bytes");
    }
    context.write(head.0, &[0_u64; 2]);
}

fn push_slist(
    context: &Context,
    head: At<InterlockedList>,
    entry: At<InterlockedEntry>,
) -> At<InterlockedEntry> {
    if !entry.0.is_multiple_of(16) {
        context.stop_for_misuse("with a list entry that is not aligned to 16 bytes");
    }
    At::new(change_slist(context, head.0, |header| {
        let first = header[1] & !0xF;
        memory::write(entry.0, &first)?;
        header[1] = entry.0;
        header[0] = (header[0] & !DEPTH) | (header[0].wrapping_add(1) & DEPTH);
        Ok(first)
    }))
}

fn pop_slist(context: &Context, head: At<InterlockedList>) -> At<InterlockedEntry> {
    At::new(change_slist(context, head.0, |header| {
        let first = header[1] & !0xF;
        if first != 0 {
            header[1] = memory::read(first)?;
            header[0] = (header[0] & !DEPTH) | (header[0].wrapping_sub(1) & DEPTH);
        }
        Ok(first)
    }))
}

fn flush_slist(context: &Context, head: At<InterlockedList>) -> At<InterlockedEntry> {
    At::new(change_slist(context, head.0, |header| {
        header[0] &= !DEPTH;
        Ok(std::mem::take(&mut header[1]) & !0xF)
    }))
}

fn slist_depth(context: &Context, head: At<InterlockedList>) -> u16 {
    let header: SListHeader = context.read(head.0);
    (header[0] & DEPTH) as u16
}
