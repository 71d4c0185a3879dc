//! The layout of an event's user data.

use std::sync::Arc;

/// The layout of an event's user data, from `TraceLogging` metadata or from a
/// manifest's template.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schema {
    /// The event's name; empty if a manifest gives none.
    pub event_name: String,
    /// The event's 28 tag bits.
    pub tags: u32,
    /// The fields, in the order of the data. Events with the same template share them.
    pub fields: Arc<[Field]>,
}

/// A field of an event, or a member of a structure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Name of the field.
    pub name: Arc<str>,
    /// The encoding of the data.
    pub in_type: InType,
    /// The presentation of the value.
    pub out_type: OutType,
    /// The number of values.
    pub count: Count,
    /// The length of a string or a byte sequence.
    pub length: Length,
    /// The field's 28 tag bits.
    pub tags: u32,
    /// The names of the field's values.
    pub map: Option<Arc<ValueMap>>,
    /// The members, if the field is a structure.
    pub fields: Vec<Self>,
}

/// The number of values of a field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Count {
    /// A single value, not an array.
    #[default]
    Scalar,
    /// An array with this number of values.
    Fixed(u16),
    /// An array whose 16-bit count precedes the values.
    Variable,
    /// An array whose count is the value of an earlier field.
    Field(Arc<str>),
    /// An encoding defined by the provider, with its description.
    Custom(Vec<u8>),
}

/// The length of a string or a byte sequence.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Length {
    /// The length by the type: a final NUL, or a 16-bit byte count before the data.
    #[default]
    Natural,
    /// This number of bytes or UTF-16 units.
    Fixed(u16),
    /// The number of bytes or UTF-16 units in an earlier field.
    Field(Arc<str>),
}

/// The encoding of data. `TraceLogging` and manifests use the same codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InType {
    /// 0: no data.
    Null,
    /// 1: UTF-16LE, ended by a NUL.
    UnicodeString,
    /// 2: 8-bit characters, ended by a NUL.
    AnsiString,
    /// 3.
    Int8,
    /// 4.
    UInt8,
    /// 5.
    Int16,
    /// 6.
    UInt16,
    /// 7.
    Int32,
    /// 8.
    UInt32,
    /// 9.
    Int64,
    /// 10.
    UInt64,
    /// 11: 4 bytes.
    Float,
    /// 12: 8 bytes.
    Double,
    /// 13: 4 bytes.
    Bool32,
    /// 14: bytes, after a 16-bit count unless a length is given.
    Binary,
    /// 15.
    Guid,
    /// 16: with the size of the writer's pointers; in manifests only.
    Pointer,
    /// 17.
    FileTime,
    /// 18.
    SystemTime,
    /// 19: security identifier.
    Sid,
    /// 20: 4 bytes, hexadecimal.
    HexInt32,
    /// 21: 8 bytes, hexadecimal.
    HexInt64,
    /// 22: UTF-16LE after a 16-bit byte count.
    CountedString,
    /// 23: 8-bit characters after a 16-bit byte count.
    CountedAnsiString,
    /// 24: the members follow; the structure has no data of its own.
    Struct,
    /// 25: bytes after a 16-bit count.
    CountedBinary,
    /// An undocumented code.
    Unknown(u8),
}

impl InType {
    /// Reads a code of five bits.
    #[must_use]
    pub const fn from_code(code: u8) -> Self {
        match code {
            0 => Self::Null,
            1 => Self::UnicodeString,
            2 => Self::AnsiString,
            3 => Self::Int8,
            4 => Self::UInt8,
            5 => Self::Int16,
            6 => Self::UInt16,
            7 => Self::Int32,
            8 => Self::UInt32,
            9 => Self::Int64,
            10 => Self::UInt64,
            11 => Self::Float,
            12 => Self::Double,
            13 => Self::Bool32,
            14 => Self::Binary,
            15 => Self::Guid,
            16 => Self::Pointer,
            17 => Self::FileTime,
            18 => Self::SystemTime,
            19 => Self::Sid,
            20 => Self::HexInt32,
            21 => Self::HexInt64,
            22 => Self::CountedString,
            23 => Self::CountedAnsiString,
            24 => Self::Struct,
            25 => Self::CountedBinary,
            other => Self::Unknown(other),
        }
    }
}

