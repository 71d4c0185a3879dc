//! The macros that the generated bindings use.
//!
//! wdk-sys-generator writes the bindings, from the data in `tools/wdk-standin/data`.

/// Fails to compile if the size, the alignment or a field's offset differs from the headers. These
/// checks take a quarter of this crate's compilation, so drivers are built without them.
#[cfg(feature = "check-layouts")]
macro_rules! layout {
    ($name:ident, $size:literal, $align:literal $(, $field:ident = $offset:literal)*) => {
        const _: () = {
            $crate::bindings::same(
                size_of::<$name>(),
                $size,
                concat!("the size of ", stringify!($name)),
            );
            $crate::bindings::same(
                align_of::<$name>(),
                $align,
                concat!("the alignment of ", stringify!($name)),
            );
            $(
                $crate::bindings::same(
                    ::core::mem::offset_of!($name, $field),
                    $offset,
                    concat!("the offset of ", stringify!($name), ".", stringify!($field)),
                );
            )*
        };
    };
}

#[cfg(not(feature = "check-layouts"))]
macro_rules! layout {
    ($($parts:tt)*) => {};
}

/// Implements `Default` with all bits zero.
macro_rules! zeroed {
    ($name:ident) => {
        impl Default for $name {
            #[inline]
            fn default() -> Self {
                // SAFETY: the type consists of integers, raw pointers, optional function
                // pointers and arrays of them; zero is a valid value of each.
                unsafe { ::core::mem::zeroed() }
            }
        }
    };
}

/// Implements accessors for the bit fields in a unit, and the function that creates the unit.
macro_rules! bits {
    (
        $name:ident $unit:ident $storage:tt $new:ident
        $(
            $get:ident $set:ident $get_raw:ident $set_raw:ident
            $offset:literal $width:literal {$kind:ty} $raw:ident
        )*
    ) => {
        impl $name {
            $(
                #[inline]
                pub fn $get(&self) -> $kind {
                    // SAFETY: every bit pattern of a union is valid for the unit.
                    let unit = unsafe { &self.$unit };
                    unit.get($offset, $width) as $raw as $kind
                }

                #[inline]
                pub fn $set(&mut self, value: $kind) {
                    // SAFETY: as above.
                    let unit = unsafe { &mut self.$unit };
                    unit.set($offset, $width, value as $raw as u64);
                }

                #[inline]
                pub unsafe fn $get_raw(this: *const Self) -> $kind {
                    // SAFETY: the caller passes a pointer that is valid for reads.
                    let unit = unsafe { &raw const (*this).$unit };
                    // SAFETY: as above.
                    let bits = unsafe { __BindgenBitfieldUnit::raw_get(unit, $offset, $width) };
                    bits as $raw as $kind
                }

                #[inline]
                pub unsafe fn $set_raw(this: *mut Self, value: $kind) {
                    // SAFETY: the caller passes a pointer that is valid for writes.
                    let unit = unsafe { &raw mut (*this).$unit };
                    let bits = value as $raw as u64;
                    // SAFETY: as above.
                    unsafe { __BindgenBitfieldUnit::raw_set(unit, $offset, $width, bits) };
                }
            )*

            #[inline]
            pub fn $new($($get: $kind),*) -> __BindgenBitfieldUnit<$storage> {
                let mut unit = __BindgenBitfieldUnit::<$storage>::default();
                $(unit.set($offset, $width, $get as $raw as u64);)*
                unit
            }
        }
    };
}

/// Panics, which is a compile error in a constant, if a size, alignment or offset differs from the
/// headers.
#[cfg(feature = "check-layouts")]
pub const fn same(found: usize, expected: usize, what: &str) {
    assert!(found == expected, "{}", what);
}
