//! Creates new drivers. `guide.rs` builds, runs and tests a new driver.

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

use driver_package::inf::{self, Inf, Stamp};
use etw_test_support::root;

use crate::common;

fn new(folder: &Path, arguments: &[&str]) -> Output {
    common::command(folder, &["new"]).args(arguments).output().unwrap()
}

/// Runs a command that must fail, and returns its message.
fn refused(folder: &Path, arguments: &[&str]) -> String {
    let output = new(folder, arguments);
    assert!(!output.status.success());
    String::from_utf8(output.stderr).unwrap()
}

fn read(folder: &Path, name: &str) -> String {
    fs::read_to_string(folder.join(name)).unwrap()
}

#[test]
fn a_new_drivers_files_agree_with_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let checkout = root();
    let checkout = checkout.to_str().unwrap();
    let output =
        new(folder.path(), &["some/where", "--name", "contoso-sensor", "--path", checkout]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    assert!(said.contains("Contoso.Sensor"), "{said}");
    let made = folder.path().join("some/where");
    assert!(made.join(".git").is_dir());
    let source = read(&made, "driver/src/trace.rs");
    let provider = wdk_etw_schema::parse::source(&source).unwrap().remove(0);
    assert_eq!(provider.name, "Contoso.Sensor");
    let test = read(&made, "tests/driver.rs");
    assert!(test.contains(&format!("const PROVIDER: &str = \"{}\"", provider.guid)));
    // The INF file matches the driver.
    let inx = read(&made, "driver/contoso_sensor.inx");
    let stamped =
        Stamp { architecture: "amd64", framework: "1.31", date: "11/22/2026", version: "0.1.0.0" }
            .apply(&inx);
    let sddl = "D:P(A;;GA;;;SY)(A;;GA;;;BA)";
    assert!(read(&made, "driver/src/device.rs").contains(sddl));
    let driver = inf::Driver {
        image: "contoso_sensor.sys".to_owned(),
        hardware_id: Some(r"Root\ContosoSensor".to_owned()),
        framework: Some(inf::Framework { major: 1, minimum: 31, target: 31 }),
        providers: Some(vec![inf::Provider {
            guid: provider.guid.to_string(),
            name: provider.name,
            has_resources: true,
            channels: Vec::new(),
            described_by: "its declaration".to_owned(),
            autologger: None,
        }]),
        sddl: Some(sddl.to_owned()),
        ..inf::Driver::default()
    };
    let diagnostics = inf::check(&Inf::read(&stamped).unwrap(), &driver, inf::Mode::Windows);
    assert!(diagnostics.is_empty(), "{diagnostics:#?}");
    // cargo accepts the manifests.
    let output = Command::new("cargo")
        .current_dir(&made)
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // The sources are formatted.
    for name in ["driver/build.rs", "driver/src/lib.rs", "driver/src/trace.rs", "tests/driver.rs"] {
        let output = Command::new("rustfmt")
            .args(["--edition", "2024", "--check"])
            .arg(made.join(name))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{said}");
    }
}

#[test]
fn the_dependencies_are_those_of_the_command_line() {
    let folder = tempfile::tempdir().unwrap();
    let url = "https://example.com/etw.git";
    let output = new(folder.path(), &["one", "--git", url, "--tag", "v1"]);
    assert!(output.status.success());
    let manifest = read(folder.path(), "one/Cargo.toml");
    let dependency = format!("wdk-etw = {{ git = \"{url}\", tag = \"v1\" }}");
    assert!(manifest.contains(&dependency), "{manifest}");
    let install = format!("cargo install --locked --git {url} --tag v1 cargo-etw");
    assert!(read(folder.path(), "one/.github/workflows/driver.yml").contains(&install));
    assert!(read(folder.path(), "one/README.md").contains(&install));
    // Without an option, the source is the checkout in which this program was built.
    let output = new(folder.path(), &["two"]);
    let said = String::from_utf8(output.stderr).unwrap();
    if output.status.success() {
        let manifest = read(folder.path(), "two/Cargo.toml");
        let library = root().join("provider-lib");
        assert!(manifest.contains(library.to_str().unwrap()), "{manifest}");
    } else {
        // The target folder is outside the checkout.
        assert!(said.contains("`--path`"), "{said}");
    }
}

#[test]
fn wrong_folders_names_and_sources_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let url = "https://example.com/etw.git";
    fs::create_dir(folder.join("full")).unwrap();
    let said = refused(folder, &["full", "--git", url]);
    assert!(said.contains("full already exists"), "{said}");
    let said = refused(folder, &["..", "--git", url]);
    assert!(said.contains("does not name a new folder"), "{said}");
    let said = refused(folder, &["my driver", "--git", url]);
    assert!(said.contains("contains ' '") && said.contains("`--name`"), "{said}");
    let said = refused(folder, &["x", "--name", "nul", "--git", url]);
    assert!(said.contains("a device on Windows"), "{said}");
    let said = refused(folder, &["x", "--provider", "a b", "--git", url]);
    assert!(said.contains("provider's name"), "{said}");
    let said = refused(folder, &["x", "--rev", "abc"]);
    assert!(said.contains("--git"), "{said}");
    let said = refused(folder, &["x", "--git", url, "--rev", "abc", "--branch", "main"]);
    assert!(said.contains("cannot be used with"), "{said}");
    let said = refused(folder, &["x", "--path", "full"]);
    assert!(said.contains("full is not a checkout of wdk-etw"), "{said}");
    // A rejected command creates nothing.
    assert!(!folder.join("x").exists());
}
