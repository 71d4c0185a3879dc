//! The manifest of a declaration, whole.

use std::{env, fs, path::Path};

use wdk_etw_build::{declaration::Files, manifest_of};

/// Set to renew the files.
const RENEW: &str = "WDK_ETW_RENEW";

/// Returns the manifest of a declaration as text.
fn written(path: &Path) -> String {
    let files = Files {
        resources: "driver.sys",
        messages: "messages.dll",
    };
    let (manifest, read) = manifest_of(path, &files).unwrap();
    assert_eq!(read, [path]);
    etw_manifest::write(
        &manifest,
        "Written from the declaration; its messages are in another image.",
    )
}

/// Compares the manifest of a declaration with the file of the same name, or writes that file.
fn assert_written(name: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixture");
    let written = written(&folder.join(format!("{name}.rs")));
    let expected = folder.join(format!("{name}.man"));
    if env::var_os(RENEW).is_some() {
        fs::write(&expected, &written).unwrap();
    }
    let expected = fs::read_to_string(&expected).unwrap();
    for (at, (found, expected)) in written.lines().zip(expected.lines()).enumerate() {
        assert_eq!(
            found,
            expected,
            "{name}.man, line {}; {RENEW}=1 writes the file",
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
