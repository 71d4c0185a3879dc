//! Tests complete manifests of declarations.

use std::{env, fs, path::Path};

use etw_manifest::{Position, PropertyKind};
use wdk_etw_build::{declaration::Files, manifest_of};

use crate::helpers::{RENEW, fixture};

const FILES: Files<'_> = Files { resources: "driver.sys", messages: "messages.dll" };

/// Returns the manifest of a declaration as text.
fn written(path: &Path) -> String {
    let (manifest, read) = manifest_of(path, &FILES).unwrap();
    assert_eq!(read, [path]);
    etw_manifest::write(
        &manifest,
        "Written from the declaration; its messages are in another image.",
    )
}

/// Compares the manifest of a declaration with the file of the same name, or writes that file.
fn assert_written(name: &str) {
    let written = written(&fixture(&format!("{name}.rs")));
    let expected = fixture(&format!("{name}.man"));
    if env::var_os(RENEW).is_some() {
        fs::write(&expected, &written).unwrap();
    }
    let expected = fs::read_to_string(&expected).unwrap();
    for (at, (found, expected)) in written.lines().zip(expected.lines()).enumerate() {
        assert_eq!(
            found,
            expected,
            "{name}.man, line {}; `cargo xtask renew fixtures` writes it",
            at + 1
        );
    }
    assert_eq!(written.lines().count(), expected.lines().count());
}

#[test]
fn everything_that_can_be_declared_is_in_the_manifest() {
    assert_written("everything");
}

#[test]
fn forms_and_names_that_manifests_lack_are_expressed() {
    assert_written("forms");
}

// Violations of the manifest's rules are reported at the declaration's items.
#[test]
fn the_parts_of_a_manifest_have_the_places_of_their_items() {
    let path = fixture("forms.rs");
    let source = fs::read_to_string(&path).unwrap();
    // Returns the position of a name after `before`; both together occur once.
    let place = |before: &str, name: &str| {
        let whole = format!("{before}{name}");
        assert_eq!(source.matches(&whole).count(), 1, "{whole}");
        let at = source.find(&whole).unwrap() + before.len();
        let line = source[..at].lines().count();
        let column = at - source[..at].rfind('\n').unwrap();
        Position { line, column }
    };
    let (manifest, _) = manifest_of(&path, &FILES).unwrap();
    let provider = &manifest.providers[0];
    let text = |text: Option<usize>| manifest.texts[text.unwrap()].at;
    for (found, message, expected) in [
        (provider.at, provider.message, place("pub mod ", "forms")),
        (provider.keywords[0].at, provider.keywords[0].message, place("pub const ", "r#TYPE")),
        (
            provider.levels[0].at,
            provider.levels[0].message,
            place("or less\"]\n        ", "Chatty"),
        ),
        (provider.tasks[1].at, provider.tasks[1].message, place("Transfer = 1,\n        ", "Wide")),
        (
            provider.opcodes[0].at,
            provider.opcodes[0].message,
            place("enum Opcode {\n        ", "Split"),
        ),
        (
            provider.opcodes[2].at,
            provider.opcodes[2].message,
            place("Split = 11,\n        ", "Shared"),
        ),
        (
            provider.channels[1].at,
            provider.channels[1].message,
            place("(Operational)]\n        ", "r#Mine"),
        ),
        (
            provider.maps[0].items[1].at,
            provider.maps[0].items[1].message,
            place("On = 1,\n        ", "Off"),
        ),
        (provider.events[0].at, provider.events[0].message, place("pub fn ", "opcodes")),
    ] {
        assert_eq!(found, expected);
        assert_eq!(text(message), expected);
    }
    assert_eq!(provider.channels[0].at, place("(Import)]\n        ", "Log"));
    assert_eq!(provider.maps[0].at, place("pub enum ", "Narrow"));
    let forms = &provider.templates[2];
    assert_eq!(forms.at, place("pub fn ", "forms"));
    assert_eq!(forms.properties[2].at, place("#[counted] ", "raw"));
    // A length is reported at its value, and a member where the structure declares it.
    assert_eq!(forms.properties[0].at, place("#[length(u8)] ", "name"));
    assert_eq!(forms.properties[12].at, place("        ", "points"));
    let PropertyKind::Struct(members) = &forms.properties[12].kind else {
        panic!("{:?}", forms.properties[12]);
    };
    assert_eq!(members[1].at, place("x: u16,\n        ", "y"));
}
