//! Reads, writes and decodes .etl (Event Trace Log) files.
//!
//! An .etl file is an array of equally large buffers. Each buffer starts with a 72-byte header
//! (`WMI_BUFFER_HEADER`) and contains the records of one processor; the first buffer describes the
//! whole trace (`TRACE_LOGFILE_HEADER`). This crate handles the 64-bit layout of Windows 7 and
//! later (layout version 1.5) and compressed files (layout version 2.0).
//! `docs/reference/etl-format.md` describes both; ids such as ETL-2.1 refer to that document.
//!
//! - [`TraceFile`], [`Trace`]: reading of traces, including damaged traces.
//! - [`EventRecord`]: the event record, used by the writer and the reader; [`LogFileHeader`]: the
//!   header of a trace.
//! - [`mod@write`]: session buffers, and the log file that they are flushed to.
//! - [`mod@decode`]: decoding of events: with their own metadata, with the providers of manifests and
//!   images ([`Catalog`]), with the schemas that traces contain ([`schemas`](decode::schemas)); of
//!   kernel events and classic events; and of WPP messages ([`wpp`](decode::wpp)).
//! - [`Completion`]: completion of events with other data from their trace: names of processes,
//!   threads and images, stacks that are joined with their events, and [`symbols`] from PDBs.
//! - [`Pipeline`]: the steps from the records of a trace of any length to its decoded events; all
//!   outputs use it.
//! - [`Selection`]: selection of events; [`trim`]: selection of the records that a part of a trace
//!   needs; [`mod@merge`]: several traces in one.
//! - [`lines`]: an event as a line of text and as JSON.
//!
//! The program `etl` has the other outputs: tables, CSV, timelines, packets and pages.

mod addresses;
mod code_page;
mod completion;
mod compression;
mod cursor;
pub mod decode;
mod header;
mod hiding;
mod image;
mod input;
#[doc(hidden)]
pub mod internals;
mod layout;
pub mod lines;
pub mod merge;
mod names;
mod pipeline;
mod read;
mod record;
mod select;
mod show;
mod spans;
mod stacks;
pub mod symbols;
mod time;
pub mod trim;
pub mod write;

pub use code_page::{CodePage, UnknownCodePage};
pub use completion::Completion;
pub use compression::CompressionError;
pub use decode::catalog::Catalog;
pub use decode::decoder::decode;
pub use decode::event::Decoded;
pub use etw_wire::Guid;
pub use header::{HeaderError, LogFileHeader, TimeZone, log_file_mode};
pub use image::ImageError;
pub use pipeline::{FirstPass, Pipeline, RecordCount, RecordCounts, Summary};
pub use read::{
    BufferInfo, Damage, DamageKind, Damages, Event, EventRef, Items, LoadedBuffer, Other,
    OtherFormat, OtherKind, PointerSize, ReadError, Record, RecordBuf, RecordRef, Records, Trace,
    TraceFile, TraceHeader,
};
pub use record::{
    EncodeError, EncodedRecord, EventDescriptor, EventRecord, ExtendedItem, ext_type,
};
pub use select::Selection;
pub use stacks::StackCounts;
pub use time::{Clock, ClockType, FileTime, NotATime, SystemTime};
