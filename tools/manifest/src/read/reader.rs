//! The state of a reader, and what it does with parts that cannot be used.

use std::collections::HashSet;

use roxmltree::{Document, Node as Xml};

use super::lenient::{Part, Skipped};
use crate::{
    error::{ManifestError, Rule},
    model::{Manifest, Position},
};

/// Whom the reader reads for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Compilers.
    Strict,
    /// Decoders.
    Lenient,
}

/// Reads one document.
pub struct Reader<'a, 'input> {
    pub mode: Mode,
    pub document: &'a Document<'input>,
    /// Where the text's lines start.
    pub lines: Vec<usize>,
    pub manifest: Manifest,
    pub errors: Vec<ManifestError>,
    pub skipped: Vec<Skipped>,
    /// The events of the provider that is read.
    pub events: HashSet<(u16, u8)>,
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
