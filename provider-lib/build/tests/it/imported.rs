//! Tests the declaration imported from a manifest with odd names and every form of field. Tests of
//! `wdk-etw` compile it and write its events.

use std::{env, fmt::Write as _, fs};

use etw_manifest::{Presentation, PropertyKind, compare::disagreements};
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
        assert_eq!(
            Presentation::for_event(&made, ours, our),
            Presentation::for_event(&read, theirs, their)
        );
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

/// Returns the text of `imports.txt` with the declarations and notes of the cases.
fn with_declarations(text: &str) -> String {
    let mut parts = text.split("\n\n");
    let mut all = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let case = part.lines().filter(|line| !line.starts_with(['|', '!']));
        let case: Vec<&str> = case.collect();
        let xml = case.iter().copied().filter(|line| !line.starts_with('#'));
        let (strings, mut inside): (String, String) =
            xml.partition(|line| line.starts_with("<string "));
        if inside.starts_with("<data") || inside.starts_with("<struct") {
            inside = format!(
                "<templates><template tid='T'>{inside}</template></templates>\
                 <events><event value='1' template='T' level='win:Error'/></events>"
            );
        }
        let manifest = read(&man(&inside, &strings));
        let imported = import::declaration(&manifest, None);
        let disagreements = disagreements(&declared(&imported.source), &manifest);
        assert_eq!(disagreements, [], "{}", imported.source);
        write!(all, "\n\n{}", case.join("\n")).unwrap();
        for line in imported.source.lines() {
            write!(all, "\n{}", format!("| {line}").trim_end()).unwrap();
        }
        for note in notes(&imported) {
            write!(all, "\n! {note}").unwrap();
        }
    }
    all + "\n"
}

#[test]
fn parts_of_manifests_are_imported() {
    let path = fixture("../imports.txt");
    let text = fs::read_to_string(&path).unwrap();
    let found = with_declarations(&text);
    if env::var_os(RENEW).is_some() {
        fs::write(&path, &found).unwrap();
        return;
    }
    for (found, expected) in found.lines().zip(text.lines()) {
        assert_eq!(found, expected);
    }
    assert!(found == text, "imports.txt is out of date: `cargo xtask renew fixtures` writes it");
}
