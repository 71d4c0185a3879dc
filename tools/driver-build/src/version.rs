//! The oldest version of Rust that builds drivers.

use std::{env, fmt, process::Command};

use crate::process::output_of;

/// A version of the compiler: major and minor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(u32, u32);

impl Version {
    /// Returns the oldest version that builds drivers.
    pub fn oldest() -> Self {
        Self::parse(env!("CARGO_PKG_RUST_VERSION")).unwrap_or(Self(1, 95))
    }

    /// Parses the first two numbers of `1.96.0+dfsg1-1` or `rustc 1.96.0 (…)`.
    pub fn parse(text: &str) -> Option<Self> {
        let start = text.find(|letter: char| letter.is_ascii_digit())?;
        let mut numbers = text[start..].split(|letter: char| !letter.is_ascii_digit());
        Some(Self(numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}.{}", self.0, self.1)
    }
}

/// Explains why the current folder's cargo or rustc cannot build drivers, if it is too old.
pub fn too_old() -> Option<String> {
    let found = ["cargo", "rustc"].into_iter().find_map(|program| {
        let text = output_of(Command::new(program).arg("--version"))?;
        let version = Version::parse(&text)?;
        (version < Version::oldest()).then_some((program, version))
    });
    let (program, version) = found?;
    Some(refusal(program, version, reason().as_deref()))
}

fn refusal(program: &str, found: Version, reason: Option<&str>) -> String {
    let oldest = Version::oldest();
    let reason = reason.map(|reason| format!(" ({reason})"));
    format!(
        "building without the WDK needs Rust {oldest} or later, but {program} is {found}{}; \
         choose a newer toolchain, or run `rustup toolchain install {oldest}` and `cargo +{oldest} etw \
         build`",
        reason.unwrap_or_default()
    )
}

/// Explains why rustup selects the current toolchain.
fn reason() -> Option<String> {
    const SELECTED: &str = "RUSTUP_TOOLCHAIN";
    let mut rustup = Command::new("rustup");
    // rustup's cargo sets this variable for the programs that it runs.
    rustup.args(["show", "active-toolchain"]).env_remove(SELECTED);
    let active = output_of(&mut rustup)?;
    Some(why(&active, env::var(SELECTED).ok().as_deref()))
}

/// Explains a toolchain selection from the output of `rustup show active-toolchain`.
fn why(active: &str, selected: Option<&str>) -> String {
    let line = active.lines().next().unwrap_or_default();
    let (name, reason) = line.split_once(' ').unwrap_or((line, ""));
    match selected {
        Some(selected) if selected != name => format!("{selected} is selected"),
        _ => {
            let reason = reason.trim_matches(['(', ')']);
            format!("{name}, {reason}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_and_compared_as_numbers() {
        assert_eq!(Version::parse("rustc 1.95.0 (59807616e)"), Some(Version(1, 95)));
        assert_eq!(Version::parse("1.96.0+dfsg1-1~deb12u2"), Some(Version(1, 96)));
        assert_eq!(Version::parse("none"), None);
        assert!(Version(1, 100) > Version(1, 95));
        assert!(Version(1, 85) < Version::oldest());
    }

    #[test]
    fn an_old_version_is_refused_with_the_file_that_selects_it() {
        let active = "1.91-x86_64-unknown-linux-gnu (overridden by '/w/rust-toolchain.toml')";
        let file = why(active, Some("1.91-x86_64-unknown-linux-gnu"));
        assert_eq!(why(active, None), file);
        assert_eq!(
            refusal("cargo", Version(1, 91), Some(&file)),
            "building without the WDK needs Rust 1.95 or later, but cargo is 1.91 \
             (1.91-x86_64-unknown-linux-gnu, overridden by '/w/rust-toolchain.toml'); choose a \
             newer toolchain, or run `rustup toolchain install 1.95` and `cargo +1.95 etw build`"
        );
        assert_eq!(why(active, Some("1.90")), "1.90 is selected");
    }
}
