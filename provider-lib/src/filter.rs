//! Filter data, which sessions pass to a provider.

use core::slice;

use crate::{Guid, ffi::FilterDescriptor};

/// `EVENT_FILTER_TYPE_SCHEMATIZED`: a filter in the provider's own format.
const SCHEMATIZED: u32 = 0x8000_0000;
/// The maximum size of filter data that the crate accepts. ETW passes at most 1,024 bytes from each
/// of eight sessions.
const MAX_BYTES: u32 = 64 * 1024;

/// The filter data of a notification, borrowed for the hook's call only; [`Self::copied`] copies
/// it.
#[derive(Clone, Copy, Debug)]
pub struct FilterData<'a> {
    kind: u32,
    bytes: &'a [u8],
}

impl<'a> FilterData<'a> {
    /// Returns the filter data that ETW passes to the enable callback, or `None` for a null pointer
    /// and for data that is larger than [`MAX_BYTES`].
    ///
    /// # Safety
    ///
    /// `descriptor` must be null, or valid for `'a` together with the memory that it describes.
    pub(crate) unsafe fn from_raw(descriptor: *const FilterDescriptor) -> Option<Self> {
        // SAFETY: the caller guarantees that the pointer is null or valid.
        let descriptor = unsafe { descriptor.as_ref() }?;
        if descriptor.address == 0 || descriptor.size > MAX_BYTES {
            return None;
        }
        let start = descriptor.address as *const u8;
        // SAFETY: the caller guarantees that the described memory is valid.
        let bytes = unsafe { slice::from_raw_parts(start, descriptor.size as usize) };
        Some(Self { kind: descriptor.kind, bytes })
    }

    /// Returns the type, one of `EVENT_FILTER_TYPE_*`.
    #[must_use]
    pub const fn kind(&self) -> u32 {
        self.kind
    }

    /// Returns the raw filter data. It is available for every filter type.
    #[must_use]
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Returns the sessions' filters, if they are in the provider's own format
    /// (`EVENT_FILTER_TYPE_SCHEMATIZED`).
    #[must_use]
    pub const fn schematized(&self) -> Option<SchematizedFilters<'a>> {
        if self.kind == SCHEMATIZED {
            Some(SchematizedFilters { rest: Some(self.bytes) })
        } else {
            None
        }
    }
}

impl FilterData<'_> {
    /// Copies the data, up to `N` bytes.
    #[must_use]
    pub fn copied<const N: usize>(&self) -> FilterCopy<N> {
        let mut copy = FilterCopy::EMPTY;
        copy.kind = self.kind;
        copy.length = self.bytes.len();
        for (to, from) in copy.bytes.iter_mut().zip(self.bytes) {
            *to = *from;
        }
        copy
    }
}

/// A copy of filter data in `N` bytes, which can outlive the notification.
#[derive(Clone, Copy, Debug)]
pub struct FilterCopy<const N: usize> {
    kind: u32,
    /// The length of the original data, which may be more than `N`.
    length: usize,
    bytes: [u8; N],
}

impl<const N: usize> FilterCopy<N> {
    /// No data.
    pub const EMPTY: Self = Self { kind: 0, length: 0, bytes: [0; N] };

    /// Returns the copied data.
    #[must_use]
    pub fn data(&self) -> FilterData<'_> {
        FilterData { kind: self.kind, bytes: self.bytes.get(..self.length).unwrap_or(&self.bytes) }
    }

    /// Returns the number of bytes that did not fit in the copy.
    #[must_use]
    pub const fn missing(&self) -> usize {
        self.length.saturating_sub(N)
    }
}

/// The header of a session's filter (`EVENT_FILTER_HEADER` of evntprov.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilterHeader {
    /// The filter's id, which the provider defines.
    pub id: u16,
    /// The filter's version.
    pub version: u8,
    /// The session's bit, which excludes the session in
    /// [`WriteOptions::except_sessions`](crate::WriteOptions::except_sessions).
    pub instance_id: u64,
}

/// An iterator over the sessions' filters: each filter's header and data. It ends at the first
/// header that does not fit in the data.
#[derive(Clone, Debug)]
pub struct SchematizedFilters<'a> {
    rest: Option<&'a [u8]>,
}

/// The size of a header in bytes: id 2, version 1, reserved 5, instance 8, size 4, next 4.
const HEADER: usize = 24;

impl<'a> Iterator for SchematizedFilters<'a> {
    type Item = (FilterHeader, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let here = self.rest.take()?;
        let (&[id @ .., version], rest) = here.split_first_chunk::<3>()?;
        let (instance, rest) = rest.get(5..)?.split_first_chunk()?;
        let (size, rest) = rest.split_first_chunk()?;
        let (next, _) = rest.split_first_chunk()?;
        let next = u32::from_le_bytes(*next) as usize;
        let data = here.get(HEADER..u32::from_le_bytes(*size) as usize)?;
        // The next header must come after this one, so that the iteration ends.
        self.rest = if next >= HEADER { here.get(next..) } else { None };
        let id = u16::from_le_bytes(id);
        let header = FilterHeader { id, version, instance_id: u64::from_le_bytes(*instance) };
        Some((header, data))
    }
}

