//! The providers of manifests and images, which describe how to decode events.
//!
//! The crate `etw-manifest` reads manifests (`.man`) and the resources of images; a [`Catalog`]
//! stores event definitions by provider, event id and version.

mod error;
mod index;
mod provider;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use etw_manifest::{Lenient, Manifest, ManifestError, Skipped, text};

pub use error::LoadError;
pub(super) use index::{providers, read_manifest};
pub use provider::{Channel, EventDefinition, Provider};

use etw_wire::Guid;

use crate::addresses::Addresses;
use crate::code_page::CodePage;
use crate::decode::mof::{Classes, MofError};
use crate::decode::schema::Schema;
use crate::decode::wpp::{Formats, FormatsError, SkippedFormat};
use crate::input::{MAX_MANIFEST, read};

/// The providers of all loaded manifests and images, and the formats of WPP messages.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    providers: BTreeMap<Guid, Arc<Provider>>,
    formats: Formats,
    in_hex: Vec<String>,
    classes: Classes,
    code_page: CodePage,
    /// The providers as single processes define them, where the manifests of a trace differ.
    by_process: BTreeMap<Guid, BTreeMap<u32, Arc<Provider>>>,
    /// The addresses of the trace's network adapters.
    addresses: Addresses,
}

impl Catalog {
    /// Returns an empty catalog, which is sufficient for `TraceLogging` events.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Loads a manifest file, in UTF-8 or, with a byte order mark, in UTF-16. Replaces providers
    /// that are already in the catalog. Returns the parts of the manifest that cannot be used;
    /// events are decoded without them.
    ///
    /// # Errors
    /// Fails with [`LoadError`] if the file cannot be read or is not a manifest.
    pub fn load(&mut self, path: impl AsRef<Path>) -> Result<Vec<Skipped>, LoadError> {
        let path = path.as_ref();
        let bytes = read(path, MAX_MANIFEST)
            .map_err(|source| LoadError::Io { path: path.to_owned(), source })?;
        let text = text(&bytes).ok_or_else(|| LoadError::Encoding { path: path.to_owned() })?;
        self.add(&text).map_err(|source| {
            let source = Box::new(source);
            LoadError::Manifest { path: path.to_owned(), source }
        })
    }

    /// Loads the formats of WPP messages from a TMF file or from the TMF files in a folder. Formats
    /// that were loaded earlier take precedence. Returns the parts that cannot be used.
    ///
    /// # Errors
    /// Fails with [`FormatsError`] if a file or the folder cannot be read.
    pub fn load_formats(
        &mut self,
        path: impl AsRef<Path>,
    ) -> Result<Vec<SkippedFormat>, FormatsError> {
        self.formats.load(path)
    }

    /// Loads the classes of classic events from a MOF file.
    ///
    /// # Errors
    /// Fails with [`MofError`] if the file cannot be read, or contains no event classes.
    pub fn load_classes(&mut self, path: impl AsRef<Path>) -> Result<(), MofError> {
        self.classes.load(path.as_ref())
    }

    /// Returns the classes of classic events.
    #[must_use]
    #[doc(hidden)]
    pub const fn classes(&self) -> &Classes {
        &self.classes
    }

    /// Adds formats for WPP messages that have none yet.
    pub fn add_formats(&mut self, formats: &Formats) {
        self.formats.extend(formats);
    }

    /// Shows the integers in fields with these names in hexadecimal, even if their values have
    /// names.
    pub fn show_in_hex(&mut self, fields: impl IntoIterator<Item = String>) {
        self.in_hex.extend(fields);
    }

    /// Sets the code page of 8-bit text that is not UTF-8; the default is 1252.
    pub const fn set_code_page(&mut self, code_page: CodePage) {
        self.code_page = code_page;
    }

    /// Returns the code page of 8-bit text that is not UTF-8.
    pub(crate) const fn code_page(&self) -> CodePage {
        self.code_page
    }

    /// Returns the names of fields to show in hexadecimal.
    pub(crate) fn in_hex(&self) -> &[String] {
        &self.in_hex
    }

    /// Returns the formats of WPP messages.
    #[must_use]
    pub const fn formats(&self) -> &Formats {
        &self.formats
    }

    /// Adds a manifest from its text. Replaces providers that are already in the catalog. Returns
    /// the parts of the manifest that cannot be used.
    ///
    /// # Errors
    /// Fails with [`ManifestError`] if the text is not a manifest; the catalog is then unchanged.
    pub fn add(&mut self, manifest: &str) -> Result<Vec<Skipped>, ManifestError> {
        let Lenient { manifest, skipped } = read_manifest(manifest)?;
        self.add_model(&manifest);
        Ok(skipped)
    }

