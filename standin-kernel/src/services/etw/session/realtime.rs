//! Real-time consumers.

use std::{collections::VecDeque, sync::Arc};

use etl_file::internals::kernel::RecordHeader;
use etl_file::write::Buffer;
use etl_file::{EventDescriptor, EventRecord, Guid};
use parking_lot::Mutex;

use super::config::RealTime;

/// A record that a session delivers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delivered {
    /// An event.
    Event(EventRecord),
    /// A record in another format: a message or a classic provider's event.
    Other {
        /// The complete record.
        record: Vec<u8>,
        /// The record's timestamp or, if the record has none, the previous record's.
        timestamp: i64,
    },
}

impl Delivered {
    const fn timestamp(&self) -> i64 {
        match self {
            Self::Event(event) => event.timestamp,
            Self::Other { timestamp, .. } => *timestamp,
        }
    }
}

/// The records of one buffer. A flush delivers them together.
type Delivery = Vec<Delivered>;

/// Returns the records of a buffer.
pub fn records_of(buffer: &Buffer) -> Delivery {
    let mut events = buffer.events().into_iter();
    let mut last = buffer.first_timestamp().unwrap_or_default();
    let mut delivery = Vec::new();
    for record in buffer.each_record() {
        let delivered = match RecordHeader::parse(record) {
            Some(header) => Delivered::Other {
                record: record.to_vec(),
                timestamp: header.timestamp.unwrap_or(last),
            },
            // Event records' headers have a different format.
            None => match events.next() {
                Some(event) => Delivered::Event(event),
                None => continue,
            },
        };
        last = delivered.timestamp();
        delivery.push(delivered);
    }
    delivery
}

/// `RT_LostEvent`, the class of records that report losses to a consumer (ETW-6.3.7).
pub const RT_LOST_EVENT: Guid = Guid::from_u128(0x6a39_9ae0_4bc6_4de9_870b_3657_f894_7e7e);

/// The types of [`RT_LOST_EVENT`] records.
const LOST_EVENT: u8 = 32;
const LOST_BUFFER: u8 = 33;
const LOST_FILE: u8 = 34;

fn lost(kind: u8, timestamp: i64) -> Delivered {
    Delivered::Event(EventRecord {
        timestamp,
        provider: RT_LOST_EVENT,
        descriptor: EventDescriptor { opcode: kind, ..EventDescriptor::default() },
        ..EventRecord::default()
    })
}

/// The deliveries that a consumer has not read yet.
pub struct Mailbox(Mutex<Unread>);

struct Unread {
    deliveries: VecDeque<Delivery>,
    most: usize,
    /// Set if deliveries were dropped after the last one in the mailbox.
    dropped: bool,
}

impl Mailbox {
    /// Returns everything that was delivered, in order.
    pub fn take(&self) -> Vec<Delivered> {
        let mut unread = self.0.lock();
        unread.deliveries.drain(..).flatten().collect()
    }

    /// Delivers a buffer. Returns `false` if the consumer already has the maximum number of unread
    /// buffers.
    fn deliver(&self, mut events: Delivery) -> bool {
        let mut unread = self.0.lock();
        if unread.deliveries.len() >= unread.most {
            unread.dropped = true;
            return false;
        }
        if std::mem::take(&mut unread.dropped) {
            let at = events.first().map_or(0, Delivered::timestamp);
            events.insert(0, lost(LOST_BUFFER, at));
        }
        unread.deliveries.push_back(events);
        true
    }
}

/// A session's deliveries.
pub struct Deliveries {
    config: RealTime,
    consumers: Vec<Arc<Mailbox>>,
    /// Deliveries that arrived while there was no consumer, oldest first.
    stored: VecDeque<Delivery>,
    /// Set if a delivery was dropped because the store was full.
    dropped: bool,
    /// The number of lost events that have already been reported to consumers.
    told: u32,
    /// The number of undelivered buffers.
    pub lost: u32,
}

impl Deliveries {
    pub const fn new(config: RealTime) -> Self {
        Self {
            config,
            consumers: Vec::new(),
            stored: VecDeque::new(),
            dropped: false,
            told: 0,
            lost: 0,
        }
    }

