//! Reads templates: the fields of events, and the XML that event logs show.

use std::{borrow::Cow, collections::HashMap};

use etw_wire::{InType, OutType, winmeta};
use roxmltree::Node as Xml;

use super::{
    reader::Reader,
    xml::{elements, name, named, optional, others},
};
use crate::shape::Mode;
use crate::{
    check::layout,
    error::Rule,
    model::{Element, Map, Node, Property, PropertyKind, Provider, Size, Template},
    types::default_out_type,
};

impl<'a, 'i> Reader<'a, 'i> {
    pub fn template(&mut self, node: Xml<'a, 'i>, provider: &Provider) -> Template {
        let mode = self.mode;
        let mut template = Template {
            id: self.required(node, "tid"),
            name: optional(node, "name"),
            others: others(node, &["tags"]),
            at: self.position(node),
            ..Template::default()
        };
        template.properties = self.properties(node, provider, None);
        for data in named(mode, node, "UserData") {
            let roots: Vec<Xml<'a, 'i>> = data.children().filter(Xml::is_element).collect();
            let root = roots.first().filter(|_| roots.len() == 1);
            if let Some(own) = root.and_then(|root| user_data(*root)) {
                template.user_data = Some(own);
            } else {
                let at = self.position(data);
                self.object(at, Rule::UserData);
            }
        }
        let keys = |one: &Template| [one.id.clone()];
        let names = &mut self.names.templates;
        let known = names.find(&provider.templates, keys, &template.id);
        self.refuse_second(node, "template", &template.id, known.is_some());
        // For compilers, the checker reports this.
        if self.mode == Mode::Lenient {
            self.errors.extend(layout(&template.properties));
        }
        template
    }

    /// Reads the fields of a template, or the members of a structure; `outer` holds the template's
    /// fields before the structure.
    fn properties(
        &mut self,
        node: Xml<'a, 'i>,
        provider: &Provider,
        outer: Option<(&Fields<'a>, usize)>,
    ) -> Vec<Property> {
        let mode = self.mode;
        let mut properties: Vec<Property> = Vec::new();
        // A count or length must not refer to a later field; this is reported when all fields are
        // known.
        let fields = elements(mode, node)
            .filter(|inner| matches!(name(*inner), "data" | "struct"))
            .map(|inner| inner.attribute("name").unwrap_or_default());
        let fields = Fields::new(fields);
        for inner in elements(mode, node) {
            let at = properties.len();
            let scope = Scope { fields: &fields, at, outer };
            let kind = match (name(inner), outer) {
                ("data", _) => self.data(inner, provider),
                ("struct", None) => {
                    PropertyKind::Struct(self.properties(inner, provider, Some((&fields, at))))
                }
                ("UserData", None) => continue,
                (other, _) => {
                    // For compilers, the syntax has already been checked.
                    if self.mode == Mode::Lenient {
                        let at = self.position(inner);
                        self.refuse(
                            at,
                            Rule::Element { inner: other.to_owned(), outer: name(node).to_owned() },
                        );
                    }
                    continue;
                }
            };
            let property = Property {
                name: self.required(inner, "name"),
                count: self.size(inner, "count", scope),
                length: self.size(inner, "length", scope),
                kind,
                others: others(inner, &["tags"]),
                at: self.position(inner),
            };
            properties.push(property);
        }
        properties
    }

    fn size(&mut self, node: Xml<'a, 'i>, attribute: &'static str, scope: Scope<'_, '_>) -> Size {
        let Some(text) = node.attribute(attribute) else {
            return Size::None;
        };
        if let Some(found) = scope.find(text) {
            return found;
        }
        if self.mode == Mode::Lenient {
            // Tools that export manifests remove spaces from names, but not everywhere.
            let joined: String = text.split_whitespace().collect();
            if let Some(found) = scope.find(&joined) {
                return found;
            }
        }
        let starts_with_digit = text.trim().starts_with(|first: char| first.is_ascii_digit());
        if !starts_with_digit {
            self.refuse_at(node, attribute, Rule::SizeField(text.to_owned()));
            return Size::None;
        }
        match self.optional_number(node, attribute, 0..=65535) {
            None | Some(0) => Size::None,
            Some(number) => Size::Fixed(number),
        }
    }

    /// Finds a type regardless of its prefix, for decoders.
    fn local_type<T>(&self, written: &str, find: impl Fn(&str) -> Option<T>) -> Option<T> {
        if self.mode == Mode::Strict {
            return None;
        }
        let local = written.split_once(':').map_or(written, |(_, local)| local);
        find(&format!("win:{local}")).or_else(|| find(&format!("xs:{local}")))
    }

    fn data(&mut self, node: Xml<'a, 'i>, provider: &Provider) -> PropertyKind {
        let written = self.required(node, "inType");
        let in_type = InType::from_name(&type_name(node, &written))
            .or_else(|| self.local_type(&written, InType::from_name));
        if in_type.is_none() && !written.is_empty() {
            let rule = Rule::Unknown { what: "inType", name: written };
            self.refuse_at(node, "inType", rule);
        }
        let in_type = in_type.unwrap_or(InType::UnicodeString);
        let mut out_type = default_out_type(in_type);
        let shown = node.attribute("outType");
        if let Some(text) = shown {
            let value = OutType::from_name(&type_name(node, text))
                .or_else(|| self.local_type(text, OutType::from_name));
            if let Some(value) = value {
                out_type = value;
            } else {
                let rule = Rule::Unknown { what: "outType", name: text.to_owned() };
                let at = self.attribute_position(node, "outType");
                self.lose(at, text, rule);
            }
        }
        let map = node.attribute("map").and_then(|wanted| {
            let keys = |map: &Map| [map.name.clone()];
            let names = &mut self.names.maps;
            let found = names.find(&provider.maps, keys, &wanted.to_owned());
            if found.is_none() {
                let rule = Rule::Unknown { what: "map", name: wanted.to_owned() };
                let at = self.attribute_position(node, "map");
                self.lose(at, wanted, rule);
            }
            found
        });
        PropertyKind::Data { in_type, out_type, explicit_out_type: shown.is_some(), map }
    }
}

/// The positions of a list's fields by name, in ascending order.
struct Fields<'a>(HashMap<&'a str, Vec<usize>>);

