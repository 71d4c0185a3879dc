//! The formats of WPP messages: the text of each message and the types of its arguments.
//!
//! A message in a trace has a GUID, a number and the bytes of its arguments. Its format is in a TMF
//! file, or in a PDB annotation that tools convert to TMF files. Microsoft does not document TMF
//! files; this module reads the form that WPP's published configuration and tools produce
//! (ETL-14.12).

mod expand;
mod item;
mod manifest;
mod tmf;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use etw_wire::Guid;

#[doc(hidden)]
pub use expand::{Expanded, Header};
pub use item::ArgumentError;
#[doc(hidden)]
pub use manifest::Converted;
#[doc(hidden)]
pub use tmf::Format;
pub use tmf::{Defect, DefectKind};

use crate::code_page::CodePage;
use crate::input;

/// Message formats, by GUID and number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Formats {
    by_key: BTreeMap<(Guid, u16), Arc<Format>>,
    /// The messages that another format describes differently.
    clashing: BTreeSet<(Guid, u16)>,
}

/// The reason why a file or folder with formats cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FormatsError {
    /// The file or folder cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The file is too large for a TMF file.
    #[error("{} is larger than {} MiB, the limit for a TMF file", path.display(), Formats::MAX_FILE >> 20)]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
}

/// An unusable part of a file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {defect}", path.display())]
pub struct SkippedFormat {
    /// The file.
    pub path: PathBuf,
    /// The part and its defect.
    pub defect: Defect,
}

impl Formats {
    /// The maximum size of a TMF file, in bytes.
    #[doc(hidden)]
    pub const MAX_FILE: u64 = 64 << 20;

    /// Returns an empty collection.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the number of formats.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_key.len()
    }

    /// Returns true if there is no format.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }

    /// Returns the formats, by GUID and number.
    #[doc(hidden)]
    pub fn iter(&self) -> impl Iterator<Item = &Format> {
        self.by_key.values().map(AsRef::as_ref)
    }

    /// Returns the formats of messages for which a second format, with other text or arguments, was
    /// also added, by GUID and number.
    #[doc(hidden)]
    pub fn clashing(&self) -> impl Iterator<Item = &Format> {
        self.clashing.iter().filter_map(|key| self.by_key.get(key)).map(AsRef::as_ref)
    }

    /// Returns the format of a message.
    #[must_use]
    #[doc(hidden)]
    pub fn find(&self, guid: Guid, number: u16) -> Option<&Arc<Format>> {
        self.by_key.get(&(guid, number))
    }

    /// Loads a TMF file, or all files in a folder whose names end with `.tmf`. The first format of
    /// a message wins. Returns the parts that cannot be used.
    ///
    /// # Errors
    /// Fails with [`FormatsError`] if a file or the folder cannot be read, or if a file is too large.
    pub fn load(&mut self, path: impl AsRef<Path>) -> Result<Vec<SkippedFormat>, FormatsError> {
        let path = path.as_ref();
        let failed = |source| FormatsError::Io { path: path.to_owned(), source };
        if !fs::metadata(path).map_err(failed)?.is_dir() {
            return self.load_file(path);
        }
        let mut files = Vec::new();
        for entry in fs::read_dir(path).map_err(failed)? {
            let file = entry.map_err(failed)?.path();
            let extension = file.extension();
            if extension.is_some_and(|extension| extension.eq_ignore_ascii_case("tmf")) {
                files.push(file);
            }
        }
        files.sort();
        let mut skipped = Vec::new();
        for file in files {
            skipped.extend(self.load_file(&file)?);
        }
        Ok(skipped)
    }

    fn load_file(&mut self, path: &Path) -> Result<Vec<SkippedFormat>, FormatsError> {
        let bytes = input::read(path, Self::MAX_FILE).map_err(|source| {
            let path = path.to_owned();
            match source.kind() {
                io::ErrorKind::FileTooLarge => FormatsError::TooLarge { path },
                _ => FormatsError::Io { path, source },
            }
        })?;
        // Older tools write in their machine's code page.
        let text = etw_manifest::text(&bytes).unwrap_or_else(|| CodePage::default().decode(&bytes));
        let defects = self.add_text(&text).into_iter();
        Ok(defects.map(|defect| SkippedFormat { path: path.to_owned(), defect }).collect())
    }

    /// Adds the formats in a TMF file's text. The first format of a message wins. Returns the parts
    /// that cannot be used, at most [`Self::MAX_DEFECTS`].
    pub fn add_text(&mut self, text: &str) -> Vec<Defect> {
        let (formats, defects) = tmf::parse(text);
        for format in formats {
            self.add(format);
        }
        defects
    }

    /// The maximum number of defects to report for one TMF file.
    #[doc(hidden)]
    pub const MAX_DEFECTS: usize = tmf::MAX_DEFECTS;

    /// Adds the format in a PDB annotation whose first string is `TMF:`. Ignores other annotations.
    ///
    /// # Errors
    /// Fails with [`DefectKind`] if a string differs from what a TMF file would contain.
    pub fn add_annotation<S: AsRef<str>>(&mut self, strings: &[S]) -> Result<(), DefectKind> {
        let mut strings = strings.iter().map(AsRef::as_ref);
        if strings.next() != Some("TMF:") {
            return Ok(());
        }
        let format = tmf::parse_annotation(strings)?;
        self.add(format);
        Ok(())
    }

    /// Adds formats for messages that have none yet.
    pub fn extend(&mut self, others: &Self) {
        self.clashing.extend(&others.clashing);
        for format in others.by_key.values() {
            self.add(Arc::clone(format));
        }
    }

    fn add(&mut self, format: impl Into<Arc<Format>>) {
        let format = format.into();
        let key = (format.guid, format.number);
        let known = self.by_key.entry(key).or_insert_with(|| Arc::clone(&format));
        if (&known.text, &known.arguments) != (&format.text, &format.arguments) {
            self.clashing.insert(key);
        }
    }
}
