//! Reads the driver model in manifests: `[package.metadata.wdk.driver-model]`
//! or `[workspace.metadata.wdk.driver-model]`.

use std::{
    collections::BTreeSet,
    env,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::{Map, Value};

use crate::{
    error::ConfigError,
    model::{DriverConfig, KmdfConfig, VERSIONS},
};

/// The environment variable with the path of the driver's manifest, for builds whose target folder
/// is outside the driver's workspace.
pub const MANIFEST: &str = "WDK_STANDIN_MANIFEST";

/// The oldest minor version that a driver for a newer version can specify as its minimum, as in the
/// WDK headers.
const OLDEST_MINIMUM: u8 = 25;

/// Returns the manifest of the workspace that is being built. Unless [`MANIFEST`] names it, looks
/// for a `Cargo.lock` in the nearest folder above `OUT_DIR`, like the published crate.
pub fn manifest() -> Option<PathBuf> {
    println!("cargo::rerun-if-env-changed={MANIFEST}");
    if let Some(named) = env::var_os(MANIFEST) {
        return Some(named.into());
    }
    let out = PathBuf::from(env::var_os("OUT_DIR")?);
    out.ancestors()
        .find(|folder| folder.join("Cargo.lock").exists())
        .map(|folder| folder.join("Cargo.toml"))
}

/// Reads the configuration of a manifest's workspace, and the paths of the workspace's manifests.
///
/// Dependencies outside the workspace are not read, because cargo would have to resolve them,
/// possibly with another lock file than this build's.
pub fn read(manifest: &Path) -> Result<(DriverConfig, Vec<String>), ConfigError> {
    let failed = |what: String| ConfigError::CargoMetadata { manifest: manifest.to_owned(), what };
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command
        .args(["metadata", "--no-deps", "--format-version", "1", "--manifest-path"])
        .arg(manifest);
    if let Some(folder) = manifest.parent().filter(|folder| folder.is_dir()) {
        command.current_dir(folder);
    }
    let output = command.output().map_err(|error| failed(error.to_string()))?;
    if !output.status.success() {
        return Err(failed(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    let metadata: Value =
        serde_json::from_slice(&output.stdout).map_err(|error| failed(error.to_string()))?;
    let paths = packages(&metadata)
        .filter_map(|package| package["manifest_path"].as_str())
        .map(str::to_owned)
        .chain(manifest.to_str().map(str::to_owned))
        .collect();
    Ok((configuration(&metadata)?, paths))
}

fn packages(metadata: &Value) -> impl Iterator<Item = &Value> {
    metadata["packages"].as_array().into_iter().flatten()
}

/// Returns the only configuration in cargo's metadata.
fn configuration(metadata: &Value) -> Result<DriverConfig, ConfigError> {
    let mut found = BTreeSet::new();
    for package in packages(metadata) {
        match &package["metadata"]["wdk"] {
            Value::Null => {}
            // An empty section means that a driver uses the workspace's configuration.
            Value::Object(empty) if empty.is_empty() => {}
            section => {
                let name = package["name"].as_str().unwrap_or_default();
                found.insert(driver_model(section, &format!("package {name}"))?);
            }
        }
    }
    match &metadata["metadata"]["wdk"] {
        Value::Null => {}
        section => {
            found.insert(driver_model(section, "the workspace")?);
        }
    }
    let all: Vec<DriverConfig> = found.into_iter().collect();
    match all.as_slice() {
        [] => Err(ConfigError::NoConfiguration),
        [one] => Ok(*one),
        several => {
            let several: Vec<String> = several.iter().map(ToString::to_string).collect();
            Err(ConfigError::SeveralConfigurations(several.join(", ")))
        }
    }
}

/// Returns the configuration in one `wdk` section.
fn driver_model(section: &Value, owner: &str) -> Result<DriverConfig, ConfigError> {
    let invalid = |what: String| ConfigError::Metadata { owner: owner.to_owned(), what };
    let known = |table: &Map<String, Value>, keys: &[&str]| {
        table
            .keys()
            .find(|key| !keys.contains(&key.as_str()))
            .map_or(Ok(()), |key| Err(invalid(format!("unknown key {key:?}"))))
    };
    let wdk = section.as_object().ok_or_else(|| invalid("expected a table".to_owned()))?;
    known(wdk, &["driver-model"])?;
    let model = wdk
        .get("driver-model")
        .and_then(Value::as_object)
        .ok_or_else(|| invalid("expected a table `driver-model`".to_owned()))?;
    match model.get("driver-type").and_then(Value::as_str) {
        Some("KMDF") => {}
        Some("WDM") => {
            known(model, &["driver-type"])?;
            return Ok(DriverConfig::Wdm);
        }
        Some(other @ "UMDF") => {
            return Err(ConfigError::Unsupported {
                owner: owner.to_owned(),
                found: other.to_owned(),
            });
        }
        _ => {
            return Err(invalid("expected driver-type = \"KMDF\", \"UMDF\" or \"WDM\"".to_owned()));
        }
    }
    known(
        model,
        &[
            "driver-type", "kmdf-version-major", "target-kmdf-version-minor",
            "minimum-kmdf-version-minor",
        ],
    )?;
    let number = |key: &str| {
        model.get(key).map_or(Ok(None), |value| {
            let number = value.as_u64().and_then(|value| u8::try_from(value).ok());
            let wrong = || invalid(format!("{key}: expected a number below 256, not {value}"));
            number.map(Some).ok_or_else(wrong)
        })
    };
    let required = |key: &str| number(key)?.ok_or_else(|| invalid(format!("{key} is missing")));
    let config = KmdfConfig {
        kmdf_version_major: required("kmdf-version-major")?,
        target_kmdf_version_minor: required("target-kmdf-version-minor")?,
        minimum_kmdf_version_minor: number("minimum-kmdf-version-minor")?,
    };
    if config.kmdf_version_major != 1 || !VERSIONS.contains(&config.target_kmdf_version_minor) {
        return Err(ConfigError::Unsupported {
            owner: owner.to_owned(),
            found: format!("{config}, a version that no WDK for Windows 10 or newer has"),
        });
    }
    let target = config.target_kmdf_version_minor;
    if let Some(minimum) = config.minimum_kmdf_version_minor
        && !(OLDEST_MINIMUM.min(target)..=target).contains(&minimum)
    {
        return Err(invalid(format!(
            "minimum-kmdf-version-minor is {minimum}; expected {} to {target}, the target",
            OLDEST_MINIMUM.min(target)
        )));
    }
    Ok(DriverConfig::Kmdf(config))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn kmdf(minor: u8) -> Value {
        json!({ "driver-model": {
            "driver-type": "KMDF",
            "kmdf-version-major": 1,
            "target-kmdf-version-minor": minor,
        } })
    }

    fn package(wdk: &Value) -> Value {
        json!({ "name": "driver", "metadata": { "wdk": wdk } })
    }

    fn version(metadata: &Value) -> KmdfConfig {
        match configuration(metadata).unwrap() {
            DriverConfig::Kmdf(version) => version,
            DriverConfig::Wdm => panic!("not of KMDF: {metadata}"),
        }
    }

    fn message(metadata: &Value) -> String {
        configuration(metadata).unwrap_err().to_string()
    }

    #[test]
    fn the_version_is_that_of_the_package_or_the_workspace() {
        for minor in VERSIONS {
            let of_package = json!({ "packages": [package(&kmdf(minor))], "metadata": null });
            let of_workspace = json!({
                "packages": [package(&json!({})), { "name": "library", "metadata": null }],
                "metadata": { "wdk": kmdf(minor) },
            });
            for metadata in [of_package, of_workspace] {
                assert_eq!(version(&metadata).target_kmdf_version_minor, minor);
            }
        }
    }

    #[test]
    fn no_configuration_and_two_are_refused() {
        assert!(message(&json!({ "packages": [] })).contains("no WDK configuration"));
        let two = json!({ "packages": [package(&kmdf(31)), package(&kmdf(33))] });
        let message = message(&two);
        assert!(message.contains("KMDF 1.31, KMDF 1.33"), "{message}");
        let twice = json!({
            "packages": [package(&kmdf(33))], "metadata": { "wdk": kmdf(33) }
        });
        assert!(configuration(&twice).is_ok());
    }

    #[test]
    fn other_models_and_versions_are_named() {
        let message = message(&json!({ "packages": [package(&kmdf(14))] }));
        assert!(
            message.contains("driver") && message.contains("KMDF 1.14") && message.contains("1.33"),
            "{message}"
        );
        let umdf = json!({ "driver-model": { "driver-type": "UMDF" } });
        let error = configuration(&json!({ "packages": [package(&umdf)] })).unwrap_err();
        assert!(error.to_string().contains("UMDF"), "{error}");
    }

    #[test]
    fn a_driver_without_a_framework_has_no_version() {
        let wdm = |section| json!({ "packages": [package(&json!({ "driver-model": section }))] });
        let found = configuration(&wdm(json!({ "driver-type": "WDM" }))).unwrap();
        assert_eq!(found, DriverConfig::Wdm);
        let versioned = json!({ "driver-type": "WDM", "kmdf-version-major": 1 });
        let found = message(&wdm(versioned));
        assert!(found.contains("unknown key \"kmdf-version-major\""), "{found}");
        let two = json!({
            "packages": [package(&kmdf(31))],
            "metadata": { "wdk": { "driver-model": { "driver-type": "WDM" } } },
        });
        let found = message(&two);
        assert!(found.contains("WDM, KMDF 1.31"), "{found}");
    }

    #[test]
    fn the_oldest_version_is_read_and_checked() {
        let minimum = |value: u8| {
            let mut section = kmdf(33);
            section["driver-model"]["minimum-kmdf-version-minor"] = json!(value);
            json!({ "packages": [package(&section)] })
        };
        let found = version(&minimum(31));
        assert_eq!(found.minimum_kmdf_version_minor, Some(31));
        for wrong in [23, 35] {
            let found = message(&minimum(wrong));
            assert!(
                found
                    .contains(&format!("minimum-kmdf-version-minor is {wrong}; expected 25 to 33")),
                "{found}"
            );
        }
    }

    #[test]
    fn a_misspelt_key_is_named() {
        let mut section = kmdf(31);
        section["driver-model"]["target-kmdf-version-minr"] = json!(33);
        let found = message(&json!({ "packages": [package(&section)] }));
        assert!(found.contains("target-kmdf-version-minr"), "{found}");
        let missing = json!({ "driver-model": { "driver-type": "KMDF", "kmdf-version-major": 1 } });
        let found = message(&json!({ "packages": [package(&missing)] }));
        assert!(found.contains("target-kmdf-version-minor is missing"), "{found}");
    }
}
