//! The stand-ins for wdk-sys and wdk-build.

use std::{
    collections::BTreeSet,
    fmt::Write as _,
    fs,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    io,
    path::{Path, PathBuf},
    process::Command,
    sync::LazyLock,
};

use anyhow::{Context, Result};

use crate::files;
use serde_json::{Map, Value};

/// The stand-ins' files: their names in the stand-ins' workspace, and their contents.
const FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/standin.rs"));

/// The manifest line that limits a build to a single wdk-sys.
const LINKS: &str = "links = \"wdk\"\n";

/// The manifest of the stand-ins' workspace.
const MANIFEST: &str = "Cargo.toml";

/// The published crates that the stand-ins replace.
///
/// Drivers and build scripts use the same items in every version, so the stand-ins for older
/// versions share the newest version's sources. Drivers from Microsoft's template use wdk-build 0.5
/// in addition to the 0.6 that wdk-sys uses.
pub const REPLACED: [Replaced; 7] = [
    Replaced::newest("wdk-build", "0.6"),
    Replaced::older("wdk-build", "0.5", "0.5.1", "wdk-build-0.5"),
    Replaced::older("wdk-build", "0.4", "0.4.0", "wdk-build-0.4"),
    Replaced::older("wdk-build", "0.3", "0.3.0", "wdk-build-0.3"),
    Replaced::newest("wdk-sys", "0.5"),
    Replaced::older("wdk-sys", "0.4", "0.4.0", "wdk-sys-0.4"),
    Replaced::older("wdk-sys", "0.3", "0.3.0", "wdk-sys-0.3"),
];

/// The file that lists additional stand-ins that a driver needs.
const ADDED: &str = "added";

/// A published crate that a stand-in replaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replaced {
    /// The crate's name.
    pub name: &'static str,
    /// The crate's version, without the patch level.
    pub version: &'static str,
    folder: &'static str,
    /// The newest patch release of an older version, which is the stand-in's version.
    older: Option<&'static str>,
}

impl Replaced {
    const fn newest(name: &'static str, version: &'static str) -> Self {
        Self { name, version, folder: name, older: None }
    }

    const fn older(
        name: &'static str,
        version: &'static str,
        patch: &'static str,
        folder: &'static str,
    ) -> Self {
        Self { name, version, folder, older: Some(patch) }
    }

    /// Returns the manifest of the stand-in for an older version, derived from `newest`, the
    /// manifest of the newest version, whose sources it shares. Returns `None` for the newest
    /// version.
    fn manifest(self, newest: &str) -> Option<String> {
        let patch = self.older?;
        let name = self.name;
        let library = format!("[lib]\npath = \"../{name}/src/lib.rs\"\n");
        let mut manifest = String::new();
        for line in newest.lines() {
            if line == "[lib]" {
                manifest.push_str(&library);
            } else if line.starts_with("version = ") {
                let _ = writeln!(manifest, "version = \"{patch}\"");
                let script = format!("{name}/build.rs");
                if FILES.iter().any(|(path, _)| *path == script) {
                    let _ = writeln!(manifest, "build = \"../{script}\"");
                }
            } else {
                manifest.push_str(line);
                manifest.push('\n');
            }
        }
        if !manifest.contains(&library) {
            manifest.push('\n');
            manifest.push_str(&library);
        }
        Some(manifest)
    }

    /// Returns the stand-in for a version of a crate.
    #[must_use]
    pub fn find(name: &str, version: &str) -> Option<Self> {
        REPLACED.into_iter().find(|one| {
            let rest = version.strip_prefix(one.version);
            one.name == name && rest.is_some_and(|rest| rest.starts_with('.'))
        })
    }
}

/// The name of the published crates' source in cargo's configuration.
pub const CRATES_IO: &str = "crates-io";

/// The minor versions of KMDF 1 that the stand-ins support.
pub const KMDF_VERSIONS: [u32; 14] = [9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31, 33, 35];

/// Returns a sentence about a KMDF version whose build differs from one with the WDK.
#[must_use]
pub const fn kmdf_note(minor: u32) -> Option<&'static str> {
    match minor {
        ..15 => Some(
            "with the WDK, wdk-sys 0.5 compiles for KMDF 1.15 and newer only, because the function table \
             of older versions is an array, which its macro does not accept",
        ),
        35 => Some(
            "the function table of KMDF 1.35 is not public; this build uses that of 1.33, which 1.35 extends",
        ),
        _ => None,
    }
}

