//! Reading for decoders: a part that cannot be used is skipped, and reported.

use std::fmt;

use roxmltree::Node as Xml;

use super::{Mode, Reader};
use crate::{
    error::{ManifestError, Rule, printable},
    model::{Manifest, Position},
};

/// A manifest as far as a decoder can use it.
#[derive(Clone, Debug, Default)]
pub struct Lenient {
    /// The parts that can be used.
    pub manifest: Manifest,
    /// The parts that cannot, in the order of the file.
    pub skipped: Vec<Skipped>,
}

/// A part of a manifest that [`read_lenient`](super::read_lenient) left out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}; skipping {part} \"{}\"", printable(name))]
pub struct Skipped {
    /// The kind of part.
    pub part: Part,
    /// Its name in the manifest.
    pub name: String,
    /// The first reason, with its place.
    pub why: ManifestError,
}

/// A kind of part that a manifest has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// A provider with everything in it.
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
    /// An entry of a map that is kept.
    MapEntry,
    /// A named query.
    Query,
    /// A template. The events that have it are skipped, too.
    Template,
    /// A filter.
    Filter,
    /// An event.
    Event,
    /// A text, or its id in the message table.
    Text,
    /// A table of texts in a language.
    Language,
    /// A reference of a part that is kept, which is read as if it had none: an event without its
    /// level, a field without its map.
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
            Self::Reference => "reference",
        })
    }
}

impl<'a, 'i> Reader<'a, 'i> {
    /// Reads a part. A decoder does without it if something was refused meanwhile.
    pub fn part<T>(
        &mut self,
        part: Part,
        node: Xml<'a, 'i>,
        read: impl FnOnce(&mut Self) -> T,
    ) -> Option<T> {
        let before = self.errors.len();
        let item = read(self);
        if self.mode == Mode::Strict || self.errors.len() == before {
            return Some(item);
        }
        let why = self.errors.drain(before..).next()?;
        let name = name_of(part, node);
        self.skipped.push(Skipped { part, name, why });
        None
    }

    /// Refuses a part that a decoder cannot use either.
    pub fn refuse(&mut self, at: Position, rule: Rule) {
        self.errors.push(ManifestError { at, rule });
    }

    /// Refuses something that only compilers mind.
    pub fn object(&mut self, at: Position, rule: Rule) {
        match self.mode {
            Mode::Strict => self.refuse(at, rule),
            Mode::Lenient => {}
        }
    }

    /// Refuses a reference that a decoder does without.
    pub fn lose(&mut self, at: Position, name: &str, rule: Rule) {
        match self.mode {
            Mode::Strict => self.refuse(at, rule),
            Mode::Lenient => self.skipped.push(Skipped {
                part: Part::Reference,
                name: name.to_owned(),
                why: ManifestError { at, rule },
            }),
        }
    }

    /// Refuses the second of two definitions for a decoder; the checker does it for compilers.
    pub fn refuse_second(
        &mut self,
        node: Xml<'a, 'i>,
        what: &'static str,
        name: &str,
        known: bool,
    ) {
        if known && self.mode == Mode::Lenient {
            let at = self.position(node);
            let name = name.to_owned();
            self.refuse(at, Rule::Duplicate { what, name });
        }
    }
}

/// The name of a part, as the manifest has it.
fn name_of(part: Part, node: Xml<'_, '_>) -> String {
    let attribute = match part {
        Part::Provider
        | Part::Channel
        | Part::Level
        | Part::Task
        | Part::Opcode
        | Part::Keyword
        | Part::Map
        | Part::Query
        | Part::Filter
        | Part::Reference => "name",
        Part::Template => "tid",
        Part::Event => {
            let id = node.attribute("value").unwrap_or_default();
            return node.attribute("version").map_or_else(
                || id.to_owned(),
                |version| format!("{id} version {version}"),
            );
        }
        Part::MapEntry => "value",
        Part::Text => "id",
        Part::Language => "culture",
    };
    node.attribute(attribute).unwrap_or_default().to_owned()
}
