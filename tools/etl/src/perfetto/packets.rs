//! The file: a sequence of packets.

use super::schema::{attributes, packet, trace};
use super::wire::Message;

/// A timeline's only sequence of packets.
const SEQUENCE: u64 = 1;
/// The number of bytes at which packets should be written out.
const FLUSH: usize = 64 << 10;

/// The packets that have not been written out.
#[derive(Debug, Default)]
pub struct Packets {
    buffer: Vec<u8>,
    count: u64,
}

impl Packets {
    /// Adds a packet to the sequence; `content` fills it.
    pub fn add(&mut self, timestamp: Option<u64>, content: impl FnOnce(&mut Message<'_>)) {
        Message::new(&mut self.buffer).message(trace::PACKET, |packet| {
            if let Some(timestamp) = timestamp {
                packet.uint(packet::TIMESTAMP, timestamp);
            }
            packet.uint(packet::TRUSTED_PACKET_SEQUENCE_ID, SEQUENCE);
            content(packet);
        });
        self.count += 1;
    }

    /// Adds a packet with attributes of the trace.
    pub fn attributes(&mut self, numbers: &[(&str, u64)], texts: &[(&str, &str)]) {
        self.add(None, |packet| {
            packet.message(packet::TRACE_ATTRIBUTES, |to| {
                for (key, value) in numbers {
                    to.message(attributes::ATTRIBUTE, |to| {
                        to.text(attributes::KEY, key);
                        to.uint(attributes::LONG_VALUE, *value);
                    });
                }
                for (key, value) in texts {
                    to.message(attributes::ATTRIBUTE, |to| {
                        to.text(attributes::KEY, key);
                        to.text(attributes::STRING_VALUE, value);
                    });
                }
            });
        });
    }

    /// Returns the number of all packets.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Returns true if there are enough packets to write out.
    pub const fn are_many(&self) -> bool {
        self.buffer.len() >= FLUSH
    }

    /// Returns the packets that have not been returned before.
    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.buffer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_counted_and_many_if_they_fill_the_buffer() {
        let mut packets = Packets::default();
        let text = "x".repeat(1000);
        let add = |packets: &mut Packets| packets.add(Some(5), |to| to.text(1, &text));
        add(&mut packets);
        let one = packets.take().len();
        assert!(one > text.len());
        for count in 1..=FLUSH.div_ceil(one) {
            assert!(!packets.are_many());
            add(&mut packets);
            assert_eq!(packets.count(), 1 + count as u64);
        }
        assert!(packets.are_many());
        assert_eq!(packets.take().len() % one, 0);
        assert!(packets.take().is_empty());
    }
}
