//! Builds a driver in a separate folder, outside every checkout.

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

/// Returns the files of a folder outside its target folder.
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
    common::command(folder, &["build"]).args(arguments).output().unwrap()
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

/// Tests that build drivers, which `cargo xtask test` runs in parallel with the others.
mod built_drivers {
    use super::*;

    #[test]
    #[ignore = "needs the cross toolchain; `cargo xtask test` runs it"]
    fn a_driver_of_its_own_is_built_and_its_files_stay_as_they_are() {
        let folder = tempfile::tempdir().unwrap();
        common::driver(folder.path());
        let before = files(folder.path());
        let output = etw(folder.path(), &[]);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{errors}");
        let printed = String::from_utf8(output.stdout).unwrap();
        let built: Vec<&Path> = printed.lines().map(Path::new).collect();
        let [sys, pdb] = built.as_slice() else {
            panic!("{printed}");
        };
        assert!(sys.ends_with("target/etw/x64/debug/contoso_sensor.sys"), "{printed}");
        assert!(pdb.ends_with("target/etw/x64/debug/contoso_sensor.pdb"), "{printed}");
        let image = fs::read(sys).unwrap();
        // The image names its symbols without a folder.
        let has = |text: &str| image.windows(text.len()).any(|bytes| bytes == text.as_bytes());
        assert!(has("contoso_sensor.pdb"));
        assert!(!has(folder.path().to_str().unwrap()));
        assert_eq!(files(folder.path()), before);

        // The build reports any unknown name of wdk-sys as one that the stand-in may lack.
        let library = folder.path().join("src/lib.rs");
        let source = fs::read_to_string(&library).unwrap();
        fs::write(&library, source + "\nuse wdk_sys::NoSuchName;\n").unwrap();
        let output = etw(folder.path(), &["--message-format", "json"]);
        assert_eq!(output.status.code(), Some(1));
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(errors.contains("the stand-in for wdk-sys lacks"), "{errors}");
        assert!(errors.contains("NoSuchName"), "{errors}");
    }
}
