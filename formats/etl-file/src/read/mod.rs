//! Reads .etl files, including damaged ones.
//!
//! [`TraceFile`] reads files of any length: it returns a trace's records in time order, and keeps
//! one buffer of each processor in memory. [`Trace`] keeps all records of a small trace in memory.
//! Both return event records (`EVENT_HEADER`) as events, and all other records as bytes. Damaged
//! parts are listed and do not hide the records after them.

mod buffer;
mod error;
mod event;
mod file;
mod format;
mod header;
mod loaded;
mod other;
mod record;
mod records;
mod trace;

pub use buffer::BufferInfo;
pub use error::{Damage, DamageKind, Damages, ReadError};
pub use event::parse as parse_event;
pub use event::{Event, EventRef, Items, PointerSize};
pub use file::TraceFile;
pub use format::OtherFormat;
pub use header::TraceHeader;
pub use loaded::LoadedBuffer;
pub use other::pointer_size;
pub use other::{Other, OtherKind};
pub use record::RecordBatch;
pub use record::{RecordBuf, RecordRef};
pub use records::Records;
pub use trace::{Record, Trace};

/// Converts an offset within a file, which always fits in 64 bits.
fn to_u64(offset: usize) -> u64 {
    u64::try_from(offset).unwrap_or(u64::MAX)
}
