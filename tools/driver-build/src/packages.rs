//! Installs operating system packages.

use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

use anyhow::{Context, Result, bail};

use crate::process::{find_program, output_of, run_quietly};

/// The current user's way to install Debian packages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Installer {
    /// apt-get, run by root.
    Root,
    /// apt-get, run with sudo without a password.
    Sudo,
    /// The system has apt-get, but this user cannot run it.
    Forbidden,
    /// The system does not have apt-get.
    Missing,
}

impl Installer {
    fn find() -> Self {
        static FOUND: OnceLock<Installer> = OnceLock::new();
        *FOUND.get_or_init(|| {
            let succeeds = |program: &str, arguments: &[&str]| {
                output_of(Command::new(program).args(arguments)).is_some()
            };
            if !Path::new("/usr/bin/apt-get").exists() {
                Self::Missing
            } else if output_of(Command::new("id").arg("-u")).is_some_and(|id| id == "0") {
                Self::Root
            } else if succeeds("sudo", &["--non-interactive", "true"]) {
                Self::Sudo
            } else {
                Self::Forbidden
            }
        })
    }
}

/// Explains why a step cannot install these packages, and lists them.
fn refusal(installer: Installer, names: &[&str]) -> Option<String> {
    let list = names.join(" ");
    let mut sentence =
        format!("the Debian packages {list} are missing, and they cannot be installed: ");
    match installer {
        Installer::Root | Installer::Sudo => return None,
        Installer::Forbidden => {
            let _ = write!(
                sentence,
                "you are not root, and sudo does not run without a password; run `sudo apt-get \
                 update` and `sudo apt-get install {list}`, then try again"
            );
        }
        Installer::Missing => {
            sentence += "this system has no apt-get; install their equivalents and try again; \
                         with rustup, drivers can be built without them";
        }
    }
    Some(sentence)
}

/// The seconds for which apt-get waits while another program, such as unattended-upgrades, holds
/// dpkg's lock, instead of failing at once.
const LOCK_TIMEOUT: &str = "DPkg::Lock::Timeout=300";

/// Returns the command that runs apt-get.
fn apt(installer: Installer, arguments: &[&str]) -> Command {
    let mut command = if installer == Installer::Root {
        Command::new("apt-get")
    } else {
        let mut command = Command::new("sudo");
        // sudo does not pass on the environment.
        command.args(["--non-interactive", "DEBIAN_FRONTEND=noninteractive", "apt-get"]);
        command
    };
    command.env("DEBIAN_FRONTEND", "noninteractive").args(["-o", LOCK_TIMEOUT]).args(arguments);
    command
}

/// Updates the package lists, once per process. Old lists contain versions that are outdated or no
/// longer in the archive.
fn update(installer: Installer) {
    static UPDATED: OnceLock<()> = OnceLock::new();
    UPDATED.get_or_init(|| {
        if let Err(error) = run_quietly(&mut apt(installer, &["update"])) {
            eprintln!(
                "note: using the existing package lists, because they cannot be updated: {error:#}"
            );
        }
    });
}

/// Returns whether the system has apt-get but the user cannot install packages.
#[must_use]
pub fn are_forbidden() -> bool {
    Installer::find() == Installer::Forbidden
}

/// Fails if this user cannot install these Debian packages.
///
/// # Errors
///
/// The error lists the packages.
pub fn may_install(names: &[&str]) -> Result<()> {
    if names.is_empty() {
        return Ok(());
    }
    refusal(Installer::find(), names).map_or(Ok(()), |refusal| bail!(refusal))
}

/// Installs Debian packages.
///
/// # Errors
///
/// Fails with a list of the packages if the user cannot install them or the system does not have
/// apt-get, and with apt-get's output if apt-get fails.
pub fn install(names: &[&str]) -> Result<()> {
    if names.is_empty() {
        return Ok(());
    }
    may_install(names)?;
    let installer = Installer::find();
    update(installer);
    let unlisted: Vec<&str> =
        names.iter().copied().filter(|name| candidate(name).is_err()).collect();
    if let Some(refusal) = unknown(&unlisted) {
        bail!(refusal);
    }
    let mut arguments = vec!["install", "--yes", "--no-install-recommends"];
    arguments.extend_from_slice(names);
    run_quietly(&mut apt(installer, &arguments))
        .with_context(|| format!("cannot install {}", names.join(", ")))
}

