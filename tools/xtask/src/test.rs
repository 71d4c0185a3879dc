//! `cargo xtask test`: runs every check that can run on this machine.

use std::{env, path::Path, process::Command, time::Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use driver_build::toolchain::authors_bootstrap;

use crate::{
    api, bench,
    build::{self, Profile, with_standin},
    c_drivers,
    changed::{self, Change, Inputs},
    citations, client, deep,
    doctor::{self, Tools},
    environment::ORACLES,
    goldens, guest, kit, lint, lock_files, miri, modules, mutants, oldest_rust,
    packages::BROWSER,
    process::{
        self, cargo, output_of, run_quietly, target, use_built_programs, with_built_programs,
        with_lints,
    },
    progress::{self, at_once, step, step_with_output},
    publish,
    reproducible::{self, User},
    requirements, sample, standin, untested, unused, windows, windows_host,
};

/// The module of the tests that build drivers in other folders. They spend most of their time in
/// single-processor builds, and run in parallel with the other tests.
const BUILT_DRIVERS: &str = "built_drivers::";

/// The modules of the tests that wait for other systems most of the time: Wine's command interpreter, and
/// the stand-in guest. They run in parallel with all other tests.
const WAITING: [&str; 2] = ["batch_files::", "vm::short::"];

/// The module of the tests that need unpublished samples.
const SAMPLES: &str = "samples::";

/// The module of the tests with published packages that contain mc.exe's resources.
const GOLDENS: &str = "goldens::";

/// The module of the tests that start the stand-in guest many times; they run with `--deep`.
const WHOLE: &str = "whole::";

/// Builds the default members with their programs and tests, in a single command. Building a single
/// package would select other dependency features and so recompile most dependencies.
fn build_host_crates() -> Result<()> {
    step("Building the host crates and their tests", || {
        run_quietly(&mut cargo(&["build", "--locked", "--all-targets"]))
    })?;
    use_built_programs();
    Ok(())
}

fn lint_host_crates() -> Result<()> {
    step("Linting the host crates", || {
        let mut command = cargo(&["clippy", "--locked", "--all-targets"]);
        run_quietly(command.args(["--", "-D", "warnings"]))
    })
}

/// Runs the checks that build in the host crates' target folder. cargo locks the folder, so these checks
/// cannot run at the same time.
fn check_host_crates(tools: &Tools) -> Result<Option<String>> {
    build_host_crates()?;
    lint_host_crates()?;
    windows::check()?;
    windows::lint_client(tools.client)?;
    let not_run = compare_api()?;
    step("Building the documentation", || {
        // With examples, cargo selects the features that the lints selected, and so does not check
        // the dependencies again. The library standin-kernel replaces the program of its name.
        ["--bins", "--lib"].into_iter().try_for_each(|targets| {
            run_quietly(
                with_lints(&mut cargo(&["doc", "--locked", "--no-deps"]))
                    .args(["--document-private-items", targets, "--examples"])
                    .env("RUSTDOCFLAGS", "-D warnings"),
            )
        })
    })?;
    // The other group of steps has built the client long before.
    step("Building the driver package", || {
        run_quietly(with_built_programs(&mut cargo(&["make", "package"])))
    })?;
    kit::check()?;
    Ok(not_run)
}

/// Lints the drivers, and the libraries' driver-only code.
fn lint_drivers() -> Result<()> {
    step("Linting the drivers", || {
        let mut command = cargo(&["clippy"]);
        for (package, _) in build::DRIVERS {
            command.args(["--package", package]);
        }
        // Other steps lint the other dependencies.
        for library in ["wdk-etw", "wdk-etw-log", "wdk-etw-tracing"] {
            command.args(["--package", library]);
        }
        command.arg("--no-deps");
        with_standin(&mut command)
            .args(["--config", build::PROFILE])
            .env("RUSTC_BOOTSTRAP", "1")
            .args(authors_bootstrap())
            // The macros and build scripts are shared with debug builds of the images.
            .arg("--target-dir")
            .arg(build::built_in())
            .args(["--", "-D", "warnings"]);
        run_quietly(&mut command)
    })
}

/// Lints and tests the WDK stand-ins.
fn check_standins() -> Result<()> {
    step("Linting the stand-ins", standin::lint)?;
    step("Testing the stand-ins against the WDK's headers", standin::test)
}

/// Builds the drivers that tests load.
fn build_drivers(tools: &Tools) -> Result<()> {
    build::build_all(&tools.x64)?;
    let title = format!("Building {}.sys for ARM64", sample::DRIVER.1);
    step(&title, || build::build(&tools.arm64, sample::DRIVER, Profile::Release))?;
    step("Building the drivers in C", || {
        c_drivers::build(&tools.x64)?;
        c_drivers::build_routines(&tools.x64).map(|_| ())
    })
}

/// Lints and builds the drivers.
fn check_drivers(tools: &Tools) -> Result<()> {
    lint_drivers()?;
    build_drivers(tools)?;
    step("Building the sample driver again in another folder", || {
        reproducible::check(&tools.x64, User::Same)
    })
}

/// Runs the checks that build in other folders.
fn check_others(tools: &Tools) -> Result<Vec<String>> {
    step("Building the client and the demo for Windows", || {
        windows_host::build_demo(tools.client)
    })?;
    check_drivers(tools)?;
    let not_run = [oldest_rust::check()?, miri::check()?];
    check_standins()?;
    model_check()?;
    Ok(not_run.into_iter().flatten().collect())
}

/// Returns the command that tests the default members with the outputs of earlier steps.
fn host_test(arguments: &[&str]) -> Command {
    let mut command = cargo(&["test", "--locked"]);
    with_products(command.args(arguments));
    command
}

/// Sets the variables with which tests find the outputs of earlier steps.
fn with_products(command: &mut Command) -> &mut Command {
    with_built_programs(command)
        .env("WDK_ETW_PYTHON", ORACLES.python())
        .env("WDK_ETW_DRIVERS", target().join("drivers"))
        .env("WDK_ETW_GUEST", guest::folder())
        .env("WDK_ETW_BROWSER", BROWSER.path().unwrap_or_default())
        .env("WDK_ETW_WINE", client::WINE.path().unwrap_or_default())
}

/// Runs the tests of the default members, including those that need the outputs of earlier steps:
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
            "--tests", "--", "--include-ignored", "--skip", BUILT_DRIVERS, "--skip", WHOLE,
        ]);
        all.args(WAITING.iter().flat_map(|one| ["--skip", one]));
        if !has_samples {
            all.args(["--skip", SAMPLES]);
        }
        process::run(&mut all)
    })?;
    if !has_samples {
        let mut list = command(&["--tests", "--quiet", "--", "--list", "--ignored", SAMPLES]);
        let list = output_of(&mut list).unwrap_or_default();
        let tests = list.lines().filter_map(|line| line.strip_suffix(": test"));
        not_run.extend(tests.map(|test| format!("{test}: WDK_ETW_SAMPLES names no folder")));
    }
    step_with_output("Testing the documentation's examples", || {
        process::run(&mut command(&["--doc"]))
    })
}

