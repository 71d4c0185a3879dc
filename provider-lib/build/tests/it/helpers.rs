//! Declarations, manifests and files that several tests use.

use std::{
    fs,
    path::{Path, PathBuf},
};

use etw_manifest::{self as manifest, Manifest};
use tempfile::TempDir;
use wdk_etw_build::{
    declaration::{self, Files},
    import,
};

/// The image that declarations are compiled for.
pub const FILES: Files<'_> = Files { resources: "a.sys", messages: "a.sys" };

/// The environment variable, set by `cargo xtask renew fixtures`, that makes tests write files before they
/// compare them.
pub const RENEW: &str = "WDK_ETW_RENEW";

/// Returns the path of a fixture.
pub fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixture").join(name)
}

/// Writes a file in a folder. Returns its path.
pub fn write(folder: &TempDir, name: &str, text: &str) -> PathBuf {
    let path = folder.path().join(name);
    fs::write(&path, text).unwrap();
    path
}

/// Returns a declaration of a provider with these arguments and items.
pub fn module(arguments: &str, items: &str) -> String {
    format!("#[wdk_etw::provider({arguments})]\nmod trace {{\n    {items}\n}}")
}

/// Returns a manifest whose provider contains these parts, with these strings.
pub fn man(inside: &str, texts: &str) -> String {
    format!(
        "<instrumentationManifest \
         xmlns='http://schemas.microsoft.com/win/2004/08/events' \
         xmlns:win='http://manifests.microsoft.com/win/2004/08/windows/events'>\
         <instrumentation><events><provider name='P' \
         guid='{{11111111-2222-3333-4444-555555555555}}' symbol='P' resourceFileName='a' \
         messageFileName='a'>{inside}</provider></events></instrumentation>\
         <localization><resources culture='en-US'><stringTable>{texts}</stringTable></resources>\
         </localization></instrumentationManifest>"
    )
}

/// Reads a valid manifest.
pub fn read(text: &str) -> Manifest {
    match manifest::read(text.trim_start_matches('\u{feff}')) {
        Ok(manifest) => manifest,
        Err(failures) => panic!("{failures}: {text}"),
    }
}

/// Returns the manifest of a valid declaration.
pub fn declared(source: &str) -> Manifest {
    let providers = match wdk_etw_schema::parse::source(source) {
        Ok(providers) => providers,
        Err(error) => panic!("{error}: {source}"),
    };
    let made = declaration::manifest(&providers, &FILES);
    assert_eq!(manifest::check(&made), [], "{source}");
    made
}

/// Returns the notes on an import.
pub fn notes(imported: &import::Imported) -> Vec<&str> {
    imported.notes.iter().map(|note| &*note.what).collect()
}
