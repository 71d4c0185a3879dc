//! The single table of field types.
//!
//! The table defines everything that depends on a field's type: the names in declarations, the type
//! of the parameter in generated code, the metadata of `TraceLogging` events, `inType` and
//! `outType` of manifests, the conversion of a value to bytes, the error messages and the table in
//! the documentation of `wdk_etw::provider`. CONTRIBUTING.md lists all steps for adding a type; a
//! row in this table is the first.

use etw_wire::{InType as In, OutType as Out, TlgOutType as Tlg};

use super::format::Format;
use Representation::{
    BigEndian16, Cast8, Cast64, Counted, Memory, Octets4, Octets16, Pointer, Sid, SocketAddr,
    Terminated,
};

/// The conversion of a value to its bytes in an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Representation {
    /// Its in-memory bytes; the number is their count. The type has no padding.
    Memory(usize),
    /// One byte: `value as u8`.
    Cast8,
    /// Eight bytes: `value as u64`.
    Cast64,
    /// Eight bytes: the address, or only whether it is null.
    Pointer,
    /// Two bytes in big-endian order: `value.0.to_be_bytes()`.
    BigEndian16,
    /// Four bytes: `value.octets()`.
    Octets4,
    /// Sixteen bytes: `value.octets()`. `TraceLogging` puts their count before them.
    Octets16,
    /// A string or bytes, after a 16-bit count of bytes.
    Counted(Text),
    /// A NUL-terminated string.
    Terminated(Text),
    /// A security identifier, which contains its own size.
    Sid,
    /// A `SOCKADDR` structure, after a 16-bit count of bytes.
    SocketAddr,
}

/// The source of a value of variable size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Text {
    /// `&str`.
    Str,
    /// `&[u16]`.
    Utf16,
    /// A type with a method `units()`, which returns `&[u16]`.
    UnicodeString,
    /// `&CStr`.
    CStr,
    /// `fmt::Arguments`, which is formatted as UTF-8.
    Formatted,
    /// `&[u8]`.
    Bytes,
}

impl Text {
    /// Returns the size in bytes of a code unit, and so of the terminating NUL.
    #[must_use]
    pub const fn unit(self) -> usize {
        match self {
            Self::Str | Self::CStr | Self::Formatted | Self::Bytes => 1,
            Self::Utf16 | Self::UnicodeString => 2,
        }
    }
}

/// The `inType` and `outType` of a type, in both encodings.
#[derive(Clone, Copy, Debug)]
struct Codes {
    tracelogging: (In, Tlg),
    manifest: (In, Out),
}

/// A row of the table.
#[derive(Debug)]
pub struct Row {
    /// The type's last path segment in a declaration; `[u8]` and `[u16]` for slices.
    pub name: &'static str,
    /// The type of the parameter in generated code.
    pub rust: &'static str,
    /// The conversion to bytes.
    pub representation: Representation,
    /// The text in the documentation's table; rows with the same text are shown together.
    pub summary: &'static str,
    /// True if an array of the type can be written as it is in memory.
    pub repeats: bool,
    codes: Codes,
    hex: Option<Codes>,
    is_text: bool,
}

const fn codes(in_type: In, tracelogging: Tlg, manifest: Out) -> Codes {
    Codes { tracelogging: (in_type, tracelogging), manifest: (in_type, manifest) }
}

const HEX_8: Codes = codes(In::UInt8, Tlg::Hex, Out::HexInt8);
const HEX_16: Codes = codes(In::UInt16, Tlg::Hex, Out::HexInt16);
const HEX_32: Codes = codes(In::HexInt32, Tlg::Default, Out::HexInt32);
const HEX_64: Codes = codes(In::HexInt64, Tlg::Default, Out::HexInt64);

