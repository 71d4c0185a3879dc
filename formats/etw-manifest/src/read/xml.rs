//! Reads the elements and attributes of a manifest's XML.

use std::ops::RangeInclusive;

use etw_wire::{Guid, winmeta};
use roxmltree::Node as Xml;

use super::reader::Reader;
use crate::shape::Mode;
use crate::{
    error::Rule,
    model::{Others, Position, QName, Text, TextRef},
    text::number,
};

pub fn name<'a>(node: Xml<'a, '_>) -> &'a str {
    node.tag_name().name()
}

/// Returns an element's children in the same namespace; manifests ignore other children. For
/// decoders, the element or the child may also have no namespace, or the child may have the
/// manifests' namespace.
pub fn elements<'a, 'i>(
    mode: Mode,
    node: Xml<'a, 'i>,
) -> impl Iterator<Item = Xml<'a, 'i>> + use<'a, 'i> {
    const EVENTS: &str = "http://schemas.microsoft.com/win/2004/08/events";
    let own = node.tag_name().namespace();
    node.children().filter(move |inner| {
        let namespace = inner.tag_name().namespace();
        let is_near = own.is_none() || namespace.is_none_or(|namespace| namespace == EVENTS);
        inner.is_element() && (namespace == own || mode == Mode::Lenient && is_near)
    })
}

/// Returns an element's children with this name; for decoders, in any namespace.
pub fn named<'a, 'i>(
    mode: Mode,
    node: Xml<'a, 'i>,
    wanted: &'static str,
) -> impl Iterator<Item = Xml<'a, 'i>> + use<'a, 'i> {
    let own = node.tag_name().namespace();
    node.children().filter(move |inner| {
        let is_own = mode == Mode::Lenient || inner.tag_name().namespace() == own;
        inner.is_element() && is_own && name(*inner) == wanted
    })
}

/// Returns an optional attribute.
pub fn optional(node: Xml<'_, '_>, attribute: &str) -> Option<String> {
    node.attribute(attribute).map(str::to_owned)
}

/// Returns the attributes to keep unchanged.
pub fn others(node: Xml<'_, '_>, names: &[&str]) -> Others {
    let there = node.attributes().filter(|attribute| names.contains(&attribute.name()));
    there.map(|attribute| (attribute.name().to_owned(), attribute.value().to_owned())).collect()
}

impl<'a, 'i> Reader<'a, 'i> {
    /// Returns the location of an attribute's value or, if the attribute is missing, of the
    /// element.
    pub fn attribute_position(&self, node: Xml<'a, 'i>, attribute: &str) -> Position {
        node.attribute_node(attribute).map_or_else(
            || self.position(node),
            |attribute| self.position_of(attribute.range_value().start),
        )
    }

    pub fn refuse_at(&mut self, node: Xml<'a, 'i>, attribute: &'static str, rule: Rule) {
        let at = self.attribute_position(node, attribute);
        self.refuse(at, rule);
    }

    pub fn required(&mut self, node: Xml<'a, 'i>, attribute: &'static str) -> String {
        let text = node.attribute(attribute);
        if text.is_none() {
            let rule = Rule::Missing { element: name(node).to_owned(), attribute };
            let at = self.position(node);
            self.refuse(at, rule);
        }
        text.unwrap_or_default().to_owned()
    }

    /// Reads an attribute that compilers require.
    pub fn expected(&mut self, node: Xml<'a, 'i>, attribute: &'static str) -> String {
        if self.mode == Mode::Strict {
            if node.attribute(attribute) == Some("") {
                let element = name(node).to_owned();
                self.refuse_at(node, attribute, Rule::Empty { element, attribute });
            }
            return self.required(node, attribute);
        }
        optional(node, attribute).unwrap_or_default()
    }

    /// Reads a number, if the attribute exists. A number that fits its type but is out of range is
    /// an error only for compilers.
    pub fn optional_number<T: TryFrom<u64>>(
        &mut self,
        node: Xml<'a, 'i>,
        attribute: &'static str,
        range: RangeInclusive<u64>,
    ) -> Option<T> {
        let text = node.attribute(attribute)?;
        let number = number(text);
        let found = number.and_then(|number| T::try_from(number).ok());
        if found.is_none() || number.is_none_or(|number| !range.contains(&number)) {
            let rule = Rule::Number {
                attribute,
                text: text.to_owned(),
                least: *range.start(),
                most: *range.end(),
            };
            let at = self.attribute_position(node, attribute);
            match found {
                None => self.refuse(at, rule),
                Some(_) => self.object(at, rule),
            }
        }
        found
    }

    pub fn number<T: TryFrom<u64> + Default>(
        &mut self,
        node: Xml<'a, 'i>,
        attribute: &'static str,
        range: RangeInclusive<u64>,
    ) -> T {
        if node.attribute(attribute).is_none() {
            self.required(node, attribute);
        }
        let found = self.optional_number(node, attribute, range);
        found.unwrap_or_default()
    }

