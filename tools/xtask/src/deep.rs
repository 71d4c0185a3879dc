//! `cargo xtask test --deep`: checks that take longer or need another toolchain.

use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::{
    miri,
    process::{self, cargo, root, run_quietly, target},
    progress::{step, step_with_output},
    standin, windows,
};

/// This machine's target. Specifying it explicitly keeps sanitizers out of build scripts.
const HOST: &str = "x86_64-unknown-linux-gnu";

/// The tests to run with sanitizers. Tests that start compilers would not benefit.
const PROVIDER_TESTS: &[&str] = &[
    "--lib", "--test", "it", "--", // Unit tests are in modules with this name.
    "tests::", "declared::", "enable_state::", "parallel::", "registration::", "writing::",
];

/// A test of how threads' stacks are distinguished. It is skipped because `ThreadSanitizer`, unlike
/// a kernel, aligns stacks to several pages.
const SPACED_STACKS: &str = "the_stacks_of_threads_use_most_stripes";

/// The number of cases that a property test tries, instead of 256.
const CASES: &str = "4096";
/// The number of random orders of sessions, requests and unloading, instead of 20.
const SEEDS: &str = "1000";
/// The time in seconds for which threads use the stand-in kernel concurrently, instead of 3.
const SECONDS: &str = "60";
/// The number of preemptions that the model checker tries in each run, instead of 3.
const PREEMPTIONS: &str = "8";
/// The tests that have too many runs with so many preemptions: they do not end within 25 minutes. `cargo
/// xtask test` runs them with 3.
const TOO_MANY_RUNS: [&str; 2] = [
    "a_handle_is_never_used_after_the_rundown_is_closed",
    "notifications_that_overlap_disable_no_event",
];

fn nightly() -> Result<()> {
    let runs = || {
        Command::new("cargo")
            .args(["+nightly", "--version"])
            .output()
            .is_ok_and(|output| output.status.success())
    };
    if !runs() {
        run_quietly(
            Command::new("rustup")
                .args(["toolchain", "install", "nightly", "--profile", "minimal"]),
        )
        .context("cannot install Rust's nightly toolchain, which the sanitizers need")?;
    }
    ensure!(
        runs(),
        "the sanitizers need Rust's nightly toolchain: `rustup toolchain install nightly`"
    );
    Ok(())
}

fn sanitized(sanitizer: &str, packages: &[&str], tests: &[&str]) -> Command {
    let mut command = cargo(&["+nightly", "test", "--target", HOST, "--target-dir"]);
    command.arg(target().join(format!("sanitizer-{sanitizer}")));
    for package in packages {
        command.args(["--package", package]);
    }
    command
        .args(tests)
        .env("RUSTFLAGS", format!("-Zsanitizer={sanitizer} -Cunsafe-allow-abi-mismatch=sanitizer"))
        // Without debug information of its own, cargo would strip the standard library's too, and with it the
        // inlined functions that the suppressions name.
        .env("CARGO_PROFILE_DEV_STRIP", "none");
    command
}

/// Runs all checks that `cargo xtask test` omits. Returns the check that this machine cannot run,
/// if any.
pub fn run() -> Result<Option<String>> {
    windows::check_tests()?;
    step("Building the documentation of the stand-ins", standin::document)?;
    step("Finding the nightly toolchain", nightly)?;
    step_with_output("Testing the provider under AddressSanitizer", || {
        process::run(&mut sanitized("address", &["wdk-etw"], PROVIDER_TESTS))
    })?;
    step_with_output("Testing the .etl reader under AddressSanitizer", || {
        process::run(&mut sanitized("address", &["etl-file", "etl"], &["--lib"]))
    })?;
    let suppressions = root().join("tools/xtask/tsan-suppressions.txt");
    let options = format!("suppressions={} halt_on_error=1", suppressions.display());
    step_with_output("Testing the provider under ThreadSanitizer", || {
        process::run(
            sanitized("thread", &["wdk-etw"], PROVIDER_TESTS)
                .args(["--skip", SPACED_STACKS])
                .env("TSAN_OPTIONS", &options),
        )
    })?;
    step_with_output("Testing threads in the stand-in kernel under ThreadSanitizer", || {
        process::run(
            // Tests run one at a time: otherwise, a test could read data that the standard library
            // initialized in another test, and ThreadSanitizer does not see that synchronization.
            sanitized("thread", &["standin-kernel"], &["--test", "it"])
                .args(["--", "--test-threads=1", "parallel::"])
                .env("TSAN_OPTIONS", &options)
                .env("WDK_ETW_DRIVERS", target().join("drivers"))
                .env("WDK_ETW_STRESS_SECONDS", SECONDS),
        )
    })?;
    step_with_output("Testing the properties with many more cases", || {
        let properties = |arguments: &[&str]| {
            process::run(
                cargo(&["test", "--release", "--package", "wdk-etw"])
                    .args(arguments)
                    .env("PROPTEST_CASES", CASES),
            )
        };
        properties(&["--package", "etl-file", "--lib"])?;
        properties(&["--test", "it", "--", "declared::"])
    })?;
    step_with_output("Testing many more orders of sessions and requests", || {
        process::run(
            cargo(&["test", "--package", "standin-kernel"])
                .args(["--test", "it", "--", "stress::", "parallel::"])
                .env("WDK_ETW_DRIVERS", target().join("drivers"))
                .env("WDK_ETW_STRESS_SECONDS", SECONDS)
                .env("WDK_ETW_SEEDS", SEEDS),
        )
    })?;
    step_with_output("Model-checking with more preemptions", || {
        let mut check = model_check();
        check.env("WDK_ETW_PREEMPTIONS", PREEMPTIONS).arg("--");
        process::run(check.args(TOO_MANY_RUNS.iter().flat_map(|name| ["--skip", *name])))
    })?;
    miri::check_deeply()
}

/// Returns the command that runs the model checker's tests.
pub fn model_check() -> Command {
    let mut command = cargo(&["test", "--locked", "--package", "etw-loom", "--release"]);
    command
        .env("RUSTFLAGS", "--cfg loom")
        // With the drivers' link options, building the tests would take longer than running them.
        .env("CARGO_PROFILE_RELEASE_LTO", "off")
        .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16")
        .env("CARGO_PROFILE_RELEASE_DEBUG", "false")
        // Only loom and the tested code need optimization.
        .args(["--config", "profile.release.package.\"*\".opt-level=0"])
        .args(["--config", "profile.release.package.wdk-etw-schema.opt-level=0"])
        .args(["--config", "profile.release.package.generator.opt-level=3"])
        .args(["--config", "profile.release.package.loom.opt-level=3"])
        .arg("--target-dir")
        .arg(target().join("loom"));
    command
}
