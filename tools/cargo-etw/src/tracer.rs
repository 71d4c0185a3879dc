//! The built-in client of `cargo etw vm`: this program built for Windows, to run `cargo etw trace`.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};
use driver_build::packages::Program;

use crate::new::{Source, Wanted};

/// The target: rustup has its libraries, and Linux distributions have its linker.
const TARGET: &str = "x86_64-pc-windows-gnu";
const LINKER: Program =
    Program { names: &["x86_64-w64-mingw32-gcc"], package: "gcc-mingw-w64-x86-64" };

/// Builds this program for Windows from the source that it was installed from, and returns its
/// path. Build results stay in `folder`, so that later calls build only what has changed.
pub fn build(folder: &Path) -> Result<PathBuf> {
    let linker = LINKER.path().with_context(|| {
        format!("{} is missing; install the package {}", LINKER.names[0], LINKER.package)
    })?;
    let source = Source::find(&Wanted::default())?;
    // cargo runs in this folder.
    let root = std::path::absolute(folder)
        .with_context(|| format!("cannot find {}", folder.display()))?
        .join("tracer");
    fs::create_dir_all(&root).with_context(|| format!("cannot create {}", root.display()))?;
    // A toolchain without rustup can also have the target, so errors are left to cargo.
    let added = Command::new("rustup").args(["target", "add", TARGET]).current_dir(&root).output();
    let status = command(&source, &root, &linker).status().context("cannot run cargo")?;
    let said = match added {
        Ok(output) if output.status.success() => String::new(),
        Ok(output) => format!("; rustup: {}", String::from_utf8_lossy(&output.stderr).trim()),
        Err(error) => format!("; rustup could not be run: {error}"),
    };
    ensure!(status.success(), "cargo could not build it from {source}{said}");
    Ok(root.join("bin").join("cargo-etw.exe"))
}

/// Returns the command that installs this program for Windows into a folder.
fn command(source: &Source, root: &Path, linker: &Path) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command
        .args(["install", "--quiet", "--locked", "--force", "--target", TARGET, "--root"])
        .arg(root)
        .arg("--target-dir")
        .arg(root.join("target"))
        .args(source.install_arguments())
        .env("CARGO_TARGET_X86_64_PC_WINDOWS_GNU_LINKER", linker)
        // The driver's settings must not affect this program.
        .current_dir(root);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_is_installed_from_its_own_source() {
        let source = Source::Path("/w/wdk-etw".into());
        let command = command(&source, Path::new("/cache/tracer"), Path::new("/usr/bin/gcc"));
        let words: Vec<&str> = command.get_args().map(|word| word.to_str().unwrap()).collect();
        let expected = "install --quiet --locked --force --target x86_64-pc-windows-gnu --root \
                        /cache/tracer --target-dir /cache/tracer/target --path \
                        /w/wdk-etw/tools/cargo-etw";
        assert_eq!(words, expected.split(' ').collect::<Vec<_>>());
        assert_eq!(command.get_current_dir(), Some(Path::new("/cache/tracer")));
    }
}
