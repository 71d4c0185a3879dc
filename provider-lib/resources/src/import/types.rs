//! Maps the fields of templates to the types of declarations.

use etw_manifest::{InType, OutType};
use proc_macro2::TokenStream;
use quote::quote;
use wdk_etw_schema::Scalar;

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
    use {InType as In, OutType as Out};
    Some(match (in_type, out_type) {
        (In::Int8, _) => plain(quote!(i8)),
        (In::UInt8, Out::HexInt8) => shown(quote!(#[hex]), quote!(u8)),
        (In::UInt8, Out::Boolean) => plain(quote!(bool)),
        (In::UInt8, _) => plain(quote!(u8)),
        (In::Int16, _) => plain(quote!(i16)),
        (In::UInt16, Out::Port) => plain(quote!(Port)),
        (In::UInt16, Out::HexInt16) => shown(quote!(#[hex]), quote!(u16)),
        (In::UInt16, _) => plain(quote!(u16)),
        (In::Int32, Out::HResult) => plain(quote!(HResult)),
        (In::Int32, _) => plain(quote!(i32)),
        (In::UInt32, Out::Pid) => plain(quote!(ProcessId)),
        (In::UInt32, Out::Tid) => plain(quote!(ThreadId)),
        (In::UInt32, Out::Ipv4) => plain(quote!(Ipv4Addr)),
        (In::UInt32 | In::HexInt32, Out::Win32Error) => plain(quote!(Win32Error)),
        (In::UInt32 | In::HexInt32, Out::NtStatus) => plain(quote!(NtStatus)),
        (In::UInt32, Out::UnsignedInt) | (In::Boolean, _) => plain(quote!(u32)),
        (In::UInt32 | In::HexInt32, _) => shown(quote!(#[hex]), quote!(u32)),
        (In::Int64, _) => plain(quote!(i64)),
        (In::UInt64, Out::UnsignedLong | Out::EtwTime) => plain(quote!(u64)),
        (In::UInt64 | In::HexInt64, _) => shown(quote!(#[hex]), quote!(u64)),
        (In::Float, _) => plain(quote!(F32)),
        (In::Double, _) => plain(quote!(F64)),
        (In::Guid, _) => plain(quote!(Guid)),
        (In::Pointer, _) => shown(quote!(#[address]), quote!(Pointer)),
        (In::FileTime, _) => plain(quote!(FileTime)),
        (In::SystemTime, _) => plain(quote!(SystemTime)),
        (In::Sid, _) => borrowed(quote!(Sid)),
        (In::UnicodeString, _) => borrowed(quote!(Utf16CStr)),
        (In::AnsiString, _) => borrowed(quote!(CStr)),
        (In::CountedUnicodeString, Out::Xml) => written(quote!(#[xml]), quote!([u16])),
        (In::CountedUnicodeString, Out::Json) => written(quote!(#[json]), quote!([u16])),
        (In::CountedUnicodeString, _) => borrowed(quote!([u16])),
        (In::CountedAnsiString, Out::Xml) => written(quote!(#[xml]), quote!(str)),
        (In::CountedAnsiString, Out::Json) => written(quote!(#[json]), quote!(str)),
        (In::CountedAnsiString, _) => borrowed(quote!(str)),
        (In::CountedBinary, Out::SocketAddress) => borrowed(quote!(SocketAddr)),
        (In::CountedBinary, _) => borrowed(quote!([u8])),
        (In::Null | In::Binary | In::Struct, _) => return None,
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
    use wdk_etw_schema::{Format, Representation};

    use super::*;

    #[test]
    fn every_field_type_is_imported_as_itself() {
        for declared in Scalar::ALL {
            let (in_type, out_type) = declared.manifest(Format::Default);
            let imported = scalar(in_type, out_type).map(|kind| kind.inner.to_string());
            let expected = match declared {
                // A manifest describes these as numbers of 64 bits.
                Scalar::Usize | Scalar::Luid => Some("u64".to_owned()),
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
    fn arrays_can_have_what_lies_in_memory_as_in_the_event() {
        for declared in Scalar::ALL {
            let name: TokenStream = declared.name().parse().unwrap();
            let is_in_memory = matches!(declared.row().representation, Representation::Memory(_));
            assert_eq!(repeats(&plain(name)), is_in_memory, "{declared:?}");
        }
    }
}
