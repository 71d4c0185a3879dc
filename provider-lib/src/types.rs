//! Field types that the Rust libraries do not provide.

use core::{ffi::c_void, fmt, slice};

use crate::{
    plain::plain,
    print::{Print, quoted, values},
    text::is_pair,
};

/// The maximum length of a NUL-terminated UTF-16 string, in code units.
const MAX_UNITS: usize = 32_767;

/// Declares numbers with a meaning, and their text in the debugger.
macro_rules! number {
    ($($(#[$doc:meta])* $name:ident($type:ty): $value:ident => $($format:expr),+;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(transparent)]
        pub struct $name(pub $type);

        impl From<$type> for $name {
            fn from(value: $type) -> Self {
                Self(value)
            }
        }

        values!($name: $value => $($format),+;);
    )*};
}

number! {
    /// A point in time: the number of 100 ns units since 1601-01-01 UTC (`FILETIME`), as
    /// `KeQuerySystemTimePrecise` returns it.
    FileTime(i64): v => "{}", v.0;
    /// A `BOOL`: 32 bits, false if zero. (A `bool` takes one byte in an event.)
    Bool32(u32): v => "{}", v.0 != 0;
    /// An `HRESULT`.
    HResult(i32): v => "0x{:08X}", v.0;
    /// A Win32 error code.
    Win32Error(u32): v => "{}", v.0;
    /// A process id.
    ProcessId(u32): v => "{}", v.0;
    /// A thread id.
    ThreadId(u32): v => "{}", v.0;
    /// A TCP or UDP port in the processor's byte order.
    Port(u16): v => "{}", v.0;
}

impl From<bool> for Bool32 {
    fn from(value: bool) -> Self {
        Self(value.into())
    }
}

plain!(
    Bool32, Pointer, FileTime, HResult, Win32Error, ProcessId, ThreadId, SystemTime, Luid, F32, F64
);

values! {
    // Kernel code must not use floating-point registers, so a line shows the bits.
    F32: v => "{:#010x}", v.to_bits();
    F64: v => "{:#018x}", v.to_bits();
    Luid: v => "{:#x}", u64::from(v.high_part.cast_unsigned()) << 32 | u64::from(v.low_part);
    SystemTime: v => "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}",
        v.year, v.month, v.day, v.hour, v.minute, v.second, v.millisecond;
}

/// A date and time of day (`SYSTEMTIME`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(C)]
#[expect(missing_docs, reason = "the fields are named after their contents")]
pub struct SystemTime {
    pub year: u16,
    pub month: u16,
    /// 0 is Sunday.
    pub day_of_week: u16,
    pub day: u16,
    pub hour: u16,
    pub minute: u16,
    pub second: u16,
    pub millisecond: u16,
}

/// A locally unique identifier (`LUID`), such as the identifier of a graphics adapter.
///
/// 8 bytes: `low_part` at 0, `high_part` at 4. Decoders show it as one hexadecimal number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(C)]
#[expect(missing_docs, reason = "the fields are named as in LUID")]
pub struct Luid {
    pub low_part: u32,
    pub high_part: i32,
}

macro_rules! bits_of_number {
    ($($(#[$doc:meta])* $name:ident($bits:ty) of $type:ty;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        #[repr(transparent)]
        pub struct $name($bits);

        impl $name {
            #[doc = concat!("Converts an `", stringify!($type), "`, in constants only: kernel code must not use")]
            /// floating-point registers.
            #[must_use]
            pub const fn new(value: $type) -> Self {
                Self(value.to_bits())
            }

            /// Creates the number from its bit pattern.
            #[must_use]
            pub const fn from_bits(bits: $bits) -> Self {
                Self(bits)
            }

            /// Returns the bit pattern.
            #[must_use]
            pub const fn to_bits(self) -> $bits {
                self.0
            }
        }
    )*};
}

bits_of_number! {
    /// A 32-bit floating-point number, stored as its bits because kernel code must not use
    /// floating-point registers.
    F32(u32) of f32;
    /// A 64-bit floating-point number, stored as its bits because kernel code must not use
    /// floating-point registers.
    F64(u64) of f64;
}

/// An address. Kernel addresses help attackers, so a field of this type only says whether the
/// address is null, unless the declaration has `#[address]`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Pointer(u64);

impl Pointer {
    /// Creates a pointer from a raw pointer.
    #[must_use]
    pub fn new<T: ?Sized>(pointer: *const T) -> Self {
        Self(pointer.cast::<c_void>().addr() as u64)
    }

    /// Returns the address, for a field with `#[address]`.
    #[doc(hidden)]
    #[must_use]
    pub const fn address(self) -> u64 {
        self.0
    }

    /// Returns 0 for null, and `u64::MAX` for every other address.
    #[doc(hidden)]
    #[must_use]
    pub const fn hidden(self) -> u64 {
        if self.0 == 0 { 0 } else { u64::MAX }
    }
}

impl<T: ?Sized> From<*const T> for Pointer {
    fn from(pointer: *const T) -> Self {
        Self::new(pointer)
    }
}

impl<T: ?Sized> From<*mut T> for Pointer {
    fn from(pointer: *mut T) -> Self {
        Self::new(pointer)
    }
}

impl fmt::Debug for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0 == 0 { "null" } else { "not null" })
    }
}

