//! The Rust types and names that generated code uses for the items of a declaration.

use proc_macro2::{TokenStream, TokenTree};
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
            quote!(#outer #written)
        }
    }
}

/// Returns the type of a structure's field. Like a parameter's, it needs no `use`; a borrowed one has
/// the lifetime that is written.
pub fn member(field: &Field) -> TokenStream {
    let written = &field.written;
    let FieldType::Values(kind, _, shape) = &field.kind else {
        return quote!(#written);
    };
    let value = scalar(*kind);
    let borrows = kind.borrows() || *shape == Shape::Counted;
    let Some(lifetime) = lifetime(quote!(#written)).filter(|_| borrows) else {
        return match shape {
            Shape::One if !kind.borrows() => value,
            Shape::Fixed(count) => {
                let count = usize::from(*count);
                quote!([#value; #count])
            }
            // The compiler asks for a lifetime at the type that is written.
            Shape::One | Shape::Counted => quote!(#written),
        };
    };
    match shape {
        Shape::Fixed(count) => {
            let count = usize::from(*count);
            quote!([#value; #count])
        }
        Shape::Counted => quote!(&#lifetime [#value]),
        Shape::One => match syn::parse2(value.clone()) {
            Ok(syn::Type::Reference(reference)) => {
                let inner = reference.elem;
                quote!(&#lifetime #inner)
            }
            Ok(syn::Type::Path(mut path)) => {
                if let Some(last) = path.path.segments.last_mut() {
                    let arguments = syn::parse_quote!(<#lifetime>);
                    last.arguments = syn::PathArguments::AngleBracketed(arguments);
                }
                quote!(#path)
            }
            _ => value,
        },
    }
}

/// Returns the first lifetime of a type.
fn lifetime(written: TokenStream) -> Option<syn::Lifetime> {
    let mut tokens = written.into_iter();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Punct(mark) if mark.as_char() == '\'' => {
                let Some(TokenTree::Ident(ident)) = tokens.next() else {
                    return None;
                };
                return Some(syn::Lifetime {
                    apostrophe: mark.span(),
                    ident,
                });
            }
            TokenTree::Group(group) => {
                let found = lifetime(group.stream());
                if found.is_some() {
                    return found;
                }
            }
            _ => {}
        }
    }
    None
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