impl<'a> Fields<'a> {
    fn new(names: impl Iterator<Item = &'a str>) -> Self {
        let mut places: HashMap<&str, Vec<usize>> = HashMap::new();
        for (at, name) in names.enumerate() {
            places.entry(name).or_default().push(at);
        }
        Self(places)
    }

    /// Returns the last field with this name before position `end`, and the first at or after it.
    fn around(&self, name: &str, end: usize) -> (Option<usize>, Option<usize>) {
        let places = self.0.get(name).map(Vec::as_slice).unwrap_or_default();
        let (before, behind) = places.split_at(places.partition_point(|at| *at < end));
        (before.last().copied(), behind.first().copied())
    }
}

/// The fields to which a size can refer.
#[derive(Clone, Copy)]
struct Scope<'a, 'b> {
    /// The fields in the same list as the size.
    fields: &'b Fields<'a>,
    /// The position of the field that has the size.
    at: usize,
    /// For a size in a structure: the template's fields and the structure's position.
    outer: Option<(&'b Fields<'a>, usize)>,
}

impl Scope<'_, '_> {
    /// Finds the nearest earlier field; otherwise, a later field, which the size must not refer to.
    fn find(self, name: &str) -> Option<Size> {
        let (before, behind) = self.fields.around(name, self.at);
        let outer = || {
            let (fields, end) = self.outer?;
            fields.around(name, end).0
        };
        before
            .map(Size::Field)
            .or_else(|| outer().map(Size::Outer))
            .or_else(|| behind.map(Size::Field))
    }
}

/// Returns a type's name with the usual prefix of its namespace.
fn type_name<'a>(node: Xml<'_, '_>, written: &'a str) -> Cow<'a, str> {
    const XML_SCHEMA: &str = "http://www.w3.org/2001/XMLSchema";
    let Some((prefix, local)) = written.split_once(':') else {
        return written.into();
    };
    match node.lookup_namespace_uri(Some(prefix)) {
        Some(winmeta::NAMESPACE) if prefix != "win" => format!("win:{local}").into(),
        Some(XML_SCHEMA) if prefix != "xs" => format!("xs:{local}").into(),
        _ => written.into(),
    }
}

/// The maximum nesting of elements in a template's `UserData`.
const MAX_DEPTH: usize = 32;

/// Reads the root of a template's `UserData`, unless it is nested too deeply. mc.exe inserts white
/// space between the elements, which affects the template's GUID.
fn user_data(node: Xml<'_, '_>) -> Option<Element> {
    let mut root = element(node, MAX_DEPTH)?;
    let mut nodes = Vec::new();
    for inner in root.nodes {
        match inner {
            Node::Text(text) if text.trim().is_empty() => {}
            Node::Text(text) => nodes.push(Node::Text(text)),
            inner @ Node::Element(_) => {
                nodes.push(Node::Text("\r\n\t\t".to_owned()));
                nodes.push(inner);
            }
        }
    }
    let ends_blank = node
        .last_child()
        .and_then(|last| last.text().filter(|_| last.is_text()))
        .is_some_and(|text| text.trim().is_empty());
    if ends_blank {
        nodes.push(Node::Text("\r\n\t".to_owned()));
    }
    root.nodes = nodes;
    Some(root)
}

/// Reads an element of a template's `UserData`, unless it is nested too deeply.
fn element(node: Xml<'_, '_>, depth: usize) -> Option<Element> {
    let deeper = depth.checked_sub(1)?;
    let inherited: Vec<_> =
        node.parent().map(|parent| parent.namespaces().collect()).unwrap_or_default();
    let declared =
        node.namespaces().filter(|namespace| !inherited.contains(namespace)).map(|namespace| {
            let name = namespace
                .name()
                .map_or_else(|| "xmlns".to_owned(), |prefix| format!("xmlns:{prefix}"));
            (name, namespace.uri().to_owned())
        });
    let attributes = node
        .attributes()
        .map(|attribute| (attribute.name().to_owned(), attribute.value().to_owned()));
    let attributes = declared.chain(attributes).collect();
    let mut nodes = Vec::new();
    for inner in node.children() {
        if inner.is_element() {
            nodes.push(Node::Element(element(inner, deeper)?));
        } else if inner.is_text() {
            nodes.extend(inner.text().map(|text| Node::Text(text.to_owned())));
        }
    }
    Some(Element { name: name(node).to_owned(), attributes, nodes })
}
