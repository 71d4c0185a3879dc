//! The public API of the published crates, as text files that show each change in review.
//!
//! The files are derived from the sources without a compiler, so they do not depend on the
//! toolchain. A name that a macro defines is listed with the macro's call.

mod items;
mod reach;

use std::{collections::BTreeMap, fs};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::{
    modules::{Crate, targets},
    process::root,
    publish::published,
};

/// The folder of the text files, from the repository's root.
const FOLDER: &str = "docs/api";

/// The command that updates the text files.
const RENEW: &str = "cargo xtask api";

/// `cargo xtask api`: writes the text files, or compares them with the sources.
pub fn run(check_only: bool) -> Result<()> {
    if check_only {
        return check();
    }
    let folder = root().join(FOLDER);
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    for (name, text) in texts()? {
        let path = folder.join(name);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        println!("{}", path.display());
    }
    Ok(())
}

/// Fails if a committed API differs from the API of the sources.
pub fn check() -> Result<()> {
    let folder = root().join(FOLDER);
    let mut problems = Vec::new();
    let wanted = texts()?;
    for (name, text) in &wanted {
        // A missing file counts as different.
        let found = fs::read_to_string(folder.join(name)).ok();
        if found.as_ref() != Some(text) {
            let place = found.map_or_else(String::new, |found| difference(&found, text));
            problems.push(format!(
                "{FOLDER}/{name} differs from the API of the sources{place}; review the change, run \
                 `{RENEW}` and commit what it writes"
            ));
        }
    }
    for entry in fs::read_dir(&folder).with_context(|| format!("cannot read {FOLDER}"))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if !wanted.contains_key(&name) {
            problems
                .push(format!("{FOLDER}/{name} is not the API of any published crate; remove it"));
        }
    }
    ensure!(problems.is_empty(), "{}", problems.join("\n"));
    Ok(())
}

/// Returns the first difference, as the end of a sentence.
fn difference(found: &str, wanted: &str) -> String {
    let (mut found, mut wanted) = (found.lines(), wanted.lines());
    for line in 1_usize.. {
        let shown = |text: Option<&str>| {
            text.map_or_else(|| "the end".to_owned(), |text| format!("`{text}`"))
        };
        match (found.next(), wanted.next()) {
            (None, None) => break,
            (found, wanted) if found != wanted => {
                let (found, wanted) = (shown(found), shown(wanted));
                return format!(" (line {line} is {found}; expected {wanted})");
            }
            (Some(_) | None, _) => {}
        }
    }
    String::new()
}

/// Returns the contents of the text files, by file name.
fn texts() -> Result<BTreeMap<String, String>> {
    let targets = targets()?;
    let mut texts = BTreeMap::new();
    for name in libraries()? {
        let target = targets.iter().find(|target| target.name == name);
        let target = target.with_context(|| format!("the workspace has no crate {name}"))?;
        let modules = Crate::read(&target.file, &root())
            .with_context(|| format!("cannot read the modules of {name}"))?;
        texts.insert(format!("{name}.txt"), text(&name, &modules));
    }
    Ok(texts)
}

/// Returns the names of the published libraries.
fn libraries() -> Result<Vec<String>> {
    let is_library = |package: &Value| {
        let targets = package["targets"].as_array().into_iter().flatten();
        let mut kinds = targets.flat_map(|target| target["kind"].as_array().into_iter().flatten());
        kinds.any(|kind| kind == "lib" || kind == "proc-macro")
    };
    let packages = published()?;
    let libraries = packages.iter().filter(|package| is_library(package));
    let names = libraries.filter_map(|package| package["name"].as_str());
    Ok(names.map(str::to_owned).collect())
}

/// Returns the text of a crate.
fn text(name: &str, modules: &Crate) -> String {
    let library = name.replace('-', "_");
    let mut text = format!("The public API of {name}, written by `{RENEW}`.\n");
    for (path, entry) in items::entries(modules, &library) {
        text.push_str("\n## ");
        text.push_str(&path);
        text.push('\n');
        text.push_str(&entry);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{Crate, check, difference, text};

    fn api(files: &[(&str, &str)]) -> String {
        text("some-crate", &Crate::of_texts(files))
    }

    #[test]
    fn the_committed_texts_are_those_of_the_sources() {
        check().unwrap();
    }

    #[test]
    fn reachable_items_are_listed_without_bodies_and_private_parts() {
        let found = api(&[
            (
                "lib.rs",
                "mod a;\npub mod b;\npub use a::{A, f as g};\npub use core::fmt;\nfn hidden() {}\n",
            ),
            (
                "a.rs",
                "/// Docs.\n#[derive(Clone)]\npub struct A { pub x: u8, y: u16 }\n\
                 impl A { pub const fn new(x: u8) -> Self { Self { x, y: 0 } } fn private(&self) {} }\n\
                 impl Default for A { fn default() -> Self { Self::new(1) } }\n\
                 pub fn f<T: Copy>(value: T) -> T { value }\npub struct NotReachable;\n",
            ),
            ("b.rs", "pub const LIMIT: usize = 1 + 1;\npub(crate) struct Inner;\n"),
        ]);
        let expected = "The public API of some-crate, written by `cargo xtask api`.\n\n\
            ## some_crate::A\n\
            #[derive(Clone)]\npub struct A {\n    pub x: u8,\n    private: _,\n}\n\
            impl A {\n    pub const fn new(x: u8) -> Self {}\n}\nimpl Default for A {}\n\n\
            ## some_crate::b\npub mod b {}\n\n\
            ## some_crate::b::LIMIT\npub const LIMIT: usize = 1 + 1;\n\n\
            ## some_crate::fmt\npub use core::fmt;\n\n\
            ## some_crate::g\npub fn f<T: Copy>(value: T) -> T {}\n";
        assert_eq!(found, expected);
    }

    #[test]
    fn names_that_macros_define_are_listed_with_the_call() {
        let found = api(&[
            ("lib.rs", "mod a;\npub use a::Made;\n#[macro_export]\nmacro_rules! m { () => {} }\n"),
            ("a.rs", "make!(Made, Other);\n"),
        ]);
        assert!(found.contains("## some_crate::Made\nmake!(Made, Other);\n"), "{found}");
        assert!(found.contains("## some_crate::m\n"), "{found}");
    }

    #[test]
    fn the_first_difference_is_shown() {
        let shown = difference("a\nb\n", "a\nc\n");
        assert_eq!(shown, " (line 2 is `b`; expected `c`)");
        let shown = difference("a\n", "a\nb\n");
        assert_eq!(shown, " (line 2 is the end; expected `b`)");
        let shown = difference("a\nb\n", "a\n");
        assert_eq!(shown, " (line 2 is `b`; expected the end)");
        assert_eq!(difference("a\n", "a\n"), "");
    }
}
