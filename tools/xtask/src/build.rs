//! Builds this repository's drivers without the WDK.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::Result;
pub use driver_build::driver::Profile;
use driver_build::{driver::copy_image, standin::Standin};

use driver_build::toolchain::{Machine, Toolchain};

use crate::{
    process::{root, run_quietly, target},
    progress::step,
    sample,
};

/// The driver for the probes.
pub const PROBES: (&str, &str) = ("etw-probes-driver", "etw_probes_driver");

/// A driver's package and the name of its image.
pub type Driver = (&'static str, &'static str);

/// The drivers needed by the checks.
pub const DRIVERS: [Driver; 15] = [
    sample::DRIVER,
    ("etw-rules-driver", "etw_rules_driver"),
    ("etw-kmdf-driver", "etw_kmdf_driver"),
    ("etw-kernel-driver", "etw_kernel_driver"),
    ("etw-wdm-driver", "etw_wdm_driver"),
    ("etw-wdm-pnp-driver", "etw_wdm_pnp_driver"),
    ("etw-usb-driver", "etw_usb_driver"),
    ("etw-filter-driver", "etw_filter_driver"),
    ("etw-interrupt-driver", "etw_interrupt_driver"),
    ("etw-several-driver", "etw_several_driver"),
    ("etw-tracelogging-driver", "etw_tracelogging_driver"),
    ("etw-wpp-driver", "etw_wpp_driver"),
    PROBES,
    ("etw-minimal-driver", "etw_minimal_driver"),
    ("etw-facades-driver", "etw_facades_driver"),
];

/// The drivers that tests also load in a debug build.
const IN_DEBUG: [&str; 3] = [sample::DRIVER.0, "etw-rules-driver", "etw-several-driver"];

/// The drivers in packages. They are built separately from the others, which select other features of
/// wdk-sys.
pub const PACKAGED: [Driver; 2] = [sample::DRIVER, PROBES];

/// Builds the drivers that tests load.
pub fn build_all(toolchain: &Toolchain) -> Result<()> {
    for profile in [Profile::Debug, Profile::Release] {
        let is_built =
            |driver: &Driver| profile == Profile::Release || IN_DEBUG.contains(&driver.0);
        for is_packaged in [true, false] {
            let drivers: Vec<Driver> = DRIVERS
                .into_iter()
                .filter(|driver| is_built(driver) && PACKAGED.contains(driver) == is_packaged)
                .collect();
            let images: Vec<&str> = drivers.iter().map(|(_, image)| *image).collect();
            let title = format!("Building {} ({})", images.join(", "), profile.folder());
            step(&title, || build_together(toolchain, &drivers, profile))?;
        }
    }
    Ok(())
}

/// Returns the folder for built drivers, where tests expect them.
pub fn drivers(profile: Profile) -> PathBuf {
    target().join("drivers").join(profile.folder())
}

/// Runs `cargo xtask build`.
pub fn run(package: &str, profile: Profile, machine: Machine) -> Result<()> {
    let toolchain = step("Finding the cross toolchain", || Toolchain::find_or_install(machine))?;
    let image = package.replace('-', "_");
    let sys =
        step(&format!("Building {image}.sys"), || build(&toolchain, (package, &image), profile))?;
    println!("{}", sys.display());
    Ok(())
}

/// Returns the stand-ins in the folder `root`.
fn standin(root: &Path) -> Standin {
    Standin::of_checkout(&root.join("tools/wdk-standin"))
}

/// Adds the arguments that replace the WDK crates with the stand-ins, with a locked lock file.
pub fn with_standin(command: &mut Command) -> &mut Command {
    patch_standin(command).arg("--locked")
}

/// Adds the arguments that replace the WDK crates with the stand-ins, with a separate lock file,
/// because the patched packages resolve differently.
pub fn patch_standin(command: &mut Command) -> &mut Command {
    let root = root();
    standin(&root).replace(command.current_dir(&root))
}

/// The configuration with the drivers' profiles. A WDK build runs in the driver's folder, where
/// cargo finds the file; this program runs cargo in the workspace's folder.
pub const PROFILE: &str = "driver/.cargo/config.toml";

/// Builds drivers from the source in folder `root`, and returns the folder that contains their
/// images.
pub fn compile(
    root: &Path,
    built_in: &Path,
    toolchain: &Toolchain,
    packages: &[&str],
    profile: Profile,
) -> Result<PathBuf> {
    let standin = standin(root);
    let mut command = toolchain.build(root, built_in)?;
    standin
        .replace(&mut command)
        .arg("--locked")
        .args(packages.iter().flat_map(|package| ["--package", package]))
        .args(["--config", PROFILE])
        .args((profile == Profile::Release).then_some("--release"));
    run_quietly(&mut command)?;
    Ok(built_in.join(toolchain.target()).join(profile.folder()))
}

/// Returns the target folder for driver builds. The drivers that tests build share the packages of their
/// build scripts and macros in it.
pub fn built_in() -> PathBuf {
    target().join("driver-build")
}

/// Builds a driver, and returns its .sys file; the .pdb file is in the same folder.
pub fn build(toolchain: &Toolchain, driver: (&str, &str), profile: Profile) -> Result<PathBuf> {
    let (package, image) = driver;
    let from = compile(&root(), &built_in(), toolchain, &[package], profile)?;
    copy(toolchain, image, &from, profile)
}

/// Builds several drivers with a single command, which compiles their dependencies once, and returns
/// their .sys files. Each driver alone would select other features of the dependencies.
pub fn build_together(
    toolchain: &Toolchain,
    drivers: &[Driver],
    profile: Profile,
) -> Result<Vec<PathBuf>> {
    let packages: Vec<&str> = drivers.iter().map(|(package, _)| *package).collect();
    let from = compile(&root(), &built_in(), toolchain, &packages, profile)?;
    drivers.iter().map(|(_, image)| copy(toolchain, image, &from, profile)).collect()
}

/// Copies a built image to the folder for built drivers, and returns its path there.
fn copy(toolchain: &Toolchain, image: &str, from: &Path, profile: Profile) -> Result<PathBuf> {
    let to = match toolchain.machine() {
        Machine::X64 => drivers(profile),
        Machine::Arm64 => target().join("drivers/arm64").join(profile.folder()),
    };
    Ok(copy_image(image, from, &to)?.sys)
}
