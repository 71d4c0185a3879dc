//! `cargo xtask windows-host`: builds the stand-in kernel and `cargo etw` for Windows, and runs them
//! under Wine. Their output must be that of the Linux programs.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use driver_build::{
    files,
    toolchain::{Machine, Rust, Toolchain, cargo_home},
};
use serde_json::Value;

use crate::{
    build::{self, Profile},
    c_drivers,
    client::{self, TARGET, WINE, with_wine},
    process::{self, printed, program, root, run_quietly, target},
    progress::step,
    sample::DRIVER,
};

/// The packages of the programs that [`run`] builds, and the programs.
const PROGRAMS: [(&str, &str); 2] =
    [("standin-kernel", "standin-kernel"), ("cargo-etw", "cargo-etw")];

/// The package and program of the demo.
const TOUR: (&str, &str) = ("etw-scenarios", "tour");

/// The stand-in kernel's tests that do not pass under Wine, each with the reason. The tests of the
/// confinement by Landlock and seccomp, and those that read `/proc`, are compiled for Linux only.
const EXCEPTIONS: [(&str, &str); 8] = [
    (
        "c_drivers::a_system_that_cannot_report_system_calls_says_so_for_such_images",
        "sets a variable for Linux before 5.11",
    ),
    ("cli::a_driver_gets_a_folder_and_values_in_the_registry", SYMLINK),
    ("ntoskrnl::files_are_in_the_folder_and_nowhere_else", SYMLINK),
    ("cli::a_driver_that_ends_its_process_is_reported", ENDS),
    ("cli::a_reader_may_be_slow", ENDS),
    ("cli::the_end_of_a_process_names_the_authors_line_and_shows_every_event", ENDS),
    ("foreign_emulator::speakeasy_reaches_the_framework_and_etw", "runs Python of Linux"),
    (
        "image::microsofts_crates_are_the_published_ones",
        "runs cargo, which does not run under Wine",
    ),
];
const SYMLINK: &str = "Wine 8 makes no symbolic links";
const ENDS: &str = "the driver ends its process by a system call of Linux";

/// A script that uses the device of the sample driver.
const SCRIPT: &str = "add-device\nopen\nwrite \"one\"\nread 3\nclose\nremove\n";

/// The arguments of the compared runs of the sample driver.
const RUNS: [&[&str]; 4] =
    [&[], &["--message-format", "json"], &["--special-pool"], &["--clients", "3", "--seed", "7"]];

/// The services under which the driver that breaks rules is run: each is a mistake.
const MISTAKES: [&str; 14] = [
    "not-canonical", "privileged", "leak", "forgotten-unregister", "pageable-data", "user-pointer",
    "wait-at-dispatch", "lock-held", "unload-fault", "stack-overflow", "fast-fail", "v09", "v41",
    "v54",
];

/// The number of damaged images, and the seconds after which a run of one counts as hanging.
const DAMAGED: u64 = 100;
const HANGS: u64 = 60;

fn built_in() -> PathBuf {
    target().join("windows-host")
}

fn built(name: &str) -> PathBuf {
    built_in().join(TARGET).join("debug").join(format!("{name}.exe"))
}

/// Returns a cargo command for programs and tests that can unwind, unlike [`client::cargo`]'s.
fn cargo(rust: Rust, chore: &str) -> Command {
    let mut command = client::cross_cargo(rust, chore);
    command.arg(built_in());
    command
}

/// Returns a command that runs a Windows program under Wine.
fn under_wine(program: &Path) -> Result<Command> {
    let mut command = Command::new(WINE.path().context("Wine is not installed")?);
    with_wine(command.current_dir(root()).arg(program));
    Ok(command)
}

/// Returns the lines of an output without what differs from run to run: the time of day, the trace's
/// start and end, and addresses of memory in the process. A line of JSON is compared as a value.
fn comparable(printed: &[u8]) -> Vec<Value> {
    let text = String::from_utf8_lossy(printed);
    let lines = text.lines().filter(|line| !line.starts_with("Time ") && !is_date(line));
    lines
        .map(|line| {
            serde_json::from_str(line).map_or_else(
                |_| without_addresses(&without_time(line).replace('\\', "/")).into(),
                |mut value: Value| {
                    value.as_object_mut().map(|members| members.remove("time"));
                    value
                },
            )
        })
        .collect()
}

/// Returns whether a line is a date, as `etl` prints it above the events of a day.
fn is_date(line: &str) -> bool {
    line.len() == 10 && line.bytes().all(|byte| byte == b'-' || byte.is_ascii_digit())
}

