//! Decodes events.
//!
//! A `TraceLogging` event contains its own [`Schema`]; the schema of a manifest event comes from a
//! [`Catalog`](crate::Catalog). [`decode`] uses whichever exists.

pub mod catalog;
mod codes;
mod decoder;
mod description;
mod error;
mod event;
pub mod kernel;
mod message;
mod mof;
mod payload;
mod printf;
mod schema;
pub mod schemas;
mod tracelogging;
mod traits;
mod value;
pub mod wpp;

#[cfg(test)]
pub(crate) use decoder::decoded;
pub use decoder::{Decoder, decode};
pub use error::{MetadataError, PayloadError, PayloadErrorKind};
pub use etw_wire::InType;
pub use event::{Decoded, Frame, Keywords, Kind, Problem, Stack};
pub use payload::{Fields, Payload};
pub use schema::{Count, Encoding, Field, Length, Presentation, Schema, ValueMap};
pub use traits::ProviderTraits;
pub use value::distinct_names;
pub(crate) use value::serialize_fields;
pub use value::{Sid, Value};
