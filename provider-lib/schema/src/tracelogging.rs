//! The metadata of `TraceLogging` events, as TraceLoggingProvider.h defines it.
//!
//! The metadata contains its size (16 bits, including the size itself), the event's tag, and the
//! event's name in UTF-8 with a NUL. Then each field follows with its name, a NUL, its type, and
//! the type's parameters. The members of a structure follow the structure.
//!
//! `etl-file` decodes the metadata with its own code
//! (`formats/etl-file/src/decode/tracelogging.rs`): tests compare the two, so neither uses the
//! other.

use etw_wire::{InType, TlgOutType, limits::MAX_STRUCT_MEMBERS};
use syn::spanned::Spanned as _;

use crate::{
    Field, FieldType, Format, Map, MapKind, Provider, Shape, Structure,
    errors::{bail, error},
};

/// Set in a byte that is followed by another byte of the same field: in the type before the output
/// type, in the output type before the tag, and in a byte of a tag before the next one.
const CHAIN: u8 = 0x80;
/// Set in the type of an array whose length is in the metadata.
const FIXED: u8 = 0x20;
/// Set in the type of an array whose length is in the event's data.
const COUNTED: u8 = 0x40;
/// The type of a structure.
const STRUCTURE: u8 = InType::Struct.code();

/// The maps and structures of a declaration.
#[derive(Clone, Copy, Debug, Default)]
pub struct Types<'a> {
    pub(crate) maps: &'a [Map],
    pub(crate) structures: &'a [Structure],
}

impl<'a> Types<'a> {
    /// Returns the maps and structures of a provider.
    #[must_use]
    pub fn of(provider: &'a Provider) -> Self {
        Self { maps: &provider.maps, structures: &provider.structures }
    }

    /// Returns the map with this name.
    #[must_use]
    pub fn map(&self, name: &syn::Ident) -> Option<&'a Map> {
        self.maps.iter().find(|map| map.ident == *name)
    }

    /// Returns the structure with this name.
    #[must_use]
    pub fn structure(&self, name: &syn::Ident) -> Option<&'a Structure> {
        self.structures.iter().find(|structure| structure.ident == *name)
    }
}

/// Appends an event's tag in as few bytes as possible, with seven bits in each byte, the most
/// significant bits first.
fn put_event_tag(block: &mut Vec<u8>, tag: u32) {
    let mut rest = tag << 4;
    loop {
        let bits = seven_bits(rest >> 25);
        rest <<= 7;
        if rest == 0 {
            block.push(bits);
            return;
        }
        block.push(bits | CHAIN);
    }
}

const fn seven_bits(number: u32) -> u8 {
    let [lowest, ..] = number.to_le_bytes();
    lowest & !CHAIN
}

fn put_field_tag(block: &mut Vec<u8>, tag: u32) {
    for shift in [21, 14, 7] {
        block.push(seven_bits(tag >> shift) | CHAIN);
    }
    block.push(seven_bits(tag));
}

fn put_name(block: &mut Vec<u8>, name: &str) {
    block.extend_from_slice(name.as_bytes());
    block.push(0);
}

fn put_type(block: &mut Vec<u8>, in_type: u8, out_type: u8, tag: u32) {
    match (out_type, tag) {
        (0, 0) => block.push(in_type),
        (_, 0) => block.extend_from_slice(&[in_type | CHAIN, out_type]),
        (_, _) => {
            block.extend_from_slice(&[in_type | CHAIN, out_type | CHAIN]);
            put_field_tag(block, tag);
        }
    }
}

const fn codes((in_type, out_type): (InType, TlgOutType)) -> (u8, u8) {
    (in_type.code(), out_type.code())
}

/// Appends the type of a structure or of an array of structures, and its members.
fn put_structure(
    block: &mut Vec<u8>,
    structure: &Structure,
    shape: Shape,
    tag: u32,
    types: Types<'_>,
) -> syn::Result<()> {
    let members = u8::try_from(structure.fields.len())
        .ok()
        .filter(|members| (1..=MAX_STRUCT_MEMBERS).contains(members))
        .ok_or_else(|| {
            error!(
                structure.ident.span(),
                "the structure `{}` has {} fields; a structure in a TraceLogging event can have 1 \
                 to {MAX_STRUCT_MEMBERS}",
                structure.ident,
                structure.fields.len(),
            )
        })?;
    match shape {
        Shape::One => put_type(block, STRUCTURE, members, tag),
        Shape::Counted => put_type(block, STRUCTURE | COUNTED, members, tag),
        Shape::Fixed(count) => {
            put_type(block, STRUCTURE | FIXED, members, tag);
            block.extend_from_slice(&count.to_le_bytes());
        }
    }
    put_fields(block, &structure.fields, types)
}

fn put_fields(block: &mut Vec<u8>, fields: &[Field], types: Types<'_>) -> syn::Result<()> {
    for field in fields {
        put_name(block, &field.name);
        match &field.kind {
            FieldType::Values(scalar, format, shape) => {
                let (in_type, out_type) = codes(field.form.tracelogging(*scalar, *format)?);
                match shape {
                    Shape::One => put_type(block, in_type, out_type, field.tag),
                    Shape::Counted => put_type(block, in_type | COUNTED, out_type, field.tag),
                    Shape::Fixed(count) => {
                        put_type(block, in_type | FIXED, out_type, field.tag);
                        block.extend_from_slice(&count.to_le_bytes());
                    }
                }
            }
            FieldType::Structures(name, shape) => {
                let structure =
                    types.structure(name).ok_or_else(|| crate::types::undeclared(name))?;
                put_structure(block, structure, *shape, field.tag, types)?;
            }
            FieldType::Named(name) => {
                if let Some(map) = types.map(name) {
                    let format = match map.kind {
                        MapKind::Value => Format::Default,
                        MapKind::Bits => Format::Hex,
                    };
                    let (in_type, out_type) = codes(field.form.tracelogging(map.scalar, format)?);
                    put_type(block, in_type, out_type, field.tag);
                } else if let Some(structure) = types.structure(name) {
                    put_structure(block, structure, Shape::One, field.tag, types)?;
                } else {
                    return Err(crate::types::undeclared(name));
                }
            }
        }
    }
    Ok(())
}

/// Encodes the metadata of an event.
///
/// # Errors
///
/// Returns an error if the metadata is longer than 65,535 bytes, or if a structure has no fields
/// or too many.
pub fn event_metadata(
    name: &str,
    tag: u32,
    fields: &[Field],
    types: Types<'_>,
) -> syn::Result<Vec<u8>> {
    let mut block = vec![0, 0];
    put_event_tag(&mut block, tag);
    put_name(&mut block, name);
    put_fields(&mut block, fields, types)?;
    let Ok(size) = u16::try_from(block.len()) else {
        bail!(
            fields.first().map_or_else(proc_macro2::Span::call_site, |field| field.written.span()),
            "the event's metadata is {} bytes long, but must not exceed 65,535; shorten names or \
             remove fields",
            block.len(),
        );
    };
    block[..2].copy_from_slice(&size.to_le_bytes());
    Ok(block)
}
