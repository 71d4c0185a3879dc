//! The cross toolchain: a Rust compiler for Windows and a linker for PE images.
//!
//! Two toolchains can build for a target. The first is the toolchain that runs cargo, with the
//! target's libraries or the standard library's source, both of which rustup can add. The second is
//! Debian's rustc-web, which builds the libraries from source; some archives contain old versions, so
//! its version is checked before it is installed.

use std::{
    env, fmt, iter,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};

use crate::{
    link,
    packages::{self, Program},
    process::{find_program, output_of, run_quietly, run_shown},
    version::{self, Version},
};

/// A processor architecture for which drivers are built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Machine {
    /// x86-64, which the stand-in kernel runs.
    X64,
    /// ARM64.
    Arm64,
}

impl Machine {
    /// Returns the architecture's name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::X64 => "x64",
            Self::Arm64 => "arm64",
        }
    }

    /// Returns the Rust target.
    #[must_use]
    pub const fn target(self) -> &'static str {
        match self {
            Self::X64 => "x86_64-pc-windows-msvc",
            Self::Arm64 => "aarch64-pc-windows-msvc",
        }
    }
}

/// A Rust toolchain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rust {
    /// The toolchain that runs cargo.
    Current,
    /// Debian's rustc-web.
    Debian,
}

/// The environment variable that allows unstable options and features.
const BOOTSTRAP: &str = "RUSTC_BOOTSTRAP";

/// A crate list for `RUSTC_BOOTSTRAP` that names no real crate, so no unstable features are allowed
/// beyond the toolchain's default.
const NO_BOOTSTRAP: &str = "0";

/// Debian's compiler and the source of its libraries.
const DEBIAN_PACKAGES: [&str; 3] = ["rustc-web", "cargo-web", "rust-web-src"];
/// Debian's linker for PE images. Older versions lack options that driver builds need.
const DEBIAN_LINKER: Program = Program { names: &["lld-link-19"], package: "lld-19" };

