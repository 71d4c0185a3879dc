//! The images of the drivers that are loaded.

use std::sync::Arc;

use parking_lot::RwLock;

use super::image::{Image, Place};

/// The images that are loaded.
#[derive(Default)]
pub struct Images(RwLock<Vec<Arc<Image>>>);

impl Images {
    /// Adds an image.
    pub fn add(&self, image: Arc<Image>) {
        self.0.write().push(image);
    }

    /// Takes an image away.
    pub fn remove(&self, image: &Arc<Image>) {
        self.0.write().retain(|loaded| !Arc::ptr_eq(loaded, image));
    }

    /// Returns the first image that `matches`.
    fn find(&self, matches: impl Fn(&Image) -> bool) -> Option<Arc<Image>> {
        let images = self.0.read();
        images.iter().find(|image| matches(image)).cloned()
    }

    /// Returns whether an address is in a loaded driver.
    pub fn contains(&self, address: u64) -> bool {
        self.0.read().iter().any(|image| image.contains(address))
    }

    /// Returns whether an address is in a pageable section.
    pub fn is_pageable(&self, address: u64) -> bool {
        self.0.read().iter().any(|image| image.is_pageable(address))
    }

    /// Returns the name of the image whose discarded section an address is in.
    pub fn discarded_at(&self, address: u64) -> Option<String> {
        self.find(|image| image.is_discarded(address))
            .map(|image| image.name())
    }

    /// Returns a return address in words: image, offset and, where known, symbol.
    pub fn place(&self, return_address: u64) -> String {
        self.0
            .read()
            .iter()
            .find_map(|image| image.place(return_address))
            .map_or_else(
                || format!("0x{return_address:016X}, outside every loaded driver"),
                |place| place.to_string(),
            )
    }

    /// Returns an instruction's address in words, if it is a driver's.
    pub fn instruction(&self, address: u64) -> Option<String> {
        let images = self.0.read();
        let place: Place = images.iter().find_map(|image| image.instruction(address))?;
        Some(place.to_string())
    }

    /// Makes all pageable sections inaccessible, or accessible again.
    pub fn set_pageable_accessible(&self, accessible: bool) {
        for image in self.0.read().iter().filter(|image| image.has_pageable()) {
            image.set_pageable_accessible(accessible);
        }
    }
}
