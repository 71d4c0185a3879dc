//! Pointers to slices, for Windows functions.

use std::ptr;

/// Returns the address of a slice's first element, or null if the slice is empty. The address of an
/// empty slice or vector is dangling, so it must not be passed to Windows.
#[must_use]
pub const fn start<T>(slice: &[T]) -> *const T {
    if slice.is_empty() { ptr::null() } else { slice.as_ptr() }
}

/// Returns the address of a slice's first element, or null if the slice is empty.
pub const fn start_mut<T>(slice: &mut [T]) -> *mut T {
    if slice.is_empty() { ptr::null_mut() } else { slice.as_mut_ptr() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_slice_is_null() {
        let mut bytes = [7_u8, 8];
        assert!(start::<u64>(&[]).is_null() && start_mut::<u64>(&mut []).is_null());
        assert!(start(&bytes[2..]).is_null() && start(&Vec::<u8>::new()).is_null());
        assert_eq!(start(&bytes), bytes.as_ptr());
        assert_eq!(start_mut(&mut bytes), bytes.as_mut_ptr());
    }
}
