//! Tests the declaration imported from a manifest with odd names and every form of field. Tests of
//! `wdk-etw` compile it and write its events.

use std::{env, fs};

use etw_manifest::{Presentation, PropertyKind};
use proc_macro2::TokenStream;
use wdk_etw_build::import;

use crate::helpers::{RENEW, declared, fixture, man, notes, read};

/// Returns the manifest's text with a replacement.
fn odd(from: &str, to: &str) -> String {
    let text = fs::read_to_string(fixture("odd.man")).unwrap();
    assert!(text.contains(from));
    text.replace(from, to)
}

#[test]
fn a_manifest_with_odd_names_is_imported_whole() {
    let read = read(&odd("", ""));
    let imported = import::declaration(&read, None);
    assert_eq!(imported.notes, []);
    let path = fixture("odd.rs");
    let wanted = format!(
        "//! Imported from odd.man; `cargo xtask renew fixtures` writes it.\n\n{}",
        imported.source
    );
    if env::var_os(RENEW).is_some() {
        fs::write(&path, &wanted).unwrap();
    }
    // rustfmt formats the file differently.
    let tokens = |text: &str| text.parse::<TokenStream>().unwrap().to_string();
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        tokens(&found) == tokens(&wanted),
        "{} is out of date: `cargo xtask renew fixtures` writes it",
        path.display()
    );
    let made = declared(&imported.source);
    let (ours, theirs) = (&made.providers[0], &read.providers[0]);
    assert_eq!(ours.events.len(), theirs.events.len());
    for (our, their) in ours.events.iter().zip(&theirs.events) {
        assert_eq!(Presentation::of(&made, ours, our), Presentation::of(&read, theirs, their));
        assert_eq!(ours.keyword_mask(our), theirs.keyword_mask(their));
    }
}

#[test]
fn an_array_of_structures_that_differ_in_memory_is_named_and_counted() {
    let text = odd(
        "<data name=\"X\" inType=\"win:Int32\"/>",
        "<data name=\"Text\" inType=\"win:UnicodeString\"/>",
    );
    let imported = import::declaration(&read(&text), None);
    assert_eq!(
        notes(&imported),
        ["event 7 version 0 was not imported: `Many` is an array of structures, and the bytes of \
             their member `text` in memory differ from those in the event"]
    );
    assert_eq!(
        imported.counts.to_string(),
        "imported 7 of 8 events: 7 as they are in the manifest, 0 with changes; 1 omitted"
    );
}

/// Viewers show the task's opcode, so the declaration uses it.
#[test]
fn an_opcode_with_the_number_of_one_of_the_events_task_is_that_one() {
    let general = |number| format!("<opcode name=\"Other\" value=\"{number}\"/>");
    let imported = import::declaration(&read(&odd(&general(12), &general(10))), None);
    assert_eq!(notes(&imported), ["event 5 version 1 changes: the opcode is `Begin`, not `Other`"]);
}

#[test]
fn an_event_with_an_empty_structure_is_left_out_alone() {
    let mut read = read(&odd("", ""));
    // Only damaged resources contain an empty structure.
    for template in &mut read.providers[0].templates {
        for property in &mut template.properties {
            if let PropertyKind::Struct(members) = &mut property.kind {
                members.clear();
            }
        }
    }
    let imported = import::declaration(&read, None);
    assert_eq!((imported.counts.all, imported.counts.left_out), (8, 2), "{:?}", imported.notes);
}

/// The settings of channels survive the round trip through the declaration's own manifest.
#[test]
fn the_settings_of_channels_are_imported() {
    let channels = |settings: &str, inside: &str| {
        let inside = format!(
            "<channels><importChannel name='System' chid='S'/>\
             <channel name='P/Op' chid='Op' type='Operational' value='16'{settings}>{inside}\
             </channel></channels>"
        );
        read(&man(&inside, ""))
    };
    let whole = channels(
        " enabled='true' isolation='System' access='O:BAG:SYD:(A;;0x7;;;BA)'",
        "<logging><autoBackup>true</autoBackup><retention>true</retention>\
         <maxSize>20971520</maxSize></logging>",
    );
    for manifest in [whole, channels("", ""), channels(" enabled='false'", "")] {
        let imported = import::declaration(&manifest, None);
        assert_eq!(imported.notes, [], "{}", imported.source);
        let made = declared(&imported.source);
        let written = read(&etw_manifest::write(&made, ""));
        for made in [&made, &written] {
            let pairs = made.providers[0].channels.iter().zip(&manifest.providers[0].channels);
            assert_eq!(pairs.len(), 2);
            for (our, their) in pairs {
                assert_eq!(our.imported, their.imported);
                if their.imported {
                    continue;
                }
                assert_eq!(our.enabled, their.enabled);
                assert_eq!(our.isolation, their.isolation);
                assert_eq!(our.access, their.access);
                assert_eq!(our.logging, their.logging);
            }
        }
    }
}

#[test]
fn settings_of_channels_that_a_declaration_cannot_have_are_noted() {
    for (settings, inside, note) in [
        (" access='everyone'", "", "the access of the channel P/Op is omitted: \"everyone\""),
        ("", "<logging><maxSize>4096</maxSize></logging>", "the maxSize of the channel P/Op"),
        ("", "<logging><autoBackup>true</autoBackup></logging>", "it needs retention = true"),
        ("", "<publishing><level>4</level></publishing>", "the session (`publishing`) of the"),
    ] {
        let inside = format!(
            "<channels><channel name='P/Op' type='Operational' value='16'{settings}>{inside}\
             </channel></channels>"
        );
        let imported = import::declaration(&read(&man(&inside, "")), None);
        let notes = notes(&imported);
        assert_eq!(notes.len(), 1, "{notes:?}");
        assert!(notes[0].contains(note), "{notes:?}");
        assert_eq!(declared(&imported.source).providers[0].channels.len(), 1);
    }
}
