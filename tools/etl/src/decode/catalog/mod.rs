//! The providers of manifests and images, which events are decoded by.
//!
//! The crate `etw-manifest` reads manifests (`.man`) and the resources of images; a [`Catalog`]
//! holds what they say of events, and is asked by provider, event id and version.

mod error;
mod index;
mod provider;

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use etw_manifest::{Lenient, Manifest, ManifestError, Skipped, read_lenient, text};

pub use error::LoadError;
pub use provider::{EventDefinition, Provider};

use etw_wire::Guid;

use crate::decode::schema::Schema;

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
    /// A provider that is known already is replaced. Returns the parts of the manifest that
    /// cannot be used; events are decoded without them.
    ///
    /// # Errors
    /// [`LoadError`] if the file cannot be read, or is no manifest.
    pub fn load(&mut self, path: impl AsRef<Path>) -> Result<Vec<Skipped>, LoadError> {
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
            source,
        })
    }

    /// Adds a manifest's text. A provider that is known already is replaced. Returns the parts of
    /// the manifest that cannot be used.
    ///
    /// # Errors
    /// [`ManifestError`] if the text is no manifest; the catalog is as before.
    pub fn add(&mut self, manifest: &str) -> Result<Vec<Skipped>, ManifestError> {
        let Lenient { manifest, skipped } = read_lenient(manifest)?;
        self.add_model(&manifest);
        Ok(skipped)
    }

    /// Adds the providers of a manifest that was read, in place of those that are known already.
    pub fn add_model(&mut self, manifest: &Manifest) {
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
