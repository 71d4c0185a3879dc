//! Finds the driver in a cargo workspace, and builds its image.

use std::{
    env, fs,
    io::{self, BufRead as _, BufReader, IsTerminal as _},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use crate::{
    process::{line, output_of},
    standin::{Standin, VERSIONS},
    toolchain::{Machine, Toolchain},
};

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

/// A driver in a cargo workspace: a package with a library of the kind `cdylib`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Driver {
    /// The package's name.
    pub package: String,
    /// The image's file name without its extension: the library's name.
    pub image: String,
    /// The package's manifest.
    pub manifest: PathBuf,
    /// The workspace's folder.
    pub workspace: PathBuf,
    /// The workspace's target folder.
    pub target: PathBuf,
}

/// The files of a built driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// The driver.
    pub sys: PathBuf,
    /// Its symbols.
    pub pdb: PathBuf,
}

/// The form in which a build shows the compiler's messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Messages {
    /// For people, on standard error.
    Human,
    /// cargo's JSON messages on standard output, and one with the reason `driver-image` for the
    /// image.
    Json,
}

impl Driver {
    /// Finds the driver that a command is about: the named package, or that of the manifest, or the
    /// only driver of its workspace.
    ///
    /// # Errors
    ///
    /// Fails if there is no manifest, no driver, or a choice between several drivers.
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
        let output = cargo
            .output()
            .with_context(|| format!("cannot start: {}", line(&cargo)))?;
        ensure!(
            output.status.success(),
            "cargo cannot read {}:\n{}",
            manifest.display(),
            String::from_utf8_lossy(&output.stderr).trim_end()
        );
        let metadata = serde_json::from_slice(&output.stdout)
            .with_context(|| format!("cannot read the output of: {}", line(&cargo)))?;
        Self::of_workspace(&metadata, &manifest, package)
    }

    /// Chooses a driver from the output of `cargo metadata`.
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
                None => bail!("no driver is named {wanted}; the workspace has {}", names()),
            };
        }
        if let Some(driver) = drivers.iter().find(|driver| driver.manifest == manifest) {
            return Ok(driver.clone());
        }
        match drivers.as_slice() {
            [] => bail!(NO_DRIVER),
            [only] => Ok(only.clone()),
            _ => bail!(
                "the workspace has several drivers: {}; choose one with `--package`",
                names()
            ),
        }
    }

    /// Builds the driver without the WDK. The stand-ins, cargo's output and the image are in the
    /// folder `etw` of the target folder; no other file is changed.
    ///
    /// # Errors
    ///
    /// Fails if the driver needs versions of the WDK's crates that have no stand-ins, or if cargo
    /// fails.
    pub fn build(
        &self,
        toolchain: &Toolchain,
        profile: Profile,
        messages: Messages,
    ) -> Result<Image> {
        let folder = self.target.join("etw");
        let lock = self.workspace.join("Cargo.lock");
        let standin = Standin::write(&folder.join("standin"), &lock)?;
        self.check_versions(toolchain, &standin)?;
        let built_in = folder.join("build");
        standin.forget_old_functions(&built_in)?;
        let mut cargo = toolchain.build(&self.workspace, &built_in)?;
        // wdk-build refuses the dynamic C runtime; the author's workspace need not set this.
        let target = toolchain.target();
        cargo.arg(format!(
            "--config=target.{target}.rustflags=[\"-Ctarget-feature=+crt-static\"]"
        ));
        standin
            .replace(&mut cargo)
            .arg("--manifest-path")
            .arg(&self.manifest)
            .args(["--package", &self.package])
            .args((profile == Profile::Release).then_some("--release"));
        run(&mut cargo, messages)?;
        let from = built_in.join(target).join(profile.folder());
        let machine = toolchain.machine().name();
        let to = folder.join(machine).join(profile.folder());
        let image = self.copy(&from, &to)?;
        if messages == Messages::Json {
            let message = json!({
                "reason": "driver-image",
                "package": self.package,
                "machine": machine,
                "profile": profile.folder(),
                "sys": image.sys,
                "pdb": image.pdb,
            });
            println!("{message}");
        }
        Ok(image)
    }

    /// Copies the image and its symbols, with the names of a driver's files.
    ///
    /// # Errors
    ///
    /// Fails if a file cannot be copied.
    pub fn copy(&self, from: &Path, to: &Path) -> Result<Image> {
        copy_image(&self.image, from, to)
    }

    /// Fails if cargo does not use the stand-ins, because the driver needs other versions of the
    /// WDK's crates.
    fn check_versions(&self, toolchain: &Toolchain, standin: &Standin) -> Result<()> {
        let mut cargo = toolchain.rust().cargo();
        cargo
            .current_dir(&self.workspace)
            .args(["metadata", "--format-version", "1"])
            .args(["--filter-platform", toolchain.target()])
            .arg("--manifest-path")
            .arg(&self.manifest);
        standin.replace(&mut cargo);
        let output = cargo
            .output()
            .with_context(|| format!("cannot start: {}", line(&cargo)))?;
        ensure!(
            output.status.success(),
            "cargo cannot resolve the driver's dependencies:\n{}",
            String::from_utf8_lossy(&output.stderr).trim_end()
        );
        let metadata = serde_json::from_slice(&output.stdout)
            .with_context(|| format!("cannot read the output of: {}", line(&cargo)))?;
        check_replaced(&self.package, &metadata)
    }
}

