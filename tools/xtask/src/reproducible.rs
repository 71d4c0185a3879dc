//! Builds the sample driver a second time, as another user in another folder would, and
//! compares: the image and its PDB must be the same, and name no folder of this machine.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};

use crate::{
    build::{self, Profile},
    process::{root, symlink, target},
    progress::step,
    toolchain::{Machine, Toolchain, cargo_home},
};

/// Folders that are no source: what is built, and git's own.
fn is_source(name: &str) -> bool {
    !matches!(name, "target" | ".git")
}

/// Copies a folder's source.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            if is_source(&entry.file_name().to_string_lossy()) {
                copy(&entry.path(), &to)?;
            }
        } else {
            fs::copy(entry.path(), to)?;
        }
    }
    Ok(())
}

/// Another name for the folder that cargo keeps packages in, as another user would have.
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

/// The folders of this machine that nothing that is built may name.
fn folders(toolchain: &Toolchain) -> Vec<String> {
    let mut folders = vec![root(), target(), cargo_home(), env::temp_dir()];
    folders.extend(env::home_dir());
    folders.extend(toolchain.rust().sysroot());
    folders
        .into_iter()
        // A folder such as `/` is in every path.
        .filter(|folder| folder.components().count() > 1)
        .map(|folder| folder.display().to_string())
        .collect()
}

/// Fails if a file's bytes have one of some texts, in UTF-8 or UTF-16.
fn ensure_names_none(path: &Path, bytes: &[u8], texts: &[String]) -> Result<()> {
    for text in texts {
        let wide: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        for needle in [text.as_bytes(), &wide] {
            ensure!(
                !bytes.windows(needle.len()).any(|window| window == needle),
                "{} names the folder {text}: the same source would build another image elsewhere",
                path.display()
            );
        }
    }
    Ok(())
}

/// `cargo xtask reproducible`.
pub fn run() -> Result<()> {
    let toolchain = step("Finding the cross toolchain", || {
        Toolchain::find_or_install(Machine::X64)
    })?;
    step("Building the sample driver", || {
        build::build(&toolchain, build::SAMPLE, Profile::Release)
    })?;
    step("Building the sample driver again in another folder", || {
        check(&toolchain)
    })
}

/// Builds the sample driver in a copy of the source, and compares it with the one in
/// `target/drivers`.
pub fn check(toolchain: &Toolchain) -> Result<()> {
    let folder = target().join("reproducible");
    if folder.exists() {
        fs::remove_dir_all(&folder)
            .with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    let source = folder.join("a folder of another name");
    copy(&root(), &source)
        .with_context(|| format!("cannot copy the source to {}", source.display()))?;
    let home = other_home(&folder)?;
    let built_in = folder.join("built");
    let toolchain = toolchain.clone().with_cargo_home(home);
    let second = build::compile(
        &source,
        &built_in,
        &toolchain,
        build::SAMPLE,
        Profile::Release,
    )?;
    let first = build::drivers(Profile::Release);
    let (_, image) = build::SAMPLE;
    let folders = folders(&toolchain);
    for (one, other) in [("sys", "dll"), ("pdb", "pdb")] {
        let one = first.join(format!("{image}.{one}"));
        let other = second.join(format!("{image}.{other}"));
        let read =
            |path: &Path| fs::read(path).with_context(|| format!("cannot read {}", path.display()));
        let bytes = read(&one)?;
        ensure_names_none(&one, &bytes, &folders)?;
        ensure!(
            bytes == read(&other)?,
            "{} and {} differ, but were built from the same source",
            one.display(),
            other.display()
        );
    }
    fs::remove_dir_all(&folder).with_context(|| format!("cannot remove {}", folder.display()))
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
        assert!(
            error.contains("x.sys names the folder /home/somebody"),
            "{error}"
        );
        let wide: Vec<u8> = "at /home/somebody"
            .encode_utf16()
            .flat_map(u16::to_le_bytes)
            .collect();
        assert!(check(&wide).is_err());
    }
}
