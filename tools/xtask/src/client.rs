//! Builds, lints and tests the client, a Windows program, without Windows. Also builds `etl` for
//! Windows.
//!
//! The standard library imports a DLL that Debian's Wine lacks, so this module builds it. On Windows,
//! cargo builds the client's package directly.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use anyhow::{Context, Result, ensure};

use driver_build::{files, toolchain::Rust};

use crate::{
    packages::{self, Program},
    process::{output_of, root, run_quietly, target},
    progress::step,
};

/// The client's package.
pub const PACKAGE: &str = crate::sample::CLIENT;
/// The package of the session control library, which `cargo etw trace` also uses.
pub const SESSION: &str = "etw-session";
/// The client's target.
pub const TARGET: &str = "x86_64-pc-windows-gnu";
const LINKER: Program =
    Program { names: &["x86_64-w64-mingw32-gcc"], package: "gcc-mingw-w64-x86-64" };

/// 64-bit Wine; Debian installs it outside the search path.
pub const WINE: Program =
    Program { names: &["/usr/lib/wine/wine64", "wine64", "wine"], package: "wine64" };

/// The DLL that Wine lacks, and its source in C.
const DLL: (&str, &str) = (
    "bcryptprimitives.dll",
    "#include <windows.h>\n\
     BOOLEAN NTAPI SystemFunction036(PVOID, ULONG);\n\
     __declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE data, SIZE_T size)\n\
     { return SystemFunction036(data, (ULONG)size); }\n",
);

/// Returns the missing packages that are needed to build, lint and test the client.
pub fn missing_packages(rust: Rust) -> Vec<&'static str> {
    [LINKER.missing(), WINE.missing(), rust.missing_linter()].into_iter().flatten().collect()
}

/// Returns the compiler for the client, installing it if it is missing.
pub fn find_or_install_rust() -> Result<Rust> {
    Ok(Rust::for_target(TARGET)?.0)
}

/// Returns the compiler for the client, installing missing parts.
pub fn find_or_install_compiler() -> Result<Rust> {
    let rust = find_or_install_rust()?;
    if let Some(package) = LINKER.missing() {
        packages::install(&[package])?;
    }
    Ok(rust)
}

/// Describes the compiler for the client's target if it is completely installed.
pub fn compiler() -> Option<String> {
    let linker = LINKER.path()?;
    let version = output_of(Command::new(&linker).arg("-dumpversion"))?;
    let compiler =
        if Rust::Current.has_libraries(TARGET) { Rust::Current } else { Rust::with_source()? };
    Some(format!("{compiler}, {} {version}", linker.display()))
}

/// Returns Wine's version, if Wine is installed.
pub fn wine() -> Option<String> {
    output_of(with_wine(Command::new(WINE.path()?).arg("--version")))
}

/// Builds the [`DLL`] that Wine lacks, into the folder in which [`with_wine`] lets Wine find it.
pub fn build_dll() -> Result<()> {
    let (name, source) = DLL;
    build_c(&folder().join(name), source, &["-shared", "-ladvapi32"])
}

/// Builds a Windows program or DLL from C, unless it has been built from the same source.
pub fn build_c(to: &Path, source: &str, options: &[&str]) -> Result<()> {
    let file = to.with_extension("c");
    // A program that runs under Wine may be using the DLL.
    if to.exists() && files::read_to_string(&file).is_ok_and(|old| old == source) {
        return Ok(());
    }
    files::create_dir_all(to.parent().unwrap_or(to))?;
    files::write(&file, source)?;
    let mut compiler = Command::new(LINKER.path().context("no MinGW compiler is installed")?);
    run_quietly(compiler.arg(&file).args(options).arg("-o").arg(to))
}

/// Makes a command run under Wine with a separate Wine prefix.
pub fn with_wine(command: &mut Command) -> &mut Command {
    with_wine_and(command, &[])
}

/// Does the same as [`with_wine`], and lets Wine find programs in other folders.
pub fn with_wine_and<'a>(command: &'a mut Command, others: &[PathBuf]) -> &'a mut Command {
    let folders = [&[folder()][..], others].concat();
    let folders = folders.iter().map(|one| format!("Z:{}", one.display()).replace('/', "\\"));
    command
        .env("WINEPREFIX", target().join("wine"))
        .env("WINEPATH", folders.collect::<Vec<_>>().join(";"))
        // Suppresses Wine's own messages and its installation dialogs.
        .env("WINEDEBUG", "-all")
        .env("WINEDLLOVERRIDES", "mscoree,mshtml=")
}

/// Keeps Wine's server and services running until it is dropped. The first program that runs under Wine
/// starts the services, and what they print, for example if one of them crashes, would be in its output.
pub struct Services(Child);

