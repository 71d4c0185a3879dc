//! `cargo xtask doctor`: what is there and what is missing.

use std::process::Command;

use anyhow::{Result, bail};

use crate::{
    client,
    environment::ORACLES,
    package, packages,
    process::output_of,
    progress::step,
    toolchain::{self, Machine, Rust, Toolchain},
};

/// One thing that the chores need.
struct Finding {
    what: &'static str,
    needed_by: &'static str,
    found: Option<String>,
}

fn examine() -> Vec<Finding> {
    let version = |program: &str| output_of(Command::new(program).arg("--version"));
    vec![
        Finding {
            what: "Rust for this machine",
            needed_by: "everything",
            found: version("rustc"),
        },
        Finding {
            what: "clippy and rustfmt",
            needed_by: "test",
            found: version("cargo-clippy")
                .zip(version("rustfmt"))
                .map(|(clippy, rustfmt)| format!("{clippy}, {rustfmt}")),
        },
        Finding {
            what: "cross toolchain",
            needed_by: "demo, build, test",
            found: Toolchain::find(Machine::X64).map(|toolchain| toolchain.describe()),
        },
        Finding {
            what: "foreign decoders",
            needed_by: "test",
            found: ORACLES
                .is_ready()
                .then(|| ORACLES.python().display().to_string()),
        },
        Finding {
            what: "browser",
            needed_by: "test",
            found: packages::browser(),
        },
        Finding {
            what: "client's compiler",
            needed_by: "client, package, test",
            found: client::compiler(),
        },
        Finding {
            what: "Wine",
            needed_by: "test",
            found: client::wine(),
        },
        Finding {
            what: "signing tools",
            needed_by: "package, test",
            found: package::signer(),
        },
        Finding {
            what: "cargo-make",
            needed_by: "Makefile.toml, test",
            found: packages::cargo_make(),
        },
    ]
}

/// The toolchains that every check needs.
pub struct Tools {
    /// What builds drivers.
    pub x64: Toolchain,
    /// What builds drivers for ARM64.
    pub arm64: Toolchain,
    /// What builds the client.
    pub client: Rust,
}

/// Finds every tool that the checks need; what is missing is installed.
///
/// # Errors
///
/// One sentence for each tool that cannot be installed, all together.
pub fn install() -> Result<Tools> {
    let mut failures = Vec::new();
    let mut note = |result: Result<()>| {
        if let Err(error) = result {
            failures.push(format!("{error:#}"));
        }
    };
    let x64 = step("Finding the cross toolchain", || {
        Toolchain::find_or_install(Machine::X64)
    });
    let arm64 = step("Finding the cross toolchain for ARM64", || {
        Toolchain::find_or_install(Machine::Arm64)
    });
    let client = step(
        "Finding the client's compiler",
        Rust::with_source_or_install,
    );
    note(step(
        "Finding clippy and rustfmt",
        toolchain::install_components,
    ));
    let mut missing = package::missing_packages();
    missing.extend(client::missing_packages(
        *client.as_ref().unwrap_or(&Rust::Current),
    ));
    missing.extend(ORACLES.missing_packages());
    missing.extend(packages::BROWSER.missing());
    note(step("Installing the packages that are missing", || {
        packages::install(&missing)
    }));
    if ORACLES.missing_packages().is_empty() {
        note(step("Installing the foreign decoders", || {
            ORACLES.install()
        }));
    }
    note(step("Installing cargo-make", packages::install_cargo_make));
    let mut keep = |error: anyhow::Error| {
        let error = format!("{error:#}");
        if !failures.contains(&error) {
            failures.push(error);
        }
    };
    let x64 = x64.map_err(&mut keep);
    let arm64 = arm64.map_err(&mut keep);
    let client = client.map_err(&mut keep);
    match (x64, arm64, client) {
        (Ok(x64), Ok(arm64), Ok(client)) if failures.is_empty() => {
            eprintln!("       drivers: {}", x64.describe());
            eprintln!("       client:  {client}");
            Ok(Tools { x64, arm64, client })
        }
        _ => bail!(
            "the checks need tools that cannot be installed here:\n- {}",
            failures.join("\n- ")
        ),
    }
}

/// `cargo xtask doctor`.
pub fn run(should_install: bool) -> Result<()> {
    if should_install {
        install()?;
    }
    let findings = examine();
    for finding in &findings {
        let (mark, found) = finding.found.as_ref().map_or_else(
            || ("missing", format!("needed by {}", finding.needed_by)),
            |found| ("found  ", found.clone()),
        );
        println!("{mark} {:<24} {found}", finding.what);
    }
    let missing = findings.iter().filter(|one| one.found.is_none()).count();
    if missing > 0 {
        bail!("{missing} missing; `cargo xtask doctor --install` installs what it can");
    }
    Ok(())
}
