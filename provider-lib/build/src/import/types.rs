//! Maps the fields of templates to the types of declarations.

use etw_manifest::{InType, OutType};
use proc_macro2::{Literal, TokenStream};
use quote::quote;
use wdk_etw_schema::{Format, Representation, Scalar};

/// A type in a declaration, with the attributes of its field.
pub struct Type {
    pub attributes: TokenStream,
    /// The type or, for a reference, the referenced type.
    pub inner: TokenStream,
    pub is_borrowed: bool,
    /// True if the type itself has a lifetime, such as `Sid`.
    pub has_lifetime: bool,
}

/// Returns a type by value.
pub fn plain(inner: TokenStream) -> Type {
    shown(TokenStream::new(), inner)
}

/// Returns a type by value, with an attribute for its presentation.
pub const fn shown(attributes: TokenStream, inner: TokenStream) -> Type {
    Type { attributes, inner, is_borrowed: false, has_lifetime: false }
}

/// Returns a type by reference.
pub fn borrowed(inner: TokenStream) -> Type {
    written(TokenStream::new(), inner)
}

/// Returns a type by reference, with an attribute for its presentation.
pub const fn written(attributes: TokenStream, inner: TokenStream) -> Type {
    Type { attributes, inner, is_borrowed: true, has_lifetime: false }
}

/// Returns the type of a single value, if declarations have one.
pub fn scalar(in_type: InType, out_type: OutType) -> Option<Type> {
    // The type of bytes depends on their length.
    if in_type == InType::Binary {
        return None;
    }
    of_the_table(in_type, out_type)
        .or_else(|| with_out_type(in_type, out_type))
        .or_else(|| (in_type == InType::CountedBinary).then(|| counted_bytes(out_type)))
}

/// Returns the type that the field-type table lists for an encoding and a presentation.
fn of_the_table(in_type: InType, out_type: OutType) -> Option<Type> {
    let (scalar, format) =
        imported().find(|(scalar, format)| scalar.manifest(*format) == (in_type, out_type))?;
    typed(scalar, attribute(format))
}

