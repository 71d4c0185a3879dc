//! A provider's declaration as data.
//!
//! The same Rust source is read twice: by the proc macros, which make a driver's code
//! of it, and by a driver's build script, which makes decoding resources of it. Both
//! get a [`Provider`] from [`parse`]: everything in it has been checked.

mod attribute;
mod check;
mod errors;
mod event;
mod layout;
pub mod parse;
mod provider;
pub mod tracelogging;
mod traits;
mod types;

pub use attribute::pascal_case;
pub use etw_wire::Guid;
pub use event::{Encoding, Event, Field, Level};
pub use layout::{Layout, Leaf, MAX_CONTENT, Piece, Wire, Wired};
pub use provider::{Channel, Hooks, Keyword, Map, MapKind, Named, Provider, Structure, Trait};
pub use types::{FieldType, Format, Representation, Row, Scalar, Shape, Text, type_names};
