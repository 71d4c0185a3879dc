//! Finds dependencies that a package's source files do not name.
//!
//! Dependencies needed for other reasons are listed under `package.metadata.cargo-machete.ignored`,
//! which cargo-machete also reads.

use std::path::Path;

use anyhow::{Result, ensure};
use driver_build::files;
use serde_json::Value;

use crate::{modules, process::root, tree};

/// Fails with a list of all unused dependencies.
pub fn check() -> Result<()> {
    let root = root();
    let packages = modules::all_packages()?;
    let folder = |package: &Value| {
        let manifest = Path::new(package["manifest_path"].as_str()?);
        Some(format!("{}/", manifest.parent()?.strip_prefix(&root).ok()?.display()))
    };
    let folders: Vec<String> = packages.iter().filter_map(folder).collect();
    let mut texts = vec![String::new(); folders.len()];
    for file in tree::files(&root)? {
        if Path::new(&file).extension().is_none_or(|extension| extension != "rs") {
            continue;
        }
        // A package's folder can contain other packages.
        let of = folders.iter().enumerate().filter(|(_, folder)| file.starts_with(*folder));
        let Some((number, _)) = of.max_by_key(|(_, folder)| folder.len()) else { continue };
        let Some(text) = texts.get_mut(number) else { continue };
        let path = root.join(&file);
        let own = files::read_to_string(&path)?;
        // Modules that several packages share.
        for shared in own.split("#[path = \"").skip(1).filter_map(|rest| rest.split('"').next()) {
            text.push_str(&files::read_to_string(path.with_file_name(shared)).unwrap_or_default());
        }
        text.push_str(&own);
    }
    let unused: Vec<String> =
        packages.iter().zip(&texts).flat_map(|(package, text)| unused(package, text)).collect();
    ensure!(unused.is_empty(), "remove the dependencies that are not used:\n{}", unused.join("\n"));
    Ok(())
}

/// Returns the dependencies of a package, given its cargo metadata, that its sources do not name.
fn unused(package: &Value, sources: &str) -> Vec<String> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let ignored = list(&package["metadata"]["cargo-machete"]["ignored"]);
    list(&package["dependencies"])
        .iter()
        .filter(|dependency| !ignored.contains(&dependency["name"]))
        .filter_map(|dependency| {
            dependency["rename"].as_str().or_else(|| dependency["name"].as_str())
        })
        .filter(|name| !names(sources, &name.replace('-', "_")))
        .map(|name| format!("{}: {name}", package["name"].as_str().unwrap_or_default()))
        .collect()
}

/// Returns whether text contains a word.
fn names(text: &str, word: &str) -> bool {
    let is_of_word = |one: char| one.is_alphanumeric() || one == '_';
    text.match_indices(word).any(|(at, _)| {
        let before = text.get(..at).and_then(|text| text.chars().next_back());
        let after = text.get(at + word.len()..).and_then(|text| text.chars().next());
        !before.is_some_and(is_of_word) && !after.is_some_and(is_of_word)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_packages_of_the_checkout_use_their_dependencies() {
        check().unwrap();
    }

    #[test]
    fn a_dependency_that_no_source_names_is_unused() {
        let package = json!({
            "name": "a",
            "dependencies": [
                {"name": "some-crate"},
                {"name": "serde"},
                {"name": "x", "rename": "y"},
                {"name": "kept"},
            ],
            "metadata": {"cargo-machete": {"ignored": ["kept"]}},
        });
        assert_eq!(unused(&package, "use some_crate::A; serde_json::x(y::z)"), ["a: serde"]);
    }
}
