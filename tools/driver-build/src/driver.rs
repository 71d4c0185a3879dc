//! Finds the driver in a cargo workspace and builds its image.

use std::{
    env, fs,
    path::{self, Component, Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use crate::{
    config::Flags,
    dependencies::{list, others, outside},
    files, link,
    messages::run,
    process::{line, said},
    profile,
    standin::{KMDF_VERSIONS, Standin, kmdf_versions},
    toolchain::{Machine, Toolchain},
};

pub use crate::messages::Messages;

/// A build profile of a driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// With debug assertions.
    Debug,
    /// Optimized.
    Release,
}

impl Profile {
    /// Returns the name of the profile's folder in the target folder.
    #[must_use]
    pub const fn folder(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Release => "release",
        }
    }
}

/// The build options, which cargo defines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The name of the profile.
    pub profile: String,
    /// The cargo arguments that select features.
    pub features: Vec<String>,
    /// True if the author's lock file must be up to date.
    pub is_locked: bool,
    /// True if cargo must not use the network.
    pub is_offline: bool,
    /// The cargo arguments for verbosity.
    pub output: Vec<String>,
}

impl From<Profile> for Options {
    fn from(profile: Profile) -> Self {
        let profile = match profile {
            Profile::Debug => "dev",
            Profile::Release => "release",
        };
        Self {
            profile: profile.to_owned(),
            features: Vec::new(),
            is_locked: false,
            is_offline: false,
            output: Vec::new(),
        }
    }
}

/// A driver in a cargo workspace: a package with a `cdylib` library, and with
/// `[package.metadata.wdk]` or a dependency on a WDK crate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Driver {
    /// The package's name.
    pub package: String,
    /// The image's file name without the extension, which is the library's name.
    pub image: String,
    /// The package's manifest.
    pub manifest: PathBuf,
    /// The workspace's folder.
    pub workspace: PathBuf,
    /// The workspace's target folder.
    pub target: PathBuf,
    /// The root source file of the package's library.
    pub library: PathBuf,
    /// The root source files of the workspace libraries that the driver uses directly or
    /// indirectly.
    pub used_libraries: Vec<PathBuf>,
    /// The package's version.
    pub version: String,
    /// The package's description, or an empty string.
    pub description: String,
    /// The package's authors.
    pub authors: Vec<String>,
    /// The framework version in the package's or workspace's metadata, if any.
    pub framework: Option<Framework>,
    /// The driver model in the package's or workspace's metadata, such as `KMDF`, if any.
    pub model: Option<String>,
    /// True if the workspace contains its own wdk-sys package.
    pub has_own_wdk_sys: bool,
    /// The package's metadata for tools: `[package.metadata]`.
    pub metadata: Value,
}

/// A KMDF version, as a driver's metadata specifies it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Framework {
    /// The major version.
    pub major: u32,
    /// The minor version that the driver is built for.
    pub target: u32,
    /// The oldest minor version with which the driver works.
    pub minimum: u32,
}

/// The files of a built driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// The driver.
    pub sys: PathBuf,
    /// Its symbols.
    pub pdb: PathBuf,
}

/// The name of the driver model of metadata without a framework.
const WDM: &str = "WDM";

impl Driver {
    /// Returns whether the driver uses no framework, according to the metadata.
    #[must_use]
    pub fn is_wdm(&self) -> bool {
        self.model.as_deref() == Some(WDM)
    }

