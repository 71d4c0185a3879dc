//! The structures that `wdk-etw` provides, which a declaration can use without declaring them.

use std::collections::HashSet;

use proc_macro2::Span;
use syn::{Ident, Type, Visibility, parse_quote};

use super::event::field;
use crate::{Field, FieldType, Provider, Structure};

/// The name of the structure for a range of bytes.
const HEX_DUMP: &str = "HexDump";

/// Returns the library's structures, or an error in their field types.
fn structures() -> syn::Result<[Structure; 1]> {
    let named = |name: &str| Ident::new(name, Span::call_site());
    Ok([Structure {
        ident: named(HEX_DUMP),
        visibility: Visibility::Inherited,
        generics: parse_quote!(<'a>),
        in_library: true,
        fields: vec![
            field(&named("offset"), &parse_quote!(u64), &[parse_quote!(#[hex])], &HashSet::new())?,
            field(&named("size"), &parse_quote!(u64), &[], &HashSet::new())?,
            field(&named("bytes"), &parse_quote!(&'a [u8]), &[], &HashSet::new())?,
        ],
        docs: Vec::new(),
    }])
}

/// Returns whether a field's type is this library structure. If so, gives it its full path.
fn resolve(field: &mut Field, structure: &Structure) -> bool {
    let FieldType::Named(name) = &field.kind else {
        return false;
    };
    if *name != structure.ident {
        return false;
    }
    let mut written = &mut field.written;
    while let Type::Reference(reference) = written {
        written = &mut reference.elem;
    }
    if let Type::Path(path) = written {
        let Some(last) = path.path.segments.last() else {
            return false;
        };
        path.path = parse_quote!(::wdk_etw::#last);
    }
    true
}

/// Adds the library's structures that a provider uses and does not declare.
pub fn complete(provider: &mut Provider) -> syn::Result<()> {
    for structure in structures()? {
        let declared = provider.structures.iter().map(|one| &one.ident);
        let mut declared = declared.chain(provider.maps.iter().map(|one| &one.ident));
        if declared.any(|name| *name == structure.ident) {
            continue;
        }
        let in_structures = provider.structures.iter_mut().map(|one| &mut one.fields);
        let in_events = provider.events.iter_mut().map(|one| &mut one.fields);
        let mut used = false;
        for field in in_structures.chain(in_events).flatten() {
            used |= resolve(field, &structure);
        }
        if used {
            // Insert at the front, because structures can refer only to earlier ones.
            provider.structures.insert(0, structure);
        }
    }
    Ok(())
}

/// Returns the library's structures that an event at its call site uses.
pub fn of_fields(fields: &mut [Field]) -> syn::Result<Vec<Structure>> {
    let mut found = Vec::new();
    for structure in structures()? {
        let mut used = false;
        for field in &mut *fields {
            used |= resolve(field, &structure);
        }
        if used {
            found.push(structure);
        }
    }
    Ok(found)
}
