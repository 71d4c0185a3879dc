//! Events.

use proc_macro2::Span;
use syn::{Ident, Type, Visibility};

use crate::{FieldType, Form};

/// The encoding of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// A manifest describes the event's layout, identified by id and version.
    Manifest,
    /// The event contains its own metadata.
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
    /// The lines of the doc comment.
    pub docs: Vec<String>,
    /// The name in a trace.
    pub name: String,
    /// The message that a viewer shows, with `%1` for the first field.
    pub message: Option<String>,
    /// The encoding.
    pub encoding: Encoding,
    /// The id; 0 for a `TraceLogging` event without an id.
    pub id: u16,
    /// The source location of the id.
    pub id_span: Span,
    /// The version of the layout.
    pub version: u8,
    /// The level.
    pub level: Level,
    /// The bits of the keywords; 0 for `keyword = none`.
    pub keyword: u64,
    /// The task, or 0.
    pub task: u16,
    /// The opcode.
    pub opcode: u8,
    /// The provider's own channel, or 0.
    pub channel: u8,
    /// The event's 28-bit tag.
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
    /// The type's source code.
    pub written: Type,
    /// The type.
    pub kind: FieldType,
    /// The form that the attributes specify for the field.
    pub form: Form,
    /// The field's 28-bit tag.
    pub tag: u32,
    /// The lines of the doc comment.
    pub docs: Vec<String>,
}
