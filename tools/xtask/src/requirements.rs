//! Finds the tests that prove each requirement.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use anyhow::{Result, ensure};
use driver_build::files;

use crate::{
    citations::{self, REQUIREMENTS},
    process::root,
    tree,
};

/// The requirements without a test, with the reasons.
const OPEN: &[(&str, &str)] = &[("R-C7", "needs the WDK and a machine with Windows")];

/// The folders that contain tests.
const FOLDERS: &[&str] =
    &["driver/", "formats/", "provider-lib/", "standin-kernel/", "tests/", "tools/"];

/// Prints the tests of each requirement, and fails if a requirement has no test.
pub fn check() -> Result<()> {
    let text = files::read_to_string(root().join(REQUIREMENTS))?;
    let defined = citations::definitions(&text);
    let required: Vec<&str> =
        defined.iter().map(|(_, id)| id.as_str()).filter(|id| is_id(id)).collect();
    ensure!(!required.is_empty(), "{REQUIREMENTS} defines no requirements");
    let mut tests = BTreeMap::new();
    for file in tree::files(&root())? {
        let is_test = FOLDERS.iter().any(|folder| file.starts_with(folder));
        if is_test && Path::new(&file).extension().is_some_and(|end| end == "rs") {
            let path = root().join(&file);
            let text = files::read_to_string(&path)?;
            read(&path, &text, &mut tests);
        }
    }
    let mut problems = Vec::new();
    for id in &required {
        let names = tests.get(*id);
        let open = OPEN.iter().find(|(open, _)| open == id);
        match (names, open) {
            (Some(names), None) => println!("{id:<6} {}", shown(names)),
            (None, Some((_, why))) => println!("{id:<6} open: {why}"),
            (None, None) => {
                problems.push(format!("{id} has no test; name it in a test's comment (`// {id}`)"));
            }
            (Some(_), Some(_)) => problems.push(format!(
                "{id} has a test; remove it from the list of open requirements in requirements.rs"
            )),
        }
    }
    for id in tests.keys() {
        if !required.contains(&id.as_str()) {
            problems.push(format!("{id} is in a test, but {REQUIREMENTS} does not define it"));
        }
    }
    ensure!(problems.is_empty(), "{}", problems.join("\n"));
    Ok(())
}

fn shown(names: &BTreeSet<String>) -> String {
    const MAX_NAMES: usize = 2;
    let mut text: Vec<_> = names.iter().take(MAX_NAMES).map(String::as_str).collect();
    let more = format!("and {} more", names.len().saturating_sub(MAX_NAMES));
    if names.len() > MAX_NAMES {
        text.push(&more);
    }
    text.join(", ")
}

/// Returns whether a word is a requirement's id, such as `R-T4`.
fn is_id(word: &str) -> bool {
    word.starts_with("R-") && citations::is_id(word)
}

/// Finds the ids in comments before test functions, and at the top of files that must not compile.
fn read(path: &Path, text: &str, tests: &mut BTreeMap<String, BTreeSet<String>>) {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let mut put = |ids: &[&str], name: &str| {
        for id in ids {
            tests.entry((*id).to_owned()).or_default().insert(name.to_owned());
        }
    };
    let mut pending: Vec<&str> = Vec::new();
    let mut is_test = path.components().any(|part| part.as_os_str() == "refused");
    let refused = is_test;
    for line in text.lines().map(str::trim) {
        if let Some(comment) = line.strip_prefix("//") {
            let words =
                comment.split(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '-'));
            pending.extend(words.filter(|word| is_id(word)));
            if refused {
                put(&pending, &stem);
                pending.clear();
            }
        } else if line.starts_with("#[test]") {
            is_test = true;
        } else if let Some((_, rest)) = line.split_once("fn ") {
            // Property tests have their `#[test]` inside a macro, also before the function.
            if is_test {
                let name = rest.split(['(', '<']).next().unwrap_or(rest);
                put(&pending, &format!("{stem}::{name}"));
            }
            pending.clear();
            is_test = refused;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, path::Path};

    use super::{check, read};

    #[test]
    fn every_requirement_of_the_checkout_has_a_test() {
        check().unwrap();
    }

    #[test]
    fn a_requirement_is_proved_by_the_test_below_its_id() {
        let id = |number: &str| format!("R-{number}");
        let source = format!(
            "// {}\nfn helper() {{}}\n// {}: why\n#[test]\nfn proves() {{}}\n",
            id("T1"),
            id("T2")
        );
        let mut tests = BTreeMap::new();
        read(Path::new("tests/some.rs"), &source, &mut tests);
        let proved: Vec<_> = tests.into_iter().collect();
        assert_eq!(proved.len(), 1, "{proved:?}");
        let (proved, by) = &proved[0];
        assert_eq!(*proved, id("T2"));
        assert!(by.contains("some::proves"), "{by:?}");
    }
}