/// Removes a time of day with seven decimal places from the start of a line.
fn without_time(line: &str) -> &str {
    let text = line.trim_start();
    let bytes = text.as_bytes();
    let is_time = bytes.get(2) == Some(&b':') && bytes.get(8) == Some(&b'.');
    if is_time { text.get(16..).unwrap_or(text) } else { line }
}

/// Replaces the addresses that the host chooses, which are in the upper half of user space.
fn without_addresses(line: &str) -> String {
    /// The digits of an address that both hosts have in common.
    const START: &str = "0x00007";
    let mut parts = line.split(START);
    let mut all = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|one: char| !one.is_ascii_hexdigit()).unwrap_or(part.len());
        all.push_str("0x…");
        all.push_str(part.get(end..).unwrap_or_default());
    }
    all
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

/// Builds the demo's programs for Windows, with the dependencies of the client's build.
pub fn build_demo(rust: Rust) -> Result<()> {
    client::build(rust)?;
    let mut command = client::cargo(rust, "build");
    run_quietly(command.args(["--package", TOUR.0, "--bin", TOUR.1]))
}

/// Runs the demo, which is built, on both hosts. The output must be the same.
pub fn demo() -> Result<()> {
    let sys = &image(DRIVER.1);
    let out = built_in().join("demo");
    let mut tour = Command::new(program(TOUR.0, TOUR.1, false)?);
    let linux = printed(tour.arg(sys).arg(&out).arg(program("etl", "etl", false)?))?;
    let mut tour = under_wine(&client::compiled(TOUR.1))?;
    let windows = printed(tour.arg(sys).arg(&out).arg(client::reader()))?;
    let lines = compare("the demo", &linux, &windows)?;
    println!("{lines} lines of the demo are the same on Linux and on Windows (Wine)");
    Ok(())
}

/// Builds `standin-kernel` and `cargo etw` for Windows.
fn build_programs(rust: Rust) -> Result<()> {
    let mut command = cargo(rust, "build");
    for (package, name) in PROGRAMS {
        command.args(["--package", package, "--bin", name]);
    }
    run_quietly(command.args(["--features", "standin-kernel/run"]))
}

/// Runs a command, and returns its whole output and its exit code.
fn said(command: &mut Command) -> Result<(Vec<u8>, Option<i32>)> {
    let Output { status, stdout, stderr } =
        command.stdin(Stdio::null()).output().context("cannot start a program")?;
    Ok(([stdout, stderr].concat(), status.code()))
}

/// Builds `standin-kernel` for this machine. `cargo xtask test` has built it with the same features.
fn kernel_of_linux() -> Result<PathBuf> {
    let package = PROGRAMS[0].0;
    let arguments = ["build", "--locked", "--package", package, "--features", "run", "--bins"];
    run_quietly(&mut process::cargo(&arguments))?;
    Ok(target().join("debug").join(package))
}

/// The programs whose runs are compared.
struct Programs {
    /// `standin-kernel run` for this machine.
    linux: PathBuf,
    /// The folder of scripts and traces.
    folder: PathBuf,
}

impl Programs {
    /// Runs an image with the same arguments on both hosts. Returns the outputs and exit codes: of
    /// Linux, of `standin-kernel run` and of `cargo etw run`. The driver is not confined, because
    /// Windows cannot confine it completely, and says so.
    fn run(&self, sys: &Path, more: &[&str]) -> Result<[(Vec<u8>, Option<i32>); 3]> {
        let mut kernel = Command::new(&self.linux);
        let mut windows = under_wine(&built("standin-kernel"))?;
        let mut etw = under_wine(&built("cargo-etw"))?;
        let run = |command: &mut Command| {
            command.args(["--confinement", "none", "--etl"]).arg(self.folder.join("run.etl"));
            said(command.args(more))
        };
        Ok([
            run(kernel.arg("run").arg(sys))?,
            run(windows.arg("run").arg(sys))?,
            run(etw.args(["etw", "run", "--image"]).arg(sys))?,
        ])
    }

    /// Compares runs of the sample driver by a script. Returns the number of lines.
    fn compare_scripts(&self) -> Result<usize> {
        let sys = image(DRIVER.1);
        let script = self.folder.join("script.txt");
        files::write(&script, SCRIPT)?;
        let script = script.to_string_lossy();
        let mut lines = 0;
        for more in RUNS {
            let what = format!("run {}", more.join(" "));
            let [linux, windows, etw] = self.run(&sys, &[more, &["--script", &script]].concat())?;
            ensure!(linux.1 == Some(0), "{what}: {}", String::from_utf8_lossy(&linux.0));
            lines += compare(&what, &linux.0, &windows.0)?;
            lines += compare(&format!("cargo etw {what}"), &linux.0, &etw.0)?;
        }
        Ok(lines)
    }

