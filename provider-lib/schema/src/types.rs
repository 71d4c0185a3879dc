//! The types of fields: what a declaration may name, and how each is described in
//! both encodings.

use proc_macro2::Span;
use syn::{
    Attribute, Expr, ExprLit, Ident, Lit, Type, TypeArray, TypePath, TypeReference, TypeSlice,
};

use crate::attribute;

/// A type with a single value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(missing_docs, reason = "they are named after the Rust types")]
pub enum Scalar {
    I8,
    U8,
    I16,
    U16,
    I32,
    U32,
    I64,
    U64,
    Usize,
    Bool,
    F32,
    F64,
    Pointer,
    Guid,
    FileTime,
    SystemTime,
    NtStatus,
    HResult,
    Win32Error,
    ProcessId,
    ThreadId,
    Port,
    Ipv4Addr,
    Ipv6Addr,
    SocketAddr,
    Sid,
    Str,
    Utf16,
    UnicodeString,
    CStr,
    Utf16CStr,
    Bytes,
}

/// How a field is to be shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Format {
    /// As its type is.
    #[default]
    Default,
    /// In hexadecimal.
    Hex,
    /// Text that is JSON.
    Json,
    /// Text that is XML.
    Xml,
    /// A pointer whose address is told; others only tell whether they are null.
    Address,
}

/// How many values a field has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Shape {
    /// One.
    One,
    /// Always as many.
    Fixed(u16),
    /// As many as the event has.
    Counted,
}

/// The type of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldType {
    /// One or several values of a type of this crate's.
    Values(Scalar, Format, Shape),
    /// A type that the declaration makes: a map or a structure.
    Named(Ident),
}

/// The types that a declaration may name, with what they are described as: in
/// `TraceLogging`, the type and how it is shown; in a manifest, `inType` and `outType`.
struct Row {
    scalar: Scalar,
    name: &'static str,
    tracelogging: (u8, u8),
    manifest: (&'static str, &'static str),
}

const fn row(
    scalar: Scalar,
    name: &'static str,
    tracelogging: (u8, u8),
    manifest: (&'static str, &'static str),
) -> Row {
    Row {
        scalar,
        name,
        tracelogging,
        manifest,
    }
}

const ROWS: &[Row] = &[
    row(Scalar::I8, "i8", (3, 0), ("win:Int8", "xs:byte")),
    row(Scalar::U8, "u8", (4, 0), ("win:UInt8", "xs:unsignedByte")),
    row(Scalar::I16, "i16", (5, 0), ("win:Int16", "xs:short")),
    row(
        Scalar::U16,
        "u16",
        (6, 0),
        ("win:UInt16", "xs:unsignedShort"),
    ),
    row(Scalar::I32, "i32", (7, 0), ("win:Int32", "xs:int")),
    row(Scalar::U32, "u32", (8, 0), ("win:UInt32", "xs:unsignedInt")),
    row(Scalar::I64, "i64", (9, 0), ("win:Int64", "xs:long")),
    row(
        Scalar::U64,
        "u64",
        (10, 0),
        ("win:UInt64", "xs:unsignedLong"),
    ),
    row(
        Scalar::Usize,
        "usize",
        (10, 0),
        ("win:UInt64", "xs:unsignedLong"),
    ),
    row(Scalar::Bool, "bool", (4, 3), ("win:UInt8", "xs:boolean")),
    row(Scalar::F32, "F32", (11, 0), ("win:Float", "xs:float")),
    row(Scalar::F64, "F64", (12, 0), ("win:Double", "xs:double")),
    row(
        Scalar::Pointer,
        "Pointer",
        (21, 0),
        ("win:Pointer", "win:HexInt64"),
    ),
    row(Scalar::Guid, "Guid", (15, 0), ("win:GUID", "xs:GUID")),
    row(
        Scalar::FileTime,
        "FileTime",
        (17, 0),
        ("win:FILETIME", "xs:dateTime"),
    ),
    row(
        Scalar::SystemTime,
        "SystemTime",
        (18, 0),
        ("win:SYSTEMTIME", "xs:dateTime"),
    ),
    row(
        Scalar::NtStatus,
        "NtStatus",
        (8, 14),
        ("win:UInt32", "win:NTSTATUS"),
    ),
    row(
        Scalar::HResult,
        "HResult",
        (7, 15),
        ("win:Int32", "win:HResult"),
    ),
    row(
        Scalar::Win32Error,
        "Win32Error",
        (8, 13),
        ("win:UInt32", "win:Win32Error"),
    ),
    row(
        Scalar::ProcessId,
        "ProcessId",
        (8, 5),
        ("win:UInt32", "win:PID"),
    ),
    row(
        Scalar::ThreadId,
        "ThreadId",
        (8, 6),
        ("win:UInt32", "win:TID"),
    ),
    row(Scalar::Port, "Port", (6, 7), ("win:UInt16", "win:Port")),
    row(
        Scalar::Ipv4Addr,
        "Ipv4Addr",
        (8, 8),
        ("win:UInt32", "win:IPv4"),
    ),
    row(
        Scalar::Ipv6Addr,
        "Ipv6Addr",
        (14, 9),
        ("win:Binary", "win:IPv6"),
    ),
    row(
        Scalar::SocketAddr,
        "SocketAddr",
        (14, 10),
        ("win:Binary", "win:SocketAddress"),
    ),
    row(Scalar::Sid, "Sid", (19, 0), ("win:SID", "xs:string")),
    row(
        Scalar::Str,
        "str",
        (23, 35),
        ("win:CountedAnsiString", "win:Utf8"),
    ),
    row(
        Scalar::Utf16,
        "[u16]",
        (22, 0),
        ("win:CountedUnicodeString", "xs:string"),
    ),
    row(
        Scalar::UnicodeString,
        "UnicodeString",
        (22, 0),
        ("win:CountedUnicodeString", "xs:string"),
    ),
    row(
        Scalar::CStr,
        "CStr",
        (2, 35),
        ("win:AnsiString", "win:Utf8"),
    ),
    row(
        Scalar::Utf16CStr,
        "Utf16CStr",
        (1, 0),
        ("win:UnicodeString", "xs:string"),
    ),
    row(
        Scalar::Bytes,
        "[u8]",
        (14, 0),
        ("win:Binary", "xs:hexBinary"),
    ),
];

