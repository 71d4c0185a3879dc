//! Reads templates (`TEMP`): the fields of an event.

use etw_wire::{InType, OutType};

use super::{binxml, error::DecodeError, reader::Reader};
use crate::model::{Position, Property, PropertyKind, Size, Template};

/// The sizes in bytes of a template's header and a field's descriptor.
const HEAD: usize = 40;
const DESCRIPTOR: usize = 20;

const STRUCT: u32 = 1;
const FIXED_LENGTH: u32 = 2;
const VARIABLE_LENGTH: u32 = 4;
const FIXED_COUNT: u32 = 8;
const VARIABLE_COUNT: u32 = 0x10;

/// The input type `win:SID`. A fixed length of this type is stored without `FIXED_LENGTH`.
const SID: u8 = 19;

/// A field whose references to counts and lengths have not been resolved.
struct Descriptor {
    flags: u32,
    in_type: u8,
    out_type: u8,
    map: usize,
    /// For a structure: the index of its first member, and the number of members.
    members: (usize, usize),
    count: u16,
    length: u16,
    name: String,
}

/// The fields to which a size can refer, by descriptor index.
#[derive(Clone, Copy)]
struct Scope {
    /// The first field of the same list, and the number of fields.
    list: (usize, usize),
    /// The number of the template's own fields, which come first.
    outer: usize,
}

impl Scope {
    fn find(self, number: u16) -> Option<Size> {
        let number = usize::from(number);
        let (first, count) = self.list;
        let inner = number.checked_sub(first).filter(|at| *at < count);
        match inner {
            Some(at) => Some(Size::Field(at)),
            None if number < self.outer => Some(Size::Outer(number)),
            None => None,
        }
    }
}

impl Reader<'_> {
    /// Reads the templates, which are stored consecutively, including templates without events.
    pub fn templates(&mut self, at: usize) -> Result<(), DecodeError> {
        self.bytes.tag(at, *b"TTBL")?;
        let count = self.bytes.place(at + 8, "number of templates")?;
        let mut at = at + 12;
        for _ in 0..count {
            self.template(at)?;
            let length = self.bytes.place(at + 4, "template")?;
            // A template is at least as large as its header, so the loop terminates.
            if length < HEAD {
                return Err(DecodeError::Reference { what: "template", offset: at });
            }
            at += length;
        }
        Ok(())
    }

    /// Returns the index of the template at offset `at`.
    pub fn template(&mut self, at: usize) -> Result<usize, DecodeError> {
        const USER_DATA: u32 = 2;
        if let Some(known) = self.templates.get(&at) {
            return Ok(*known);
        }
        let bytes = self.bytes;
        bytes.tag(at, *b"TEMP")?;
        self.limits.list(HEAD)?;
        let outer = bytes.place(at + 8, "template")?;
        let all = bytes.place(at + 12, "template")?;
        let start = bytes.place(at + 16, "template")?;
        let places = bytes.entries(start, all, DESCRIPTOR, "fields")?;
        self.limits.fields(all)?;
        let mut descriptors = Vec::new();
        for place in places {
            descriptors.push(self.descriptor(place)?);
        }
        let bad = DecodeError::Reference { what: "template", offset: at };
        let top = descriptors.get(..outer).ok_or_else(|| bad.clone())?;
        let scope = Scope { list: (0, outer), outer };
        let mut properties = Vec::with_capacity(top.len());
        for descriptor in top {
            properties.push(self.property(descriptor, &descriptors, scope, &bad)?);
        }
        let mut template = Template { properties, ..Template::default() };
        // Fields can be decoded without the XML.
        let xml = binxml::read(bytes, at + HEAD, self.limits);
        if let Some(xml) = self.tolerate(xml)?.flatten() {
            let named = xml.attributes.iter().find(|(key, _)| key == "Name");
            template.name = named.map(|(_, name)| name.clone());
            if bytes.u32(at + 20, "template")? == USER_DATA {
                template.name = None;
                template.user_data = Some(xml);
            }
        }
        let number = self.provider.templates.len();
        self.templates.insert(at, number);
        self.provider.templates.push(template);
        Ok(number)
    }

    fn descriptor(&mut self, at: usize) -> Result<Descriptor, DecodeError> {
        let what = "field";
        let bytes = self.bytes;
        let flags = bytes.u32(at, what)?;
        let name = self.name(at + 16, "field's name")?;
        let is_struct = flags & STRUCT != 0;
        Ok(Descriptor {
            flags,
            in_type: bytes.u8(at + 4, what)?,
            out_type: bytes.u8(at + 5, what)?,
            map: if is_struct { 0 } else { bytes.place(at + 8, what)? },
            members: (usize::from(bytes.u16(at + 4, what)?), usize::from(bytes.u16(at + 6, what)?)),
            count: bytes.u16(at + 12, what)?,
            length: bytes.u16(at + 14, what)?,
            name,
        })
    }

    fn property(
        &mut self,
        it: &Descriptor,
        all: &[Descriptor],
        scope: Scope,
        bad: &DecodeError,
    ) -> Result<Property, DecodeError> {
        let referred = |number: u16| scope.find(number).ok_or_else(|| bad.clone());
        let count = match it.flags & (FIXED_COUNT | VARIABLE_COUNT) {
            0 => Size::None,
            FIXED_COUNT => Size::Fixed(it.count),
            _ => referred(it.count)?,
        };
        let is_sized_sid = it.in_type == SID && it.length != 0 && it.flags & STRUCT == 0;
        let length = match it.flags & (FIXED_LENGTH | VARIABLE_LENGTH) {
            0 if is_sized_sid => Size::Fixed(it.length),
            0 => Size::None,
            FIXED_LENGTH => Size::Fixed(it.length),
            _ => referred(it.length)?,
        };
        let kind = if it.flags & STRUCT != 0 {
            let (first, count) = it.members;
            let members = all.get(first..first + count).ok_or_else(|| bad.clone())?;
            let scope = Scope { list: (first, count), outer: scope.outer };
            let mut properties = Vec::with_capacity(members.len());
            for member in members {
                // Structures cannot be nested.
                if member.flags & STRUCT != 0 {
                    return Err(bad.clone());
                }
                self.limits.fields(1)?;
                properties.push(self.property(member, all, scope, bad)?);
            }
            PropertyKind::Struct(properties)
        } else {
            let map = match it.map {
                0 => None,
                place => {
                    let map = self.map(place);
                    self.tolerate(map)?
                }
            };
            // A flag, not a type, marks a structure.
            let in_type = InType::from_code(it.in_type).filter(|one| one.name().is_some());
            match (in_type, OutType::from_code(it.out_type)) {
                (Some(in_type), Some(out_type)) => {
                    PropertyKind::Data { in_type, out_type, explicit_out_type: true, map }
                }
                (None, _) | (_, None) => {
                    PropertyKind::Unknown { in_type: it.in_type, out_type: it.out_type, map }
                }
            }
        };
        Ok(Property {
            name: it.name.clone(),
            count,
            length,
            kind,
            others: Vec::new(),
            at: Position::default(),
        })
    }
}
