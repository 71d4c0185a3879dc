//! Rust's names for what a declaration names.

use proc_macro2::TokenStream;
use quote::quote;
use syn::Ident;
use wdk_etw_schema::{Event, Field, FieldType, Guid, Scalar, Shape};

/// The type of a single value.
pub fn scalar(scalar: Scalar) -> TokenStream {
    match scalar {
        Scalar::I8 => quote!(i8),
        Scalar::U8 => quote!(u8),
        Scalar::I16 => quote!(i16),
        Scalar::U16 => quote!(u16),
        Scalar::I32 => quote!(i32),
        Scalar::U32 => quote!(u32),
        Scalar::I64 => quote!(i64),
        Scalar::U64 => quote!(u64),
        Scalar::Usize => quote!(usize),
        Scalar::Bool => quote!(bool),
        Scalar::F32 => quote!(::wdk_etw::F32),
        Scalar::F64 => quote!(::wdk_etw::F64),
        Scalar::Pointer => quote!(::wdk_etw::Pointer),
        Scalar::Guid => quote!(::wdk_etw::Guid),
        Scalar::FileTime => quote!(::wdk_etw::FileTime),
        Scalar::SystemTime => quote!(::wdk_etw::SystemTime),
        Scalar::NtStatus => quote!(::wdk_etw::NtStatus),
        Scalar::HResult => quote!(::wdk_etw::HResult),
        Scalar::Win32Error => quote!(::wdk_etw::Win32Error),
        Scalar::ProcessId => quote!(::wdk_etw::ProcessId),
        Scalar::ThreadId => quote!(::wdk_etw::ThreadId),
        Scalar::Port => quote!(::wdk_etw::Port),
        Scalar::Ipv4Addr => quote!(::core::net::Ipv4Addr),
        Scalar::Ipv6Addr => quote!(::core::net::Ipv6Addr),
        Scalar::SocketAddr => quote!(::core::net::SocketAddr),
        Scalar::Sid => quote!(::wdk_etw::Sid<'_>),
        Scalar::Str => quote!(&str),
        Scalar::Utf16 => quote!(&[u16]),
        Scalar::UnicodeString => quote!(::wdk_etw::UnicodeString<'_>),
        Scalar::CStr => quote!(&::core::ffi::CStr),
        Scalar::Utf16CStr => quote!(::wdk_etw::Utf16CStr<'_>),
        Scalar::Bytes => quote!(&[u8]),
    }
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
        FieldType::Values(
            Scalar::Sid
            | Scalar::Str
            | Scalar::Utf16
            | Scalar::UnicodeString
            | Scalar::CStr
            | Scalar::Utf16CStr
            | Scalar::Bytes,
            ..,
        )
        | FieldType::Values(_, _, Shape::Counted | Shape::Fixed(_))
        | FieldType::Named(_) => quote!(#written),
        FieldType::Values(kind, _, Shape::One) => scalar(*kind),
    }
}

/// The names of an event's parameters.
pub fn idents(event: &Event) -> Vec<&Ident> {
    event.fields.iter().map(|field| &field.ident).collect()
}

/// A GUID as a constant.
pub fn guid(guid: Guid) -> TokenStream {
    let bytes = guid.0;
    quote!(::wdk_etw::Guid::from_bytes([#(#bytes),*]))
}
