//! Decodes the fields of written events with the resources of their declaration.

use std::path::{Path, PathBuf};

use etl_file::Catalog;
use mock_etw::Written;
use wdk_etw_build::{
    declaration::Files,
    manifest::{
        Manifest,
        resources::{Version, message_table, wevt_template},
    },
    manifest_of,
};

/// The images that manifests name.
pub const FILES: Files<'_> = Files { resources: "x.sys", messages: "x.sys" };

/// Returns the path of a declaration or manifest in the fixtures folder.
pub fn fixture(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("build/tests/fixture").join(file)
}

/// Returns the catalog of a manifest's resources.
pub fn catalog(manifest: &Manifest) -> Catalog {
    let templates = wevt_template(manifest, Version::V5).unwrap();
    let messages = message_table(manifest).unwrap().unwrap_or_default();
    let mut catalog = Catalog::new();
    catalog.add_resources(&templates, &messages).unwrap();
    catalog
}

/// Returns the catalog of the resources of a fixture's declaration.
pub fn catalog_of(file: &str) -> Catalog {
    let (manifest, _) = manifest_of(&fixture(file), &FILES).unwrap();
    catalog(&manifest)
}

/// Returns an event's name and its fields as text. `id` is the provider.
pub fn decoded(written: &Written, id: wdk_etw::Guid, catalog: &Catalog) -> (String, Vec<String>) {
    if written.schema().is_some() {
        return written.described();
    }
    let provider = etl_file::Guid::from_bytes(id.to_bytes());
    let (id, version) = (written.event.id(), written.event.version());
    let definition = catalog.provider(provider).unwrap().event(id, version);
    let definition = definition.unwrap_or_else(|| panic!("event {id} of version {version}"));
    (definition.name().unwrap_or_default(), written.fields(&definition.schema))
}
