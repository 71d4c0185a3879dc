//! `cargo xtask package`: builds the sample driver's package for a test machine with `cargo etw
//! package`.

use std::{fs, path::PathBuf, process::Command};

use anyhow::{Context, Result};

use driver_build::toolchain::{Machine, Toolchain};

use crate::{
    build::{self, Profile},
    cargo_etw::{self, DECLARATION, HARDWARE_ID},
    client,
    packages::{self, Program},
    process::{output_of, root, target},
    progress::step,
};

/// The folder of the package's text files, relative to the workspace's root.
const TEXTS: &str = "tools/xtask/src/package";

/// The signing tools.
const TOOLS: [Program; 2] = [
    Program {
        names: &["openssl"],
        package: "openssl",
    },
    Program {
        names: &["osslsigncode"],
        package: "osslsigncode",
    },
];

/// Returns the signing tool's version, if it is installed.
pub fn signer() -> Option<String> {
    let said = output_of(Command::new("osslsigncode").arg("--version"))?;
    let first = said.lines().next()?;
    Some(first.trim_end_matches(", using:").to_owned())
}

/// Returns the packages of the signing tools that are not installed.
pub fn missing_packages() -> Vec<&'static str> {
    TOOLS.iter().filter_map(Program::missing).collect()
}

/// Runs `cargo xtask package`.
pub fn run() -> Result<()> {
    let toolchain = step("Finding the cross toolchain", || {
        Toolchain::find_or_install(Machine::X64)
    })?;
    step("Installing the signing tools", || {
        packages::install(&missing_packages())
    })?;
    let rust = step(
        "Finding the client's compiler",
        client::find_or_install_compiler,
    )?;
    let image = step("Building the driver", || {
        build::build(&toolchain, build::SAMPLE, Profile::Release)
    })?;
    let client = step("Building the client", || client::build(rust))?;
    let folder = target().join("package");
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let (_, service) = build::SAMPLE;
    let version = env!("CARGO_PKG_VERSION");
    let mut command = cargo_etw::command(["package"]);
    command
        .arg(image)
        .arg("--declaration")
        .arg(root().join(DECLARATION));
    command.args(["--hardware-id", HARDWARE_ID, "--inx"]);
    command.arg(root().join("inf").join(format!("{service}.inx")));
    command.args(["--driver-version", &format!("{version}.0")]);
    command.args(["--description", "wdk-etw sample driver"]);
    for text in ["README.txt", "prepare.cmd", "install.cmd", "restore.cmd"] {
        command.arg("--text").arg(root().join(TEXTS).join(text));
    }
    for extension in ["man", "wprp"] {
        let file = format!("{service}.{extension}");
        command.arg("--file").arg(root().join("inf").join(file));
    }
    command.arg("--file").arg(client);
    command.arg("--out").arg(archive(service, version));
    cargo_etw::run(command.arg("--certificate").arg(folder))
}

/// Returns the path of the package.
fn archive(service: &str, version: &str) -> PathBuf {
    target()
        .join("package")
        .join(format!("{service}-{version}-x64.zip"))
}