    pub fn optional_flag(&mut self, node: Xml<'a, 'i>, attribute: &'static str) -> Option<bool> {
        let text = node.attribute(attribute)?;
        self.flag(text, attribute, self.attribute_position(node, attribute))
    }

    /// Reads `true` or `false` from the text inside an element.
    pub fn flag_inside(&mut self, node: Xml<'a, 'i>, element: &'static str) -> Option<bool> {
        self.flag(node.text().unwrap_or_default().trim(), element, self.position(node))
    }

    fn flag(&mut self, text: &str, what: &'static str, at: Position) -> Option<bool> {
        match text {
            "true" | "1" => Some(true),
            "false" | "0" => Some(false),
            _ => {
                let text = text.to_owned();
                self.object(at, Rule::Word { attribute: what, text, words: "true, false" });
                None
            }
        }
    }

    /// Reads a number from the text inside an element.
    pub fn number_inside(&mut self, node: Xml<'a, 'i>, element: &'static str) -> Option<u64> {
        let text = node.text().unwrap_or_default().trim();
        let found = number(text);
        if found.is_none() {
            let text = text.to_owned();
            let rule = Rule::Number { attribute: element, text, least: 0, most: u64::MAX };
            self.object(self.position(node), rule);
        }
        found
    }

    pub fn word(
        &mut self,
        node: Xml<'a, 'i>,
        attribute: &'static str,
        words: &'static [&'static str],
        list: &'static str,
    ) -> Option<String> {
        let text = node.attribute(attribute)?;
        if !words.contains(&text) {
            let rule = Rule::Word { attribute, text: text.to_owned(), words: list };
            let at = self.attribute_position(node, attribute);
            self.object(at, rule);
        }
        Some(text.to_owned())
    }

    /// Reads a GUID, if the attribute exists; decoders ignore malformed GUIDs.
    pub fn optional_guid(&mut self, node: Xml<'a, 'i>, attribute: &'static str) -> Option<Guid> {
        let text = node.attribute(attribute)?;
        text.trim().parse().map_or_else(
            |_| {
                let text = text.to_owned();
                let at = self.attribute_position(node, attribute);
                self.lose(at, &text.clone(), Rule::Guid { attribute, text });
                None
            },
            Some,
        )
    }

    pub fn guid(&mut self, node: Xml<'a, 'i>, attribute: &'static str) -> Guid {
        let text = self.required(node, attribute);
        if node.attribute(attribute).is_none() {
            return Guid::default();
        }
        text.trim().parse().unwrap_or_else(|_| {
            self.refuse_at(node, attribute, Rule::Guid { attribute, text });
            Guid::default()
        })
    }

    /// Reads a qualified name; its prefix must be bound to a namespace.
    pub fn resolve(&mut self, node: Xml<'a, 'i>, attribute: &'static str, written: &str) -> QName {
        let Some((prefix, _)) = written.split_once(':') else {
            return QName::plain(written);
        };
        let namespace = node.lookup_namespace_uri(Some(prefix));
        if namespace.is_none() {
            let at = self.attribute_position(node, attribute);
            self.object(at, Rule::Prefix(written.to_owned()));
        }
        let usual = if prefix == "win" { winmeta::NAMESPACE } else { "" };
        QName { written: written.to_owned(), namespace: namespace.unwrap_or(usual).to_owned() }
    }

    pub fn qualified(&mut self, node: Xml<'a, 'i>) -> QName {
        let written = self.required(node, "name");
        self.resolve(node, "name", &written)
    }

    /// Resolves an attribute's reference to a string (`strTableRef` in eventman.xsd):
    /// `$(string.ID)` refers to the manifest's strings. `$(mc.SYMBOL)` refers to a message file,
    /// which mc.exe reads in addition to the manifest.
    pub fn message(&mut self, node: Xml<'a, 'i>) -> Option<TextRef> {
        let reference = node.attribute("message")?;
        let inner = reference.strip_prefix("$(").and_then(|rest| rest.strip_suffix(')'));
        let (rule, name) = match inner.and_then(|inner| inner.split_once('.')) {
            Some(("string" | "String", id)) => {
                let keys = |text: &Text| (!text.standard).then(|| text.id.clone());
                let texts = &mut self.globals.texts;
                let known = texts.find(&self.manifest.texts, keys, &id.to_owned());
                if known.is_some() {
                    return known;
                }
                let name = id.to_owned();
                (Rule::Unknown { what: "text", name }, id)
            }
            Some(("mc" | "Mc" | "mC" | "MC", symbol)) => {
                (Rule::MessageFile(symbol.to_owned()), symbol)
            }
            _ => (Rule::TextReference(reference.to_owned()), reference),
        };
        let at = self.attribute_position(node, "message");
        self.lose(at, name, rule);
        None
    }
}