/// Explains that the system's package lists lack these packages.
fn unknown(names: &[&str]) -> Option<String> {
    let list = names.join(", ");
    (!names.is_empty()).then(|| {
        format!(
            "this system's package lists do not contain {list}; these are Debian's names, so install their \
             equivalents and try again; with rustup, drivers can be built without them"
        )
    })
}

/// Returns the version of a package that apt-get would install. First updates the package lists, if
/// the user has permission.
///
/// # Errors
///
/// Fails if the system does not have apt-get or its lists do not contain the package.
pub fn candidate(name: &str) -> Result<String> {
    let installer = Installer::find();
    match installer {
        Installer::Missing => bail!("this system has no apt-get"),
        Installer::Root | Installer::Sudo => update(installer),
        Installer::Forbidden => {}
    }
    let policy = output_of(
        Command::new("apt-cache")
            .args(["policy", name])
            // The output of apt-cache depends on the user's language.
            .env("LC_ALL", "C"),
    )
    .unwrap_or_default();
    parse_candidate(&policy)
        .map(str::to_owned)
        .with_context(|| format!("this system's package lists do not contain {name}"))
}

/// Returns the candidate in the output of `apt-cache policy`.
fn parse_candidate(policy: &str) -> Option<&str> {
    policy
        .lines()
        .find_map(|line| line.trim().strip_prefix("Candidate:"))
        .map(str::trim)
        .filter(|version| *version != "(none)")
}

/// A program and the Debian package that contains it.
pub struct Program {
    /// The program's names, or its paths if it is not on the search path. The first one that exists
    /// is used.
    pub names: &'static [&'static str],
    /// The package's name.
    pub package: &'static str,
}

impl Program {
    /// Returns the program's path if it is installed.
    #[must_use]
    pub fn path(&self) -> Option<PathBuf> {
        self.names.iter().find_map(|name| find_program(name))
    }

    /// Returns the package if the program is not installed.
    #[must_use]
    pub fn missing(&self) -> Option<&'static str> {
        self.path().is_none().then_some(self.package)
    }
}

/// The compiler for C drivers. With `--driver-mode=cl`, it takes the options of Microsoft's
/// compiler.
pub const C_COMPILER: Program = Program { names: &["clang-19"], package: "clang-19" };

/// Returns the path of the compiler for C drivers, installing the compiler if necessary.
///
/// # Errors
///
/// Fails if it cannot be installed.
pub fn c_compiler() -> Result<PathBuf> {
    install(C_COMPILER.missing().as_slice())
        .context("drivers in C need the compiler of Debian's package clang-19")?;
    C_COMPILER.path().context("clang-19 is not on the search path after its installation")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_lists_the_packages_and_what_to_do() {
        let names = ["wine64", "chromium"];
        assert_eq!(refusal(Installer::Root, &names), None);
        assert_eq!(refusal(Installer::Sudo, &names), None);
        let forbidden = refusal(Installer::Forbidden, &names).unwrap();
        assert!(forbidden.contains("`sudo apt-get install wine64 chromium`"), "{forbidden}");
        let missing = refusal(Installer::Missing, &names).unwrap();
        assert!(missing.contains("wine64 chromium"), "{missing}");
        assert!(missing.contains("no apt-get"), "{missing}");
        assert!(!missing.contains("sudo"), "{missing}");
        assert!(missing.contains("rustup"), "{missing}");
    }

    #[test]
    fn apt_get_waits_for_a_held_lock() {
        for installer in [Installer::Root, Installer::Sudo] {
            let command = apt(installer, &["update"]);
            let words: Vec<_> = command.get_args().filter_map(|word| word.to_str()).collect();
            assert!(words.ends_with(&["-o", "DPkg::Lock::Timeout=300", "update"]), "{words:?}");
        }
    }

    #[test]
    fn packages_that_the_lists_lack_are_named() {
        assert_eq!(unknown(&[]), None);
        let found = unknown(&["chromium", "rustc-web"]).unwrap();
        assert!(found.contains("do not contain chromium, rustc-web; "), "{found}");
        // A name that no archive contains.
        let error = candidate("no-such-package-of-any-archive").unwrap_err().to_string();
        assert!(error.contains("no-such-package-of-any-archive"), "{error}");
    }

    #[test]
    fn the_candidate_is_read_from_the_policy() {
        let policy = "rustc-web:\n  Installed: (none)\n  Candidate: 1.96.0+dfsg1-1~deb12u2\n";
        assert_eq!(parse_candidate(policy), Some("1.96.0+dfsg1-1~deb12u2"));
        assert_eq!(parse_candidate("x:\n  Candidate: (none)\n"), None);
        assert_eq!(parse_candidate(""), None);
    }
}
