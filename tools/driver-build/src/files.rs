//! Functions of [`std::fs`] whose errors name the operation and the file.

use std::{
    fs::{self, ReadDir},
    path::Path,
};

use anyhow::{Context, Result};

/// Reads a file.
///
/// # Errors
///
/// Fails if the file cannot be read.
pub fn read(path: impl AsRef<Path>) -> Result<Vec<u8>> {
    fs::read(&path).with_context(|| format!("cannot read {}", path.as_ref().display()))
}

/// Reads a text file.
///
/// # Errors
///
/// Fails if the file cannot be read, or is not UTF-8.
pub fn read_to_string(path: impl AsRef<Path>) -> Result<String> {
    fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.as_ref().display()))
}

/// Returns the entries of a folder.
///
/// # Errors
///
/// Fails if the folder cannot be read.
pub fn read_dir(path: impl AsRef<Path>) -> Result<ReadDir> {
    fs::read_dir(&path).with_context(|| format!("cannot read {}", path.as_ref().display()))
}

/// Writes a file.
///
/// # Errors
///
/// Fails if the file cannot be written.
pub fn write(path: impl AsRef<Path>, content: impl AsRef<[u8]>) -> Result<()> {
    fs::write(&path, content).with_context(|| format!("cannot write {}", path.as_ref().display()))
}

/// Creates a folder and the folders that it is in, unless they exist.
///
/// # Errors
///
/// Fails if a folder cannot be created.
pub fn create_dir_all(path: impl AsRef<Path>) -> Result<()> {
    fs::create_dir_all(&path).with_context(|| format!("cannot create {}", path.as_ref().display()))
}

/// Copies a file, with its permissions.
///
/// # Errors
///
/// Fails if the file cannot be read, or its copy cannot be written.
pub fn copy(from: impl AsRef<Path>, to: impl AsRef<Path>) -> Result<()> {
    fs::copy(&from, &to).map(|_bytes| ()).with_context(|| {
        format!("cannot copy {} to {}", from.as_ref().display(), to.as_ref().display())
    })
}

/// Renames a file or folder.
///
/// # Errors
///
/// Fails if the file or folder cannot be renamed.
pub fn rename(from: impl AsRef<Path>, to: impl AsRef<Path>) -> Result<()> {
    fs::rename(&from, &to).with_context(|| {
        format!("cannot rename {} to {}", from.as_ref().display(), to.as_ref().display())
    })
}

/// Removes a folder with everything in it, if it exists.
///
/// # Errors
///
/// Fails if the folder cannot be removed.
pub fn remove_dir_all(path: impl AsRef<Path>) -> Result<()> {
    let path = path.as_ref();
    if !path.exists() {
        return Ok(());
    }
    fs::remove_dir_all(path).with_context(|| format!("cannot remove {}", path.display()))
}
