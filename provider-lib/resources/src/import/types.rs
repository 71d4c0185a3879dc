//! Maps the fields of templates to the types of declarations.

use etw_manifest::{InType, OutType};
use proc_macro2::TokenStream;
use quote::quote;
use wdk_etw_schema::{Format, Scalar};

/// A type of a declaration, with the attributes of its field.
pub struct Type {
    pub attributes: TokenStream,
    /// The type or, for a reference, the referenced type.
    pub inner: TokenStream,
    pub is_borrowed: bool,
}

/// Returns a type by value.
pub fn plain(inner: TokenStream) -> Type {
    shown(TokenStream::new(), inner)
}

/// Returns a type by value, with an attribute for its presentation.
pub const fn shown(attributes: TokenStream, inner: TokenStream) -> Type {
    Type {
        attributes,
        inner,
        is_borrowed: false,
    }
}

/// Returns a type by reference.
pub fn borrowed(inner: TokenStream) -> Type {
    written(TokenStream::new(), inner)
}

/// Returns a type by reference, with an attribute for its presentation.
pub const fn written(attributes: TokenStream, inner: TokenStream) -> Type {
    Type {
        attributes,
        inner,
        is_borrowed: true,
    }
}

/// Returns the type of a single value, if declarations have one.
pub fn scalar(in_type: InType, out_type: OutType) -> Option<Type> {
    // The length of bytes decides their type.
    if in_type == InType::Binary {
        return None;
    }
    of_the_table(in_type, out_type).or_else(|| {
        let (in_type, out_type) = nearest(in_type, out_type)?;
        of_the_table(in_type, out_type)
    })
}

