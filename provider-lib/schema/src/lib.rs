//! The declaration of a provider as data.
//!
//! A declaration's Rust source is read twice: by the proc macros, which generate a driver's code,
//! and by the build script, which generates decoding resources. Both get a checked [`Provider`]
//! from [`parse`].

mod attribute;
mod check;
mod configuration;
mod elements;
mod errors;
mod event;
mod layout;
mod message;
pub mod parse;
mod provider;
pub mod tracelogging;
mod traits;
mod types;

pub use attribute::{pascal_case, ungrouped};
pub use configuration::{Configuration, Evaluate, Evaluated};
pub use elements::elements;
pub use etw_wire::Guid;
pub use event::{Encoding, Event, Field, Level};
pub use layout::{BlockPart, DataDescriptor, Layout, Leaf, MAX_CONTENT, Wire};
pub use provider::{
    AutoLogger, Channel, ChannelSettings, Hooks, Isolation, Keyword, MIN_LOG_SIZE, Map, MapKind,
    Named, Provider, Structure, TaskOpcodes, Trait,
};
pub use types::{
    Block, Counter, FieldType, Form, Format, Representation, Row, Scalar, Shape, Text, type_names,
};
