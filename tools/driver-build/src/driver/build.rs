//! Builds a driver's image with cargo and the stand-ins.

use std::{env, path::Path, process::Command};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use super::{Driver, Image, Messages, Options, Profile};
use crate::{
    c_tools,
    config::Flags,
    dependencies::{list, others, outside},
    files, link,
    messages::run,
    process::{line, said},
    profile,
    standin::{Standin, kmdf_note},
    toolchain::Toolchain,
};

/// The environment variable with the manifest of the driver's workspace, for the wdk-build
/// stand-in. Without it, the stand-in would search the folders above the target folder for a lock
/// file, which may not exist.
const MANIFEST: &str = "WDK_STANDIN_MANIFEST";

impl Driver {
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
        let is_static = flags.used.iter().any(|flag| flag.contains("+crt-static"));
        if messages == Messages::Human
            && !is_static
            && !options.output.iter().any(|one| one == "--quiet")
        {
            eprintln!(
                "note: this build links the static C runtime; wdk-build refuses to build the driver with \
                 the WDK until .cargo/config.toml sets it: `[target.{target}]` with `rustflags = [\"-C\", \
                 \"target-feature=+crt-static\"]`"
            );
        }
        if let Some(note) = self.framework.and_then(|one| kmdf_note(one.target)) {
            eprintln!("note: {note}");
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
        let has_compiler = c_tools::set(&mut cargo, target, &built_in.join("linker"))?;
        let uses_c = list(&metadata["packages"]).any(|package| package["name"] == "cc");
        let result = run(&mut cargo, messages);
        if uses_c && !has_compiler {
            result.with_context(c_tools::missing)?;
        } else {
            result?;
        }
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