/// A counted UTF-16 string, as in a `UNICODE_STRING`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnicodeString<'a>(&'a [u16]);

impl<'a> UnicodeString<'a> {
    /// Creates a string from its code units.
    #[must_use]
    pub const fn new(units: &'a [u16]) -> Self {
        Self(units)
    }

    /// Creates a string from the `Buffer` and `Length` (in bytes) of a `UNICODE_STRING`.
    ///
    /// # IRQL
    ///
    /// Any, if the buffer is in non-pageable memory; otherwise `APC_LEVEL` or below.
    /// An event takes it only from system space; see
    /// [`EventDataDescriptor`](crate::EventDataDescriptor).
    ///
    /// # Safety
    ///
    /// `buffer` must be null, or be aligned to 2 bytes and point to `length` bytes that are
    /// readable and do not change while the result exists. Check the alignment of a buffer from an
    /// external source, such as a file or a request.
    #[must_use]
    pub const unsafe fn from_raw_parts(buffer: *const u16, length: u16) -> Self {
        if buffer.is_null() {
            return Self(&[]);
        }
        // SAFETY: the caller guarantees that the buffer has `length` readable bytes.
        Self(unsafe { slice::from_raw_parts(buffer, length as usize / 2) })
    }

    /// Returns the code units.
    #[must_use]
    pub const fn units(self) -> &'a [u16] {
        self.0
    }
}

/// A NUL-terminated UTF-16 string.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Utf16CStr<'a>(&'a [u16]);

impl<'a> Utf16CStr<'a> {
    /// Creates a string from the code units before the first NUL, or from all code units.
    #[must_use]
    pub fn new(units: &'a [u16]) -> Self {
        let end = units.iter().position(|unit| *unit == 0);
        Self(end.and_then(|end| units.get(..end)).unwrap_or(units))
    }

