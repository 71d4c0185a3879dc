//! Checks the published crates: their manifests' keys and their packages' files.
//!
//! The published crates are those in the main workspace without `publish = false`.

use std::{collections::BTreeSet, fs, path::Path};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::{
    process::{cargo, json, printed, root, run_quietly},
    tree,
};

/// The files in every package, apart from its sources.
const FILES: [&str; 6] =
    ["Cargo.lock", "Cargo.toml", "Cargo.toml.orig", "LICENSE-APACHE", "LICENSE-MIT", "README.md"];

/// A file that cargo adds in a git checkout.
const ONLY_IN_GIT: &str = ".cargo_vcs_info.json";

/// The required manifest keys, with their names in `cargo metadata`.
const KEYS: [&str; 7] =
    ["categories", "description", "documentation", "keywords", "license", "readme", "rust_version"];

/// Checks the manifests and packages' files, and then creates all packages, like `cargo publish`.
pub fn check() -> Result<()> {
    let packages = published()?;
    check_contents(&packages)?;
    let mut pack = cargo(&["package", "--locked", "--no-verify", "--allow-dirty"]);
    for package in &packages {
        pack.args(["--package", text(package, "name")?]);
    }
    run_quietly(&mut pack)
}

/// Fails if a manifest lacks a required key, or if a package lacks a required file or contains an
/// unexpected one.
fn check_contents(packages: &[Value]) -> Result<()> {
    ensure!(!packages.is_empty(), "the workspace publishes no crate");
    let files = tree::files(&root())?;
    let mut problems = Vec::new();
    for package in packages {
        let name = text(package, "name")?;
        problems.extend(lacking(package).map(|key| format!("{name}: the manifest has no {key}")));
        if !package["metadata"]["docs"]["rs"].is_object() {
            problems.push(format!("{name}: the manifest has no [package.metadata.docs.rs]"));
        }
        let folder = folder(package)?;
        let mut expected = expected(&files, &folder);
        // Only data that a crate exposes belongs in its package.
        let source = fs::read_to_string(root().join(&folder).join("src/lib.rs"));
        let source = source.unwrap_or_default();
        expected.retain(|file| {
            let is_data = Path::new(file).extension().is_some_and(|extension| extension == "json");
            !is_data || source.contains(file.as_str())
        });
        let listed: BTreeSet<String> = list(name)?.lines().map(str::to_owned).collect();
        problems.extend(compare(name, &expected, &listed));
    }
    ensure!(problems.is_empty(), "{}", problems.join("\n"));
    Ok(())
}

/// Returns the metadata of the published crates.
pub fn published() -> Result<Vec<Value>> {
    let metadata = json(&mut cargo(&["metadata", "--format-version", "1", "--no-deps"]))?;
    let packages = metadata["packages"].as_array();
    let packages = packages.context("the workspace has no packages")?;
    Ok(packages.iter().filter(|package| is_published(package)).cloned().collect())
}

/// Returns true unless a manifest has `publish = false`, which is an empty list of registries in
/// cargo's metadata.
fn is_published(package: &Value) -> bool {
    let registries = package["publish"].as_array();
    registries.is_none_or(|registries| !registries.is_empty())
}

fn list(name: &str) -> Result<String> {
    let list = printed(&mut cargo(&["package", "--list", "--allow-dirty", "--package", name]))?;
    // On Windows, cargo lists paths with backslashes.
    Ok(String::from_utf8(list).context("cargo's output is not UTF-8")?.replace('\\', "/"))
}

fn text<'a>(package: &'a Value, key: &str) -> Result<&'a str> {
    let value = package[key].as_str();
    value.with_context(|| format!("cargo metadata reports no {key} for a package"))
}

/// Returns a package's folder, relative to the repository's root.
fn folder(package: &Value) -> Result<String> {
    let manifest = Path::new(text(package, "manifest_path")?);
    let folder = manifest.parent().context("a manifest's path must have a parent folder")?;
    let folder = folder.strip_prefix(root());
    let folder =
        folder.with_context(|| format!("{} is outside the repository", manifest.display()))?;
    Ok(folder.display().to_string().replace('\\', "/"))
}

/// Returns the required keys that a manifest lacks.
fn lacking(package: &Value) -> impl Iterator<Item = &'static str> {
    KEYS.into_iter().filter(|key| match &package[*key] {
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        _ => true,
    })
}

/// Returns the expected files of the package in a folder: its sources, the build script's folder, data,
/// and the files in every package.
fn expected(files: &[String], folder: &str) -> BTreeSet<String> {
    let folder = format!("{folder}/");
    let is_crate = |name: &str| files.contains(&format!("{folder}{name}/Cargo.toml"));
    let sources = files.iter().filter_map(|file| file.strip_prefix(&folder)).filter(|file| {
        let is_json = Path::new(file).extension().is_some_and(|extension| extension == "json");
        let is_data = is_json && !file.contains('/');
        let is_built = !is_crate("build") && file.starts_with("build/");
        is_data || is_built || file.starts_with("src/")
    });
    sources.chain(FILES).map(str::to_owned).collect()
}

/// Returns the differences between a package's files and the expected files.
fn compare(name: &str, expected: &BTreeSet<String>, listed: &BTreeSet<String>) -> Vec<String> {
    let missing = expected
        .difference(listed)
        .map(|file| format!("{name}: the package does not contain {file}"));
    let foreign = listed
        .difference(expected)
        .filter(|file| *file != ONLY_IN_GIT)
        .map(|file| format!("{name}: the package contains {file}, which does not belong in it"));
    missing.chain(foreign).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_package_of_the_checkout_has_exactly_its_files() {
        check_contents(&published().unwrap()).unwrap();
    }

    fn set(files: &[&str]) -> BTreeSet<String> {
        files.iter().map(|file| (*file).to_owned()).collect()
    }

    #[test]
    fn sources_belong_to_a_package_and_tests_and_other_packages_do_not() {
        let files = ["a/src/lib.rs", "a/tests/data.bin", "a/b/src/lib.rs", "ab/src/x.rs"];
        let files = files.map(str::to_owned);
        let mut wanted = set(&FILES);
        wanted.insert("src/lib.rs".to_owned());
        assert_eq!(expected(&files, "a"), wanted);
    }

    #[test]
    fn differences_are_named() {
        let expected = set(&["Cargo.toml", "src/lib.rs"]);
        let listed = set(&[ONLY_IN_GIT, "Cargo.toml", "tests/data.bin"]);
        assert_eq!(
            compare("x", &expected, &listed),
            [
                "x: the package does not contain src/lib.rs",
                "x: the package contains tests/data.bin, which does not belong in it",
            ]
        );
    }

    #[test]
    fn an_empty_key_counts_as_missing() {
        let package = serde_json::json!({
            "categories": ["no-std"],
            "description": "",
            "documentation": "x",
            "keywords": [],
            "license": "MIT",
            "readme": "README.md",
        });
        let lacking: Vec<_> = lacking(&package).collect();
        assert_eq!(lacking, ["description", "keywords", "rust_version"]);
    }
}