    /// Returns whether the store is full, in which case the session accepts no events (ETW-6.4.5).
    pub fn is_full(&self) -> bool {
        self.consumers.is_empty() && self.stored.len() >= self.config.max_stored
    }

    /// Delivers a buffer's events, or stores them while there is no consumer.
    /// `events_lost` is the session's count of lost events.
    pub fn deliver(&mut self, mut events: Delivery, events_lost: u32) {
        let at = events.first().map_or(0, Delivered::timestamp);
        if events_lost > self.told {
            self.told = events_lost;
            events.insert(0, lost(LOST_EVENT, at));
        }
        if self.consumers.is_empty() {
            if self.is_full() {
                self.dropped = true;
                self.lost += 1;
                return;
            }
            if std::mem::take(&mut self.dropped) {
                events.insert(0, lost(LOST_FILE, at));
            }
            self.stored.push_back(events);
            return;
        }
        let mut delivered = true;
        for consumer in &self.consumers {
            delivered &= consumer.deliver(events.clone());
        }
        if !delivered {
            self.lost += 1;
        }
    }

    /// Attaches a consumer. The consumer first receives all stored deliveries, even if they exceed
    /// its limit.
    pub fn attach(&mut self) -> Arc<Mailbox> {
        let mut deliveries: VecDeque<Delivery> = self.stored.drain(..).collect();
        if std::mem::take(&mut self.dropped) {
            let at =
                deliveries.back().and_then(|events| events.last()).map_or(0, Delivered::timestamp);
            deliveries.push_back(vec![lost(LOST_FILE, at)]);
        }
        let mailbox = Arc::new(Mailbox(Mutex::new(Unread {
            deliveries,
            most: self.config.max_unread,
            dropped: false,
        })));
        self.consumers.push(Arc::clone(&mailbox));
        mailbox
    }

    /// Detaches a consumer.
    pub fn detach(&mut self, mailbox: &Arc<Mailbox>) {
        self.consumers.retain(|one| !Arc::ptr_eq(one, mailbox));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(timestamp: i64) -> Delivered {
        Delivered::Event(EventRecord { timestamp, ..EventRecord::default() })
    }

    /// Returns the unread records as numbers: an event's timestamp, or a loss record's type.
    fn read(mailbox: &Mailbox) -> Vec<i64> {
        let records = mailbox.take().into_iter();
        records
            .map(|record| match record {
                Delivered::Event(event) if event.provider == RT_LOST_EVENT => {
                    -i64::from(event.descriptor.opcode)
                }
                other => other.timestamp(),
            })
            .collect()
    }

    #[test]
    fn stored_events_come_first_and_lost_events_are_reported() {
        let mut deliveries = Deliveries::new(RealTime { max_stored: 2, max_unread: 1 });
        deliveries.deliver(vec![event(1)], 0);
        deliveries.deliver(vec![event(2)], 3);
        assert!(deliveries.is_full());
        deliveries.deliver(vec![event(3)], 3);
        assert_eq!(deliveries.lost, 1);
        let consumer = deliveries.attach();
        assert!(!deliveries.is_full());
        assert_eq!(read(&consumer), [1, -32, 2, -34]);
        assert_eq!(read(&consumer), [] as [i64; 0]);
    }

    #[test]
    fn a_slow_consumer_loses_buffers_and_is_notified() {
        let mut deliveries = Deliveries::new(RealTime { max_stored: 2, max_unread: 1 });
        let slow = deliveries.attach();
        let quick = deliveries.attach();
        deliveries.deliver(vec![event(1)], 0);
        assert_eq!(read(&quick), [1]);
        deliveries.deliver(vec![event(2)], 0);
        assert_eq!(read(&quick), [2]);
        assert_eq!((read(&slow), deliveries.lost), (vec![1], 1));
        deliveries.deliver(vec![event(3)], 0);
        assert_eq!(read(&slow), [-33, 3]);
        deliveries.detach(&quick);
        deliveries.detach(&slow);
        deliveries.deliver(vec![event(4)], 0);
        assert_eq!(read(&slow), [] as [i64; 0]);
    }
}
