//! The files of the volume that a driver finds.

use std::{
    fs::Metadata,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

/// Returns the number that identifies a file on its volume.
pub fn file_number(_path: &Path, metadata: &Metadata) -> u64 {
    metadata.ino()
}

/// Returns the path below which a driver's files are, for a folder that the test provides.
pub fn folder_of_volume(folder: &Path) -> PathBuf {
    folder.to_owned()
}
