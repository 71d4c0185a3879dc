//! Checks that the targets that cargo does not test have no tests.
//!
//! A manifest's `test = false` or `doctest = false` saves the compilation of a test program without tests.
//! cargo would omit a test or an example that is added later without a word.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use driver_build::files;
use serde_json::Value;

use crate::{
    modules::{self, Crate},
    process::root,
};

/// Fails with a list of all files that contain tests or examples that cargo does not run.
pub fn check() -> Result<()> {
    let root = root();
    let mut problems = Vec::new();
    for package in modules::all_packages()? {
        for target in package["targets"].as_array().into_iter().flatten() {
            let is_off = |key: &str| target[key] == Value::Bool(false);
            // cargo tests the examples of libraries only.
            let is_library = target["crate_types"] == serde_json::json!(["lib"]);
            let has_no_tests = is_off("test");
            let has_no_examples = is_library && is_off("doctest");
            let Some(file) =
                target["src_path"].as_str().filter(|_| has_no_tests || has_no_examples)
            else {
                continue;
            };
            let modules = Crate::read(Path::new(file), &root)
                .with_context(|| format!("cannot read the modules of {file}"))?;
            for module in modules.modules {
                let text = files::read_to_string(root.join(&module.file))?;
                if has_no_tests && has_tests(&text) {
                    problems.push(format!("{}: a test; remove `test = false`", module.file));
                }
                if has_no_examples && has_examples(&text) {
                    problems.push(format!("{}: an example; remove `doctest = false`", module.file));
                }
            }
        }
    }
    problems.sort();
    problems.dedup();
    ensure!(problems.is_empty(), "cargo does not run all tests:\n{}", problems.join("\n"));
    Ok(())
}

/// Returns whether a source file contains a unit test or a module of unit tests.
fn has_tests(text: &str) -> bool {
    ["#[test]", "#[cfg(test)]", "#[cfg(all(test"]
        .iter()
        .any(|start| text.lines().any(|line| line.trim_start().starts_with(start)))
}

/// Returns whether a source file's documentation contains Rust code.
fn has_examples(text: &str) -> bool {
    let fences = text.lines().filter_map(|line| {
        let line = line.trim_start();
        line.strip_prefix("///").or_else(|| line.strip_prefix("//!"))?.trim().strip_prefix("```")
    });
    // Every other fence ends a block.
    fences.step_by(2).any(|info| !["text", "ignore", "sh"].contains(&info))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_that_cargo_does_not_test_have_no_tests() {
        check().unwrap();
    }

    #[test]
    fn tests_and_examples_are_found() {
        assert!(has_tests("fn a() {}\n#[cfg(test)]\nmod tests;\n"));
        assert!(has_tests("    #[test]\n    fn a() {}\n"));
        assert!(!has_tests("//! `#[test]` marks a test.\n"));
        assert!(has_examples("/// ```\n/// a();\n/// ```\n"));
        assert!(has_examples("//! ```text\n//! ```\n//!\n//! ```no_run\n//! ```\n"));
        assert!(!has_examples("    /// ```text\n    /// a\n    /// ```\n// ```\n"));
    }
}
