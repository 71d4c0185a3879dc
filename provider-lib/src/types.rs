//! The types of fields that Rust has no type of its own for.

use core::{ffi::c_void, fmt, slice};

use crate::plain::plain;

/// The most 16-bit units that a NUL-terminated text is looked at for.
const MOST_UNITS: usize = 32_767;

macro_rules! number {
    ($($(#[$doc:meta])* $name:ident($type:ty);)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(transparent)]
        pub struct $name(pub $type);

        impl From<$type> for $name {
            fn from(value: $type) -> Self {
                Self(value)
            }
        }
    )*};
}

number! {
    /// A point in time: units of 100 ns since 1601-01-01 UTC (`FILETIME`), as
    /// `KeQuerySystemTimePrecise` has it.
    FileTime(i64);
    /// An `HRESULT`.
    HResult(i32);
    /// A Win32 error.
    Win32Error(u32);
    /// A process's id.
    ProcessId(u32);
    /// A thread's id.
    ThreadId(u32);
    /// A TCP or UDP port, in the processor's byte order.
    Port(u16);
}

plain!(
    FileTime, HResult, Win32Error, ProcessId, ThreadId, SystemTime, Luid, F32, F64
);

/// A date and a time of day (`SYSTEMTIME`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(C)]
#[expect(missing_docs, reason = "the names say it all")]
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

/// A locally unique identifier (`LUID`), such as that of a graphics adapter.
///
/// 8 bytes: `low_part` at 0, `high_part` at 4. Decoders show it as one hexadecimal number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(C)]
#[expect(missing_docs, reason = "the fields are named after those of LUID")]
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
            #[doc = concat!("The bits of an `", stringify!($type), "`; for constants.")]
            ///
            /// # IRQL
            ///
            /// Any, where it is run by the compiler.
            #[must_use]
            pub const fn new(value: $type) -> Self {
                Self(value.to_bits())
            }

            /// The number with these bits.
            ///
            /// # IRQL
            ///
            /// Any.
            #[must_use]
            pub const fn from_bits(bits: $bits) -> Self {
                Self(bits)
            }

            /// The bits.
            ///
            /// # IRQL
            ///
            /// Any.
            #[must_use]
            pub const fn to_bits(self) -> $bits {
                self.0
            }
        }
    )*};
}

bits_of_number! {
    /// The bits of a floating-point number of 32 bits. Kernel code keeps off the
    /// registers for such numbers, so it passes their bits.
    F32(u32) of f32;
    /// The bits of a floating-point number of 64 bits. Kernel code keeps off the
    /// registers for such numbers, so it passes their bits.
    F64(u64) of f64;
}

/// An address. Where the kernel's memory lies helps who attacks it, so a field of this
/// type tells only whether it is null, unless the declaration says `#[address]`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Pointer(u64);

impl Pointer {
    /// The address of something.
    ///
    /// # IRQL
    ///
    /// Any.
    #[must_use]
    pub fn new<T: ?Sized>(pointer: *const T) -> Self {
        Self(pointer.cast::<c_void>().addr() as u64)
    }

    /// The address, for a field that tells it.
    #[doc(hidden)]
    #[must_use]
    pub const fn address(self) -> u64 {
        self.0
    }

    /// 0 for null, and all ones for every address.
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

/// UTF-16 text with its length, as a `UNICODE_STRING` has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnicodeString<'a>(&'a [u16]);

impl<'a> UnicodeString<'a> {
    /// The text of these units.
    ///
    /// # IRQL
    ///
    /// Any.
    #[must_use]
    pub const fn new(units: &'a [u16]) -> Self {
        Self(units)
    }

    /// The text of a `UNICODE_STRING`'s `Buffer` and `Length`, which is in bytes.
    ///
    /// # IRQL
    ///
    /// Any, if the buffer cannot be paged out; otherwise `APC_LEVEL` or below.
    ///
    /// # Safety
    ///
    /// `buffer` is null, or points at `length` bytes that are readable and do not change
    /// while the text is used.
    #[must_use]
    pub const unsafe fn from_raw_parts(buffer: *const u16, length: u16) -> Self {
        if buffer.is_null() {
            return Self(&[]);
        }
        // SAFETY: the caller promises as much.
        Self(unsafe { slice::from_raw_parts(buffer, length as usize / 2) })
    }

    /// The units.
    ///
    /// # IRQL
    ///
    /// Any.
    #[must_use]
    pub const fn units(self) -> &'a [u16] {
        self.0
    }
}

/// UTF-16 text that a NUL ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Utf16CStr<'a>(&'a [u16]);

