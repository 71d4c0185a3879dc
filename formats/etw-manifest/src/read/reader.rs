//! A reader's state, and its handling of unusable parts.

use roxmltree::{Document, Node as Xml};

use super::{
    find::{Globals, Names},
    lines::Lines,
};
use crate::{
    error::{ManifestError, Rule},
    lenient::{Part, Skipped},
    model::{Manifest, Position},
    shape::Mode,
};

/// Reads one document.
pub struct Reader<'a, 'input> {
    pub mode: Mode,
    pub document: &'a Document<'input>,
    pub lines: Lines,
    pub manifest: Manifest,
    pub errors: Vec<ManifestError>,
    pub skipped: Vec<Skipped>,
    pub globals: Globals,
    pub names: Names,
}

impl<'a, 'i> Reader<'a, 'i> {
    pub fn position(&self, node: Xml<'a, 'i>) -> Position {
        self.position_of(node.range().start)
    }

    pub fn position_of(&self, offset: usize) -> Position {
        self.lines.position(self.document.input_text(), offset)
    }

    /// Reads a part. A decoder skips the part if it contains an error.
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

    /// Reports an error that makes a part unusable even for decoders.
    pub fn refuse(&mut self, at: Position, rule: Rule) {
        self.errors.push(ManifestError { at, rule });
    }

    /// Reports an error that matters only to compilers.
    pub fn object(&mut self, at: Position, rule: Rule) {
        if self.mode == Mode::Strict {
            self.refuse(at, rule);
        }
    }

    /// Reports a broken reference, which a decoder ignores.
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

    /// Reports the second of two definitions to a decoder; for compilers, the checker does this.
    pub fn refuse_second(
        &mut self,
        node: Xml<'a, 'i>,
        what: &'static str,
        name: &str,
        is_known: bool,
    ) {
        if is_known && self.mode == Mode::Lenient {
            let at = self.position(node);
            let name = name.to_owned();
            self.refuse(at, Rule::Duplicate { what, name });
        }
    }
}

/// Returns a part's name in the manifest.
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
        | Part::Character
        | Part::Comment
        | Part::Element
        | Part::Reference => "name",
        Part::Template => "tid",
        Part::Event => {
            let id = node.attribute("value").unwrap_or_default();
            return node
                .attribute("version")
                .map_or_else(|| id.to_owned(), |version| format!("{id} version {version}"));
        }
        Part::MapEntry => "value",
        Part::Text => "id",
        Part::Language => "culture",
    };
    node.attribute(attribute).unwrap_or_default().to_owned()
}
