//! The images of the loaded drivers.

use std::sync::Arc;

use parking_lot::RwLock;

use super::image::{Image, Place};

/// The loaded images.
#[derive(Default)]
pub struct Images(RwLock<Vec<Arc<Image>>>);

impl Images {
    /// Adds an image.
    pub fn add(&self, image: Arc<Image>) {
        self.0.write().push(image);
    }

    /// Removes an image.
    pub fn remove(&self, image: &Arc<Image>) {
        self.0.write().retain(|loaded| !Arc::ptr_eq(loaded, image));
    }

    /// Returns the first image that `matches` accepts.
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

    /// Returns the name of the image that has an address in a discarded section.
    pub fn discarded_at(&self, address: u64) -> Option<String> {
        self.find(|image| image.is_discarded(address))
            .map(|image| image.name())
    }

    /// Describes a return address: the image, the offset and, if known, the symbol.
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

    /// Describes an instruction's address, if it is in a driver.
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
