//! Event data descriptors.

use core::{fmt, marker::PhantomData};

use crate::{opaque, plain::PlainData};

/// A reference to part of an event's data (`EVENT_DATA_DESCRIPTOR` of evntprov.h).
///
/// 16 bytes: the address at 0 (64 bits), the size in bytes at 8, the type at 12, and
/// three reserved bytes, which are zero.
///
/// ETW concatenates the data of an event's descriptors without padding.
///
/// # Memory
///
/// In kernel mode, everything that a write passes to ETW (the data, the event metadata and the
/// options) must be in system space at any IRQL (ETW-1.2.13). A buffer in a program's address space,
/// even a probed or locked one, must first be copied or mapped to system space. Above `APC_LEVEL` the
/// memory must also be non-pageable, such as a driver's stack, globals and non-paged pool.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct EventDataDescriptor<'a> {
    address: u64,
    size: u32,
    /// The type, in the lowest byte, and the reserved bytes above it.
    kind: u32,
    borrowed: PhantomData<&'a [u8]>,
}

impl fmt::Debug for EventDataDescriptor<'_> {
    /// Shows the size and the type, but not the address, which is one of the kernel.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = f.debug_struct("EventDataDescriptor");
        fields.field("size", &self.size).field("type", &self.kind).finish_non_exhaustive()
    }
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
            // ETW refuses this size, because an event has at most 64 KB. A truncated size could
            // look valid.
            size: u32::try_from(bytes.len()).unwrap_or(u32::MAX),
            kind,
            borrowed: PhantomData,
        }
    }

    /// Refers to bytes that are known to fit in an event. An empty slice keeps its address, which
    /// ETW never reads: storing null instead would cost each field of each event two instructions.
    #[doc(hidden)]
    #[must_use]
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        clippy::cast_possible_truncation,
        reason = "the function compiles to two moves; the length is below 65,536"
    )]
    pub fn fitting(bytes: &'a [u8]) -> Self {
        // The upper half of the length is 0, and so is the type. The compiler merges both halves
        // into one store, unless it knows that the upper half is 0.
        let length = opaque::number(bytes.len() as u64);
        Self {
            address: bytes.as_ptr() as u64,
            size: length as u32,
            kind: (length >> 32) as u32,
            borrowed: PhantomData,
        }
    }

    /// Refers to a fixed-size field.
    #[must_use]
    pub fn of<T: PlainData>(value: &'a T) -> Self {
        let start = core::ptr::from_ref(value).cast::<u8>();
        // SAFETY: `PlainData` guarantees that all bytes of the value are initialized, and the
        // descriptor borrows them.
        Self::bytes(unsafe { core::slice::from_raw_parts(start, size_of::<T>()) })
    }

    /// Refers to the elements of a slice, without a count.
    #[must_use]
    pub fn slice<T: PlainData>(values: &'a [T]) -> Self {
        let start = values.as_ptr().cast::<u8>();
        // SAFETY: as in `of`; the elements of a slice are contiguous.
        Self::bytes(unsafe { core::slice::from_raw_parts(start, size_of_val(values)) })
    }

    /// Refers to bytes.
    #[must_use]
    pub fn bytes(bytes: &'a [u8]) -> Self {
        if bytes.is_empty() {
            // The address of an empty slice may point to no memory.
            return Self::EMPTY;
        }
        Self::new(bytes, PAYLOAD)
    }

    /// Refers to the metadata of a `TraceLogging` event.
    #[must_use]
    pub(crate) fn event_metadata(metadata: &'a [u8]) -> Self {
        Self::new(metadata, EVENT_METADATA)
    }

    /// An empty data descriptor.
    pub(crate) const EMPTY: Self =
        Self { address: 0, size: 0, kind: PAYLOAD, borrowed: PhantomData };

    /// Refers to a provider's metadata: its traits.
    #[must_use]
    pub(crate) fn provider_metadata(traits: &'a [u8]) -> Self {
        Self::new(traits, PROVIDER_METADATA)
    }

    /// Returns the size of the data in bytes.
    #[must_use]
    pub const fn size(&self) -> u32 {
        self.size
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    extern crate std;

    use super::*;

    #[test]
    fn a_descriptor_points_at_the_values_bytes() {
        static BYTES: [u8; 0xFFFF] = [7; 0xFFFF];
        let value = 0x1122_3344_u32;
        let descriptor = EventDataDescriptor::of(&value);
        let address = &raw const value as u64;
        assert_eq!((descriptor.address, descriptor.size, descriptor.kind), (address, 4, 0));
        assert_eq!(EventDataDescriptor::slice(&[1_u16, 2, 3]).size(), 6);
        for length in [1, 255, 256, 0xFFFF] {
            let part = &BYTES[..length];
            let fitting = EventDataDescriptor::fitting(part);
            let usual = EventDataDescriptor::bytes(part);
            assert_eq!(
                (fitting.address, fitting.size, fitting.kind),
                (usual.address, usual.size, usual.kind)
            );
            assert_eq!(
                (usual.address, usual.size as usize, usual.kind),
                (BYTES.as_ptr() as u64, length, 0)
            );
        }
        for empty in
            [EventDataDescriptor::bytes(&BYTES[..0]), EventDataDescriptor::slice::<u64>(&[])]
        {
            assert_eq!((empty.address, empty.size, empty.kind), (0, 0, 0));
        }
        assert_eq!(EventDataDescriptor::fitting(&BYTES[..0]).size(), 0);
        let shown = std::format!("{:?}", EventDataDescriptor::bytes(&BYTES));
        assert!(!shown.contains("address") && shown.contains("size: 65535"), "{shown}");
        let metadata = EventDataDescriptor::event_metadata(&[1; 3]);
        assert_eq!((metadata.size(), metadata.kind), (3, 1));
        let traits = EventDataDescriptor::provider_metadata(&[1; 5]);
        assert_eq!((traits.size(), traits.kind), (5, 2));
    }
}
