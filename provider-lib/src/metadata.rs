//! `TraceLogging` events' own descriptions of themselves.
//!
//! A description is a block of bytes: its size (16 bits, itself included), tag
//! bytes, the event's name in UTF-8 with a NUL, then for every field its name with
//! a NUL, its type, and what its type asks for. The macro
//! [`tracelogging!`](crate::tracelogging) makes it when the driver is compiled.

/// An output type follows the input type.
const CHAIN: u8 = 0x80;
/// The field is an array whose length is in its description.
const FIXED_ARRAY: u8 = 0x20;
/// The field is an array whose length is in the event.
const ARRAY: u8 = 0x40;

/// `TlgInNULL`, `TlgInBINARY` and `_TlgInSTRUCT` of TraceLoggingProvider.h.
const BINARY: u8 = 14;
const STRUCTURE: u8 = 24;

/// The type of a field: how it is encoded, and how it is to be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldType {
    /// With the flag of an array.
    in_type: u8,
    /// For a structure, its number of fields; otherwise how to show it, 0 by default.
    out_type: u8,
    /// The length of an array that always has the same; 0 for everything else.
    fixed_length: u16,
}

impl FieldType {
    const fn new(in_type: u8, out_type: u8) -> Self {
        Self {
            in_type,
            out_type,
            fixed_length: 0,
        }
    }

    /// An array of such fields, of any length: the two pieces of
    /// [`Counted::array`](crate::Counted::array), or two bytes for the number of elements
    /// and then the elements.
    ///
    /// # Panics
    ///
    /// At compile time, for an array of arrays and for [`field::BINARY`] and what is
    /// encoded like it, which decoders cannot take apart.
    #[must_use]
    pub const fn array(mut self) -> Self {
        self.assert_can_repeat();
        self.in_type |= ARRAY;
        self
    }

    /// An array of exactly `length` such fields: the elements alone.
    ///
    /// # Panics
    ///
    /// At compile time, as [`Self::array`], and for a length of 0, which confuses
    /// decoders.
    #[must_use]
    pub const fn array_of(mut self, length: u16) -> Self {
        self.assert_can_repeat();
        assert!(
            length != 0,
            "an array of a fixed length has one element at least; use `array()`"
        );
        self.in_type |= FIXED_ARRAY;
        self.fixed_length = length;
        self
    }

    const fn assert_can_repeat(self) {
        assert!(
            self.in_type & (ARRAY | FIXED_ARRAY) == 0,
            "ETW has no arrays of arrays; put the inner one into a structure"
        );
        assert!(
            self.in_type != BINARY,
            "decoders cannot take arrays of binary fields apart; put the field into a structure"
        );
    }

    const fn is_structure(self) -> bool {
        self.in_type & !(ARRAY | FIXED_ARRAY) == STRUCTURE
    }

    /// Bytes of a type in a description.
    const fn size(self) -> usize {
        match (self.out_type, self.fixed_length) {
            (0, 0) => 1,
            (_, 0) => 2,
            (0, _) => 3,
            (_, _) => 4,
        }
    }
}