/// Lints and tests the library for user-mode programs.
fn test_user_mode() -> Result<()> {
    step("Linting and testing the library for user mode", || {
        // These are separate commands, because the feature would otherwise also apply to the
        // kernel-mode tests.
        let command = |chore| cargo(&[chore, "--locked", "--package", "etw-user-mode"]);
        run_quietly(command("clippy").args(["--all-targets", "--", "-D", "warnings"]))?;
        run_quietly(
            command("clippy")
                .args(["--package", "wdk-etw", "--features", "wdk-etw/user-mode"])
                .args(["--", "-D", "warnings"]),
        )?;
        process::run_for_results(&mut command("test"))
    })
}

fn model_check() -> Result<()> {
    step("Model-checking the provider's concurrency", || {
        process::run_for_results(&mut deep::model_check())
    })
}

/// Runs the tests that wait most of the time.
fn test_waiting() -> Result<()> {
    // The other test programs, of which one takes a single filter, have none of these modules.
    let mut arguments = vec!["--test", "it", "--", "--include-ignored"];
    arguments.extend(WAITING);
    step("Testing the virtual machine's scripts and guest", || {
        process::run_for_results(&mut host_test(&arguments))
    })
}

/// Runs the tests that can run beside the host crates' tests.
fn test_beside(tools: &Tools) -> Result<()> {
    step("Testing the client under Wine", || client::test(tools.client))?;
    step("Running the demo on Linux and under Wine", windows_host::demo)?;
    test_user_mode()?;
    test_export()?;
    bench::run(bench::Mode::Quick)?;
    step("Testing cargo etw with drivers in other folders", || {
        let arguments = ["--tests", "--", "--include-ignored", BUILT_DRIVERS];
        process::run_for_results(&mut host_test(&arguments))
    })
}

