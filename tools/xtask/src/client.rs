//! The client, a Windows program: built, linted and tested where there is no Windows.
//!
//! Debian's compiler builds the standard library from its source, since rustup has none for
//! the target: that of Windows 7, whose programs start in Debian's Wine too. On Windows,
//! `cargo build -p etw-sample-client` does.

use std::{
    env, fs, iter,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};

use crate::{
    packages,
    process::{output_of, root, run_quietly, target},
    progress::step,
    toolchain::{self, DEBIAN_CARGO, DEBIAN_RUSTC},
};

const PACKAGE: &str = "etw-sample-client";
const TARGET: &str = "x86_64-win7-windows-gnu";
const LINKER: &str = "x86_64-w64-mingw32-gcc";
const LINTER: &str = "/usr/bin/cargo-clippy";

/// Debian's 64-bit Wine, which is on no path.
pub const WINE: &str = "/usr/lib/wine/wine64";

/// Installs what building needs, if it is not there.
pub fn install_compiler() -> Result<()> {
    toolchain::install_debian()?;
    if !Path::new("/usr/bin").join(LINKER).exists() {
        packages::install(&["gcc-mingw-w64-x86-64"])?;
    }
    Ok(())
}

/// Installs what linting and testing need, if it is not there.
pub fn install_wine() -> Result<()> {
    if !Path::new(LINTER).exists() {
        packages::install(&["rust-web-clippy"])?;
    }
    if !Path::new(WINE).exists() {
        packages::install(&["wine64"])?;
    }
    Ok(())
}

/// The compiler for the client's target, if all of it is there.
pub fn compiler() -> Option<String> {
    let linker = output_of(Command::new(LINKER).arg("-dumpversion"))?;
    let compiler = output_of(Command::new(DEBIAN_RUSTC).arg("--version"))?;
    Some(format!("{compiler}, {LINKER} {linker}"))
}

/// Wine's version, if it is there.
pub fn wine() -> Option<String> {
    output_of(with_wine(Command::new(WINE).arg("--version")))
}

/// Makes a command one that runs under Wine, with a Windows of its own.
pub fn with_wine(command: &mut Command) -> &mut Command {
    command
        .env("WINEPREFIX", target().join("wine"))
        // Neither its own messages nor a window that asks to install things.
        .env("WINEDEBUG", "-all")
        .env("WINEDLLOVERRIDES", "mscoree,mshtml=")
}

fn built_in() -> PathBuf {
    target().join("client-build")
}

fn cargo(chore: &str) -> Result<Command> {
    // Cargo finds its linter on the path, and there may be another toolchain's.
    let path = env::join_paths(
        iter::once("/usr/bin".into())
            .chain(env::split_paths(&env::var_os("PATH").unwrap_or_default())),
    )
    .context("PATH cannot be extended")?;
    let mut command = Command::new(DEBIAN_CARGO);
    command
        .current_dir(root())
        .env("PATH", path)
        .env("RUSTC", DEBIAN_RUSTC)
        .env_remove("RUSTUP_TOOLCHAIN")
        .env_remove("CARGO")
        .env("RUSTC_BOOTSTRAP", "1")
        .env("CARGO_TARGET_X86_64_WIN7_WINDOWS_GNU_LINKER", LINKER)
        .env("CARGO_TARGET_X86_64_WIN7_WINDOWS_GNU_RUNNER", WINE)
        .args([chore, "--locked", "--release", "--package", PACKAGE])
        .args(["--target", TARGET, "--target-dir"])
        .arg(built_in())
        // The standard library is built once for all chores.
        .args(["-Zbuild-std=std,panic_abort,test", "-Zpanic-abort-tests"]);
    Ok(command)
}

/// Builds the client; returns its .exe.
pub fn build() -> Result<PathBuf> {
    run_quietly(&mut cargo("build")?)?;
    let from = built_in()
        .join(TARGET)
        .join("release/etw-sample-client.exe");
    let folder = target().join("client");
    let to = folder.join("etw-sample-client.exe");
    fs::create_dir_all(&folder)
        .and_then(|()| fs::copy(&from, &to))
        .with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))?;
    Ok(to)
}

/// Lints the client.
pub fn lint() -> Result<()> {
    run_quietly(cargo("clippy")?.args(["--all-targets", "--", "-D", "warnings"]))
}

/// Runs the client's tests under Wine.
pub fn test() -> Result<()> {
    crate::process::run(with_wine(&mut cargo("test")?))
}

/// `cargo xtask client`.
pub fn run() -> Result<()> {
    step("find the client's compiler", install_compiler)?;
    let exe = step("build the client", build)?;
    println!("{}", exe.display());
    Ok(())
}
