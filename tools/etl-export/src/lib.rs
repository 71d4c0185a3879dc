//! Exports traces for the engines and collectors that read the traces of many machines.

mod column;
mod otlp;
mod row;
mod tables;

use std::io;
use std::path::PathBuf;

use etl_file::ReadError;

pub use otlp::Logs;
pub use row::Row;
pub use tables::{Source, Tables};

/// The reason why a trace could not be exported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// The trace could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A file could not be written.
    #[error("cannot write {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// A table could not be written.
    #[error("cannot write {}: {source}", path.display())]
    Parquet {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: parquet::errors::ParquetError,
    },
    /// A value could not be written as JSON.
    #[error("cannot write an event as JSON: {0}")]
    Json(#[from] serde_json::Error),
}