/// The names that a declaration cannot give types of its own.
pub fn type_names() -> impl Iterator<Item = &'static str> {
    ROWS.iter().map(|row| row.name)
}

impl Scalar {
    fn row(self) -> &'static Row {
        // Every scalar has a row; a test sees to it.
        ROWS.iter()
            .find(|row| row.scalar == self)
            .unwrap_or(&ROWS[0])
    }

    /// The name that a declaration has for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.row().name
    }

    fn of_name(name: &str) -> Option<Self> {
        ROWS.iter()
            .find(|row| row.name == name && !row.name.starts_with('['))
            .map(|row| row.scalar)
    }

    /// The bytes of a value, if it always has as many.
    #[must_use]
    pub const fn size(self) -> Option<usize> {
        Some(match self {
            Self::I8 | Self::U8 | Self::Bool => 1,
            Self::I16 | Self::U16 | Self::Port => 2,
            Self::I32
            | Self::U32
            | Self::F32
            | Self::NtStatus
            | Self::HResult
            | Self::Win32Error
            | Self::ProcessId
            | Self::ThreadId
            | Self::Ipv4Addr => 4,
            Self::I64 | Self::U64 | Self::Usize | Self::F64 | Self::Pointer | Self::FileTime => 8,
            Self::Guid | Self::SystemTime | Self::Ipv6Addr => 16,
            Self::SocketAddr
            | Self::Sid
            | Self::Str
            | Self::Utf16
            | Self::UnicodeString
            | Self::CStr
            | Self::Utf16CStr
            | Self::Bytes => return None,
        })
    }

    const fn is_integer(self) -> bool {
        matches!(
            self,
            Self::I8
                | Self::U8
                | Self::I16
                | Self::U16
                | Self::I32
                | Self::U32
                | Self::I64
                | Self::U64
                | Self::Usize
        )
    }

    /// Whether an array of it can be written as it lies in memory.
    const fn can_repeat(self) -> bool {
        self.is_integer() && !matches!(self, Self::Usize)
            || matches!(
                self,
                Self::F32
                    | Self::F64
                    | Self::Guid
                    | Self::FileTime
                    | Self::SystemTime
                    | Self::NtStatus
                    | Self::HResult
                    | Self::Win32Error
                    | Self::ProcessId
                    | Self::ThreadId
            )
    }

    /// `InMeta` and `OutMeta` of a `TraceLogging` description (`TlgIn…` and `TlgOut…` of
    /// TraceLoggingProvider.h).
    #[must_use]
    pub fn tracelogging(self, format: Format) -> (u8, u8) {
        match (format, self) {
            (Format::Hex, Self::I8 | Self::U8) => (4, 4),
            (Format::Hex, Self::I16 | Self::U16) => (6, 4),
            (Format::Hex, Self::I32 | Self::U32) => (20, 0),
            (Format::Hex, Self::I64 | Self::U64 | Self::Usize) => (21, 0),
            (Format::Json, Self::Utf16 | Self::UnicodeString) => (22, 12),
            (Format::Xml, Self::Utf16 | Self::UnicodeString) => (22, 11),
            (Format::Json, _) => (23, 12),
            (Format::Xml, _) => (23, 11),
            _ => self.row().tracelogging,
        }
    }

    /// `inType` and `outType` of a manifest.
    #[must_use]
    pub fn manifest(self, format: Format) -> (&'static str, &'static str) {
        match (format, self) {
            (Format::Hex, Self::I8 | Self::U8) => ("win:UInt8", "win:HexInt8"),
            (Format::Hex, Self::I16 | Self::U16) => ("win:UInt16", "win:HexInt16"),
            (Format::Hex, Self::I32 | Self::U32) => ("win:HexInt32", "win:HexInt32"),
            (Format::Hex, Self::I64 | Self::U64 | Self::Usize) => ("win:HexInt64", "win:HexInt64"),
            (Format::Json, _) => (self.row().manifest.0, "win:Json"),
            (Format::Xml, _) => (self.row().manifest.0, "win:Xml"),
            _ => self.row().manifest,
        }
    }
}