/// The strings of the documentation's table.
mod summary {
    pub const NUMBER: &str = "the number; `#[hex]` shows it in hexadecimal";
    pub const BYTE: &str = "a byte, 0 or 1";
    pub const BOOL: &str = "32 bits, false if zero (`BOOL`)";
    pub const FLOAT: &str = "the bits of a floating-point number";
    pub const POINTER: &str = "whether it is null; with `#[address]` the address";
    pub const CODE: &str = "the number, which viewers interpret by the field's type";
    pub const WINDOWS: &str = "the Windows structure of this name";
    pub const NETWORK: &str = "the bytes in network byte order";
    pub const UTF8: &str =
        "the length, then the UTF-8 bytes; `#[json]` and `#[xml]` mark the text as JSON or XML";
    pub const FORMATTED: &str = "the length, then at most 256 bytes of the formatted text in UTF-8; the provider counts texts that it truncates";
    pub const UTF16: &str =
        "the length, then the UTF-16 text; `#[json]` and `#[xml]` mark the text as JSON or XML";
    pub const TERMINATED: &str = "the string with a NUL";
    pub const BYTES: &str = "the length, then the bytes";
}

/// Returns the row of a type.
const fn row(
    name: &'static str,
    rust: &'static str,
    representation: Representation,
    summary: &'static str,
    codes: Codes,
) -> Row {
    // An array is written as it is in memory.
    let repeats = matches!(representation, Memory(_));
    Row { name, rust, representation, summary, repeats, codes, hex: None, is_text: false }
}

/// Returns the row of an integer type, which can be shown in hexadecimal.
const fn integer(
    name: &'static str,
    representation: Representation,
    codes: Codes,
    hex: Codes,
) -> Row {
    Row { hex: Some(hex), ..row(name, name, representation, summary::NUMBER, codes) }
}

/// Returns the row of a type of text, which can contain JSON and XML.
const fn text(
    name: &'static str,
    rust: &'static str,
    text: Text,
    summary: &'static str,
    codes: Codes,
) -> Row {
    Row { is_text: true, ..row(name, rust, Counted(text), summary, codes) }
}

/// Declares [`Scalar`] and its rows.
macro_rules! field_types {
    ($($variant:ident = $row:expr;)*) => {
        /// The type of a single value.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[expect(missing_docs, reason = "the variants are named after the Rust types")]
        pub enum Scalar {
            $($variant,)*
        }

        impl Scalar {
            /// All types, in the order of the documentation's table.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// Returns the type's row.
            #[must_use]
            pub const fn row(self) -> &'static Row {
                match self {
                    $(Self::$variant => const { &$row },)*
                }
            }
        }
    };
}

