//! The file: a sequence of packets.

use std::io::{self, Write};

use super::schema::{packet, trace};
use super::wire::Message;

/// A timeline's only sequence of packets.
const SEQUENCE: u64 = 1;
/// The size at which the buffer is written out.
const FLUSH: usize = 64 << 10;

/// Writes packets through a buffer.
pub struct Packets<W> {
    out: W,
    buffer: Vec<u8>,
    count: u64,
}

impl<W: Write> Packets<W> {
    pub const fn new(out: W) -> Self {
        Self { out, buffer: Vec::new(), count: 0 }
    }

    /// Adds a packet to the sequence; `content` fills it.
    pub fn add(
        &mut self,
        timestamp: Option<u64>,
        content: impl FnOnce(&mut Message<'_>),
    ) -> io::Result<()> {
        Message::new(&mut self.buffer).message(trace::PACKET, |packet| {
            if let Some(timestamp) = timestamp {
                packet.uint(packet::TIMESTAMP, timestamp);
            }
            packet.uint(packet::TRUSTED_PACKET_SEQUENCE_ID, SEQUENCE);
            content(packet);
        });
        self.count += 1;
        if self.buffer.len() >= FLUSH {
            self.write()?;
        }
        Ok(())
    }

    /// Returns the number of packets.
    pub const fn count(&self) -> u64 {
        self.count
    }

    fn write(&mut self) -> io::Result<()> {
        self.out.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }

    /// Writes the remaining packets, and returns the output.
    pub fn finish(mut self) -> io::Result<W> {
        self.write()?;
        self.out.flush()?;
        Ok(self.out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_counted_and_written_together() {
        let mut out = Vec::new();
        let mut packets = Packets::new(&mut out);
        let text = "x".repeat(1000);
        for _ in 0..3 {
            packets.add(Some(5), |to| to.text(1, &text)).unwrap();
        }
        assert_eq!(packets.count(), 3);
        let one = packets.buffer.len() / 3;
        assert!(one > text.len());
        assert_eq!(packets.out.len(), 0);
        while packets.out.is_empty() {
            packets.add(Some(5), |to| to.text(1, &text)).unwrap();
        }
        let all = usize::try_from(packets.count()).unwrap() * one;
        assert_eq!(packets.out.len(), all);
        assert!((0x1_0000..0x1_0000 + one).contains(&all), "{all}");
        assert!(packets.buffer.is_empty());
        packets.add(None, |_| {}).unwrap();
        assert!(packets.finish().unwrap().len() > all);
    }
}