/// What the attributes on a field say.
#[derive(Debug, Default)]
pub struct FieldOptions {
    pub format: Format,
    pub format_span: Option<Span>,
    pub array: Option<Span>,
    pub name: Option<String>,
    pub tag: u32,
    pub docs: Vec<String>,
}

impl FieldOptions {
    pub fn parse(attributes: &[Attribute]) -> syn::Result<Self> {
        let mut options = Self::default();
        for attribute in attributes {
            let Some(word) = attribute.path().get_ident() else {
                return Err(unknown(attribute));
            };
            let format = match word.to_string().as_str() {
                "doc" => {
                    options.docs.extend(attribute::doc(attribute));
                    continue;
                }
                "name" => {
                    options.name = Some(attribute::name(attribute)?);
                    continue;
                }
                "tag" => {
                    options.tag = attribute::tag(attribute)?;
                    continue;
                }
                "array" => {
                    options.array = Some(word.span());
                    continue;
                }
                "hex" => Format::Hex,
                "json" => Format::Json,
                "xml" => Format::Xml,
                "address" => Format::Address,
                _ => return Err(unknown(attribute)),
            };
            attribute.meta.require_path_only()?;
            options.format = format;
            options.format_span = Some(word.span());
        }
        Ok(options)
    }
}

fn unknown(attribute: &Attribute) -> syn::Error {
    syn::Error::new_spanned(
        attribute.path(),
        "a field has no such attribute; there are `hex`, `json`, `xml`, `address`, `array`, \
         `name = \"…\"` and `tag = 0x…`",
    )
}

impl FieldType {
    /// Reads a type, with what the field's attributes say of it.
    pub(crate) fn parse(written: &Type, options: &FieldOptions) -> syn::Result<Self> {
        let (scalar, shape) = match resolve(written, options)? {
            Ok(values) => values,
            Err(name) => {
                if let Some(span) = options.format_span {
                    return Err(syn::Error::new(
                        span,
                        "a map or a structure is shown as it is declared; remove this",
                    ));
                }
                return Ok(Self::Named(name));
            }
        };
        let span = options.format_span.unwrap_or_else(Span::call_site);
        let fits = match options.format {
            Format::Default => true,
            Format::Hex => scalar.is_integer(),
            Format::Json | Format::Xml => {
                shape == Shape::One
                    && matches!(scalar, Scalar::Str | Scalar::Utf16 | Scalar::UnicodeString)
            }
            Format::Address => scalar == Scalar::Pointer,
        };
        if !fits {
            return Err(syn::Error::new(
                span,
                "the attribute does not fit the field's type: `hex` is for integers, `json` and \
                 `xml` for text that is not NUL-terminated, `address` for a `Pointer`",
            ));
        }
        if shape != Shape::One && !scalar.can_repeat() {
            return Err(syn::Error::new_spanned(
                written,
                format!(
                    "there are no arrays of `{}`: its bytes in memory are not what an event has; \
                     make an array of integers of it",
                    scalar.name()
                ),
            ));
        }
        Ok(Self::Values(scalar, options.format, shape))
    }
}

