//! `cargo xtask doctor`: lists the required tools that were found, and those that are missing.

use std::{process::Command, thread};

use anyhow::{Result, bail, ensure};

use driver_build::toolchain::{self, Machine, Rust, Toolchain};

use crate::{
    c_drivers, client, environment::ORACLES, guest, lint, package, packages, process::output_of,
    progress::step,
};

/// A tool that the commands need.
struct Tool {
    what: &'static str,
    needed_by: &'static str,
    found: Option<String>,
}

fn examine() -> Vec<Tool> {
    let version = |program: &str| output_of(Command::new(program).arg("--version"));
    vec![
        Tool { what: "Rust for this machine", needed_by: "everything", found: version("rustc") },
        Tool {
            what: "clippy and rustfmt",
            needed_by: "test",
            found: version("cargo-clippy")
                .zip(version("rustfmt"))
                .map(|(clippy, rustfmt)| format!("{clippy}, {rustfmt}")),
        },
        Tool {
            what: "cross toolchain",
            needed_by: "demo, build, test",
            found: Toolchain::find(Machine::X64).map(|toolchain| toolchain.describe()),
        },
        Tool { what: "C compiler for drivers", needed_by: "test", found: c_drivers::compiler() },
        Tool {
            what: "third-party decoders",
            needed_by: "test",
            found: ORACLES.is_ready().then(|| ORACLES.python().display().to_string()),
        },
        Tool { what: "linters", needed_by: "test", found: lint::found() },
        Tool { what: "browser", needed_by: "test", found: packages::browser() },
        Tool {
            what: "client's compiler",
            needed_by: "client, package, test",
            found: client::compiler(),
        },
        Tool { what: "Wine", needed_by: "test", found: client::wine() },
        Tool { what: "QEMU and stand-in guest", needed_by: "vm, test", found: guest::version() },
        Tool { what: "signing tools", needed_by: "package, test", found: package::signer() },
        Tool {
            what: "cargo-make",
            needed_by: "Makefile.toml, test",
            found: packages::cargo_make(),
        },
    ]
}

/// The toolchains that every check needs.
pub struct Tools {
    /// The toolchain that builds drivers for x64.
    pub x64: Toolchain,
    /// The toolchain that builds drivers for ARM64.
    pub arm64: Toolchain,
    /// The compiler that builds the client.
    pub client: Rust,
}

/// Finds all tools that the checks need, installing missing ones.
///
/// # Errors
///
/// Fails with a message for each tool that cannot be installed.
pub fn install() -> Result<Tools> {
    let mut failures = Failures::default();
    let x64 = failures
        .keep(step("Finding the cross toolchain", || Toolchain::find_or_install(Machine::X64)));
    // The error for ARM64 would be the same, so only the error for x64 is reported.
    let arm64 = x64.as_ref().and_then(|_| {
        failures.keep(step("Finding the cross toolchain for ARM64", || {
            Toolchain::find_or_install(Machine::Arm64)
        }))
    });
    let client = failures.keep(step("Finding the client's compiler", client::find_or_install_rust));
    failures.keep(step("Finding clippy and rustfmt", toolchain::install_components));
    let mut missing = package::missing_packages();
    missing.extend(client::missing_packages(client.unwrap_or(Rust::Current)));
    missing.extend(ORACLES.missing_packages());
    missing.extend(packages::BROWSER.missing());
    missing.extend(guest::missing_packages());
    missing.extend(c_drivers::missing_package());
    failures.keep(packages::may_install(&missing));
    // Packages are installed only if all of them can be installed.
    failures.check()?;
    thread::scope(|scope| {
        // Cargo compiles cargo-make while the rest is downloaded.
        let cargo_make =
            scope.spawn(|| step("Installing cargo-make", packages::install_cargo_make));
        let installed =
            failures.keep(step("Installing missing packages", || packages::install(&missing)));
        if installed.is_some() {
            failures.keep(step("Installing the third-party decoders", || ORACLES.install()));
            failures.keep(step("Installing the linters", lint::install));
            failures.keep(step("Fetching the stand-in guest", guest::fetch));
        }
        let cargo_make = cargo_make.join();
        failures.keep(cargo_make.unwrap_or_else(|_| bail!("installing cargo-make panicked")));
    });
    failures.check()?;
    let (Some(x64), Some(arm64), Some(client)) = (x64, arm64, client) else {
        bail!("a toolchain is missing, and no step reported an error");
    };
    eprintln!("       drivers: {}", x64.describe());
    eprintln!("       client:  {client}");
    Ok(Tools { x64, arm64, client })
}

/// The reasons why tools cannot be installed.
#[derive(Default)]
struct Failures(Vec<String>);

impl Failures {
    /// Keeps a result's error, unless the same error has already been kept.
    fn keep<T>(&mut self, result: Result<T>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                let error = format!("{error:#}");
                if !self.0.contains(&error) {
                    self.0.push(error);
                }
                None
            }
        }
    }

    /// Fails with all failures, if there are any.
    fn check(&self) -> Result<()> {
        ensure!(
            self.0.is_empty(),
            "the checks need tools that cannot be installed on this machine:\n- {}",
            self.0.join("\n- ")
        );
        Ok(())
    }
}

/// Runs `cargo xtask doctor`.
pub fn run(should_install: bool) -> Result<()> {
    if should_install {
        install()?;
    }
    let tools = examine();
    for tool in &tools {
        let (mark, found) = tool.found.as_ref().map_or_else(
            || ("missing", format!("needed by {}", tool.needed_by)),
            |found| ("found  ", found.clone()),
        );
        println!("{mark} {:<24} {found}", tool.what);
    }
    let missing = tools.iter().filter(|one| one.found.is_none()).count();
    if missing > 0 {
        bail!(
            "{missing} of {} tools are missing; `cargo xtask doctor --install` installs what it can",
            tools.len()
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use crate::process::root;

    /// The commands, especially `doctor`, work even if the workspace's crates do not compile.
    #[test]
    fn the_chores_link_no_crate_of_the_workspace_but_one() {
        const LINKED: &str = "driver-build";
        const EMPTY: &str = "host-features";
        assert_eq!(linked("tools/xtask"), [LINKED, EMPTY]);
        let none: [&str; 0] = [];
        assert_eq!(linked("tools/host-features"), none);
        assert_eq!(linked("tools/driver-build"), none);
    }

    /// Returns the workspace crates on which a package depends, except for its tests.
    fn linked(package: &str) -> Vec<String> {
        let manifest = fs::read_to_string(root().join(package).join("Cargo.toml")).unwrap();
        let workspace = fs::read_to_string(root().join("Cargo.toml")).unwrap();
        let (_, dependencies) = manifest.split_once("[dependencies]").unwrap();
        let dependencies = dependencies.split("\n[").next().unwrap_or_default();
        let names = |text: &str| -> Vec<String> {
            text.lines()
                .filter_map(|line| line.split(['.', ' ']).next())
                .filter(|name| !name.is_empty() && !name.starts_with('#'))
                .map(str::to_owned)
                .collect()
        };
        let of_workspace: Vec<&str> =
            workspace.lines().filter(|line| line.contains("path = ")).collect();
        assert!(!of_workspace.is_empty());
        assert!(!dependencies.contains("path"), "{dependencies}");
        let mut found = names(dependencies);
        found.retain(|name| {
            let start = format!("{name} = ");
            of_workspace.iter().any(|line| line.starts_with(&start))
        });
        found
    }
}