    /// Creates a string from a pointer to its first code unit (`PCWSTR`). The string ends at the
    /// first NUL, or after 32,767 code units; a surrogate pair that crosses this limit is omitted.
    ///
    /// # IRQL
    ///
    /// Any, if the string is in non-pageable memory; otherwise `APC_LEVEL` or below.
    /// An event takes it only from system space; see
    /// [`EventDataDescriptor`](crate::EventDataDescriptor).
    ///
    /// # Safety
    ///
    /// `start` must be null, or be aligned to 2 bytes and point to code units that are readable up to
    /// and including a NUL, and that do not change while the result exists.
    #[must_use]
    pub const unsafe fn from_ptr(start: *const u16) -> Self {
        if start.is_null() {
            return Self(&[]);
        }
        let (mut length, mut last) = (0_usize, 0);
        while length < MAX_UNITS {
            // SAFETY: no earlier unit is a NUL, so the caller guarantees that this one exists.
            let next = unsafe { start.add(length) };
            // SAFETY: the caller guarantees that the unit is readable.
            let unit = unsafe { next.read() };
            if unit == 0 {
                break;
            }
            last = unit;
            length = length.wrapping_add(1);
        }
        if length == MAX_UNITS {
            // SAFETY: no earlier unit is a NUL, so the caller guarantees that this one exists.
            let next = unsafe { start.add(length) };
            // SAFETY: the caller guarantees that the unit is readable.
            if is_pair(last, unsafe { next.read() }) {
                length = length.wrapping_sub(1);
            }
        }
        // SAFETY: the loop read all these units.
        Self(unsafe { slice::from_raw_parts(start, length) })
    }

    /// Returns the code units, without the NUL.
    #[must_use]
    pub const fn units(self) -> &'a [u16] {
        self.0
    }
}

/// A security identifier (`SID`): its revision (1 byte), its number of subauthorities (1 byte, at
/// most 15), its authority (6 bytes), and 4 bytes for each subauthority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sid<'a>(&'a [u8]);

/// The size of a security identifier before its subauthorities, in bytes.
const SID_HEAD: usize = 8;
/// The maximum number of subauthorities (`SID_MAX_SUB_AUTHORITIES`).
const MAX_SUBAUTHORITIES: u8 = 15;

impl<'a> Sid<'a> {
    /// Returns the identifier at the start of the bytes, or `None` if they do not contain a
    /// complete one.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Option<Self> {
        let [1, count @ 0..=MAX_SUBAUTHORITIES, ..] = bytes else {
            return None;
        };
        let length = usize::from(*count).wrapping_mul(4).wrapping_add(SID_HEAD);
        bytes.get(..length).map(Self)
    }

    /// Returns the identifier that a `PSID` points to, or `None` if the pointer is null or the
    /// identifier is invalid.
    ///
    /// # IRQL
    ///
    /// Any, if the identifier is in non-pageable memory; otherwise `APC_LEVEL` or below.
    /// An event takes it only from system space; see
    /// [`EventDataDescriptor`](crate::EventDataDescriptor).
    ///
    /// # Safety
    ///
    /// `start` must be null, or point to a `SID` that is readable and does not change while the
    /// result exists.
    #[must_use]
    pub unsafe fn from_ptr(start: *const c_void) -> Option<Self> {
        if start.is_null() {
            return None;
        }
        let start = start.cast::<u8>();
        // SAFETY: every identifier is at least 8 bytes long, and the caller guarantees that it is
        // readable.
        let head = unsafe { slice::from_raw_parts(start, SID_HEAD) };
        let [1, count @ 0..=MAX_SUBAUTHORITIES, ..] = head else {
            return None;
        };
        let length = usize::from(*count).wrapping_mul(4).wrapping_add(SID_HEAD);
        // SAFETY: the caller guarantees that the whole identifier is readable.
        Some(Self(unsafe { slice::from_raw_parts(start, length) }))
    }

    /// Returns the bytes.
    #[must_use]
    pub const fn as_bytes(self) -> &'a [u8] {
        self.0
    }
}

impl Print for Pointer {
    fn print(&self, writer: &mut dyn fmt::Write, is_hex: bool) -> fmt::Result {
        if is_hex { write!(writer, "{:#x}", self.address()) } else { write!(writer, "{self:?}") }
    }
}

impl Print for Sid<'_> {
    fn print(&self, writer: &mut dyn fmt::Write, _is_hex: bool) -> fmt::Result {
        let Some(([revision, _count, authority @ ..], subauthorities)) =
            self.as_bytes().split_first_chunk::<8>()
        else {
            return Ok(());
        };
        let authority = authority.iter().fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte));
        write!(writer, "S-{revision}-{authority}")?;
        subauthorities
            .as_chunks::<4>()
            .0
            .iter()
            .try_for_each(|subauthority| write!(writer, "-{}", u32::from_le_bytes(*subauthority)))
    }
}