    /// Compares the diagnostics of the driver that breaks rules. The peak stack use is left out: on
    /// Windows, it includes the fault's context.
    fn compare_mistakes(&self) -> Result<usize> {
        let sys = image("etw_rules_driver");
        let mut lines = 0;
        for service in MISTAKES {
            let runs = self.run(&sys, &["--service", service])?;
            let codes = runs.each_ref().map(|(_, code)| *code);
            ensure!(codes == [Some(1); 3], "{service}: the exit codes are {codes:?}, not 1");
            let outputs = runs.map(|(output, _)| {
                let text = String::from_utf8_lossy(&output).into_owned();
                let kept = text.lines().filter(|line| !line.starts_with("peak kernel stack use: "));
                kept.collect::<Vec<_>>().join("\n").into_bytes()
            });
            let [linux, windows, etw] = &outputs;
            lines += compare(service, linux, windows)?;
            lines += compare(&format!("{service} by cargo etw"), linux, etw)?;
        }
        Ok(lines)
    }
}

/// Returns the path of a driver's image.
fn image(name: &str) -> PathBuf {
    build::drivers(Profile::Release).join(format!("{name}.sys"))
}

/// Runs damaged copies of the sample driver: each run must report something and end by itself.
/// Returns the number of runs without an error.
fn run_damaged(folder: &Path) -> Result<usize> {
    let whole = files::read(image(DRIVER.1))?;
    let mut clean = 0;
    // A generator of 64-bit numbers (xorshift64), whose every state but zero is in one cycle.
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut below = |limit: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % limit as u64).unwrap_or(0)
    };
    for number in 0..DAMAGED {
        let mut bytes = whole.clone();
        // Half of the copies are damaged in the headers, which are the first kilobyte.
        let end = if number % 2 == 0 { 1024 } else { bytes.len() };
        for _ in 0..=below(8) {
            bytes[below(end)] = u8::try_from(below(256)).unwrap_or(0);
        }
        let sys = folder.join("damaged.sys");
        files::write(&sys, &bytes)?;
        let output = folder.join("damaged.txt");
        let file = fs::File::create(&output).context("cannot write an output")?;
        let mut command = under_wine(&built("standin-kernel"))?;
        command.arg("run").arg(&sys).arg("--etl").arg(folder.join("damaged.etl"));
        command.args(["--max-silence", "20", "--time-limit", "2"]).stdin(Stdio::null());
        let mut child = command.stdout(file.try_clone()?).stderr(file).spawn()?;
        let start = Instant::now();
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break status;
            }
            if start.elapsed() > Duration::from_secs(HANGS) {
                child.kill()?;
                bail!("damaged image {number} hangs: {}", sys.display());
            }
            thread::sleep(Duration::from_millis(5));
        };
        let said = files::read_to_string(&output)?;
        ensure!(
            matches!(status.code(), Some(0 | 1))
                && (said.contains("error: ") || said.contains("found: ")),
            "damaged image {number}, {}, ends the command ({status}):\n{said}",
            sys.display()
        );
        clean += usize::from(status.success());
    }
    Ok(clean)
}

