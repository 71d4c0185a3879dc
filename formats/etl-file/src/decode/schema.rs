//! The layout of an event's user data.

use std::sync::Arc;

use etw_wire::{InType, OutType, TlgOutType};

/// The layout of an event's user data, from `TraceLogging` metadata or a
/// manifest's template.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schema {
    /// The event's name; empty if the manifest does not name the event.
    pub event_name: String,
    /// The event's 28 tag bits.
    pub tags: u32,
    /// The fields, in data order. Events with the same template share them.
    pub fields: Arc<[Field]>,
}

/// The maximum number of entries of a map that each decoder copies; larger maps stay shared, to
/// limit the memory.
const MAX_COPIED: usize = 64;

/// A field of an event, or a member of a structure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// The field's name.
    pub name: Arc<str>,
    /// The encoding of the data.
    pub in_type: Encoding,
    /// The presentation of the value.
    pub out_type: Presentation,
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

impl Schema {
    /// Returns the schema with copies of the names, and with hexadecimal integers in the fields
    /// `in_hex`. With shared names, decoding threads would contend for their reference counts.
    pub(super) fn prepared(&self, in_hex: &[String]) -> Self {
        let fields = self.fields.iter().map(|field| field.prepared(in_hex));
        Self { fields: fields.collect(), event_name: self.event_name.clone(), tags: self.tags }
    }
}

impl Field {
    fn prepared(&self, in_hex: &[String]) -> Self {
        let mut prepared = self.clone();
        prepared.name = Arc::from(&*self.name);
        if let Some(map) = &mut prepared.map
            && map.entries.len() <= MAX_COPIED
        {
            let entries = map.entries.iter().map(|(value, name)| (*value, Arc::from(&**name)));
            *map = Arc::new(ValueMap { bits: map.bits, entries: entries.collect() });
        }
        prepared.fields = self.fields.iter().map(|field| field.prepared(in_hex)).collect();
        if self.in_type.is_integer() && in_hex.iter().any(|name| **name == *self.name) {
            prepared.out_type = Presentation::Hex;
            prepared.map = None;
        }
        prepared
    }
}

/// Returns a field with a single value of this encoding.
#[cfg(test)]
pub fn plain(name: &str, in_type: impl Into<Encoding>) -> Field {
    Field {
        name: name.into(),
        in_type: in_type.into(),
        out_type: Presentation::Default,
        count: Count::Scalar,
        length: Length::Natural,
        tags: 0,
        map: None,
        fields: Vec::new(),
    }
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
    /// A provider-defined encoding and its description.
    Custom(Vec<u8>),
}

/// The length of a string or a byte sequence.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Length {
    /// The length that the type implies: up to a NUL, or as a 16-bit byte count before the data.
    #[default]
    Natural,
    /// A fixed number of bytes or UTF-16 units.
    Fixed(u16),
    /// The number of bytes or UTF-16 units, given by an earlier field.
    Field(Arc<str>),
}

/// The encoding of the data. `TraceLogging` and manifests use the same codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// A documented encoding.
    Known(InType),
    /// An undocumented code.
    Unknown(u8),
}

impl Encoding {
    /// Converts a 5-bit code.
    #[must_use]
    pub fn from_code(code: u8) -> Self {
        InType::from_code(code).map_or(Self::Unknown(code), Self::Known)
    }

    const fn is_integer(self) -> bool {
        matches!(
            self,
            Self::Known(
                InType::Int8
                    | InType::UInt8
                    | InType::Int16
                    | InType::UInt16
                    | InType::Int32
                    | InType::UInt32
                    | InType::Int64
                    | InType::UInt64
            )
        )
    }
}

impl From<InType> for Encoding {
    fn from(in_type: InType) -> Self {
        Self::Known(in_type)
    }
}

/// The presentation of a value. This type unifies the codes of manifests and `TraceLogging`
/// ([`OutType`], [`TlgOutType`]), and ignores differences that do not affect the output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Presentation {
    /// The default for the encoding.
    #[default]
    Default,
    /// Not meant to be shown.
    NoPrint,
    /// Characters.
    String,
    /// A truth value: false if zero.
    Boolean,
    /// A hexadecimal number.
    Hex,
    /// A process id.
    ProcessId,
    /// A thread id.
    ThreadId,
    /// A TCP or UDP port, big-endian.
    Port,
    /// An IPv4 address.
    Ipv4,
    /// An IPv6 address.
    Ipv6,
    /// A `SOCKADDR` structure.
    SocketAddress,
    /// XML text.
    Xml,
    /// JSON text.
    Json,
    /// A Win32 error code.
    Win32Error,
    /// An `NTSTATUS`.
    NtStatus,
    /// An `HRESULT`.
    HResult,
    /// A FILETIME or SYSTEMTIME, in any date format.
    DateTime,
    /// A signed decimal number.
    Signed,
    /// An unsigned decimal number.
    Unsigned,
    /// UTF-8 text.
    Utf8,
    /// A PKCS #7 message with type information.
    Pkcs7,
    /// The address of code.
    CodePointer,
    /// An undocumented code.
    Unknown(u8),
}

impl Presentation {
    /// Converts a code from winmeta.xml, as used in manifests and image resources.
    #[must_use]
    pub fn from_winmeta(code: u8) -> Self {
        match OutType::from_code(code) {
            Some(known) => known.into(),
            None if code == 0 => Self::Default,
            None => Self::Unknown(code),
        }
    }

    /// Converts a 7-bit `TraceLogging` code.
    #[must_use]
    pub fn from_trace_logging(code: u8) -> Self {
        TlgOutType::from_code(code).map_or(Self::Unknown(code), Self::from)
    }
}

