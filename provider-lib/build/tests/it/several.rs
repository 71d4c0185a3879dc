//! Tests the resources of several declarations in one image.

use std::{env, path::PathBuf, process::Command};

use tempfile::TempDir;
use wdk_etw_build::{
    BuildError, Configuration, export, export_dependencies,
    manifest::{
        Manifest,
        resources::{Version, decode, message_table, wevt_template},
    },
    manifest_of, manifest_of_all,
};

use crate::helpers::{FILES, module, write};

/// Returns a declaration with an event that has a message and a map.
fn source(arguments: &str) -> String {
    module(
        arguments,
        "#[map]\n    enum Kind {\n        One = 1,\n    }\n    #[event(id = 1, level = Info, keyword = \
         none, opcode = Start, message = \"It was %1.\")]\n    fn x(kind: Kind);",
    )
}

/// Returns the manifest of declarations without `#[cfg]`.
fn all_of(paths: &[PathBuf]) -> Result<(Manifest, Vec<PathBuf>), BuildError> {
    let sources: Vec<_> = paths.iter().map(|path| (path.clone(), Configuration::new())).collect();
    manifest_of_all(&sources, &FILES)
}

/// Returns the error for two declarations in one image.
fn refused(first: &str, second: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let paths = [write(&folder, "a.rs", &source(first)), write(&folder, "b.rs", &source(second))];
    let error = all_of(&paths).unwrap_err().to_string();
    error.replace(&folder.path().join("").display().to_string(), "")
}

#[test]
fn names_and_guids_that_meet_are_refused_with_both_places() {
    let expected = "two providers in the image have the name A.b: in a.rs:2 and in b.rs:2; give one of \
                    them another name or GUID";
    assert_eq!(refused("name = \"a.B\"", "name = \"A.b\""), expected);
    let guid = "11111111-2222-3333-4444-555555555555";
    let error = refused(
        &format!("name = \"A\", guid = \"{guid}\""),
        &format!("name = \"B\", guid = \"{guid}\""),
    );
    assert!(error.contains(&format!("the GUID {guid}")), "{error}");
    assert!(error.contains("a.rs:2") && error.contains("b.rs:2"), "{error}");
    // One of the providers has no manifest events.
    let folder = tempfile::tempdir().unwrap();
    let empty = "#[provider(name = \"A\")]\nmod a {}\n#[provider(name = \"A\")]\nmod b {}";
    let path = write(&folder, "both.rs", empty);
    let error = manifest_of(&path, &FILES).unwrap_err().to_string();
    assert!(error.contains("both.rs:4:5: "), "{error}");
}

#[test]
fn all_providers_keep_their_events_messages_and_maps() {
    let folder = tempfile::tempdir().unwrap();
    let declared = |name: &str, more: &str| {
        let text = source(&format!("name = \"{name}\"{more}"));
        text.replace("It was", &format!("{name} was")).replace("One =", &format!("One{name} ="))
    };
    // B and D name manifests, whose string ids have the same form, and use winmeta.xml's strings.
    let with_manifest = |name: &str| {
        let alone = write(&folder, "alone.rs", &declared(name, ""));
        let (kept, _) = manifest_of(&alone, &FILES).unwrap();
        let kept = wdk_etw_build::manifest::write(&kept, "");
        let kept = write(&folder, &format!("{name}.man"), &kept);
        let more = format!(", manifest = {:?}", kept.display().to_string());
        let path = write(&folder, &format!("{name}.rs"), &declared(name, &more));
        (path, kept)
    };
    let (second, second_kept) = with_manifest("B");
    let (fourth, fourth_kept) = with_manifest("D");
    let first = write(&folder, "A.rs", &declared("A", ""));
    let third = write(&folder, "C.rs", &declared("C", ""));
    let paths = [first.clone(), second.clone(), third.clone(), fourth.clone()];
    let (all, read) = all_of(&paths).unwrap();
    assert_eq!(read, [first.clone(), second, second_kept, third, fourth, fourth_kept]);
    let decoded =
        decode(&wevt_template(&all, Version::V5).unwrap(), &message_table(&all).unwrap().unwrap())
            .unwrap();
    assert_eq!(decoded.skipped, []);
    let names = decoded.manifest.providers.iter().map(|it| it.name.as_str());
    assert!(names.eq(["A", "B", "C", "D"]));
    let text = |text: Option<usize>| decoded.manifest.texts[text.unwrap()].value.as_str();
    for provider in &decoded.manifest.providers {
        let name = &provider.name;
        assert_eq!(text(provider.message), name);
        assert_eq!(text(provider.events[0].message), format!("{name} was %1."));
        assert_eq!(text(provider.maps[0].items[0].message), format!("One{name}"));
        let opcode = &provider.opcodes[provider.events[0].opcode.unwrap()];
        assert_eq!(text(opcode.message), "Start");
    }
    // mc.exe stores winmeta.xml's strings once for all providers of a manifest.
    let texts = all.texts.iter().filter(|text| text.value == "Start");
    assert_eq!(texts.count(), 1);
    // A single file still has the same manifest as before.
    let (alone, _) = all_of(std::slice::from_ref(&first)).unwrap();
    let (before, _) = manifest_of(&first, &FILES).unwrap();
    assert_eq!(
        wdk_etw_build::manifest::write(&alone, ""),
        wdk_etw_build::manifest::write(&before, "")
    );
}

