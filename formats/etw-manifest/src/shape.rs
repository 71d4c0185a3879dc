//! The syntax of a manifest: the elements and attributes of eventman.xsd.
//!
//! Elements and attributes in other namespaces are allowed anywhere and ignored.

use std::{iter::Peekable, str::Lines, sync::LazyLock};

use roxmltree::Node as Xml;

use crate::error::Rule;

/// The user of a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// A compiler.
    Strict,
    /// A decoder.
    Lenient,
}

/// The syntax of an attribute's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A value that is checked elsewhere.
    Any,
    /// A C identifier, or an empty value.
    Symbol,
    /// A GUID in the form `{8-4-4-4-12}`.
    Guid,
    /// Digits after `0x`.
    Hexadecimal,
    /// C identifiers, separated by dots.
    Namespace,
}

use Kind::{Any, Guid, Hexadecimal, Namespace, Symbol};

/// An element: its name, its attributes, and the shapes of its children.
struct Shape {
    name: &'static str,
    attributes: Vec<(&'static str, Kind)>,
    /// `None` for an element with any content.
    inner: Option<Vec<Self>>,
}

/// The elements of a manifest. In the file, each line has an element's name and its attributes; a
/// colon precedes the syntax of an attribute's value. An element's children follow it, indented by
/// two more spaces; `*` stands for any content.
///
/// The attributes of `traits` come from SDKs that are newer than the schema, and only winmeta.xml
/// itself defines types, in `metadata`.
static SHAPES: LazyLock<Vec<Shape>> =
    LazyLock::new(|| shapes(&mut include_str!("shape.txt").lines().peekable(), 0));

/// Reads the next lines that are indented by this number of spaces, each with its children.
fn shapes(lines: &mut Peekable<Lines<'static>>, indent: usize) -> Vec<Shape> {
    let is_indented = |line: &&str| line.len() - line.trim_start().len() == indent;
    let mut shapes = Vec::new();
    while let Some(line) = lines.next_if(is_indented) {
        let mut words = line.split_whitespace();
        let name = words.next().unwrap_or_default();
        let attributes = words.clone().filter(|word| *word != "*").map(|word| {
            let (name, kind) = word.split_once(':').unwrap_or((word, ""));
            let kind = match kind {
                "symbol" => Symbol,
                "guid" => Guid,
                "hexadecimal" => Hexadecimal,
                "namespace" => Namespace,
                _ => Any,
            };
            (name, kind)
        });
        let attributes = attributes.collect();
        let inner = words.all(|word| word != "*").then(|| self::shapes(lines, indent + 2));
        shapes.push(Shape { name, attributes, inner });
    }
    shapes
}

/// Returns the first element with this name.
fn find(shapes: &'static [Shape], name: &str) -> Option<&'static Shape> {
    shapes.iter().find_map(|shape| {
        let inner = || find(shape.inner.as_deref()?, name);
        if shape.name == name { Some(shape) } else { inner() }
    })
}

/// A syntax mistake: at an element, or at one of its attributes.
pub type Diagnostic<'a, 'i> = (Xml<'a, 'i>, Option<String>, Rule);

/// The namespaces whose attributes are irrelevant to events: XML and its schemas.
const OF_XML: [&str; 2] =
    ["http://www.w3.org/2001/XMLSchema-instance", "http://www.w3.org/XML/1998/namespace"];

/// Returns all syntax mistakes in an `instrumentationManifest`, or in an assembly's `events` or
/// `localization` element, and the ignored elements and attributes.
pub fn check<'a, 'i>(mode: Mode, node: Xml<'a, 'i>) -> Vec<Diagnostic<'a, 'i>> {
    let mut diagnostics = Vec::new();
    if let Some(shape) = find(&SHAPES, node.tag_name().name()) {
        element(mode, node, shape, &mut diagnostics);
    }
    diagnostics
}

fn element<'a, 'i>(
    mode: Mode,
    node: Xml<'a, 'i>,
    shape: &'static Shape,
    diagnostics: &mut Vec<Diagnostic<'a, 'i>>,
) {
    for attribute in node.attributes() {
        let name = attribute.name();
        if let Some(namespace) = attribute.namespace() {
            if !OF_XML.contains(&namespace) {
                diagnostics.push((
                    node,
                    None,
                    left_out(shape.name, "attribute", name, Some(namespace)),
                ));
            }
            continue;
        }
        let value = attribute.value();
        let known = shape.attributes.iter().find(|known| known.0 == name);
        let rule = match known {
            None => Some(Rule::Attribute { element: shape.name, attribute: name.to_owned() }),
            Some((attribute, kind)) => wrong(*kind, attribute, value),
        };
        if let Some(rule) = rule {
            diagnostics.push((node, Some(name.to_owned()), rule));
        }
    }
    let Some(shapes) = &shape.inner else {
        return;
    };
    let own = node.tag_name().namespace();
    for inner in node.children().filter(Xml::is_element) {
        let name = inner.tag_name().name();
        let namespace = inner.tag_name().namespace().filter(|namespace| Some(*namespace) != own);
        let is_foreign = inner.tag_name().namespace() != own;
        // Decoders find elements by name in any namespace.
        let is_read = !is_foreign || mode == Mode::Lenient;
        match shapes.iter().find(|known| known.name == name).filter(|_| is_read) {
            Some(known) => element(mode, inner, known, diagnostics),
            // Decoders do not read the siblings of `events`.
            None if is_foreign || mode == Mode::Lenient && shape.name == "instrumentation" => {
                diagnostics.push((inner, None, left_out(shape.name, "element", name, namespace)));
            }
            None => diagnostics.push((
                inner,
                None,
                Rule::Element { inner: name.to_owned(), outer: shape.name.to_owned() },
            )),
        }
    }
}

/// Returns the diagnostic for an ignored element or attribute.
pub fn left_out(
    outer: &'static str,
    what: &'static str,
    inner: &str,
    namespace: Option<&str>,
) -> Rule {
    Rule::LeftOut {
        what,
        inner: inner.into(),
        outer,
        namespace: namespace.unwrap_or_default().into(),
        count: 1,
    }
}

/// Returns whether a string has the form of a GUID without braces.
const BARE_GUID: usize = 36;

/// Returns the rule that an attribute's characters violate.
fn wrong(kind: Kind, attribute: &'static str, value: &str) -> Option<Rule> {
    let text = || value.to_owned();
    let is_name = |text: &str| {
        let mut characters = text.chars();
        let is_start = |first: char| first == '_' || first.is_ascii_alphabetic();
        characters.next().is_some_and(is_start)
            && characters.all(|one| one == '_' || one.is_ascii_alphanumeric())
    };
    match kind {
        Any => None,
        Symbol if value.is_empty() || is_name(value) => None,
        Namespace if value.split('.').all(is_name) => None,
        Symbol | Namespace => Some(Rule::Symbol(text())),
        // Values that are not even similar to a GUID or number are reported where they are read.
        Guid if value.starts_with('{') || value.len() != BARE_GUID => None,
        Guid => Some(Rule::Guid { attribute, text: text() }),
        Hexadecimal if value.parse::<u64>().is_err() => None,
        Hexadecimal => Some(Rule::Hexadecimal { attribute, text: text() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(shapes: &[Shape]) -> usize {
        shapes.iter().map(|shape| 1 + shape.inner.as_deref().map_or(0, count)).sum()
    }

    #[test]
    fn every_line_is_an_element_and_every_syntax_is_known() {
        let text = include_str!("shape.txt");
        assert_eq!(count(&SHAPES), text.lines().count());
        let kinds = text.split_whitespace().filter_map(|word| word.split_once(':'));
        for (name, kind) in kinds {
            assert!(
                ["symbol", "guid", "hexadecimal", "namespace"].contains(&kind),
                "{name}:{kind}"
            );
        }
    }
}
