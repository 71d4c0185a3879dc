//! A driver's image, mapped into this process.

use std::{
    collections::HashMap,
    path::PathBuf,
    sync::atomic::{AtomicBool, Ordering},
};

use parking_lot::Mutex;

use super::{
    backtrace::Place,
    culprit::Source,
    host::{self, Mapping, Replaced, protection::Protection},
    symbols::Symbols,
    unprovided::Unprovided,
    unwind::{End, Frame, Handler, Registers, Table},
};

/// A mapped image.
pub struct Image {
    pub(super) path: PathBuf,
    pub(super) mapping: Mapping,
    /// The instructions that the host has replaced.
    pub(super) _replaced: Replaced,
    pub(super) entry: u64,
    pub(super) imports: Vec<String>,
    /// The imports that the kernel does not provide.
    pub(super) unprovided: Unprovided,
    /// The pageable sections, which are named `PAGE...`.
    pub(super) pageable: Vec<Section>,
    /// The sections that are discarded after the driver has started.
    pub(super) discardable: Vec<Section>,
    /// The pageable sections that a driver has locked in memory: their offsets and lock counts.
    pub(super) locked: Mutex<HashMap<usize, u32>>,
    pub(super) started: AtomicBool,
    /// Set if the code may contain system calls.
    pub(super) has_system_calls: bool,
    /// The functions, used for stack walks.
    pub(super) functions: Table,
    pub(super) symbols: Symbols,
}

/// A section that can become inaccessible.
#[derive(Clone, Copy)]
pub struct Section {
    /// The offset of the section's pages in the image, and their length.
    pub(super) start: usize,
    pub(super) length: usize,
    pub(super) protection: Protection,
}

impl Image {
    /// Returns the file name, such as `etw_sample_driver.sys`.
    pub fn name(&self) -> String {
        self.path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
    }

    /// Returns the first byte's address.
    pub fn base(&self) -> u64 {
        self.mapping.address()
    }

    /// Returns the number of bytes that the image occupies.
    pub const fn size(&self) -> usize {
        self.mapping.size()
    }

    /// Returns the entry point's address.
    pub const fn entry(&self) -> u64 {
        self.entry
    }

    /// Returns the imports, each as `module!name`, in the file's order.
    pub fn imports(&self) -> &[String] {
        &self.imports
    }

    /// Returns the imports that the kernel does not provide.
    pub const fn unprovided(&self) -> &Unprovided {
        &self.unprovided
    }

    /// Returns whether an address is in the image.
    pub fn contains(&self, address: u64) -> bool {
        address.checked_sub(self.base()).is_some_and(|offset| offset < self.size() as u64)
    }

    /// Replaces the registers at an instruction in this image with the registers of the function's
    /// caller.
    pub fn unwind(
        &self,
        registers: &mut Registers,
        is_return: bool,
        read: impl Fn(u64) -> Option<u64>,
    ) -> Result<bool, End> {
        self.unwind_at(self.base(), registers, is_return, read)
    }

    /// Replaces the registers for an image at the address `base` in another process. See
    /// [`Self::unwind`].
    pub fn unwind_at(
        &self,
        base: u64,
        registers: &mut Registers,
        is_return: bool,
        read: impl Fn(u64) -> Option<u64>,
    ) -> Result<bool, End> {
        self.functions.unwind(base, registers, is_return, read)
    }

    /// Replaces the registers like [`Self::unwind`]. See [`Table::unwind_saving`].
    pub fn unwind_saving(
        &self,
        registers: &mut Registers,
        is_return: bool,
        read: impl Fn(u64) -> Option<u64>,
        saved: &mut dyn FnMut(u8, u64),
    ) -> Result<bool, End> {
        self.functions.unwind_saving(self.base(), registers, is_return, read, saved)
    }

    /// Returns the handler of the function that contains an instruction in this image.
    pub fn handler(&self, registers: &Registers, is_return: bool) -> Result<Option<Handler>, End> {
        self.functions.handler(self.base(), registers, is_return)
    }

    /// Returns whether an address in this image follows a call instruction.
    pub fn is_after_call(&self, address: u64) -> bool {
        self.offset(address).is_some_and(|offset| self.functions.is_after_call(offset))
    }

