//! Runs the commands on the sample driver, and checks that the committed files are up to date.

use std::{fs, path::Path};

use etw_test_support::root;

use crate::common::etw;

const PACKAGE: &str = "etw-sample-driver";
const DECLARATION: &str = "driver/src/trace.rs";
const MANIFEST: &str = "inf/etw_sample_driver.man";

/// Runs a command that must succeed.
fn succeed(arguments: &[&str]) -> String {
    let output = etw(&root(), arguments);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    said.into_owned()
}

/// Runs a command that must fail, and returns its message.
fn fail(arguments: &[&str]) -> String {
    let output = etw(&root(), arguments);
    assert!(!output.status.success());
    String::from_utf8(output.stderr).unwrap()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn the_committed_manifest_is_the_declarations() {
    succeed(&[
        "manifest", "write", "--check", "--package", PACKAGE, "--command",
        "cargo xtask manifest write",
    ]);
}

#[test]
fn the_committed_recipes_are_the_declarations() {
    let mut arguments = vec!["recipes", "--check", "--package", PACKAGE];
    arguments.extend(["--session", "sample"]);
    arguments.extend(["--title", "Trace the sample driver"]);
    arguments.extend(["--guide", "[the VM guide](vm-guide.md)"]);
    arguments.extend(["--client", "etw-sample-client"]);
    arguments.extend(["--reader", "cargo run -q -p etl --"]);
    arguments.extend(["--command", "cargo xtask recipes"]);
    succeed(&arguments);
}

/// The guide's driver has the same INF file that `inf new` writes.
#[test]
fn the_minimal_drivers_inf_file_is_the_drivers() {
    let committed = root().join("driver/examples/minimal/etw_minimal_driver.inx");
    let image = etw_test_support::drivers("release").join("etw_minimal_driver.sys");
    let package = ["--package", "etw-minimal-driver"];
    let mut check = vec!["inf", "check", text(&committed)];
    check.extend(["--image", text(&image)]);
    succeed(&[&check[..], &package].concat());
    let folder = tempfile::tempdir().unwrap();
    let made = folder.path().join("made.inx");
    let mut new = vec!["inf", "new", "--company", "wdk-etw"];
    new.extend(["--out", text(&made)]);
    succeed(&[&new[..], &package].concat());
    assert!(
        fs::read(&made).unwrap() == fs::read(&committed).unwrap(),
        "{} is not what `cargo etw inf new` writes",
        committed.display()
    );
}

#[test]
fn a_stale_file_is_named_with_the_command_that_renews_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stale.man");
    fs::write(&path, "<instrumentationManifest/>").unwrap();
    let said = fail(&[
        "manifest",
        "write",
        DECLARATION,
        "--check",
        "--out",
        text(&path),
        "--image",
        "x.sys",
    ]);
    assert!(said.contains("stale.man is stale"), "{said}");
    assert!(said.contains("`cargo etw manifest write`"), "{said}");
}

#[test]
fn the_sample_still_decodes_what_it_wrote() {
    succeed(&["manifest", "check", "--base", MANIFEST, DECLARATION]);
}

#[test]
fn a_break_is_refused_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("older.man");
    let sample = fs::read_to_string(root().join(MANIFEST)).unwrap();
    let older = sample.replace(
        "name=\"Status\" inType=\"win:UInt32\" outType=\"win:NTSTATUS\"",
        "name=\"Status\" inType=\"win:UInt64\"",
    );
    fs::write(&path, older).unwrap();
    let arguments = ["manifest", "check", "--base", text(&path), DECLARATION];
    let said = fail(&arguments);
    assert!(said.contains("trace.rs:") && said.contains("event 3 version 0"), "{said}");
    // UTF-16 gives the same result.
    let units = std::iter::once(0xFEFF).chain(sample.encode_utf16());
    let bytes: Vec<u8> = units.flat_map(u16::to_le_bytes).collect();
    fs::write(&path, bytes).unwrap();
    succeed(&arguments);
    fs::write(&path, [0xFF, 0x80, 0]).unwrap();
    let said = fail(&arguments);
    assert!(said.contains("neither UTF-8 nor UTF-16"), "{said}");
}

#[test]
fn resources_are_compiled_and_imported() {
    let folder = tempfile::tempdir().unwrap();
    let out = text(folder.path());
    succeed(&["manifest", "compile", MANIFEST, "--format", "3", "--out", out]);
    for name in ["wevt.bin", "msg.bin", "res"] {
        let path = folder.path().join(format!("etw_sample_driver.{name}"));
        let length = fs::metadata(&path).unwrap().len();
        assert!(length > 100, "{}", path.display());
    }
    let source = folder.path().join("trace.rs");
    let said = succeed(&["manifest", "import", MANIFEST, "--out", text(&source)]);
    let counts = said.lines().last().unwrap_or_default();
    assert!(counts.starts_with("imported ") && counts.ends_with("; 0 omitted"), "{said}");
    // The imported declaration agrees with its manifest.
    succeed(&["manifest", "check", "--base", MANIFEST, text(&source)]);
    let broken = folder.path().join("broken.man");
    fs::write(&broken, "<instrumentationManifest>").unwrap();
    let said = fail(&["manifest", "check", "--base", MANIFEST, text(&broken)]);
    assert!(said.contains("broken.man: line 1, "), "{said}");
}

#[test]
fn the_declaration_and_the_interface_name_one_provider() {
    let source = fs::read_to_string(root().join(DECLARATION)).unwrap();
    let provider = wdk_etw_schema::parse::source(&source).unwrap().remove(0);
    assert_eq!(provider.name, etw_sample_interface::PROVIDER_NAME);
}

#[test]
fn the_samples_own_files_are_found() {
    succeed(&["inf", "check", "--package", PACKAGE]);
    succeed(&["manifest", "check", "--package", PACKAGE]);
}
