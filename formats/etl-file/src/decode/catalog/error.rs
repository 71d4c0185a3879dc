//! The reasons why manifest files cannot be loaded.

use std::io;
use std::path::PathBuf;

use etw_manifest::ManifestError;

/// The reason why a manifest file could not be loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The file could not be read.
    #[error("cannot read the manifest {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The file is not text.
    #[error("cannot read the manifest {}: it is neither UTF-8 nor UTF-16 text", path.display())]
    Encoding {
        /// The file.
        path: PathBuf,
    },
    /// The file is not well-formed XML or not a manifest.
    #[error("cannot read {}: {source}", path.display())]
    Manifest {
        /// The file.
        path: PathBuf,
        /// The mistake and its location.
        source: Box<ManifestError>,
    },
}
