//! Finds the driver in a cargo workspace.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::{Driver, Framework, plain};
use crate::{
    dependencies::list,
    process::{line, said},
};

/// The error message for a workspace without a driver.
const NO_DRIVER: &str = "the workspace has no driver: no package has a `cdylib` library and \
                         depends on wdk-sys, wdk or wdk-build; add `[lib] crate-type = \
                         [\"cdylib\"]` and wdk-sys to the driver's Cargo.toml";

impl Driver {
    /// Finds the driver for a command: the named package, otherwise the manifest's package,
    /// otherwise the only driver in the workspace.
    ///
    /// # Errors
    ///
    /// Fails if there is no manifest or no driver, or if there are several drivers to choose from.
    pub fn find(manifest: Option<&Path>, package: Option<&str>) -> Result<Self> {
        let manifest = match manifest {
            Some(manifest) => manifest.to_owned(),
            None => here()?,
        };
        let manifest = fs::canonicalize(&manifest)
            .with_context(|| format!("cannot find the manifest {}", manifest.display()))?;
        let mut cargo = Command::new("cargo");
        cargo
            .args(["metadata", "--format-version", "1", "--no-deps"])
            .arg("--manifest-path")
            .arg(&manifest);
        let output = cargo.output().with_context(|| format!("cannot start: {}", line(&cargo)))?;
        ensure!(
            output.status.success(),
            "cargo cannot read {}:\n{}",
            manifest.display(),
            said(&output)
        );
        let metadata = serde_json::from_slice(&output.stdout)
            .with_context(|| format!("cannot read the output of: {}", line(&cargo)))?;
        Self::of_workspace(&metadata, &manifest, package)
    }

    /// Selects a driver from the output of `cargo metadata`.
    fn of_workspace(metadata: &Value, manifest: &Path, package: Option<&str>) -> Result<Self> {
        let drivers = drivers(metadata)?;
        let names = || {
            let names: Vec<&str> = drivers.iter().map(|one| one.package.as_str()).collect();
            names.join(", ")
        };
        if let Some(wanted) = package {
            let found = drivers.iter().find(|driver| driver.package == wanted);
            return match found {
                Some(driver) => Ok(driver.clone()),
                None if drivers.is_empty() => {
                    bail!(static_library(metadata).unwrap_or_else(|| NO_DRIVER.to_owned()))
                }
                None => {
                    bail!("no driver is named {wanted}; the workspace's drivers are: {}", names())
                }
            };
        }
        if let Some(driver) = drivers.iter().find(|driver| driver.manifest == manifest) {
            return Ok(driver.clone());
        }
        match drivers.as_slice() {
            [] => bail!(static_library(metadata).unwrap_or_else(|| NO_DRIVER.to_owned())),
            [only] => Ok(only.clone()),
            _ => {
                bail!("the workspace has several drivers: {}; choose one with `--package`", names())
            }
        }
    }
}

/// Returns the manifest that cargo uses in the current folder.
fn here() -> Result<PathBuf> {
    let folder = env::current_dir().unwrap_or_default();
    let mut cargo = Command::new("cargo");
    cargo.args(["locate-project", "--message-format", "plain"]);
    let output = cargo.output().with_context(|| format!("cannot start: {}", line(&cargo)))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim().into());
    }
    let said = said(&output);
    ensure!(
        said.contains("Cargo.toml"),
        "cargo cannot run in {}: {}",
        folder.display(),
        said.trim_start_matches("error: ").replace("\nhelp: ", "; ")
    );
    bail!(
        "{} and the folders above it have no Cargo.toml; name one with `--manifest-path`",
        folder.display()
    )
}

/// Returns the drivers in a workspace, from the output of `cargo metadata`.
fn drivers(metadata: &Value) -> Result<Vec<Driver>> {
    let path = |key: &str| {
        let path = metadata[key].as_str().map(PathBuf::from);
        path.with_context(|| format!("cargo's metadata has no {key}"))
    };
    let (workspace, target) = (path("workspace_root")?, plain(&path("target_directory")?));
    let mut drivers = Vec::new();
    for package in list(&metadata["packages"]) {
        let is_driver = |target: &&Value| list(&target["crate_types"]).any(|kind| kind == "cdylib");
        let library = list(&package["targets"]).find(is_driver);
        let library = library.filter(|_| is_for_the_wdk(package));
        if let (Some(library), Some(name), Some(manifest)) =
            (library, package["name"].as_str(), package["manifest_path"].as_str())
        {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            drivers.push(Driver {
                package: name.to_owned(),
                image: text(&library["name"]).replace('-', "_"),
                manifest: PathBuf::from(manifest),
                workspace: workspace.clone(),
                target: target.clone(),
                library: PathBuf::from(text(&library["src_path"])),
                script: list(&package["targets"])
                    .find(|target| list(&target["kind"]).any(|kind| kind == "custom-build"))
                    .and_then(|target| Some(PathBuf::from(target["src_path"].as_str()?))),
                used_libraries: used_libraries(metadata, package),
                version: text(&package["version"]),
                description: text(&package["description"]),
                authors: list(&package["authors"]).map(text).collect(),
                framework: framework(wdk(metadata, package)),
                model: model(wdk(metadata, package)),
                has_own_wdk_sys: list(&metadata["packages"]).any(|one| one["name"] == "wdk-sys"),
                metadata: package["metadata"].clone(),
            });
        }
    }
    Ok(drivers)
}

