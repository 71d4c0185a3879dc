//! Cargo profiles: their line number settings and their folders.

use std::{env, path::Path};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::{config, files, toolchain::Rust};

/// Returns the name of a profile's folder in a target folder.
pub fn folder(name: &str) -> &str {
    match name {
        "dev" | "test" => "debug",
        "release" | "bench" => "release",
        other => other,
    }
}

/// Returns the cargo options that add a PDB with line numbers to a profile's image, unless the
/// author sets `debug`.
///
/// # Errors
///
/// Fails if the workspace's manifest cannot be read.
pub fn symbols(rust: Rust, manifest: &Path, name: &str) -> Result<Vec<String>> {
    let text = files::read_to_string(manifest)?;
    let manifest: Value = toml::from_str(&text)
        .with_context(|| format!("cannot read the TOML of {}", manifest.display()))?;
    let config = config::get(rust, "profile").unwrap_or_default();
    let is_set = |variable: &str| env::var_os(variable).is_some();
    Ok(options(&[&config, &manifest["profile"]], is_set, name))
}

/// Returns the options for a profile; `sources` holds the `profile` tables of the configuration and
/// the manifest, and `is_set` returns whether an environment variable is set.
fn options(sources: &[&Value], is_set: impl Fn(&str) -> bool, name: &str) -> Vec<String> {
    let find = |name: &str, key: &str| {
        let mut values = sources.iter().map(|source| &source[name][key]);
        values.find(|value| !value.is_null())
    };
    // On Windows, `strip` omits the PDB and does not affect the image.
    let mut options = vec![format!("--config=profile.{name}.strip=\"none\"")];
    let mut seen = Vec::new();
    let mut at = name;
    loop {
        let variable = at.to_uppercase().replace('-', "_");
        let is_chosen =
            find(at, "debug").is_some() || is_set(&format!("CARGO_PROFILE_{variable}_DEBUG"));
        if is_chosen || seen.contains(&at) {
            return options;
        }
        seen.push(at);
        at = match at {
            "release" => break,
            "bench" => "release",
            "test" => "dev",
            // The `dev` profile has line numbers by default.
            other => match find(other, "inherits").and_then(Value::as_str) {
                Some(inherited) => inherited,
                None => return options,
            },
        };
    }
    options.push(format!("--config=profile.{name}.debug=\"line-tables-only\""));
    options
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn has_lines(config: &Value, manifest: &Value, name: &str) -> bool {
        let options = options(&[config, manifest], |_| false, name);
        assert_eq!(options[0], format!("--config=profile.{name}.strip=\"none\""));
        let lines = format!("--config=profile.{name}.debug=\"line-tables-only\"");
        options.get(1) == Some(&lines)
    }

    #[test]
    fn a_release_has_line_numbers_unless_the_author_sets_debug() {
        let none = json!({});
        assert!(has_lines(&none, &none, "release"));
        assert!(has_lines(&none, &json!({ "release": { "lto": true } }), "release"));
        assert!(has_lines(&none, &none, "bench"));
        assert!(!has_lines(&none, &none, "dev"));
        let chosen = json!({ "release": { "debug": 0 } });
        assert!(!has_lines(&none, &chosen, "release"));
        assert!(!has_lines(&chosen, &none, "release"));
        let variable = options(&[&none], |name| name == "CARGO_PROFILE_RELEASE_DEBUG", "release");
        assert_eq!(variable.len(), 1);
    }

    #[test]
    fn a_profile_has_the_setting_of_the_one_that_it_inherits() {
        let none = json!({});
        let own = json!({ "ship": { "inherits": "release" }, "fast": { "inherits": "dev" } });
        assert!(has_lines(&none, &own, "ship"));
        assert!(!has_lines(&none, &own, "fast"));
        assert!(!has_lines(&json!({ "release": { "debug": "full" } }), &own, "ship"));
        // cargo rejects these values.
        assert!(!has_lines(&none, &none, "unknown"));
        let circle = json!({ "a": { "inherits": "b" }, "b": { "inherits": "a" } });
        assert!(!has_lines(&none, &circle, "a"));
    }
}