/// The types of fields. Each says how a write passes its content.
pub mod field {
    use super::{FieldType, STRUCTURE};

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
    /// `f32`, or its bits.
    pub const F32: FieldType = FieldType::new(11, 0);
    /// `f64`, or its bits.
    pub const F64: FieldType = FieldType::new(12, 0);
    /// `u8`, shown in hexadecimal.
    pub const HEX8: FieldType = FieldType::new(4, 4);
    /// `u16`, shown in hexadecimal.
    pub const HEX16: FieldType = FieldType::new(6, 4);
    /// `u32`, shown in hexadecimal.
    pub const HEX32: FieldType = FieldType::new(20, 0);
    /// `u64`, shown in hexadecimal. Also an address, which says where the kernel lies:
    /// think before writing one.
    pub const HEX64: FieldType = FieldType::new(21, 0);
    /// `u64`: the address of code, shown with its symbol where there is one.
    pub const CODE_POINTER: FieldType = FieldType::new(21, 37);
    /// `u8` that is 0 or 1.
    pub const BOOL8: FieldType = FieldType::new(4, 3);
    /// `u32` that is 0 or 1.
    pub const BOOL32: FieldType = FieldType::new(13, 0);
    /// An `NTSTATUS`.
    pub const NTSTATUS: FieldType = FieldType::new(8, 14);
    /// `i32`: an `HRESULT`.
    pub const HRESULT: FieldType = FieldType::new(7, 15);
    /// `u32`: a Win32 error.
    pub const WIN32_ERROR: FieldType = FieldType::new(8, 13);
    /// A [`Guid`](crate::Guid).
    pub const GUID: FieldType = FieldType::new(15, 0);
    /// `i64`: 100 ns since 1601-01-01 UTC.
    pub const FILETIME: FieldType = FieldType::new(17, 0);
    /// `[u16; 8]`: year, month, day of the week, day, hour, minute, second, millisecond.
    pub const SYSTEMTIME: FieldType = FieldType::new(18, 0);
    /// A process id, `u32`.
    pub const PID: FieldType = FieldType::new(8, 5);
    /// A thread id, `u32`.
    pub const TID: FieldType = FieldType::new(8, 6);
    /// A security identifier: its 8 bytes and 4 for each of its subauthorities.
    pub const SID: FieldType = FieldType::new(19, 0);
    /// `u16`: a port, in the network's byte order.
    pub const PORT: FieldType = FieldType::new(6, 7);
    /// `[u8; 4]`: an IPv4 address, in the network's byte order.
    pub const IPV4: FieldType = FieldType::new(8, 8);
    /// 16 bytes, an IPv6 address: the two pieces of a [`Counted`](crate::Counted).
    pub const IPV6: FieldType = FieldType::new(14, 9);
    /// A socket address: the two pieces of a [`Counted`](crate::Counted).
    pub const SOCKET_ADDRESS: FieldType = FieldType::new(14, 10);
    /// UTF-8 text: the two pieces of a [`Counted`](crate::Counted).
    pub const STR8: FieldType = FieldType::new(23, 35);
    /// UTF-16 text: the two pieces of a [`Counted`](crate::Counted).
    pub const STR16: FieldType = FieldType::new(22, 0);
    /// UTF-8 text up to and with its NUL: a C string.
    pub const C_STR8: FieldType = FieldType::new(2, 35);
    /// UTF-16 text up to and with its NUL.
    pub const C_STR16: FieldType = FieldType::new(1, 0);
    /// UTF-8 text that is JSON: the two pieces of a [`Counted`](crate::Counted).
    pub const JSON: FieldType = FieldType::new(23, 12);
    /// UTF-8 text that is XML: the two pieces of a [`Counted`](crate::Counted).
    pub const XML: FieldType = FieldType::new(23, 11);
    /// Bytes: the two pieces of a [`Counted`](crate::Counted).
    pub const BINARY: FieldType = FieldType::new(14, 0);

    /// A structure of the `fields` fields that follow, 1 to 127; a structure among
    /// them counts as one. It has no content of its own.
    ///
    /// # Panics
    ///
    /// At compile time, for another number.
    #[must_use]
    pub const fn structure(fields: u8) -> FieldType {
        assert!(
            fields >= 1 && fields <= 127,
            "a structure has 1 to 127 fields; split it"
        );
        FieldType::new(STRUCTURE, fields)
    }
}

/// How many bytes a description has; used by [`tracelogging!`](crate::tracelogging).
#[doc(hidden)]
#[must_use]
pub const fn size(name: &str, fields: &[(&str, FieldType)]) -> usize {
    // Size, one tag byte, the name and its NUL.
    let mut size = name.len().saturating_add(4);
    let mut rest = fields;
    while let [(field, kind), after @ ..] = rest {
        // The name, its NUL and the type.
        let more = field.len().saturating_add(1).saturating_add(kind.size());
        size = size.saturating_add(more);
        rest = after;
    }
    size
}

/// A description that is being made.
struct Block<const N: usize> {
    bytes: [u8; N],
    at: usize,
}

