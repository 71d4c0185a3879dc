//! Imports published manifests: the declarations alone must decode every event that the manifests
//! decode.

use std::{env, fmt::Write as _, fs, path::Path, process::Command};

use etw_manifest::{self as manifest, Manifest, Presentation, resources::decode};
use etw_test_support as support;
use wdk_etw_build::{
    declaration::{self, Files},
    import,
};

use super::{IMAGES, golden, read};

/// The percentage of a manifest's events that its declaration must describe identically.
const PERCENT: usize = 95;

/// The published manifests.
const MANIFESTS: [&str; 3] = [
    "nodejs-bin-16.15.1a4/node_etw_provider.man",
    "nodejs-bin-18.4.0a4/node_etw_provider.man",
    "msquic-2.5.1-beta/MsQuicEtw.man",
];

/// The numbers of a manifest's events: all events, the events in its declaration, and the events
/// whose fields, types and maps are the same in the declaration.
#[derive(Debug, Default)]
struct Counts {
    all: usize,
    declared: usize,
    same: usize,
}

/// Returns the published manifests, and the providers of published images, whose resources contain
/// everything that decoders use from the manifest.
fn published() -> Vec<(&'static str, Manifest)> {
    let mut all = Vec::new();
    for path in MANIFESTS {
        all.push((path, read(&support::golden(path))));
    }
    for (image, ..) in IMAGES {
        let golden = golden(image);
        let mut manifest = decode(&golden.templates, &golden.messages).unwrap().manifest;
        // Format 3 has no provider names.
        for (number, provider) in manifest.providers.iter_mut().enumerate() {
            if provider.name.is_empty() {
                provider.name = format!("Provider{number}");
            }
        }
        all.push((image, manifest));
    }
    all
}

/// Imports a manifest, and checks that the declaration is accepted and that a note names each event
/// that is missing from it or that it describes differently.
fn counts(name: &str, manifest: &Manifest) -> Counts {
    let imported = import::declaration(manifest, None);
    let providers = match wdk_etw_schema::parse::source(&imported.source) {
        Ok(providers) => providers,
        Err(error) => panic!("{name}: {error}: {}", imported.source),
    };
    let files = Files { resources: "x.sys", messages: "x.sys" };
    let declared = declaration::manifest(&providers, &files);
    assert_eq!(manifest::check(&declared), [], "{name}");
    let mut counts = Counts::default();
    for provider in &manifest.providers {
        let mut others = declared.providers.iter();
        let other = others.find(|one| one.guid == provider.guid).unwrap();
        for event in &provider.events {
            counts.all += 1;
            let event_name = format!("event {} version {} ", event.id, event.version);
            let notes = imported.notes.iter();
            let mut notes = notes.filter(|note| note.what.starts_with(&event_name));
            let mut events = other.events.iter();
            let same = events.find(|one| (one.id, one.version) == (event.id, event.version));
            let Some(same) = same else {
                assert!(
                    notes.any(|note| note.what.contains("was not imported: ")),
                    "{name}: {event_name}"
                );
                continue;
            };
            counts.declared += 1;
            let wanted = Presentation::for_event(manifest, provider, event);
            let found = Presentation::for_event(&declared, other, same);
            if found.has_template_of(&wanted) {
                counts.same += 1;
            } else {
                assert!(notes.any(|note| note.what.contains("changes: ")), "{name}: {event_name}");
            }
        }
    }
    counts
}

#[test]
#[ignore = "needs published packages; `cargo xtask test` fetches them"]
fn a_published_manifests_declaration_alone_decodes_its_events() {
    for (name, manifest) in published() {
        let counts = counts(name, &manifest);
        println!(
            "{name}: {} of {} events are declared, {} with the same fields, types and maps",
            counts.declared, counts.all, counts.same
        );
        assert!(counts.same * 100 >= counts.all * PERCENT, "{name}: {counts:?}");
    }
}

/// Compiles the declarations in a separate crate.
#[test]
#[ignore = "needs published packages; `cargo xtask test` fetches them"]
fn the_declarations_of_published_manifests_compile() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("published");
    if folder.exists() {
        fs::remove_dir_all(&folder).unwrap();
    }
    fs::create_dir_all(folder.join("src")).unwrap();
    let mut all = "#![no_std]\n#![deny(warnings)]\n".to_owned();
    for (number, (_, manifest)) in published().iter().enumerate() {
        let source = import::declaration(manifest, None).source;
        fs::write(folder.join(format!("src/of_{number}.rs")), source).unwrap();
        writeln!(all, "pub mod of_{number};").unwrap();
    }
    fs::write(folder.join("src/lib.rs"), all).unwrap();
    let library = support::root().join("provider-lib");
    let text = format!(
        "[package]\nname = \"published\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[workspace]\n\n\
         [dependencies]\nwdk-etw = {{ path = {library:?} }}\n"
    );
    fs::write(folder.join("Cargo.toml"), text).unwrap();
    fs::copy(support::root().join("Cargo.lock"), folder.join("Cargo.lock")).unwrap();
    let output = Command::new(env::var_os("CARGO").unwrap())
        .args(["check", "--quiet", "--offline"])
        .current_dir(&folder)
        // The package shares those that the checkout's macros use.
        .env("CARGO_TARGET_DIR", folder.join("../.."))
        .env("CARGO_PROFILE_DEV_DEBUG", "false")
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
}