    /// Checks that the driver's model and framework version can be built without the WDK.
    ///
    /// # Errors
    ///
    /// Fails if the metadata specifies a model other than KMDF or WDM, or a KMDF version that the
    /// stand-ins do not support.
    pub fn check_model(&self) -> Result<()> {
        match self.model.as_deref() {
            Some(WDM) => Ok(()),
            None | Some("KMDF") => {
                let Some(Framework { major, target, .. }) = self.framework else {
                    return Ok(());
                };
                ensure!(
                    major == 1 && KMDF_VERSIONS.contains(&target),
                    "{} is for KMDF {major}.{target}; `cargo etw` builds and runs drivers for KMDF {}: \
                     set target-kmdf-version-minor to one of them, or build on Windows, with the WDK",
                    self.package,
                    kmdf_versions()
                );
                Ok(())
            }
            Some(other) => bail!(
                "{} has driver-type = {other:?}; `cargo etw` builds and runs KMDF and WDM drivers; build \
                 a driver of another model on Windows, with the WDK",
                self.package
            ),
        }
    }

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
                None if drivers.is_empty() => bail!(NO_DRIVER),
                None => {
                    bail!("no driver is named {wanted}; the workspace's drivers are: {}", names())
                }
            };
        }
        if let Some(driver) = drivers.iter().find(|driver| driver.manifest == manifest) {
            return Ok(driver.clone());
        }
        match drivers.as_slice() {
            [] => bail!(NO_DRIVER),
            [only] => Ok(only.clone()),
            _ => {
                bail!("the workspace has several drivers: {}; choose one with `--package`", names())
            }
        }
    }

    /// Returns the driver with another target folder.
    ///
    /// # Errors
    ///
    /// Fails if the path is empty or the current folder is unknown.
    pub fn with_target(mut self, folder: &Path) -> Result<Self> {
        let absolute = path::absolute(folder).with_context(|| {
            format!("cannot make the target folder's path {} absolute", folder.display())
        })?;
        self.target = plain(&absolute);
        Ok(self)
    }

    /// Builds the driver without the WDK. The stand-ins, cargo's output and the image are in the
    /// target folder's `etw` folder; no other files are changed.
    ///
    /// # Errors
    ///
    /// Fails if the driver needs versions of the WDK crates that have no stand-ins, or if cargo
    /// fails.
    pub fn build(
        &self,
        toolchain: &Toolchain,
        profile: Profile,
        messages: Messages,
    ) -> Result<Image> {
        self.build_with(toolchain, &profile.into(), messages)
    }

    /// Builds the driver like [`Driver::build`], with cargo options. cargo runs in the current
    /// folder, and uses the configuration there and in the folders from the workspace down to the
    /// package.
    ///
    /// # Errors
    ///
    /// Fails like [`Driver::build`], and if an option in the environment is not Unicode.
    pub fn build_with(
        &self,
        toolchain: &Toolchain,
        options: &Options,
        messages: Messages,
    ) -> Result<Image> {
        self.check_model()?;
        let folder = self.target.join("etw");
        let lock = self.workspace.join("Cargo.lock");
        if options.is_locked {
            // The build has a separate lock file, which contains the stand-ins.
            self.resolve(toolchain, options, |cargo| cargo.arg("--locked"))?;
        }
        let standin_folder = folder.join("standin");
        let mut standin = Standin::write(&standin_folder, &lock, self.has_own_wdk_sys)?;
        let metadata = self.replace_all(toolchain, options, &mut standin)?;
        let built_in = folder.join("build");
        let mut cargo = toolchain.build_here(&built_in)?;
        let target = toolchain.target();
        let flags = Flags::of_author(toolchain.rust(), target)?;
        for flag in &flags.left_out {
            eprintln!(
                "note: omitting the compiler option `{flag}` from the environment or cargo's \
                 configuration: this program links drivers, with a PDB"
            );
        }
        let mut flags = flags.used;
        flags.extend(toolchain.remapped(&self.workspace, &built_in));
        // With the author's `build.build-dir`, most files are in another folder than the images.
        let build = metadata["build_directory"].as_str();
        if let Some(build) = build.filter(|one| *one != metadata["target_directory"]) {
            flags.push(link::remap(Path::new(build), link::BUILT_IN));
        }
        // wdk-build rejects the dynamic C runtime; with this option, authors need not configure the
        // static one.
        flags.push("-Ctarget-feature=+crt-static".to_owned());
        // Images refer to the stand-ins by their default folder, regardless of the target folder.
        flags.push(link::remap(&standin_folder, "target/etw/standin"));
        flags.extend(outside(&metadata, &self.workspace, &standin_folder));
        let manifest = self.workspace.join("Cargo.toml");
        let symbols = profile::symbols(toolchain.rust(), &manifest, &options.profile)?;
        standin
            .replace(&mut cargo)
            .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f"))
            .env(MANIFEST, manifest)
            .arg("--manifest-path")
            .arg(&self.manifest)
            .args(["--package", &self.package])
            // A program in the package is not part of the driver.
            .arg("--lib")
            .args(["--profile", &options.profile])
            .args(own_configuration(&self.workspace, &self.manifest)?)
            .args(symbols)
            .args(&options.features)
            .args(options.is_offline.then_some("--offline"))
            .args(&options.output);
        run(&mut cargo, messages)?;
        let profile = profile::folder(&options.profile);
        let from = built_in.join(target).join(profile);
        let machine = toolchain.machine().name();
        let to = folder.join(machine).join(profile);
        let image = self.copy(&from, &to)?;
        if messages == Messages::Json {
            let message = json!({
                "reason": "driver-image",
                "package": self.package,
                "machine": machine,
                "profile": profile,
                "sys": image.sys,
                "pdb": image.pdb,
            });
            println!("{message}");
        }
        Ok(image)
    }

    /// Copies the image and its symbols, using a driver's file names.
    ///
    /// # Errors
    ///
    /// Fails if a file cannot be copied.
    pub fn copy(&self, from: &Path, to: &Path) -> Result<Image> {
        copy_image(&self.image, from, to)
    }

    /// Makes cargo use the stand-ins for all of the driver's WDK crates, and returns the metadata
    /// of the build's packages. Fails if the driver needs versions that have no stand-ins.
    fn replace_all(
        &self,
        toolchain: &Toolchain,
        options: &Options,
        standin: &mut Standin,
    ) -> Result<Value> {
        let mut metadata = self.resolve(toolchain, options, |cargo| standin.replace(cargo))?;
        let found = others(&self.package, &self.manifest, &metadata, standin)?;
        if !found.is_empty() {
            for other in &found {
                let Some((source, one)) = other.stand_in() else {
                    bail!("{}", other.refusal(&self.package));
                };
                standin.add(&source, one)?;
            }
            metadata = self.resolve(toolchain, options, |cargo| standin.replace(cargo))?;
            let left = others(&self.package, &self.manifest, &metadata, standin)?;
            if let Some(other) = left.first() {
                bail!("{}", other.refusal(&self.package));
            }
        }
        let manifests: Vec<&Path> = list(&metadata["packages"])
            .filter_map(|package| package["manifest_path"].as_str().map(Path::new))
            .collect();
        standin.keep_used(&manifests);
        Ok(metadata)
    }

    /// Returns cargo's metadata of the driver and its dependencies, with additional arguments.
    fn resolve(
        &self,
        toolchain: &Toolchain,
        options: &Options,
        more: impl FnOnce(&mut Command) -> &mut Command,
    ) -> Result<Value> {
        let mut cargo = toolchain.rust().cargo();
        cargo
            .args(["metadata", "--format-version", "1"])
            .args(["--filter-platform", toolchain.target()])
            .arg("--manifest-path")
            .arg(&self.manifest)
            .args(&options.features)
            .args(options.is_offline.then_some("--offline"));
        more(&mut cargo);
        let output = cargo.output().with_context(|| format!("cannot start: {}", line(&cargo)))?;
        ensure!(
            output.status.success(),
            "cargo cannot resolve the driver's dependencies:\n{}",
            said(&output)
        );
        serde_json::from_slice(&output.stdout)
            .with_context(|| format!("cannot read the output of: {}", line(&cargo)))
    }
}

