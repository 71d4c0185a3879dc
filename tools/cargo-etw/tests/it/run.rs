//! Builds and runs a driver in a separate folder, outside every checkout.

use std::{fs, path::Path};

use etw_test_support::root;

use crate::common;

/// Runs `cargo etw run`. Returns the exit code, standard output and standard error.
fn run(folder: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = common::command(folder, &["run"]).args(arguments).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// Inserts a statement after the first line of a driver's source that contains a text, and returns
/// its location.
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

/// Tests that build drivers, which `cargo xtask test` runs beside the others.
mod built_drivers {
    use super::*;

    #[test]
    #[ignore = "needs the cross toolchain; `cargo xtask test` runs it"]
    fn a_driver_of_its_own_is_run_and_its_findings_are_told() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        common::driver(folder);

        // Providers are enabled even if they are not named, and the trace is written beside the
        // image.
        let (code, shown, errors) = run(folder, &[]);
        assert_eq!(code, Some(0), "{shown}{errors}");
        for event in ["Loaded [Information, Start", "DeviceAdded", "Unloaded"] {
            assert!(shown.contains(event), "{event}: {shown}");
        }
        let etl = folder.join("target/etw/x64/debug/contoso_sensor.etl");
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
        let sys = folder.join("target/etw/x64/debug/contoso_sensor.sys");
        let (code, shown, errors) = run(elsewhere.path(), &["--image", sys.to_str().unwrap()]);
        assert_eq!(code, Some(1), "{shown}{errors}");
        assert!(errors.contains(&place), "{errors}");
        assert!(elsewhere.path().join("contoso_sensor.etl").exists());
    }
}