field_types! {
    I8 = integer("i8", Memory(1), codes(In::Int8, Tlg::Default, Out::Byte), HEX_8);
    U8 = integer("u8", Memory(1), codes(In::UInt8, Tlg::Default, Out::UnsignedByte), HEX_8);
    I16 = integer("i16", Memory(2), codes(In::Int16, Tlg::Default, Out::Short), HEX_16);
    U16 = integer("u16", Memory(2), codes(In::UInt16, Tlg::Default, Out::UnsignedShort), HEX_16);
    I32 = integer("i32", Memory(4), codes(In::Int32, Tlg::Default, Out::Int), HEX_32);
    U32 = integer("u32", Memory(4), codes(In::UInt32, Tlg::Default, Out::UnsignedInt), HEX_32);
    I64 = integer("i64", Memory(8), codes(In::Int64, Tlg::Default, Out::Long), HEX_64);
    U64 = integer("u64", Memory(8), codes(In::UInt64, Tlg::Default, Out::UnsignedLong), HEX_64);
    Usize = integer("usize", Cast64, codes(In::UInt64, Tlg::Default, Out::UnsignedLong), HEX_64);
    Isize = integer("isize", Cast64, codes(In::Int64, Tlg::Default, Out::Long), HEX_64);
    Bool = row("bool", "bool", Cast8, summary::BYTE, codes(In::UInt8, Tlg::Boolean, Out::Boolean));
    Bool32 = row("Bool32", "::wdk_etw::Bool32", Memory(4), summary::BOOL,
        codes(In::Boolean, Tlg::Default, Out::Boolean));
    F32 = row("F32", "::wdk_etw::F32", Memory(4), summary::FLOAT,
        codes(In::Float, Tlg::Default, Out::Float));
    F64 = row("F64", "::wdk_etw::F64", Memory(8), summary::FLOAT,
        codes(In::Double, Tlg::Default, Out::Double));
    Pointer = row("Pointer", "::wdk_etw::Pointer", Pointer, summary::POINTER,
        Codes { tracelogging: (In::HexInt64, Tlg::Default), manifest: (In::Pointer, Out::HexInt64) });
    Guid = row("Guid", "::wdk_etw::Guid", Memory(16), summary::WINDOWS,
        codes(In::Guid, Tlg::Default, Out::Guid));
    FileTime = row("FileTime", "::wdk_etw::FileTime", Memory(8), summary::WINDOWS,
        codes(In::FileTime, Tlg::Default, Out::DateTime));
    Luid = row("Luid", "::wdk_etw::Luid", Memory(8), summary::WINDOWS,
        codes(In::HexInt64, Tlg::Default, Out::HexInt64));
    SystemTime = row("SystemTime", "::wdk_etw::SystemTime", Memory(16), summary::WINDOWS,
        codes(In::SystemTime, Tlg::Default, Out::DateTime));
    NtStatus = row("NtStatus", "::wdk_etw::NtStatus", Memory(4), summary::CODE,
        codes(In::UInt32, Tlg::NtStatus, Out::NtStatus));
    HResult = row("HResult", "::wdk_etw::HResult", Memory(4), summary::CODE,
        codes(In::Int32, Tlg::HResult, Out::HResult));
    Win32Error = row("Win32Error", "::wdk_etw::Win32Error", Memory(4), summary::CODE,
        codes(In::UInt32, Tlg::Win32Error, Out::Win32Error));
    ProcessId = row("ProcessId", "::wdk_etw::ProcessId", Memory(4), summary::CODE,
        codes(In::UInt32, Tlg::Pid, Out::Pid));
    ThreadId = row("ThreadId", "::wdk_etw::ThreadId", Memory(4), summary::CODE,
        codes(In::UInt32, Tlg::Tid, Out::Tid));
    Port = row("Port", "::wdk_etw::Port", BigEndian16, summary::NETWORK,
        codes(In::UInt16, Tlg::Port, Out::Port));
    Ipv4Addr = row("Ipv4Addr", "::core::net::Ipv4Addr", Octets4, summary::NETWORK,
        codes(In::UInt32, Tlg::Ipv4, Out::Ipv4));
    Ipv6Addr = row("Ipv6Addr", "::core::net::Ipv6Addr", Octets16, summary::NETWORK,
        codes(In::Binary, Tlg::Ipv6, Out::Ipv6));
    SocketAddr = row("SocketAddr", "::core::net::SocketAddr", SocketAddr, summary::NETWORK,
        codes(In::Binary, Tlg::SocketAddress, Out::SocketAddress));
    Sid = row("Sid", "::wdk_etw::Sid<'_>", Sid, summary::WINDOWS,
        codes(In::Sid, Tlg::Default, Out::String));
    Str = text(
        "str", "&str", Text::Str, summary::UTF8,
        codes(In::CountedAnsiString, Tlg::Utf8, Out::Utf8),
    );
    Arguments = text(
        "Arguments", "::core::fmt::Arguments<'_>", Text::Formatted, summary::FORMATTED,
        codes(In::CountedAnsiString, Tlg::Utf8, Out::Utf8),
    );
    Utf16 = text(
        "[u16]", "&[u16]", Text::Utf16, summary::UTF16,
        codes(In::CountedUnicodeString, Tlg::Default, Out::String),
    );
    UnicodeString = text(
        "UnicodeString", "::wdk_etw::UnicodeString<'_>", Text::UnicodeString, summary::UTF16,
        codes(In::CountedUnicodeString, Tlg::Default, Out::String),
    );
    CStr = row("CStr", "&::core::ffi::CStr", Terminated(Text::CStr), summary::TERMINATED,
        codes(In::AnsiString, Tlg::Utf8, Out::Utf8));
    Utf16CStr = row("Utf16CStr", "::wdk_etw::Utf16CStr<'_>", Terminated(Text::UnicodeString), summary::TERMINATED,
        codes(In::UnicodeString, Tlg::Default, Out::String));
    Bytes = row("[u8]", "&[u8]", Counted(Text::Bytes), summary::BYTES,
        codes(In::Binary, Tlg::Default, Out::HexBinary));
}