/// Returns an error message if a package is a static library for a driver that another program links.
fn static_library(metadata: &Value) -> Option<String> {
    let package =
        list(&metadata["packages"]).filter(|package| is_for_the_wdk(package)).find(|package| {
            let mut kinds =
                list(&package["targets"]).flat_map(|target| list(&target["crate_types"]));
            kinds.any(|kind| kind == "staticlib")
        })?;
    Some(format!(
        "{} is a static library, which a C driver links; `cargo etw` builds drivers that are a `cdylib`: \
         add \"cdylib\" to the `crate-type` of a driver in Rust, compile C code into it in its build \
         script (the `cc` crate), or build the C driver with the WDK and run its .sys with `cargo etw run \
         --image`",
        package["name"].as_str().unwrap_or_default()
    ))
}

/// Returns whether a package uses the WDK crates; other `cdylib` libraries are for programs.
fn is_for_the_wdk(package: &Value) -> bool {
    let depends = list(&package["dependencies"])
        .filter(|one| one["kind"] != "dev")
        .filter_map(|one| one["name"].as_str())
        .any(|name| ["wdk", "wdk-build", "wdk-sys"].contains(&name));
    depends || !package["metadata"]["wdk"].is_null()
}

/// Returns the libraries of workspace packages that a package uses directly or indirectly.
fn used_libraries(metadata: &Value, package: &Value) -> Vec<PathBuf> {
    let mut reached = vec![package];
    let mut at = 0;
    while let Some(user) = reached.get(at) {
        at += 1;
        let dependencies = list(&user["dependencies"]).filter(|one| one["kind"].is_null());
        let folders: Vec<&Path> =
            dependencies.filter_map(|one| one["path"].as_str().map(Path::new)).collect();
        for other in list(&metadata["packages"]) {
            let folder = other["manifest_path"].as_str().and_then(|it| Path::new(it).parent());
            let is_used = folder.is_some_and(|folder| folders.contains(&folder));
            if is_used && !reached.iter().any(|known| known["id"] == other["id"]) {
                reached.push(other);
            }
        }
    }
    let is_library =
        |target: &&Value| list(&target["crate_types"]).any(|kind| kind == "lib" || kind == "rlib");
    reached
        .iter()
        .skip(1)
        .filter_map(|package| list(&package["targets"]).find(is_library))
        .filter_map(|library| library["src_path"].as_str().map(PathBuf::from))
        .collect()
}

/// Returns the `wdk` section that applies to a package: its own, the workspace's, or that of another
/// package. wdk-build accepts only one configuration in a workspace.
fn wdk<'a>(metadata: &'a Value, package: &'a Value) -> &'a Value {
    let sections = [package, metadata].into_iter().chain(list(&metadata["packages"]));
    let mut sections = sections.map(|one| &one["metadata"]["wdk"]);
    sections.find(|one| !one["driver-model"].is_null()).unwrap_or(&Value::Null)
}

/// Returns the KMDF version in the metadata's `wdk` section.
fn framework(wdk: &Value) -> Option<Framework> {
    let model = &wdk["driver-model"];
    let number = |key: &str| model[key].as_u64().and_then(|number| u32::try_from(number).ok());
    let target = number("target-kmdf-version-minor")?;
    Some(Framework {
        major: number("kmdf-version-major")?,
        target,
        minimum: number("minimum-kmdf-version-minor").unwrap_or(target),
    })
}

