//! Definitions of the kernel's event classes, as `classes.txt` contains them.

use std::sync::Arc;

use etw_wire::Guid;
use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::{Error, StrDeserializer};

/// An event class.
#[derive(Clone, Debug)]
pub struct Class {
    /// The GUID that identifies the class to sessions and in classic events.
    pub guid: Guid,
    /// The class's name in Microsoft's documentation.
    pub name: Arc<str>,
    /// The upper byte of the hooks of the class's events, if the class has system records.
    pub group: Option<u8>,
    /// The named events, by opcode.
    pub events: Vec<Event>,
}

/// An event of a class.
#[derive(Clone, Debug)]
pub struct Event {
    /// The lower byte of the hook, and the `Class.Type` of a classic record.
    pub opcode: u8,
    /// The name (`EventTypeName`).
    pub name: Arc<str>,
    /// The layouts, by version; empty if only the name is known.
    pub layouts: Vec<Layout>,
}

/// The fields of an event for a range of versions.
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
    /// The type, on disk and in the output.
    pub kind: Type,
    /// True if a record can end before this field.
    pub optional: bool,
}

/// The type of a field. Numbers are little-endian unless stated otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum Type {
    /// An 8-bit unsigned number.
    U8,
    /// An 8-bit signed number.
    I8,
    /// A 16-bit unsigned number.
    U16,
    /// A 16-bit signed number.
    I16,
    /// A 32-bit unsigned number.
    U32,
    /// A 32-bit signed number.
    I32,
    /// A 64-bit unsigned number.
    U64,
    /// A 64-bit signed number.
    I64,
    /// A 32-bit mask.
    Hex32,
    /// A 64-bit mask.
    Hex64,
    /// A single-precision number.
    F32,
    /// A double-precision number.
    F64,
    /// A 32-bit truth value.
    Bool,
    /// A 64-bit reading of the session's clock.
    Ticks,
    /// A duration in ticks of the session's clock, as a 64-bit unsigned number.
    TickDuration,
    /// A time in units of 100 ns since 1601.
    FileTime,
    /// An address, with the payload's pointer size.
    Pointer,
    /// A number with the payload's pointer size.
    Size,
    /// A 32-bit process id.
    Process,
    /// A 32-bit thread id.
    Thread,
    /// A process id with the payload's pointer size.
    WideProcess,
    /// A thread id with the payload's pointer size.
    WideThread,
    /// An `NTSTATUS`.
    Status,
    /// An `NTSTATUS` with the payload's pointer size.
    WideStatus,
    /// A GUID.
    Guid,
    /// A `TOKEN_USER` and its SID, or four zero bytes.
    Sid,
    /// NUL-terminated 8-bit text.
    Ansi,
    /// NUL-terminated UTF-16 text.
    Utf16,
    /// 8-bit text after its 16-bit size in bytes.
    CountedAnsi,
    /// UTF-16 text after its 16-bit size in bytes.
    CountedUtf16,
    /// A fixed number of UTF-16 units, padded with NULs.
    #[serde(skip)]
    Units(u16),
    /// A fixed number of bytes.
    #[serde(skip)]
    Bytes(u16),
    /// A hardware address in a fixed number of bytes; the last 32-bit number before it is the
    /// address's length.
    #[serde(skip)]
    Hardware(u16),
    /// LZNT1-compressed text, in UTF-16 or 8-bit, up to the end of the record; the 32-bit number before it is its
    /// size in bytes.
    Compressed,
    /// The bytes up to the end of the record.
    Rest,
    /// An IPv4 address in network byte order.
    Ipv4,
    /// An IPv6 address in network byte order.
    Ipv6,
    /// A TCP or UDP port in network byte order.
    Port,
    /// Addresses up to the end of the record, each with the payload's pointer size.
    Pointers,
    /// Clock readings up to the end of the record.
    TicksList,
    /// GUIDs; the field before them is their number.
    Guids,
    /// NUL-terminated UTF-16 strings; the named field is their number.
    #[serde(skip)]
    Texts(&'static str),
}

impl Type {
    /// Returns the type with this name in the tables.
    pub(crate) fn named(name: &'static str) -> Option<Self> {
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