/// Returns the KMDF versions that the stand-ins support, for messages.
#[must_use]
pub fn kmdf_versions() -> String {
    KMDF_VERSIONS.map(|minor| format!("1.{minor}")).join(", ")
}

/// The stand-ins in a folder, and the lock file of the builds that use them.
#[derive(Clone, Debug)]
pub struct Standin {
    folder: PathBuf,
    arguments: Vec<String>,
    /// The stand-ins that cargo uses, each with the source of the crate that it replaces.
    patches: Vec<(String, Replaced)>,
    /// The folder of the lock file.
    lock: PathBuf,
}

impl Standin {
    /// Returns the stand-ins in a checkout's folder, which contains their configuration and lock
    /// file.
    #[must_use]
    pub fn of_checkout(folder: &Path) -> Self {
        let config = folder.join("config.toml").display().to_string();
        Self {
            folder: folder.to_owned(),
            arguments: vec!["--config".to_owned(), config],
            patches: Vec::new(),
            lock: folder.join("patched-drivers"),
        }
    }

    /// Writes the stand-ins to a folder, and derives a lock file there from the author's, so that
    /// cargo resolves the stand-ins with the author's package versions. Does not change the
    /// author's lock file. `has_own` is true if the author's workspace has a wdk-sys member; cargo
    /// resolves all members, even those that no driver uses.
    ///
    /// # Errors
    ///
    /// Fails if the folder cannot be written.
    pub fn write(folder: &Path, authors_lock: &Path, has_own: bool) -> Result<Self> {
        let write_manifest = |path: &Path, manifest: String| {
            let manifest = if has_own { beside_own(&manifest) } else { manifest };
            write_if_new(path, manifest.as_bytes())
        };
        for (name, contents) in FILES {
            let path = folder.join(name);
            if *name == MANIFEST {
                write_if_new(&path, workspace(&String::from_utf8_lossy(contents)).as_bytes())?;
            } else if name.ends_with(MANIFEST) {
                write_manifest(&path, String::from_utf8_lossy(contents).into_owned())?;
            } else {
                write_if_new(&path, contents)?;
            }
            let Some(of) = name.strip_suffix("/Cargo.toml") else {
                continue;
            };
            for one in REPLACED.iter().filter(|one| one.name == of) {
                if let Some(manifest) = one.manifest(&String::from_utf8_lossy(contents)) {
                    let path = folder.join(one.folder).join(MANIFEST);
                    write_manifest(&path, manifest)?;
                }
            }
        }
        let lock = lock_folder(folder, authors_lock);
        files::create_dir_all(&lock)?;
        if let Ok(now) = fs::read(authors_lock) {
            // The derived lock file is replaced when the author's lock file changes.
            let known = lock.join("known");
            if fs::read(&known).ok().as_ref() != Some(&now) {
                write_if_new(&lock.join("Cargo.lock"), &unlocked(&now))?;
                write_if_new(&known, &now)?;
                remove(&lock.join(ADDED))?;
            }
        }
        let path = toml_string(&lock.join("Cargo.lock").display().to_string());
        let mut standin = Self {
            folder: folder.to_owned(),
            arguments: vec!["--config".to_owned(), format!("resolver.lockfile-path={path}")],
            patches: Vec::new(),
            lock,
        };
        for one in REPLACED {
            if one.older.is_none() {
                standin.patch(CRATES_IO, one);
            }
        }
        for line in standin.added().lines() {
            let found = line.split_once(' ').and_then(|(name, source)| {
                let one = REPLACED.into_iter().find(|one| one.folder == name)?;
                Some((source, one))
            });
            if let Some((source, one)) = found {
                standin.patch(source, one);
            }
        }
        Ok(standin)
    }

    /// Returns the added stand-ins, one per line with their sources.
    fn added(&self) -> String {
        let added = fs::read_to_string(self.lock.join(ADDED));
        added.unwrap_or_default()
    }