/// The error for a workspace without a driver.
const NO_DRIVER: &str = "the workspace has no driver: no package has a library of the kind \
                         `cdylib`; add `[lib] crate-type = [\"cdylib\"]` to the driver's Cargo.toml";

/// Copies an image and its symbols, with the names of a driver's files.
///
/// # Errors
///
/// Fails if a file cannot be copied.
pub fn copy_image(image: &str, from: &Path, to: &Path) -> Result<Image> {
    fs::create_dir_all(to).with_context(|| format!("cannot create {}", to.display()))?;
    let copy = |from: &Path, to: &Path| {
        fs::copy(from, to)
            .with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))
    };
    let sys = to.join(format!("{image}.sys"));
    copy(&from.join(format!("{image}.dll")), &sys)?;
    let name = format!("{image}.pdb");
    let pdb = to.join(&name);
    copy(&from.join(&name), &pdb)?;
    Ok(Image { sys, pdb })
}

/// Returns the manifest that cargo uses in the current folder.
fn here() -> Result<PathBuf> {
    let mut cargo = Command::new("cargo");
    let found = output_of(cargo.args(["locate-project", "--message-format", "plain"]));
    found.map(PathBuf::from).with_context(|| {
        let folder = env::current_dir().unwrap_or_default();
        format!(
            "{} and the folders above it have no Cargo.toml; name one with `--manifest-path`",
            folder.display()
        )
    })
}

/// Returns the drivers of a workspace, from the output of `cargo metadata`.
fn drivers(metadata: &Value) -> Result<Vec<Driver>> {
    let path = |key: &str| {
        let path = metadata[key].as_str().map(PathBuf::from);
        path.with_context(|| format!("cargo's metadata has no {key}"))
    };
    let (workspace, target) = (path("workspace_root")?, path("target_directory")?);
    let mut drivers = Vec::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let library = package["targets"]
            .as_array()
            .into_iter()
            .flatten()
            .find(|target| {
                let kinds = target["crate_types"].as_array().into_iter().flatten();
                kinds.into_iter().any(|kind| kind == "cdylib")
            });
        if let (Some(library), Some(name), Some(manifest)) = (
            library.and_then(|library| library["name"].as_str()),
            package["name"].as_str(),
            package["manifest_path"].as_str(),
        ) {
            drivers.push(Driver {
                package: name.to_owned(),
                image: library.replace('-', "_"),
                manifest: PathBuf::from(manifest),
                workspace: workspace.clone(),
                target: target.clone(),
            });
        }
    }
    Ok(drivers)
}

/// Fails if a driver's dependencies include the published wdk-sys or wdk-build, or neither.
fn check_replaced(driver: &str, metadata: &Value) -> Result<()> {
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let mut is_replaced = false;
    for package in packages {
        let name = package["name"].as_str().unwrap_or_default();
        if VERSIONS.iter().all(|(known, _)| *known != name) {
            continue;
        }
        if package["source"].is_null() {
            is_replaced = true;
            continue;
        }
        bail!(
            "{driver} depends on {name} {}, which has no stand-in; drivers build without the WDK with \
             {} and {}",
            package["version"].as_str().unwrap_or_default(),
            VERSIONS
                .map(|(name, version)| format!("{name} {version}"))
                .join(", "),
            "the versions of wdk, wdk-alloc and wdk-panic that depend on these",
        );
    }
    ensure!(
        is_replaced,
        "{driver} depends on neither wdk-sys nor wdk-build; add wdk-sys {} to its dependencies",
        VERSIONS[1].1
    );
    Ok(())
}

