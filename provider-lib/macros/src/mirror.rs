//! The code with which debug builds print events in the debugger.
//!
//! The code has the condition `debug_assertions`, which is evaluated for the driver's crate.

use proc_macro2::{Literal, TokenStream};
use quote::{ToTokens as _, format_ident, quote};
use syn::Ident;
use wdk_etw_schema::{Block, Event, Field, FieldType, Format, Map, MapKind, Scalar, Structure};

use crate::writer::{argument, reserved};

/// The code of an event that the debugger prints. It is empty for other events.
#[derive(Default)]
pub struct OfEvent {
    /// The part before the check that a session enables the event.
    pub or_printed: TokenStream,
    /// The documentation of that check.
    pub docs: TokenStream,
    /// The start of a write after the check.
    pub printed_only: TokenStream,
    /// The start of a write without a check.
    pub printed_too: TokenStream,
}

impl OfEvent {
    /// Generates the code of an event in its module. `blob` and `options` are expressions.
    pub fn new(event: &Event, blob: &TokenStream, options: &Ident, fields: &[Ident]) -> Self {
        let outer = quote!(super::);
        let provider = quote!(&#outer PROVIDER);
        let options = quote!(#options);
        let printed = print(&provider, blob, &options, &event.name, &event.fields, fields);
        Self {
            or_printed: quote!(::core::cfg!(debug_assertions) ||),
            docs: quote! {
                ///
                /// In debug builds the debugger prints the event, and this function returns true.
            },
            printed_only: quote! {
                #[cfg(debug_assertions)]
                if !#printed {
                    return ::core::result::Result::Ok(());
                }
            },
            printed_too: quote! {
                #[cfg(debug_assertions)]
                let _ = #printed;
            },
        }
    }
}

/// Generates the start of the function that writes an event of `event!`.
pub fn start(name: &str, fields: &[Field]) -> TokenStream {
    let [provider, event, options] =
        ["provider", "event", "options"].map(|name| reserved(name).into_token_stream());
    let values: Vec<_> = (0..fields.len()).map(argument).collect();
    let printed = print(&provider, &event, &options, name, fields, &values);
    quote! {
        #[cfg(debug_assertions)]
        if !#printed {
            return ::wdk_etw::NtStatus::SUCCESS;
        }
    }
}

/// Generates the expression that prints an event, and returns whether it must also be written.
///
/// `values` are the variables with the fields' values.
fn print(
    provider: &TokenStream,
    event: &TokenStream,
    options: &TokenStream,
    name: &str,
    fields: &[Field],
    values: &[Ident],
) -> TokenStream {
    let line = reserved("line");
    let fields = fields.iter().zip(values).map(|(field, value)| one(&line, field, &quote!(#value)));
    quote! {
        ::wdk_etw::Provider::mirror(
            #provider, #event, &#options, #name,
            &|#line: &mut ::wdk_etw::__macro::Line<'_>| { #(#fields)* },
        )
    }
}

/// Generates the statement that prints a field.
fn one(line: &Ident, field: &Field, value: &TokenStream) -> TokenStream {
    let name = &field.name;
    let (shown, format) = match (&field.kind, field.form.block) {
        (FieldType::Values(Scalar::Bytes, ..), _) | (_, Some(Block::Bytes)) => {
            (quote!(::wdk_etw::__macro::Bytes(#value)), Format::Default)
        }
        (FieldType::Values(Scalar::Utf16, ..), _) => {
            (quote!(::wdk_etw::UnicodeString::new(#value)), Format::Default)
        }
        (FieldType::Values(Scalar::U16, ..), Some(Block::Text)) => {
            (quote!(::wdk_etw::Utf16CStr::new(#value)), Format::Default)
        }
        (_, Some(Block::Text)) => (quote!(::wdk_etw::__macro::Narrow(#value)), Format::Default),
        (FieldType::Values(_, format, _), None) => (value.clone(), *format),
        (FieldType::Named(_) | FieldType::Structures(..), None) => (value.clone(), Format::Default),
    };
    let is_hex = match &field.kind {
        // Only the word `address` permits printing an address; a presentation is for decoders.
        FieldType::Values(Scalar::Pointer, ..) => format == Format::Address,
        _ => {
            format == Format::Hex
                || field.form.out_type.is_some_and(|one| one.name().starts_with("win:HexInt"))
        }
    };
    quote!(::wdk_etw::__macro::Line::field(#line, #name, &#shown, #is_hex);)
}

/// Generates the implementation of `Print` for a type.
fn implementation(ident: &Ident, generics: &syn::Generics, body: &TokenStream) -> TokenStream {
    let to = reserved("to");
    let (parameters, arguments, condition) = generics.split_for_impl();
    quote! {
        #[cfg(debug_assertions)]
        impl #parameters ::wdk_etw::__macro::Print for #ident #arguments #condition {
            fn print(
                &self,
                #to: &mut dyn ::core::fmt::Write,
                _: ::core::primitive::bool,
            ) -> ::core::fmt::Result {
                #body
            }
        }
    }
}

/// Generates the implementation that prints the name of a map's value.
pub fn map(map: &Map) -> TokenStream {
    let to = reserved("to");
    let function = match map.kind {
        MapKind::Value => format_ident!("map"),
        MapKind::Bits => format_ident!("bits"),
    };
    let entries = map.entries.iter().map(|entry| {
        let (value, name) = (Literal::u32_unsuffixed(entry.value), &entry.name);
        quote!((#value, #name))
    });
    let body = quote! {
        ::wdk_etw::__macro::#function(#to, self.0 as ::core::primitive::u32, &[#(#entries),*])
    };
    implementation(&map.ident, &syn::Generics::default(), &body)
}

/// Generates the implementation that prints the members of a structure. It copies the members of a
/// packed structure, and borrows others, which may be large.
pub fn structure(structure: &Structure, is_packed: bool) -> TokenStream {
    let (to, line) = (reserved("to"), reserved("line"));
    let members = structure.fields.iter().map(|field| {
        let ident = &field.ident;
        let member = if is_packed { quote!(&{ self.#ident }) } else { quote!(&self.#ident) };
        one(&line, field, &member)
    });
    let body = quote! {
        ::wdk_etw::__macro::structure(
            #to, |#line: &mut ::wdk_etw::__macro::Line<'_>| { #(#members)* },
        )
    };
    implementation(&structure.ident, &structure.generics, &body)
}
