//! The packets of a trace as a pcapng file, which Wireshark and other analyzers open.
//!
//! Microsoft-Windows-NDIS-PacketCapture, which `netsh trace start capture=yes` enables, writes an event
//! for each packet or, on older systems, for each fragment of a packet (ETL-16.1). The payloads are
//! decoded without a manifest. Microsoft-Windows-PktMon writes an event for each packet in each
//! component of the network stack. Packets are written in the order in which they become complete, and
//! a limited number of them is in memory. Fragments and packets that cannot be written are counted.

mod assembly;
mod capture;
mod part;
mod pktmon;
mod summary;
mod writer;

pub use capture::{Capture, concerns};
pub use pktmon::Packet;
pub use summary::Summary;
pub use writer::Writer;
