//! Reads the XML of a manifest.
//!
//! There is one reader for compilers and decoders. It is strict for the ones: everything that
//! does not hold is an error. It is lenient for the others: a part that cannot be used is skipped
//! and reported, and the rest is read.

mod event;
mod lenient;
mod provider;
mod template;
mod xml;

use std::{collections::HashSet, iter};

use roxmltree::{Document, Node as Xml, ParsingOptions};

use crate::{
    check::check,
    error::{Failures, ManifestError, Rule},
    model::{Channel, Manifest, Position, Text, Translation},
    shape, winmeta,
};

pub use lenient::{Lenient, Part, Skipped};
pub use xml::number;
use xml::{name, named, optional};

/// Returns the text of a file in UTF-8 or, with a byte order mark, in UTF-16; `None` if the bytes
/// are neither.
#[must_use]
pub fn text(bytes: &[u8]) -> Option<String> {
    let wide = |bytes: &[u8], unit: fn([u8; 2]) -> u16| {
        let pairs = bytes.chunks(2);
        let units = pairs.map(|pair| match *pair {
            [first, second] => Some(unit([first, second])),
            _ => None,
        });
        String::from_utf16(&units.collect::<Option<Vec<u16>>>()?).ok()
    };
    match bytes {
        [0xFF, 0xFE, rest @ ..] => wide(rest, u16::from_le_bytes),
        [0xFE, 0xFF, rest @ ..] => wide(rest, u16::from_be_bytes),
        [0xEF, 0xBB, 0xBF, rest @ ..] | rest => String::from_utf8(rest.to_vec()).ok(),
    }
}

/// Reads a manifest for a compiler: eventman.xsd's form, and all that [`check()`] checks.
///
/// # Errors
///
/// Everything that is wrong with it, each with its place.
pub fn read(text: &str) -> Result<Manifest, Failures> {
    let (manifest, _, mut errors) = parse(text, Mode::Strict)?;
    if errors.is_empty() {
        errors = check(&manifest);
    }
    if errors.is_empty() {
        return Ok(manifest);
    }
    errors.sort_by_key(|error| error.at);
    Err(Failures(errors))
}

/// Reads a manifest for a decoder.
///
/// Skips each event, template, map and so on that cannot be used, and reports it; that includes
/// the second of two with one name or number. What only compilers mind (symbols, files, reserved
/// numbers) is not looked at.
///
/// # Errors
///
/// If the text is not well-formed XML, or another document.
pub fn read_lenient(text: &str) -> Result<Lenient, ManifestError> {
    let read = parse(text, Mode::Lenient).map_err(|Failures(errors)| errors);
    let (manifest, mut skipped, errors) = match read {
        Ok(read) => read,
        Err(errors) => (Manifest::default(), Vec::new(), errors),
    };
    // Within parts, errors are reasons to skip; these are of the document itself.
    if let Some(error) = errors.into_iter().next() {
        return Err(error);
    }
    skipped.sort_by_key(|one| one.why.at);
    Ok(Lenient { manifest, skipped })
}

/// Whom the reader reads for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// Compilers.
    Strict,
    /// Decoders.
    Lenient,
}

/// Reads a manifest as far as its parts are understood; with it come what was skipped, and the
/// errors. An error alone is one of the XML.
fn parse(text: &str, mode: Mode) -> Result<(Manifest, Vec<Skipped>, Vec<ManifestError>), Failures> {
    let options = ParsingOptions {
        // A document type could only define entities, which manifests have no use for.
        allow_dtd: false,
        ..ParsingOptions::default()
    };
    let document = Document::parse_with_options(text, options).map_err(|error| {
        let at = error.pos();
        let what = error.to_string();
        // The place is told already.
        let what = what.strip_suffix(&format!(" at {at}")).unwrap_or(&what);
        Failures(vec![ManifestError {
            at: Position {
                line: at.row as usize,
                column: at.col as usize,
            },
            rule: Rule::Xml(what.to_owned()),
        }])
    })?;
    let mut reader = Reader {
        mode,
        document: &document,
        lines: iter::once(0)
            .chain(text.match_indices('\n').map(|(end, _)| end + 1))
            .collect(),
        manifest: Manifest::default(),
        errors: Vec::new(),
        skipped: Vec::new(),
        events: HashSet::new(),
    };
    reader.document();
    Ok((reader.manifest, reader.skipped, reader.errors))
}

struct Reader<'a, 'input> {
    mode: Mode,
    document: &'a Document<'input>,
    /// Where the text's lines start.
    lines: Vec<usize>,
    manifest: Manifest,
    errors: Vec<ManifestError>,
    skipped: Vec<Skipped>,
    /// The events of the provider that is read.
    events: HashSet<(u16, u8)>,
}

