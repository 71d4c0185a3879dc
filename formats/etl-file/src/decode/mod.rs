//! Decodes events.
//!
//! A `TraceLogging` event contains its own schema; the schema of a manifest event comes from a
//! [`Catalog`](crate::Catalog). [`decode`](crate::decode()) uses whichever exists.

pub(crate) mod catalog;
mod codes;
pub(crate) mod decoder;
mod description;
mod error;
pub(crate) mod event;
pub(crate) mod kernel;
mod message;
mod mof;
pub(crate) mod payload;
mod printf;
pub(crate) mod schema;
pub mod schemas;
mod tracelogging;
mod traits;
pub(crate) mod value;
pub mod wpp;

pub use catalog::LoadError;
pub use decoder::Decoder;
#[cfg(test)]
pub(crate) use decoder::decoded;
pub use error::{MetadataError, PayloadError, PayloadErrorKind};
pub(crate) use event::Decoded;
pub use event::{Frame, Keywords, Kind, Problem, Stack};
pub use mof::{MofError, MofErrorKind};
pub use payload::Fields;
pub use traits::ProviderTraits;
pub(crate) use value::serialize_fields;
pub use value::{Sid, Value};
