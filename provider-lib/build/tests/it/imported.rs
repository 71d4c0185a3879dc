//! The declaration that is imported from a manifest with odd names and every form of field. Tests of
//! `wdk-etw` compile it and write its events.

use std::{env, fs, path::Path};

use etw_manifest::{self as manifest, Presentation, PropertyKind};
use proc_macro2::TokenStream;
use wdk_etw_build::{
    declaration::{self, Files},
    import,
};

/// The environment variable that makes the test write the file instead of comparing it.
const RENEW: &str = "WDK_ETW_RENEW";

#[test]
fn a_manifest_with_odd_names_is_imported_whole() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixture");
    let text = fs::read_to_string(folder.join("odd.man")).unwrap();
    let read = match manifest::read(&text) {
        Ok(read) => read,
        Err(failures) => panic!("{failures}"),
    };
    let imported = import::declaration(&read, None);
    assert_eq!(imported.notes, []);
    let path = folder.join("odd.rs");
    let wanted = format!(
        "//! Imported from odd.man; `{RENEW}=1 cargo test -p wdk-etw-build imported` renews \
         it.\n\n{}",
        imported.source
    );
    if env::var_os(RENEW).is_some() {
        fs::write(&path, &wanted).unwrap();
    }
    // rustfmt formats the file in another way.
    let tokens = |text: &str| text.parse::<TokenStream>().unwrap().to_string();
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        tokens(&found) == tokens(&wanted),
        "{} is out of date: run `{RENEW}=1 cargo test -p wdk-etw-build imported`",
        path.display()
    );
    let files = Files { resources: "odd.sys", messages: "odd.sys" };
    let declared = wdk_etw_schema::parse::source(&imported.source).unwrap();
    let made = declaration::manifest(&declared, &files);
    let (ours, theirs) = (&made.providers[0], &read.providers[0]);
    assert_eq!(ours.events.len(), theirs.events.len());
    for (our, their) in ours.events.iter().zip(&theirs.events) {
        assert_eq!(Presentation::of(&made, ours, our), Presentation::of(&read, theirs, their));
        assert_eq!(ours.keyword_mask(our), theirs.keyword_mask(their));
    }
}

#[test]
fn an_array_of_structures_that_differ_in_memory_is_named_and_counted() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixture");
    let text = fs::read_to_string(folder.join("odd.man")).unwrap();
    let member = "<data name=\"X\" inType=\"win:Int32\"/>";
    assert!(text.contains(member));
    let text = text.replace(member, "<data name=\"Text\" inType=\"win:UnicodeString\"/>");
    let imported = import::declaration(&manifest::read(&text).unwrap(), None);
    let notes: Vec<&str> = imported.notes.iter().map(|note| &*note.what).collect();
    assert_eq!(
        notes,
        ["event 7 version 0 was not imported: `Many` is an array of structures, and the bytes of \
             their member `text` in memory differ from those in the event"]
    );
    assert_eq!(
        imported.counts.to_string(),
        "imported 7 of 8 events: 7 as they are in the manifest, 0 with changes; 1 left out"
    );
}

/// Viewers show the opcode of the task, so the declaration has that one.
#[test]
fn an_opcode_with_the_number_of_one_of_the_events_task_is_that_one() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixture");
    let text = fs::read_to_string(folder.join("odd.man")).unwrap();
    let general = "<opcode name=\"Other\" value=\"12\"/>";
    assert!(text.contains(general));
    let text = text.replace(general, "<opcode name=\"Other\" value=\"10\"/>");
    let imported = import::declaration(&manifest::read(&text).unwrap(), None);
    let notes: Vec<&str> = imported.notes.iter().map(|note| &*note.what).collect();
    assert_eq!(notes, ["event 5 version 1 changes: the opcode is `Begin`, not `Other`"]);
}

#[test]
fn an_event_with_an_empty_structure_is_left_out_alone() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixture");
    let text = fs::read_to_string(folder.join("odd.man")).unwrap();
    let mut read = manifest::read(&text).unwrap();
    // Only damaged resources have one.
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