impl<'a, 'i> Reader<'a, 'i> {
    fn document(&mut self) {
        let root = self.document.root_element();
        if name(root) != "instrumentationManifest" {
            let at = self.position(root);
            self.refuse(at, Rule::NotAManifest(name(root).to_owned()));
            return;
        }
        let findings = match self.mode {
            Mode::Strict => shape::check(root),
            Mode::Lenient => Vec::new(),
        };
        for (node, attribute, rule) in findings {
            let at = attribute.map_or_else(
                || self.position(node),
                |attribute| self.attribute_position(node, &attribute),
            );
            self.refuse(at, rule);
        }
        let mut languages: Vec<Xml<'a, 'i>> = named(root, "localization")
            .flat_map(|it| named(it, "resources"))
            .collect();
        if self.mode == Mode::Lenient {
            // The language of people who decode; compilers take the file's first one.
            languages.sort_by_key(|one| one.attribute("culture") != Some("en-US"));
        }
        for resources in languages {
            self.part(Part::Language, resources, |it| it.resources(resources));
        }
        let events: Vec<Xml<'a, 'i>> = named(root, "instrumentation")
            .flat_map(|it| named(it, "events"))
            .collect();
        for table in events.iter().flat_map(|it| named(*it, "messageTable")) {
            for message in named(table, "message") {
                self.part(Part::Text, message, |it| it.table_message(message));
            }
        }
        for provider in events.iter().flat_map(|it| named(*it, "provider")) {
            if let Some(provider) = self.part(Part::Provider, provider, |it| it.provider(provider))
            {
                self.manifest.providers.push(provider);
            }
        }
        self.import_channels();
    }

    fn resources(&mut self, node: Xml<'a, 'i>) {
        let culture = self.required(node, "culture");
        let is_first = self.manifest.culture.is_empty();
        let mut translation = Translation {
            culture: culture.clone(),
            texts: Vec::new(),
        };
        let mut known = HashSet::new();
        for string in named(node, "stringTable").flat_map(|it| named(it, "string")) {
            let text = self.part(Part::Text, string, |it| {
                let id = it.required(string, "id");
                it.refuse_second(string, "text", &id, !known.insert(id.clone()));
                (id, it.required(string, "value"))
            });
            let Some((id, value)) = text else {
                continue;
            };
            if is_first {
                let at = self.position(string);
                self.manifest.texts.push(Text {
                    id,
                    value,
                    at,
                    ..Text::default()
                });
            } else {
                translation.texts.push((id, value));
            }
        }
        if is_first {
            self.manifest.culture = culture;
        } else {
            self.manifest.translations.push(translation);
        }
    }

    fn table_message(&mut self, node: Xml<'a, 'i>) {
        let id = self.number::<u32>(node, "value", 0..=u64::from(u32::MAX));
        if node.attribute("message").is_none() {
            self.required(node, "message");
        }
        if let Some(text) = self.message(node) {
            self.manifest.texts[text].message_id = Some(id);
            self.manifest.texts[text].symbol = optional(node, "symbol");
        }
    }

    /// Completes imported channels by their definitions. The one that is meant has the id, or the
    /// name, that the element gives; winmeta.xml's come first.
    fn import_channels(&mut self) {
        let own: Vec<Channel> = self
            .manifest
            .providers
            .iter()
            .flat_map(|provider| &provider.channels)
            .filter(|channel| !channel.imported)
            .cloned()
            .collect();
        for provider in 0..self.manifest.providers.len() {
            for at in 0..self.manifest.providers[provider].channels.len() {
                let channel = self.manifest.providers[provider].channels[at].clone();
                if !channel.imported || !channel.declared {
                    continue;
                }
                let id = channel.id.as_deref().unwrap_or(&channel.name);
                let standard = winmeta::channel(&mut self.manifest, id)
                    .or_else(|| winmeta::channel(&mut self.manifest, &channel.name));
                let place = &mut self.manifest.providers[provider].channels[at];
                if let Some(standard) = standard {
                    place.kind = standard.kind;
                    place.value = standard.value;
                    place.message = standard.message;
                    continue;
                }
                let found = own.iter().find(|other| {
                    other.id.as_deref() == Some(id)
                        || other.name == id
                        || other.name == channel.name
                });
                match found {
                    Some(found) => place.kind.clone_from(&found.kind),
                    None => self.object(
                        channel.at,
                        Rule::Unknown {
                            what: "channel to import",
                            name: channel.name.clone(),
                        },
                    ),
                }
            }
        }
    }
}
