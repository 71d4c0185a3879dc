//! `TraceLogging` events' own descriptions of themselves.
//!
//! A description is a block of bytes: its size (16 bits, itself included), tag
//! bytes, the event's name in UTF-8 with a NUL, then for every field its name with
//! a NUL, its type, and what its type asks for. The macro
//! [`tracelogging!`](crate::tracelogging) makes it when the driver is compiled.

/// The type of a field: how it is encoded, and how it is to be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldType {
    in_type: u8,
    out_type: u8,
}

impl FieldType {
    const fn new(in_type: u8, out_type: u8) -> Self {
        Self { in_type, out_type }
    }
}

/// The types of fields. Each says how a write passes its content.
pub mod field {
    use super::FieldType;

    /// `i8`.
    pub const I8: FieldType = FieldType::new(3, 0);
    /// `u8`.
    pub const U8: FieldType = FieldType::new(4, 0);
    /// `i16`.
    pub const I16: FieldType = FieldType::new(5, 0);
    /// `u16`.
    pub const U16: FieldType = FieldType::new(6, 0);
    /// `i32`.
    pub const I32: FieldType = FieldType::new(7, 0);
    /// `u32`.
    pub const U32: FieldType = FieldType::new(8, 0);
    /// `i64`.
    pub const I64: FieldType = FieldType::new(9, 0);
    /// `u64`.
    pub const U64: FieldType = FieldType::new(10, 0);
    /// `u32`, shown in hexadecimal.
    pub const HEX32: FieldType = FieldType::new(20, 0);
    /// `u64`, shown in hexadecimal.
    pub const HEX64: FieldType = FieldType::new(21, 0);
    /// `u32` that is 0 or 1.
    pub const BOOL32: FieldType = FieldType::new(13, 0);
    /// An `NTSTATUS`.
    pub const NTSTATUS: FieldType = FieldType::new(8, 14);
    /// A [`Guid`](crate::Guid).
    pub const GUID: FieldType = FieldType::new(15, 0);
    /// `i64`: 100 ns since 1601-01-01 UTC.
    pub const FILETIME: FieldType = FieldType::new(17, 0);
    /// A process id, `u32`.
    pub const PID: FieldType = FieldType::new(8, 5);
    /// A thread id, `u32`.
    pub const TID: FieldType = FieldType::new(8, 6);
    /// UTF-8 text: the two pieces of a [`Counted`](crate::Counted).
    pub const STR8: FieldType = FieldType::new(23, 35);
    /// UTF-16 text: the two pieces of a [`Counted`](crate::Counted).
    pub const STR16: FieldType = FieldType::new(22, 0);
    /// Bytes: the two pieces of a [`Counted`](crate::Counted).
    pub const BINARY: FieldType = FieldType::new(14, 0);
}

/// An output type follows the input type.
const CHAIN: u8 = 0x80;

/// How many bytes a description has; used by [`tracelogging!`](crate::tracelogging).
#[doc(hidden)]
#[must_use]
pub const fn size(name: &str, fields: &[(&str, FieldType)]) -> usize {
    // Size, one tag byte, the name and its NUL.
    let mut size = name.len().saturating_add(4);
    let mut rest = fields;
    while let [(field, kind), after @ ..] = rest {
        // The name's NUL, and one or two bytes of type.
        let more = if kind.out_type == 0 { 2 } else { 3 };
        size = size.saturating_add(field.len()).saturating_add(more);
        rest = after;
    }
    size
}

/// Puts a name and its NUL into a block, and returns the place after them.
#[allow(
    clippy::indexing_slicing,
    reason = "run by the compiler, which reports it"
)]
const fn put<const N: usize>(mut block: [u8; N], mut at: usize, text: &str) -> ([u8; N], usize) {
    let mut rest = text.as_bytes();
    while let [byte, after @ ..] = rest {
        assert!(
            *byte != 0,
            "the name of an event or field ends at its first NUL; remove the NUL"
        );
        block[at] = *byte;
        at = at.saturating_add(1);
        rest = after;
    }
    // The NUL is there already.
    (block, at.saturating_add(1))
}

/// Makes a description of `N` bytes; used by [`tracelogging!`](crate::tracelogging).
///
/// # Panics
///
/// At compile time only, when a name has a NUL or the description is too large.
#[doc(hidden)]
#[allow(
    clippy::indexing_slicing,
    reason = "run by the compiler, which reports it"
)]
#[must_use]
pub const fn encode<const N: usize>(name: &str, fields: &[(&str, FieldType)]) -> [u8; N] {
    assert!(
        N <= u16::MAX as usize,
        "an event's description has 65,535 bytes at most; shorten names or drop fields"
    );
    let mut block = [0; N];
    let [low, high, ..] = N.to_le_bytes();
    block[0] = low;
    block[1] = high;
    let mut at = 3;
    (block, at) = put(block, at, name);
    let mut rest = fields;
    while let [(field, kind), after @ ..] = rest {
        (block, at) = put(block, at, field);
        if kind.out_type == 0 {
            block[at] = kind.in_type;
            at = at.saturating_add(1);
        } else {
            block[at] = kind.in_type | CHAIN;
            block[at.saturating_add(1)] = kind.out_type;
            at = at.saturating_add(2);
        }
        rest = after;
    }
    block
}

/// A `TraceLogging` event's description of itself, made when the driver is
/// compiled: the event's name, then `"field": type` with types from
/// [`field`].
///
/// ```
/// use wdk_etw::{field, tracelogging};
///
/// static READ: &[u8] = tracelogging!("Read", "Offset": field::U64, "Status": field::NTSTATUS);
/// assert_eq!(READ, b"\x19\x00\x00Read\0Offset\0\x0aStatus\0\x88\x0e");
/// ```
#[macro_export]
macro_rules! tracelogging {
    ($name:expr $(, $field:literal : $kind:expr)* $(,)?) => {
        const {
            const FIELDS: &[(&str, $crate::metadata::FieldType)] = &[$(($field, $kind)),*];
            const BLOCK: [u8; $crate::metadata::size($name, FIELDS)] =
                $crate::metadata::encode($name, FIELDS);
            &BLOCK
        }
    };
}
