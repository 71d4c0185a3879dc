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
};

/// The driver whose service name selects its behaviour.
pub const PROBE: (&str, &str) = ("etw-probe-driver", "etw_probe_driver");
/// The driver that uses the framework as its device controls request.
pub const KMDF: (&str, &str) = ("etw-kmdf-driver", "etw_kmdf_driver");
/// The driver that calls the kernel's routines and checks their results.
pub const KERNEL: (&str, &str) = ("etw-kernel-driver", "etw_kernel_driver");

/// A driver without a framework.
pub const WDM: (&str, &str) = ("etw-wdm-driver", "etw_wdm_driver");
/// A plug-and-play driver without a framework.
pub const WDM_PNP: (&str, &str) = ("etw-wdm-pnp-driver", "etw_wdm_pnp_driver");

/// A driver of a USB device, which uses a feature of wdk-sys.
pub const USB: (&str, &str) = ("etw-usb-driver", "etw_usb_driver");
/// A filter driver.
pub const FILTER: (&str, &str) = ("etw-filter-driver", "etw_filter_driver");
/// A driver of a device with registers and an interrupt.
pub const INTERRUPT: (&str, &str) = ("etw-interrupt-driver", "etw_interrupt_driver");

/// A driver with several providers, one of them of a library crate.
pub const SEVERAL: (&str, &str) = ("etw-several-driver", "etw_several_driver");

/// A driver that traces with another crate.
pub const TRACELOGGING: (&str, &str) = ("etw-tracelogging-driver", "etw_tracelogging_driver");

/// A driver that traces by WPP.
pub const WPP: (&str, &str) = ("etw-wpp-driver", "etw_wpp_driver");

/// The driver that asks what no document says.
pub const QUESTIONS: (&str, &str) = ("etw-questions-driver", "etw_questions_driver");

/// The guide's driver.
pub const MINIMAL: (&str, &str) = ("etw-minimal-driver", "etw_minimal_driver");

/// The driver that shows the facades.
pub const FACADES: (&str, &str) = ("etw-facades-driver", "etw_facades_driver");

/// Returns the folder of built drivers, where tests expect them.
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

/// Adds the arguments that replace the WDK crates by the stand-ins, with a locked lock file.
pub fn with_standin(command: &mut Command) -> &mut Command {
    patch_standin(command).arg("--locked")
}

/// Adds the arguments that replace the WDK crates by the stand-ins, with a separate lock file,
/// since the patched packages resolve differently.
pub fn patch_standin(command: &mut Command) -> &mut Command {
    let root = root();
    standin(&root).replace(command.current_dir(&root))
}

/// Makes wdk-macros read the framework's functions again after a change to the stand-in.
pub fn forget_old_functions(built_in: &Path) -> Result<()> {
    standin(&root()).forget_old_functions(built_in)
}

/// The configuration with the drivers' profiles. Cargo finds it in the driver's folder, where the
/// WDK's flow runs; here, cargo runs in the workspace's.
pub const PROFILE: &str = "driver/.cargo/config.toml";

/// Builds a driver from the source in the folder `root`, and returns the folder with its image.
pub fn compile(
    root: &Path,
    built_in: &Path,
    toolchain: &Toolchain,
    (package, _): (&str, &str),
    profile: Profile,
) -> Result<PathBuf> {
    let standin = standin(root);
    standin.forget_old_functions(built_in)?;
    let mut command = toolchain.build(root, built_in)?;
    standin
        .replace(&mut command)
        .args(["--locked", "--package", package])
        .args(["--config", PROFILE])
        .args((profile == Profile::Release).then_some("--release"));
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
    Ok(copy_image(image, &from, &to)?.sys)
}