    /// Makes cargo use a stand-in instead of a crate from a source: [`CRATES_IO`] or the URL of a
    /// git repository. Later builds do so, too, until the author changes the lock file.
    ///
    /// # Errors
    ///
    /// Fails if the folder of the stand-ins cannot be written.
    pub fn add(&mut self, source: &str, one: Replaced) -> Result<()> {
        let added = self.added() + one.folder + " " + source + "\n";
        write_if_new(&self.lock.join(ADDED), added.as_bytes())?;
        // The lock file contains the crate to be replaced.
        let path = self.lock.join("Cargo.lock");
        let now = files::read(&path)?;
        write_if_new(&path, &unlocked(&now))?;
        self.patch(source, one);
        Ok(())
    }

    fn patch(&mut self, source: &str, one: Replaced) {
        let patch = (source.to_owned(), one);
        if !self.patches.contains(&patch) {
            self.patches.push(patch);
        }
    }

    /// Drops the stand-ins that a build with these manifests does not use; cargo would warn about
    /// them.
    pub fn keep_used(&mut self, manifests: &[&Path]) {
        let folder = &self.folder;
        self.patches.retain(|(_, one)| {
            let manifest = folder.join(one.folder).join(MANIFEST);
            manifests.contains(&manifest.as_path())
        });
    }

    /// Returns cargo's arguments.
    fn arguments(&self) -> Vec<String> {
        let mut arguments = self.arguments.clone();
        for (source, one) in &self.patches {
            let source = if source == CRATES_IO { source.clone() } else { toml_string(source) };
            // The folder's name distinguishes versions of a crate.
            let key = format!("patch.{source}.{}", toml_string(one.folder));
            let path = self.folder.join(one.folder).display().to_string();
            for (field, value) in [("path", path.as_str()), ("package", one.name)] {
                arguments.push("--config".to_owned());
                arguments.push(format!("{key}.{field}={}", toml_string(value)));
            }
        }
        arguments
    }

    /// Returns whether a manifest belongs to a stand-in.
    #[must_use]
    pub fn contains(&self, manifest: &Path) -> bool {
        manifest.starts_with(&self.folder)
    }

    /// Adds the arguments that make cargo use the stand-ins instead of the published crates. The
    /// lock file is separate, because packages resolve differently.
    pub fn replace<'a>(&self, cargo: &'a mut Command) -> &'a mut Command {
        cargo.args(self.arguments()).arg("-Zlockfile-path")
    }
}

/// The sections of the data from which the wdk-sys stand-in is generated, with their files.
const SECTIONS: [(&str, &str); 9] = [
    ("constants.json", "constants"),
    ("functions.json", "feature"),
    ("functions.json", "nt"),
    ("statics.json", "statics"),
    ("types.json", "alias"),
    ("types.json", "enum"),
    ("types.json", "fnptr"),
    ("types.json", "struct"),
    ("types.json", "union"),
];

/// The names in the sections.
static NAMES: LazyLock<BTreeSet<String>> = LazyLock::new(|| {
    let mut names = BTreeSet::new();
    for (file, contents) in FILES.iter().filter(|(path, _)| path.starts_with("data/")) {
        let data: Value = serde_json::from_slice(contents).unwrap_or_default();
        for (_, section) in SECTIONS.iter().filter(|(of, _)| file.ends_with(of)) {
            for (name, entry) in data[section].as_object().into_iter().flatten() {
                names.insert(name.clone());
                // The values of an enumeration.
                let values = entry["values"].as_object();
                names.extend(values.into_iter().flat_map(Map::keys).cloned());
            }
        }
    }
    names
});

/// Returns whether the wdk-sys stand-in defines a name.
#[must_use]
pub fn has_name(name: &str) -> bool {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    let sources = FILES
        .iter()
        .filter(|(path, _)| path.starts_with("wdk-sys/src/"))
        .filter_map(|(_, contents)| str::from_utf8(contents).ok());
    let is_word = |source: &str| {
        source.match_indices(name).any(|(at, _)| {
            let (before, after) = (&source[..at], &source[at + name.len()..]);
            !before.ends_with(is_part) && !after.starts_with(is_part)
        })
    };
    NAMES.contains(name) || (!name.is_empty() && sources.into_iter().any(is_word))
}

/// Returns the manifest of a stand-in that has the same name as a package in the author's
/// workspace: only one of the two can have the `links` key, and the lock file distinguishes them by
/// version.
fn beside_own(manifest: &str) -> String {
    let Some((start, end)) = manifest.split_once(LINKS) else {
        return manifest.to_owned();
    };
    let start = start.lines().map(|line| match line.strip_suffix('"') {
        Some(version) if line.starts_with("version = ") => format!("{version}+standin\"\n"),
        _ => format!("{line}\n"),
    });
    start.collect::<String>() + end
}

