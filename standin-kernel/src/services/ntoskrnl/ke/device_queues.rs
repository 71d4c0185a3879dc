//! The queues of requests for a device (`KDEVICE_QUEUE`).

use super::spin_locks::{insert_between, unlink};
use crate::{
    execution::routine::{At, routine},
    ground::{
        abi::{DeviceQueue, DeviceQueueEntry},
        irql::Irql,
    },
    services::ntoskrnl::context::{Context, Entries},
};

const DISPATCH: Irql = Irql::DISPATCH_LEVEL;

pub const ENTRIES: Entries = &[
    routine("KeInitializeDeviceQueue", initialize),
    routine("KeInsertDeviceQueue", insert),
    routine("KeInsertByKeyDeviceQueue", insert_by_key),
    routine("KeRemoveDeviceQueue", remove),
    routine("KeRemoveByKeyDeviceQueue", remove_by_key),
    routine("KeRemoveByKeyDeviceQueueIfBusy", remove_by_key_if_busy),
    routine("KeRemoveEntryDeviceQueue", remove_entry),
];

/// `DeviceQueueObject`.
const KIND: i16 = 0x14;
/// The offset of the entries.
const LIST: u64 = std::mem::offset_of!(DeviceQueue, device_list_head) as u64;

fn initialize(context: &Context, queue: At<DeviceQueue>) {
    let value = DeviceQueue {
        kind: KIND,
        size: i16::try_from(size_of::<DeviceQueue>()).unwrap_or(0),
        device_list_head: [queue.0.wrapping_add(LIST); 2],
        ..Default::default()
    };
    queue.write(context, value);
}

/// Returns a queue's fields. Bugchecks if the queue was not initialized.
fn read(context: &Context, queue: u64) -> DeviceQueue {
    let value: DeviceQueue = context.read(queue);
    if value.kind != KIND {
        context.stop_for_misuse(&format!(
            "with the device queue at 0x{queue:016X}, which was not initialized"
        ));
    }
    value
}

fn set_busy(context: &Context, queue: u64, busy: bool) {
    let at = std::mem::offset_of!(DeviceQueue, busy) as u64;
    context.write(queue.wrapping_add(at), &u8::from(busy));
}

/// Stores whether an entry is in a queue and, if `key` is not `None`, the entry's key.
fn mark(context: &Context, entry: u64, inserted: bool, key: Option<u32>) {
    let mut value: DeviceQueueEntry = context.read(entry);
    value.inserted = u8::from(inserted);
    if let Some(key) = key {
        value.sort_key = key;
    }
    context.write(entry, &value);
}

/// Returns the entries of a queue. Bugchecks if the queue's links do not return to the queue.
fn entries(context: &Context, queue: u64) -> Vec<u64> {
    /// The maximum length of a queue. A longer queue is corrupted.
    const LIMIT: usize = 1 << 20;
    let end = queue.wrapping_add(LIST);
    let mut all = Vec::new();
    let mut at: u64 = context.read(end);
    while at != end {
        if all.len() == LIMIT {
            context.stop_for_misuse("with a device queue whose links are corrupt");
        }
        all.push(at);
        at = context.read(at);
    }
    all
}

fn key_of(context: &Context, entry: u64) -> u32 {
    context.read::<DeviceQueueEntry>(entry).sort_key
}

/// Marks an idle queue as busy. If the queue is already busy, inserts an entry according to its
/// key, or at the end. Returns whether the entry was inserted.
fn add(context: &Context, queue: u64, entry: u64, key: Option<u32>) -> bool {
    context.require_at_least(DISPATCH);
    let value = read(context, queue);
    let is_busy = value.busy != 0;
    mark(context, entry, is_busy, key);
    if !is_busy {
        set_busy(context, queue, true);
        return false;
    }
    let end = queue.wrapping_add(LIST);
    let after = key.and_then(|key| {
        let all = entries(context, queue);
        let mut all = all.into_iter();
        all.find(|one| key_of(context, *one) > key)
    });
    let after = after.unwrap_or(end);
    let [_, before]: [u64; 2] = context.read(after);
    insert_between(context, entry, before, after);
    true
}

fn insert(context: &Context, queue: At<DeviceQueue>, entry: At<DeviceQueueEntry>) -> bool {
    add(context, queue.0, entry.0, None)
}

fn insert_by_key(
    context: &Context,
    queue: At<DeviceQueue>,
    entry: At<DeviceQueueEntry>,
    key: u32,
) -> bool {
    add(context, queue.0, entry.0, Some(key))
}

/// Removes the entry that `choose` selects. If the queue is empty, marks it as idle.
fn take(context: &Context, queue: u64, choose: impl FnOnce(&[u64]) -> Option<u64>) -> u64 {
    context.require_at_least(DISPATCH);
    read(context, queue);
    let all = entries(context, queue);
    let Some(chosen) = choose(&all) else {
        set_busy(context, queue, false);
        return 0;
    };
    unlink(context, chosen);
    mark(context, chosen, false, None);
    chosen
}

fn remove(context: &Context, queue: At<DeviceQueue>) -> At<DeviceQueueEntry> {
    At::new(take(context, queue.0, |all| all.first().copied()))
}

/// Removes the first entry whose key is at least `key` or, if there is none, the first entry.
fn remove_by_key(context: &Context, queue: At<DeviceQueue>, key: u32) -> At<DeviceQueueEntry> {
    At::new(take(context, queue.0, |all| {
        let mut from = all.iter().filter(|one| key_of(context, **one) >= key);
        from.next().or_else(|| all.first()).copied()
    }))
}

fn remove_by_key_if_busy(
    context: &Context,
    queue: At<DeviceQueue>,
    key: u32,
) -> At<DeviceQueueEntry> {
    if read(context, queue.0).busy == 0 {
        return At::NULL;
    }
    remove_by_key(context, queue, key)
}

/// Removes an entry if it is in the queue. Returns whether it was in the queue.
fn remove_entry(context: &Context, queue: At<DeviceQueue>, entry: At<DeviceQueueEntry>) -> bool {
    read(context, queue.0);
    if entry.read(context).inserted == 0 {
        return false;
    }
    unlink(context, entry.0);
    mark(context, entry.0, false, None);
    true
}
