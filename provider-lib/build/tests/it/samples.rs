//! Compares third-party manifests with the resources that mc.exe compiled from them.

use std::{
    fs,
    path::{Path, PathBuf},
};

use etw_manifest::{
    self as manifest, Manifest,
    resources::{Version, message_table, wevt_template},
};
use wdk_etw_build::{import, manifest_of};

use crate::helpers::FILES;

/// Returns the manifests among the samples.
fn manifests() -> Vec<PathBuf> {
    let mut samples: Vec<PathBuf> = fs::read_dir(etw_test_support::sample("mc"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "man"))
        .collect();
    samples.sort();
    assert!(samples.len() >= 3, "{samples:?}");
    samples
}

fn read(path: &Path) -> Manifest {
    crate::helpers::read(&fs::read_to_string(path).unwrap())
}

/// Compares with the output of mc.exe, and returns the number of resources compared.
fn assert_matches_mc(manifest: &Manifest, path: &Path) -> usize {
    let mut compared = 0;
    for (extension, ours) in [
        ("wevt.v3.bin", wevt_template(manifest, Version::V3).unwrap()),
        ("wevt.v5.bin", wevt_template(manifest, Version::V5).unwrap()),
        ("msg.bin", message_table(manifest).unwrap().unwrap_or_default()),
    ] {
        if let Ok(theirs) = fs::read(path.with_extension(extension)) {
            assert!(ours == theirs, "{}: {extension} differs", path.display());
            compared += 1;
        }
    }
    compared
}

/// Returns the expected notes on channels whose names do not begin with the provider's name, as a
/// declaration's always do: one note for each event.
fn channel_notes(manifest: &Manifest) -> Vec<String> {
    let mut notes = Vec::new();
    for provider in &manifest.providers {
        let prefix = format!("{}/", provider.name);
        for event in &provider.events {
            let channel = event.channel.map(|at| &provider.channels[at].name);
            if let Some(name) = channel.filter(|name| !name.starts_with(&prefix)) {
                notes.push(format!(
                    "event {} version {} changes: the channel is `{prefix}{name}`, not `{name}`",
                    event.id, event.version
                ));
            }
        }
    }
    notes
}

// R-O5
#[test]
#[ignore = "needs WDK_ETW_SAMPLES, a folder of samples that must not be published"]
fn the_resources_are_those_of_mc() {
    let compared: usize = manifests().iter().map(|path| assert_matches_mc(&read(path), path)).sum();
    assert!(compared >= 7, "{compared}");
}

#[test]
#[ignore = "needs WDK_ETW_SAMPLES, a folder of samples that must not be published"]
fn what_is_written_reads_back_as_the_same() {
    for path in manifests() {
        let text = manifest::write(&read(&path), "a -- comment");
        let again = manifest::read(&text).unwrap();
        assert_matches_mc(&again, &path);
        assert_eq!(manifest::write(&again, "a -- comment"), text);
    }
}

#[test]
#[ignore = "needs WDK_ETW_SAMPLES, a folder of samples that must not be published"]
fn an_imported_declaration_compiles_to_the_same_resources() {
    let folder = tempfile::tempdir().unwrap();
    for path in manifests() {
        let manifest = read(&path);
        if manifest.providers.is_empty() {
            continue;
        }
        let imported = import::declaration(&manifest, path.to_str());
        let notes = imported.notes.iter().map(|note| note.what.as_str());
        let notes: Vec<_> = notes.filter(|what| !what.starts_with("the controlGuid")).collect();
        assert_eq!(notes, channel_notes(&manifest));
        let source = folder.path().join("trace.rs");
        fs::write(&source, &imported.source).unwrap();
        // The declaration agrees with the manifest that it names. The resources are compiled from
        // that manifest.
        let (again, read) = manifest_of(&source, &FILES).unwrap();
        assert_eq!(read.len(), 2);
        assert_matches_mc(&again, &path);
        // Without the manifest, the declaration alone yields the same events.
        let alone = import::declaration(&manifest, None);
        fs::write(&source, &alone.source).unwrap();
        let (alone, read) = manifest_of(&source, &FILES).unwrap();
        assert_eq!(read.len(), 1);
        for (ours, theirs) in alone.providers.iter().zip(&manifest.providers) {
            assert_eq!((&ours.name, ours.guid), (&theirs.name, theirs.guid));
            let ids = |provider: &manifest::Provider| -> Vec<(u16, u8)> {
                let events = provider.events.iter();
                events.map(|event| (event.id, event.version)).collect()
            };
            assert_eq!(ids(ours), ids(theirs));
        }
    }
}
