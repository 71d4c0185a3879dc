//! Checks templates.

use etw_wire::{InType, OutType};

use super::diagnostics::Check;
use crate::{
    error::{ManifestError, Rule},
    model::{Element, Node, Property, PropertyKind, Size, Template},
    resources::field_of,
    types::in_type_name,
};

/// The maximum number of fields that messages can name, `%1` to `%99`.
const MAX_FIELDS: usize = 99;

impl<'a> Check<'a> {
    pub fn template(&mut self, template: &'a Template) {
        if template.properties.len() > MAX_FIELDS {
            self.refuse(template.at, Rule::TooManyFields(template.id.clone()));
        }
        self.properties(&template.properties, &[]);
        self.errors.extend(layout(&template.properties));
        if let Some(own) = &template.user_data {
            self.user_data(own, template);
        }
    }

    fn user_data(&mut self, element: &Element, template: &Template) {
        for node in &element.nodes {
            match node {
                Node::Element(inner) => self.user_data(inner, template),
                Node::Text(text) if text.contains('%') => {
                    let field = field_of(text).map(usize::from);
                    if field.is_none_or(|field| field >= template.properties.len()) {
                        let text = text.trim().to_owned();
                        self.refuse(template.at, Rule::UserDataField(text));
                    }
                }
                Node::Text(_) => {}
            }
        }
    }

    fn properties(&mut self, properties: &'a [Property], outer: &[Property]) {
        self.unique("field", properties, |one| Some((&one.name, one.name.clone())));
        for property in properties {
            for size in [property.count, property.length] {
                // No known compiler accepts this reference.
                if matches!(size, Size::Outer(_)) {
                    let name = size_field(size, properties, outer);
                    self.refuse(property.at, Rule::SizeField(name));
                }
            }
            match &property.kind {
                PropertyKind::Struct(members) => self.properties(members, properties),
                PropertyKind::Unknown { in_type, .. } => {
                    let (what, name) = ("inType", in_type.to_string());
                    self.refuse(property.at, Rule::Unknown { what, name });
                }
                PropertyKind::Data { in_type, out_type, map, .. } => {
                    let possible = in_type.out_types();
                    if !possible.contains(out_type) {
                        let possible: Vec<&str> = possible.iter().map(|one| one.name()).collect();
                        self.refuse(
                            property.at,
                            Rule::OutType {
                                in_type: in_type_name(*in_type),
                                out_type: out_type.name().to_owned(),
                                possible: possible.join(", "),
                            },
                        );
                    }
                    if map.is_some() && !in_type.is_integer() {
                        self.refuse(property.at, Rule::MapType(in_type_name(*in_type)));
                    }
                }
            }
        }
    }
}

/// Checks that counts and lengths determine the end of each field; otherwise events cannot be
/// decoded.
pub fn layout(properties: &[Property]) -> Vec<ManifestError> {
    let mut errors = Vec::new();
    lay_out(properties, &[], &mut errors);
    errors
}

fn lay_out(properties: &[Property], outer: &[Property], errors: &mut Vec<ManifestError>) {
    for (number, property) in properties.iter().enumerate() {
        let at = property.at;
        for size in [property.count, property.length] {
            let field = match size {
                Size::None | Size::Fixed(_) => continue,
                Size::Field(field) => properties.get(..number).and_then(|all| all.get(field)),
                Size::Outer(field) => outer.get(field),
            };
            let is_integer = match field.map(|field| &field.kind) {
                Some(PropertyKind::Data { in_type, .. }) => in_type.is_integer(),
                Some(PropertyKind::Struct(_) | PropertyKind::Unknown { .. }) | None => false,
            };
            if !is_integer {
                let name = size_field(size, properties, outer);
                let rule = Rule::SizeField(name);
                errors.push(ManifestError { at, rule });
            }
        }
        match &property.kind {
            PropertyKind::Struct(members) => {
                let before = properties.get(..number).unwrap_or_default();
                lay_out(members, before, errors);
            }
            PropertyKind::Unknown { .. } => {}
            PropertyKind::Data { in_type, out_type, .. } => {
                let has_length = property.length != Size::None;
                // An IPv6 address is always 16 bytes long.
                let is_fixed_address = *out_type == OutType::Ipv6;
                if *in_type == InType::Binary && !has_length && !is_fixed_address {
                    errors.push(ManifestError { at, rule: Rule::LengthMissing });
                }
                let is_counted = matches!(
                    in_type,
                    InType::CountedUnicodeString
                        | InType::CountedAnsiString
                        | InType::CountedBinary
                );
                if is_counted && has_length {
                    let rule = Rule::LengthImpossible(in_type_name(*in_type));
                    errors.push(ManifestError { at, rule });
                }
            }
        }
    }
}

/// Returns the name of the field that a size refers to.
fn size_field(size: Size, properties: &[Property], outer: &[Property]) -> String {
    let field = match size {
        Size::None | Size::Fixed(_) => None,
        Size::Field(field) => properties.get(field),
        Size::Outer(field) => outer.get(field),
    };
    field.map(|field| field.name.clone()).unwrap_or_default()
}