impl Services {
    /// Starts a command interpreter that waits for input, and waits until it answers.
    pub fn start() -> Result<Self> {
        let mut command = Command::new(WINE.path().context("Wine is not installed")?);
        with_wine(command.arg("cmd")).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.stderr(Stdio::null()).spawn().context("cannot start Wine")?;
        let input = child.stdin.as_mut().context("Wine's interpreter has no input")?;
        input.write_all(b"echo ready-%OS%\r\n").context("Wine's interpreter takes no input")?;
        let output = child.stdout.take().context("Wine's interpreter has no output")?;
        let mut output = BufReader::new(output);
        let is_answer = |line: io::Result<String>| {
            line.is_ok_and(|line| line.trim_end().ends_with("ready-Windows_NT"))
        };
        let answers = output.by_ref().lines().any(is_answer);
        child.stdout = Some(output.into_inner());
        let services = Self(child);
        ensure!(answers, "Wine's interpreter does not answer");
        Ok(services)
    }
}

impl Drop for Services {
    fn drop(&mut self) {
        // The interpreter ends with its input.
        drop(self.0.stdin.take());
        let _ended = self.0.wait();
    }
}

fn built_in() -> PathBuf {
    target().join("client-build")
}

/// The package and program that reads traces, which is `tools/etl.exe` in the kit.
const READER: &str = "etl";

/// Returns a cargo command for Windows programs, which Wine runs. The next argument is the folder of
/// the build.
pub fn cross_cargo(rust: Rust, chore: &str) -> Command {
    let mut command = rust.cargo();
    command
        .current_dir(root())
        .env("CARGO_TARGET_X86_64_PC_WINDOWS_GNU_LINKER", LINKER.path().unwrap_or_default())
        .env("CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER", WINE.path().unwrap_or_default())
        .args([chore, "--locked"]);
    if !rust.has_libraries(TARGET) {
        command.arg("-Zbuild-std=std,panic_abort,test");
    }
    command.args(["--target", TARGET, "--target-dir"]);
    command
}

/// Returns a cargo command that selects the client, with the profile of its build.
pub fn cargo(rust: Rust, chore: &str) -> Command {
    let mut command = cross_cargo(rust, chore);
    command
        .arg(built_in())
        .args(["--release", "--package", PACKAGE])
        .args(["--config", "profile.release.debug=false"])
        // Optimization would take most of the build's time, and these programs serve on test machines.
        .args(["--config", "profile.release.opt-level=0"])
        .args(["--config", "profile.release.package.etw-manifest.opt-level=0"])
        .args(["--config", "profile.release.package.wdk-etw-schema.opt-level=0"])
        .args(["--config", "profile.release.package.quick-xml.opt-level=0"])
        // The tests share the programs' dependencies, which are built to abort.
        .arg("-Zpanic-abort-tests");
    command
}

/// Builds the client and `etl` for Windows, and returns the client's .exe. A single command builds
/// both, so that they share all dependencies.
pub fn build(rust: Rust) -> Result<PathBuf> {
    let mut command = cargo(rust, "build");
    run_quietly(command.args(["--package", READER, "--bins"]))?;
    build_dll()?;
    copy(READER, &reader())?;
    let to = built(PACKAGE);
    copy(PACKAGE, &to)?;
    Ok(to)
}

/// Returns the path of `etl.exe`, which [`build`] builds.
pub fn reader() -> PathBuf {
    built(READER)
}

/// Returns the folder of the built programs.
fn folder() -> PathBuf {
    target().join("client")
}

fn built(name: &str) -> PathBuf {
    folder().join(format!("{name}.exe"))
}

/// Returns the path of a program that a [`cargo`] command builds.
pub fn compiled(name: &str) -> PathBuf {
    built_in().join(TARGET).join("release").join(format!("{name}.exe"))
}

/// Copies a built program.
fn copy(name: &str, to: &Path) -> Result<()> {
    files::create_dir_all(to.parent().unwrap_or(to))?;
    files::copy(compiled(name), to)
}

/// Lints the client and the session control library.
pub fn lint(rust: Rust) -> Result<()> {
    let mut command = cargo(rust, "clippy");
    command.args(["--package", SESSION, "--all-targets", "--", "-D", "warnings"]);
    run_quietly(&mut command)
}

/// Runs the tests of the client and of the session control library under Wine, and starts `etl`: without
/// optimization, it needs more of its stack of 1 MiB.
pub fn test(rust: Rust) -> Result<()> {
    build_dll()?;
    let mut etl = Command::new(WINE.path().context("Wine is not installed")?);
    run_quietly(with_wine(etl.arg(reader()).arg("--help")))?;
    let mut command = cargo(rust, "test");
    // Wine lists devices by their place in the registry, and misses one while another test removes one.
    command.args(["--package", SESSION, "--", "--test-threads", "1"]);
    crate::process::run_for_results(with_wine(&mut command))
}

/// Runs `cargo xtask client`.
pub fn run() -> Result<()> {
    let rust = step("Finding the client's compiler", find_or_install_compiler)?;
    eprintln!("       {rust}");
    let exe = step("Building the client", || build(rust))?;
    println!("{}", exe.display());
    Ok(())
}