/// The scalar and the shape of a type, or the name of one that must be the
/// declaration's own.
fn resolve(written: &Type, options: &FieldOptions) -> syn::Result<Result<(Scalar, Shape), Ident>> {
    match written {
        Type::Reference(TypeReference {
            elem,
            mutability: None,
            ..
        }) => match &**elem {
            Type::Slice(TypeSlice { elem, .. }) => {
                let scalar = element(elem)?;
                Ok(Ok(match (scalar, options.array) {
                    (Scalar::U8, None) => (Scalar::Bytes, Shape::One),
                    (Scalar::U16, None) => (Scalar::Utf16, Shape::One),
                    _ => (scalar, Shape::Counted),
                }))
            }
            other => resolve(other, options),
        },
        Type::Array(TypeArray { elem, len, .. }) => {
            let Expr::Lit(ExprLit {
                lit: Lit::Int(count),
                ..
            }) = len
            else {
                return Err(syn::Error::new_spanned(
                    len,
                    "the length of an array is part of the event's layout: write it as a number",
                ));
            };
            let count: u16 = count.base10_parse().unwrap_or(0);
            if count == 0 {
                return Err(syn::Error::new_spanned(
                    len,
                    "an array of a fixed length has 1 to 65,535 elements",
                ));
            }
            Ok(Ok((element(elem)?, Shape::Fixed(count))))
        }
        Type::Path(TypePath { qself: None, path }) => {
            let Some(last) = path.segments.last() else {
                return Err(no_field_type(written));
            };
            let name = last.ident.to_string();
            match (Scalar::of_name(&name), name.as_str()) {
                (Some(scalar), _) => Ok(Ok((scalar, Shape::One))),
                (None, "f32" | "f64") => Err(syn::Error::new_spanned(
                    written,
                    format!(
                        "write `{}`, which has the number's bits: kernel code keeps off the \
                         registers that `{name}` is passed in",
                        name.to_uppercase()
                    ),
                )),
                (None, "u128" | "i128" | "isize" | "char" | "String" | "Vec") => {
                    Err(no_field_type(written))
                }
                // It may have a lifetime, as a structure that borrows has.
                (None, _) if path.segments.len() == 1 => Ok(Err(last.ident.clone())),
                (None, _) => Err(no_field_type(written)),
            }
        }
        _ => Err(no_field_type(written)),
    }
}

fn element(written: &Type) -> syn::Result<Scalar> {
    if let Type::Path(TypePath { qself: None, path }) = written
        && let Some(last) = path.segments.last()
        && let Some(scalar) = Scalar::of_name(&last.ident.to_string())
    {
        return Ok(scalar);
    }
    Err(syn::Error::new_spanned(
        written,
        "an array has elements of a type of fixed size: an integer, `F32`, `F64`, `Guid`, \
         `FileTime`, `SystemTime`, `NtStatus`, `HResult`, `Win32Error`, `ProcessId` or `ThreadId`",
    ))
}

fn no_field_type(written: &Type) -> syn::Error {
    let names: Vec<_> = ROWS
        .iter()
        .map(|row| match row.scalar {
            Scalar::Str | Scalar::Utf16 | Scalar::Bytes | Scalar::CStr | Scalar::Sid => {
                format!("`&{}`", row.name)
            }
            _ => format!("`{}`", row.name),
        })
        .collect();
    syn::Error::new_spanned(
        written,
        format!(
            "not the type of a field; there are {}, arrays (`[u32; 4]`, `&[u32]`), and the maps \
             and structures that the declaration makes",
            names.join(", ")
        ),
    )
}

/// An error for a name that no map or structure has.
pub fn undeclared(name: &Ident) -> syn::Error {
    syn::Error::new(
        name.span(),
        format!(
            "`{name}` is no type of a field, and the declaration has no map or structure of that \
             name; it could have `#[map] enum {name} {{ … }}`"
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_has_one_row() {
        for (at, row) in ROWS.iter().enumerate() {
            assert_eq!(row.scalar as usize, at, "{}", row.name);
        }
        assert_eq!(ROWS.len(), Scalar::Bytes as usize + 1);
    }

    fn parsed(text: &str, options: &FieldOptions) -> Result<FieldType, String> {
        let written: Type = syn::parse_str(text).unwrap();
        FieldType::parse(&written, options).map_err(|error| error.to_string())
    }

    #[test]
    fn slices_are_bytes_text_or_arrays() {
        let plain = FieldOptions::default();
        let array = FieldOptions {
            array: Some(Span::call_site()),
            ..FieldOptions::default()
        };
        let values = |scalar, shape| Ok(FieldType::Values(scalar, Format::Default, shape));
        assert_eq!(parsed("&[u8]", &plain), values(Scalar::Bytes, Shape::One));
        assert_eq!(parsed("&[u8]", &array), values(Scalar::U8, Shape::Counted));
        assert_eq!(parsed("&[u16]", &plain), values(Scalar::Utf16, Shape::One));
        assert_eq!(
            parsed("&[u32]", &plain),
            values(Scalar::U32, Shape::Counted)
        );
        assert_eq!(
            parsed("[u8; 6]", &plain),
            values(Scalar::U8, Shape::Fixed(6))
        );
        for bad in [
            "&[bool]",
            "[u8; 0]",
            "[u8; 70000]",
            "&mut u8",
            "f64",
            "String",
            "&[&str]",
            "(u8, u8)",
        ] {
            assert!(parsed(bad, &plain).is_err(), "{bad}");
        }
    }
}
