//! A copy of the workspace whose files are mutated in place.
//!
//! The copy stays at one path. What is built there serves the next round, the next share and the next run:
//! cargo builds only what has changed since.

use std::{
    fs::{self, File, TryLockError},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};

use crate::{process::root, tree};

/// A copy that no other process uses.
#[derive(Debug)]
pub struct WorkspaceCopy {
    path: PathBuf,
    /// Locked until the copy is dropped.
    _lock: File,
}

impl WorkspaceCopy {
    /// Makes or renews the copy in a folder.
    ///
    /// # Errors
    ///
    /// Fails if another process uses the copy, or if a file cannot be read or written.
    pub fn renew(folder: &Path) -> Result<Self> {
        fs::create_dir_all(folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
        let lock = folder.join("copy.lock");
        let file =
            File::create(&lock).with_context(|| format!("cannot create {}", lock.display()))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                bail!("another process runs mutants in {}; wait for its end", folder.display())
            }
            Err(TryLockError::Error(error)) => {
                return Err(error).with_context(|| format!("cannot lock {}", lock.display()));
            }
        }
        let path = folder.join("copy");
        fs::create_dir_all(&path).with_context(|| format!("cannot create {}", path.display()))?;
        update(&root(), &path)?;
        Ok(Self { path, _lock: file })
    }

    /// Returns the folder with the copy's files.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Gives `copy` the files of `original`, and removes all others but build output. A file with the right
/// content stays as it is, so that cargo does not build it again.
fn update(original: &Path, copy: &Path) -> Result<()> {
    let files = tree::files(original)?;
    for file in tree::files(copy)? {
        if files.binary_search(&file).is_err() {
            let path = copy.join(&file);
            fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
        }
    }
    for file in &files {
        let (from, to) = (original.join(file), copy.join(file));
        let content = fs::read(&from).with_context(|| format!("cannot read {}", from.display()))?;
        if fs::read(&to).is_ok_and(|present| present == content) {
            continue;
        }
        if let Some(folder) = to.parent() {
            fs::create_dir_all(folder)
                .with_context(|| format!("cannot create {}", folder.display()))?;
        }
        // Also copies the permissions: some of the files are scripts.
        fs::copy(&from, &to).with_context(|| format!("cannot write {}", to.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_has_the_files_of_the_original_and_keeps_what_was_built() {
        let folder = tempfile::tempdir().unwrap();
        let (original, copy) = (folder.path().join("original"), folder.path().join("copy"));
        let write = |folder: &Path, file: &str, text: &str| {
            let path = folder.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write(&original, "src/same.rs", "same");
        write(&original, "src/mutated.rs", "right");
        write(&original, "src/new/mod.rs", "new");
        write(&copy, "src/same.rs", "same");
        write(&copy, "src/mutated.rs", "wrong");
        write(&copy, "src/removed.rs", "old");
        write(&copy, "target/built", "output");
        let time = |file| fs::metadata(copy.join(file)).unwrap().modified().unwrap();
        let before = time("src/same.rs");
        update(&original, &copy).unwrap();
        let text = |file| fs::read_to_string(copy.join(file)).unwrap();
        assert_eq!(text("src/mutated.rs"), "right");
        assert_eq!(text("src/new/mod.rs"), "new");
        assert_eq!(text("target/built"), "output");
        assert!(!copy.join("src/removed.rs").exists());
        assert_eq!(time("src/same.rs"), before);
    }

    #[test]
    fn two_processes_do_not_use_one_copy() {
        let folder = tempfile::tempdir().unwrap();
        let lock = File::create(folder.path().join("copy.lock")).unwrap();
        lock.lock().unwrap();
        let error = WorkspaceCopy::renew(folder.path()).unwrap_err();
        assert!(error.to_string().contains("another process"), "{error}");
    }
}
