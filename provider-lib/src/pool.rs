//! Copies in non-paged pool.

use core::{ffi::c_void, ptr, slice};

use crate::ffi;

/// The pool tag of the crate's allocations: `WEtw`, as a debugger shows it.
pub const POOL_TAG: u32 = u32::from_le_bytes(*b"WEtw");

/// `POOL_FLAG_NON_PAGED` of wdm.h.
const NON_PAGED: u64 = 0x40;

/// A copy of bytes in non-paged pool, which is freed on drop.
pub struct PoolCopy {
    start: *mut c_void,
    length: usize,
}

impl PoolCopy {
    /// Copies bytes to non-paged pool (`ExAllocatePool2`), or returns `None` if the allocation
    /// fails. IRQL: `DISPATCH_LEVEL` or below.
    pub fn allocate(bytes: &[u8]) -> Option<Self> {
        // SAFETY: the routine accepts any size and this tag.
        let start = unsafe { ffi::ExAllocatePool2(NON_PAGED, bytes.len(), POOL_TAG) };
        if start.is_null() {
            return None;
        }
        // SAFETY: the block is new and has room for all the bytes.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), start.cast(), bytes.len()) };
        Some(Self { start, length: bytes.len() })
    }

    /// Returns the bytes.
    pub const fn as_bytes(&self) -> &[u8] {
        // SAFETY: `allocate` wrote this number of bytes to the block.
        unsafe { slice::from_raw_parts(self.start.cast(), self.length) }
    }
}

impl Drop for PoolCopy {
    fn drop(&mut self) {
        // SAFETY: `of` allocated the block with this tag, and nothing else frees it.
        unsafe { ffi::ExFreePoolWithTag(self.start, POOL_TAG) };
    }
}
