//! `cargo xtask test`: runs every check that can run on this machine.

use std::{env, path::Path, process::Command, thread};

use anyhow::{Result, anyhow};

use driver_build::toolchain::Rust;

use crate::{
    api, bench,
    build::{self, Profile, with_standin},
    c_drivers, citations, client, deep,
    doctor::{self, Tools},
    environment::ORACLES,
    fuzz, goldens, guest, kit, lint, lock_files, modules, oldest_rust,
    packages::BROWSER,
    process::{self, output_of, root, run_quietly, target},
    progress::{step, step_with_output},
    publish, reproducible, requirements, sample, standin, windows,
};

/// The module that tests which build drivers in other folders are in. They take most of their time in
/// builds that use one processor, and run beside the others.
const BUILT_DRIVERS: &str = "built_drivers::";

/// The module that tests of unpublished samples are in.
const SAMPLES: &str = "samples::";

/// The module that tests which start the stand-in guest often are in. They run with `--deep`.
const WHOLE: &str = "whole::";

/// The drivers that the checks use, and their build profiles.
const DRIVERS: [((&str, &str), Profile); 17] = [
    (sample::DRIVER, Profile::Debug),
    (sample::DRIVER, Profile::Release),
    (build::PROBE, Profile::Debug),
    (build::PROBE, Profile::Release),
    (build::KMDF, Profile::Release),
    (build::KERNEL, Profile::Release),
    (build::WDM, Profile::Release),
    (build::WDM_PNP, Profile::Release),
    (build::USB, Profile::Release),
    (build::FILTER, Profile::Release),
    (build::INTERRUPT, Profile::Release),
    (build::SEVERAL, Profile::Release),
    (build::TRACELOGGING, Profile::Release),
    (build::WPP, Profile::Release),
    (build::QUESTIONS, Profile::Release),
    (build::MINIMAL, Profile::Release),
    (build::FACADES, Profile::Release),
];

fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new("cargo");
    command.current_dir(root()).args(arguments);
    command
}

/// Checks the sources and documents of the repository's main workspace.
fn check_sources(client: Rust, not_run: &mut Vec<String>) -> Result<()> {
    step("Linting the host crates", || {
        let mut command = cargo(&["clippy", "--locked", "--all-targets"]);
        run_quietly(command.args(["--", "-D", "warnings"]))
    })?;
    windows::check()?;
    windows::lint_client(client)?;
    not_run.extend(oldest_rust::check()?);
    step("Checking ids and links", citations::check)?;
    step("Building the documentation", || {
        run_quietly(
            cargo(&["doc", "--locked", "--no-deps", "--document-private-items"])
                .env("RUSTDOCFLAGS", "-D warnings"),
        )
    })
}

/// Lints and builds everything with a separate build folder: the drivers, the stand-ins and the
/// client.
fn check_drivers(tools: &Tools) -> Result<()> {
    step("Linting the drivers", || {
        let mut command = cargo(&["clippy"]);
        for (package, _) in [
            sample::DRIVER,
            build::PROBE,
            build::KMDF,
            build::KERNEL,
            build::WDM,
            build::WDM_PNP,
            build::USB,
            build::FILTER,
            build::INTERRUPT,
            build::SEVERAL,
            build::TRACELOGGING,
            build::WPP,
            build::QUESTIONS,
            build::MINIMAL,
            build::FACADES,
        ] {
            command.args(["--package", package]);
        }
        // The libraries have code for drivers only. Other dependencies are linted elsewhere.
        for library in ["wdk-etw", "wdk-etw-log", "wdk-etw-tracing"] {
            command.args(["--package", library]);
        }
        command.arg("--no-deps");
        let built_in = target().join("driver-lint");
        build::forget_old_functions(&built_in)?;
        with_standin(&mut command)
            .args(["--config", build::PROFILE])
            .env("RUSTC_BOOTSTRAP", "1")
            .arg("--target-dir")
            .arg(built_in)
            .args(["--", "-D", "warnings"]);
        run_quietly(&mut command)
    })?;
    step("Linting the stand-ins", standin::lint)?;
    step("Testing the stand-ins against the WDK's headers", standin::test)?;
    for (driver, profile) in DRIVERS {
        let title = format!("Building {}.sys ({})", driver.1, profile.folder());
        step(&title, || build::build(&tools.x64, driver, profile))?;
    }
    step("Building the drivers in C", || {
        c_drivers::build(&tools.x64)?;
        c_drivers::build_routines(&tools.x64)
    })?;
    let title = format!("Building {}.sys for ARM64", sample::DRIVER.1);
    step(&title, || build::build(&tools.arm64, sample::DRIVER, Profile::Release))?;
    step("Building the sample driver again in another folder", || reproducible::check(&tools.x64))
}

/// Runs two groups of steps at the same time. They build in different folders, and each uses one
/// processor most of the time.
fn at_once<A, B: Send>(
    here: impl FnOnce() -> Result<A>,
    beside: impl FnOnce() -> Result<B> + Send,
) -> Result<(A, B)> {
    thread::scope(|scope| {
        let beside = scope.spawn(beside);
        let here = here();
        let beside = beside.join().map_err(|_| anyhow!("a check's thread panicked"))?;
        match (here, beside) {
            (Err(here), Err(beside)) => Err(anyhow!("{here:#}\nerror: {beside:#}")),
            (here, beside) => Ok((here?, beside?)),
        }
    })
}

