//! Descriptors of the kernel's event classes, as `classes.txt` states them.

use std::sync::Arc;

use etw_wire::Guid;
use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::{Error, StrDeserializer};

/// A class of events.
#[derive(Clone, Debug)]
pub struct Class {
    /// The GUID by which sessions and classic events name the class.
    pub guid: Guid,
    /// The class's name in Microsoft's documentation.
    pub name: Arc<str>,
    /// The upper byte of the hooks of the class's events, if system records carry them.
    pub group: Option<u8>,
    /// The events that have a name, by opcode.
    pub events: Vec<Event>,
}

/// An event of a class.
#[derive(Clone, Debug)]
pub struct Event {
    /// The lower byte of the hook, and `Class.Type` of a classic record.
    pub opcode: u8,
    /// The name (`EventTypeName`).
    pub name: Arc<str>,
    /// The layouts by version. Empty if only the name is known.
    pub layouts: Vec<Layout>,
}

/// The fields of an event in a range of versions.
#[derive(Clone, Debug)]
pub struct Layout {
    /// The first version with these fields.
    pub first: u8,
    /// The last version with these fields.
    pub last: u8,
    /// The fields, packed without padding.
    pub fields: Vec<Field>,
}

/// A field of an event.
#[derive(Clone, Debug)]
pub struct Field {
    /// The name (the MOF property).
    pub name: Arc<str>,
    /// The type on disk and in the output.
    pub kind: Type,
    /// True if a record may end before this field.
    pub optional: bool,
}

/// The type of a field. Numbers are little-endian unless stated otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum Type {
    /// 8-bit unsigned number.
    U8,
    /// 8-bit signed number.
    I8,
    /// 16-bit unsigned number.
    U16,
    /// 16-bit signed number.
    I16,
    /// 32-bit unsigned number.
    U32,
    /// 32-bit signed number.
    I32,
    /// 64-bit unsigned number.
    U64,
    /// 64-bit signed number.
    I64,
    /// 32-bit mask.
    Hex32,
    /// 64-bit mask.
    Hex64,
    /// Number of single precision.
    F32,
    /// Number of double precision.
    F64,
    /// Truth value, 32 bits.
    Bool,
    /// Reading of the session's clock, 64 bits.
    Ticks,
    /// Duration in ticks of the session's clock, 64 bits unsigned.
    TickDuration,
    /// Time, 100 ns since 1601.
    FileTime,
    /// Address, of the payload's pointer size.
    Pointer,
    /// Number of the payload's pointer size.
    Size,
    /// Process id, 32 bits.
    Process,
    /// Thread id, 32 bits.
    Thread,
    /// Process id, of the payload's pointer size.
    WideProcess,
    /// Thread id, of the payload's pointer size.
    WideThread,
    /// `NTSTATUS`.
    Status,
    /// `NTSTATUS`, of the payload's pointer size.
    WideStatus,
    /// GUID.
    Guid,
    /// `TOKEN_USER` and its SID, or four zero bytes.
    Sid,
    /// 8-bit text with a NUL.
    Ansi,
    /// UTF-16 text with a NUL.
    Utf16,
    /// 8-bit text after its size in bytes, a 16-bit number.
    CountedAnsi,
    /// UTF-16 text after its size in bytes, a 16-bit number.
    CountedUtf16,
    /// This number of UTF-16 units, padded with NULs.
    #[serde(skip)]
    Units(u16),
    /// This number of bytes.
    #[serde(skip)]
    Bytes(u16),
    /// Hardware address in this number of bytes, as long as the last 32-bit number before it says.
    #[serde(skip)]
    Hardware(u16),
    /// UTF-16 text up to the end of the record, compressed by LZNT1; its size in bytes is the 32-bit
    /// number before it.
    Compressed,
    /// Bytes up to the end of the record.
    Rest,
    /// IPv4 address in network order.
    Ipv4,
    /// IPv6 address in network order.
    Ipv6,
    /// TCP or UDP port in network order.
    Port,
    /// Addresses up to the end of the record, each of the payload's pointer size.
    Pointers,
    /// Clock readings up to the end of the record.
    TicksList,
    /// GUIDs, as many as the field before says.
    Guids,
    /// UTF-16 texts, each with a NUL, as many as the named field says.
    #[serde(skip)]
    Texts(&'static str),
}

impl Type {
    /// Returns the type of this name in the tables.
    pub(super) fn named(name: &'static str) -> Option<Self> {
        let (name, argument) = match name.split_once('(') {
            Some((name, argument)) => (name, argument.strip_suffix(')')?),
            None => (name, ""),
        };
        Some(match name {
            "Units" => Self::Units(argument.parse().ok()?),
            "Bytes" => Self::Bytes(argument.parse().ok()?),
            "Hardware" => Self::Hardware(argument.parse().ok()?),
            "Texts" => Self::Texts(argument),
            _ if !argument.is_empty() => return None,
            _ => {
                let name: StrDeserializer<'_, Error> = name.into_deserializer();
                Self::deserialize(name).ok()?
            }
        })
    }
}
