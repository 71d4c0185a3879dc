//! The images of the loaded drivers.

use std::sync::Arc;

use arc_swap::ArcSwap;
use parking_lot::Mutex;

use super::{
    backtrace::{Backtrace, Explained, Place, Step, shortened},
    culprit::{culprit, panic_frames},
    image::Image,
    unwind::{self, End, Frame, Handler, Registers},
};

/// The loaded images.
#[derive(Default)]
pub struct Images {
    /// Every event write looks up addresses in this list, so a lookup must not change memory that
    /// another thread reads.
    loaded: ArcSwap<Vec<Arc<Image>>>,
    notes: Mutex<Vec<String>>,
}

impl Images {
    /// Adds an image.
    pub fn add(&self, image: &Arc<Image>) {
        self.loaded.rcu(|loaded| {
            let mut images = Vec::clone(loaded);
            images.push(Arc::clone(image));
            images
        });
        self.notes.lock().extend(image.unreported_calls());
    }

    /// Removes an image.
    pub fn remove(&self, image: &Arc<Image>) {
        self.loaded.rcu(|loaded| {
            let mut images = Vec::clone(loaded);
            images.retain(|loaded| !Arc::ptr_eq(loaded, image));
            images
        });
    }

    /// Returns the first image that `matches` accepts.
    fn find(&self, matches: impl Fn(&Image) -> bool) -> Option<Arc<Image>> {
        let images = self.loaded.load();
        images.iter().find(|image| matches(image)).cloned()
    }

    /// Returns whether an address is in a loaded driver.
    pub fn contains(&self, address: u64) -> bool {
        self.loaded.load().iter().any(|image| image.contains(address))
    }

    /// Returns whether an address is in a pageable section.
    pub fn is_pageable(&self, address: u64) -> bool {
        self.pageable_at(address) == Some(true)
    }

    /// Returns whether an address is in a pageable section, or `None` if the address is not in a loaded
    /// driver.
    pub fn pageable_at(&self, address: u64) -> Option<bool> {
        let images = self.loaded.load();
        let image = images.iter().find(|image| image.contains(address))?;
        Some(image.is_pageable(address))
    }

    /// Locks the section that contains an address in memory. Returns its handle, or `None` if the
    /// address is not in a loaded driver.
    pub fn lock_section(&self, address: u64) -> Option<u64> {
        let image = self.find(|image| image.contains(address))?;
        Some(image.lock_section(address))
    }

    /// Undoes one [`Self::lock_section`] call. Returns `false` if the section is not locked.
    pub fn unlock_section(&self, handle: u64) -> bool {
        let image = self.find(|image| image.contains(handle));
        image.is_some_and(|image| image.unlock_section(handle))
    }

    /// Returns the base address of the image that contains an address.
    pub fn base_of(&self, address: u64) -> Option<u64> {
        self.find(|image| image.contains(address)).map(|image| image.base())
    }

    /// Returns the name of the image whose discarded section contains an address.
    pub fn discarded_at(&self, address: u64) -> Option<String> {
        self.find(|image| image.is_discarded(address)).map(|image| image.name())
    }

    /// Returns the import that is bound to an address, if the kernel does not provide it.
    pub fn unprovided_at(&self, address: u64) -> Option<String> {
        let images = self.loaded.load();
        let mut names = images.iter().filter_map(|image| image.unprovided().name_at(address));
        names.next().map(str::to_owned)
    }

    /// Walks a stack from the frame with the given registers outward, as long as the frames are in
    /// drivers. `is_return` is true if the first instruction follows a call. `read` reads eight
    /// bytes of the stack.
    pub fn walk(
        &self,
        registers: Registers,
        is_return: bool,
        limit: usize,
        read: impl Fn(u64) -> Option<u64>,
    ) -> Vec<Frame> {
        let images = self.loaded.load();
        let unwind = |registers: &mut Registers, is_return| {
            let image = images
                .iter()
                .find(|image| image.contains(registers.rip))
                .ok_or(End::Left(registers.rip))?;
            image.unwind(registers, is_return, &read)
        };
        unwind::walk(registers, is_return, limit, unwind).0
    }

