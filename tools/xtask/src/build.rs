//! Builds drivers without the WDK.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};

use crate::{
    process::{root, run_quietly, target},
    progress::step,
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
    pub const fn folder(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Release => "release",
        }
    }
}

/// A driver package and the name of its image.
pub const SAMPLE: (&str, &str) = ("etw-sample-driver", "etw_sample_driver");
/// The driver whose service name selects its behaviour.
pub const PROBE: (&str, &str) = ("etw-probe-driver", "etw_probe_driver");
/// The driver that uses the framework as its device controls request.
pub const KMDF: (&str, &str) = ("etw-kmdf-driver", "etw_kmdf_driver");

/// The driver of the guide.
pub const MINIMAL: (&str, &str) = ("etw-minimal-driver", "etw_minimal_driver");

/// Returns the folder of built drivers, where tests expect them.
pub fn drivers(profile: Profile) -> PathBuf {
    target().join("drivers").join(profile.folder())
}

/// Runs `cargo xtask build`.
pub fn run(package: &str, profile: Profile, machine: Machine) -> Result<()> {
    let toolchain = step("Finding the cross toolchain", || {
        Toolchain::find_or_install(machine)
    })?;
    let image = package.replace('-', "_");
    let sys = step(&format!("Building {image}.sys"), || {
        build(&toolchain, (package, &image), profile)
    })?;
    println!("{}", sys.display());
    Ok(())
}

/// Adds the arguments that replace the WDK crates by the stand-ins, with a locked lock file.
pub fn with_standin(command: &mut Command) -> &mut Command {
    patch_standin(command).arg("--locked")
}

/// Adds the arguments that replace the WDK crates by the stand-ins, with a separate lock file,
/// since the patched packages resolve differently.
pub fn patch_standin(command: &mut Command) -> &mut Command {
    patch_standin_in(command, &root())
}

/// Adds the same arguments for the stand-ins in the folder `root`.
fn patch_standin_in<'a>(command: &'a mut Command, root: &Path) -> &'a mut Command {
    let standin = root.join("tools/wdk-standin");
    command
        .current_dir(root)
        .arg("--config")
        .arg(standin.join("config.toml"))
        .arg("-Zlockfile-path")
}

/// Makes wdk-macros read the framework's functions again after a change to the stand-in. It caches
/// them beside its own build and does not notice changes to wdk-sys.
pub fn forget_old_functions(built_in: &Path) -> Result<()> {
    let now = fs::read(root().join("tools/wdk-standin/wdk-sys/src/types.rs"))
        .context("cannot read the stand-in for wdk-sys")?;
    let known = built_in.join("functions-known.rs");
    if fs::read(&known).ok().as_ref() == Some(&now) {
        return Ok(());
    }
    for profile in ["debug", "release"] {
        let Ok(builds) = fs::read_dir(built_in.join(profile).join("build")) else {
            continue;
        };
        for build in builds.flatten() {
            let is_scratch = build.file_name().to_string_lossy().starts_with("scratch-");
            if is_scratch {
                let path = build.path();
                fs::remove_dir_all(&path)
                    .with_context(|| format!("cannot remove {}", path.display()))?;
            }
        }
    }
    fs::create_dir_all(built_in)
        .and_then(|()| fs::write(&known, now))
        .with_context(|| format!("cannot write {}", known.display()))
}

/// Builds a driver from the source in the folder `root`, and returns the folder with its image.
pub fn compile(
    root: &Path,
    built_in: &Path,
    toolchain: &Toolchain,
    (package, _): (&str, &str),
    profile: Profile,
) -> Result<PathBuf> {
    forget_old_functions(built_in)?;
    let mut command = toolchain.build(root, built_in)?;
    patch_standin_in(&mut command, root).args(["--locked", "--package", package]);
    if profile == Profile::Release {
        command.arg("--release");
    }
    run_quietly(&mut command)?;
    Ok(built_in.join(toolchain.target()).join(profile.folder()))
}

/// Builds a driver and returns its .sys; the .pdb is in the same folder.
pub fn build(toolchain: &Toolchain, driver: (&str, &str), profile: Profile) -> Result<PathBuf> {
    let (_, image) = driver;
    let built_in = target().join("driver-build");
    let from = compile(&root(), &built_in, toolchain, driver, profile)?;
    let to = match toolchain.machine() {
        Machine::X64 => drivers(profile),
        Machine::Arm64 => target().join("drivers/arm64").join(profile.folder()),
    };
    fs::create_dir_all(&to).with_context(|| format!("cannot create {}", to.display()))?;
    let copy = |from: &Path, to: &Path| {
        fs::copy(from, to)
            .with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))
    };
    let sys = to.join(format!("{image}.sys"));
    copy(&from.join(format!("{image}.dll")), &sys)?;
    let pdb = format!("{image}.pdb");
    copy(&from.join(&pdb), &to.join(&pdb))?;
    Ok(sys)
}
