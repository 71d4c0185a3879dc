//! The types that a declaration has for the fields of templates.

use etw_manifest::{InType, out_type_name};
use proc_macro2::TokenStream;
use quote::quote;

/// A type of a declaration, with the attributes that stand before the field.
pub struct Type {
    pub attributes: TokenStream,
    /// The type, or what is borrowed.
    pub inner: TokenStream,
    pub is_borrowed: bool,
}

/// A type by value.
pub fn plain(inner: TokenStream) -> Type {
    shown(TokenStream::new(), inner)
}

/// A type by value, shown as an attribute says.
pub const fn shown(attributes: TokenStream, inner: TokenStream) -> Type {
    Type {
        attributes,
        inner,
        is_borrowed: false,
    }
}

/// A type by reference.
pub fn borrowed(inner: TokenStream) -> Type {
    written(TokenStream::new(), inner)
}

/// A type by reference, shown as an attribute says.
pub const fn written(attributes: TokenStream, inner: TokenStream) -> Type {
    Type {
        attributes,
        inner,
        is_borrowed: true,
    }
}

/// The type of a single value, if a declaration has one.
pub fn scalar(in_type: &InType, out_type: u8) -> Option<Type> {
    let out = out_type_name(out_type).unwrap_or_default();
    Some(match (in_type.name, out) {
        ("win:Int8", _) => plain(quote!(i8)),
        ("win:UInt8", "win:HexInt8") => shown(quote!(#[hex]), quote!(u8)),
        ("win:UInt8", "xs:boolean") => plain(quote!(bool)),
        ("win:UInt8", _) => plain(quote!(u8)),
        ("win:Int16", _) => plain(quote!(i16)),
        ("win:UInt16", "win:Port") => plain(quote!(Port)),
        ("win:UInt16", "win:HexInt16") => shown(quote!(#[hex]), quote!(u16)),
        ("win:UInt16", _) => plain(quote!(u16)),
        ("win:Int32", "win:HResult") => plain(quote!(HResult)),
        ("win:Int32", _) => plain(quote!(i32)),
        ("win:UInt32", "win:PID") => plain(quote!(ProcessId)),
        ("win:UInt32", "win:TID") => plain(quote!(ThreadId)),
        ("win:UInt32", "win:IPv4") => plain(quote!(Ipv4Addr)),
        ("win:UInt32" | "win:HexInt32", "win:Win32Error") => plain(quote!(Win32Error)),
        ("win:UInt32" | "win:HexInt32", "win:NTSTATUS") => plain(quote!(NtStatus)),
        ("win:UInt32", "xs:unsignedInt") | ("win:Boolean", _) => plain(quote!(u32)),
        ("win:UInt32" | "win:HexInt32", _) => shown(quote!(#[hex]), quote!(u32)),
        ("win:Int64", _) => plain(quote!(i64)),
        ("win:UInt64", "xs:unsignedLong" | "win:ETWTIME") => plain(quote!(u64)),
        ("win:UInt64" | "win:HexInt64", _) => shown(quote!(#[hex]), quote!(u64)),
        ("win:Float", _) => plain(quote!(F32)),
        ("win:Double", _) => plain(quote!(F64)),
        ("win:GUID", _) => plain(quote!(Guid)),
        ("win:Pointer", _) => shown(quote!(#[address]), quote!(Pointer)),
        ("win:FILETIME", _) => plain(quote!(FileTime)),
        ("win:SYSTEMTIME", _) => plain(quote!(SystemTime)),
        ("win:SID", _) => borrowed(quote!(Sid)),
        ("win:UnicodeString", _) => borrowed(quote!(Utf16CStr)),
        ("win:AnsiString", _) => borrowed(quote!(CStr)),
        ("win:CountedUnicodeString", "win:Xml") => written(quote!(#[xml]), quote!([u16])),
        ("win:CountedUnicodeString", "win:Json") => written(quote!(#[json]), quote!([u16])),
        ("win:CountedUnicodeString", _) => borrowed(quote!([u16])),
        ("win:CountedAnsiString", "win:Xml") => written(quote!(#[xml]), quote!(str)),
        ("win:CountedAnsiString", "win:Json") => written(quote!(#[json]), quote!(str)),
        ("win:CountedAnsiString", _) => borrowed(quote!(str)),
        ("win:CountedBinary", "win:SocketAddress") => borrowed(quote!(SocketAddr)),
        ("win:CountedBinary", _) => borrowed(quote!([u8])),
        _ => return None,
    })
}

/// Returns whether an array can have the type.
pub fn repeats(kind: &Type) -> bool {
    const TYPES: &[&str] = &[
        "i8",
        "u8",
        "i16",
        "u16",
        "i32",
        "u32",
        "i64",
        "u64",
        "F32",
        "F64",
        "Guid",
        "FileTime",
        "SystemTime",
        "NtStatus",
        "HResult",
        "Win32Error",
        "ProcessId",
        "ThreadId",
    ];
    !kind.is_borrowed && TYPES.contains(&kind.inner.to_string().as_str())
}
