//! The Rust types and names that generated code uses for the items of a declaration.

use proc_macro2::TokenStream;
use quote::quote;
use syn::Ident;
use wdk_etw_schema::{Event, Field, FieldType, Guid, Scalar, Shape};

/// Returns the type of a single value.
pub fn scalar(scalar: Scalar) -> TokenStream {
    let rust = scalar.row().rust;
    rust.parse().unwrap_or_else(|error| {
        let message =
            format!("cannot parse the type `{rust}` from the table of field types: {error}");
        quote!(::core::compile_error!(#message))
    })
}

/// Returns the type of an event's parameter. `outer` is the path from the function to the
/// declaration's module.
pub fn parameter(field: &Field, outer: &TokenStream) -> TokenStream {
    match &field.kind {
        FieldType::Values(kind, _, shape) => {
            let value = scalar(*kind);
            match shape {
                Shape::One => value,
                Shape::Fixed(count) => {
                    let count = usize::from(*count);
                    quote!(&[#value; #count])
                }
                Shape::Counted => quote!(&[#value]),
            }
        }
        FieldType::Named(_) => {
            let written = &field.written;
            match written {
                // The library's structures have their whole path.
                syn::Type::Path(path) if path.path.leading_colon.is_some() => quote!(#written),
                _ => quote!(#outer #written),
            }
        }
    }
}

/// Returns the type of a structure's field.
pub fn member(field: &Field) -> TokenStream {
    let written = &field.written;
    match &field.kind {
        FieldType::Values(kind, ..) if kind.borrows() => quote!(#written),
        FieldType::Values(_, _, Shape::Counted | Shape::Fixed(_)) | FieldType::Named(_) => {
            quote!(#written)
        }
        FieldType::Values(kind, _, Shape::One) => scalar(*kind),
    }
}

/// Returns the names of an event's parameters.
pub fn idents(event: &Event) -> Vec<&Ident> {
    event.fields.iter().map(|field| &field.ident).collect()
}

/// Returns a constant expression for a GUID.
pub fn guid(guid: Guid) -> TokenStream {
    let bytes = guid.to_bytes();
    quote!(::wdk_etw::Guid::from_bytes([#(#bytes),*]))
}