impl Rust {
    const fn rustc(self) -> &'static str {
        match self {
            Self::Current => "rustc",
            Self::Debian => "/usr/bin/rustc",
        }
    }

    /// Returns the compiler's version text.
    #[must_use]
    pub fn version(self) -> Option<String> {
        output_of(Command::new(self.rustc()).arg("--version"))
    }

    /// Returns whether the compiler is recent enough for the project.
    fn is_recent(self) -> bool {
        self.version()
            .and_then(|version| Version::parse(&version))
            .is_some_and(|version| version >= Version::oldest())
    }

    /// Returns whether the toolchain has a target's libraries.
    #[must_use]
    pub fn has_libraries(self, target: &str) -> bool {
        output_of(Command::new(self.rustc()).args(["--print", "target-libdir", "--target", target]))
            .is_some_and(|folder| Path::new(&folder).is_dir())
    }

    /// Returns whether the toolchain includes cargo and the standard library's source.
    fn has_source(self) -> bool {
        let has_cargo = self == Self::Current || Path::new("/usr/bin/cargo").exists();
        has_cargo
            && self.sysroot().is_some_and(|sysroot| {
                let source = sysroot.join("lib/rustlib/src/rust/library");
                source.join("core/Cargo.toml").is_file()
            })
    }

    /// Returns the `cfg` options that the compiler sets for a target, one per line.
    pub fn cfgs(self, target: &str) -> Vec<String> {
        let text =
            output_of(Command::new(self.rustc()).args(["--print", "cfg", "--target", target]));
        text.unwrap_or_default().lines().map(str::to_owned).collect()
    }

    /// Returns the toolchain's sysroot.
    pub fn sysroot(self) -> Option<PathBuf> {
        output_of(Command::new(self.rustc()).args(["--print", "sysroot"])).map(PathBuf::from)
    }

    /// Returns a command of the toolchain's cargo with unstable options allowed, which are needed
    /// for a lock file in another folder and for libraries built from source.
    #[must_use]
    pub fn cargo(self) -> Command {
        let mut command = match self {
            Self::Current => Command::new("cargo"),
            Self::Debian => {
                let mut command = Command::new("/usr/bin/cargo");
                // cargo finds clippy on the search path, where another toolchain can come first.
                let path = env::var_os("PATH").unwrap_or_default();
                let path = iter::once("/usr/bin".into()).chain(env::split_paths(&path));
                command
                    .envs(env::join_paths(path).map(|path| ("PATH", path)))
                    .env("RUSTC", self.rustc())
                    .env("RUSTDOC", "/usr/bin/rustdoc")
                    // The cargo that runs this program sets these variables for its own toolchain.
                    .env_remove("RUSTUP_TOOLCHAIN");
                command
            }
        };
        command
            .env_remove("CARGO")
            // These variables would override the flags that this project's builds need.
            .env_remove("RUSTFLAGS")
            .env_remove("CARGO_ENCODED_RUSTFLAGS")
            .env(BOOTSTRAP, "1");
        command
    }

    /// Returns the package that the toolchain still needs for `cargo clippy`.
    #[must_use]
    pub fn missing_linter(self) -> Option<&'static str> {
        let linter = Program { names: &["/usr/bin/cargo-clippy"], package: "rust-web-clippy" };
        match self {
            Self::Current => None,
            Self::Debian => linter.missing(),
        }
    }

    /// Returns the toolchain that compiles for a target, and the origin of the target's libraries.
    /// Installs the toolchain if it is missing.
    ///
    /// # Errors
    ///
    /// Fails if no toolchain can be found or installed.
    pub fn for_target(target: &str) -> Result<(Self, bool)> {
        let is_installed = |rust: &Self| rust.has_libraries(target);
        if is_installed(&Self::Current)
            || (rustup(&["target", "add", target]).is_ok() && is_installed(&Self::Current))
        {
            return Ok((Self::Current, true));
        }
        let rust = Self::with_source_or_install()?;
        Ok((rust, is_installed(&rust)))
    }

    /// Returns the installed toolchain, if any, that can build the standard library for targets
    /// whose libraries rustup does not provide.
    #[must_use]
    pub fn with_source() -> Option<Self> {
        [Self::Current, Self::Debian].into_iter().find(|rust| rust.has_source() && rust.is_recent())
    }

    /// Returns the toolchain of [`Self::with_source`], installing it if it is missing.
    ///
    /// # Errors
    ///
    /// Fails if no toolchain can be found or installed.
    pub fn with_source_or_install() -> Result<Self> {
        if let Some(found) = Self::with_source() {
            return Ok(found);
        }
        let mut failures = Vec::new();
        match rustup(&["component", "add", "rust-src"]) {
            Ok(()) if Self::Current.has_source() => return Ok(Self::Current),
            Ok(()) => {
                failures.push("rustc does not find the rust-src that rustup installed".to_owned());
            }
            Err(error) => failures.push(format!("{error:#}")),
        }
        match install_debian(&[]) {
            Ok(()) => Ok(Self::Debian),
            Err(error) => {
                failures.push(format!("{error:#}"));
                Err(no_route(
                    "no Rust toolchain has the standard library source",
                    "rustup component add rust-src",
                    &failures,
                ))
            }
        }
    }
}

impl fmt::Display for Rust {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let version = self.version();
        let version = version.as_deref().unwrap_or("rustc");
        match self {
            Self::Current => write!(out, "{version}, the toolchain that runs cargo"),
            Self::Debian => write!(out, "{version}, Debian's rustc-web"),
        }
    }
}

/// Runs rustup for the toolchain that runs cargo.
fn rustup(arguments: &[&str]) -> Result<()> {
    if find_program("rustup").is_none() {
        bail!("rustup is not installed");
    }
    // Without network access or this component, Debian's toolchain is tried next.
    run_quietly(Command::new("rustup").args(arguments))
        .with_context(|| format!("`rustup {}` fails", arguments.join(" ")))
}

/// Installs clippy and rustfmt for the toolchain that runs cargo, if they are missing.
///
/// # Errors
///
/// Fails if rustup cannot install one of them.
pub fn install_components() -> Result<()> {
    for (program, component) in [("cargo-clippy", "clippy"), ("rustfmt", "rustfmt")] {
        if output_of(Command::new(program).arg("--version")).is_none() {
            rustup(&["component", "add", component])
                .with_context(|| format!("cannot install {component}, which the checks need"))?;
        }
    }
    Ok(())
}