/// Lints and tests the program that exports traces, which is no default member so that nothing else
/// compiles its tables.
fn test_export() -> Result<()> {
    step("Linting and testing the export of traces", || {
        let command = |chore| cargo(&[chore, "--locked", "--package", "etl-export"]);
        run_quietly(command("clippy").args(["--all-targets", "--", "-D", "warnings"]))?;
        process::run_for_results(with_products(command("test").args(["--", "--include-ignored"])))
    })
}

/// Compares the public API with its text files, or returns the reason why they cannot be compared.
fn compare_api() -> Result<Option<String>> {
    let reason = step("Comparing the public API with docs/api", api::check)?;
    Ok(reason.map(|reason| format!("comparing the public API with docs/api: {reason}")))
}

/// Runs the checks that take only seconds: formatting, scripts, ids, links and lists.
fn check_quickly() -> Result<()> {
    step("Checking the lock files", lock_files::check)?;
    step("Checking the formatting", || {
        run_quietly(&mut cargo(&["fmt", "--all", "--check"]))?;
        run_quietly(
            cargo(&["fmt", "--all", "--check"]).args(["--manifest-path", standin::MANIFEST]),
        )
    })?;
    step("Checking workflows and PowerShell scripts", lint::check)?;
    step("Checking modules for cycles", modules::check)?;
    step("Checking that targets without tests have none", untested::check)?;
    step("Checking for unused dependencies", unused::check)?;
    step("Packaging the published crates", publish::check)?;
    step_with_output("Checking that every requirement has a test", requirements::check)?;
    step("Checking ids and links", citations::check)
}

/// Runs the deep checks that need the outputs of the other steps.
fn test_whole(tools: &Tools) -> Result<()> {
    step("Finding UEFI firmware for virtual machines", guest::find_firmware)?;
    step_with_output("Testing cargo etw vm with the stand-in guest", || {
        process::run(host_test(&["--tests", "--", "--ignored"]).arg(WHOLE))
    })?;
    step_with_output("Following the guide with an installed cargo etw", || {
        let mut guide = host_test(&["--tests", "--", "--ignored", "the_guide_is_executed"]);
        process::run(guide.env("WDK_ETW_INSTALL", "yes"))
    })?;
    step("Building the sample driver again, as another user in another folder", || {
        reproducible::check(&tools.x64, User::Other)
    })?;
    windows_host::run_rest(tools.client)?;
    step("Running a share of the mutants", mutants::run_share)
}

/// Runs all checks, unless they have already passed with the same inputs and `again` is false. With
/// `deep`, also runs the checks that take longer.
pub fn run(deep: bool, again: bool) -> Result<()> {
    let inputs = Inputs::read();
    let passed = inputs.as_ref().and_then(Inputs::passed);
    if let (false, false, Some(not_run)) = (deep, again, passed) {
        println!(
            "All checks passed with these files and this compiler; `--again` runs them again."
        );
        report(&not_run);
        return Ok(());
    }
    let start = Instant::now();
    let tools = doctor::install()?;
    check_quickly()?;
    let (host, others) = at_once(|| check_host_crates(&tools), || check_others(&tools))?;
    let mut not_run: Vec<String> = others.into_iter().chain(host).collect();
    let goldens = step("Fetching mc.exe's goldens from published packages", goldens::fetch)?;
    at_once(
        || test_host_crates(&goldens, &mut not_run),
        || at_once(test_waiting, || test_beside(&tools)),
    )?;
    if deep {
        let ((), deep) = at_once(|| test_whole(&tools), deep::run)?;
        not_run.extend(deep);
    }
    report(&not_run);
    report_cost(start);
    // A check, or an author, may have written a file during the run.
    match inputs {
        Some(inputs) if Some(&inputs) == Inputs::read().as_ref() => inputs.record(&not_run),
        _ => Ok(()),
    }
}

/// Prints the checks that were not run.
fn report(not_run: &[String]) {
    for one in not_run {
        eprintln!("NOT RUN: {one}");
    }
}

