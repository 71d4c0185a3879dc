//! `cargo xtask test`: every check that can run here.

use std::{env, process::Command};

use anyhow::Result;

use crate::{
    bench,
    build::{self, Profile, with_standin},
    client, deep,
    doctor::{self, Tools},
    environment::ORACLES,
    process::{self, root, run_quietly, target},
    progress::{loud_step, step},
    requirements,
};

/// The module that tests of unpublished samples are in.
const SAMPLES: &str = "samples::";

fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new("cargo");
    command.current_dir(root()).args(arguments);
    command
}

/// Makes the package as its users do.
fn package_with_cargo_make() -> Result<()> {
    process::run(&mut cargo(&["make", "package"]))
}

/// Runs every check; with `deep`, those too that take longer.
pub fn run(deep: bool) -> Result<()> {
    let Tools { x64, arm64, client } = doctor::install()?;
    step("check the format", || {
        run_quietly(&mut cargo(&["fmt", "--all", "--check"]))?;
        let fuzz = ["--manifest-path", "fuzz/Cargo.toml"];
        run_quietly(cargo(&["fmt", "--check"]).args(fuzz))
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
        with_standin(&mut command)
            .env("RUSTC_BOOTSTRAP", "1")
            .arg("--target-dir")
            .arg(target().join("driver-lint"))
            .args(["--", "-D", "warnings"]);
        run_quietly(&mut command)
    })?;
    step("lint the client", || client::lint(client))?;
    loud_step("find a test for every requirement", requirements::check)?;
    step("build the documentation", || {
        run_quietly(
            cargo(&["doc", "--no-deps", "--document-private-items"])
                .env("RUSTDOCFLAGS", "-D warnings"),
        )
    })?;
    for (driver, profile) in [
        (build::SAMPLE, Profile::Debug),
        (build::SAMPLE, Profile::Release),
        (build::PROBE, Profile::Release),
        (build::KMDF, Profile::Release),
        (build::MINIMAL, Profile::Release),
    ] {
        let title = format!("build {}.sys ({})", driver.1, profile.folder());
        step(&title, || build::build(&x64, driver, profile))?;
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
    loud_step("test the client under Wine", || client::test(client))?;
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
    loud_step("count what events cost", || bench::run(bench::Mode::Quick))?;
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