/// Runs cargo, shows its messages, and adds a note about names that the stand-in lacks.
fn run(cargo: &mut Command, messages: Messages) -> Result<()> {
    let format = match messages {
        Messages::Human if io::stderr().is_terminal() => "json-diagnostic-rendered-ansi",
        Messages::Human | Messages::Json => "json",
    };
    let mut child = cargo
        .arg(format!("--message-format={format}"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start: {}", line(cargo)))?;
    let mut missing = Vec::new();
    if let Some(output) = child.stdout.take() {
        for text in BufReader::new(output).lines() {
            let text = text.context("cannot read cargo's messages")?;
            let message: Value = serde_json::from_str(&text).unwrap_or_default();
            missing.extend(missing_name(&message));
            match messages {
                Messages::Json => println!("{text}"),
                Messages::Human => {
                    if let Some(rendered) = message["message"]["rendered"].as_str() {
                        eprint!("{rendered}");
                    }
                }
            }
        }
    }
    let status = child
        .wait()
        .with_context(|| format!("cannot run: {}", line(cargo)))?;
    if status.success() {
        return Ok(());
    }
    missing.dedup();
    if missing.is_empty() {
        bail!("cargo cannot build the driver ({status})");
    }
    bail!(
        "cargo cannot build the driver ({status}); these names may be ones that the stand-in for \
         wdk-sys lacks although the WDK's headers have them: {}",
        missing.join(", ")
    )
}

/// Returns the name in an error about a name of wdk-sys that does not exist.
fn missing_name(message: &Value) -> Option<String> {
    const UNRESOLVED: [&str; 6] = ["E0412", "E0422", "E0425", "E0432", "E0433", "E0531"];
    let message = &message["message"];
    let code = message["code"]["code"].as_str()?;
    let rendered = message["rendered"].as_str()?;
    if !UNRESOLVED.contains(&code) || !rendered.contains("wdk_sys") {
        return None;
    }
    // The message has the name between backticks: "cannot find type `X` in crate `wdk_sys`".
    let text = message["message"].as_str()?;
    let name = text.split('`').nth(1)?;
    let name = name.rsplit("::").next()?;
    Some(name.to_owned())
}

/// Returns the machine that a command line names.
///
/// # Errors
///
/// Fails for other names.
pub fn machine(name: &str) -> Result<Machine> {
    let all = [Machine::X64, Machine::Arm64];
    let found = all.into_iter().find(|machine| machine.name() == name);
    found.with_context(|| format!("cannot build for `{name}`; expected x64 or arm64"))
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
        })
    }

    fn workspace(packages: &[Value]) -> Value {
        json!({ "packages": packages, "workspace_root": "/w", "target_directory": "/w/target" })
    }

    fn choose(packages: &[Value], folder: &str, package: Option<&str>) -> Result<String, String> {
        let manifest = Path::new("/w").join(folder).join("Cargo.toml");
        Driver::of_workspace(&workspace(packages), &manifest, package)
            .map(|driver| driver.image)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn the_driver_is_that_of_the_folder_or_the_only_one() {
        let all = [
            package("my-one", "cdylib"),
            package("two", "cdylib"),
            package("lib", "lib"),
        ];
        assert_eq!(choose(&all, "my-one", None).unwrap(), "my_one");
        assert_eq!(choose(&all, "lib", Some("two")).unwrap(), "two");
        assert_eq!(choose(&all[1..], "lib", None).unwrap(), "two");
        let error = choose(&all, "lib", None).unwrap_err();
        assert!(
            error.contains("my-one, two") && error.contains("--package"),
            "{error}"
        );
        let error = choose(&all, "my-one", Some("three")).unwrap_err();
        assert!(error.contains("no driver is named three"), "{error}");
        let error = choose(&all[2..], "lib", None).unwrap_err();
        assert!(error.contains("cdylib"), "{error}");
    }

    #[test]
    fn other_versions_of_the_wdk_crates_are_named_with_those_that_work() {
        let metadata = |packages: &[Value]| json!({ "packages": packages });
        let ours = json!({ "name": "wdk-sys", "version": "0.5.2", "source": null });
        let old = json!({ "name": "wdk-build", "version": "0.3.0", "source": "registry+x" });
        check_replaced("d", &metadata(std::slice::from_ref(&ours))).unwrap();
        let error = check_replaced("d", &metadata(&[ours, old]))
            .unwrap_err()
            .to_string();
        assert_eq!(
            error,
            "d depends on wdk-build 0.3.0, which has no stand-in; drivers build without the WDK with \
             wdk-build 0.6, wdk-sys 0.5 and the versions of wdk, wdk-alloc and wdk-panic that depend \
             on these"
        );
        let error = check_replaced("d", &metadata(&[])).unwrap_err().to_string();
        assert!(error.contains("add wdk-sys 0.5"), "{error}");
    }

    #[test]
    fn names_that_wdk_sys_lacks_are_found_in_errors() {
        let message = |code: &str, text: &str, rendered: &str| json!({ "message": { "code": { "code": code }, "message": text, "rendered": rendered } });
        let found = missing_name(&message(
            "E0432",
            "unresolved import `wdk_sys::ntddk::KeFoo`",
            "use wdk_sys::ntddk::KeFoo;",
        ));
        assert_eq!(found.as_deref(), Some("KeFoo"));
        let own = message("E0425", "cannot find value `x` in this scope", "x");
        assert_eq!(missing_name(&own), None);
    }
}
