//! Event data descriptors: pieces of an event's content.

use core::marker::PhantomData;

use crate::{
    ActivityId, F32, F64, FileTime, Guid, HResult, NtStatus, ProcessId, SystemTime, ThreadId,
    Win32Error,
};

/// A piece of an event's content (`EVENT_DATA_DESCRIPTOR` of evntprov.h), borrowed
/// for the write.
///
/// 16 bytes: the address at 0 (64 bits), the size in bytes at 8, the type at 12, and
/// three reserved bytes, which are zero.
///
/// ETW concatenates the pieces as they are, without padding. Above `APC_LEVEL` they
/// must lie in memory that cannot be paged out; a driver's stack, globals and
/// non-paged pool do.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct EventDataDescriptor<'a> {
    address: u64,
    size: u32,
    /// The type in the lowest byte; the reserved ones are above it.
    kind: u32,
    borrowed: PhantomData<&'a [u8]>,
}

const _: () = {
    assert!(size_of::<EventDataDescriptor<'_>>() == 16);
    assert!(core::mem::offset_of!(EventDataDescriptor<'_>, size) == 8);
    assert!(core::mem::offset_of!(EventDataDescriptor<'_>, kind) == 12);
};

/// A type whose bytes are an event field as they lie in memory.
///
/// # Safety
///
/// Every byte of a value is initialized: no padding, no pointers that mean
/// something beyond their bits.
pub unsafe trait PlainData {}

macro_rules! plain {
    ($($type:ty),*) => {$(
        // SAFETY: the type has no padding.
        unsafe impl PlainData for $type {}
    )*};
}

plain!(
    u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize, f32, f64
);
plain!(Guid, ActivityId, NtStatus);
plain!(
    F32, F64, FileTime, HResult, ProcessId, SystemTime, ThreadId, Win32Error
);

// SAFETY: an array has no padding between its elements, and they have none inside.
unsafe impl<T: PlainData, const N: usize> PlainData for [T; N] {}

/// `EVENT_DATA_DESCRIPTOR_TYPE_*`.
const PAYLOAD: u32 = 0;
const EVENT_METADATA: u32 = 1;
const PROVIDER_METADATA: u32 = 2;

impl<'a> EventDataDescriptor<'a> {
    fn new(bytes: &'a [u8], kind: u32) -> Self {
        Self {
            address: bytes.as_ptr() as u64,
            // An event has at most 64 KB; a longer slice must not look like a short one.
            size: u32::try_from(bytes.len()).unwrap_or(u32::MAX),
            kind,
            borrowed: PhantomData,
        }
    }

    /// Bytes that were seen to fit into an event.
    #[doc(hidden)]
    #[must_use]
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        clippy::cast_possible_truncation,
        reason = "it is two moves; the length is below 65,536"
    )]
    pub fn fitting(bytes: &'a [u8]) -> Self {
        // Both halves of the length, the higher of which is the type, 0: that is one
        // store instead of two.
        let length = bytes.len() as u64;
        Self {
            address: bytes.as_ptr() as u64,
            size: length as u32,
            kind: (length >> 32) as u32,
            borrowed: PhantomData,
        }
    }

    /// A field of a fixed size.
    ///
    /// # IRQL
    ///
    /// Any.
    #[must_use]
    pub fn of<T: PlainData>(value: &'a T) -> Self {
        let start = core::ptr::from_ref(value).cast::<u8>();
        // SAFETY: the trait promises that all the value's bytes are initialized, and
        // they are borrowed as long as the descriptor.
        Self::bytes(unsafe { core::slice::from_raw_parts(start, size_of::<T>()) })
    }

    /// A slice of fields of a fixed size, without their number.
    ///
    /// # IRQL
    ///
    /// Any.
    #[must_use]
    pub fn slice<T: PlainData>(values: &'a [T]) -> Self {
        let start = values.as_ptr().cast::<u8>();
        // SAFETY: as in `of`, and elements lie one after the other.
        Self::bytes(unsafe { core::slice::from_raw_parts(start, size_of_val(values)) })
    }

    /// Bytes as they are.
    ///
    /// # IRQL
    ///
    /// Any.
    #[must_use]
    pub fn bytes(bytes: &'a [u8]) -> Self {
        Self::new(bytes, PAYLOAD)
    }

    /// A `TraceLogging` event's metadata. IRQL: any.
    #[must_use]
    pub(crate) fn event_metadata(metadata: &'a [u8]) -> Self {
        Self::new(metadata, EVENT_METADATA)
    }

    /// None; for a place where one will be.
    pub(crate) const EMPTY: Self = Self {
        address: 0,
        size: 0,
        kind: PAYLOAD,
        borrowed: PhantomData,
    };

    /// A provider's metadata: its traits. IRQL: any.
    #[must_use]
    pub(crate) fn provider_metadata(traits: &'a [u8]) -> Self {
        Self::new(traits, PROVIDER_METADATA)
    }

    /// How many bytes the piece has.
    ///
    /// # IRQL
    ///
    /// Any.
    #[must_use]
    pub const fn size(&self) -> u32 {
        self.size
    }
}

/// A string, blob or array with its length before it, as ETW's counted types have it:
/// two bytes for the number of bytes (of elements, for an array), then the bytes. What
/// is longer than 65,535 is cut.
///
/// ```
/// use wdk_etw::Counted;
///
/// let name = Counted::str("disk0");
/// let [length, text] = name.descriptors();
/// assert_eq!((length.size(), text.size()), (2, 5));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Counted<'a> {
    length: u16,
    bytes: &'a [u8],
}

impl<'a> Counted<'a> {
    /// Bytes.
    ///
    /// # IRQL
    ///
    /// Any.
    #[must_use]
    pub fn bytes(bytes: &'a [u8]) -> Self {
        let cut = bytes.get(..usize::from(u16::MAX)).unwrap_or(bytes);
        Self {
            // It fits: the slice is no longer than that.
            length: u16::try_from(cut.len()).unwrap_or(u16::MAX),
            bytes: cut,
        }
    }

    /// UTF-8 text, cut between characters.
    ///
    /// # IRQL
    ///
    /// Any.
    #[must_use]
    pub fn str(text: &'a str) -> Self {
        let mut end = text.len().min(usize::from(u16::MAX));
        while !text.is_char_boundary(end) {
            end = end.saturating_sub(1);
        }
        Self::bytes(text.as_bytes().get(..end).unwrap_or_default())
    }

    /// UTF-16 text, cut between units.
    ///
    /// # IRQL
    ///
    /// Any.
    #[must_use]
    pub fn utf16(text: &'a [u16]) -> Self {
        const LONGEST: usize = u16::MAX as usize / 2;
        let cut = text.get(..LONGEST).unwrap_or(text);
        let start = cut.as_ptr().cast::<u8>();
        // SAFETY: the units' bytes are initialized, and borrowed as long as the result.
        Self::bytes(unsafe { core::slice::from_raw_parts(start, size_of_val(cut)) })
    }

    /// An array of fields of a fixed size, whose length is its number of elements; for
    /// a field with [`FieldType::array`](crate::metadata::FieldType::array).
    ///
    /// # IRQL
    ///
    /// Any.
    #[must_use]
    pub fn array<T: PlainData>(values: &'a [T]) -> Self {
        let cut = values.get(..usize::from(u16::MAX)).unwrap_or(values);
        let start = cut.as_ptr().cast::<u8>();
        Self {
            // It fits: the slice is no longer than that.
            length: u16::try_from(cut.len()).unwrap_or(u16::MAX),
            // SAFETY: the trait promises that the elements' bytes are initialized; they
            // are borrowed as long as the result.
            bytes: unsafe { core::slice::from_raw_parts(start, size_of_val(cut)) },
        }
    }

    /// The two pieces.
    ///
    /// # IRQL
    ///
    /// Any.
    #[must_use]
    pub fn descriptors(&self) -> [EventDataDescriptor<'_>; 2] {
        [
            EventDataDescriptor::of(&self.length),
            EventDataDescriptor::bytes(self.bytes),
        ]
    }

    /// The piece with the length.
    ///
    /// # IRQL
    ///
    /// Any.
    #[must_use]
    pub fn length(&self) -> EventDataDescriptor<'_> {
        EventDataDescriptor::of(&self.length)
    }

    /// The piece with the bytes.
    ///
    /// # IRQL
    ///
    /// Any.
    #[must_use]
    pub fn content(&self) -> EventDataDescriptor<'_> {
        EventDataDescriptor::bytes(self.bytes)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    extern crate std;

    use std::vec;

    use super::*;

    #[test]
    fn a_counted_fields_length_is_that_of_its_bytes() {
        for length in [0, 1, 65_534, 65_535, 65_536, 100_000] {
            let text = "é".repeat(length / 2) + if length % 2 == 1 { "x" } else { "" };
            let counted = Counted::str(&text);
            assert_eq!(usize::from(counted.length), counted.bytes.len());
            assert!(
                std::str::from_utf8(counted.bytes).is_ok(),
                "cut inside a character"
            );
            let units = vec![0x41_u16; length];
            let counted = Counted::utf16(&units);
            assert_eq!(usize::from(counted.length), counted.bytes.len());
            assert_eq!(counted.length % 2, 0, "cut inside a unit");
        }
    }

    #[test]
    fn an_arrays_length_is_its_number_of_elements() {
        let counted = Counted::array(&[1_u32, 2, 3]);
        assert_eq!((counted.length, counted.bytes.len()), (3, 12));
        let longer = vec![0_u16; 65_536];
        let counted = Counted::array(&longer);
        assert_eq!((counted.length, counted.bytes.len()), (65_535, 131_070));
    }

    #[test]
    fn a_descriptor_points_at_the_values_bytes() {
        let value = 0x1122_3344_u32;
        let piece = EventDataDescriptor::of(&value);
        let address = &raw const value as u64;
        assert_eq!((piece.address, piece.size, piece.kind), (address, 4, 0));
        assert_eq!(EventDataDescriptor::slice(&[1_u16, 2, 3]).size(), 6);
        let traits = EventDataDescriptor::provider_metadata(&[1; 5]);
        assert_eq!((traits.size(), traits.kind), (5, 2));
    }
}