/// Returns the GUID that a pointer from ETW points to, or the null GUID for a null pointer.
///
/// # Safety
///
/// `guid` must be null or valid.
pub unsafe fn guid_from_raw(guid: *const Guid) -> Guid {
    // SAFETY: the caller guarantees that the pointer is null or valid.
    unsafe { guid.as_ref() }.copied().unwrap_or_default()
}

#[cfg(all(test, not(loom)))]
mod tests {
    extern crate std;

    use std::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    fn filter(id: u16, instance: u64, data: &[u8], next: u32) -> Vec<u8> {
        let mut bytes = Vec::from(id.to_le_bytes());
        bytes.extend([7, 0, 0, 0, 0, 0]);
        bytes.extend(instance.to_le_bytes());
        bytes.extend(u32::try_from(HEADER + data.len()).unwrap().to_le_bytes());
        bytes.extend(next.to_le_bytes());
        bytes.extend(data);
        bytes
    }

    // R-E6
    #[test]
    fn data_of_more_than_64_kib_is_refused() {
        static BYTES: [u8; 65_537] = [7; 65_537];
        let length = |address, size| {
            let descriptor = FilterDescriptor { address, size, kind: 1 };
            // SAFETY: the descriptor refers to no data or to a static.
            let data = unsafe { FilterData::from_raw(&raw const descriptor) };
            data.map(|data| data.bytes.len())
        };
        let address = BYTES.as_ptr() as u64;
        assert_eq!(length(address, 65_536), Some(65_536));
        assert_eq!(length(address, 65_537), None);
        assert_eq!(length(address, 0), Some(0));
        assert_eq!(length(0, 8), None);
        // SAFETY: null is allowed.
        assert!(unsafe { FilterData::from_raw(core::ptr::null()) }.is_none());
    }

    // R-E6
    #[test]
    fn a_copy_reports_the_number_of_missing_bytes() {
        let data = FilterData { kind: 7, bytes: b"abcdef" };
        let (whole, part) = (data.copied::<8>(), data.copied::<4>());
        assert_eq!((whole.data().bytes(), whole.missing()), (&b"abcdef"[..], 0));
        assert_eq!((part.data().bytes(), part.missing()), (&b"abcd"[..], 2));
        assert_eq!(part.data().kind(), 7);
        assert_eq!(FilterCopy::<4>::EMPTY.data().bytes(), b"");
    }

    // R-E6
    #[test]
    fn every_sessions_filter_is_found() {
        let mut bytes = filter(1, 2, b"ab", 32);
        bytes.resize(32, 0);
        bytes.extend(filter(3, 4, b"", 0));
        let data = FilterData { kind: SCHEMATIZED, bytes: &bytes };
        let found: Vec<_> = data
            .schematized()
            .unwrap()
            .map(|(header, data)| (header.id, header.version, header.instance_id, data))
            .collect();
        assert_eq!(found, [(1, 7, 2, &b"ab"[..]), (3, 7, 4, &b""[..])]);
    }

    #[test]
    fn other_types_are_bytes_only() {
        let data = FilterData { kind: 0x8000_0200, bytes: b"ids" };
        assert!(data.schematized().is_none());
        assert_eq!(data.bytes(), b"ids");
    }

    #[test]
    fn a_header_that_points_at_itself_ends_the_walk() {
        for next in [1, 8, 23] {
            let bytes = filter(1, 2, b"abcdefgh", next);
            let data = FilterData { kind: SCHEMATIZED, bytes: &bytes };
            assert_eq!(data.schematized().unwrap().count(), 1);
        }
    }

    /// Generates filters whose sizes and links are plausible, but may be wrong.
    fn hostile_chain() -> impl Strategy<Value = Vec<u8>> {
        let one = (0_u32..64, 0_u32..96, 0_usize..40).prop_map(|(size, next, data)| {
            let mut bytes = filter(1, 2, &[0; 40][..data], next);
            bytes[16..20].copy_from_slice(&size.to_le_bytes());
            bytes
        });
        proptest::collection::vec(one, 0..8).prop_map(|filters| filters.concat())
    }

    // R-E6
    #[test]
    fn iteration_of_a_hostile_chain_ends() {
        let mut runner = proptest::test_runner::TestRunner::deterministic();
        let result = runner.run(&hostile_chain(), |bytes| {
            let data = FilterData { kind: SCHEMATIZED, bytes: &bytes };
            let found = data.schematized().unwrap().count();
            prop_assert!(found <= bytes.len() / HEADER);
            LONGEST.fetch_max(found, std::sync::atomic::Ordering::Relaxed);
            Ok(())
        });
        result.unwrap();
        let longest = LONGEST.load(std::sync::atomic::Ordering::Relaxed);
        assert!(longest >= 2, "no generated chain has two filters");
    }

    static LONGEST: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
}
