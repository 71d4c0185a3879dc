//! `cargo xtask windows-host`: builds the stand-in kernel and `cargo etw` for Windows, and runs them
//! under Wine. What they print is compared with what the Linux programs print.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail, ensure};
use driver_build::{files, toolchain::Rust};

use crate::{
    build::{self, Profile},
    client::{self, TARGET, WINE, with_wine},
    process::{self, printed, program, root, run_quietly, target},
    progress::step,
    sample::DRIVER,
};

/// The packages of the programs, and the programs that are run.
const PROGRAMS: [(&str, &str); 4] = [
    ("etw-scenarios", "tour"),
    ("etl", "etl"),
    ("standin-kernel", "standin-kernel"),
    ("cargo-etw", "cargo-etw"),
];

/// The stand-in kernel's tests that do not run under Wine, each with the reason. The tests of the
/// confinement by Landlock and seccomp, and those that read `/proc`, are compiled for Linux only.
const EXCEPTIONS: &[(&str, &str)] = &[];

/// The script of the comparisons, which uses the device of the sample driver.
const SCRIPT: &str = "add-device\nopen\nwrite \"one\"\nread 3\nclose\nremove\n";

/// The comparisons of `run`: arguments for both hosts.
const RUNS: [&[&str]; 4] =
    [&[], &["--message-format", "json"], &["--special-pool"], &["--clients", "3", "--seed", "7"]];

fn built_in() -> PathBuf {
    target().join("windows-host")
}

fn built(name: &str) -> PathBuf {
    built_in().join(TARGET).join("debug").join(format!("{name}.exe"))
}

fn cargo(rust: Rust, chore: &str) -> Command {
    let mut command = client::cross_cargo(rust, chore);
    command.arg(built_in()).args(["--config", "profile.dev.debug=false"]);
    command
}

/// Returns a Windows program, to run under Wine.
fn under_wine(name: &str) -> Result<Command> {
    let mut command = Command::new(WINE.path().context("Wine is not installed")?);
    with_wine(command.current_dir(root()).arg(built(name)));
    Ok(command)
}

/// Builds the programs for Windows.
fn build_programs(rust: Rust) -> Result<()> {
    let mut command = cargo(rust, "build");
    for (package, name) in PROGRAMS {
        command.args(["--package", package, "--bin", name]);
    }
    run_quietly(command.args(["--features", "standin-kernel/run"]))?;
    client::build_dll()
}

/// Returns the output of a program without what differs from run to run: the time of day, which
/// starts a line, and the lines that contain paths.
fn comparable(printed: &[u8]) -> Vec<String> {
    const OTHER: [&str; 7] =
        ["File ", "Time ", "The driver:", "The traces:", "To print", "A timeline:", "trace: "];
    /// `Windows has no equivalent of Landlock`, which is a note of its own.
    const NOTE: &str = "is not kept from files and sockets";
    let text = String::from_utf8_lossy(printed);
    let lines = text.lines().filter(|line| {
        !line.contains(NOTE) && !OTHER.iter().any(|start| line.trim_start().starts_with(start))
    });
    lines.map(|line| without_time(line).to_owned()).collect()
}

/// Removes a time of day with seven decimal places from the start of a line.
fn without_time(line: &str) -> &str {
    let bytes = line.as_bytes();
    let is_time = bytes.get(2) == Some(&b':') && bytes.get(8) == Some(&b'.');
    if is_time { line.get(16..).unwrap_or(line) } else { line }
}

/// Compares the output of a program on both hosts. Returns the number of lines.
fn compare(what: &str, linux: &[u8], windows: &[u8]) -> Result<usize> {
    let (linux, windows) = (comparable(linux), comparable(windows));
    let differing = linux.iter().zip(&windows).find(|(here, there)| here != there);
    if let Some((here, there)) = differing {
        bail!("{what}: Linux prints\n{here}\nbut Windows prints\n{there}");
    }
    ensure!(
        linux.len() == windows.len(),
        "{what}: Linux prints {} lines, Windows {}",
        linux.len(),
        windows.len()
    );
    Ok(linux.len())
}

/// Runs the demo on both hosts.
fn compare_demo(sys: &Path) -> Result<usize> {
    let out = built_in().join("demo");
    let linux = {
        let mut tour = Command::new(program("etw-scenarios", "tour", false)?);
        printed(tour.arg(sys).arg(&out).arg(program("etl", "etl", false)?))?
    };
    let windows = printed(under_wine("tour")?.arg(sys).arg(&out).arg(built("etl")))?;
    compare("the demo", &linux, &windows)
}

/// Builds `standin-kernel` for this machine. `cargo xtask test` has built it with the same features.
fn kernel_of_linux() -> Result<PathBuf> {
    let arguments =
        ["build", "--locked", "--package", "standin-kernel", "--features", "run", "--bins"];
    run_quietly(&mut process::cargo(&arguments))?;
    Ok(target().join("debug/standin-kernel"))
}

/// Runs the sample driver by scripts with `standin-kernel run` and `cargo etw run` on both hosts.
fn compare_runs(sys: &Path) -> Result<usize> {
    let script = built_in().join("script.txt");
    files::write(&script, SCRIPT)?;
    let etl = built_in().join("script.etl");
    let kernel_here = kernel_of_linux()?;
    let mut lines = 0;
    for more in RUNS {
        let arguments = |command: &mut Command| {
            command.args(more).arg("--script").arg(&script).arg("--etl").arg(&etl);
            printed(command)
        };
        let linux = arguments(Command::new(&kernel_here).arg("run").arg(sys))?;
        let kernel = arguments(under_wine("standin-kernel")?.arg("run").arg(sys))?;
        lines += compare(&format!("standin-kernel run {}", more.join(" ")), &linux, &kernel)?;
        let etw = arguments(under_wine("cargo-etw")?.args(["etw", "run", "--image"]).arg(sys))?;
        lines += compare(&format!("cargo etw run {}", more.join(" ")), &linux, &etw)?;
    }
    Ok(lines)
}

/// Runs the stand-in kernel's tests under Wine.
fn test(rust: Rust) -> Result<()> {
    let mut command = cargo(rust, "test");
    command.args(["--package", "standin-kernel", "--lib", "--test", "it", "--"]);
    for (test, reason) in EXCEPTIONS {
        println!("not under Wine: {test}: {reason}");
        command.args(["--skip", test]);
    }
    process::run_for_results(with_wine(&mut command))
}

/// Builds the programs for Windows, and compares their output with that of the Linux programs. Also
/// runs the stand-in kernel's tests under Wine, unless `quick` is true.
pub fn run(quick: bool) -> Result<()> {
    let rust = step("Finding the compiler for Windows programs", client::find_or_install_compiler)?;
    let sys = build::drivers(Profile::Release).join(format!("{}.sys", DRIVER.1));
    step("Building the stand-in kernel for Windows", || build_programs(rust))?;
    let lines = step("Comparing the demo on Linux and Windows", || compare_demo(&sys))?;
    println!("{lines} lines of the demo are the same on both hosts");
    if quick {
        return Ok(());
    }
    let lines = step("Comparing runs on Linux and Windows", || compare_runs(&sys))?;
    println!("{lines} lines of {} runs are the same on both hosts", 2 * RUNS.len());
    step("Testing the stand-in kernel under Wine", || test(rust))
}