impl Scalar {
    /// Returns the type's name in declarations.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.row().name
    }

    /// Returns whether values of the type are text.
    pub(crate) const fn is_text(self) -> bool {
        self.row().is_text || matches!(self, Self::CStr | Self::Utf16CStr)
    }

    /// Returns the type that a path's last segment names.
    pub(super) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|scalar| scalar.name() == name && !name.starts_with('['))
    }

    /// Returns the size of a value in bytes, or `None` if it varies.
    #[must_use]
    pub const fn size(self) -> Option<usize> {
        match self.row().representation {
            Memory(size) => Some(size),
            Cast8 => Some(1),
            BigEndian16 => Some(2),
            Octets4 => Some(4),
            Cast64 | Pointer => Some(8),
            Octets16 => Some(16),
            Counted(_) | Terminated(_) | Sid | SocketAddr => None,
        }
    }

    /// Returns whether the type is a signed integer.
    #[must_use]
    pub const fn is_signed(self) -> bool {
        matches!(self, Self::I8 | Self::I16 | Self::I32 | Self::I64 | Self::Isize)
    }

    /// Returns whether a parameter of the type borrows its value.
    #[must_use]
    pub const fn borrows(self) -> bool {
        matches!(self.row().representation, Counted(_) | Terminated(_) | Sid)
    }

    /// Returns whether an array of the type in this format can be written as it is in memory.
    #[must_use]
    pub const fn repeats(self, format: Format) -> bool {
        match self.row().representation {
            // Without the attribute, the event does not contain the address.
            Pointer => matches!(format, Format::Address),
            _ => self.row().repeats,
        }
    }

    /// Returns whether the type can have this format.
    #[must_use]
    pub const fn has_format(self, format: Format) -> bool {
        match format {
            Format::Default => true,
            Format::Hex => self.row().hex.is_some(),
            Format::Json | Format::Xml => self.row().is_text,
            Format::Address => matches!(self.row().representation, Pointer),
        }
    }

    /// Returns the types in `TraceLogging` metadata.
    #[must_use]
    pub const fn tracelogging(self, format: Format) -> (In, Tlg) {
        let row = self.row();
        let (in_type, _) = row.codes.tracelogging;
        match (format, &row.hex) {
            (Format::Hex, Some(hex)) => hex.tracelogging,
            (Format::Json, _) => (in_type, Tlg::Json),
            (Format::Xml, _) => (in_type, Tlg::Xml),
            (Format::Default | Format::Address, _) | (Format::Hex, None) => row.codes.tracelogging,
        }
    }

    /// Returns `inType` and `outType` in a manifest.
    #[must_use]
    pub const fn manifest(self, format: Format) -> (In, Out) {
        let row = self.row();
        let (in_type, _) = row.codes.manifest;
        match (format, &row.hex) {
            (Format::Hex, Some(hex)) => hex.manifest,
            (Format::Json, _) => (in_type, Out::Json),
            (Format::Xml, _) => (in_type, Out::Xml),
            (Format::Default | Format::Address, _) | (Format::Hex, None) => row.codes.manifest,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_with_a_reference_or_a_lifetime_borrows() {
        for scalar in Scalar::ALL {
            let rust = scalar.row().rust;
            let is_borrowed = rust.starts_with('&') || rust.ends_with("<'_>");
            assert_eq!(scalar.borrows(), is_borrowed, "{rust}");
        }
    }

    #[test]
    fn every_row_is_complete() {
        for scalar in Scalar::ALL {
            let row = scalar.row();
            assert_ne!(row.codes.tracelogging.0, In::Null, "{}", row.name);
            let (in_type, out_type) = row.codes.manifest;
            assert!(in_type.out_types().contains(&out_type), "{}", row.name);
            if let Some(size) = scalar.size() {
                let (in_type, _) = row.codes.tracelogging;
                assert!(in_type.size().is_none_or(|of_type| of_type == size), "{}", row.name);
            }
        }
    }
}