impl Print for UnicodeString<'_> {
    fn print(&self, writer: &mut dyn fmt::Write, _is_hex: bool) -> fmt::Result {
        let characters = char::decode_utf16(self.units().iter().copied());
        quoted(writer, |writer| {
            characters
                .map(|one| one.unwrap_or(char::REPLACEMENT_CHARACTER))
                .try_for_each(|one| writer.write_char(one))
        })
    }
}

impl Print for Utf16CStr<'_> {
    fn print(&self, writer: &mut dyn fmt::Write, is_hex: bool) -> fmt::Result {
        UnicodeString::new(self.units()).print(writer, is_hex)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    extern crate std;

    use std::{string::String, vec::Vec};

    use super::*;

    #[test]
    fn hidden_replaces_a_pointers_address() {
        let value = 5_u32;
        let pointer = Pointer::new(&raw const value);
        assert_eq!(pointer.address(), (&raw const value).addr() as u64);
        assert_eq!(pointer.hidden(), u64::MAX);
        let null = Pointer::new(core::ptr::null::<u32>());
        assert_eq!((null.address(), null.hidden()), (0, 0));
        let mut value = value;
        let mutable = &raw mut value;
        assert_eq!(Pointer::from(mutable).address(), mutable.addr() as u64);
        assert_eq!(Pointer::from(mutable.cast_const()), Pointer::from(mutable));
        // Not even debug output shows an address.
        assert_eq!(std::format!("{null:?} {pointer:?}"), "null not null");
        assert_eq!((Bool32::from(false).0, Bool32::from(true).0), (0, 1));
    }

    #[test]
    fn truncated_and_invalid_security_identifiers_are_refused() {
        let system = [1, 1, 0, 0, 0, 0, 0, 5, 18, 0, 0, 0];
        assert_eq!(Sid::new(&system).map(Sid::as_bytes), Some(&system[..]));
        assert_eq!(Sid::new(&system[..11]), None);
        assert_eq!(Sid::new(&[2; 12]), None);
        assert_eq!(Sid::new(&[1, 16, 0]), None);
        // SAFETY: the array is a SID.
        let pointed = unsafe { Sid::from_ptr((&raw const system).cast()) };
        assert_eq!(pointed, Sid::new(&system));
        // SAFETY: null is allowed.
        assert_eq!(unsafe { Sid::from_ptr(core::ptr::null()) }, None);
    }

    #[test]
    fn a_text_that_is_too_long_ends_with_a_whole_character() {
        let long = |before: usize| {
            let text = "x".repeat(before) + &"\u{1F600}".repeat(20_000);
            text.encode_utf16().chain([0]).collect::<Vec<u16>>()
        };
        for (before, length) in [(0, 32_766), (1, 32_767)] {
            let units = long(before);
            // SAFETY: the units end with a NUL.
            let text = unsafe { Utf16CStr::from_ptr(units.as_ptr()) };
            assert_eq!(text.units().len(), length);
            assert!(String::from_utf16(text.units()).is_ok());
        }
    }

    #[test]
    fn texts_end_at_their_nul() {
        let units = [0x41, 0x42, 0, 0x43];
        assert_eq!(Utf16CStr::new(&units).units(), [0x41, 0x42]);
        // SAFETY: the array contains a NUL.
        let pointed = unsafe { Utf16CStr::from_ptr(units.as_ptr()) };
        assert_eq!(pointed.units(), [0x41, 0x42]);
        // SAFETY: the array is longer than five bytes.
        let counted = unsafe { UnicodeString::from_raw_parts(units.as_ptr(), 5) };
        assert_eq!(counted.units(), [0x41, 0x42]);
    }
}
