//! A driver in a separate folder, outside every checkout.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use etw_test_support::root;

/// Writes the guide's driver, under another name, to a folder.
pub fn driver(folder: &Path) {
    let guide = root().join("driver/examples/minimal");
    fs::create_dir(folder.join("src")).unwrap();
    for name in ["build.rs", "src/lib.rs", "src/trace.rs"] {
        fs::copy(guide.join(name), folder.join(name)).unwrap();
    }
    let library = root().join("provider-lib");
    let library = library.to_str().unwrap();
    let manifest = format!(
        "[package]\nname = \"contoso-sensor\"\nversion = \"3.1.4\"\nedition = \"2024\"\n\
         [package.metadata.wdk.driver-model]\ndriver-type = \"KMDF\"\nkmdf-version-major = 1\n\
         target-kmdf-version-minor = 31\n\
         [lib]\ncrate-type = [\"cdylib\"]\ntest = false\n\
         [dependencies]\nwdk-alloc = \"0.4\"\nwdk-etw = {{ path = {library:?} }}\nwdk-panic = \"0.5\"\n\
         wdk-sys = \"0.5\"\n[build-dependencies]\nwdk-build = \"0.6\"\n\
         [profile.dev]\npanic = \"abort\"\n[profile.release]\npanic = \"abort\"\n\
         [profile.dev.package.contoso-sensor]\ndebug = \"full\"\n"
    );
    fs::write(folder.join("Cargo.toml"), manifest).unwrap();
    // A lock file with this repository's versions, which are already present on this machine.
    fs::copy(root().join("Cargo.lock"), folder.join("Cargo.lock")).unwrap();
}

/// Returns the checkout's target folder; drivers built by tests share their dependencies in it.
pub fn target() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().to_owned()
}

/// Keeps the standard library's debug information, 10 MB each, out of build scripts and macros.
pub const WITHOUT_DEBUG: [(&str, &str); 2] = [
    ("CARGO_PROFILE_DEV_BUILD_OVERRIDE_DEBUG", "false"),
    ("CARGO_PROFILE_RELEASE_BUILD_OVERRIDE_DEBUG", "false"),
];

/// Returns a `cargo etw` command with these arguments, in a folder.
pub fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cargo-etw"));
    command
        .current_dir(folder)
        // cargo sets these variables for tests; an author's environment does not contain them.
        .env_remove("CARGO_TARGET_DIR")
        .env_remove("CARGO_MANIFEST_DIR")
        .envs(WITHOUT_DEBUG)
        .arg("etw")
        .args(arguments);
    command
}

/// Runs `cargo etw` in a folder.
pub fn etw(folder: &Path, arguments: &[&str]) -> Output {
    command(folder, arguments).output().unwrap()
}

/// The debug information of all builds that share dependencies: cargo would compile the macros for each
/// kind. The driver of [`driver`] itself has full debug information.
pub const DEBUG: (&str, &str) = ("CARGO_PROFILE_DEV_DEBUG", "line-tables-only");

/// Returns the variables with which drivers are built in the checkout's target folder, beside the packages that
/// `cargo xtask` has built for the checkout's drivers.
pub fn shared() -> [(&'static str, PathBuf); 2] {
    [("CARGO_TARGET_DIR", target()), ("CARGO_BUILD_BUILD_DIR", target().join("driver-build"))]
}

/// Runs `cargo etw` so that it builds in the checkout's target folder.
pub fn etw_in_target(folder: &Path, arguments: &[&str]) -> Output {
    command(folder, arguments).envs(shared()).envs([DEBUG]).output().unwrap()
}
