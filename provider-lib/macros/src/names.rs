//! The Rust types and names that generated code uses for the items of a declaration.

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote};
use syn::{GenericArgument, Ident, Lifetime, PathArguments, Type, ext::IdentExt as _};
use wdk_etw_schema::{Event, Field, FieldType, Guid, Scalar, Shape};

/// Returns a type of the table as a path that no item of the author can shadow: an event named
/// `u32` is a module with that name.
fn absolute(rust: &str) -> String {
    if rust.contains("::") {
        return rust.to_owned();
    }
    let is_name = |letter: char| letter.is_ascii_alphanumeric();
    let start = rust.find(is_name).unwrap_or(0);
    let (before, name) = rust.split_at(start);
    format!("{before}::core::primitive::{name}")
}

fn parsed(rust: &str) -> TokenStream {
    rust.parse().unwrap_or_else(|error| {
        let message =
            format!("cannot parse the type `{rust}` from the table of field types: {error}");
        quote!(::core::compile_error!(#message))
    })
}

/// Returns the type of a single value.
pub fn scalar(scalar: Scalar) -> TokenStream {
    parsed(&absolute(scalar.row().rust))
}

/// Returns the type that a reference type refers to, or the type itself.
fn referent(written: &Type) -> &Type {
    match written {
        Type::Reference(reference) => referent(&reference.elem),
        other => other,
    }
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
        FieldType::Structures(name, shape) => match shape {
            Shape::Fixed(count) => {
                let count = usize::from(*count);
                quote!(&[#outer #name; #count])
            }
            Shape::One | Shape::Counted => quote!(&[#outer #name]),
        },
        FieldType::Named(_) => {
            let written = referent(&field.written);
            let reference = matches!(field.written, Type::Reference(_)).then(|| quote!(&));
            match &written {
                // A library structure's type is already its whole path.
                Type::Path(path) if path.path.leading_colon.is_some() => {
                    quote!(#reference #written)
                }
                _ => quote!(#reference #outer #written),
            }
        }
    }
}

/// Returns the first lifetime in a type.
fn lifetime(written: &Type) -> Option<&Lifetime> {
    match written {
        Type::Reference(reference) => {
            reference.lifetime.as_ref().or_else(|| lifetime(&reference.elem))
        }
        Type::Path(path) => {
            let last = path.path.segments.last()?;
            let PathArguments::AngleBracketed(arguments) = &last.arguments else {
                return None;
            };
            arguments.args.iter().find_map(|argument| match argument {
                GenericArgument::Lifetime(lifetime) => Some(lifetime),
                _ => None,
            })
        }
        _ => None,
    }
}

/// Returns the type of a structure's field.
///
/// # Errors
///
/// Returns an error if the field borrows its value but its type has no lifetime.
pub fn member(field: &Field) -> syn::Result<TokenStream> {
    let FieldType::Values(kind, _, shape) = &field.kind else {
        let written = referent(&field.written);
        return Ok(quote!(#written));
    };
    let value = scalar(*kind);
    match shape {
        Shape::One if !kind.borrows() => return Ok(value),
        Shape::Fixed(count) => {
            let count = usize::from(*count);
            return Ok(quote!([#value; #count]));
        }
        Shape::One | Shape::Counted => {}
    }
    let Some(lifetime) = lifetime(&field.written) else {
        return Err(syn::Error::new_spanned(
            &field.written,
            format!(
                "the field `{}` borrows its value and has no lifetime; declare one, as in `struct \
                 Place<'a> {{ name: &'a str }}`",
                field.ident
            ),
        ));
    };
    if *shape == Shape::Counted {
        return Ok(quote!(&#lifetime [#value]));
    }
    let rust = absolute(kind.row().rust);
    if let Some(value) = rust.strip_prefix('&') {
        let value = parsed(value);
        return Ok(quote!(&#lifetime #value));
    }
    let path = parsed(rust.strip_suffix("<'_>").unwrap_or(&rust));
    Ok(quote!(#path<#lifetime>))
}

/// Returns the names of the parameters of an event's functions. They are the fields' names, so that
/// editors show them.
///
/// If a constant, static or unit structure with a parameter's name were in scope, the parameter
/// would be a pattern that matches its value. The functions are in their own module, where only the
/// prelude and the macro define such items, with capitalized names.
pub fn parameters(event: &Event) -> Vec<Ident> {
    event
        .fields
        .iter()
        .map(|field| {
            let name = field.ident.unraw().to_string();
            if name.contains(char::is_uppercase) {
                let span = Span::mixed_site().located_at(field.ident.span());
                format_ident!("field_{name}", span = span)
            } else {
                field.ident.clone()
            }
        })
        .collect()
}

/// Returns a constant expression for a GUID.
pub fn guid(guid: Guid) -> TokenStream {
    let bytes = guid.to_bytes();
    quote!(::wdk_etw::Guid::from_bytes([#(#bytes),*]))
}
