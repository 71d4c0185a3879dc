//! Finds the data, samples and third-party readers that the workspace's tests use for comparisons.
//!
//! Everything is in the checkout, except the files and programs to which environment variables
//! refer:
//!
//! | variable | folder or program | set by |
//! |---|---|---|
//! | `WDK_ETW_PYTHON` | the Python interpreter that has the third-party readers | `cargo xtask test` |
//! | `WDK_ETW_DRIVERS` | the drivers that were built | `cargo xtask test` |
//! | `WDK_ETW_GUEST` | the guest that stands in for Windows in virtual machines | `cargo xtask test` |
//! | `WDK_ETW_BROWSER` | the browser that pages are tested in | `cargo xtask test` |
//! | `WDK_ETW_WINE` | the program that runs Windows programs | `cargo xtask test` |
//! | `WDK_ETW_GOLDENS` | files of published packages, from mc.exe | `cargo xtask test` |
//! | `WDK_ETW_SAMPLES` | samples that no package registry publishes | the developer |
//!
//! `WDK_ETW_RENEW`, which `cargo xtask renew` sets, makes a test that compares a generated file write the
//! file first.

pub mod small_image;

use std::{
    env,
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// Returns the root of the checkout.
#[must_use]
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).to_owned()
}

/// Returns the path of a file under `tests/data`.
#[must_use]
pub fn data(name: impl AsRef<Path>) -> PathBuf {
    root().join("tests/data").join(name)
}

/// Reads a text file under `tests/data`.
///
/// # Panics
///
/// Panics if the file cannot be read.
#[must_use]
pub fn read_data(name: impl AsRef<Path>) -> String {
    let path = data(name);
    fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()))
}

/// Reads a data file about the WDK's headers in `tools/wdk-standin/data`.
///
/// # Panics
///
/// Panics if the file cannot be read.
#[must_use]
pub fn read_headers(name: impl AsRef<Path>) -> String {
    let path = root().join("tools/wdk-standin/data").join(name);
    fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()))
}

/// Returns the folder of a build's drivers: `debug`, `release` or `arm64/release`.
#[must_use]
pub fn drivers(build: &str) -> PathBuf {
    env::var_os("WDK_ETW_DRIVERS")
        .map_or_else(|| root().join("target/drivers"), PathBuf::from)
        .join(build)
}

/// Returns the path of a file in the folder of samples to which `WDK_ETW_SAMPLES` refers.
///
/// Tests that call this are ignored by default and in a module `samples`, so that `cargo xtask test`
/// omits them: the samples must not be published, and most machines do not have them.
///
/// # Panics
///
/// Panics if the test is not in such a module, the variable is not set, or the file does not exist.
#[must_use]
pub fn sample(name: impl AsRef<Path>) -> PathBuf {
    // The test harness gives a test's thread the name of the test, unless all tests run on the main
    // thread.
    let test = std::thread::current().name().unwrap_or_default().to_owned();
    assert!(test == "main" || test.contains("samples::"), "move {test} to a module `samples`");
    let folder = env::var_os("WDK_ETW_SAMPLES").map_or_else(
        || panic!("WDK_ETW_SAMPLES is not set: this test needs the folder of samples"),
        PathBuf::from,
    );
    let path = folder.join(name);
    assert!(
        path.exists(),
        "{} does not exist; WDK_ETW_SAMPLES names the folder {}",
        path.display(),
        folder.display()
    );
    path
}

/// Returns the path of a file from a published package: `<package>-<version>/<file>`, in the folder
/// to which `WDK_ETW_GOLDENS` refers or that `cargo xtask goldens` fills.
///
/// # Panics
///
/// Panics if the file does not exist.
#[must_use]
pub fn golden(name: impl AsRef<Path>) -> PathBuf {
    let folder =
        env::var_os("WDK_ETW_GOLDENS").map_or_else(|| root().join("target/goldens"), PathBuf::from);
    let path = folder.join(name);
    assert!(
        path.exists(),
        "{} does not exist: run `cargo xtask goldens`, or set WDK_ETW_GOLDENS to the folder that \
         it names",
        path.display()
    );
    path
}

/// Returns the path of a script under `tests/oracles`.
#[must_use]
pub fn oracle(script: &str) -> PathBuf {
    root().join("tests/oracles").join(script)
}

/// Returns the Python interpreter that has the third-party readers: the interpreter to which
/// `WDK_ETW_PYTHON` refers or, if it is not set, the interpreter that `cargo xtask doctor
/// --install` installs.
///
/// # Panics
///
/// Panics if the interpreter does not exist.
#[must_use]
pub fn python() -> PathBuf {
    let path = env::var_os("WDK_ETW_PYTHON")
        .map_or_else(|| root().join("target/oracles/bin/python"), PathBuf::from);
    assert!(
        path.exists(),
        "the third-party readers' Python interpreter {} does not exist: run `cargo xtask doctor \
         --install`, or set WDK_ETW_PYTHON",
        path.display()
    );
    path
}

/// Returns the program to which an environment variable refers, or its usual name.
#[must_use]
pub fn program(variable: &str, usual: &str) -> PathBuf {
    env::var_os(variable).map_or_else(|| PathBuf::from(usual), PathBuf::from)
}

/// Returns a command that links PE images and accepts the options of Microsoft's linker: the Rust
/// toolchain's linker, or Debian's.
#[must_use]
pub fn lld_link() -> Command {
    let libraries = Command::new("rustc").args(["--print", "target-libdir"]).output();
    let bundled = libraries.ok().and_then(|output| {
        let libraries = String::from_utf8(output.stdout).ok()?;
        let bin = Path::new(libraries.trim()).parent()?.join("bin");
        Some(bin.join(format!("rust-lld{}", env::consts::EXE_SUFFIX)))
    });
    let linker =
        bundled.filter(|linker| linker.is_file()).unwrap_or_else(|| PathBuf::from("lld-link-19"));
    let mut command = Command::new(linker);
    command.args(["-flavor", "link"]);
    command
}

/// Returns whether osslsigncode accepts the signature of a file for a certificate in DER form, and
/// its output. `options` come before the file.
///
/// # Panics
///
/// Panics if openssl or osslsigncode cannot be run, or if the certificate cannot be read.
#[must_use]
pub fn verify_signature(certificate: &Path, options: &[&Path], file: &Path) -> (bool, String) {
    let run = |command: &mut Command| command.output().unwrap_or_else(|error| panic!("{error}"));
    let pem = certificate.with_extension("pem");
    let mut openssl = Command::new("openssl");
    openssl.args(["x509", "-inform", "DER", "-in"]).arg(certificate).arg("-out").arg(&pem);
    assert!(run(&mut openssl).status.success(), "{} is no certificate", certificate.display());
    let mut verify = Command::new("osslsigncode");
    verify.args(["verify", "-CAfile"]).arg(&pem).args(options).arg("-in").arg(file);
    let output = run(&mut verify);
    (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Runs the third-party readers' Python interpreter, and returns its standard output.
///
/// # Panics
///
/// Panics if the interpreter does not exist or fails.
#[must_use]
pub fn run_python<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> Vec<u8> {
    let python = python();
    let output = Command::new(&python)
        .args(arguments)
        .output()
        .unwrap_or_else(|error| panic!("cannot start {}: {error}", python.display()));
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(
        !complaint.contains("ModuleNotFoundError"),
        "a third-party reader is missing from {}: run `cargo xtask doctor --install`\n{complaint}",
        python.display()
    );
    assert!(output.status.success(), "{complaint}");
    output.stdout
}
