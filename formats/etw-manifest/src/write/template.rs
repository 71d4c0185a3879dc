//! Writes templates and their `UserData`.

use quick_xml::{
    escape::escape,
    events::{BytesText, Event as XmlEvent},
};

use super::xml::{Attributes, Writer, element_attributes, written};
use crate::{
    model::{Element, Node, Property, PropertyKind, Provider, Size, Template},
    types::in_type_name,
};

impl Writer<'_> {
    pub fn template(&mut self, template: &Template, provider: &Provider) {
        let attributes = Attributes::new()
            .with("tid", &template.id)
            .with_optional("name", template.name.as_deref())
            .with_others(&template.others);
        if template.properties.is_empty() && template.user_data.is_none() {
            self.empty("template", attributes);
            return;
        }
        self.open("template", attributes);
        self.properties(&template.properties, &[], provider);
        if let Some(own) = &template.user_data {
            self.open("UserData", Attributes::new());
            self.user_data(own);
            self.close("UserData");
        }
        self.close("template");
    }

    fn properties(&mut self, properties: &[Property], outer: &[Property], provider: &Provider) {
        let size = |size: Size| match size {
            Size::None => None,
            Size::Fixed(number) => Some(number.to_string()),
            Size::Field(field) => Some(properties[field].name.clone()),
            Size::Outer(field) => outer.get(field).map(|field| field.name.clone()),
        };
        for property in properties {
            let attributes =
                Attributes::new().with("name", &property.name).with_others(&property.others);
            match &property.kind {
                PropertyKind::Data { in_type, out_type, explicit_out_type, map } => {
                    let shown = explicit_out_type.then(|| out_type.name());
                    let attributes = attributes
                        .with("inType", in_type_name(*in_type))
                        .with_optional("outType", shown)
                        .with_optional("map", map.map(|at| provider.maps[at].name.as_str()))
                        .with_optional("count", size(property.count))
                        .with_optional("length", size(property.length));
                    self.empty("data", attributes);
                }
                PropertyKind::Unknown { in_type, .. } => {
                    // The type has no name, and readers reject its number.
                    self.empty("data", attributes.with("inType", in_type.to_string()));
                }
                PropertyKind::Struct(members) => {
                    let attributes = attributes.with_optional("count", size(property.count));
                    self.open("struct", attributes);
                    self.properties(members, properties, provider);
                    self.close("struct");
                }
            }
        }
    }

    /// Writes the root of a template's `UserData`, one element per line. The end tag is on its own
    /// line only if the manifest has it there, because the template's GUID depends on this.
    fn user_data(&mut self, root: &Element) {
        if root.nodes.is_empty() {
            self.empty(&root.name, element_attributes(root));
            return;
        }
        self.open(&root.name, element_attributes(root));
        for node in &root.nodes {
            match node {
                Node::Element(inner) => {
                    written(&self.xml.write_indent());
                    self.element(inner);
                }
                Node::Text(text) if text.trim().is_empty() => {}
                Node::Text(text) => self.element_text(text),
            }
        }
        if matches!(root.nodes.last(), Some(Node::Text(text)) if text.trim().is_empty()) {
            self.start_line();
        } else {
            self.stay_on_line();
        }
        self.close(&root.name);
    }

    /// Writes an element of `UserData` with its content unchanged.
    fn element(&mut self, element: &Element) {
        self.stay_on_line();
        if element.nodes.is_empty() {
            self.empty(&element.name, element_attributes(element));
            return;
        }
        self.open(&element.name, element_attributes(element));
        for node in &element.nodes {
            match node {
                Node::Element(inner) => self.element(inner),
                Node::Text(text) => self.element_text(text),
            }
        }
        self.stay_on_line();
        self.close(&element.name);
    }

    fn element_text(&mut self, text: &str) {
        // A parser converts a carriage return to a line feed.
        let text = escape(text).replace('\r', "&#13;");
        self.event(XmlEvent::Text(BytesText::from_escaped(text)));
    }
}