/// Installs Debian's compiler, with other packages, after checking its version.
fn install_debian(others: &[&'static str]) -> Result<()> {
    let oldest = Version::oldest();
    if Rust::Debian.has_source() && Rust::Debian.is_recent() {
        return packages::install(others);
    }
    let wanted = [&DEBIAN_PACKAGES, others].concat();
    if packages::are_forbidden() {
        // Without recent package lists, the version that apt-get would install is unknown.
        return packages::may_install(&wanted);
    }
    let candidate = packages::candidate(DEBIAN_PACKAGES[0])?;
    if Version::parse(&candidate).is_none_or(|version| version < oldest) {
        bail!(
            "Debian's rustc-web is {candidate} in this system's package lists, but {oldest} or \
             later is needed (on Debian 12 the bookworm-security archive has one)"
        );
    }
    packages::install(&wanted)?;
    if !Rust::Debian.has_source() {
        bail!("Debian's rustc-web does not include the standard library source");
    }
    Ok(())
}

/// Returns the error for a target for which no toolchain can build.
fn no_route(what: &str, rustup: &str, failures: &[String]) -> anyhow::Error {
    let mut text = format!("{what}:");
    for failure in failures {
        // A failure can include a program's output, whose last line is the most useful.
        let mut lines = failure.lines().filter(|line| !line.trim().is_empty());
        let first = lines.next().unwrap_or_default();
        text.push_str("\n    - ");
        text.push_str(first);
        if let Some(last) = lines.next_back() {
            text.push_str(" … ");
            text.push_str(last.trim());
        }
    }
    if cfg!(windows) {
        return anyhow::anyhow!("{text}\n  Run `{rustup}` with rustup installed, then try again");
    }
    anyhow::anyhow!(
        "{text}\n  Either run `{rustup}` with rustup installed, or make Debian's rustc-web {} or \
         later available to apt-get, then try again",
        Version::oldest()
    )
}

/// The way to install missing parts of the toolchain.
enum Installation<'a> {
    /// Installs without asking; shows programs' output only if they fail.
    Silent,
    /// Shows the commands and their progress on standard error, and installs operating system
    /// packages only if the function returns true for the command.
    Shown(&'a dyn Fn(&str) -> bool),
}

impl Installation<'_> {
    /// Runs rustup for the toolchain that runs cargo.
    fn rustup(&self, arguments: &[&str]) -> Result<()> {
        if matches!(self, Self::Silent) || find_program("rustup").is_none() {
            return rustup(arguments);
        }
        let command = format!("rustup {}", arguments.join(" "));
        eprintln!("  Installing a part of the Rust toolchain: {command}");
        run_shown(Command::new("rustup").args(arguments))
    }

    /// Returns whether a command may install operating system packages.
    fn may_install(&self, command: &str) -> bool {
        match self {
            Self::Silent => true,
            Self::Shown(may_install) => {
                let may = may_install(command);
                if may {
                    eprintln!("  Installing packages: {command}");
                }
                may
            }
        }
    }
}

/// Returns the command that installs the missing packages for a machine type.
fn apt_command(machine: Machine) -> String {
    let mut packages = Vec::new();
    if !Rust::Current.has_libraries(machine.target()) {
        packages.extend(DEBIAN_PACKAGES);
    }
    packages.extend(DEBIAN_LINKER.missing());
    format!("sudo apt-get install {}", packages.join(" "))
}

/// The origin of a target's libraries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Libraries {
    /// The toolchain includes the libraries.
    Installed,
    /// The libraries are built from source.
    Source,
}

/// A compiler, a target's libraries, and a linker for drivers.
#[derive(Clone, Debug)]
pub struct Toolchain {
    machine: Machine,
    rust: Rust,
    libraries: Libraries,
    linker: PathBuf,
    /// The folder in which cargo keeps packages.
    cargo_home: PathBuf,
}

/// Returns the linker that is part of the toolchain that runs cargo.
fn toolchain_linker() -> Option<PathBuf> {
    let libraries = output_of(Command::new("rustc").args(["--print", "target-libdir"]))?;
    let linker = Path::new(&libraries)
        .parent()?
        .join("bin")
        .join(format!("rust-lld{}", env::consts::EXE_SUFFIX));
    linker.is_file().then_some(linker)
}

