//! Memory of this process.

use std::{ffi::c_void, io, ptr::NonNull};

use windows_sys::Win32::System::Memory::{
    MEM_COMMIT, MEM_DECOMMIT, MEM_RELEASE, MEM_RESERVE, PAGE_EXECUTE_READ, PAGE_EXECUTE_READWRITE,
    PAGE_GUARD, PAGE_NOACCESS, PAGE_PROTECTION_FLAGS, PAGE_READONLY, PAGE_READWRITE,
    VIRTUAL_ALLOCATION_TYPE, VirtualAlloc, VirtualFree, VirtualProtect,
};

use crate::ground::host::protection::Protection;

/// The number of bytes below a stack's guard page that the host needs to report a fault of code on
/// the stack: Windows stores the thread's context there, and calls the handler.
pub const FAULT_ROOM: usize = 64 << 10;

/// Private pages, which are released when this value is dropped.
pub struct Mapping {
    start: NonNull<c_void>,
    size: usize,
}

// SAFETY: the pages are plain memory of the process, and this value gives out addresses only.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

const fn flags(protection: Protection) -> PAGE_PROTECTION_FLAGS {
    match protection {
        Protection::None => PAGE_NOACCESS,
        Protection::Guard => PAGE_READWRITE | PAGE_GUARD,
        Protection::Read => PAGE_READONLY,
        Protection::ReadWrite => PAGE_READWRITE,
        Protection::ReadExecute => PAGE_EXECUTE_READ,
        Protection::ReadWriteExecute => PAGE_EXECUTE_READWRITE,
    }
}

impl Mapping {
    /// Reserves addresses for `size` bytes. The pages are inaccessible and use no memory.
    pub fn reserve(size: usize) -> io::Result<Self> {
        Self::map(0, size, MEM_RESERVE, Protection::None)
    }

    /// Maps zeroed, writable pages.
    pub fn new(size: usize) -> io::Result<Self> {
        Self::at(0, size)
    }

    /// Maps zeroed, writable pages at an address. Returns an error if it is in use.
    pub fn at(address: u64, size: usize) -> io::Result<Self> {
        Self::map(address, size, MEM_RESERVE | MEM_COMMIT, Protection::ReadWrite)
    }

    fn map(
        address: u64,
        size: usize,
        how: VIRTUAL_ALLOCATION_TYPE,
        protection: Protection,
    ) -> io::Result<Self> {
        // SAFETY: the call only adds pages that alias nothing.
        let start = unsafe { VirtualAlloc(address as *const c_void, size, how, flags(protection)) };
        let start = NonNull::new(start).ok_or_else(io::Error::last_os_error)?;
        Ok(Self { start, size })
    }

    /// Returns the first byte's address.
    pub fn address(&self) -> u64 {
        self.start.addr().get() as u64
    }

    /// Returns the size in bytes.
    pub const fn size(&self) -> usize {
        self.size
    }

    /// Returns the location of the byte at an offset within the pages.
    pub const fn at_offset(&self, offset: usize) -> NonNull<u8> {
        debug_assert!(offset <= self.size, "callers pass offsets within the pages");
        // SAFETY: the offset is within the mapping.
        unsafe { self.start.cast::<u8>().add(offset) }
    }

    /// Sets the protection of pages, which are zero if they were only reserved before.
    pub fn protect(&self, offset: usize, length: usize, to: Protection) -> io::Result<()> {
        if length == 0 {
            return Ok(());
        }
        let start = self.at_offset(offset).as_ptr().cast();
        let mut before = 0;
        // SAFETY: the pages are this value's own, and their user requested this protection.
        if unsafe { VirtualProtect(start, length, flags(to), &raw mut before) } != 0 {
            return Ok(());
        }
        // Some of the pages have no memory yet.
        self.commit(offset, length, to)?;
        // SAFETY: as above. The pages that had memory before keep their protection until now.
        if unsafe { VirtualProtect(start, length, flags(to), &raw mut before) } == 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }

    fn commit(&self, offset: usize, length: usize, protection: Protection) -> io::Result<()> {
        let start = self.at_offset(offset).as_ptr().cast();
        // SAFETY: the pages are this value's own.
        let committed = unsafe { VirtualAlloc(start, length, MEM_COMMIT, flags(protection)) };
        if committed.is_null() { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Releases the memory of pages, which then read as zero. Their protection must be
    /// `protection`, and it stays.
    pub fn discard(&self, offset: usize, length: usize, protection: Protection) -> io::Result<()> {
        if length == 0 {
            return Ok(());
        }
        let start = self.at_offset(offset).as_ptr().cast();
        // SAFETY: the pages are this value's own, and their user needs their contents no longer.
        if unsafe { VirtualFree(start, length, MEM_DECOMMIT) } == 0 {
            return Err(io::Error::last_os_error());
        }
        self.commit(offset, length, protection)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the pages are this value's own, and their user is gone.
        let released = unsafe { VirtualFree(self.start.as_ptr(), 0, MEM_RELEASE) };
        debug_assert!(released != 0, "VirtualFree succeeds for the own pages");
    }
}
