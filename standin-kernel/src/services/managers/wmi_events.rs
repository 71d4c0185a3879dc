//! The delivery of WMI events between drivers: the framework's providers and `IoWMIWriteEvent` fire
//! events, and a kernel thread calls the callbacks of drivers that registered for them.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::atomic::{AtomicU32, Ordering},
};

use parking_lot::Mutex;

/// The size of `WNODE_HEADER`, and the offsets of its fields.
const HEADER: usize = 48;
const GUID: usize = 24;

/// The size of the fixed part of a `WNODE_SINGLE_INSTANCE`, aligned for the data after it.
const SINGLE_INSTANCE: usize = 64;

/// `WNODE_FLAG_SINGLE_INSTANCE`, `WNODE_FLAG_EVENT_ITEM` and `WNODE_FLAG_STATIC_INSTANCE_NAMES`.
const SINGLE_INSTANCE_EVENT: u32 = 0x02 | 0x80 | 0x200;

/// An event that a driver has fired.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WmiEvent {
    /// The `WNODE_EVENT_ITEM` or `WNODE_SINGLE_INSTANCE`.
    pub node: Vec<u8>,
    /// The pool block in which the driver passed the event. WMI frees it.
    pub block: Option<u64>,
}

impl WmiEvent {
    /// Creates the event for an instance of a data block.
    pub fn of_instance(provider: u32, guid: [u8; 16], index: u32, time: i64, data: &[u8]) -> Self {
        let size = |length: usize| u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes();
        let mut node = Vec::with_capacity(SINGLE_INSTANCE + data.len());
        node.extend(size(SINGLE_INSTANCE + data.len()));
        node.extend(provider.to_le_bytes());
        // The version of the block, and the link to another event.
        node.extend(1_u32.to_le_bytes());
        node.extend(0_u32.to_le_bytes());
        node.extend(time.to_le_bytes());
        node.extend(guid);
        // The client's context.
        node.extend(0_u32.to_le_bytes());
        node.extend(SINGLE_INSTANCE_EVENT.to_le_bytes());
        // The offset of the instance's name. The name is in the instance's registration.
        node.extend(0_u32.to_le_bytes());
        node.extend(index.to_le_bytes());
        node.extend(size(SINGLE_INSTANCE));
        node.extend(size(data.len()));
        node.extend(data);
        Self { node, block: None }
    }

    /// Returns the GUID of the data block.
    pub fn guid(&self) -> [u8; 16] {
        let guid = self.node.get(GUID..HEADER).unwrap_or_default();
        guid.first_chunk().copied().unwrap_or_default()
    }
}

/// The events of a kernel, and the drivers to query and notify.
#[derive(Default)]
pub struct WmiEvents {
    fired: Mutex<VecDeque<WmiEvent>>,
    /// The GUIDs of the data blocks for whose events drivers have registered.
    watched: Mutex<BTreeSet<[u8; 16]>>,
    /// The data blocks whose providers must be notified that their events are enabled or disabled.
    changed: Mutex<VecDeque<[u8; 16]>>,
    /// The provider ids of devices, by object address.
    providers: Mutex<BTreeMap<u64, u32>>,
    issued: AtomicU32,
}

impl WmiEvents {
    /// Queues an event for a kernel thread.
    pub fn fire(&self, event: WmiEvent) {
        self.fired.lock().push_back(event);
    }

    /// Takes the oldest event.
    pub fn take(&self) -> Option<WmiEvent> {
        self.fired.lock().pop_front()
    }

    /// Replaces the GUIDs of the data blocks for whose events drivers have registered.
    pub fn watch(&self, guids: BTreeSet<[u8; 16]>) {
        let mut watched = self.watched.lock();
        self.changed.lock().extend(watched.symmetric_difference(&guids));
        *watched = guids;
    }

    /// Records that a data block has a new provider, which must be notified if its events are
    /// enabled.
    pub fn note_provider(&self, guid: [u8; 16]) {
        self.changed.lock().push_back(guid);
    }

    /// Takes a data block whose providers must be notified that their events are enabled or
    /// disabled.
    pub fn take_changed(&self) -> Option<[u8; 16]> {
        self.changed.lock().pop_front()
    }

    /// Returns whether a driver has registered for a data block's events.
    pub fn is_watched(&self, guid: [u8; 16]) -> bool {
        self.watched.lock().contains(&guid)
    }

    /// Returns the provider id of a device. Each device has its own id.
    pub fn provider_of(&self, device: u64) -> u32 {
        let mut providers = self.providers.lock();
        *providers.entry(device).or_insert_with(|| self.issued.fetch_add(1, Ordering::Relaxed) + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_has_the_layout_of_a_single_instance() {
        let event = WmiEvent::of_instance(7, [9; 16], 3, 5, b"data!");
        assert_eq!(event.guid(), [9; 16]);
        assert_eq!(event.node.len(), 69);
        let number = |at: usize| {
            let bytes = event.node.get(at..).and_then(|rest| rest.first_chunk());
            u32::from_le_bytes(*bytes.unwrap())
        };
        // The offsets of the size, the provider, the flags, the index, the data's offset, and the
        // data's size.
        let found = [0, 4, 44, 52, 56, 60].map(number);
        assert_eq!(found, [69, 7, 0x282, 3, 64, 5]);
        assert_eq!(event.node.get(64..).unwrap(), b"data!");
    }

    #[test]
    fn a_change_of_what_is_wanted_is_told_once() {
        let events = WmiEvents::default();
        events.watch(BTreeSet::from([[1; 16], [2; 16]]));
        events.watch(BTreeSet::from([[2; 16], [3; 16]]));
        let told: Vec<[u8; 16]> = std::iter::from_fn(|| events.take_changed()).collect();
        assert_eq!(told, [[1; 16], [2; 16], [1; 16], [3; 16]]);
        assert!(events.is_watched([2; 16]) && !events.is_watched([1; 16]));
    }

    #[test]
    fn devices_have_ids_of_their_own() {
        let events = WmiEvents::default();
        let (one, other) = (events.provider_of(0x10), events.provider_of(0x20));
        assert_ne!(one, other);
        assert_eq!(events.provider_of(0x10), one);
        assert_ne!(one, 0);
    }
}
