//! Event data descriptors: pieces of an event's content.

use core::marker::PhantomData;

use crate::plain::PlainData;

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

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

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