/// Returns the driver model in the metadata's `wdk` section.
fn model(wdk: &Value) -> Option<String> {
    let model = wdk["driver-model"]["driver-type"].as_str()?;
    Some(model.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn package(name: &str, kind: &str) -> Value {
        json!({
            "name": name,
            "manifest_path": format!("/w/{name}/Cargo.toml"),
            "targets": [
                { "name": "build-script-build", "crate_types": ["bin"] },
                { "name": name, "crate_types": [kind] },
            ],
            "dependencies": [{ "name": "wdk-sys", "kind": null }],
        })
    }

    fn workspace(packages: &[Value]) -> Value {
        json!({ "packages": packages, "workspace_root": "/w", "target_directory": "/w/target" })
    }

    #[test]
    fn a_driver_has_what_its_metadata_say() {
        let mut driver = package("my-driver", "cdylib");
        driver["id"] = json!("my-driver");
        driver["version"] = json!("3.1.4");
        driver["authors"] = json!(["Contoso"]);
        driver["metadata"] = json!({ "wdk": { "driver-model": {
            "driver-type": "KMDF", "kmdf-version-major": 1, "target-kmdf-version-minor": 33,
            "minimum-kmdf-version-minor": 31,
        } } });
        driver["dependencies"] = json!([
            { "name": "events", "kind": null, "path": "/w/events" },
            { "name": "wdk-sys", "kind": null },
            { "name": "tool", "kind": "build", "path": "/w/tool" },
        ]);
        let mut events = package("events", "lib");
        events["id"] = json!("events");
        events["targets"][1]["src_path"] = json!("/w/events/src/lib.rs");
        let tool = package("tool", "lib");
        let metadata = workspace(&[driver, events, tool]);
        let found = drivers(&metadata).unwrap().remove(0);
        let framework = Framework { major: 1, target: 33, minimum: 31 };
        assert_eq!(found.framework, Some(framework));
        assert_eq!(found.model.as_deref(), Some("KMDF"));
        let of = |model: &str| Driver { model: Some(model.to_owned()), ..found.clone() };
        for (target, is_built) in
            [(7, false), (9, true), (14, false), (29, true), (35, true), (37, false)]
        {
            let framework = Some(Framework { major: 1, target, minimum: target });
            let driver = Driver { framework, ..found.clone() };
            assert_eq!(driver.check_model().is_ok(), is_built, "1.{target}");
        }
        let refused = |driver: Driver| driver.check_model().unwrap_err().to_string();
        for (model, says) in [
            ("UMDF", "build a user-mode driver on Windows"),
            ("Kmdf", "write driver-type = \"KMDF\""),
            ("wdm", "write driver-type = \"WDM\""),
            ("NDIS", "write driver-type = \"KMDF\" or \"WDM\""),
        ] {
            let said = refused(of(model));
            assert!(said.contains(says), "{model}: {said}");
        }
        assert!(of("WDM").check_model().is_ok() && of("WDM").is_wdm() && !of("KMDF").is_wdm());
        let said = refused(Driver { framework: None, ..found.clone() });
        assert!(said.contains("target-kmdf-version-minor = 33"), "{said}");
        let said = refused(Driver { model: None, ..found.clone() });
        assert!(said.contains("[package.metadata.wdk.driver-model]"), "{said}");
        assert_eq!((found.version.as_str(), found.description.as_str()), ("3.1.4", ""));
        assert_eq!(found.authors, ["Contoso"]);
        assert_eq!(found.used_libraries, [Path::new("/w/events/src/lib.rs")]);
    }

    fn choose(packages: &[Value], folder: &str, package: Option<&str>) -> Result<String, String> {
        let manifest = Path::new("/w").join(folder).join("Cargo.toml");
        Driver::of_workspace(&workspace(packages), &manifest, package)
            .map(|driver| driver.image)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn the_driver_is_that_of_the_folder_or_the_only_one() {
        let all = [package("my-one", "cdylib"), package("two", "cdylib"), package("lib", "lib")];
        assert_eq!(choose(&all, "my-one", None).unwrap(), "my_one");
        assert_eq!(choose(&all, "lib", Some("two")).unwrap(), "two");
        assert_eq!(choose(&all[1..], "lib", None).unwrap(), "two");
        let error = choose(&all, "lib", None).unwrap_err();
        assert!(error.contains("my-one, two") && error.contains("--package"), "{error}");
        let error = choose(&all, "my-one", Some("three")).unwrap_err();
        assert!(error.contains("no driver is named three"), "{error}");
        let error = choose(&all[2..], "lib", None).unwrap_err();
        assert!(error.contains("the workspace has no driver"), "{error}");
        let error = choose(&[package("for-c", "staticlib")], "for-c", None).unwrap_err();
        assert!(error.contains("for-c is a static library"), "{error}");
    }

    #[test]
    fn a_target_folder_has_the_path_that_cargo_gives_to_what_is_in_it() {
        let mut metadata = workspace(&[package("d", "cdylib")]);
        metadata["target_directory"] = json!("/w/driver/../target");
        let driver = drivers(&metadata).unwrap().remove(0);
        assert_eq!(driver.target, Path::new("/w/target"));
        let driver = driver.with_target(Path::new("/w/./d/../out")).unwrap();
        assert_eq!(driver.target, Path::new("/w/out"));
    }

    #[test]
    fn a_library_for_programs_is_not_a_driver() {
        let mut plugin = package("plugin", "cdylib");
        plugin["dependencies"] = json!([
            { "name": "windows-sys", "kind": null },
            { "name": "wdk-sys", "kind": "dev" },
        ]);
        let all = [plugin.clone(), package("driver", "cdylib")];
        assert_eq!(choose(&all, "plugin", None).unwrap(), "driver");
        assert!(choose(&all, "plugin", Some("plugin")).is_err());
        // Either the metadata or the dependency is enough to make a package a driver.
        plugin["metadata"] = json!({ "wdk": {} });
        assert_eq!(choose(&[plugin], "x", None).unwrap(), "plugin");
    }
}
