//! The author's cargo configuration, and the compiler options in it.

use std::env;

use anyhow::Result;
use cargo_platform::{Cfg, Platform};
use serde_json::Value;

use crate::{process::output_of, toolchain::Rust};

/// The code generation options that a driver build must ignore: this program is the linker, and the
/// build always includes the PDB.
const LEFT_OUT: [&str; 3] = ["linker", "linker-flavor", "strip"];

/// Returns a value from the cargo configuration that applies in the current folder, if it is set.
pub fn get(rust: Rust, key: &str) -> Option<Value> {
    let mut cargo = rust.cargo();
    cargo.args(["-Zunstable-options", "config", "get", "--format", "json-value", key]);
    // cargo fails if the value is not set. If a configuration file is unreadable, every cargo
    // command fails.
    serde_json::from_str(&output_of(&mut cargo)?).ok()
}

/// The compiler options that an author sets for a target.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// The options that the build uses.
    pub used: Vec<String>,
    /// The options that the build cannot use.
    pub left_out: Vec<String>,
}

impl Flags {
    /// Collects the options from the same source as cargo: the environment, otherwise the options
    /// for the target, otherwise those for every build.
    ///
    /// # Errors
    ///
    /// Fails if an option in the environment is not Unicode.
    pub fn of_author(rust: Rust, target: &str) -> Result<Self> {
        let all = environment()?.unwrap_or_else(|| configured(rust, target));
        Ok(Self::sorted(all))
    }

    /// Separates the options that the build cannot use.
    fn sorted(all: Vec<String>) -> Self {
        let mut flags = Self::default();
        let mut all = all.into_iter();
        while let Some(flag) = all.next() {
            let is_short = flag == "-C" || flag == "--codegen";
            let value = if is_short { all.next() } else { None };
            let text = value.as_deref().or_else(|| {
                let text = flag.strip_prefix("-C");
                text.or_else(|| flag.strip_prefix("--codegen="))
            });
            let name = text.and_then(|text| text.split('=').next());
            if name.is_some_and(|name| LEFT_OUT.contains(&name)) {
                let text = text.unwrap_or_default();
                flags.left_out.push(format!("-C {text}"));
            } else {
                flags.used.push(flag);
                flags.used.extend(value);
            }
        }
        flags
    }
}

/// Returns the options in the environment.
fn environment() -> Result<Option<Vec<String>>> {
    let variable = |name: &str| match env::var(name) {
        Ok(value) => Ok(Some(value)),
        Err(env::VarError::NotPresent) => Ok(None),
        Err(error) => Err(anyhow::Error::new(error).context(format!("cannot read {name}"))),
    };
    if let Some(encoded) = variable("CARGO_ENCODED_RUSTFLAGS")? {
        let flags = encoded.split('\x1f').filter(|flag| !flag.is_empty());
        return Ok(Some(flags.map(str::to_owned).collect()));
    }
    let flags = variable("RUSTFLAGS")?;
    Ok(flags.map(|flags| words(&Value::String(flags))))
}

/// Returns the options in the cargo configuration.
fn configured(rust: Rust, target: &str) -> Vec<String> {
    let own = get(rust, &format!("target.{target}.rustflags"));
    let mut flags = words(&own.unwrap_or_default());
    if let Some(targets) = get(rust, "target") {
        let cfgs: Vec<Cfg> =
            rust.cfgs(target).iter().filter_map(|line| line.parse().ok()).collect();
        flags.extend(matching(&targets, target, &cfgs));
    }
    if flags.is_empty() {
        flags = words(&get(rust, "build.rustflags").unwrap_or_default());
    }
    flags
}

/// Returns the options in the tables whose expression matches a target.
fn matching(targets: &Value, target: &str, cfgs: &[Cfg]) -> Vec<String> {
    let mut tables: Vec<(&String, &Value)> = targets.as_object().into_iter().flatten().collect();
    // cargo applies the tables in the order of their names.
    tables.sort_by_key(|(key, _)| *key);
    tables
        .into_iter()
        .filter(|(key, _)| {
            let platform = key.parse::<Platform>();
            platform.is_ok_and(|it| matches!(it, Platform::Cfg(_)) && it.matches(target, cfgs))
        })
        .flat_map(|(_, table)| words(&table["rustflags"]))
        .collect()
}

/// Returns the options in a configuration value: a string with spaces, or a list.
fn words(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => text.split_whitespace().map(str::to_owned).collect(),
        Value::Array(list) => {
            list.iter().filter_map(|one| one.as_str().map(str::to_owned)).collect()
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn options_that_a_driver_cannot_have_are_left_out() {
        let flags = [
            "-C", "linker=link.exe", "-Clinker-flavor=msvc", "--codegen=strip=symbols", "--cfg",
            "x", "-C", "opt-level=1", "-Ctarget-cpu=native", "--codegen", "linker=y",
        ];
        let flags = Flags::sorted(flags.map(str::to_owned).to_vec());
        assert_eq!(flags.used, ["--cfg", "x", "-C", "opt-level=1", "-Ctarget-cpu=native"]);
        let left_out =
            ["-C linker=link.exe", "-C linker-flavor=msvc", "-C strip=symbols", "-C linker=y"];
        assert_eq!(flags.left_out, left_out);
    }

    #[test]
    fn options_are_those_of_the_tables_that_fit_the_target() {
        let targets = json!({
            "cfg(windows)": { "rustflags": ["--cfg", "a"] },
            "cfg(target_arch = \"aarch64\")": { "rustflags": ["--cfg", "b"] },
            "cfg(not(unix))": { "rustflags": "--cfg c" },
            "x86_64-pc-windows-msvc": { "rustflags": ["--cfg", "own"] },
            "cfg(target_env = \"msvc\")": { "linker": "link.exe" },
        });
        let cfgs = ["windows", "target_arch=\"x86_64\"", "target_env=\"msvc\""];
        let cfgs = cfgs.map(|cfg| cfg.parse().unwrap());
        let found = matching(&targets, "x86_64-pc-windows-msvc", &cfgs);
        assert_eq!(found, ["--cfg", "c", "--cfg", "a"]);
    }
}