/// Writes a declaration that names a manifest. The manifest has an event of the standard level
/// Error, whose message has an id from winmeta.xml, and these string tables: languages and
/// messages.
fn with_strings(folder: &TempDir, name: &str, tables: &[(&str, &str)]) -> PathBuf {
    let guid = format!("{:0>32}", name.len());
    let guid = format!("{}-0000-0000-0000-{}", &guid[..8], &guid[20..]);
    let message = if tables.is_empty() { "" } else { "message='$(string.level.Error)'" };
    let tables: Vec<String> = tables
        .iter()
        .map(|(culture, text)| {
            format!(
                "<resources culture='{culture}'><stringTable><string id='level.Error' \
                 value='{text}'/></stringTable></resources>"
            )
        })
        .collect();
    let manifest = format!(
        "<instrumentationManifest xmlns='http://schemas.microsoft.com/win/2004/08/events' \
         xmlns:win='http://manifests.microsoft.com/win/2004/08/windows/events'>\
         <instrumentation><events><provider name='{name}' guid='{{{guid}}}' symbol='{name}' \
         resourceFileName='a.sys' messageFileName='a.sys'><events>\
         <event value='1' level='win:Error' {message}/></events></provider></events>\
         </instrumentation><localization>{}</localization></instrumentationManifest>",
        tables.concat()
    );
    let manifest = write(folder, &format!("{name}.man"), &manifest);
    let manifest = manifest.display().to_string();
    let source = module(
        &format!("name = \"{name}\", guid = \"{guid}\", manifest = {manifest:?}"),
        "#[event(id = 1, level = Error, keyword = none)]\n    fn x();",
    );
    write(folder, &format!("{name}.rs"), &source)
}

#[test]
fn an_image_has_the_language_of_the_manifests_that_have_one() {
    let folder = tempfile::tempdir().unwrap();
    let none = with_strings(&folder, "None", &[]);
    let german = with_strings(&folder, "German", &[("de-DE", "Fehler")]);
    let other = with_strings(&folder, "German2", &[("de-DE", "Noch einer")]);
    let french = with_strings(&folder, "French22", &[("fr-FR", "Erreur")]);
    for paths in [[&none, &german, &other], [&german, &none, &other], [&german, &other, &none]] {
        let (all, _) = all_of(&paths.map(Clone::clone)).unwrap();
        assert_eq!(all.culture, "de-DE");
        // A string with an id from winmeta.xml does not become winmeta.xml's.
        let events = all.providers.iter().map(|provider| {
            let message = provider.events[0].message;
            let text = message.map(|at| all.texts[at].value.as_str());
            (provider.name.as_str(), text)
        });
        let mut events: Vec<_> = events.collect();
        events.sort_unstable();
        assert_eq!(
            events,
            [("German", Some("Fehler")), ("German2", Some("Noch einer")), ("None", None)]
        );
    }
    let error = all_of(&[german, none, french]).unwrap_err().to_string();
    assert!(
        error.contains("French22.rs are in fr-FR, but the image's other providers' are in de-DE"),
        "{error}"
    );
}

