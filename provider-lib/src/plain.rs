//! Types whose in-memory bytes are an event field.

use etw_wire::{Guid, NtStatus};

/// A type whose in-memory bytes are an event field.
///
/// # Safety
///
/// - Every byte of a value is initialized: the type has no padding.
/// - The type contains no pointers and no references: they would be in the event.
/// - The type has no interior mutability, such as an atomic, a `Cell` or an `UnsafeCell`: ETW and
///   this crate read a value's bytes through `&T`, without synchronization. The bound `Copy`
///   excludes these types.
pub unsafe trait PlainData: Copy + 'static {}

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

// SAFETY: arrays add no padding between elements, and the elements have none inside.
unsafe impl<T: PlainData, const N: usize> PlainData for [T; N] {}