/// Returns the type that the table of field types has for an encoding and a presentation.
fn of_the_table(in_type: InType, out_type: OutType) -> Option<Type> {
    let (scalar, format) =
        imported().find(|(scalar, format)| scalar.manifest(*format) == (in_type, out_type))?;
    let attributes = match format {
        Format::Default => TokenStream::new(),
        Format::Hex => quote!(#[hex]),
        Format::Json => quote!(#[json]),
        Format::Xml => quote!(#[xml]),
        Format::Address => quote!(#[address]),
    };
    Some(Type {
        attributes,
        inner: scalar.name().parse().ok()?,
        is_borrowed: scalar.size().is_none(),
    })
}

/// Returns the types of declarations in the formats in which a manifest's field is imported: one
/// for each encoding and presentation.
fn imported() -> impl Iterator<Item = (Scalar, Format)> {
    let is_imported = |scalar: Scalar, format: Format| match (scalar, format) {
        // Each has the encoding of another type, which says no more than the manifest does.
        (Scalar::Usize | Scalar::Isize | Scalar::Luid | Scalar::UnicodeString, _)
        | (Scalar::I8 | Scalar::I16 | Scalar::I32 | Scalar::I64, Format::Hex)
        // The event of a manifest has the address.
        | (Scalar::Pointer, Format::Default) => false,
        _ => scalar.has_format(format),
    };
    Scalar::ALL.iter().flat_map(move |scalar| {
        let formats = Format::ALL.iter();
        let imported = formats.filter(move |format| is_imported(*scalar, **format));
        imported.map(|format| (*scalar, *format))
    })
}

/// Returns the encoding and presentation of the type in declarations that comes nearest to one
/// that the table does not have.
fn nearest(in_type: InType, out_type: OutType) -> Option<(InType, OutType)> {
    use {InType as In, OutType as Out};
    Some(match in_type {
        In::Null | In::Struct | In::Binary => return None,
        In::Boolean => (In::UInt32, Out::UnsignedInt),
        In::HexInt32 if matches!(out_type, Out::Win32Error | Out::NtStatus) => {
            (In::UInt32, out_type)
        }
        In::UInt32 | In::HexInt32 => (In::HexInt32, Out::HexInt32),
        In::UInt64 if out_type == Out::EtwTime => (In::UInt64, Out::UnsignedLong),
        In::UInt64 | In::HexInt64 => (In::HexInt64, Out::HexInt64),
        In::AnsiString | In::CountedAnsiString => (in_type, Out::Utf8),
        In::CountedBinary if out_type == Out::SocketAddress => (In::Binary, out_type),
        In::CountedBinary => (In::Binary, Out::HexBinary),
        In::Int8
        | In::UInt8
        | In::Int16
        | In::UInt16
        | In::Int32
        | In::Int64
        | In::Float
        | In::Double
        | In::Guid
        | In::Pointer
        | In::FileTime
        | In::SystemTime
        | In::Sid
        | In::UnicodeString
        | In::CountedUnicodeString => (in_type, *in_type.out_types().first()?),
    })
}

/// Returns true if arrays can have elements of the type.
pub fn repeats(kind: &Type) -> bool {
    let name = kind.inner.to_string();
    let mut scalars = Scalar::ALL.iter();
    !kind.is_borrowed && scalars.any(|scalar| scalar.name() == name && scalar.row().repeats)
}

#[cfg(test)]
mod tests {
    use wdk_etw_schema::Representation;

    use super::*;

    #[test]
    fn every_field_type_is_imported_as_itself() {
        for declared in Scalar::ALL {
            let (in_type, out_type) = declared.manifest(Format::Default);
            let imported = scalar(in_type, out_type).map(|kind| kind.inner.to_string());
            let expected = match declared {
                // A manifest describes these as numbers of 64 bits.
                Scalar::Usize | Scalar::Luid => Some("u64".to_owned()),
                Scalar::Isize => Some("i64".to_owned()),
                Scalar::UnicodeString => Some("[u16]".to_owned()),
                // The length of a `win:Binary` decides its type.
                _ if in_type == InType::Binary => None,
                other => Some(other.name().to_owned()),
            };
            assert_eq!(
                imported.map(|name| name.replace(' ', "")),
                expected,
                "{declared:?}"
            );
        }
    }

    #[test]
    fn every_encoding_is_imported_as_one_type() {
        let mut known = std::collections::BTreeMap::new();
        for (scalar, format) in imported() {
            let before = known.insert(scalar.manifest(format), scalar);
            assert_eq!(before, None, "{scalar:?}");
        }
        for in_type in InType::ALL {
            for out_type in in_type.out_types() {
                let is_imported = scalar(*in_type, *out_type).is_some();
                assert_eq!(
                    is_imported,
                    *in_type != InType::Binary,
                    "{in_type:?} {out_type:?}"
                );
            }
        }
    }

    #[test]
    fn presentations_without_a_type_are_imported_as_the_nearest() {
        use {InType as In, OutType as Out};
        for (in_type, out_type, expected) in [
            (In::UInt32, Out::ErrorCode, "# [hex] u32"),
            (In::HexInt32, Out::NtStatus, " NtStatus"),
            (In::HexInt32, Out::CodePointer, "# [hex] u32"),
            (In::Boolean, Out::Boolean, " u32"),
            (In::UInt64, Out::EtwTime, " u64"),
            (In::UInt64, Out::CodePointer, "# [hex] u64"),
            (In::HexInt64, Out::HexInt64, "# [hex] u64"),
            (In::Pointer, Out::UnsignedLong, "# [address] Pointer"),
            (In::UInt8, Out::String, " u8"),
            (In::AnsiString, Out::String, " CStr"),
            (In::CountedAnsiString, Out::Json, "# [json] str"),
            (In::FileTime, Out::DateTimeUtc, " FileTime"),
            (In::CountedBinary, Out::Ipv6, " [u8]"),
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
            let is_in_memory = matches!(declared.row().representation, Representation::Memory(_));
            assert_eq!(repeats(&plain(name)), is_in_memory, "{declared:?}");
        }
    }
}
