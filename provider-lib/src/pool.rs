//! Copies in non-paged pool.

use core::{ffi::c_void, ptr, slice};

use crate::ffi;

/// The pool tag of this crate's blocks: `WEtw`, as a debugger shows it.
pub const POOL_TAG: u32 = u32::from_le_bytes(*b"WEtw");

/// `POOL_FLAG_NON_PAGED` of wdm.h.
const NON_PAGED: u64 = 0x40;

/// A copy of bytes in non-paged pool; freed when it is dropped.
pub struct PoolCopy {
    start: *mut c_void,
    length: usize,
}

impl PoolCopy {
    /// Copies bytes, unless there is no pool for them (`ExAllocatePool2`). IRQL:
    /// `DISPATCH_LEVEL` or below.
    pub fn of(bytes: &[u8]) -> Option<Self> {
        // SAFETY: the routine takes any size and tag.
        let start = unsafe { ffi::ExAllocatePool2(NON_PAGED, bytes.len(), POOL_TAG) };
        if start.is_null() {
            return None;
        }
        // SAFETY: the block is new and as long as the bytes.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), start.cast(), bytes.len()) };
        Some(Self {
            start,
            length: bytes.len(),
        })
    }

    /// The bytes.
    pub const fn as_bytes(&self) -> &[u8] {
        // SAFETY: the block holds as many bytes, all of which `of` wrote.
        unsafe { slice::from_raw_parts(self.start.cast(), self.length) }
    }
}

impl Drop for PoolCopy {
    fn drop(&mut self) {
        // SAFETY: the block was allocated with this tag, and nothing else frees it.
        unsafe { ffi::ExFreePoolWithTag(self.start, POOL_TAG) };
    }
}
