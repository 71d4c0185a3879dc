//! Builds and runs a driver in a separate folder, outside every checkout.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Output,
};

use etw_test_support::root;

use crate::common;

/// The paths and contents of the files in an author's folder.
type Files = BTreeMap<PathBuf, Vec<u8>>;

/// Returns the files in a folder, except those in its target folder.
fn files(folder: &Path) -> Files {
    let mut found = Files::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            if !path.ends_with("target") {
                found.extend(files(&path));
            }
        } else {
            let contents = fs::read(&path).unwrap();
            found.insert(path, contents);
        }
    }
    found
}

fn etw(folder: &Path, arguments: &[&str]) -> Output {
    common::etw_in_target(folder, &[&["build"], arguments].concat())
}

/// Runs `cargo etw run`. Returns the exit code, standard output and standard error.
fn run(folder: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = common::etw_in_target(folder, &[&["run"], arguments].concat());
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// Inserts a statement after the first line of a driver's source that contains `after`, and returns
/// the statement's location.
fn insert(folder: &Path, after: &str, statement: &str) -> String {
    let path = folder.join("src/lib.rs");
    let source = fs::read_to_string(&path).unwrap();
    let mut lines: Vec<&str> = source.lines().collect();
    let at = lines.iter().position(|line| line.contains(after)).unwrap() + 1;
    lines.insert(at, statement);
    fs::write(&path, lines.join("\n")).unwrap();
    format!("src/lib.rs:{}", at + 1)
}

#[test]
fn a_folder_without_a_driver_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let output = etw(folder.path(), &[]);
    assert_eq!(output.status.code(), Some(1));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("have no Cargo.toml"), "{errors}");
    let library = root().join("formats/etw-wire/Cargo.toml");
    let output = etw(
        folder.path(),
        &["--manifest-path", library.to_str().unwrap(), "--package", "etw-wire"],
    );
    assert_eq!(output.status.code(), Some(1));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("no driver is named etw-wire"), "{errors}");
}

#[test]
fn what_cannot_be_run_is_a_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let library = root().join("Cargo.toml");
    let library = library.to_str().unwrap();
    let cases: [(&[&str], &str); 4] = [
        (&[], "have no Cargo.toml"),
        (&["--image", "nowhere.sys"], "nowhere.sys"),
        (&["--image", library], "error: "),
        (&["--image", library, "--only"], "no provider is enabled"),
    ];
    for (arguments, sentence) in cases {
        let (code, shown, errors) = run(folder, arguments);
        assert_eq!(code, Some(1), "{shown}{errors}");
        assert!(errors.contains(sentence), "{arguments:?}: {errors}");
    }
}

/// Tests that build drivers; `cargo xtask test` runs them in parallel with the other tests.
mod built_drivers {
    use super::*;

    #[test]
    #[ignore = "needs the cross toolchain; `cargo xtask test` runs it"]
    fn a_driver_of_its_own_is_built_and_run_and_its_files_stay_as_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        common::driver(folder);
        let before = files(folder);
        let output = etw(folder, &[]);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{errors}");
        let printed = String::from_utf8(output.stdout).unwrap();
        let built: Vec<&Path> = printed.lines().map(Path::new).collect();
        let [sys, pdb] = built.as_slice() else {
            panic!("{printed}");
        };
        let built_in = common::target().join("etw/x64/debug");
        assert_eq!(*sys, built_in.join("contoso_sensor.sys"), "{printed}");
        assert_eq!(*pdb, built_in.join("contoso_sensor.pdb"), "{printed}");
        let image = fs::read(sys).unwrap();
        // The image refers to its symbols without a folder.
        let has = |text: &str| image.windows(text.len()).any(|bytes| bytes == text.as_bytes());
        assert!(has("contoso_sensor.pdb"));
        assert!(!has(folder.to_str().unwrap()));
        assert_eq!(files(folder), before);

        // Providers are enabled even if the command line does not name them, and the trace is
        // written next to the image.
        let (code, shown, errors) = run(folder, &[]);
        assert_eq!(code, Some(0), "{shown}{errors}");
        for event in ["Loaded [Information, Start", "DeviceAdded", "Unloaded"] {
            assert!(shown.contains(event), "{event}: {shown}");
        }
        let etl = built_in.join("contoso_sensor.etl");
        assert!(etl.exists(), "{shown}");
        assert!(shown.contains("3 events in "), "{shown}");

        // In JSON output, every line is an object; cargo's own messages come first.
        fs::write(folder.join("steps.txt"), "add-device\nadvance 10\n").unwrap();
        let script = ["--script", "steps.txt", "--message-format", "json"];
        let (code, shown, errors) = run(folder, &script);
        assert_eq!(code, Some(0), "{shown}{errors}");
        let lines: Vec<serde_json::Value> =
            shown.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let of = |reason: &str| lines.iter().filter(|line| line["reason"] == reason).count();
        assert_eq!((of("driver-image"), of("event")), (1, 3), "{shown}");
        assert_eq!((of("step"), of("finding")), (4, 0), "{shown}");
        let summary = lines.last().unwrap();
        assert_eq!(summary["reason"], "run-summary");
        assert_eq!(summary["success"], true);

        let place = insert(
            folder,
            "// The driver works without tracing.",
            "    unsafe { wdk_sys::ntddk::ExAllocatePool2(wdk_sys::POOL_FLAG_NON_PAGED, 64, 1) };",
        );
        let (code, shown, errors) = run(folder, &[]);
        assert_eq!(code, Some(1), "{shown}{errors}");
        let error = errors.lines().find(|line| line.starts_with("error: "));
        let error = error.unwrap();
        assert!(
            error.contains("without freeing 64 bytes") && error.contains(&place),
            "{place}: {errors}"
        );
        assert!(shown.contains("found: 1 error, 0 warnings"), "{shown}");

        // Runs only the image, from another folder.
        let elsewhere = tempfile::tempdir().unwrap();
        let sys = built_in.join("contoso_sensor.sys");
        let (code, shown, errors) = run(elsewhere.path(), &["--image", sys.to_str().unwrap()]);
        assert_eq!(code, Some(1), "{shown}{errors}");
        assert!(errors.contains(&place), "{errors}");
        assert!(elsewhere.path().join("contoso_sensor.etl").exists());

        // The build reports unknown names in wdk-sys as names that the stand-in may lack.
        let library = folder.join("src/lib.rs");
        let source = fs::read_to_string(&library).unwrap();
        fs::write(&library, source + "\nuse wdk_sys::NoSuchName;\n").unwrap();
        let output = etw(folder, &["--message-format", "json"]);
        assert_eq!(output.status.code(), Some(1));
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(errors.contains("the stand-in for wdk-sys lacks"), "{errors}");
        assert!(errors.contains("NoSuchName"), "{errors}");
    }
}
