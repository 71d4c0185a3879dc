//! Checks of images that nobody runs.

use std::path::Path;

use crate::{
    ground::loader::{LoadError, load, load_bytes},
    services::exports::gateways,
};

/// Maps a driver's image, with everything that loading checks, without running any
/// of it.
///
/// # Errors
///
/// When the file cannot be loaded as a driver.
pub fn check_image(path: &Path) -> Result<(), LoadError> {
    load(path, &|module, name| gateways().find(module, name)).map(drop)
}

/// As [`check_image`], for an image in memory. Errors call it by `name`; no file of that
/// name is read.
///
/// # Errors
///
/// When the bytes cannot be loaded as a driver.
pub fn check_image_bytes(name: &Path, data: &[u8]) -> Result<(), LoadError> {
    load_bytes(name, data, &|module, name| gateways().find(module, name)).map(drop)
}
