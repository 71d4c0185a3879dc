//! Builds the sample driver a second time, in another folder, and compares the results: the image and
//! its PDB must be identical, and must not contain paths from this machine.
//!
//! `cargo xtask reproducible` and `cargo xtask test --deep` build as another user, with another package
//! folder. cargo then cannot reuse any artifact of the first build.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};

use driver_build::{
    files,
    toolchain::{Machine, Toolchain, cargo_home},
};

use crate::{
    build::{self, Profile},
    process::{root, run_quietly, symlink, target},
    progress::step,
    sample, tree,
};

/// Copies the repository's files.
fn copy(from: &Path, to: &Path) -> Result<()> {
    for file in tree::files(from)? {
        let to = to.join(&file);
        to.parent()
            .map_or(Ok(()), fs::create_dir_all)
            .and_then(|()| fs::copy(from.join(&file), &to))
            .with_context(|| format!("cannot copy {file} to {}", to.display()))?;
    }
    Ok(())
}

/// Creates a second path to cargo's package folder, like another user's path.
fn other_home(folder: &Path) -> Result<PathBuf> {
    let home = folder.join("home of another user");
    let write = || format!("cannot write {}", home.display());
    fs::create_dir_all(&home).with_context(write)?;
    for shared in ["registry", "config.toml", "git"] {
        let from = cargo_home().join(shared);
        if from.exists() {
            symlink(&from, &home.join(shared)).with_context(write)?;
        }
    }
    Ok(home)
}

/// Copies the first build's artifacts of registry packages for this machine: macros, build scripts
/// and their dependencies, which are not part of the image. cargo rebuilds missing artifacts, so a
/// failure only costs time.
fn reuse_programs(built_in: &Path) {
    let profile = Profile::Release.folder();
    if fs::create_dir_all(built_in).is_ok() {
        let mut copy = Command::new("cp");
        copy.arg("--archive").arg(build::built_in().join(profile)).arg(built_in);
        let _ = run_quietly(&mut copy);
    }
}

/// Returns the folders on this machine whose paths build outputs must not contain.
fn folders(toolchain: &Toolchain) -> Vec<String> {
    let mut folders = vec![root(), target(), cargo_home(), env::temp_dir()];
    folders.extend(env::home_dir());
    folders.extend(toolchain.rust().sysroot());
    folders
        .into_iter()
        // A folder such as `/` would be found in any path.
        .filter(|folder| folder.components().count() > 1)
        .map(|folder| folder.display().to_string())
        .collect()
}

/// Returns whether a byte can be part of a folder's name and so continue a path.
const fn is_of_a_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-' | b':' | b'~')
}

/// Returns whether bytes contain a path that is not just part of a longer path or name.
fn has_path(bytes: &[u8], path: &[u8], is_wide: bool) -> bool {
    let step = if is_wide { 2 } else { 1 };
    bytes.windows(path.len()).enumerate().filter(|(_, window)| *window == path).any(|(at, _)| {
        let before = at.checked_sub(step).map(|before| bytes[before]);
        let after = bytes.get(at + path.len()).copied();
        !before.is_some_and(is_of_a_name) && !after.is_some_and(is_of_a_name)
    })
}

/// Fails if a file contains the path of any of the folders, in UTF-8 or UTF-16.
fn ensure_names_none(path: &Path, bytes: &[u8], folders: &[String]) -> Result<()> {
    for folder in folders {
        let wide: Vec<u8> = folder.encode_utf16().flat_map(u16::to_le_bytes).collect();
        ensure!(
            !has_path(bytes, folder.as_bytes(), false) && !has_path(bytes, &wide, true),
            "{} contains the path {folder}, so a build in another folder would make another image",
            path.display()
        );
    }
    Ok(())
}

/// Fails if a built image or PDB contains a path from this machine.
fn ensure_all_name_none(toolchain: &Toolchain) -> Result<()> {
    let folders = folders(toolchain);
    let drivers = target().join("drivers");
    for file in tree::files(&drivers)? {
        let is_built = [".sys", ".pdb"].iter().any(|end| file.ends_with(end));
        if is_built {
            let path = drivers.join(&file);
            let bytes = files::read(&path)?;
            ensure_names_none(&path, &bytes, &folders)?;
        }
    }
    Ok(())
}

/// Runs `cargo xtask reproducible`.
pub fn run() -> Result<()> {
    let toolchain =
        step("Finding the cross toolchain", || Toolchain::find_or_install(Machine::X64))?;
    step("Building the sample driver", || {
        build::build(&toolchain, sample::DRIVER, Profile::Release)
    })?;
    step("Building the sample driver again, as another user in another folder", || {
        check(&toolchain, User::Other)
    })
}

/// The user whose package folder the second build uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum User {
    Same,
    Other,
}

/// Builds the sample driver in a copy of the source, compares it with the driver in
/// `target/drivers`, and checks that no driver in that folder contains a path from this machine.
pub fn check(toolchain: &Toolchain, user: User) -> Result<()> {
    ensure_all_name_none(toolchain)?;
    let folder = target().join("reproducible");
    files::remove_dir_all(&folder)?;
    let source = folder.join("a folder of another name");
    copy(&root(), &source)?;
    let built_in = folder.join("built");
    let mut toolchain = toolchain.clone();
    match user {
        User::Same => reuse_programs(&built_in),
        User::Other => toolchain = toolchain.with_cargo_home(other_home(&folder)?),
    }
    let second =
        build::compile(&source, &built_in, &toolchain, &[sample::DRIVER.0], Profile::Release)?;
    let first = build::drivers(Profile::Release);
    let (_, image) = sample::DRIVER;
    for (one, other) in [("sys", "dll"), ("pdb", "pdb")] {
        let one = first.join(format!("{image}.{one}"));
        let other = second.join(format!("{image}.{other}"));
        let read = |path: &Path| files::read(path);
        ensure!(
            read(&one)? == read(&other)?,
            "{} and {} differ, but were built from the same source",
            one.display(),
            other.display()
        );
    }
    files::remove_dir_all(&folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_found_in_both_encodings() {
        let texts = ["/home/somebody".to_owned()];
        let check = |bytes: &[u8]| ensure_names_none(Path::new("x.sys"), bytes, &texts);
        assert!(check(b"nothing of /home/others").is_ok());
        let error = check(b"\0/home/somebody/x\0").unwrap_err().to_string();
        assert!(error.contains("x.sys contains the path /home/somebody"), "{error}");
        let wide: Vec<u8> = "at /home/somebody".encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert!(check(&wide).is_err());
    }

    #[test]
    fn a_folder_is_not_found_within_another_path() {
        let check = |folder: &str, bytes: &[u8]| {
            ensure_names_none(Path::new("x.pdb"), bytes, &[folder.to_owned()])
        };
        for clean in [&b"driver/src/entry.rs"[..], b"C:/src/in/3", b"/srcs/x"] {
            assert!(check("/src", clean).is_ok());
        }
        assert!(check("/target", b"./target/driver-build/x").is_ok());
        assert!(check("/src", b"\0/src/x.rs").is_err());
        assert!(check("/src", b"=/src\0").is_err());
    }
}
