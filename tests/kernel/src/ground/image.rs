//! A driver's image, mapped into this process.

use std::{
    ffi::c_void,
    fmt,
    num::NonZeroUsize,
    path::PathBuf,
    ptr::NonNull,
    sync::atomic::{AtomicBool, Ordering},
};

use nix::sys::mman::{ProtFlags, mprotect, munmap};

use super::symbols;

/// A mapped image.
pub struct Image {
    pub(super) path: PathBuf,
    pub(super) mapping: NonNull<c_void>,
    pub(super) size: NonZeroUsize,
    pub(super) entry: u64,
    pub(super) imports: Vec<String>,
    /// The sections that Windows pages out, which are named `PAGE...`.
    pub(super) pageable: Vec<Section>,
    /// The sections that are discarded once the driver has started.
    pub(super) discardable: Vec<Section>,
    pub(super) started: AtomicBool,
}

/// A section whose accessibility changes.
#[derive(Clone, Copy)]
pub struct Section {
    /// The offset of the section's pages in the image, and their length.
    pub(super) start: usize,
    pub(super) length: usize,
    pub(super) protection: ProtFlags,
}

// SAFETY: the mapping is plain memory of the process; the pointer to it is
// used from any thread only by the driver's own code and by `munmap` in drop.
unsafe impl Send for Image {}
// SAFETY: as above; `&Image` gives out addresses, never references.
unsafe impl Sync for Image {}

/// A place in a driver's code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The image's file name.
    pub image: String,
    /// The offset from the image's start (an RVA).
    pub offset: u32,
    /// The function and line, if a PDB has them.
    pub symbol: Option<String>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}+0x{:x}", self.image, self.offset)?;
        self.symbol
            .as_ref()
            .map_or(Ok(()), |symbol| write!(f, " [{symbol}]"))
    }
}

impl Image {
    /// Returns the file name, such as `etw_sample_driver.sys`.
    pub fn name(&self) -> String {
        self.path
            .file_name()
            .map_or_else(String::new, |name| name.to_string_lossy().into_owned())
    }

    /// Returns the first byte's address.
    pub fn base(&self) -> u64 {
        self.mapping.as_ptr() as u64
    }

    /// Returns the number of bytes that the image occupies.
    pub const fn size(&self) -> usize {
        self.size.get()
    }

    /// Returns the entry point's address.
    pub const fn entry(&self) -> u64 {
        self.entry
    }

    /// Returns the imports, each as `module!name`, in the file's order.
    pub fn imports(&self) -> &[String] {
        &self.imports
    }

    /// Returns whether an address lies in the image.
    pub fn contains(&self, address: u64) -> bool {
        address
            .checked_sub(self.base())
            .is_some_and(|offset| offset < self.size() as u64)
    }

    /// Returns the place of a return address in this image: the call before it.
    pub fn place(&self, address: u64) -> Option<Place> {
        // The byte before a return address belongs to the call itself. The return address may
        // already belong to the next line.
        self.place_of(address, |offset| offset.saturating_sub(1))
    }

    /// Returns the place of an instruction in this image.
    pub fn instruction(&self, address: u64) -> Option<Place> {
        self.place_of(address, |offset| offset)
    }

    fn is_in(&self, sections: &[Section], address: u64) -> bool {
        address
            .checked_sub(self.base())
            .and_then(|offset| usize::try_from(offset).ok())
            .is_some_and(|offset| {
                let mut sections = sections.iter();
                sections.any(|one| (one.start..one.start + one.length).contains(&offset))
            })
    }

    /// Returns whether an address is in a pageable section.
    pub fn is_pageable(&self, address: u64) -> bool {
        self.is_in(&self.pageable, address)
    }

    /// Returns whether an address is in a section that is discarded once the driver has started.
    pub fn is_discardable(&self, address: u64) -> bool {
        self.is_in(&self.discardable, address)
    }

    /// Returns whether an address is in a discarded section.
    pub fn is_discarded(&self, address: u64) -> bool {
        self.started.load(Ordering::Acquire) && self.is_discardable(address)
    }

    fn protect_section(&self, section: Section, protection: ProtFlags) {
        // SAFETY: the section is within the mapping, as loading checked.
        let address = unsafe { self.mapping.byte_add(section.start) };
        // SAFETY: the pages are the image's own; a driver that uses them while they are
        // not accessible faults, which is what is wanted.
        unsafe { mprotect(address, section.length, protection) }
            .expect("the protection of the image's own pages can be set");
    }

    /// Returns whether the image has pageable sections.
    pub const fn has_pageable(&self) -> bool {
        !self.pageable.is_empty()
    }

    /// Makes the pageable sections inaccessible, or accessible again.
    pub fn set_pageable_accessible(&self, accessible: bool) {
        for section in &self.pageable {
            let protection = if accessible {
                section.protection
            } else {
                ProtFlags::PROT_NONE
            };
            self.protect_section(*section, protection);
        }
    }

    /// Discards the sections that are needed only until the driver has started.
    pub fn discard(&self) {
        for section in &self.discardable {
            self.protect_section(*section, ProtFlags::PROT_NONE);
        }
        self.started.store(true, Ordering::Release);
    }

    fn place_of(&self, address: u64, symbol_at: impl Fn(u32) -> u32) -> Option<Place> {
        let offset = u32::try_from(address.checked_sub(self.base())?).ok()?;
        self.contains(address).then(|| Place {
            image: self.name(),
            offset,
            symbol: symbols::symbolize(&self.path, symbol_at(offset)),
        })
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and the kernel drops an image only after
        // the driver's code has returned for the last time.
        let unmapped = unsafe { munmap(self.mapping, self.size.get()) };
        debug_assert!(unmapped.is_ok(), "the image's own mapping is unmapped once");
    }
}
