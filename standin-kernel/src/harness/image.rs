//! Checks images without running them.

use std::path::Path;

use crate::{
    ground::{
        image::Image,
        loader::{LoadError, load, load_bytes},
    },
    services::composition::exports::address_of,
};

/// Checks that a driver's image can be loaded: maps it and performs all checks of a load, but runs
/// none of its code.
///
/// Returns the imports that the stand-in kernel does not provide, each as `module!name`.
///
/// # Errors
///
/// Returns an error if the file cannot be loaded as a driver.
pub fn check_image(path: &Path) -> Result<Vec<String>, LoadError> {
    load(path, &address_of).map(|image| unprovided(&image))
}

/// Checks an image in memory in the same way as [`check_image`]. Errors refer to the image as
/// `name`; no file with that name is read.
///
/// # Errors
///
/// Returns an error if the bytes cannot be loaded as a driver.
pub fn check_image_bytes(name: &Path, data: &[u8]) -> Result<Vec<String>, LoadError> {
    load_bytes(name, data, &address_of).map(|image| unprovided(&image))
}

fn unprovided(image: &Image) -> Vec<String> {
    image.unprovided().names().to_vec()
}