/// The environment variable with the manifest of the driver's workspace, for the wdk-build
/// stand-in. Without it, the stand-in would search the folders above the target folder for a lock
/// file, which may not exist.
const MANIFEST: &str = "WDK_STANDIN_MANIFEST";

/// The error message for a workspace without a driver.
const NO_DRIVER: &str = "the workspace has no driver: no package has a `cdylib` library and \
                         depends on wdk-sys, wdk or wdk-build; add `[lib] crate-type = \
                         [\"cdylib\"]` and wdk-sys to the driver's Cargo.toml";

/// Copies an image and its symbols, using a driver's file names.
///
/// # Errors
///
/// Fails if a file cannot be copied.
pub fn copy_image(image: &str, from: &Path, to: &Path) -> Result<Image> {
    files::create_dir_all(to)?;
    let sys = to.join(format!("{image}.sys"));
    files::copy(from.join(format!("{image}.dll")), &sys)?;
    let name = format!("{image}.pdb");
    let pdb = to.join(&name);
    files::copy(from.join(&name), &pdb)?;
    Ok(Image { sys, pdb })
}

/// Returns the cargo options that add the configuration in the folders from the workspace down to
/// the package. A WDK build runs in the package's folder and so reads them; cargo reads only the
/// current folder and those above it.
fn own_configuration(workspace: &Path, manifest: &Path) -> Result<Vec<String>> {
    let current = env::current_dir().context("cannot read the current folder's path")?;
    let below = |folder: &&Path| *folder != workspace && folder.starts_with(workspace);
    let folders = manifest.ancestors().skip(1).take_while(below);
    let mut files: Vec<String> = folders
        .filter(|folder| !current.starts_with(folder))
        .map(|folder| folder.join(".cargo/config.toml"))
        .filter(|file| file.is_file())
        .map(|file| format!("--config={}", file.display()))
        .collect();
    // The later of two settings wins, which must be the inner folder's.
    files.reverse();
    Ok(files)
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
                used_libraries: used_libraries(metadata, package),
                version: text(&package["version"]),
                description: text(&package["description"]),
                authors: list(&package["authors"]).map(text).collect(),
                framework: framework(&package["metadata"]["wdk"])
                    .or_else(|| framework(&metadata["metadata"]["wdk"])),
                model: model(&package["metadata"]["wdk"])
                    .or_else(|| model(&metadata["metadata"]["wdk"])),
                has_own_wdk_sys: list(&metadata["packages"]).any(|one| one["name"] == "wdk-sys"),
                metadata: package["metadata"].clone(),
            });
        }
    }
    Ok(drivers)
}

