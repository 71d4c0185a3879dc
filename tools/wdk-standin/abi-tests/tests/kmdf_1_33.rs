//! Compiles the stand-in for drivers whose manifests specify KMDF versions other than 1.31.

use std::{env, fs, path::Path, process::Command};

/// Checks a package with this metadata and source, and returns cargo's messages. All packages are
/// checked in the same folder, one after the other, so that their dependencies are built only once.
fn check(minor: u8, more: &str, source: &str) -> (bool, String) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("newer-driver");
    let standin = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    fs::create_dir_all(folder.join("src")).expect("a folder");
    let manifest = format!(
        "[package]\nname = \"newer-driver\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n\
         [package.metadata.wdk.driver-model]\ndriver-type = \"KMDF\"\nkmdf-version-major = 1\n\
         target-kmdf-version-minor = {minor}\n{more}\n\
         [dependencies]\nwdk-sys = {{ path = '{}', features = [\"check-layouts\"] }}\n\n[workspace]\n\
         [profile.dev]\ndebug = false\n",
        standin.join("wdk-sys").display()
    );
    // If the manifest is unchanged, cargo does not compile wdk-sys again.
    let path = folder.join("Cargo.toml");
    if fs::read_to_string(&path).ok().as_deref() != Some(&manifest) {
        fs::write(path, manifest).expect("a manifest");
    }
    fs::write(folder.join("src/lib.rs"), source).expect("a source");
    // These versions of the dependencies have already been downloaded, so cargo can work offline.
    fs::copy(standin.join("Cargo.lock"), folder.join("Cargo.lock")).expect("a lock file");
    let output = Command::new(env::var_os("CARGO").expect("cargo runs the tests"))
        .args(["check", "--offline", "--quiet"])
        .current_dir(&folder)
        .env("CARGO_TARGET_DIR", folder.join("../.."))
        .env("WDK_STANDIN_MANIFEST", folder.join("Cargo.toml"))
        .output()
        .expect("cargo runs");
    let messages = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.success(), messages)
}

#[test]
fn a_manifest_selects_a_version_of_kmdf() {
    let (succeeded, messages) = check(
        33,
        "",
        "#![no_std]\n\
         use wdk_sys::{WDF_POWER_FRAMEWORK_SETTINGS, WdfMinimumVersionRequired};\n\
         use wdk_sys::_WDF_DEVICE_POWER_POLICY_STATE::WdfDevStatePwrPolNull;\n\
         const _: () = assert!(WdfMinimumVersionRequired == 33);\n\
         const _: () = assert!(size_of::<WDF_POWER_FRAMEWORK_SETTINGS>() == 88);\n\
         const _: () = assert!(WdfDevStatePwrPolNull == 1472);\n",
    );
    assert!(succeeded, "{messages}");

    // A manifest can specify an older version as the minimum.
    let (succeeded, messages) = check(
        33,
        "minimum-kmdf-version-minor = 31\n",
        "#![no_std]\n\
         use wdk_sys::WdfMinimumVersionRequired;\n\
         use wdk_sys::_WDF_DEVICE_POWER_POLICY_STATE::WdfDevStatePwrPolNull;\n\
         const _: () = assert!(WdfMinimumVersionRequired == 31);\n\
         const _: () = assert!(WdfDevStatePwrPolNull == 1472);\n",
    );
    assert!(succeeded, "{messages}");

    // The error names a version that the stand-in does not support.
    let (succeeded, messages) = check(14, "", "#![no_std]\n");
    assert!(!succeeded);
    assert!(
        messages.contains("newer-driver is configured for KMDF 1.14")
            && messages.contains("KMDF 1.9, 1.11"),
        "{messages}"
    );

    // For older versions: the number of functions, a function that the version lacks, and the size
    // of a structure that later grew.
    for (minor, count, lacked) in [
        (15, 444, "WdfDmaTransactionSetSingleTransferRequirement"),
        (25, 453, "WdfDeviceSetDeviceInterfaceStateEx"),
        (27, 453, "WdfPdoInitRemovePowerDependencyOnParent"),
    ] {
        let source = format!(
            "#![no_std]\n\
             use wdk_sys::{{_WDFFUNCENUM::*, WDF_DEVICE_STATE, WdfMinimumVersionRequired}};\n\
             const _: () = assert!(WdfMinimumVersionRequired == {minor});\n\
             const _: () = assert!(WdfFunctionTableNumEntries == {count});\n\
             const _: () = assert!(size_of::<WDF_DEVICE_STATE>() == 28);\n"
        );
        let (succeeded, messages) = check(minor, "", &source);
        assert!(succeeded, "{messages}");
        let source = format!("{source}const _: i32 = {lacked}TableIndex;\n");
        let (succeeded, messages) = check(minor, "", &source);
        assert!(!succeeded && messages.contains(lacked), "{messages}");
    }
}