    /// Returns the locations of an instruction in this image: one for each inlined function,
    /// innermost first, and one for the function that contains the code.
    pub fn places(&self, frame: Frame) -> Vec<Place> {
        let Some(offset) = self.offset(frame.address) else {
            return Vec::new();
        };
        // The byte before a return address belongs to the call itself; the return address may
        // belong to the next line.
        let inside = offset.saturating_sub(u32::from(frame.is_return));
        let mut sources = self.symbols.at(inside);
        if sources.is_empty() {
            sources.push(Source::default());
        }
        let count = sources.len();
        let at = format!("{}+0x{offset:x}", self.name());
        sources
            .into_iter()
            .enumerate()
            .map(|(number, source)| Place {
                at: at.clone(),
                is_inlined: number + 1 < count,
                source,
            })
            .collect()
    }

    /// Returns a sentence about the image's PDB if the PDB lacks line information for the author's code.
    pub fn missing_lines(&self) -> Option<String> {
        let pdb = self.symbols.without_lines()?;
        Some(format!(
            "{pdb} has no line information for {}, so diagnostics name only functions; set \
             `debug = \"line-tables-only\"` for the profile",
            self.name()
        ))
    }

    /// Returns a sentence about the instructions in the image that this system would execute
    /// without reporting them.
    pub fn unreported_calls(&self) -> Option<String> {
        let reason = host::unreported_calls().filter(|_| self.has_system_calls)?;
        Some(format!(
            "the code of {} contains the bytes of an instruction that makes system calls; {reason}",
            self.name()
        ))
    }

    /// Returns the offset of an address in this image.
    fn offset(&self, address: u64) -> Option<u32> {
        let offset = u32::try_from(address.checked_sub(self.base())?).ok()?;
        self.contains(address).then_some(offset)
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
        let section = self.pageable_section(address);
        section.is_some_and(|section| !self.locked.lock().contains_key(&section.start))
    }

    /// Returns the pageable section that contains an address.
    fn pageable_section(&self, address: u64) -> Option<Section> {
        let offset = usize::try_from(address.checked_sub(self.base())?).ok()?;
        let mut sections = self.pageable.iter();
        let found = sections.find(|one| (one.start..one.start + one.length).contains(&offset));
        found.copied()
    }

    /// Locks the section that contains an address in memory. Returns the section's address, or the
    /// image's address if the section is not pageable.
    pub fn lock_section(&self, address: u64) -> u64 {
        let Some(section) = self.pageable_section(address) else {
            return self.base();
        };
        *self.locked.lock().entry(section.start).or_default() += 1;
        self.base() + section.start as u64
    }

    /// Undoes one [`Self::lock_section`] call that returned `handle`. Returns `false` if there was
    /// no such call.
    pub fn unlock_section(&self, handle: u64) -> bool {
        let Some(section) = self.pageable_section(handle) else {
            return handle == self.base();
        };
        let mut locked = self.locked.lock();
        let Some(count) = locked.get_mut(&section.start) else {
            return false;
        };
        *count -= 1;
        if *count == 0 {
            locked.remove(&section.start);
        }
        true
    }

    /// Returns whether an address is in a section that is discarded after the driver has started.
    pub fn is_discardable(&self, address: u64) -> bool {
        self.is_in(&self.discardable, address)
    }

    /// Returns whether an address is in a discarded section.
    pub fn is_discarded(&self, address: u64) -> bool {
        self.started.load(Ordering::Acquire) && self.is_discardable(address)
    }

    fn protect_section(&self, section: Section, protection: Protection) {
        self.mapping
            .protect(section.start, section.length, protection)
            .expect("the protection of the image's own pages can be set");
    }

    /// Returns whether the image has pageable sections.
    pub const fn has_pageable(&self) -> bool {
        !self.pageable.is_empty()
    }

    /// Makes the pageable sections inaccessible, or accessible again.
    pub fn set_pageable_accessible(&self, accessible: bool) {
        let locked = self.locked.lock();
        let pageable = self.pageable.iter();
        for section in pageable.filter(|one| !locked.contains_key(&one.start)) {
            let protection = if accessible { section.protection } else { Protection::None };
            self.protect_section(*section, protection);
        }
    }

    /// Discards the sections that only the driver's start needs.
    pub fn discard(&self) {
        for section in &self.discardable {
            self.protect_section(*section, Protection::None);
        }
        self.started.store(true, Ordering::Release);
    }
}
