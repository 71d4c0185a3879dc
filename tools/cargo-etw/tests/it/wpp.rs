//! Imports the messages of a driver that uses WPP.

use std::{env, fs, path::PathBuf};

use etw_test_support::root;

use crate::common::etw;

const RENEW: &str = "WDK_ETW_RENEW";

fn fixture(name: &str) -> PathBuf {
    root().join("tools/cargo-etw/tests/fixture").join(name)
}

/// `provider-lib/tests/it/from_wpp.rs` compiles the declaration.
#[test]
fn the_messages_of_a_tmf_file_become_a_declaration() {
    let folder = tempfile::tempdir().unwrap();
    let made = folder.path().join("made.rs");
    let arguments = ["--provider", "Contoso.FromWpp", "--out", made.to_str().unwrap()];
    let tmf = fixture("wpp.tmf");
    let output = etw(&root(), &[&["import-wpp", tmf.to_str().unwrap()][..], &arguments].concat());
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    let notes: Vec<&str> = said.lines().collect();
    assert_eq!(
        notes,
        [
            "note: usb.c: the message usb_c31 loses the argument `thing`: the type ItemFancy is \
             unknown",
            "note: the flags have the keyword bits 0, 1, 2, … in the order of their first use, because \
             TMF files do not have their bits; compare them with WPP_CONTROL_GUIDS in the driver's source",
            "note: 1 of 5 messages have no level of ETW; they got `Info`, or `Verbose` for a higher level",
            "imported 5 of 5 messages; 1 of them lost an argument, 0 differ otherwise; 0 parts of the \
             files were not read",
        ]
    );
    let made = format!(
        "//! Imported from wpp.tmf; `cargo xtask renew fixtures` writes it.\n\n{}",
        fs::read_to_string(&made).unwrap()
    );
    let committed = fixture("wpp.rs");
    if env::var_os(RENEW).is_some() {
        fs::write(&committed, &made).unwrap();
    }
    assert_eq!(
        fs::read_to_string(committed).unwrap(),
        made,
        "`cargo xtask renew fixtures` writes it"
    );
}

#[test]
fn messages_with_two_texts_are_noted() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, number: &str| {
        let path = folder.path().join(name);
        let text = fs::read_to_string(fixture("wpp.tmf")).unwrap();
        fs::write(&path, text.replace("Queue %10", number)).unwrap();
        path
    };
    let (new, old) = (file("new.tmf", "Queue %10"), file("old.tmf", "The queue %10"));
    let [new, old] = [new.to_str().unwrap(), old.to_str().unwrap()];
    let import = |files: &[&str]| {
        let output = etw(&root(), &[&["import-wpp", "--provider", "A"], files].concat());
        assert!(output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    let expected = "note: the files describe 1 messages in different ways, and the first way counts; name the \
                    files of one build only. The first of them: queue_c60 \
                    (0c3f5e7a-91d2-3b64-a105-5c2e77109d4f, 11) \"%0Queue %10";
    let said = import(&[new, old]);
    assert!(said.contains(expected), "{said}");
    let said = import(&[new, new]);
    assert!(!said.contains("different ways"), "{said}");
}

#[test]
fn a_tmf_file_without_messages_is_refused_and_its_defects_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("empty.tmf");
    fs::write(&path, "// PDB: x.pdb\nnothing\n").unwrap();
    let import = ["import-wpp", path.to_str().unwrap(), "--provider", "Contoso.Driver"];
    let output = etw(&root(), &import);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success());
    assert!(said.contains("empty.tmf: line 2: expected a GUID"), "{said}");
    assert!(said.contains("error: the files describe no WPP message"), "{said}");
}
