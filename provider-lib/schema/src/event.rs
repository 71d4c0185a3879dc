//! Events.

use proc_macro2::Span;
use syn::{Ident, Type, Visibility};

use crate::FieldType;

/// How an event travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// Its layout is in a manifest, by its id and version.
    Manifest,
    /// It describes itself.
    TraceLogging,
}

/// An event's level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level(pub u8);

/// An event's declaration.
#[derive(Debug)]
pub struct Event {
    /// The function's name.
    pub ident: Ident,
    /// The function's visibility.
    pub visibility: Visibility,
    /// What it is about: the doc comment's lines.
    pub docs: Vec<String>,
    /// The name in a trace.
    pub name: String,
    /// What a viewer shows, with `%1` for the first field.
    pub message: Option<String>,
    /// How it travels.
    pub encoding: Encoding,
    /// The id, 0 for a `TraceLogging` event that has none.
    pub id: u16,
    /// Where the id stands.
    pub id_span: Span,
    /// The version of the layout.
    pub version: u8,
    /// The level.
    pub level: Level,
    /// The keywords' bits; 0 where the declaration says so on purpose.
    pub keyword: u64,
    /// The task, 0 for none.
    pub task: u16,
    /// The opcode.
    pub opcode: u8,
    /// The channel, 0 for none of the provider's own.
    pub channel: u8,
    /// The event's tag: 28 bits.
    pub tag: u32,
    /// The fields.
    pub fields: Vec<Field>,
}

/// A field of an event or a structure.
#[derive(Debug)]
pub struct Field {
    /// The parameter's name.
    pub ident: Ident,
    /// The name in a trace.
    pub name: String,
    /// The type as it is written.
    pub written: Type,
    /// The type.
    pub kind: FieldType,
    /// The field's tag: 28 bits.
    pub tag: u32,
    /// What it is about.
    pub docs: Vec<String>,
}
