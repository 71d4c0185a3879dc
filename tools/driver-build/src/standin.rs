//! The stand-ins for wdk-sys and wdk-build.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};

/// The stand-ins' files: their names in the folder of their workspace, and their contents.
const FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/standin.rs"));

/// The manifest of the stand-ins' workspace.
const MANIFEST: &str = "Cargo.toml";

/// The versions of the published crates that the stand-ins replace.
pub const VERSIONS: [(&str, &str); 2] = [("wdk-build", "0.6"), ("wdk-sys", "0.5")];

/// The stand-ins in a folder, and the lock file of the builds that use them.
#[derive(Clone, Debug)]
pub struct Standin {
    folder: PathBuf,
    arguments: Vec<String>,
}

impl Standin {
    /// Returns the stand-ins in a checkout's folder, which has a configuration file and a lock file
    /// for them.
    #[must_use]
    pub fn of_checkout(folder: &Path) -> Self {
        let config = folder.join("config.toml").display().to_string();
        Self {
            folder: folder.to_owned(),
            arguments: vec!["--config".to_owned(), config],
        }
    }

    /// Writes the stand-ins to a folder, and prepares a lock file in it: a copy of the author's, so
    /// that cargo resolves the stand-ins with the author's packages. The author's own lock file is
    /// not changed.
    ///
    /// # Errors
    ///
    /// Fails if the folder cannot be written.
    pub fn write(folder: &Path, authors_lock: &Path) -> Result<Self> {
        for (name, contents) in FILES {
            let path = folder.join(name);
            if *name == MANIFEST {
                write_if_new(
                    &path,
                    workspace(&String::from_utf8_lossy(contents)).as_bytes(),
                )?;
            } else {
                write_if_new(&path, contents)?;
            }
        }
        let lock = folder.join("lock");
        fs::create_dir_all(&lock).with_context(|| format!("cannot create {}", lock.display()))?;
        if let Ok(now) = fs::read(authors_lock) {
            // After a change of the author's lock file, the packages are resolved from it again.
            let known = lock.join("known");
            if fs::read(&known).ok().as_ref() != Some(&now) {
                write_if_new(&lock.join("Cargo.lock"), &now)?;
                write_if_new(&known, &now)?;
            }
        }
        let path = |key: &str, path: &Path| format!("{key}={}", toml_string(path));
        let mut arguments = Vec::new();
        for (name, _) in VERSIONS {
            arguments.push("--config".to_owned());
            let key = format!("patch.crates-io.{name}.path");
            arguments.push(path(&key, &folder.join(name)));
        }
        arguments.push("--config".to_owned());
        arguments.push(path("resolver.lockfile-path", &lock.join("Cargo.lock")));
        Ok(Self {
            folder: folder.to_owned(),
            arguments,
        })
    }

    /// Adds the arguments with which cargo uses the stand-ins in place of the published crates, and
    /// a separate lock file, because the packages resolve differently.
    pub fn replace<'a>(&self, cargo: &'a mut Command) -> &'a mut Command {
        cargo.args(&self.arguments).arg("-Zlockfile-path")
    }

    /// Makes wdk-macros read the framework's functions again after a change to the stand-in. It
    /// caches them beside its own build and does not notice changes to wdk-sys.
    ///
    /// # Errors
    ///
    /// Fails if the build's folder cannot be changed.
    pub fn forget_old_functions(&self, built_in: &Path) -> Result<()> {
        let now = fs::read(self.folder.join("wdk-sys/src/generated/framework.rs"))
            .context("cannot read the stand-in for wdk-sys")?;
        let known = built_in.join("functions-known.rs");
        if fs::read(&known).ok().as_ref() == Some(&now) {
            return Ok(());
        }
        for profile in ["debug", "release"] {
            let Ok(builds) = fs::read_dir(built_in.join(profile).join("build")) else {
                continue;
            };
            for build in builds.flatten() {
                let is_scratch = build.file_name().to_string_lossy().starts_with("scratch-");
                if is_scratch {
                    let path = build.path();
                    fs::remove_dir_all(&path)
                        .with_context(|| format!("cannot remove {}", path.display()))?;
                }
            }
        }
        write_if_new(&known, &now)
    }
}

/// Returns the manifest of the stand-ins' workspace with the members that are written.
fn workspace(manifest: &str) -> String {
    let mut members: Vec<&str> = FILES
        .iter()
        .filter_map(|(name, _)| name.strip_suffix("/Cargo.toml"))
        .collect();
    members.sort_unstable();
    let list = format!("members = {members:?}");
    let Some(start) = manifest.find("members = [") else {
        return manifest.to_owned();
    };
    let end = manifest[start..]
        .find(']')
        .map_or(manifest.len(), |at| start + at + 1);
    [&manifest[..start], &list, &manifest[end..]].concat()
}

/// Writes a file unless it has these contents, so that cargo does not build it again.
fn write_if_new(path: &Path, contents: &[u8]) -> Result<()> {
    if fs::read(path).is_ok_and(|found| found == contents) {
        return Ok(());
    }
    path.parent()
        .map_or(Ok(()), fs::create_dir_all)
        .and_then(|()| fs::write(path, contents))
        .with_context(|| format!("cannot write {}", path.display()))
}

/// Returns a path as a TOML string.
fn toml_string(path: &Path) -> String {
    let text = path.display().to_string();
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_workspace_has_the_members_that_are_written() {
        let manifest = "[workspace]\nmembers = [\n    \"abi-tests\",\n]\n[x]\ny = []\n";
        assert_eq!(
            workspace(manifest),
            "[workspace]\nmembers = [\"wdk-build\", \"wdk-sys\", \"wdk-sys-macros\"]\n[x]\ny = []\n"
        );
    }

    #[test]
    fn the_lock_file_is_the_authors_until_the_author_changes_it() {
        let folder = tempfile::tempdir().unwrap();
        let authors = folder.path().join("Cargo.lock");
        let standin = folder.path().join("standin");
        let ours = standin.join("lock/Cargo.lock");
        // A new driver has no lock file.
        Standin::write(&standin, &authors).unwrap();
        assert!(!ours.exists());
        fs::write(&authors, "one").unwrap();
        Standin::write(&standin, &authors).unwrap();
        assert_eq!(fs::read(&ours).unwrap(), b"one");
        // cargo adds what the stand-ins need.
        fs::write(&ours, "one and more").unwrap();
        Standin::write(&standin, &authors).unwrap();
        assert_eq!(fs::read(&ours).unwrap(), b"one and more");
        fs::write(&authors, "two").unwrap();
        Standin::write(&standin, &authors).unwrap();
        assert_eq!(fs::read(&ours).unwrap(), b"two");
        assert_eq!(fs::read(&authors).unwrap(), b"two");
    }
}
