//! The result of a lenient reader, which skips the parts that decoders cannot use.

use std::fmt;

use crate::{
    error::{ManifestError, printable},
    model::Manifest,
};

/// The parts of a manifest that a decoder can use.
#[derive(Clone, Debug, Default)]
pub struct Lenient {
    /// The usable parts.
    pub manifest: Manifest,
    /// The skipped parts, in file order.
    pub skipped: Vec<Skipped>,
}

/// A part of a manifest that [`read_lenient`](crate::read_lenient) skipped.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.sentence())]
pub struct Skipped {
    /// The kind of part.
    pub part: Part,
    /// The part's name in the manifest.
    pub name: String,
    /// The first reason, with its location.
    pub why: ManifestError,
}

impl Skipped {
    fn sentence(&self) -> String {
        let Self { part, name, why } = self;
        match part {
            Part::Character => format!("{why}; taking it literally"),
            Part::Comment => format!("{why}; skipping the comment"),
            Part::Element => why.to_string(),
            _ => format!("{why}; skipping {part} \"{}\"", printable(name)),
        }
    }
}

/// A kind of part of a manifest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// A provider with all of its definitions.
    Provider,
    /// A channel.
    Channel,
    /// A level.
    Level,
    /// A task with its opcodes.
    Task,
    /// An opcode.
    Opcode,
    /// A keyword.
    Keyword,
    /// A map.
    Map,
    /// An entry of a map; the map itself is kept.
    MapEntry,
    /// A named query.
    Query,
    /// A template. The events that use it are skipped, too.
    Template,
    /// A filter.
    Filter,
    /// An event.
    Event,
    /// A string, or its id in the message table.
    Text,
    /// A table of strings in a language.
    Language,
    /// A character that is accidentally markup, or that XML forbids. The reader takes it literally.
    Character,
    /// A comment that is not well-formed XML.
    Comment,
    /// Elements or attributes that do not belong in event manifests.
    Element,
    /// A broken reference in a part that is kept without it: an event without its level, a field
    /// without its map.
    Reference,
}

impl fmt::Display for Part {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Provider => "provider",
            Self::Channel => "channel",
            Self::Level => "level",
            Self::Task => "task",
            Self::Opcode => "opcode",
            Self::Keyword => "keyword",
            Self::Map => "map",
            Self::MapEntry => "map entry",
            Self::Query => "query",
            Self::Template => "template",
            Self::Filter => "filter",
            Self::Event => "event",
            Self::Text => "text",
            Self::Language => "language",
            Self::Character => "character",
            Self::Comment => "comment",
            Self::Element => "element",
            Self::Reference => "reference",
        })
    }
}