/// Makes the folder of a new driver, and runs and tests the driver with the Windows programs. rustc does
/// not run under Wine, so this machine's compiles the driver and its test: the test starts a program in
/// place of `cargo etw build` that prints the built image's path.
fn new_driver(rust: Rust, programs: &Programs) -> Result<()> {
    const CARGO: &str = "#include <stdio.h>\n#include <stdlib.h>\n\
                         int main(void) { return puts(getenv(\"WDK_ETW_IMAGE\")) < 0; }\n";
    let folder = programs.folder.join("contoso-sensor");
    if folder.exists() {
        files::remove_dir_all(&folder)?;
    }
    let mut new = under_wine(&built("cargo-etw"))?;
    run_quietly(new.args(["etw", "new"]).arg(&folder).arg("--path").arg(root()))?;
    files::copy(root().join("Cargo.lock"), folder.join("Cargo.lock"))?;
    run_quietly(process::cargo(&["update", "--workspace"]).current_dir(&folder))?;

    let etw = program("cargo-etw", "cargo-etw", false)?;
    let mut build = Command::new(&etw);
    build.args(["etw", "build", "--manifest-path"]).arg(folder.join("driver/Cargo.toml"));
    build.env("CARGO_TARGET_DIR", target()).env("CARGO_BUILD_BUILD_DIR", build::built_in());
    let paths = String::from_utf8(printed(&mut build)?).context("the image's path")?;
    let sys = Path::new(paths.lines().next().context("no image was built")?);

    let [linux, windows, of_etw] = programs.run(sys, &[])?;
    let lines = compare("standin-kernel run of a new driver", &linux.0, &windows.0)?
        + compare("cargo etw run of a new driver", &linux.0, &of_etw.0)?;
    println!("{lines} lines of 2 runs of a new driver are the same on both hosts");
    let examine =
        |mut command: Command| process::json(command.args(["etw", "inf", "examine"]).arg(sys));
    let mut linux = examine(Command::new(etw))?;
    let mut windows = examine(under_wine(&built("cargo-etw"))?)?;
    for found in [&mut linux, &mut windows] {
        // The notes name what the host does not keep a driver from.
        found.as_object_mut().map(|members| members.remove("notes"));
    }
    ensure!(linux == windows, "inf examine: Linux prints {linux}, Windows {windows}");

    let shim = built_in().join("cargo");
    client::build_c(&shim.join("cargo.exe"), CARGO, &[])?;
    let mut test = cargo(rust, "test");
    test.current_dir(&folder).env("WDK_ETW_IMAGE", sys);
    process::run_for_results(client::with_wine_and(&mut test, &[shim]))
}

/// Runs the stand-in kernel's tests under Wine.
fn test(rust: Rust) -> Result<()> {
    let mut command = cargo(rust, "test");
    command.args(["--package", "standin-kernel", "--test", "it", "--"]);
    for (test, reason) in EXCEPTIONS {
        println!("not under Wine: {test}: {reason}");
        command.args(["--skip", test]);
    }
    command.env("WDK_ETW_DRIVERS", target().join("drivers")).env("CARGO_HOME", cargo_home());
    process::run_for_results(with_wine(&mut command))
}

/// Builds the programs for Windows, and compares their output with that of the Linux programs. Also
/// runs the stand-in kernel's tests, damaged images and a new driver's folder under Wine, unless
/// `quick` is true.
pub fn run(quick: bool) -> Result<()> {
    let rust = step("Finding the compiler for Windows programs", client::find_or_install_compiler)?;
    let toolchain =
        step("Finding the cross toolchain", || Toolchain::find_or_install(Machine::X64))?;
    if quick {
        let title = format!("Building {}.sys", DRIVER.1);
        step(&title, || build::build(&toolchain, DRIVER, Profile::Release))?;
    } else {
        build::build_all(&toolchain)?;
        step("Building the drivers in C", || {
            c_drivers::build(&toolchain)?;
            c_drivers::build_routines(&toolchain).map(drop)
        })?;
    }
    step("Building the demo for Windows", || build_demo(rust))?;
    step("Running the demo on Linux and under Wine", demo)?;
    if quick { Ok(()) } else { run_rest(rust) }
}

/// Runs what [`run`] adds to the demo; the drivers are built.
pub fn run_rest(rust: Rust) -> Result<()> {
    step("Building the stand-in kernel for Windows", || {
        client::build_dll()?;
        build_programs(rust)
    })?;
    let folder = built_in().join("runs");
    files::create_dir_all(&folder)?;
    let linux = step("Building the stand-in kernel for Linux", kernel_of_linux)?;
    let programs = Programs { linux, folder };
    let _services = client::Services::start()?;
    step("Comparing scripts on Linux and Windows", || {
        let lines = programs.compare_scripts()?;
        println!("{lines} lines of {} runs are the same on both hosts", 2 * RUNS.len());
        Ok(())
    })?;
    step("Comparing diagnostics on Linux and Windows", || {
        let lines = programs.compare_mistakes()?;
        println!("{lines} lines of {} runs are the same on both hosts", 2 * MISTAKES.len());
        Ok(())
    })?;
    step("Running damaged images under Wine", || {
        let clean = run_damaged(&programs.folder)?;
        println!(
            "{DAMAGED} damaged images neither hang nor end the command; {clean} run without an error"
        );
        Ok(())
    })?;
    step("Making, running and testing a new driver under Wine", || new_driver(rust, &programs))?;
    step("Testing the stand-in kernel under Wine", || test(rust))
}
