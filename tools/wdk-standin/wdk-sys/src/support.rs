//! The types that bindgen adds to bindings: bit fields, arrays of unknown length, and opaque parts.
//! They have the same names and methods as bindgen's types.

#![allow(
    non_camel_case_types,
    clippy::cast_possible_truncation,
    clippy::pub_underscore_fields,
    reason = "names are bindgen's, and a width of bits is at most 64"
)]

use core::{fmt, marker::PhantomData, ptr, slice};

/// The bytes of a structure that contain bit fields. Bit 0 is the lowest bit of the first byte.
#[repr(C)]
#[derive(Copy, Clone, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct __BindgenBitfieldUnit<Storage> {
    storage: Storage,
}

/// Returns a byte with one bit replaced.
const fn with_bit(byte: u8, index: usize, value: bool) -> u8 {
    let mask = 1 << (index % 8);
    if value { byte | mask } else { byte & !mask }
}

impl<Storage> __BindgenBitfieldUnit<Storage> {
    /// Creates a unit from bytes.
    #[inline]
    pub const fn new(storage: Storage) -> Self {
        Self { storage }
    }
}

impl<const N: usize> __BindgenBitfieldUnit<[u8; N]> {
    /// Returns a bit.
    #[inline]
    #[must_use]
    pub const fn get_bit(&self, index: usize) -> bool {
        self.storage[index / 8] >> (index % 8) & 1 == 1
    }

    /// Sets a bit.
    #[inline]
    pub const fn set_bit(&mut self, index: usize, value: bool) {
        let byte = &mut self.storage[index / 8];
        *byte = with_bit(*byte, index, value);
    }

    /// Returns the `width` bits that start at `offset`.
    #[inline]
    #[must_use]
    pub const fn get(&self, offset: usize, width: u8) -> u64 {
        let mut value = 0;
        let mut bit = 0;
        while bit < width as usize {
            value |= (self.get_bit(offset + bit) as u64) << bit;
            bit += 1;
        }
        value
    }

    /// Sets the `width` bits that start at `offset`.
    #[inline]
    pub const fn set(&mut self, offset: usize, width: u8, value: u64) {
        let mut bit = 0;
        while bit < width as usize {
            self.set_bit(offset + bit, value >> bit & 1 == 1);
            bit += 1;
        }
    }

    /// Returns the `WIDTH` bits that start at `OFFSET`.
    #[inline]
    #[must_use]
    pub const fn get_const<const OFFSET: usize, const WIDTH: u8>(&self) -> u64 {
        self.get(OFFSET, WIDTH)
    }

    /// Sets the `WIDTH` bits that start at `OFFSET`.
    #[inline]
    pub const fn set_const<const OFFSET: usize, const WIDTH: u8>(&mut self, value: u64) {
        self.set(OFFSET, WIDTH, value);
    }

    /// Returns a bit of the unit that a pointer refers to.
    ///
    /// # Panics
    ///
    /// Panics if the unit has no such bit.
    ///
    /// # Safety
    ///
    /// The pointer must be valid for reads.
    #[inline]
    #[must_use]
    pub const unsafe fn raw_get_bit(this: *const Self, index: usize) -> bool {
        assert!(index / 8 < N);
        // SAFETY: the byte is inside the unit.
        let byte = unsafe { this.cast::<u8>().add(index / 8) };
        // SAFETY: the caller's pointer is valid for reads.
        let byte = unsafe { byte.read() };
        byte >> (index % 8) & 1 == 1
    }

    /// Sets a bit of the unit that a pointer refers to.
    ///
    /// # Panics
    ///
    /// Panics if the unit has no such bit.
    ///
    /// # Safety
    ///
    /// The pointer must be valid for reads and writes.
    #[inline]
    pub const unsafe fn raw_set_bit(this: *mut Self, index: usize, value: bool) {
        assert!(index / 8 < N);
        // SAFETY: the byte is inside the unit.
        let byte = unsafe { this.cast::<u8>().add(index / 8) };
        // SAFETY: the caller's pointer is valid for reads.
        let before = unsafe { byte.read() };
        // SAFETY: the caller's pointer is valid for writes.
        unsafe { byte.write(with_bit(before, index, value)) };
    }

    /// Returns the `width` bits that start at `offset` in the unit that a pointer refers to.
    ///
    /// # Safety
    ///
    /// The pointer must be valid for reads.
    #[inline]
    #[must_use]
    pub const unsafe fn raw_get(this: *const Self, offset: usize, width: u8) -> u64 {
        let mut value = 0;
        let mut bit = 0;
        while bit < width as usize {
            // SAFETY: the caller's pointer is valid for reads.
            let is_set = unsafe { Self::raw_get_bit(this, offset + bit) };
            value |= (is_set as u64) << bit;
            bit += 1;
        }
        value
    }