/// Prints what the checks cost: each step's processor seconds, how busy they kept the processors, and the
/// disk space of the target folder.
fn report_cost(start: Instant) {
    let (steps, total) = progress::steps();
    for (seconds, title) in steps {
        println!("{seconds:6.0} {title}");
    }
    let elapsed = start.elapsed().as_secs_f64();
    let busy = 100.0 * total / elapsed;
    println!("{total:6.0} processor seconds in {elapsed:.0} s ({busy:.0} % of one processor)");
    let space = output_of(Command::new("du").args(["-s", "--block-size=MB"]).arg(target()));
    println!("{}", space.unwrap_or_default());
}

/// The checks that [`run_changed`] leaves to [`run`].
const LEFT_OUT: [&str; 9] = [
    "compiling for Windows, and with the oldest Rust",
    "the documentation and its examples",
    "the driver package and the kit",
    "the sample driver in another folder",
    "the client and the demo under Wine",
    "drivers that cargo etw builds in other folders",
    "unpublished samples",
    "packages with resources from mc.exe",
    "the benchmark's goals",
];

/// Runs the checks that can be affected by changes since a commit, and lists the omitted checks.
pub fn run_changed(base: Option<&str>) -> Result<()> {
    let change = changed::since(base)?;
    println!("{} changed files can affect:", change.files.len());
    for package in change.packages.keys() {
        println!("    {package}");
    }
    let tools = doctor::install()?;
    check_quickly()?;
    let drivers = build::DRIVERS.map(|(package, _)| package);
    let libraries = ["wdk-etw", "wdk-etw-log", "wdk-etw-tracing"];
    if change.affects(&drivers) || change.affects(&libraries) {
        lint_drivers()?;
    }
    if change.has_standins {
        check_standins()?;
    }
    if !change.packages.is_empty() {
        // This also builds missing images; cargo skips images that are up to date.
        if change.affects(&changed::IMAGE_USERS) {
            build_drivers(&tools)?;
        }
        lint_host_crates()?;
        build_host_crates()?;
        if let Some(reason) = compare_api()? {
            eprintln!("NOT RUN: {reason}");
        }
        test_packages(&change)?;
    }
    if change.affects(&["etw-user-mode"]) {
        test_user_mode()?;
    }
    if change.affects(&["etw-loom"]) {
        model_check()?;
    }
    if change.affects(&["wdk-etw"])
        && let Some(reason) = miri::check()?
    {
        eprintln!("NOT RUN: {reason}");
    }
    println!("Left out, and run by `cargo xtask test`:");
    let others = change.of - change.packages.len();
    println!("    the tests of {others} packages that the change does not affect");
    for one in LEFT_OUT {
        println!("    {one}");
    }
    Ok(())
}

/// Runs the tests of the default members that a change affects. Uses the programs that
/// [`build_host_crates`] built, because cargo would build selected packages with other features.
fn test_packages(change: &Change) -> Result<()> {
    let mut list = cargo(&["test", "--locked", "--tests", "--no-run", "--message-format=json"]);
    let list = list.output().context("cannot start cargo test")?;
    ensure!(list.status.success(), "{}", String::from_utf8_lossy(&list.stderr));
    let list = String::from_utf8_lossy(&list.stdout);
    for line in list.lines() {
        let message: Value = serde_json::from_str(line)?;
        let (Some(program), Some(manifest)) =
            (message["executable"].as_str(), message["manifest_path"].as_str())
        else {
            continue;
        };
        let is_test = message["profile"]["test"] == true || message["target"]["kind"][0] == "test";
        let package = change.packages.iter().find(|(_, path)| path.as_str() == manifest);
        let Some((package, _)) = package.filter(|_| is_test) else {
            continue;
        };
        let name = message["target"]["name"].as_str().unwrap_or_default();
        // These tests need the driver package.
        if (package.as_str(), name) == ("xtask", "package") {
            continue;
        }
        step_with_output(&format!("Testing {package} ({name})"), || {
            let mut test = Command::new(program);
            let folder = Path::new(manifest).parent().unwrap_or_else(|| Path::new("/"));
            test.current_dir(folder)
                .env("CARGO_MANIFEST_DIR", folder)
                .args(["--include-ignored", "--quiet"]);
            for skipped in [BUILT_DRIVERS, WHOLE, SAMPLES, GOLDENS] {
                test.args(["--skip", skipped]);
            }
            process::run(with_products(&mut test))
        })?;
    }
    Ok(())
}