impl From<OutType> for Presentation {
    fn from(out_type: OutType) -> Self {
        match out_type {
            OutType::String => Self::String,
            OutType::DateTime
            | OutType::CimDateTime
            | OutType::EtwTime
            | OutType::DateTimeCultureInsensitive
            | OutType::DateTimeUtc => Self::DateTime,
            OutType::Byte | OutType::Short | OutType::Int | OutType::Long => Self::Signed,
            OutType::UnsignedByte
            | OutType::UnsignedShort
            | OutType::UnsignedInt
            | OutType::UnsignedLong => Self::Unsigned,
            OutType::Float | OutType::Double | OutType::Guid | OutType::HexBinary => Self::Default,
            OutType::Boolean => Self::Boolean,
            OutType::HexInt8
            | OutType::HexInt16
            | OutType::HexInt32
            | OutType::HexInt64
            | OutType::ErrorCode => Self::Hex,
            OutType::Pid => Self::ProcessId,
            OutType::Tid => Self::ThreadId,
            OutType::Port => Self::Port,
            OutType::Ipv4 => Self::Ipv4,
            OutType::Ipv6 => Self::Ipv6,
            OutType::SocketAddress => Self::SocketAddress,
            OutType::Xml => Self::Xml,
            OutType::Win32Error => Self::Win32Error,
            OutType::NtStatus => Self::NtStatus,
            OutType::HResult => Self::HResult,
            OutType::Json => Self::Json,
            OutType::Utf8 => Self::Utf8,
            OutType::Pkcs7WithTypeInfo => Self::Pkcs7,
            OutType::CodePointer => Self::CodePointer,
        }
    }
}

impl From<TlgOutType> for Presentation {
    fn from(out_type: TlgOutType) -> Self {
        match out_type {
            TlgOutType::Default => Self::Default,
            TlgOutType::NoPrint => Self::NoPrint,
            TlgOutType::String => Self::String,
            TlgOutType::Boolean => Self::Boolean,
            TlgOutType::Hex => Self::Hex,
            TlgOutType::Pid => Self::ProcessId,
            TlgOutType::Tid => Self::ThreadId,
            TlgOutType::Port => Self::Port,
            TlgOutType::Ipv4 => Self::Ipv4,
            TlgOutType::Ipv6 => Self::Ipv6,
            TlgOutType::SocketAddress => Self::SocketAddress,
            TlgOutType::Xml => Self::Xml,
            TlgOutType::Json => Self::Json,
            TlgOutType::Win32Error => Self::Win32Error,
            TlgOutType::NtStatus => Self::NtStatus,
            TlgOutType::HResult => Self::HResult,
            TlgOutType::DateTime
            | TlgOutType::DateTimeCultureInsensitive
            | TlgOutType::DateTimeUtc => Self::DateTime,
            TlgOutType::Signed => Self::Signed,
            TlgOutType::Unsigned => Self::Unsigned,
            TlgOutType::Utf8 => Self::Utf8,
            TlgOutType::Pkcs7WithTypeInfo => Self::Pkcs7,
            TlgOutType::CodePointer => Self::CodePointer,
        }
    }
}

/// The names of a field's values (`valueMap` and `bitMap` in manifests).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ValueMap {
    /// True if the values are bit masks, each with its own name.
    pub bits: bool,
    /// The values or masks and their names.
    pub entries: Vec<(u32, Arc<str>)>,
}

impl ValueMap {
    /// Returns the name of `value`. For a bit map, returns the names of its bits joined by `|`,
    /// with the remaining bits in hexadecimal; 0 gets the name of the mask 0. Returns `None` if no
    /// name applies.
    #[must_use]
    pub fn name(&self, value: u64) -> Option<Arc<str>> {
        if !self.bits || value == 0 {
            return self
                .entries
                .iter()
                .find(|(v, _)| u64::from(*v) == value)
                .map(|(_, name)| Arc::clone(name));
        }
        let mut rest = value;
        let mut names: Vec<Arc<str>> = Vec::new();
        for (mask, name) in &self.entries {
            let mask = u64::from(*mask);
            if mask != 0 && value & mask == mask {
                names.push(Arc::clone(name));
                rest &= !mask;
            }
        }
        if names.is_empty() {
            return None;
        }
        if rest != 0 {
            names.push(format!("{rest:#x}").into());
        }
        if let [name] = names.as_slice() {
            return Some(Arc::clone(name));
        }
        Some(names.join("|").into())
    }

    /// Returns the name of a negative number of any size; maps store values in 32 bits.
    #[must_use]
    pub fn name_of_negative(&self, value: i64) -> Option<Arc<str>> {
        let entry = self.entries.iter().find(|(known, _)| i64::from(known.cast_signed()) == value);
        entry.map(|(_, name)| Arc::clone(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(bits: bool) -> ValueMap {
        let name = |v: u32, n: &str| (v, Arc::from(n));
        ValueMap { bits, entries: vec![name(1, "Read"), name(2, "Write"), name(4, "Sync")] }
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

    #[test]
    fn bit_map_can_name_zero() {
        let mut named = map(true);
        named.entries.push((0, "None".into()));
        assert_eq!(named.name(0).as_deref(), Some("None"));
        assert_eq!(named.name(1).as_deref(), Some("Read"));
    }

    #[test]
    fn a_code_of_winmeta_is_a_presentation() {
        assert_eq!(Presentation::from_winmeta(0), Presentation::Default);
        assert_eq!(Presentation::from_winmeta(1), Presentation::String);
        assert_eq!(Presentation::from_winmeta(200), Presentation::Unknown(200));
    }
}