    /// Sets the `width` bits that start at `offset` in the unit that a pointer refers to.
    ///
    /// # Safety
    ///
    /// The pointer must be valid for reads and writes.
    #[inline]
    pub const unsafe fn raw_set(this: *mut Self, offset: usize, width: u8, value: u64) {
        let mut bit = 0;
        while bit < width as usize {
            // SAFETY: the caller's pointer is valid for reads and writes.
            unsafe { Self::raw_set_bit(this, offset + bit, value >> bit & 1 == 1) };
            bit += 1;
        }
    }

    /// Returns the `WIDTH` bits that start at `OFFSET` in the unit that a pointer refers to.
    ///
    /// # Safety
    ///
    /// The pointer must be valid for reads.
    #[inline]
    #[must_use]
    pub const unsafe fn raw_get_const<const OFFSET: usize, const WIDTH: u8>(
        this: *const Self,
    ) -> u64 {
        // SAFETY: the caller's pointer is valid for reads.
        unsafe { Self::raw_get(this, OFFSET, WIDTH) }
    }

    /// Sets the `WIDTH` bits that start at `OFFSET` in the unit that a pointer refers to.
    ///
    /// # Safety
    ///
    /// The pointer must be valid for reads and writes.
    #[inline]
    pub const unsafe fn raw_set_const<const OFFSET: usize, const WIDTH: u8>(
        this: *mut Self,
        value: u64,
    ) {
        // SAFETY: the caller's pointer is valid for reads and writes.
        unsafe { Self::raw_set(this, OFFSET, WIDTH, value) };
    }
}

/// A flexible array member: an array of unknown length at the end of a structure.
#[repr(C)]
#[derive(Default)]
pub struct __IncompleteArrayField<T>(PhantomData<T>, [T; 0]);

impl<T> __IncompleteArrayField<T> {
    /// Creates the array.
    #[inline]
    #[must_use]
    pub const fn new() -> Self {
        Self(PhantomData, [])
    }

    /// Returns a pointer to the first element.
    #[inline]
    #[must_use]
    pub const fn as_ptr(&self) -> *const T {
        ptr::from_ref(self).cast()
    }

    /// Returns a pointer to the first element.
    #[inline]
    pub const fn as_mut_ptr(&mut self) -> *mut T {
        ptr::from_mut(self).cast()
    }

    /// Returns the elements.
    ///
    /// # Safety
    ///
    /// The structure must be followed by `len` elements, and the pointer that the reference was
    /// created from must be valid for all of them.
    #[inline]
    #[must_use]
    pub const unsafe fn as_slice(&self, len: usize) -> &[T] {
        // SAFETY: the caller guarantees the elements.
        unsafe { slice::from_raw_parts(self.as_ptr(), len) }
    }

    /// Returns the elements.
    ///
    /// # Safety
    ///
    /// The conditions of [`Self::as_slice`] apply.
    #[inline]
    pub const unsafe fn as_mut_slice(&mut self, len: usize) -> &mut [T] {
        // SAFETY: the caller guarantees the elements.
        unsafe { slice::from_raw_parts_mut(self.as_mut_ptr(), len) }
    }
}

impl<T> fmt::Debug for __IncompleteArrayField<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("__IncompleteArrayField")
    }
}

/// A member of a union that the bindings represent as a structure, because its members are not
/// `Copy`.
#[repr(C)]
pub struct __BindgenUnionField<T>(PhantomData<T>);

impl<T> __BindgenUnionField<T> {
    /// Creates the member.
    #[inline]
    #[must_use]
    pub const fn new() -> Self {
        Self(PhantomData)
    }

    /// Returns the member's value.
    ///
    /// # Safety
    ///
    /// The union must contain a valid value of the type.
    #[inline]
    #[must_use]
    pub const unsafe fn as_ref(&self) -> &T {
        // SAFETY: the caller guarantees the value.
        unsafe { &*ptr::from_ref(self).cast() }
    }

    /// Returns the member's value.
    ///
    /// # Safety
    ///
    /// The union must contain a valid value of the type.
    #[inline]
    pub const unsafe fn as_mut(&mut self) -> &mut T {
        // SAFETY: the caller guarantees the value.
        unsafe { &mut *ptr::from_mut(self).cast() }
    }
}

impl<T> Default for __BindgenUnionField<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Clone for __BindgenUnionField<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for __BindgenUnionField<T> {}

impl<T> fmt::Debug for __BindgenUnionField<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("__BindgenUnionField")
    }
}

/// Bytes whose fields are not in the bindings.
#[repr(C)]
#[derive(Copy, Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct __BindgenOpaqueArray<T>(pub T);

impl<T: Copy + Default, const N: usize> Default for __BindgenOpaqueArray<[T; N]> {
    fn default() -> Self {
        Self([T::default(); N])
    }
}