/// Returns the command that tests the default members, with what earlier steps have made.
fn host_test(arguments: &[&str]) -> Command {
    let mut command = cargo(&["test", "--locked"]);
    command
        .args(arguments)
        .env("WDK_ETW_PYTHON", ORACLES.python())
        .env("WDK_ETW_DRIVERS", target().join("drivers"))
        .env("WDK_ETW_GUEST", guest::folder())
        .env("WDK_ETW_BROWSER", BROWSER.path().unwrap_or_default())
        .env("WDK_ETW_WINE", client::WINE.path().unwrap_or_default());
    command
}

/// Runs the tests of the default members, including those that need earlier steps' results:
/// drivers, third-party decoders, a browser, the driver package and published packages.
fn test_host_crates(goldens: &Path, not_run: &mut Vec<String>) -> Result<()> {
    let command = |arguments: &[&str]| {
        let mut command = host_test(arguments);
        command.env(goldens::VARIABLE, goldens);
        command
    };
    let has_samples = env::var_os("WDK_ETW_SAMPLES").is_some();
    step_with_output("Testing the host crates", || {
        let mut all = command(&[
            "--tests",
            "--",
            "--include-ignored",
            "--skip",
            BUILT_DRIVERS,
            "--skip",
            WHOLE,
        ]);
        if !has_samples {
            all.args(["--skip", SAMPLES]);
        }
        process::run(&mut all)
    })?;
    if !has_samples {
        let mut list = command(&["--tests", "--quiet", "--", "--list", "--ignored", SAMPLES]);
        let list = output_of(&mut list).unwrap_or_default();
        not_run.extend(
            list.lines()
                .filter_map(|line| line.strip_suffix(": test"))
                .map(|test| format!("{test}: WDK_ETW_SAMPLES does not name the samples' folder")),
        );
    }
    step_with_output("Testing the documentation's examples", || {
        process::run(&mut command(&["--doc"]))
    })
}

/// Runs the tests with separate build folders.
fn test_beside(tools: &Tools) -> Result<()> {
    step("Testing the client under Wine", || client::test(tools.client))?;
    step("Linting and testing the library for user mode", || {
        // A build of its own: the feature would apply to the tests for kernel mode too.
        let package = ["--locked", "--package", "etw-user-mode"];
        let folder = target().join("user-mode");
        let command = |chore| {
            let mut command = cargo(&[chore]);
            command.args(package).arg("--target-dir").arg(&folder);
            command
        };
        run_quietly(command("clippy").args(["--all-targets", "--", "-D", "warnings"]))?;
        run_quietly(
            command("clippy")
                .args(["--package", "wdk-etw", "--features", "wdk-etw/user-mode"])
                .args(["--", "-D", "warnings"]),
        )?;
        let mut stacks = cargo(&["test", "--locked", "--package", "wdk-etw", "--lib"]);
        stacks.args(["--features", "user-mode", "--target-dir"]).arg(&folder);
        process::run_for_results(&mut stacks)?;
        process::run_for_results(&mut command("test"))
    })?;
    step("Model-checking the provider's concurrency", || {
        process::run_for_results(&mut deep::model_check())
    })?;
    step("Testing that the fuzzer's seeds reach their targets", || {
        process::run_for_results(&mut fuzz::seeds_cargo(&["test"]))
    })?;
    // These build in the host crates' folder, and wait until the host crates are built.
    bench::run(bench::Mode::Quick)?;
    step("Testing cargo etw with drivers in other folders", || {
        let arguments = ["--package", "cargo-etw", "--tests", "--", "--include-ignored"];
        process::run_for_results(host_test(&arguments).arg(BUILT_DRIVERS))
    })
}

/// Runs every check; with `deep`, also the checks that take longer.
pub fn run(deep: bool) -> Result<()> {
    let tools = doctor::install()?;
    let mut not_run = Vec::new();
    step("Checking the lock files", lock_files::check)?;
    step("Checking the formatting", || {
        run_quietly(&mut cargo(&["fmt", "--all", "--check"]))?;
        for other in ["fuzz/Cargo.toml", standin::MANIFEST] {
            run_quietly(cargo(&["fmt", "--all", "--check"]).args(["--manifest-path", other]))?;
        }
        Ok(())
    })?;
    step("Checking workflows and PowerShell scripts", lint::check)?;
    step("Checking modules for cycles", modules::check)?;
    step("Comparing the public API with docs/api", api::check)?;
    step("Packaging the published crates", publish::check)?;
    step_with_output("Checking that every requirement has a test", requirements::check)?;
    at_once(
        || {
            check_sources(tools.client, &mut not_run)?;
            step("Building the driver package", || run_quietly(&mut cargo(&["make", "package"])))?;
            kit::check()
        },
        || check_drivers(&tools),
    )?;
    let goldens = step("Fetching mc.exe's goldens from published packages", goldens::fetch)?;
    at_once(|| test_host_crates(&goldens, &mut not_run), || test_beside(&tools))?;
    if deep {
        step("Finding UEFI firmware for virtual machines", guest::find_firmware)?;
        step_with_output("Testing cargo etw vm with the stand-in guest", || {
            let arguments = ["--package", "cargo-etw", "--test", "vm", "--", "--ignored"];
            process::run(host_test(&arguments).arg(WHOLE))
        })?;
        deep::run()?;
    }
    for one in &not_run {
        eprintln!("NOT RUN: {one}");
    }
    Ok(())
}
