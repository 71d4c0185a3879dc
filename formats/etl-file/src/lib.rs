//! Reads, writes and decodes .etl (Event Trace Log) files.
//!
//! An .etl file is an array of equally large buffers. Each buffer starts with a 72-byte header
//! (`WMI_BUFFER_HEADER`) and contains the records of one processor; the first buffer describes the
//! whole trace (`TRACE_LOGFILE_HEADER`). This crate handles the 64-bit layout of Windows 7 and
//! later (layout version 1.5) and compressed files (layout version 2.0).
//! `docs/reference/etl-format.md` describes both; ids such as ETL-2.1 refer to that document.
//!
//! - [`record`]: the event record, used by the writer and the reader.
//! - [`header`]: the header of a trace.
//! - [`mod@write`]: session buffers, and the log file that they are flushed to.
//! - [`compression`]: the compression of buffers.
//! - [`read`]: traces, including damaged traces.
//! - [`mod@decode`]: decoding of events: with their own metadata, with the providers of manifests and
//!   images ([`catalog`](decode::catalog)), with the schemas that traces contain
//!   ([`schemas`](decode::schemas)); of kernel events and classic events
//!   ([`kernel`](decode::kernel)), and of WPP messages ([`wpp`](decode::wpp)).
//! - [`completion`]: completion of events with other data from their trace: [`names`] of processes,
//!   threads and images, [`stacks`] that are joined with their events, and [`symbols`] from PDBs.
//! - [`pipeline`]: the steps from the records of a trace of any length to its decoded events; all
//!   outputs use it.
//! - [`select`]: selection of events; [`trim`]: selection of the records that a part of a trace
//!   needs; [`mod@merge`]: several traces in one.
//! - [`lines`]: an event as a line of text and as JSON; [`show`]: printable forms of bytes and
//!   untrusted text.
//!
//! The program `etl` has the other outputs: tables, CSV, timelines, packets and pages.

pub mod completion;
pub mod compression;
mod cursor;
pub mod decode;
pub mod header;
pub mod image;
mod input;
mod layout;
pub mod lines;
pub mod merge;
pub mod names;
pub mod pipeline;
pub mod read;
pub mod record;
pub mod select;
pub mod show;
pub mod spans;
pub mod stacks;
pub mod symbols;
pub mod time;
pub mod trim;
pub mod write;

pub use decode::catalog::Catalog;
pub use decode::{Decoded, decode};
pub use etw_wire::Guid;
pub use header::LogFileHeader;
pub use pipeline::Pipeline;
pub use read::{Event, Trace, TraceFile};
pub use record::{EncodedRecord, EventDescriptor, EventRecord, ExtendedItem};
pub use select::Selection;
pub use time::{Clock, ClockType, FileTime};
