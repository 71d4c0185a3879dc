//! Files that are read as a whole.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The maximum size of a manifest, in bytes.
pub const MAX_MANIFEST: u64 = 64 << 20;
/// The maximum size of an image, in bytes.
pub const MAX_IMAGE: u64 = 1 << 30;
/// The maximum size of a PDB, in bytes: that of pages of 4 KiB.
pub const MAX_PDB: u64 = 4 << 30;

/// Reads a file. A device may have no end, so at most `limit` bytes are read.
pub fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    read_all(File::open(path)?, limit)
}

/// Reads everything up to the end.
///
/// # Errors
/// Fails with [`io::ErrorKind::FileTooLarge`] after `limit` bytes.
pub fn read_all(input: impl Read, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    input.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        let why = format!("it is larger than {} MiB", limit >> 20);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
    }
    Ok(bytes)
}
