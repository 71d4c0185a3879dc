//! Lists the files of the repository, in a git checkout or an unpacked archive.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};

/// Lists the relative paths, with `/`, of the files in a folder: in a git checkout, all files that
/// git does not ignore; elsewhere, all files except build output.
pub fn files(root: &Path) -> Result<Vec<String>> {
    let mut files = match by_git(root) {
        Some(files) => files,
        None => by_walking(root)?,
    };
    files.sort();
    Ok(files)
}

fn by_git(root: &Path) -> Option<Vec<String>> {
    if !root.join(".git").exists() {
        return None;
    }
    let output = Command::new("git")
        .current_dir(root)
        // The checkout can belong to another user, and this command only lists names.
        .args(["-c", "safe.directory=*"])
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .output()
        .ok()?;
    let list = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| {
        list.split('\0')
            // git lists a removed file until the removal is committed.
            .filter(|file| !file.is_empty() && root.join(file).is_file())
            .map(str::to_owned)
            .collect()
    })
}

fn by_walking(root: &Path) -> Result<Vec<String>> {
    let mut paths = Vec::new();
    visit(root, &mut paths)?;
    let mut files = Vec::new();
    for path in &paths {
        let relative = path.strip_prefix(root).unwrap_or(path);
        let name = relative
            .to_str()
            .with_context(|| format!("the file name of {} is not UTF-8", path.display()))?;
        files.push(name.replace('\\', "/"));
    }
    Ok(files)
}

/// Returns whether a folder does not belong to the repository.
fn is_left_out(name: &str) -> bool {
    matches!(name, "target" | ".git" | "__pycache__")
}

fn visit(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let unreadable = || format!("cannot read {}", folder.display());
    for entry in fs::read_dir(folder).with_context(unreadable)? {
        let entry = entry.with_context(unreadable)?;
        if entry.file_type().with_context(unreadable)?.is_dir() {
            if !is_left_out(&entry.file_name().to_string_lossy()) {
                visit(&entry.path(), files)?;
            }
        } else {
            files.push(entry.path());
        }
    }
    Ok(())
}

/// Returns the part of a path after its last dot.
pub fn extension_of(path: &str) -> &str {
    path.rsplit_once('.').map_or("", |(_, extension)| extension)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// On Windows, symbolic links need Developer Mode; without it, git creates files that contain
    /// the targets' names.
    #[test]
    fn every_crate_has_its_licenses_as_files() {
        let root = crate::process::root();
        for name in files(&root).unwrap() {
            let path = root.join(&name);
            assert!(!path.is_symlink(), "{name} is a symbolic link");
            let file = path.file_name().unwrap();
            if file.to_string_lossy().starts_with("LICENSE-") {
                let equal = fs::read(root.join(file)).unwrap() == fs::read(&path).unwrap();
                assert!(equal, "{name} differs from the file in the root");
            }
        }
    }

    #[test]
    fn build_output_is_not_listed() {
        let folder = tempfile::tempdir().unwrap();
        for file in ["a.rs", ".cargo/config.toml", "fuzz/target/b.rs", ".git/HEAD", "fuzz/c.rs"] {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        assert_eq!(files(folder.path()).unwrap(), [".cargo/config.toml", "a.rs", "fuzz/c.rs"]);
    }
}