/// Returns the manifest of the stand-ins' workspace, with the members that were written.
fn workspace(manifest: &str) -> String {
    let written = FILES.iter().filter_map(|(name, _)| name.strip_suffix("/Cargo.toml"));
    let older = REPLACED.iter().filter(|one| one.older.is_some());
    let mut members: Vec<&str> = written.chain(older.map(|one| one.folder)).collect();
    members.sort_unstable();
    let list = format!("members = {members:?}");
    let Some(start) = manifest.find("members = [") else {
        return manifest.to_owned();
    };
    let end = manifest[start..].find(']').map_or(manifest.len(), |at| start + at + 1);
    [&manifest[..start], &list, &manifest[end..]].concat()
}

/// Writes a file unless it already has these contents, so that cargo does not rebuild it.
fn write_if_new(path: &Path, contents: &[u8]) -> Result<()> {
    if fs::read(path).is_ok_and(|found| found == contents) {
        return Ok(());
    }
    path.parent()
        .map_or(Ok(()), fs::create_dir_all)
        .and_then(|()| fs::write(path, contents))
        .with_context(|| format!("cannot write {}", path.display()))
}

/// Returns the folder for the lock file derived from an author's. Workspaces that share a target
/// folder have separate lock files.
fn lock_folder(folder: &Path, authors_lock: &Path) -> PathBuf {
    let mut hasher = DefaultHasher::new();
    authors_lock.hash(&mut hasher);
    let name = format!("{:016x}", hasher.finish());
    folder.join("lock").join(name)
}

/// Removes a file if it exists.
fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", path.display()))
        }
        _ => Ok(()),
    }
}

/// Returns a lock file without the replaced crates: if it contained an older version, cargo would
/// not use the stand-in.
fn unlocked(lock: &[u8]) -> Vec<u8> {
    const START: &str = "[[package]]\n";
    let lock = String::from_utf8_lossy(lock).replace("\r\n", "\n");
    let mut blocks = lock.split(START);
    let mut kept = blocks.next().unwrap_or_default().to_owned();
    for block in blocks {
        let is_replaced =
            REPLACED.iter().any(|one| block.starts_with(&format!("name = \"{}\"\n", one.name)));
        if !is_replaced {
            kept.push_str(START);
            kept.push_str(block);
        }
    }
    kept.into_bytes()
}

