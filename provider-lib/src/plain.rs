//! Types whose values are event fields as they are in memory.

use etw_wire::{Guid, NtStatus};

/// A type whose values are event fields as they are in memory.
///
/// # Safety
///
/// Every byte of a value must be initialized: the type has no padding. It contains no pointers and
/// no references.
pub unsafe trait PlainData {}

/// Implements [`PlainData`] for types without padding.
macro_rules! plain {
    ($($type:ty),*) => {$(
        // SAFETY: the type has no padding.
        unsafe impl $crate::plain::PlainData for $type {}
    )*};
}

pub(crate) use plain;

plain!(bool, u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize, f32, f64);
plain!(Guid, NtStatus);

// SAFETY: an array has no padding between its elements, and they have none inside.
unsafe impl<T: PlainData, const N: usize> PlainData for [T; N] {}
