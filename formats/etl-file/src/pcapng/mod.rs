//! The packets of a trace as a pcapng file, which Wireshark and other analyzers open.
//!
//! Microsoft-Windows-NDIS-PacketCapture, which `netsh trace start capture=yes` enables, writes an event
//! for each packet, or on older systems for each fragment of one (ETL-16.1). The payloads are read by their
//! layout, without a manifest. Packets are written in the order in which they are complete, and a bounded
//! number of them is in memory. Fragments and packets that cannot be written are counted.

mod assembly;
mod capture;
mod part;
mod summary;
mod writer;

pub use capture::{Capture, concerns};
pub use summary::Summary;
pub use writer::Writer;
