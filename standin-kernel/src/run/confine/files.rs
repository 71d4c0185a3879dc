//! The files that a confined process may use.

use std::path::{Path, PathBuf};

use crate::run::config::RunConfig;

/// The files of a run.
#[derive(Clone, Copy)]
pub struct Files<'a> {
    pub image: &'a Path,
    /// The files and folders that describe the image's events.
    pub described_by: &'a [PathBuf],
    pub trace: Option<&'a Path>,
    pub folder: Option<&'a Path>,
}

impl<'a> From<&'a RunConfig> for Files<'a> {
    fn from(run: &'a RunConfig) -> Self {
        Self {
            image: &run.image,
            described_by: &run.formats,
            trace: Some(&run.etl),
            folder: run.folder.as_deref(),
        }
    }
}
