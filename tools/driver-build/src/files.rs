//! Functions of [`std::fs`] whose errors name the operation and the file.
#![expect(clippy::missing_errors_doc, reason = "each fails where its function of std::fs does")]

use std::{
    fs::{self, ReadDir},
    io,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

fn named<T>(result: io::Result<T>, operation: &str, path: &impl AsRef<Path>) -> Result<T> {
    result.with_context(|| format!("cannot {operation} {}", path.as_ref().display()))
}

/// Reads a file.
pub fn read(path: impl AsRef<Path>) -> Result<Vec<u8>> {
    named(fs::read(&path), "read", &path)
}

/// Reads a text file.
pub fn read_to_string(path: impl AsRef<Path>) -> Result<String> {
    named(fs::read_to_string(&path), "read", &path)
}

/// Returns the entries of a folder.
pub fn read_dir(path: impl AsRef<Path>) -> Result<ReadDir> {
    named(fs::read_dir(&path), "read", &path)
}

/// Returns the files in a folder with this extension, in any case, sorted.
pub fn with_extension(folder: impl AsRef<Path>, extension: &str) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in read_dir(&folder)? {
        let path = named(entry, "read", &folder)?.path();
        let has = path.extension().is_some_and(|one| one.eq_ignore_ascii_case(extension));
        if has && path.is_file() {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// Writes a file.
pub fn write(path: impl AsRef<Path>, content: impl AsRef<[u8]>) -> Result<()> {
    named(fs::write(&path, content), "write", &path)
}

/// Creates a folder and its parents, unless they exist.
pub fn create_dir_all(path: impl AsRef<Path>) -> Result<()> {
    named(fs::create_dir_all(&path), "create", &path)
}

/// Copies a file, with its permissions.
pub fn copy(from: impl AsRef<Path>, to: impl AsRef<Path>) -> Result<()> {
    let operation = format!("copy {} to", from.as_ref().display());
    named(fs::copy(&from, &to).map(drop), &operation, &to)
}

/// Renames a file or folder.
pub fn rename(from: impl AsRef<Path>, to: impl AsRef<Path>) -> Result<()> {
    let operation = format!("rename {} to", from.as_ref().display());
    named(fs::rename(&from, &to), &operation, &to)
}

/// Removes a folder and its contents, if it exists.
pub fn remove_dir_all(path: impl AsRef<Path>) -> Result<()> {
    if path.as_ref().exists() { named(fs::remove_dir_all(&path), "remove", &path) } else { Ok(()) }
}