/// Returns text as a TOML string.
fn toml_string(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_stand_in_are_whole_words() {
        assert!(has_name("NTSTATUS"));
        assert!(has_name("KeGetCurrentIrql"));
        // An enumeration value, a feature's routine, and a routine written by hand.
        assert!(has_name("WdfDriverInitNonPnpDriver"));
        assert!(has_name("USBD_CreateHandle"));
        assert!(has_name("NT_INFORMATION"));
        assert!(!has_name("KeGetCurrentIrq"));
        assert!(!has_name("NoSuchName"));
        // The data contains this inline function from the headers, but the bindings do not.
        assert!(!has_name("WDF_DRIVER_CONFIG_INIT"));
        assert!(!has_name(""));
    }

    #[test]
    fn the_workspace_has_the_members_that_are_written() {
        let manifest = "[workspace]\nmembers = [\n    \"abi-tests\",\n]\n[x]\ny = []\n";
        assert_eq!(
            workspace(manifest),
            "[workspace]\nmembers = [\"wdk-build\", \"wdk-build-0.3\", \"wdk-build-0.4\", \
             \"wdk-build-0.5\", \"wdk-sys\", \"wdk-sys-0.3\", \"wdk-sys-0.4\", \"wdk-sys-generator\", \
             \"wdk-sys-macros\"]\n[x]\ny = []\n"
        );
    }

    #[test]
    fn each_version_has_a_stand_in_with_the_newest_sources() {
        let folder = tempfile::tempdir().unwrap();
        let standin = folder.path().join("standin");
        Standin::write(&standin, Path::new("none"), false).unwrap();
        for one in REPLACED {
            let manifest = standin.join(one.folder).join(MANIFEST);
            let manifest = fs::read_to_string(manifest).unwrap();
            assert!(manifest.contains(&format!("name = \"{}\"", one.name)));
            let version = format!("\nversion = \"{}.", one.version);
            assert!(manifest.contains(&version), "{manifest}");
            let library = manifest.contains("\n[lib]\npath = ");
            assert_eq!(library, one.older.is_some(), "{manifest}");
            let script = manifest.contains("\nbuild = \"../wdk-sys/build.rs\"\n");
            assert_eq!(script, library && one.name == "wdk-sys", "{manifest}");
        }
        // Stand-ins that a driver needs are added, until the author changes the lock file.
        let lock = folder.path().join("Cargo.lock");
        fs::write(&lock, "one").unwrap();
        let usual = Standin::write(&standin, &lock, false).unwrap().arguments();
        let mut added = Standin::write(&standin, &lock, false).unwrap();
        added.add("https://example.com/wdk", REPLACED[1]).unwrap();
        let again = Standin::write(&standin, &lock, false).unwrap().arguments();
        assert_eq!(again, added.arguments());
        let key = r#"patch."https://example.com/wdk"."wdk-build-0.5".package="wdk-build""#;
        assert!(again.iter().any(|argument| argument == key), "{again:?}");
        // cargo receives only the stand-ins that the build uses.
        let manifest = standin.join("wdk-build-0.5").join(MANIFEST);
        added.keep_used(&[&manifest, Path::new("/w/Cargo.toml")]);
        assert_eq!(added.patches.len(), 1);
        // A workspace with its own wdk-sys.
        let own = folder.path().join("own");
        Standin::write(&own, Path::new("none"), true).unwrap();
        for (folder, has_links) in [(&standin, true), (&own, false)] {
            for name in ["wdk-sys", "wdk-sys-0.4"] {
                let manifest = fs::read_to_string(folder.join(name).join(MANIFEST)).unwrap();
                assert_eq!(manifest.contains(LINKS), has_links, "{manifest}");
                assert_eq!(manifest.contains("+standin\"\n"), !has_links, "{manifest}");
            }
        }
        fs::write(&lock, "two").unwrap();
        let again = Standin::write(&standin, &lock, false).unwrap().arguments();
        assert_eq!(again, usual);
        assert_eq!(Replaced::find("wdk-build", "0.6.0"), Some(REPLACED[0]));
        assert_eq!(Replaced::find("wdk-build", "0.5.1"), Some(REPLACED[1]));
        assert_eq!(Replaced::find("wdk-sys", "0.4.0"), Some(REPLACED[5]));
        assert_eq!(Replaced::find("wdk-build", "0.2.0"), None);
        assert_eq!(Replaced::find("wdk-sys", "0.50.0"), None);
    }

    #[test]
    fn older_versions_of_the_wdk_crates_are_not_locked() {
        let package = |name: &str| format!("[[package]]\nname = \"{name}\"\nversion = \"0.5.1\"\n");
        let lock = ["version = 4\n\n", &package("wdk"), &package("wdk-sys")].concat();
        let expected = ["version = 4\n\n", &package("wdk")].concat();
        assert_eq!(unlocked(lock.as_bytes()), expected.as_bytes());
    }

    #[test]
    fn the_lock_file_is_the_authors_until_the_author_changes_it() {
        let folder = tempfile::tempdir().unwrap();
        let authors = folder.path().join("Cargo.lock");
        let standin = folder.path().join("standin");
        let ours = lock_folder(&standin, &authors).join("Cargo.lock");
        // A new driver has no lock file.
        Standin::write(&standin, &authors, false).unwrap();
        assert!(!ours.exists());
        fs::write(&authors, "one").unwrap();
        Standin::write(&standin, &authors, false).unwrap();
        assert_eq!(fs::read(&ours).unwrap(), b"one");
        // cargo adds the stand-ins' dependencies.
        fs::write(&ours, "one and more").unwrap();
        Standin::write(&standin, &authors, false).unwrap();
        assert_eq!(fs::read(&ours).unwrap(), b"one and more");
        fs::write(&authors, "two").unwrap();
        Standin::write(&standin, &authors, false).unwrap();
        assert_eq!(fs::read(&ours).unwrap(), b"two");
        assert_eq!(fs::read(&authors).unwrap(), b"two");
        // Another workspace with the same target folder gets its own lock file.
        let other = folder.path().join("other/Cargo.lock");
        assert_ne!(lock_folder(&standin, &other), lock_folder(&standin, &authors));
    }
}
