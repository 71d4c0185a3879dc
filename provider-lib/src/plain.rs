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

/// Declares a structure of [`PlainData`], which is `PlainData` itself.
///
/// Generated code calls this macro. A path in generated code can lead to items of the author, but `$crate`
/// cannot, and the implementation holds only for the types that the members really have.
#[doc(hidden)]
#[macro_export]
macro_rules! __plain {
    ($(#[$attribute:meta])* $visibility:vis struct $name:ident { $($(#[$doc:meta])* pub $member:ident: $type:ty,)* }) => {
        $(#[$attribute])*
        #[repr(C, packed)]
        $visibility struct $name { $($(#[$doc])* pub $member: $type,)* }

        // SAFETY: the structure is packed, and its members have no padding.
        unsafe impl $crate::PlainData for $name where $($type: $crate::PlainData,)* {}
    };
    ($(#[$attribute:meta])* $visibility:vis struct $name:ident(pub $type:ty);) => {
        $(#[$attribute])*
        #[repr(transparent)]
        $visibility struct $name(pub $type);

        // SAFETY: the structure has one member, without padding.
        unsafe impl $crate::PlainData for $name where $type: $crate::PlainData {}
    };
}
