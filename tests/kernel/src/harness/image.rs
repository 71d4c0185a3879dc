//! Checks of images without running them.

use std::path::Path;

use crate::{
    ground::loader::{LoadError, load, load_bytes},
    services::exports::gateways,
};

/// Checks that a driver's image can be loaded: maps it and makes all the checks of a load,
/// but runs none of its code.
///
/// # Errors
///
/// Returns an error if the file cannot be loaded as a driver.
pub fn check_image(path: &Path) -> Result<(), LoadError> {
    load(path, &|module, name| gateways().find(module, name)).map(drop)
}

/// Checks an image in memory as [`check_image`] does. Errors refer to it by `name`; no file
/// of that name is read.
///
/// # Errors
///
/// Returns an error if the bytes cannot be loaded as a driver.
pub fn check_image_bytes(name: &Path, data: &[u8]) -> Result<(), LoadError> {
    load_bytes(name, data, &|module, name| gateways().find(module, name)).map(drop)
}