/// The presentation of a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OutType {
    /// As the encoding suggests.
    #[default]
    Default,
    /// Not meant to be shown.
    NoPrint,
    /// Characters.
    String,
    /// True unless zero.
    Boolean,
    /// Hexadecimal.
    Hex,
    /// Process id.
    ProcessId,
    /// Thread id.
    ThreadId,
    /// TCP or UDP port, big-endian.
    Port,
    /// IPv4 address.
    Ipv4,
    /// IPv6 address.
    Ipv6,
    /// `SOCKADDR` structure.
    SocketAddress,
    /// XML text.
    Xml,
    /// JSON text.
    Json,
    /// Win32 error code.
    Win32Error,
    /// `NTSTATUS`.
    NtStatus,
    /// `HRESULT`.
    HResult,
    /// FILETIME or SYSTEMTIME, in any of the date formats.
    DateTime,
    /// Signed decimal.
    Signed,
    /// Unsigned decimal.
    Unsigned,
    /// UTF-8 text.
    Utf8,
    /// PKCS #7 message with type information.
    Pkcs7,
    /// Address of code.
    CodePointer,
    /// An undocumented code.
    Unknown(u8),
}

impl OutType {
    /// Converts a code of winmeta.xml, which manifests and the resources of images use.
    #[must_use]
    pub const fn from_winmeta(code: u8) -> Self {
        match code {
            1 => Self::String,
            2 | 26 | 27 | 33 | 38 => Self::DateTime,
            3 | 5 | 7 | 9 => Self::Signed,
            4 | 6 | 8 | 10 => Self::Unsigned,
            0 | 11 | 12 | 14 | 15 => Self::Default,
            13 => Self::Boolean,
            16..=19 | 29 => Self::Hex,
            20 => Self::ProcessId,
            21 => Self::ThreadId,
            22 => Self::Port,
            23 => Self::Ipv4,
            24 => Self::Ipv6,
            25 => Self::SocketAddress,
            28 => Self::Xml,
            30 => Self::Win32Error,
            31 => Self::NtStatus,
            32 => Self::HResult,
            34 => Self::Json,
            35 => Self::Utf8,
            36 => Self::Pkcs7,
            37 => Self::CodePointer,
            other => Self::Unknown(other),
        }
    }

    /// Reads a `TraceLogging` code of seven bits.
    #[must_use]
    pub const fn from_trace_logging(code: u8) -> Self {
        match code {
            0 => Self::Default,
            1 => Self::NoPrint,
            2 => Self::String,
            3 => Self::Boolean,
            4 => Self::Hex,
            5 => Self::ProcessId,
            6 => Self::ThreadId,
            7 => Self::Port,
            8 => Self::Ipv4,
            9 => Self::Ipv6,
            10 => Self::SocketAddress,
            11 => Self::Xml,
            12 => Self::Json,
            13 => Self::Win32Error,
            14 => Self::NtStatus,
            15 => Self::HResult,
            16 | 33 | 38 => Self::DateTime,
            17 => Self::Signed,
            18 => Self::Unsigned,
            35 => Self::Utf8,
            36 => Self::Pkcs7,
            37 => Self::CodePointer,
            other => Self::Unknown(other),
        }
    }
}

/// The names of a field's values (`valueMap` and `bitMap` of a manifest).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ValueMap {
    /// Whether the values are bit masks with separate names.
    pub bits: bool,
    /// The values or masks, with their names.
    pub entries: Vec<(u32, String)>,
}

impl ValueMap {
    /// Returns the name of a value. For a bit map, returns the names of its bits joined by `|`,
    /// with the remaining bits in hexadecimal. Returns `None` if no name fits.
    #[must_use]
    pub fn name(&self, value: u64) -> Option<String> {
        if !self.bits {
            return self
                .entries
                .iter()
                .find(|(v, _)| u64::from(*v) == value)
                .map(|(_, name)| name.clone());
        }
        let mut rest = value;
        let mut names = Vec::new();
        for (mask, name) in &self.entries {
            let mask = u64::from(*mask);
            if mask != 0 && value & mask == mask {
                names.push(name.clone());
                rest &= !mask;
            }
        }
        if names.is_empty() {
            return None;
        }
        if rest != 0 {
            names.push(format!("{rest:#x}"));
        }
        Some(names.join("|"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(bits: bool) -> ValueMap {
        let name = |v: u32, n: &str| (v, n.to_owned());
        ValueMap {
            bits,
            entries: vec![name(1, "Read"), name(2, "Write"), name(4, "Sync")],
        }
    }

    #[test]
    fn value_map_names_one_value() {
        assert_eq!(map(false).name(2).as_deref(), Some("Write"));
        assert_eq!(map(false).name(3), None);
        assert_eq!(map(false).name(1 << 32 | 1), None);
    }

    #[test]
    fn bit_map_names_every_bit() {
        assert_eq!(map(true).name(5).as_deref(), Some("Read|Sync"));
        assert_eq!(map(true).name(0x12).as_deref(), Some("Write|0x10"));
        assert_eq!(map(true).name(0), None);
        assert_eq!(map(true).name(8), None);
    }
}
