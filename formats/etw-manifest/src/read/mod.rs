//! Reads the XML of a manifest.
//!
//! Compilers and decoders share one reader. For compilers it is strict: every violation of a rule
//! is an error. For decoders it is lenient: it skips and reports the parts that it cannot use.

mod document;
mod event;
mod find;
mod lines;
mod provider;
mod reader;
mod repair;
mod root;
mod template;
mod xml;

use roxmltree::{Document, ParsingOptions};

use crate::{
    check::check,
    error::{Failures, ManifestError, Rule},
    lenient::{Lenient, Part, Skipped},
    model::{Manifest, Position},
};

pub use crate::shape::Mode;
use find::{Globals, Names};
use lines::Lines;
use reader::Reader;
use repair::repair;

/// Reads a manifest for a compiler, and checks its XML (eventman.xsd) and the rules of [`check()`].
///
/// # Errors
///
/// Fails with all mistakes and their locations.
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
/// Skips and reports each definition that cannot be used, including the second of two with the same
/// name or number. Ignores rules that matter only to compilers (symbols, files, reserved numbers).
/// Takes characters that are not well-formed XML literally, such as quotation marks in an
/// attribute, and drops malformed comments.
///
/// # Errors
///
/// Fails if the text cannot be read as XML or is not a manifest.
pub fn read_lenient(text: &str) -> Result<Lenient, ManifestError> {
    let (mut literal, mut comments) = (Vec::new(), Vec::new());
    let read = parse(text, Mode::Lenient).or_else(|failures| {
        // Report the error in the original text.
        let repaired = repair(text);
        let again = parse(&repaired.text, Mode::Lenient).map_err(|_| failures)?;
        literal = repaired.places;
        comments = repaired.comments;
        Ok(again)
    });
    let (manifest, mut skipped, errors) = match read {
        Ok(read) => read,
        Err(Failures(errors)) => (Manifest::default(), Vec::new(), errors),
    };
    skipped.extend(literal.into_iter().map(|(line, name)| Skipped {
        part: Part::Character,
        why: ManifestError {
            at: Position { line, column: 1 },
            rule: Rule::Unescaped(name.clone()),
        },
        name,
    }));
    skipped.extend(manifest.left_out.iter().map(|why| {
        let name = match &why.rule {
            Rule::LeftOut { inner, .. } => inner.to_string(),
            _ => String::new(),
        };
        Skipped { part: Part::Element, name, why: why.clone() }
    }));
    let lines = Lines::new(text);
    skipped.extend(comments.into_iter().map(|at| Skipped {
        part: Part::Comment,
        name: String::new(),
        why: ManifestError { at: lines.position(text, at), rule: Rule::Comment },
    }));
    // Errors within a part are reasons to skip the part; these errors concern the whole document.
    if let Some(error) = errors.into_iter().next() {
        return Err(error);
    }
    skipped.sort_by_key(|one| one.why.at);
    Ok(Lenient { manifest, skipped })
}

/// Reads the usable parts of a manifest, and returns them with the skipped parts and errors. Fails
/// if the XML is not well-formed.
fn parse(text: &str, mode: Mode) -> Result<(Manifest, Vec<Skipped>, Vec<ManifestError>), Failures> {
    let options = ParsingOptions {
        // A document type definition could only define entities, which manifests do not use.
        allow_dtd: false,
        ..ParsingOptions::default()
    };
    let document = Document::parse_with_options(text, options).map_err(|error| {
        // The parser reports the start of the comment.
        if let roxmltree::Error::InvalidComment(_) = error
            && let Some(at) = repair(text).comments.first()
        {
            let at = Lines::new(text).position(text, *at);
            return Failures(vec![ManifestError { at, rule: Rule::Comment }]);
        }
        let at = error.pos();
        let what = error.to_string();
        // The error already contains the position.
        let what = what.strip_suffix(&format!(" at {at}")).unwrap_or(&what);
        Failures(vec![ManifestError {
            at: Position { line: at.row as usize, column: at.col as usize },
            rule: Rule::Xml(what.to_owned()),
        }])
    })?;
    let mut reader = Reader {
        mode,
        document: &document,
        lines: Lines::new(text),
        manifest: Manifest::default(),
        errors: Vec::new(),
        skipped: Vec::new(),
        globals: Globals::default(),
        names: Names::default(),
    };
    reader.document();
    Ok((reader.manifest, reader.skipped, reader.errors))
}
