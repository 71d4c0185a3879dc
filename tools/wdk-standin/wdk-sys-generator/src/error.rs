//! The crate's errors.

use std::{io, path::PathBuf};

/// The reason why the sources cannot be generated.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A data file cannot be read, or a source file cannot be written.
    #[error("cannot access {}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// A data file does not match the README's description.
    #[error("{}: {source}", path.display())]
    Data {
        /// The file.
        path: PathBuf,
        /// The parser's error.
        source: serde_json::Error,
    },
    /// An entry in the data is invalid.
    #[error("{name}: {what}")]
    Entry {
        /// The entry.
        name: String,
        /// The problem.
        what: String,
    },
}
