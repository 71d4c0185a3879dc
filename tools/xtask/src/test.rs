//! `cargo xtask test`: every check that can run here.

use std::{env, process::Command};

use anyhow::Result;

use crate::{
    build::{self, Profile, with_standin},
    client, deep,
    environment::ORACLES,
    lock_files, package, packages,
    process::{self, root, run_quietly, target},
    progress::{loud_step, step},
    requirements, standin,
    toolchain::{Machine, Toolchain},
};

/// The module that tests of unpublished samples are in.
const SAMPLES: &str = "samples::";

fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new("cargo");
    command.current_dir(root()).args(arguments);
    command
}

/// Installs what the checks need besides the cross toolchain.
fn install_tools() -> Result<()> {
    step("find the client's compiler", client::install_compiler)?;
    step("install Wine", client::install_wine)?;
    step("install cargo-make", packages::install_cargo_make)?;
    step("install what signs", package::install_tools)?;
    step("install the foreign decoders", || ORACLES.install())?;
    step("install the browser", packages::install_browser)
}

/// Makes the package as its users do.
fn package_with_cargo_make() -> Result<()> {
    packages::install_cargo_make()?;
    process::run(&mut cargo(&["make", "package"]))
}

/// Checks the format of every workspace, and lints what is not the client.
fn check_sources() -> Result<()> {
    step("check the format", || {
        run_quietly(&mut cargo(&["fmt", "--all", "--check"]))?;
        for other in ["fuzz/Cargo.toml", standin::MANIFEST] {
            run_quietly(cargo(&["fmt", "--all", "--check"]).args(["--manifest-path", other]))?;
        }
        Ok(())
    })?;
    step("lint the host crates", || {
        run_quietly(&mut cargo(&[
            "clippy",
            "--all-targets",
            "--",
            "-D",
            "warnings",
        ]))
    })?;
    step("lint the drivers", || {
        let mut command = cargo(&[
            "clippy",
            "--package",
            build::SAMPLE.0,
            "--package",
            build::PROBE.0,
            "--package",
            build::KMDF.0,
            "--package",
            build::MINIMAL.0,
        ]);
        let built_in = target().join("driver-lint");
        build::forget_old_functions(&built_in)?;
        with_standin(&mut command)
            .env("RUSTC_BOOTSTRAP", "1")
            .arg("--target-dir")
            .arg(built_in)
            .args(["--", "-D", "warnings"]);
        run_quietly(&mut command)
    })?;
    step("lint the stand-ins", standin::lint)
}

/// Runs every check; with `deep`, those too that take longer.
pub fn run(deep: bool) -> Result<()> {
    let toolchain = step("find the cross toolchain", || {
        Toolchain::find_or_install(Machine::X64)
    })?;
    let arm64 = step("find it for ARM64", || {
        Toolchain::find_or_install(Machine::Arm64)
    })?;
    install_tools()?;
    step("check the lock files", lock_files::check)?;
    check_sources()?;
    step("lint the client", client::lint)?;
    loud_step("find a test for every requirement", requirements::check)?;
    step("build the documentation", || {
        run_quietly(
            cargo(&["doc", "--no-deps", "--document-private-items"])
                .env("RUSTDOCFLAGS", "-D warnings"),
        )?;
        standin::document()
    })?;
    for (driver, profile) in [
        (build::SAMPLE, Profile::Debug),
        (build::SAMPLE, Profile::Release),
        (build::PROBE, Profile::Release),
        (build::KMDF, Profile::Release),
        (build::MINIMAL, Profile::Release),
    ] {
        let title = format!("build {}.sys ({})", driver.1, profile.folder());
        step(&title, || build::build(&toolchain, driver, profile))?;
    }
    step("build etw_sample_driver.sys for ARM64", || {
        build::build(&arm64, build::SAMPLE, Profile::Release)
    })?;
    loud_step("make the package", package_with_cargo_make)?;
    loud_step("test", || {
        process::run(
            cargo(&["test"])
                .env("WDK_ETW_PYTHON", ORACLES.python())
                .env("WDK_ETW_DRIVERS", target().join("drivers")),
        )
    })?;
    loud_step(
        "test the stand-ins against the WDK's headers",
        standin::test,
    )?;
    loud_step("test the client under Wine", client::test)?;
    loud_step("show the drivers' resources to foreign readers", || {
        process::run(
            cargo(&["test", "--package", "wdk-etw-build", "--test", "readers"])
                .args(["--", "--ignored", "--skip", SAMPLES])
                .env("WDK_ETW_PYTHON", ORACLES.python())
                .env("WDK_ETW_DRIVERS", target().join("drivers")),
        )
    })?;
    loud_step("take the package apart", || {
        process::run(
            cargo(&["test", "--package", "xtask", "--test", "package"])
                .args(["--", "--ignored"])
                .env("WDK_ETW_PYTHON", ORACLES.python()),
        )
    })?;
    loud_step("show what the provider writes to foreign decoders", || {
        process::run(
            cargo(&["test", "--package", "wdk-etw", "--test", "foreign"])
                .args(["--", "--ignored"])
                .env("WDK_ETW_PYTHON", ORACLES.python()),
        )
    })?;
    if env::var_os("WDK_ETW_SAMPLES").is_some() {
        loud_step("compare with samples that nobody may publish", || {
            process::run(
                cargo(&[
                    "test",
                    "--package",
                    "wdk-etw-build",
                    "--package",
                    "etl-file",
                ])
                .args(["--tests", "--", "--ignored", SAMPLES])
                .env("WDK_ETW_PYTHON", ORACLES.python()),
            )
        })?;
    } else {
        eprintln!(
            "NOT RUN compare with samples that nobody may publish: WDK_ETW_SAMPLES does not name \
             their folder"
        );
    }
    loud_step("model-check the provider's concurrency", || {
        process::run(&mut deep::model_check())
    })?;
    if deep { deep::run() } else { Ok(()) }
}
