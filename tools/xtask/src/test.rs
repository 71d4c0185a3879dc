//! `cargo xtask test`: every check that can run here.

use std::{env, process::Command};

use anyhow::Result;

use crate::{
    bench,
    build::{self, Profile, with_standin},
    citations, client, deep,
    doctor::{self, Tools},
    environment::ORACLES,
    fuzz, goldens, lock_files, oldest_rust,
    packages::BROWSER,
    process::{self, root, run_quietly, target},
    progress::{loud_step, step},
    reproducible, requirements, standin, windows,
};

/// The module that tests of unpublished samples are in.
const SAMPLES: &str = "samples::";

/// The drivers that the checks use, and how each is built.
const DRIVERS: [((&str, &str), Profile); 6] = [
    (build::SAMPLE, Profile::Debug),
    (build::SAMPLE, Profile::Release),
    (build::PROBE, Profile::Debug),
    (build::PROBE, Profile::Release),
    (build::KMDF, Profile::Release),
    (build::MINIMAL, Profile::Release),
];

fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new("cargo");
    command.current_dir(root()).args(arguments);
    command
}

/// Checks the format of every workspace, and lints what is not the client.
fn check_sources() -> Result<()> {
    step("Checking the format", || {
        run_quietly(&mut cargo(&["fmt", "--all", "--check"]))?;
        for other in ["fuzz/Cargo.toml", standin::MANIFEST] {
            run_quietly(cargo(&["fmt", "--all", "--check"]).args(["--manifest-path", other]))?;
        }
        Ok(())
    })?;
    step("Linting the host crates", || {
        let mut command = cargo(&["clippy", "--locked", "--all-targets"]);
        run_quietly(command.args(["--", "-D", "warnings"]))
    })?;
    step("Linting the drivers", || {
        let mut command = cargo(&["clippy"]);
        for (package, _) in [build::SAMPLE, build::PROBE, build::KMDF, build::MINIMAL] {
            command.args(["--package", package]);
        }
        let built_in = target().join("driver-lint");
        build::forget_old_functions(&built_in)?;
        with_standin(&mut command)
            .env("RUSTC_BOOTSTRAP", "1")
            .arg("--target-dir")
            .arg(built_in)
            .args(["--", "-D", "warnings"]);
        run_quietly(&mut command)
    })?;
    step("Linting the stand-ins", standin::lint)?;
    windows::check()
}

/// Checks that the documents and the sources agree, and builds the API documentation.
fn check_documents() -> Result<()> {
    loud_step("Finding a test for every requirement", requirements::check)?;
    step("Resolving ids and links", citations::check)?;
    step("Building the documentation", || {
        run_quietly(
            cargo(&["doc", "--locked", "--no-deps", "--document-private-items"])
                .env("RUSTDOCFLAGS", "-D warnings"),
        )?;
        standin::document()
    })
}

/// Builds every driver, and the package as its users do.
fn build_all(tools: &Tools) -> Result<()> {
    for (driver, profile) in DRIVERS {
        let title = format!("Building {}.sys ({})", driver.1, profile.folder());
        step(&title, || build::build(&tools.x64, driver, profile))?;
    }
    step("Building etw_sample_driver.sys for ARM64", || {
        build::build(&tools.arm64, build::SAMPLE, Profile::Release)
    })?;
    step("Building the sample driver again in another folder", || {
        reproducible::check(&tools.x64)
    })?;
    loud_step("Making the package", || {
        process::run(&mut cargo(&["make", "package"]))
    })
}

/// A `cargo test` command whose tests find the drivers and the foreign readers.
fn test_command(arguments: &[&str]) -> Command {
    let mut command = cargo(&["test", "--locked"]);
    command
        .args(arguments)
        .env("WDK_ETW_PYTHON", ORACLES.python())
        .env("WDK_ETW_DRIVERS", target().join("drivers"))
        .env("WDK_ETW_BROWSER", BROWSER.path().unwrap_or_default())
        .env("WDK_ETW_WINE", client::WINE.path().unwrap_or_default());
    command
}

/// Runs the tests that need foreign readers, which a bare `cargo test` leaves out.
fn test_with_foreign_readers() -> Result<()> {
    loud_step("Showing the drivers' resources to foreign readers", || {
        let mut command = test_command(&["--package", "wdk-etw-build", "--test", "readers"]);
        process::run(command.args(["--", "--ignored", "--skip", SAMPLES]))
    })?;
    loud_step("Showing a page to a browser", || {
        let mut command = test_command(&["--package", "etl-file", "--test", "report"]);
        process::run(command.args(["--", "--ignored"]))
    })?;
    loud_step("Taking the package apart", || {
        let mut command = test_command(&["--package", "xtask", "--test", "package"]);
        process::run(command.args(["--test", "windows_flow", "--", "--ignored"]))
    })?;
    loud_step("Showing the provider's events to foreign decoders", || {
        let mut command = test_command(&["--package", "wdk-etw", "--test", "foreign"]);
        process::run(command.args(["--", "--ignored"]))
    })
}

/// Runs the tests of samples that nobody may publish, where there are any.
fn test_samples() -> Result<()> {
    if env::var_os("WDK_ETW_SAMPLES").is_none() {
        eprintln!(
            "NOT RUN the tests of samples that nobody may publish: WDK_ETW_SAMPLES does not name \
             their folder"
        );
        return Ok(());
    }
    loud_step("Testing samples that nobody may publish", || {
        let mut command = test_command(&["--package", "wdk-etw-build", "--package", "etl-file"]);
        process::run(command.args(["--tests", "--", "--ignored", SAMPLES]))
    })
}

/// Runs every check; with `deep`, those too that take longer.
pub fn run(deep: bool) -> Result<()> {
    let tools = doctor::install()?;
    step("Checking the lock files", lock_files::check)?;
    check_sources()?;
    step("Linting the client", || client::lint(tools.client))?;
    oldest_rust::check()?;
    check_documents()?;
    build_all(&tools)?;
    loud_step("Testing the host crates", || {
        process::run(&mut test_command(&[]))
    })?;
    loud_step(
        "Testing that the fuzzer's seeds reach their targets",
        || process::run(&mut fuzz::seeds_cargo(&["test"])),
    )?;
    loud_step(
        "Testing the stand-ins against the WDK's headers",
        standin::test,
    )?;
    loud_step("Testing the client under Wine", || {
        client::test(tools.client)
    })?;
    test_with_foreign_readers()?;
    goldens::test()?;
    test_samples()?;
    loud_step("Counting what events cost", || {
        bench::run(bench::Mode::Quick)
    })?;
    loud_step("Model-checking the provider's concurrency", || {
        process::run(&mut deep::model_check())
    })?;
    if deep { deep::run() } else { Ok(()) }
}