impl Toolchain {
    /// Returns the toolchain for a machine type, if it is installed.
    #[must_use]
    pub fn find(machine: Machine) -> Option<Self> {
        let target = machine.target();
        let linker = toolchain_linker().or_else(|| DEBIAN_LINKER.path())?;
        let (rust, libraries) =
            if Rust::Current.has_libraries(target) && version::too_old().is_none() {
                (Rust::Current, Libraries::Installed)
            } else {
                (Rust::with_source()?, Libraries::Source)
            };
        // Debian's compiler is used with Debian's linker, because they are tested together.
        let linker = match rust {
            Rust::Current => linker,
            Rust::Debian => DEBIAN_LINKER.path()?,
        };
        Some(Self { machine, rust, libraries, linker, cargo_home: cargo_home() })
    }

    /// Returns the toolchain for a machine type, installing missing parts.
    ///
    /// # Errors
    ///
    /// Fails, with all reasons, if no toolchain for the machine type can be found or installed.
    pub fn find_or_install(machine: Machine) -> Result<Self> {
        Self::provide(machine, &Installation::Silent)
    }

    /// Returns the toolchain for a machine type, installing missing parts: rustup components after
    /// a message, and operating system packages if `may_install` returns true for their command.
    ///
    /// # Errors
    ///
    /// Fails, with all reasons, if no toolchain for the machine type can be found or installed.
    pub fn find_or_ask(machine: Machine, may_install: impl Fn(&str) -> bool) -> Result<Self> {
        Self::provide(machine, &Installation::Shown(&may_install))
    }

    fn provide(machine: Machine, installation: &Installation<'_>) -> Result<Self> {
        let target = machine.target();
        let find = || Self::find(machine);
        if let Some(found) = find() {
            return Ok(found);
        }
        if let Some(reason) = version::too_old() {
            bail!(reason);
        }
        let mut failures = Vec::new();
        let has_libraries = || Rust::Current.has_libraries(target);
        if !has_libraries() {
            match installation.rustup(&["target", "add", target]) {
                Ok(()) if has_libraries() => {}
                Ok(()) => failures.push(format!(
                    "`rustup target add {target}` succeeds, but rustc does not find the libraries"
                )),
                Err(error) => failures.push(format!("{error:#}")),
            }
        }
        if let Some(found) = find() {
            return Ok(found);
        }
        if !has_libraries()
            && toolchain_linker().is_some()
            && let Err(error) = installation.rustup(&["component", "add", "rust-src"])
        {
            failures.push(format!("{error:#}"));
        }
        if let Some(found) = find() {
            return Ok(found);
        }
        let no_route = |failures: &[String]| {
            let what = format!("no Rust toolchain can build for {target}");
            no_route(&what, &format!("rustup target add {target}"), failures)
        };
        if cfg!(windows) {
            return Err(no_route(&failures));
        }
        // Perhaps only the linker is missing.
        let others: Vec<_> = DEBIAN_LINKER.missing().into_iter().collect();
        let command = apt_command(machine);
        let installed = if !installation.may_install(&command) {
            Err(anyhow::anyhow!("`{command}` was not run; `cargo etw build --install` runs it"))
        } else if has_libraries() {
            packages::install(&others)
        } else {
            install_debian(&others)
        };
        if let Err(error) = installed {
            failures.push(format!("{error:#}"));
        }
        failures.dedup();
        find().ok_or_else(|| no_route(&failures))
    }

    /// Returns the command that installs the missing requirements to build for `machine`, which
    /// depends on whether rustup and the target's libraries are installed.
    #[must_use]
    pub fn how_to_install(machine: Machine) -> String {
        let target = machine.target();
        let has_libraries = Rust::Current.has_libraries(target);
        if !has_libraries && (cfg!(windows) || find_program("rustup").is_some()) {
            return format!("rustup target add {target}");
        }
        if cfg!(windows) {
            // The linker is part of the toolchain.
            return "rustup toolchain install stable --profile default".to_owned();
        }
        apt_command(machine)
    }

    /// Returns the compiler's toolchain.
    #[must_use]
    pub const fn rust(&self) -> Rust {
        self.rust
    }

    /// Makes cargo keep packages in another folder.
    #[must_use]
    pub fn with_cargo_home(mut self, cargo_home: PathBuf) -> Self {
        self.cargo_home = cargo_home;
        self
    }

    /// Returns the linker, which accepts `-flavor link` followed by the options of Microsoft's
    /// linker.
    #[must_use]
    pub fn linker(&self) -> &Path {
        &self.linker
    }

