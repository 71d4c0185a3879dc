//! Descriptors of the kernel's event classes, as the tables in [`mod@super::classes`] state them.

use etw_wire::Guid;

/// A class of events.
#[derive(Debug)]
pub struct Class {
    /// The GUID by which sessions and classic events name the class.
    pub guid: Guid,
    /// The class's name in Microsoft's documentation.
    pub name: &'static str,
    /// The upper byte of the hooks of the class's events, if system records carry them.
    pub group: Option<u8>,
    /// The events that have a name.
    pub events: &'static [Event],
}

/// An event of a class.
#[derive(Debug)]
pub struct Event {
    /// The lower byte of the hook, and `Class.Type` of a classic record.
    pub opcode: u8,
    /// The name (`EventTypeName`).
    pub name: &'static str,
    /// The layouts by version. Empty if only the name is known.
    pub layouts: &'static [Layout],
}

/// The fields of an event in a range of versions.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// The first version with these fields.
    pub first: u8,
    /// The last version with these fields.
    pub last: u8,
    /// The fields, packed without padding.
    pub fields: &'static [Field],
}

/// A field of an event.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// The name (the MOF property).
    pub name: &'static str,
    /// The type on disk and in the output.
    pub kind: Type,
    /// True if a record may end before this field.
    pub optional: bool,
}

/// The type of a field. Numbers are little-endian unless stated otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// This number of UTF-16 units, padded with NULs.
    Units(u16),
    /// This number of bytes.
    Bytes(u16),
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
    Texts(&'static str),
}

/// Returns the descriptor of a field.
pub const fn f(name: &'static str, kind: Type) -> Field {
    Field { name, kind, optional: false }
}

/// Returns the descriptor of a field before which a record may end.
pub const fn optional(name: &'static str, kind: Type) -> Field {
    Field { name, kind, optional: true }
}

/// Returns the layout of one version.
pub const fn v(version: u8, fields: &'static [Field]) -> Layout {
    versions(version, version, fields)
}

/// Returns the layout of several versions.
pub const fn versions(first: u8, last: u8, fields: &'static [Field]) -> Layout {
    Layout { first, last, fields }
}

/// Returns the descriptor of an event.
pub const fn e(opcode: u8, name: &'static str, layouts: &'static [Layout]) -> Event {
    Event { opcode, name, layouts }
}