/// Returns a path without `.` and `..`, in the form that cargo uses.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            other => plain.push(other),
        }
    }
    plain
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

/// Returns the machine type with this name on the command line.
///
/// # Errors
///
/// Fails for other names.
pub fn machine(name: &str) -> Result<Machine> {
    let all = [Machine::X64, Machine::Arm64];
    let found = all.into_iter().find(|machine| machine.name() == name);
    found.with_context(|| format!("unknown machine `{name}`; expected x64 or arm64"))
}

#[cfg(test)]
mod tests {
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
        for (target, is_built) in [(13, false), (15, true), (27, true), (29, false), (35, false)] {
            let framework = Some(Framework { major: 1, target, minimum: target });
            let driver = Driver { framework, ..found.clone() };
            assert_eq!(driver.check_model().is_ok(), is_built, "1.{target}");
        }
        for (model, is_built) in [("KMDF", true), ("WDM", true), ("UMDF", false)] {
            let driver = of(model);
            assert_eq!(driver.check_model().is_ok(), is_built, "{model}");
            assert_eq!(driver.is_wdm(), model == "WDM", "{model}");
        }
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
        assert!(error.contains("cdylib"), "{error}");
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
    fn configuration_counts_from_the_workspace_to_the_package() {
        let workspace = tempfile::tempdir().unwrap();
        let package = workspace.path().join("drivers/one");
        for folder in [workspace.path(), &workspace.path().join("drivers"), &package] {
            std::fs::create_dir_all(folder.join(".cargo")).unwrap();
            std::fs::write(folder.join(".cargo/config.toml"), "").unwrap();
        }
        let found = own_configuration(workspace.path(), &package.join("Cargo.toml")).unwrap();
        let file =
            |folder| format!("--config={}/{folder}/.cargo/config.toml", workspace.path().display());
        assert_eq!(found, [file("drivers"), file("drivers/one")]);
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
