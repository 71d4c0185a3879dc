//! Memory of this process.

use std::{ffi::c_void, io, num::NonZeroUsize, ptr::NonNull};

use nix::sys::mman::{MapFlags, MmapAdvise, ProtFlags, madvise, mmap_anonymous, mprotect, munmap};

use crate::ground::host::protection::Protection;

/// The number of bytes below a stack's guard page that the host needs to report a fault of code on
/// the stack. Signal handlers run on a stack of their own.
pub const FAULT_ROOM: usize = 0;

/// Private pages, which are unmapped when this value is dropped.
pub struct Mapping {
    start: NonNull<c_void>,
    size: NonZeroUsize,
}

// SAFETY: the pages are plain memory of the process, and this value gives out addresses only.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

const fn flags(protection: Protection) -> ProtFlags {
    match protection {
        Protection::None | Protection::Guard => ProtFlags::PROT_NONE,
        Protection::Read => ProtFlags::PROT_READ,
        Protection::ReadWrite => ProtFlags::PROT_READ.union(ProtFlags::PROT_WRITE),
        Protection::ReadExecute => ProtFlags::PROT_READ.union(ProtFlags::PROT_EXEC),
        Protection::ReadWriteExecute => {
            ProtFlags::PROT_READ.union(ProtFlags::PROT_WRITE).union(ProtFlags::PROT_EXEC)
        }
    }
}

impl Mapping {
    /// Reserves addresses for `size` bytes. The pages are inaccessible and use no memory.
    pub fn reserve(size: usize) -> io::Result<Self> {
        Self::map(None, size, Protection::None, MapFlags::MAP_NORESERVE)
    }

    /// Maps zeroed, writable pages.
    pub fn new(size: usize) -> io::Result<Self> {
        Self::map(None, size, Protection::ReadWrite, MapFlags::empty())
    }

    /// Maps zeroed, writable pages at an address, or elsewhere if it is in use.
    pub fn at(address: u64, size: usize) -> io::Result<Self> {
        let address = usize::try_from(address).ok().and_then(NonZeroUsize::new);
        Self::map(address, size, Protection::ReadWrite, MapFlags::empty())
    }

    fn map(
        at: Option<NonZeroUsize>,
        size: usize,
        protection: Protection,
        more: MapFlags,
    ) -> io::Result<Self> {
        let size = NonZeroUsize::new(size).ok_or(io::ErrorKind::InvalidInput)?;
        let more = more | MapFlags::MAP_PRIVATE;
        // SAFETY: a fresh anonymous mapping aliases nothing.
        let start = unsafe { mmap_anonymous(at, size, flags(protection), more) }?;
        Ok(Self { start, size })
    }

    /// Returns the first byte's address.
    pub fn address(&self) -> u64 {
        self.start.addr().get() as u64
    }

    /// Returns the size in bytes.
    pub const fn size(&self) -> usize {
        self.size.get()
    }

    /// Returns the location of the byte at an offset within the pages.
    pub const fn at_offset(&self, offset: usize) -> NonNull<u8> {
        debug_assert!(offset <= self.size.get(), "callers pass offsets within the pages");
        // SAFETY: the offset is within the mapping.
        unsafe { self.start.cast::<u8>().add(offset) }
    }

    /// Sets the protection of pages, which are zero if they were only reserved before.
    pub fn protect(&self, offset: usize, length: usize, to: Protection) -> io::Result<()> {
        if length == 0 {
            return Ok(());
        }
        // SAFETY: the pages are this value's own, and their user requested this protection.
        Ok(unsafe { mprotect(self.at_offset(offset).cast(), length, flags(to)) }?)
    }

    /// Releases the memory of pages, which then read as zero. Their protection must be
    /// `protection`, and it stays.
    pub fn discard(&self, offset: usize, length: usize, _protection: Protection) -> io::Result<()> {
        let start = self.at_offset(offset).cast();
        // SAFETY: the pages are this value's own, and their user needs their contents no longer.
        Ok(unsafe { madvise(start, length, MmapAdvise::MADV_DONTNEED) }?)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the pages are this value's own, and their user is gone.
        let unmapped = unsafe { munmap(self.start, self.size.get()) };
        debug_assert!(unmapped.is_ok(), "munmap succeeds for the own mapping");
    }
}
