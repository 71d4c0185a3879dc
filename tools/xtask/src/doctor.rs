//! `cargo xtask doctor`: what is there and what is missing.

use std::process::Command;

use anyhow::{Result, bail};

use crate::{
    client,
    environment::ORACLES,
    package, packages,
    process::output_of,
    progress::step,
    toolchain::{Machine, Toolchain},
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

/// `cargo xtask doctor`.
pub fn run(install: bool) -> Result<()> {
    if install {
        step("install the cross toolchain", || {
            Toolchain::find_or_install(Machine::X64)
        })?;
        step("install the foreign decoders", || ORACLES.install())?;
        step("install the browser", packages::install_browser)?;
        step("install the client's compiler", client::install_compiler)?;
        step("install Wine", client::install_wine)?;
        step("install what signs", package::install_tools)?;
        step("install cargo-make", packages::install_cargo_make)?;
    }
    let findings = examine();
    for finding in &findings {
        let (mark, found) = finding.found.as_ref().map_or_else(
            || ("MISSING", format!("needed by {}", finding.needed_by)),
            |found| ("there  ", found.clone()),
        );
        println!("{mark} {:<24} {found}", finding.what);
    }
    let missing = findings.iter().filter(|one| one.found.is_none()).count();
    if missing > 0 {
        bail!("{missing} missing; `cargo xtask doctor --install` installs what it can");
    }
    Ok(())
}
