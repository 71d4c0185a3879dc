//! The configuration in which the commands read declarations: x64 Windows, with the driver
//! package's default features.

use std::{collections::BTreeSet, path::Path};

use anyhow::{Context, Result};
use driver_build::files;
use toml::{Table, Value};
use wdk_etw_build::{Configuration, configuration, package_folder};

/// Returns the configuration for the package that contains a source file.
pub fn read(source: &Path) -> Result<Configuration> {
    let manifest = package_folder(source).join("Cargo.toml");
    if !manifest.is_file() {
        return Ok(configuration::of_driver([]));
    }
    let text = files::read_to_string(&manifest)?;
    let package: Table =
        text.parse().with_context(|| format!("cannot read {}", manifest.display()))?;
    let features = default_features(&package);
    Ok(configuration::of_driver(features.iter().map(String::as_str)))
}

/// Returns a package's `default` feature and the features that it enables.
fn default_features(package: &Table) -> BTreeSet<String> {
    let features = package.get("features").and_then(Value::as_table);
    let mut found = BTreeSet::new();
    let mut left = vec!["default"];
    while let Some(feature) = left.pop() {
        let enabled = features.and_then(|features| features.get(feature));
        // `dep:name` and `name/feature` refer to other packages.
        let is_own = enabled.is_some() || !feature.contains([':', '/']);
        if (enabled.is_none() && feature == "default") || !is_own {
            continue;
        }
        if found.insert(feature.to_owned()) {
            let enabled = enabled.and_then(Value::as_array).into_iter().flatten();
            left.extend(enabled.filter_map(Value::as_str));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_features_are_found() {
        let package = r#"
            [features]
            default = ["a", "dep:x", "y/z"]
            a = ["b"]
            b = ["a"]
            c = []
        "#;
        let features = default_features(&package.parse().unwrap());
        assert_eq!(features.iter().map(String::as_str).collect::<Vec<_>>(), ["a", "b", "default"]);
        assert!(default_features(&Table::new()).is_empty());
    }
}