#[test]
fn translations_into_one_language_are_one_table() {
    let folder = tempfile::tempdir().unwrap();
    let first = [("en-US", "One"), ("de-DE", "Eins")];
    let second = [("en-US", "Two"), ("fr-FR", "Deux"), ("de-DE", "Zwei")];
    let paths = [with_strings(&folder, "A", &first), with_strings(&folder, "Bb", &second)];
    let (all, _) = all_of(&paths).unwrap();
    let mut translations: Vec<(&str, Vec<&str>)> = all
        .translations
        .iter()
        .map(|one| {
            let texts = one.texts.iter().map(|(_, text)| text.as_str());
            (one.culture.as_str(), texts.collect())
        })
        .collect();
    translations.sort_unstable();
    assert_eq!(translations, [("de-DE", vec!["Eins", "Zwei"]), ("fr-FR", vec!["Deux"])]);
}

#[test]
fn more_providers_than_have_message_ids_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let paths: Vec<_> = (0..17)
        .map(|at| {
            let text = source(&format!("name = \"P{at}\""));
            write(&folder, &format!("{at}.rs"), &text)
        })
        .collect();
    let error = all_of(&paths).unwrap_err().to_string();
    assert!(
        error.starts_with("cannot fit the image's providers in one set of resources"),
        "{error}"
    );
    assert!(all_of(&paths[..16]).is_ok());
}

/// Runs the test below in a process with the environment of a library's build script.
fn exported(variables: &[(&str, &str)]) -> String {
    let mut command = Command::new(env::current_exe().unwrap());
    command
        .args(["--exact", "several::library_build_script", "--ignored", "--nocapture"])
        .env("CARGO_PKG_NAME", "contoso-usb")
        .env("CARGO_MANIFEST_DIR", env!("CARGO_MANIFEST_DIR"))
        .env_remove("CARGO_MANIFEST_LINKS")
        .envs(variables.iter().copied());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
#[ignore = "the build script of a library; `exported` runs it"]
fn library_build_script() {
    let declaration = env::var_os("DECLARATION").map(PathBuf::from);
    let result = declaration.map_or_else(export_dependencies, export);
    if let Err(error) = result {
        println!("error: {error}");
    }
}

#[test]
fn a_library_passes_on_its_declaration_and_those_of_its_dependencies() {
    let folder = tempfile::tempdir().unwrap();
    let own = write(&folder, "own.rs", &source("name = \"Own\""));
    let own = own.to_str().unwrap();
    let links = ("CARGO_MANIFEST_LINKS", "contoso-usb-etw");
    let both = env::join_paths(["/other/a.rs", "/other/b.rs"]).unwrap();
    let dependencies = [
        ("DEP_OTHER_WDK_ETW_DECLARATIONS", both.to_str().unwrap()),
        // Also passed on by another dependency.
        ("DEP_SAME_WDK_ETW_DECLARATIONS", "/other/a.rs"),
        ("DEP_OTHER_INCLUDE", "/include"),
    ];
    let all = [&[links, ("DECLARATION", own)][..], &dependencies].concat();
    let said = exported(&all);
    let joined = env::join_paths([own, "/other/a.rs", "/other/b.rs"]).unwrap();
    let line = format!("cargo::metadata=WDK_ETW_DECLARATIONS={}\n", joined.to_str().unwrap());
    assert!(said.contains(&line), "{said}");
    assert!(said.contains(&format!("cargo::rerun-if-changed={own}\n")), "{said}");
    // A library without a provider.
    let said = exported(&[&[links][..], &dependencies].concat());
    assert!(said.contains("cargo::metadata=WDK_ETW_DECLARATIONS=/other/a.rs"), "{said}");
}

#[test]
fn a_library_without_links_and_a_wrong_declaration_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let own = write(&folder, "own.rs", &source("name = \"Own\""));
    let said = exported(&[("DECLARATION", own.to_str().unwrap())]);
    assert!(
        said.contains(
            "error: the package contoso-usb has no `links` key, so cargo does not pass its \
             declaration to the driver's build script; add `links = \"contoso-usb-etw\"`"
        ),
        "{said}"
    );
    let wrong = write(&folder, "wrong.rs", "mod trace {}");
    let said = exported(&[
        ("DECLARATION", wrong.to_str().unwrap()),
        ("CARGO_MANIFEST_LINKS", "contoso-usb-etw"),
    ]);
    assert!(said.contains("wrong.rs has no `#[wdk_etw::provider]` module"), "{said}");
}
