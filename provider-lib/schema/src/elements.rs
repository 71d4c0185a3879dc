//! Structures that are array elements.
//!
//! The elements of an array are written as they are in memory, in one data descriptor. So their
//! structure has no padding, and each member's in-memory bytes equal its bytes in the event.

use std::collections::HashSet;

use syn::Ident;

use crate::{
    Field, FieldType, Format, Provider, Representation, Shape, Structure,
    errors::{Tokens, bail, error},
    tracelogging::Types,
};

/// The size in bytes of a `usize` in memory.
const IN_MEMORY: usize = 8;

/// Returns the size in bytes of an element.
///
/// # Errors
///
/// Returns an error at the first member that is not allowed in an element.
pub fn element_size(structure: &Structure, types: Types<'_>) -> syn::Result<usize> {
    if structure.fields.is_empty() {
        bail!(
            structure.ident.span(),
            "the structure `{}` is the element of an array and has no members; add one",
            structure.ident,
        );
    }
    let mut size = 0;
    for member in &structure.fields {
        if let Some(sized) = member.form.sized
            && sized.size() != Some(IN_MEMORY)
        {
            bail!(
                Tokens(&member.written),
                "the structure `{}` is the element of an array, and its member `{}` has more bytes \
                 in memory than in the event; declare it as `{}`, or remove `#[repr({2})]`",
                structure.ident,
                member.ident,
                sized.name(),
            );
        }
        size += member_size(member, types).ok_or_else(|| {
            error!(
                Tokens(&member.written),
                "the structure `{}` is the element of an array, and the bytes of its member `{}` \
                 in memory differ from those in the event; an element can have numbers, `bool`, \
                 types such as `Guid` and `NtStatus`, `Pointer` with `#[address]`, maps, and \
                 structures of these",
                structure.ident,
                member.ident,
            )
        })?;
    }
    if let Some(parameter) = structure.generics.params.first() {
        bail!(
            Tokens(parameter),
            "the structure `{}` is the element of an array, whose members cannot borrow; remove \
             the lifetime",
            structure.ident,
        );
    }
    Ok(size)
}

fn member_size(member: &Field, types: Types<'_>) -> Option<usize> {
    match &member.kind {
        FieldType::Values(scalar, format, Shape::One) => match scalar.row().representation {
            Representation::Memory(_) | Representation::Cast8 | Representation::Cast64 => {
                scalar.size()
            }
            Representation::Pointer if *format == Format::Address => scalar.size(),
            _ => None,
        },
        FieldType::Values(..) | FieldType::Structures(..) => None,
        FieldType::Named(name) => match (types.map(name), types.structure(name)) {
            (Some(map), _) => map.scalar.size(),
            (None, Some(inner)) => element_size(inner, types).ok(),
            (None, None) => None,
        },
    }
}

/// Returns the structures that are elements of arrays, and the structures inside them.
#[must_use]
pub fn elements(provider: &Provider) -> HashSet<&Ident> {
    let types = Types::of(provider);
    let mut found = HashSet::new();
    let fields = provider.events.iter().flat_map(|event| &event.fields);
    let mut left: Vec<&Ident> = fields
        .filter_map(|field| match &field.kind {
            FieldType::Structures(name, _) => Some(name),
            _ => None,
        })
        .collect();
    while let Some(name) = left.pop() {
        let Some(structure) = types.structure(name) else {
            continue;
        };
        if found.insert(&structure.ident) {
            left.extend(structure.fields.iter().filter_map(|field| match &field.kind {
                FieldType::Named(name) => Some(name),
                _ => None,
            }));
        }
    }
    found
}
