//! Reads .etl files, including damaged ones.
//!
//! [`Trace`] walks every buffer of a file. It decodes event records
//! (`EVENT_HEADER`) and lists the other kinds of records by kind and size.
//! Damaged parts are listed as well and do not hide the records after them.

mod buffer;
mod error;
mod event;
mod header;
mod other;
mod trace;

pub use buffer::BufferInfo;
pub use error::{Damage, DamageKind, ReadError};
pub(crate) use event::parse as parse_event;
pub use event::{Event, PointerSize};
pub use header::TraceHeader;
pub use other::{Other, OtherKind};
pub use trace::{Record, Trace};
