//! Instrumentation manifests: what manifest events mean.
//!
//! A manifest (`.man`) describes providers in XML: their events with their
//! templates, and the names of keywords, levels, tasks and opcodes. A
//! [`Catalog`] holds what was loaded and is asked by provider, event id and
//! version. Images hold the same in another form (see [`crate::image`]).

mod error;
mod index;
mod parse;
mod provider;
mod types;

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

pub use error::{LoadError, ManifestError, ManifestErrorKind};
pub use provider::{EventDefinition, Provider};

use crate::decode::Schema;
use crate::guid::Guid;

/// The providers of all manifests that were loaded.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    providers: HashMap<Guid, Arc<Provider>>,
}

impl Catalog {
    /// A catalog without providers. It is all that `TraceLogging` events need.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Loads a manifest file, in UTF-8 or, with a byte order mark, in UTF-16.
    /// A provider that is known already is replaced.
    ///
    /// # Errors
    /// [`LoadError`] if the file cannot be read, is no text, or is malformed.
    pub fn load(&mut self, path: impl AsRef<Path>) -> Result<(), LoadError> {
        let path = path.as_ref();
        let bytes = std::fs::read(path).map_err(|source| LoadError::Io {
            path: path.to_owned(),
            source,
        })?;
        let text = text(&bytes).ok_or_else(|| LoadError::Encoding {
            path: path.to_owned(),
        })?;
        self.add(&text).map_err(|source| LoadError::Manifest {
            path: path.to_owned(),
            source: Box::new(source),
        })
    }

    /// Adds a manifest's text. A provider that is known already is replaced.
    ///
    /// # Errors
    /// [`ManifestError`] if the text is malformed; the catalog is as before.
    pub fn add(&mut self, manifest: &str) -> Result<(), ManifestError> {
        self.insert(parse::manifest(manifest)?);
        Ok(())
    }

    /// Adds the providers of a manifest that was read, in place of those that are known already.
    pub fn add_model(&mut self, manifest: &etw_manifest::Manifest) {
        self.insert(index::providers(manifest));
    }

    /// Adds providers, in place of those that are known already.
    fn insert(&mut self, providers: Vec<Provider>) {
        for provider in providers.into_iter().map(Arc::new) {
            // Events carry the control GUID, where there is one. Several
            // providers may share it; then only traits can tell them apart.
            if let Some(control) = provider.control_guid {
                self.providers
                    .entry(control)
                    .or_insert_with(|| Arc::clone(&provider));
            }
            self.providers.insert(provider.guid, provider);
        }
    }

    /// The provider of a GUID.
    #[must_use]
    pub fn provider(&self, guid: Guid) -> Option<&Provider> {
        self.providers.get(&guid).map(Arc::as_ref)
    }

    /// The layout of an event's user data.
    #[must_use]
    pub fn schema(&self, provider: Guid, id: u16, version: u8) -> Option<&Schema> {
        let event = self.provider(provider)?.event(id, version)?;
        Some(&event.schema)
    }
}

/// The text of a manifest file's bytes: UTF-16 by its byte order mark, or else UTF-8.
/// None if they are no such text.
#[must_use]
pub fn text(bytes: &[u8]) -> Option<String> {
    let utf16 = |bytes: &[u8], unit: fn([u8; 2]) -> u16| {
        let (units, []) = bytes.as_chunks::<2>() else {
            return None;
        };
        let units: Vec<u16> = units.iter().copied().map(unit).collect();
        String::from_utf16(&units).ok()
    };
    match bytes {
        [0xFF, 0xFE, rest @ ..] => utf16(rest, u16::from_le_bytes),
        [0xFE, 0xFF, rest @ ..] => utf16(rest, u16::from_be_bytes),
        [0xEF, 0xBB, 0xBF, rest @ ..] => String::from_utf8(rest.to_vec()).ok(),
        _ => String::from_utf8(bytes.to_vec()).ok(),
    }
}
