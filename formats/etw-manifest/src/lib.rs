//! Instrumentation manifests: the names and layouts of providers' events.
//!
//! - [`read()`] reads a manifest (`.man`, the XML of eventman.xsd) and [`check()`]s it like a
//!   compiler; [`write()`] writes a manifest.
//! - [`read_lenient`] reads a manifest like a decoder: it skips the parts that it cannot use, and
//!   reports them.
//! - [`resources`] writes the resources that mc.exe compiles from a manifest: `WEVT_TEMPLATE` and
//!   message tables. [`res`] writes resources to a `.res` file for a linker.
//! - [`compare`] finds changes that make older traces unreadable.
//!
//! `docs/reference/decoding-resources.md` describes the formats and names their sources.

#![cfg_attr(
    not(feature = "xml"),
    allow(dead_code, unused_imports, reason = "the reader of XML uses it")
)]

mod check;
pub mod compare;
mod error;
mod lenient;
mod model;
mod position;
mod presentation;
#[cfg(feature = "xml")]
mod read;
pub mod res;
pub mod resources;
#[cfg(feature = "xml")]
mod shape;
mod text;
mod types;
mod winmeta;
#[cfg(feature = "xml")]
mod write;

pub use check::{check, is_name};
pub use error::{Failures, ManifestError, Rule, printable};
pub use etw_wire::{Guid, InType, OutType};
pub use lenient::{Lenient, Part, Skipped};
pub use model::{
    Channel, Element, Event, Filter, Keyword, Level, Logging, Manifest, Map, MapItem, Node, Opcode,
    Others, Position, Property, PropertyKind, Provider, QName, Query, Size, Task, Template, Text,
    TextRef, Translation, replace_fields,
};
pub use presentation::Presentation;
#[cfg(feature = "xml")]
pub use read::{read, read_lenient};
pub use text::{number, text};
pub use winmeta::{standard_channel, standard_level, standard_opcode};
#[cfg(feature = "xml")]
pub use write::write;
