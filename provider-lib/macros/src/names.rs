//! Rust's names for what a declaration names.

use proc_macro2::TokenStream;
use quote::quote;
use syn::Ident;
use wdk_etw_schema::{Event, Field, FieldType, Guid, Scalar, Shape};

/// Returns the type of a single value.
pub fn scalar(scalar: Scalar) -> TokenStream {
    let rust = scalar.row().rust;
    rust.parse().unwrap_or_else(|error| {
        let message = format!("the table of field types has `{rust}`: {error}");
        quote!(::core::compile_error!(#message))
    })
}

/// The type of a parameter. `outer` leads from where the parameter stands to the
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
            quote!(#outer #written)
        }
    }
}

/// The type of a structure's field.
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

/// The names of an event's parameters.
pub fn idents(event: &Event) -> Vec<&Ident> {
    event.fields.iter().map(|field| &field.ident).collect()
}

/// A GUID as a constant.
pub fn guid(guid: Guid) -> TokenStream {
    let bytes = guid.to_bytes();
    quote!(::wdk_etw::Guid::from_bytes([#(#bytes),*]))
}