/// Returns a type with this encoding, and an attribute for the presentation.
fn with_out_type(in_type: InType, out_type: OutType) -> Option<Type> {
    let is_possible = in_type.out_types().contains(&out_type);
    let (scalar, format) =
        imported().find(|(scalar, format)| is_possible && scalar.manifest(*format).0 == in_type)?;
    let (format, name) = (attribute(format), out_type.name());
    typed(scalar, quote!(#format #[out_type = #name]))
}

fn typed(scalar: Scalar, attributes: TokenStream) -> Option<Type> {
    Some(Type {
        attributes,
        inner: scalar.name().parse().ok()?,
        is_borrowed: scalar.row().rust.starts_with('&'),
        has_lifetime: scalar.row().rust.ends_with("<'_>"),
    })
}

fn attribute(format: Format) -> TokenStream {
    match format {
        Format::Default => TokenStream::new(),
        Format::Hex => quote!(#[hex]),
        Format::Json => quote!(#[json]),
        Format::Xml => quote!(#[xml]),
        Format::Address => quote!(#[address]),
    }
}

/// Returns the type of bytes of variable length.
pub fn bytes(out_type: OutType) -> Type {
    match out_type {
        OutType::SocketAddress => plain(quote!(SocketAddr)),
        OutType::Ipv6 | OutType::Pkcs7WithTypeInfo => {
            let name = out_type.name();
            written(quote!(#[out_type = #name]), quote!([u8]))
        }
        _ => borrowed(quote!([u8])),
    }
}

/// Returns the type of bytes that contain their length.
fn counted_bytes(out_type: OutType) -> Type {
    let mut kind = bytes(out_type);
    let attributes = kind.attributes;
    kind.attributes = quote!(#[counted] #attributes);
    kind
}

/// Returns the type of bytes or text of a fixed length.
pub fn block(in_type: InType, out_type: OutType, length: u16) -> Type {
    let (attribute, element, usual) = match in_type {
        InType::UnicodeString => (quote!(#[text]), quote!(u16), OutType::String),
        InType::AnsiString => (quote!(#[text]), quote!(u8), OutType::String),
        _ => (quote!(#[bytes]), quote!(u8), OutType::HexBinary),
    };
    let name = out_type.name();
    let shown_as = (out_type != usual).then(|| quote!(#[out_type = #name]));
    let length = Literal::u16_unsuffixed(length);
    shown(quote!(#attribute #shown_as), quote!([#element; #length]))
}

/// Returns the type of text whose length is in the field before it.
pub fn counted_text(in_type: InType, out_type: OutType) -> Option<Type> {
    let (inner, usual) = match in_type {
        InType::UnicodeString => (quote!([u16]), OutType::String),
        InType::AnsiString => (quote!(str), OutType::Utf8),
        _ => return None,
    };
    let attributes = match out_type {
        OutType::Json => quote!(#[json]),
        OutType::Xml => quote!(#[xml]),
        other if other == usual => TokenStream::new(),
        other => {
            let name = other.name();
            quote!(#[out_type = #name])
        }
    };
    Some(written(attributes, inner))
}

/// Returns the declaration types and formats that imports use. Of several types with the same encoding and
/// presentation, the first of the table counts: importing a field as that type loses nothing.
fn imported() -> impl Iterator<Item = (Scalar, Format)> {
    let is_imported = |scalar: Scalar, format: Format| match (scalar, format) {
        // In a manifest, a pointer is the address itself.
        (Scalar::Pointer, Format::Default) => false,
        // A manifest's types in hexadecimal are unsigned.
        (scalar, Format::Hex) if scalar.is_signed() => false,
        _ => scalar.has_format(format),
    };
    Scalar::ALL.iter().flat_map(move |scalar| {
        let formats = Format::ALL.iter();
        let imported = formats.filter(move |format| is_imported(*scalar, **format));
        imported.map(|format| (*scalar, *format))
    })
}

/// Returns the largest value of an integer type.
pub fn max_of(width: &str) -> u32 {
    match width {
        "u8" => u32::from(u8::MAX),
        "u16" => u32::from(u16::MAX),
        _ => u32::MAX,
    }
}

/// Returns true if arrays can have elements of the type.
pub fn repeats(kind: &Type) -> bool {
    let name = kind.inner.to_string();
    let mut scalars = Scalar::ALL.iter();
    // An imported pointer is the address itself.
    let repeats = |scalar: &Scalar| scalar.row().repeats || *scalar == Scalar::Pointer;
    !kind.is_borrowed && scalars.any(|scalar| scalar.name() == name && repeats(scalar))
}

/// Returns true if a value of the type has the same bytes in memory as in an event.
pub fn is_in_memory(name: &str) -> bool {
    let known = Scalar::ALL.iter().find(|scalar| scalar.name() == name);
    // An imported pointer is the address itself.
    known.is_some_and(|scalar| {
        matches!(
            scalar.row().representation,
            Representation::Memory(_)
                | Representation::Cast8
                | Representation::Cast64
                | Representation::Pointer
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_type_is_imported_as_the_first_with_its_encoding() {
        let imported = |declared: Scalar| {
            let (in_type, out_type) = declared.manifest(Format::Default);
            scalar(in_type, out_type).map(|kind| kind.inner.to_string().replace(' ', ""))
        };
        let manifest = |scalar: Scalar| scalar.manifest(Format::Default);
        for declared in Scalar::ALL.iter().copied() {
            let first = Scalar::ALL.iter().find(|other| {
                let mut formats = Format::ALL.iter().filter(|format| other.has_format(**format));
                let is_imported = |format| format != Format::Hex || !other.is_signed();
                formats.any(|format| {
                    is_imported(*format) && other.manifest(*format) == manifest(declared)
                })
            });
            // The type of a `win:Binary` depends on its length.
            let first = first.filter(|_| manifest(declared).0 != InType::Binary);
            assert_eq!(imported(declared), first.map(|one| one.name().to_owned()), "{declared:?}");
        }
        for (declared, expected) in [
            (Scalar::Usize, "u64"),
            (Scalar::Isize, "i64"),
            (Scalar::UnicodeString, "[u16]"),
            (Scalar::Arguments, "str"),
        ] {
            assert_eq!(imported(declared).as_deref(), Some(expected));
        }
        // Both rows of hexadecimal numbers of 64 bits are one type's.
        let (in_type, out_type) = Scalar::Luid.manifest(Format::Default);
        let luid = scalar(in_type, out_type).unwrap();
        assert_eq!(
            (luid.inner.to_string(), luid.attributes.to_string()),
            ("u64".to_owned(), "# [hex]".to_owned())
        );
    }

    #[test]
    fn every_encoding_is_imported_with_the_presentations_that_no_type_has() {
        let types: Vec<_> = imported().map(|(scalar, format)| scalar.manifest(format)).collect();
        for in_type in InType::ALL {
            for out_type in in_type.out_types() {
                let kind = scalar(*in_type, *out_type);
                assert_eq!(kind.is_some(), *in_type != InType::Binary, "{in_type:?} {out_type:?}");
                let Some(kind) = kind.filter(|_| *in_type != InType::CountedBinary) else {
                    continue;
                };
                let attributes = kind.attributes.to_string();
                let presentation = format!("# [out_type = {:?}]", out_type.name());
                let is_of_a_type = types.contains(&(*in_type, *out_type));
                assert_eq!(
                    attributes.contains(&presentation),
                    !is_of_a_type,
                    "{in_type:?} {out_type:?}"
                );
            }
        }
    }

    #[test]
    fn other_presentations_are_attributes() {
        use {InType as In, OutType as Out};
        for (in_type, out_type, expected) in [
            (In::HexInt32, Out::NtStatus, "# [hex] # [out_type = \"win:NTSTATUS\"] u32"),
            (In::Boolean, Out::Boolean, " Bool32"),
            (In::UInt64, Out::HexInt64, "# [out_type = \"win:HexInt64\"] u64"),
            (In::HexInt64, Out::HexInt64, "# [hex] u64"),
            (
                In::Pointer,
                Out::UnsignedLong,
                "# [address] # [out_type = \"xs:unsignedLong\"] Pointer",
            ),
            (In::AnsiString, Out::String, "# [out_type = \"xs:string\"] CStr"),
            (In::CountedAnsiString, Out::Json, "# [json] str"),
            (In::CountedBinary, Out::Ipv6, "# [counted] # [out_type = \"win:IPv6\"] [u8]"),
        ] {
            let kind = scalar(in_type, out_type).unwrap();
            let text = format!("{} {}", kind.attributes, kind.inner);
            assert_eq!(text, expected, "{in_type:?} {out_type:?}");
        }
    }

    #[test]
    fn arrays_can_have_elements_whose_memory_is_their_encoding() {
        for declared in Scalar::ALL {
            let name: TokenStream = declared.name().parse().unwrap();
            let is_in_memory = matches!(
                declared.row().representation,
                Representation::Memory(_) | Representation::Pointer
            );
            assert_eq!(repeats(&plain(name)), is_in_memory, "{declared:?}");
        }
    }
}
