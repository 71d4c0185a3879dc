//! Packets of several fragments.

use std::borrow::Cow;
use std::collections::HashMap;

use super::part::keyword;
use etl_file::EventRef;

/// The largest packet, as Wireshark reads it.
pub const MAX_PACKET: usize = 0x4_0000;
/// The maximum number of packets that wait for fragments.
pub const MAX_OPEN: usize = 1024;
const MAX_SIZE: usize = 16 << 20;

/// The source of consecutive events: a thread, and the interface that its events concern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    thread: u32,
    /// The processor, which distinguishes the idle threads: all have the id 0.
    idle: u16,
    lower: u32,
}

impl Place {
    pub const fn new(event: &EventRef<'_>, lower: u32) -> Self {
        let idle = if event.thread_id == 0 { event.processor } else { 0 };
        Self { thread: event.thread_id, idle, lower }
    }
}

/// The effect of a fragment.
pub enum Added<'a> {
    /// It completes a packet.
    Packet(Cow<'a, [u8]>),
    /// More fragments have to follow.
    Waiting,
    /// No first fragment precedes it.
    NoStart,
    /// It completes a packet that is too large.
    TooLarge,
}

/// The packets that wait for fragments.
#[derive(Debug, Default)]
pub struct Assembly {
    open: HashMap<(Place, u64), Open>,
    /// The total size of all open packets in bytes.
    size: usize,
    /// The number of the next open packet.
    next: u64,
    /// The number of packets that were given up.
    abandoned: u64,
}

#[derive(Debug)]
struct Open {
    number: u64,
    bytes: Vec<u8>,
    is_too_large: bool,
}

impl Assembly {
    /// Adds a fragment. Only fragments with the same place and direction belong together: a packet
    /// of the other direction may interrupt the thread.
    pub fn add<'a>(&mut self, place: Place, keywords: u64, bytes: &'a [u8]) -> Added<'a> {
        let key = (place, keywords & (keyword::SEND | keyword::RECEIVE));
        let is = |keyword| keywords & keyword != 0;
        if is(keyword::START) {
            self.abandoned += u64::from(self.close(&key).is_some());
            if is(keyword::END) {
                return Added::Packet(Cow::Borrowed(bytes));
            }
            let open = Open { number: self.next, bytes: Vec::new(), is_too_large: false };
            self.open.insert(key, open);
            self.next += 1;
        }
        let Some(open) = self.open.get_mut(&key) else {
            return Added::NoStart;
        };
        if open.bytes.len() + bytes.len() > MAX_PACKET {
            open.is_too_large = true;
        }
        if open.is_too_large {
            self.size -= open.bytes.len();
            open.bytes = Vec::new();
        } else {
            self.size += bytes.len();
            open.bytes.extend(bytes);
        }
        if is(keyword::END) {
            return match self.close(&key) {
                Some(open) if !open.is_too_large => Added::Packet(Cow::Owned(open.bytes)),
                _ => Added::TooLarge,
            };
        }
        while self.open.len() > MAX_OPEN || self.size > MAX_SIZE {
            let oldest = self.open.iter().min_by_key(|(_, open)| open.number);
            let Some(key) = oldest.map(|(key, _)| *key) else {
                break;
            };
            self.close(&key);
            self.abandoned += 1;
        }
        Added::Waiting
    }

    fn close(&mut self, key: &(Place, u64)) -> Option<Open> {
        let open = self.open.remove(key)?;
        self.size -= open.bytes.len();
        Some(open)
    }

    /// Returns the number of packets whose last fragment is missing.
    pub fn incomplete(&self) -> u64 {
        self.abandoned + self.open.len() as u64
    }
}