    /// Adds a manifest's providers, replacing those that are already in the catalog.
    pub fn add_model(&mut self, manifest: &Manifest) {
        self.insert(providers(manifest));
    }

    /// Adds providers, replacing those that are already in the catalog.
    fn insert(&mut self, providers: Vec<Provider>) {
        for provider in providers.into_iter().map(Arc::new) {
            // Events contain the control GUID, if the provider has one. If several providers share
            // it, only their traits distinguish them.
            if let Some(control) = provider.control_guid {
                self.providers.entry(control).or_insert_with(|| Arc::clone(&provider));
            }
            self.providers.insert(provider.guid, provider);
        }
    }

    /// Adds a provider, or, if the catalog already contains it, the events and names that the
    /// catalog's definition lacks.
    pub(crate) fn complete(&mut self, provider: &Provider) {
        let Some(known) = self.providers.get(&provider.guid) else {
            self.insert(vec![provider.clone()]);
            return;
        };
        let mut completed = Provider::clone(known);
        completed.complete(provider);
        let completed = Arc::new(completed);
        // The catalog may also list the provider under its control GUID.
        let known = Arc::clone(known);
        for place in self.providers.values_mut() {
            if Arc::ptr_eq(place, &known) {
                *place = Arc::clone(&completed);
            }
        }
    }

    /// Returns the provider with a GUID.
    #[must_use]
    #[doc(hidden)]
    pub fn provider(&self, guid: Guid) -> Option<&Provider> {
        self.providers.get(&guid).map(Arc::as_ref)
    }

    /// Returns the provider with a GUID as a process defines it.
    pub(crate) fn provider_of(&self, guid: Guid, process: u32) -> Option<&Provider> {
        let own = self.by_process.get(&guid).and_then(|all| all.get(&process));
        own.map(Arc::as_ref).or_else(|| self.provider(guid))
    }

    /// Returns true if processes define a provider differently.
    pub(crate) fn is_by_process(&self, guid: Guid) -> bool {
        self.by_process.contains_key(&guid)
    }

    /// Adds a provider as some processes define it. Loaded manifests take precedence.
    pub(crate) fn add_of_processes(
        &mut self,
        loaded: Option<&Provider>,
        provider: &Arc<Provider>,
        processes: &[u32],
    ) {
        let completed = loaded.map_or_else(
            || Arc::clone(provider),
            |loaded| {
                let mut completed = loaded.clone();
                completed.complete(provider);
                Arc::new(completed)
            },
        );
        let all = self.by_process.entry(provider.guid).or_default();
        all.extend(processes.iter().map(|process| (*process, Arc::clone(&completed))));
    }

    /// Returns the addresses of network adapters that the trace contains.
    pub(crate) const fn addresses(&self) -> &Addresses {
        &self.addresses
    }

    /// Adds addresses of network adapters.
    pub(crate) fn add_addresses(&mut self, addresses: &Addresses) {
        self.addresses.extend(addresses.iter());
    }

    /// Returns the providers in GUID order. A provider with a separate control GUID is returned
    /// once.
    #[doc(hidden)]
    pub fn providers(&self) -> impl Iterator<Item = &Provider> {
        let all = self.providers.iter();
        all.filter(|(guid, provider)| **guid == provider.guid)
            .map(|(_, provider)| provider.as_ref())
    }

    /// Returns the layout of an event's user data.
    #[must_use]
    #[doc(hidden)]
    pub fn schema(&self, provider: Guid, id: u16, version: u8) -> Option<&Schema> {
        let event = self.provider(provider)?.event(id, version)?;
        Some(&event.schema)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_provider_with_a_control_guid_is_there_once() {
        let (control, other) = (Guid::from_u128(1), Guid::from_u128(9));
        let provider = |guid, control_guid| Provider { guid, control_guid, ..Provider::default() };
        let mut catalog = Catalog::new();
        let first = Guid::from_u128(5);
        catalog.insert(vec![provider(first, Some(control)), provider(other, None)]);
        assert_eq!(catalog.provider(control).unwrap().guid, first);
        let guids: Vec<Guid> = catalog.providers().map(|one| one.guid).collect();
        assert_eq!(guids, [first, other]);
    }
}