impl<const N: usize> Block<N> {
    #[allow(
        clippy::indexing_slicing,
        reason = "run by the compiler, which reports it"
    )]
    const fn put(&mut self, byte: u8) {
        self.bytes[self.at] = byte;
        self.at = self.at.saturating_add(1);
    }

    const fn put_u16(&mut self, value: u16) {
        let [low, high] = value.to_le_bytes();
        self.put(low);
        self.put(high);
    }

    /// A name and its NUL.
    const fn put_name(&mut self, name: &str) {
        let mut rest = name.as_bytes();
        while let [byte, after @ ..] = rest {
            assert!(
                *byte != 0,
                "the name of an event or field ends at its first NUL; remove the NUL"
            );
            self.put(*byte);
            rest = after;
        }
        self.put(0);
    }

    const fn put_type(&mut self, kind: FieldType) {
        if kind.out_type == 0 {
            self.put(kind.in_type);
        } else {
            self.put(kind.in_type | CHAIN);
            self.put(kind.out_type);
        }
        if kind.fixed_length != 0 {
            self.put_u16(kind.fixed_length);
        }
    }
}

/// Takes the field at the start of a list, and, if it is a structure, those in it;
/// returns the rest.
const fn after_field<'a>(fields: &'a [(&'a str, FieldType)]) -> &'a [(&'a str, FieldType)] {
    assert!(
        !fields.is_empty(),
        "a structure has more fields than follow it; correct its number of fields"
    );
    let [(_, kind), rest @ ..] = fields else {
        return fields;
    };
    let mut rest = rest;
    if kind.is_structure() {
        let mut left = kind.out_type;
        while left > 0 {
            rest = after_field(rest);
            left = left.saturating_sub(1);
        }
    }
    rest
}

/// Makes a description of `N` bytes; used by [`tracelogging!`](crate::tracelogging).
///
/// # Panics
///
/// At compile time only: when a name has a NUL, a structure lacks fields, or the
/// description is too large.
#[doc(hidden)]
#[must_use]
pub const fn encode<const N: usize>(name: &str, fields: &[(&str, FieldType)]) -> [u8; N] {
    assert!(
        N <= u16::MAX as usize,
        "an event's description has 65,535 bytes at most; shorten names or drop fields"
    );
    let mut rest = fields;
    while !rest.is_empty() {
        rest = after_field(rest);
    }
    let mut block = Block {
        bytes: [0; N],
        at: 0,
    };
    let [low, high, ..] = N.to_le_bytes();
    block.put_u16(u16::from_le_bytes([low, high]));
    // No tag.
    block.put(0);
    block.put_name(name);
    let mut rest = fields;
    while let [(field, kind), after @ ..] = rest {
        block.put_name(field);
        block.put_type(*kind);
        rest = after;
    }
    block.bytes
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
///
/// // A structure names the number of fields that are in it.
/// static MOVED: &[u8] = tracelogging!(
///     "Moved",
///     "From": field::structure(2), "Disk": field::U8, "Block": field::U64,
///     "Checksums": field::HEX32.array(),
/// );
/// # assert_eq!(MOVED[0], 40);
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

#[cfg(all(test, not(loom)))]
mod tests {
    use super::field;

    // R-O5
    #[test]
    fn the_worked_example_comes_out() {
        let description: &[u8] = tracelogging!(
            "Evt",
            "count": field::U32,
            "status": field::NTSTATUS,
            "data": field::U8.array(),
            "S": field::structure(2),
            "a": field::I32,
            "b": field::STR16,
            "fix": field::U16.array_of(3),
        );
        let expected = [
            0x2E, 0x00, 0x00, 0x45, 0x76, 0x74, 0x00, 0x63, 0x6F, 0x75, 0x6E, 0x74, 0x00, 0x08,
            0x73, 0x74, 0x61, 0x74, 0x75, 0x73, 0x00, 0x88, 0x0E, 0x64, 0x61, 0x74, 0x61, 0x00,
            0x44, 0x53, 0x00, 0x98, 0x02, 0x61, 0x00, 0x07, 0x62, 0x00, 0x16, 0x66, 0x69, 0x78,
            0x00, 0x26, 0x03, 0x00,
        ];
        assert_eq!(description, expected);
        assert_eq!(tracelogging!("E"), &[5, 0, 0, 0x45, 0]);
    }

    // R-O5
    #[test]
    fn a_structure_can_be_an_array_and_hold_another() {
        let description: &[u8] = tracelogging!(
            "E",
            "o": field::structure(2).array_of(2),
            "i": field::structure(1).array(),
            "x": field::HEX8.array_of(4),
            "y": field::U8,
        );
        assert_eq!(
            description,
            b"\x18\0\0E\0o\0\xB8\x02\x02\0i\0\xD8\x01x\0\xA4\x04\x04\0y\0\x04"
        );
    }
}