    /// Replaces the registers at an instruction of a driver with the registers of the function's caller.
    /// See [`Table::unwind_saving`](unwind::Table::unwind_saving).
    pub fn unwind_saving(
        &self,
        registers: &mut Registers,
        is_return: bool,
        read: impl Fn(u64) -> Option<u64>,
        saved: &mut dyn FnMut(u8, u64),
    ) -> Result<bool, End> {
        let images = self.loaded.load();
        let image = images.iter().find(|image| image.contains(registers.rip));
        let image = image.ok_or(End::Left(registers.rip))?;
        image.unwind_saving(registers, is_return, read, saved)
    }

    /// Returns the handler of the function of a driver that contains an instruction.
    pub fn handler(&self, registers: &Registers, is_return: bool) -> Result<Option<Handler>, End> {
        let images = self.loaded.load();
        let image = images.iter().find(|image| image.contains(registers.rip));
        image.ok_or(End::Left(registers.rip))?.handler(registers, is_return)
    }

    /// Returns whether an address is in a driver and follows a call instruction.
    pub fn is_after_call(&self, address: u64) -> bool {
        self.find(|image| image.contains(address)).is_some_and(|image| image.is_after_call(address))
    }

    /// Returns the locations of an instruction: one for each inlined function, innermost first, and
    /// one for the function that contains the code.
    fn places(&self, frame: Frame) -> Vec<Place> {
        self.find(|image| image.contains(frame.address))
            .map_or_else(Vec::new, |image| image.places(frame))
    }

    /// Describes a backtrace.
    pub fn explain(&self, backtrace: &Backtrace) -> Explained {
        let mut lines = Vec::new();
        let mut places = Vec::new();
        for step in backtrace {
            match step {
                Step::Code(frame) => {
                    let found = self.places(*frame);
                    if found.is_empty() {
                        lines.push(format!("at 0x{:016X}, in no loaded driver", frame.address));
                    }
                    lines.extend(found.iter().map(Place::in_backtrace));
                    places.extend(found);
                }
                Step::Routine(name) => lines.push(format!("at {name}, called by")),
            }
        }
        let sources: Vec<_> = places.iter().map(|place| place.source.clone()).collect();
        let handler = panic_frames(&sources);
        let of_author = culprit(sources.get(handler..).unwrap_or_default());
        let of_author = of_author.and_then(|at| places.get(handler + at));
        if of_author.is_none_or(|place| place.source.line.is_none()) {
            self.note_missing_lines(backtrace);
        }
        let place = match (of_author, places.get(handler).or_else(|| places.first())) {
            (Some(place), _) => place.of_author(),
            (None, Some(place)) => place.of_library(),
            (None, None) => backtrace
                .iter()
                .find_map(|step| match step {
                    Step::Code(frame) => Some(outside(frame.address)),
                    Step::Routine(_) => None,
                })
                .unwrap_or_default(),
        };
        Explained { place, lines: shortened(lines), has_panicked: handler > 0 }
    }

    /// Records the images of a backtrace whose PDBs lack line information for the author's code.
    fn note_missing_lines(&self, backtrace: &Backtrace) {
        for step in backtrace {
            let Step::Code(frame) = step else {
                continue;
            };
            let image = self.find(|image| image.contains(frame.address));
            let Some(note) = image.and_then(|image| image.missing_lines()) else {
                continue;
            };
            let mut notes = self.notes.lock();
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
    }

    /// Returns the notes on images' symbols, without duplicates.
    pub fn notes(&self) -> Vec<String> {
        self.notes.lock().clone()
    }

    /// Describes the function that starts at an address.
    pub fn function(&self, address: u64) -> String {
        let frame = Frame { address, is_return: false };
        let place = self.places(frame).pop();
        place.map_or_else(|| outside(address), |place| place.of_function())
    }

    /// Describes a return address.
    pub fn place(&self, return_address: u64) -> String {
        let frame = Frame { address: return_address, is_return: true };
        self.explain(&vec![Step::Code(frame)]).place
    }

    /// Makes all pageable sections inaccessible, or accessible again.
    pub fn set_pageable_accessible(&self, accessible: bool) {
        for image in self.loaded.load().iter().filter(|image| image.has_pageable()) {
            image.set_pageable_accessible(accessible);
        }
    }
}

fn outside(address: u64) -> String {
    format!("0x{address:016X}, outside every loaded driver")
}