    /// Returns the machine type for which the toolchain builds.
    #[must_use]
    pub const fn machine(&self) -> Machine {
        self.machine
    }

    /// Returns the target for which the toolchain builds.
    #[must_use]
    pub const fn target(&self) -> &'static str {
        self.machine.target()
    }

    /// Describes the toolchain, for progress messages.
    #[must_use]
    pub fn describe(&self) -> String {
        let libraries = match self.libraries {
            Libraries::Installed => "with the target's libraries",
            Libraries::Source => "with libraries built from source",
        };
        let linker = self.linker.display();
        format!("{}, {libraries}, linker {linker}", self.rust)
    }

    /// Returns a cargo command that builds the source in folder `root` into folder `built_in`.
    /// Images do not depend on these paths.
    ///
    /// # Errors
    ///
    /// Fails if the program that rustc runs as the linker cannot be written.
    pub fn build(&self, root: &Path, built_in: &Path) -> Result<Command> {
        let mut command = self.build_here(built_in)?;
        let flags = self.remapped(root, built_in);
        command.current_dir(root).arg(rustflags(self.target(), &flags));
        Ok(command)
    }

    /// Returns a cargo command that builds into a folder, with the current folder's cargo
    /// configuration. The compiler also needs the options of [`Toolchain::remapped`].
    ///
    /// # Errors
    ///
    /// Fails if the program that rustc runs as the linker cannot be written.
    pub fn build_here(&self, built_in: &Path) -> Result<Command> {
        let mut command = self.rust.cargo();
        command
            .env("CARGO_HOME", &self.cargo_home)
            .arg("build")
            .arg("--target-dir")
            .arg(built_in)
            .args(self.build_options());
        link::wrap(&mut command, self.target(), &self.linker, &built_in.join("linker"))?;
        Ok(command)
    }

    /// Returns the compiler options that keep this machine's folders out of an image.
    #[must_use]
    pub fn remapped(&self, root: &Path, built_in: &Path) -> Vec<String> {
        let sysroot = self.rust.sysroot().unwrap_or_default();
        link::remapped(root, built_in, &self.cargo_home, &sysroot)
    }

    /// Returns the options of `cargo build` for this toolchain.
    fn build_options(&self) -> Vec<String> {
        let mut options = vec![format!("--target={}", self.target())];
        if self.libraries == Libraries::Installed {
            options.extend(authors_bootstrap());
        } else {
            options.push("-Zbuild-std=core,alloc".to_owned());
            // Without optimization, the crate refers to C library functions.
            options.push("--config=profile.dev.package.compiler_builtins.opt-level=2".to_owned());
        }
        options
    }
}

/// Returns the options with which build scripts and the compiler see the author's `RUSTC_BOOTSTRAP`.
///
/// cargo itself needs the value 1 for its unstable options. Crates that probe for unstable features
/// would use them.
#[must_use]
pub fn authors_bootstrap() -> [String; 2] {
    let authors = env::var(BOOTSTRAP).unwrap_or_else(|_| NO_BOOTSTRAP.to_owned());
    let authors = toml_string(&authors);
    [
        format!("--config=env.{BOOTSTRAP}.value={authors}"),
        format!("--config=env.{BOOTSTRAP}.force=true"),
    ]
}

/// Returns the folder in which cargo keeps packages.
pub fn cargo_home() -> PathBuf {
    let home = || env::home_dir().unwrap_or_default().join(".cargo");
    env::var_os("CARGO_HOME").map_or_else(home, PathBuf::from)
}

/// Returns the cargo option that adds compiler options for a target.
fn rustflags(target: &str, flags: &[String]) -> String {
    let flags: Vec<String> = flags.iter().map(|flag| toml_string(flag)).collect();
    format!("--config=target.{target}.rustflags=[{}]", flags.join(", "))
}

/// Returns a string as a TOML literal.
fn toml_string(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_without_a_toolchain_has_every_reason_and_both_remedies() {
        let failures = ["rustup is not installed".to_owned(), "too old".to_owned()];
        let error = no_route("nothing builds for x", "rustup target add x", &failures).to_string();
        for part in [
            "nothing builds for x:",
            "\n    - rustup is not installed\n    - too old\n",
            "`rustup target add x`",
            "rustc-web",
        ] {
            assert!(error.contains(part), "{error}");
        }
    }
}
