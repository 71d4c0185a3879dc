//! The cross toolchain: a Rust compiler for x86_64-pc-windows-msvc and a linker
//! for PE images.
//!
//! It is looked for in this order: a target that the installed toolchain has; one
//! that rustup can add; Debian's rustc-web, which builds `core` and `alloc` from
//! their source.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Result, bail};

use crate::{
    packages,
    process::{output_of, run_quietly},
};

/// The target that drivers are built for.
pub const TARGET: &str = "x86_64-pc-windows-msvc";

const DEBIAN_CARGO: &str = "/usr/bin/cargo";
const DEBIAN_RUSTC: &str = "/usr/bin/rustc";
const DEBIAN_PACKAGES: [&str; 4] = ["rustc-web", "cargo-web", "rust-web-src", "lld-19"];

/// What builds drivers.
#[derive(Clone, Debug)]
pub enum Toolchain {
    /// The toolchain that runs this program has the target's libraries.
    Installed {
        /// The linker.
        linker: PathBuf,
    },
    /// Debian's, with its libraries' source.
    Debian {
        /// The linker.
        linker: PathBuf,
    },
}

/// Debian's linker for PE images. Older ones do not know all the options of a
/// driver's link.
const DEBIAN_LINKER: &str = "lld-link-19";

/// A program's path, as the shell would find it.
fn find_program(name: &str) -> Option<PathBuf> {
    env::split_paths(&env::var_os("PATH")?)
        .map(|folder| folder.join(name))
        .find(|path| path.is_file())
}

/// The linker that comes with the toolchain that runs this program.
fn toolchain_linker() -> Option<PathBuf> {
    let libraries = output_of(Command::new("rustc").args(["--print", "target-libdir"]))?;
    let linker = Path::new(&libraries).parent()?.join("bin/rust-lld");
    linker.is_file().then_some(linker)
}

/// Whether the toolchain that runs this program has the target's libraries.
fn target_is_installed() -> bool {
    output_of(Command::new("rustc").args(["--print", "target-libdir", "--target", TARGET]))
        .is_some_and(|folder| Path::new(&folder).is_dir())
}

fn debian_is_installed() -> bool {
    let sysroot = output_of(Command::new(DEBIAN_RUSTC).args(["--print", "sysroot"]));
    Path::new(DEBIAN_CARGO).exists()
        && sysroot.is_some_and(|sysroot| {
            Path::new(&sysroot)
                .join("lib/rustlib/src/rust/library/core")
                .is_dir()
        })
}

impl Toolchain {
    /// The toolchain, if this machine has one.
    pub fn find() -> Option<Self> {
        if target_is_installed()
            && let Some(linker) = toolchain_linker().or_else(|| find_program(DEBIAN_LINKER))
        {
            return Some(Self::Installed { linker });
        }
        let linker = find_program(DEBIAN_LINKER)?;
        debian_is_installed().then_some(Self::Debian { linker })
    }

    /// The toolchain; what is missing is installed.
    pub fn find_or_install() -> Result<Self> {
        if let Some(found) = Self::find() {
            return Ok(found);
        }
        if !target_is_installed() && find_program("rustup").is_some() {
            // Where rustup has no network this fails, and Debian's comes next.
            let added = run_quietly(Command::new("rustup").args(["target", "add", TARGET]));
            if let Err(error) = added {
                eprintln!("note: rustup cannot add {TARGET}: {error:#}");
            }
        }
        if Self::find().is_none() {
            packages::install(&DEBIAN_PACKAGES)?;
        }
        match Self::find() {
            Some(found) => Ok(found),
            None => bail!(
                "no Rust toolchain for {TARGET}: add the target with `rustup target add {TARGET}` \
                 or install Debian's {}",
                DEBIAN_PACKAGES.join(", ")
            ),
        }
    }

    /// What it is, for people.
    pub fn describe(&self) -> String {
        let (rustc, linker) = match self {
            Self::Installed { linker } => ("rustc", linker),
            Self::Debian { linker } => (DEBIAN_RUSTC, linker),
        };
        let version = output_of(Command::new(rustc).arg("--version")).unwrap_or_default();
        let libraries = match self {
            Self::Installed { .. } => "with the target's libraries",
            Self::Debian { .. } => "with libraries built from source",
        };
        format!("{version} {libraries}, linker {}", linker.display())
    }

    /// A cargo command that builds for [`TARGET`] with this toolchain.
    pub fn cargo(&self) -> Command {
        let linker_variable = format!(
            "CARGO_TARGET_{}_LINKER",
            TARGET.to_uppercase().replace('-', "_")
        );
        let mut command = match self {
            Self::Installed { .. } => Command::new("cargo"),
            Self::Debian { .. } => {
                let mut command = Command::new(DEBIAN_CARGO);
                command.env("RUSTC", DEBIAN_RUSTC);
                command
            }
        };
        let linker = match self {
            Self::Installed { linker } | Self::Debian { linker } => linker,
        };
        command
            // The cargo that runs this program left its own toolchain in these.
            .env_remove("RUSTUP_TOOLCHAIN")
            .env_remove("CARGO")
            .env(linker_variable, linker)
            // Unstable options: a lock file elsewhere, and libraries from source.
            .env("RUSTC_BOOTSTRAP", "1");
        command
    }

    /// The options of `cargo build` that go with this toolchain.
    pub fn build_options(&self) -> Vec<String> {
        let mut options = vec![format!("--target={TARGET}")];
        if let Self::Debian { .. } = self {
            options.push("-Zbuild-std=core,alloc".to_owned());
            // Unoptimized, it refers to functions of a C library.
            options.push("--config=profile.dev.package.compiler_builtins.opt-level=2".to_owned());
        }
        options
    }
}
