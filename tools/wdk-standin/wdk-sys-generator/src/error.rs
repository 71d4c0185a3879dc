//! The errors of the crate.

use std::{io, path::PathBuf};

/// The sources cannot be generated.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file of the data cannot be read, or a source cannot be written.
    #[error("cannot access {}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// A file of the data is not what its README describes.
    #[error("{}: {source}", path.display())]
    Data {
        /// The file.
        path: PathBuf,
        /// The parser's error.
        source: serde_json::Error,
    },
    /// An entry of the data is invalid.
    #[error("{name}: {what}")]
    Entry {
        /// The entry.
        name: String,
        /// The defect.
        what: String,
    },
}