impl<'a> Utf16CStr<'a> {
    /// The text up to the first NUL among these units, or all of them.
    ///
    /// # IRQL
    ///
    /// Any.
    #[must_use]
    pub fn new(units: &'a [u16]) -> Self {
        let end = units.iter().position(|unit| *unit == 0);
        Self(end.and_then(|end| units.get(..end)).unwrap_or(units))
    }

    /// The text that starts here (`PCWSTR`), up to its NUL; no more than 32,767 units of
    /// it.
    ///
    /// # IRQL
    ///
    /// Any, if the text cannot be paged out; otherwise `APC_LEVEL` or below.
    ///
    /// # Safety
    ///
    /// `start` is null, or points at units that are readable up to and with a NUL, and
    /// that do not change while the text is used.
    #[must_use]
    pub const unsafe fn from_ptr(start: *const u16) -> Self {
        if start.is_null() {
            return Self(&[]);
        }
        let mut length = 0_usize;
        while length < MOST_UNITS {
            // SAFETY: no NUL came before, so the caller promises that there is more.
            let next = unsafe { start.add(length) };
            // SAFETY: as above.
            if unsafe { next.read() } == 0 {
                break;
            }
            length = length.wrapping_add(1);
        }
        // SAFETY: all of these were read above.
        Self(unsafe { slice::from_raw_parts(start, length) })
    }

    /// The units, without the NUL.
    ///
    /// # IRQL
    ///
    /// Any.
    #[must_use]
    pub const fn units(self) -> &'a [u16] {
        self.0
    }
}

/// A security identifier: its revision, its number of subauthorities (15 at most), its
/// authority (6 bytes), and 4 bytes for each subauthority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sid<'a>(&'a [u8]);

/// Bytes of a security identifier before its subauthorities.
const SID_HEAD: usize = 8;
/// The most subauthorities.
const MOST_SUBAUTHORITIES: u8 = 15;

impl<'a> Sid<'a> {
    /// The identifier at the start of these bytes, if there is a whole one.
    ///
    /// # IRQL
    ///
    /// Any.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Option<Self> {
        let [1, count @ 0..=MOST_SUBAUTHORITIES, ..] = bytes else {
            return None;
        };
        let length = usize::from(*count).wrapping_mul(4).wrapping_add(SID_HEAD);
        bytes.get(..length).map(Self)
    }

    /// The identifier that a `PSID` points at, if it is one.
    ///
    /// # IRQL
    ///
    /// Any, if the identifier cannot be paged out; otherwise `APC_LEVEL` or below.
    ///
    /// # Safety
    ///
    /// `start` is null, or points at a `SID` that is readable and does not change while
    /// the result is used.
    #[must_use]
    pub unsafe fn from_ptr(start: *const c_void) -> Option<Self> {
        if start.is_null() {
            return None;
        }
        let start = start.cast::<u8>();
        // SAFETY: every identifier has its first 8 bytes, as the caller promises.
        let head = unsafe { slice::from_raw_parts(start, SID_HEAD) };
        let [1, count @ 0..=MOST_SUBAUTHORITIES, ..] = head else {
            return None;
        };
        let length = usize::from(*count).wrapping_mul(4).wrapping_add(SID_HEAD);
        // SAFETY: and as many bytes as it says.
        Some(Self(unsafe { slice::from_raw_parts(start, length) }))
    }

    /// The bytes.
    ///
    /// # IRQL
    ///
    /// Any.
    #[must_use]
    pub const fn as_bytes(self) -> &'a [u8] {
        self.0
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_pointer_tells_its_address_only_when_asked() {
        let value = 5_u32;
        let pointer = Pointer::new(&raw const value);
        assert_eq!(pointer.address(), (&raw const value).addr() as u64);
        assert_eq!(pointer.hidden(), u64::MAX);
        assert_eq!(Pointer::new(core::ptr::null::<u32>()).hidden(), 0);
    }

    #[test]
    fn a_security_identifier_is_whole() {
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
    fn texts_end_at_their_nul() {
        let units = [0x41, 0x42, 0, 0x43];
        assert_eq!(Utf16CStr::new(&units).units(), [0x41, 0x42]);
        // SAFETY: there is a NUL.
        let pointed = unsafe { Utf16CStr::from_ptr(units.as_ptr()) };
        assert_eq!(pointed.units(), [0x41, 0x42]);
        // SAFETY: two units are there.
        let counted = unsafe { UnicodeString::from_raw_parts(units.as_ptr(), 5) };
        assert_eq!(counted.units(), [0x41, 0x42]);
    }
}
