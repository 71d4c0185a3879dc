//! Writes templates (`TEMP`): the fields of an event, and the XML that event logs show.

use std::num::TryFromIntError;

use etw_wire::{Guid, InType};

use super::{binxml, bytes::Bytes};
use crate::model::{Element, Node, Property, PropertyKind, Size, Template};

const EVENT_DATA: u32 = 1;
const USER_DATA: u32 = 2;

const STRUCT: u32 = 1;
const FIXED_LENGTH: u32 = 2;
const VARIABLE_LENGTH: u32 = 4;
const FIXED_COUNT: u32 = 8;
const VARIABLE_COUNT: u32 = 0x10;

/// `win:Binary`, the type that binary XML uses for structures.
const BINARY: u8 = InType::Binary.code();
/// The binary XML flag for an array.
const ARRAY: u8 = 0x80;

/// Returns a field's type in binary XML.
fn value_type(property: &Property) -> u8 {
    let one = match &property.kind {
        PropertyKind::Data { in_type, .. } => in_type.code(),
        PropertyKind::Struct(_) => BINARY,
        PropertyKind::Unknown { in_type, .. } => *in_type,
    };
    if property.count == Size::None { one } else { one | ARRAY }
}

/// Returns the XML that event logs show for an event.
fn xml(template: &Template) -> Element {
    if let Some(own) = &template.user_data {
        return own.clone();
    }
    let fields = (1..).zip(&template.properties).map(|(number, property)| {
        let name = match property.kind {
            PropertyKind::Data { .. } | PropertyKind::Unknown { .. } => "Data",
            PropertyKind::Struct(_) => "ComplexData",
        };
        Node::Element(Element {
            name: name.to_owned(),
            attributes: vec![("Name".to_owned(), property.name.clone())],
            nodes: vec![Node::Text(format!("%{number}"))],
        })
    });
    let name = template.name.iter();
    Element {
        name: "EventData".to_owned(),
        attributes: name.map(|name| ("Name".to_owned(), name.clone())).collect(),
        nodes: fields.collect(),
    }
}

/// Returns the GUID that event logs use to recognize equal templates: a hash of the XML and types.
fn guid(xml: &Element, types: &[u8]) -> Guid {
    /// The version of a GUID that is derived from a name, in its bit position.
    const VERSION: u8 = 0x50;
    let mut message = b"MS-WEVT\0".to_vec();
    message.extend(binxml::text(xml).encode_utf16().flat_map(u16::to_le_bytes));
    message.extend(types.iter().flat_map(|one| u32::from(*one).to_le_bytes()));
    let [b0, b1, b2, b3, b4, b5, b6, b7, b8, b9, b10, b11, b12, b13, b14, b15, ..] =
        hmac_sha256::Hash::hash(&message);
    let mut bytes = [b0, b1, b2, b3, b4, b5, b6, b7, b8, b9, b10, b11, b12, b13, b14, b15];
    bytes[7] = bytes[7] & 0x0F | VERSION;
    Guid::from_bytes(bytes)
}

/// Writes a template; `maps` holds the offsets of the provider's maps.
pub fn write(template: &Template, maps: &[u32], out: &mut Bytes) -> Result<(), TryFromIntError> {
    const DESCRIPTOR: usize = 20;
    let properties = &template.properties;
    let types: Vec<u8> = properties.iter().map(value_type).collect();
    let xml = xml(template);
    // The members of structures follow all fields.
    let members: Vec<&[Property]> = properties
        .iter()
        .filter_map(|property| match &property.kind {
            PropertyKind::Struct(members) => Some(members.as_slice()),
            PropertyKind::Data { .. } | PropertyKind::Unknown { .. } => None,
        })
        .collect();
    let total = properties.len() + members.iter().map(|one| one.len()).sum::<usize>();

    let start = out.0.len();
    out.slice(b"TEMP");
    let length = out.reserve(4);
    out.u32(u32::try_from(properties.len())?);
    out.u32(u32::try_from(total)?);
    let descriptors = out.reserve(4);
    out.u32(if template.user_data.is_some() { USER_DATA } else { EVENT_DATA });
    out.slice(&guid(&xml, &types).to_bytes());
    out.slice(&binxml::fragment(&xml, &types)?);
    let here = out.offset()?;
    out.put_u32(descriptors, here);

    let mut names = Names { offset: here + u32::try_from(total * DESCRIPTOR)?, names: Vec::new() };
    let mut next_member = properties.len();
    for property in properties {
        let first = next_member;
        if let PropertyKind::Struct(members) = &property.kind {
            next_member += members.len();
        }
        descriptor(property, 0, first, maps, &mut names, out)?;
    }
    let mut first = properties.len();
    for list in members {
        for property in list {
            descriptor(property, first, 0, maps, &mut names, out)?;
        }
        first += list.len();
    }
    for name in names.names {
        out.prefixed(name)?;
    }
    out.put_length(length, start)
}

/// The fields' names, which follow the descriptors.
struct Names<'a> {
    offset: u32,
    names: Vec<&'a str>,
}

impl<'a> Names<'a> {
    fn add(&mut self, name: &'a str) -> Result<u32, TryFromIntError> {
        let offset = self.offset;
        self.offset += u32::try_from(super::bytes::prefixed_size(name))?;
        self.names.push(name);
        Ok(offset)
    }
}

/// Writes the descriptor of a field, or of a member whose structure's members start at `base`.
fn descriptor<'a>(
    property: &'a Property,
    base: usize,
    first_member: usize,
    maps: &[u32],
    names: &mut Names<'a>,
    out: &mut Bytes,
) -> Result<(), TryFromIntError> {
    let size = |size: Size, fixed: u32, variable: u32| {
        Ok::<_, TryFromIntError>(match size {
            Size::None => (0, 0),
            Size::Fixed(number) => (fixed, number),
            Size::Field(at) => (variable, u16::try_from(base + at)?),
            Size::Outer(at) => (variable, u16::try_from(at)?),
        })
    };
    let (mut flags, count) = size(property.count, FIXED_COUNT, VARIABLE_COUNT)?;
    let (length_flag, length) = size(property.length, FIXED_LENGTH, VARIABLE_LENGTH)?;
    flags |= length_flag;
    match &property.kind {
        PropertyKind::Struct(members) => {
            out.u32(flags | STRUCT);
            out.u16(u16::try_from(first_member)?);
            out.u16(u16::try_from(members.len())?);
            out.u32(0);
        }
        PropertyKind::Unknown { in_type, out_type, map } => {
            out.u32(flags);
            out.u8(*in_type);
            out.u8(*out_type);
            out.u16(0);
            out.u32(map.and_then(|map| maps.get(map).copied()).unwrap_or(0));
        }
        PropertyKind::Data { in_type, out_type, map, .. } => {
            // The data contains its length.
            if *in_type == InType::Sid {
                flags &= !FIXED_LENGTH;
            }
            out.u32(flags);
            out.u8(in_type.code());
            out.u8(out_type.code());
            out.u16(0);
            out.u32(map.and_then(|map| maps.get(map).copied()).unwrap_or(0));
        }
    }
    out.u16(count);
    out.u16(length);
    let name = names.add(&property.name)?;
    out.u32(name);
    Ok(())
}
