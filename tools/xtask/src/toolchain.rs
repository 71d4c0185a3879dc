//! The cross toolchain: a Rust compiler for Windows and a linker for PE images.
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

/// The machines that drivers are built for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Machine {
    /// The one that the stand-in kernel runs.
    X64,
    /// ARM64.
    Arm64,
}

impl Machine {
    /// Its name on this program's command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::X64 => "x64",
            Self::Arm64 => "arm64",
        }
    }

    /// The compiler's name for it.
    pub const fn target(self) -> &'static str {
        match self {
            Self::X64 => "x86_64-pc-windows-msvc",
            Self::Arm64 => "aarch64-pc-windows-msvc",
        }
    }
}

/// Debian's cargo.
pub const DEBIAN_CARGO: &str = "/usr/bin/cargo";
/// Debian's compiler.
pub const DEBIAN_RUSTC: &str = "/usr/bin/rustc";
const DEBIAN_PACKAGES: [&str; 4] = ["rustc-web", "cargo-web", "rust-web-src", "lld-19"];

/// What builds drivers.
#[derive(Clone, Debug)]
pub struct Toolchain {
    machine: Machine,
    libraries: Libraries,
    linker: PathBuf,
}

/// Where a toolchain has the target's libraries from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Libraries {
    /// The toolchain that runs this program has them.
    Installed,
    /// Debian's compiler builds them.
    Debian,
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
fn target_is_installed(target: &str) -> bool {
    output_of(Command::new("rustc").args(["--print", "target-libdir", "--target", target]))
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

/// Installs Debian's compiler, if it is not there.
pub fn install_debian() -> Result<()> {
    if !debian_is_installed() || find_program(DEBIAN_LINKER).is_none() {
        packages::install(&DEBIAN_PACKAGES)?;
    }
    Ok(())
}

impl Toolchain {
    /// The toolchain for a machine, if this one has it.
    pub fn find(machine: Machine) -> Option<Self> {
        if target_is_installed(machine.target())
            && let Some(linker) = toolchain_linker().or_else(|| find_program(DEBIAN_LINKER))
        {
            return Some(Self {
                machine,
                libraries: Libraries::Installed,
                linker,
            });
        }
        let linker = find_program(DEBIAN_LINKER)?;
        debian_is_installed().then_some(Self {
            machine,
            libraries: Libraries::Debian,
            linker,
        })
    }

    /// The toolchain for a machine; what is missing is installed.
    pub fn find_or_install(machine: Machine) -> Result<Self> {
        if let Some(found) = Self::find(machine) {
            return Ok(found);
        }
        let target = machine.target();
        if !target_is_installed(target) && find_program("rustup").is_some() {
            // Where rustup has no network this fails, and Debian's comes next.
            let added = run_quietly(Command::new("rustup").args(["target", "add", target]));
            if let Err(error) = added {
                eprintln!("note: rustup cannot add {target}: {error:#}");
            }
        }
        if Self::find(machine).is_none() {
            install_debian()?;
        }
        match Self::find(machine) {
            Some(found) => Ok(found),
            None => bail!(
                "no Rust toolchain for {target}: add the target with `rustup target add {target}` \
                 or install Debian's {}",
                DEBIAN_PACKAGES.join(", ")
            ),
        }
    }

    /// The machine that it builds for.
    pub const fn machine(&self) -> Machine {
        self.machine
    }

    /// The target that it builds for.
    pub const fn target(&self) -> &'static str {
        self.machine.target()
    }

    /// What its compiler says of itself.
    pub fn version(&self) -> String {
        let rustc = match self.libraries {
            Libraries::Installed => "rustc",
            Libraries::Debian => DEBIAN_RUSTC,
        };
        output_of(Command::new(rustc).arg("--version")).unwrap_or_default()
    }

    /// What it is, for people.
    pub fn describe(&self) -> String {
        let libraries = match self.libraries {
            Libraries::Installed => "with the target's libraries",
            Libraries::Debian => "with libraries built from source",
        };
        let linker = self.linker.display();
        format!("{} {libraries}, linker {linker}", self.version())
    }

    /// A cargo command that builds with this toolchain.
    pub fn cargo(&self) -> Command {
        let linker_variable = format!(
            "CARGO_TARGET_{}_LINKER",
            self.target().to_uppercase().replace('-', "_")
        );
        let mut command = match self.libraries {
            Libraries::Installed => Command::new("cargo"),
            Libraries::Debian => {
                let mut command = Command::new(DEBIAN_CARGO);
                command.env("RUSTC", DEBIAN_RUSTC);
                command
            }
        };
        command
            // The cargo that runs this program left its own toolchain in these.
            .env_remove("RUSTUP_TOOLCHAIN")
            .env_remove("CARGO")
            .env(linker_variable, &self.linker)
            // Unstable options: a lock file elsewhere, and libraries from source.
            .env("RUSTC_BOOTSTRAP", "1");
        command
    }

    /// The options of `cargo build` that go with this toolchain.
    pub fn build_options(&self) -> Vec<String> {
        let mut options = vec![format!("--target={}", self.target())];
        if self.libraries == Libraries::Debian {
            options.push("-Zbuild-std=core,alloc".to_owned());
            // Unoptimized, it refers to functions of a C library.
            options.push("--config=profile.dev.package.compiler_builtins.opt-level=2".to_owned());
        }
        options
    }
}
