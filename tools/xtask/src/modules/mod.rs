//! Finds dependency cycles between modules.
//!
//! A module uses another if its code names an item of the other module in a `use` or in a path that
//! starts with `crate`, `self`, `super` or a module's name, including paths in macros and
//! attributes. A re-exported name belongs to the module that defines it; declaring a module or
//! re-exporting its names is not a use. Test code does not count.
//!
//! A type's inherent functions, methods and constants belong to the module of their `impl`. A
//! method call on a receiver other than `self` counts only if no other type or trait in the crate
//! has a method with that name, because the types of expressions are unknown.
//!
//! There are two kinds of cycles: between single modules, and between modules with the same parent,
//! each taken together with all modules inside it.

mod cycles;
mod edges;
mod methods;
mod names;
mod tree;

use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use self::edges::Edges;
pub use self::tree::Crate;
use self::tree::Id;
use crate::{
    process::{json, root},
    standin,
};

/// The manifests of the workspaces whose crates are checked.
const WORKSPACES: [&str; 3] = ["Cargo.toml", standin::MANIFEST, "tools/bench/image/Cargo.toml"];

/// A crate: a library or a program in a package.
pub struct Target {
    /// The package's name, followed by the program's name if it differs.
    pub name: String,
    /// The root file.
    pub file: PathBuf,
}

/// Returns the packages of all workspaces, as in the output of `cargo metadata`.
pub fn all_packages() -> Result<Vec<Value>> {
    let mut all = Vec::new();
    for workspace in WORKSPACES {
        all.extend(packages(&root().join(workspace))?);
    }
    Ok(all)
}

/// Fails if a crate's modules form a cycle, and shows each cycle.
pub fn check() -> Result<()> {
    let mut problems = Vec::new();
    for target in targets()? {
        let modules = Crate::read(&target.file, &root())
            .with_context(|| format!("cannot read the modules of {}", target.name))?;
        let cycles = shown(&modules);
        if !cycles.is_empty() {
            problems.push(format!(
                "the modules of {} form cycles; move what two modules share to a module below \
                 both:\n{}",
                target.name,
                cycles.join("\n")
            ));
        }
    }
    ensure!(problems.is_empty(), "{}", problems.join("\n"));
    Ok(())
}

/// Returns the crates of all workspaces, except tests, examples and build scripts.
pub fn targets() -> Result<Vec<Target>> {
    const KINDS: [&str; 5] = ["lib", "rlib", "cdylib", "proc-macro", "bin"];
    let mut targets = Vec::new();
    for package in all_packages()? {
        for target in package["targets"].as_array().into_iter().flatten() {
            let kinds = target["kind"].as_array().into_iter().flatten();
            let is_meant = kinds.filter_map(Value::as_str).any(|kind| KINDS.contains(&kind));
            let text = |value: &Value| value.as_str().map(str::to_owned);
            let whole = (text(&package["name"]), text(&target["name"]));
            let (Some(package), Some(program)) = whole else {
                continue;
            };
            let file = text(&target["src_path"]).map(PathBuf::from);
            let Some(file) = file.filter(|_| is_meant) else {
                continue;
            };
            let is_same = program.replace('_', "-") == package;
            let name = if is_same { package } else { format!("{package} ({program})") };
            targets.push(Target { name, file });
        }
    }
    ensure!(!targets.is_empty(), "the workspaces have no crates");
    Ok(targets)
}

/// Returns the metadata of a workspace's packages.
fn packages(manifest: &Path) -> Result<Vec<Value>> {
    let metadata = json(
        Command::new("cargo")
            .args(["metadata", "--format-version", "1", "--no-deps", "--manifest-path"])
            .arg(manifest),
    )?;
    let packages = metadata["packages"].as_array().cloned();
    packages.with_context(|| format!("{} has no packages", manifest.display()))
}

/// Returns each cycle as a chain of modules, with the locations where each module uses the next:
/// first cycles of single modules, then cycles of modules together with all modules inside them.
fn shown(modules: &Crate) -> Vec<String> {
    let edges = modules.edges();
    let siblings = modules.edges_of_siblings(&edges);
    let single = cycles::cycles(&edges);
    let mut chains: Vec<String> =
        single.iter().map(|cycle| chain(modules, &edges, cycle)).collect();
    for cycle in cycles::cycles(&siblings) {
        if !single.contains(&cycle) {
            chains.push(chain(modules, &siblings, &cycle));
        }
    }
    chains
}

fn chain(modules: &Crate, edges: &Edges, cycle: &[Id]) -> String {
    let mut text = String::from(" ");
    let next = cycle.iter().cycle().skip(1);
    for (from, to) in cycle.iter().zip(next) {
        let path = &modules.modules[*from].path;
        if let Some(place) = edges[*from].get(to) {
            let file = &modules.modules[place.module].file;
            let _ = write!(text, " {path} ({file}:{}) ->", place.line);
        }
    }
    let first = cycle.first().map_or("", |id| &modules.modules[*id].path);
    let _ = write!(text, " {first}");
    text
}

#[cfg(test)]
mod tests {
    use super::{Crate, shown};

    fn cycles(files: &[(&str, &str)]) -> Vec<String> {
        shown(&Crate::of_texts(files))
    }

    fn assert_acyclic(files: &[(&str, &str)]) {
        let found = cycles(files);
        assert!(found.is_empty(), "{}", found.join("\n"));
    }

    #[test]
    fn a_cycle_is_shown_with_the_place_of_each_edge() {
        let found = cycles(&[
            ("lib.rs", "mod a;\nmod b;\nmod c;\n"),
            ("a.rs", "use crate::b::B;\npub struct A(B);\n"),
            ("b.rs", "pub struct B;\nfn f() {\n    super::c::g();\n}\n"),
            ("c/mod.rs", "\n\npub fn g() -> crate::a::A { loop {} }\n"),
        ]);
        assert_eq!(
            found,
            ["  crate::a (a.rs:1) -> crate::b (b.rs:3) -> crate::c (c/mod.rs:3) -> crate::a"]
        );
    }

    #[test]
    fn a_re_export_is_followed_and_is_not_an_edge() {
        let a = "use crate::B;\npub struct A(B);\n";
        assert_acyclic(&[
            ("lib.rs", "mod a;\nmod b;\npub use a::A;\npub use crate::b::*;\n"),
            ("a.rs", a),
            ("b.rs", "pub struct B;\n"),
        ]);
        // A name that the module itself defines is an edge to that module, as is a use of a child.
        let found = cycles(&[("lib.rs", "mod a;\npub use a::A;\npub struct B(A);\n"), ("a.rs", a)]);
        assert_eq!(found, ["  crate (lib.rs:3) -> crate::a (a.rs:1) -> crate"]);
    }

    #[test]
    fn a_childs_use_of_its_parents_items_is_an_edge() {
        let child = "use super::Shared;\npub fn f(_: Shared) {}\n";
        let found = cycles(&[
            ("lib.rs", "mod a;\npub struct Shared;\nfn g() { a::f(Shared) }\n"),
            ("a.rs", child),
        ]);
        assert_eq!(found, ["  crate (lib.rs:3) -> crate::a (a.rs:1) -> crate"]);
        assert_acyclic(&[("lib.rs", "mod a;\npub struct Shared;\n"), ("a.rs", child)]);
    }

    #[test]
    fn code_for_tests_is_left_out() {
        assert_acyclic(&[
            ("lib.rs", "mod a;\nmod b;\n#[cfg(test)]\nmod c;\n"),
            (
                "a.rs",
                "#[cfg(all(test, unix))]\nmod tests { use crate::b::f; }\npub fn g() {\n\
                 #[cfg(test)]\n crate::b::f();\n}\n#[test]\nfn t() { crate::b::f() }\n",
            ),
            ("b.rs", "pub fn f() { crate::a::g() }\n"),
        ]);
        let found = cycles(&[
            ("lib.rs", "mod a;\nmod b;\n"),
            ("a.rs", "#[cfg(any(test, unix))]\nuse crate::b::f;\npub fn g() {}\n"),
            ("b.rs", "#[cfg(not(test))]\npub fn f() { crate::a::g() }\n"),
        ]);
        assert_eq!(found.len(), 1, "{found:?}");
    }

    #[test]
    fn paths_in_macros_are_edges_and_names_of_fields_are_not() {
        let lib = ("lib.rs", "mod a;\nmod b;\npub use b::call;\n");
        let b = ("b.rs", "use crate::a::g;\npub fn call() { g() }\n");
        let found =
            cycles(&[lib, ("a.rs", "pub fn g() {\n    print!(\"{}\", crate::b::call());\n}\n"), b]);
        assert_eq!(found, ["  crate::a (a.rs:2) -> crate::b (b.rs:1) -> crate::a"]);
        assert_acyclic(&[
            lib,
            ("a.rs", "pub fn g(b: B) { print!(\"{}\", b.call() + ::b::call()); }\n"),
            b,
        ]);
    }

    #[test]
    fn the_modules_of_an_impl_are_edges() {
        let lib = ("lib.rs", "mod reader;\nmod lists;\n");
        let lists = (
            "lists.rs",
            "use crate::reader::Reader;\nimpl Reader {\n    pub fn levels(&self, _: u8) {}\n    \
             pub const NONE: u8 = 0;\n}\n",
        );
        let cycle = |line| {
            format!(
                "  crate::reader (reader.rs:{line}) -> crate::lists (lists.rs:1) -> crate::reader"
            )
        };
        for (line, use_of_it) in [
            (2, "impl Reader {\n fn f(&self) { self.levels(1) } }"),
            (2, "impl Reader {\n fn f(&self) { print!(\"{}\", self.levels(1)) } }"),
            (2, "impl Reader {\n fn f() { g(Self::levels) } }"),
            (2, "impl Reader {\n fn f() -> u8 { Self::NONE } }"),
            (2, "fn f() -> u8 {\n Reader::NONE }"),
            (2, "fn f(any: &Reader) {\n any.levels(1) }"),
            (2, "fn f(any: &Any) {\n any.reader.levels(1) }"),
        ] {
            let reader = format!("pub struct Reader; {use_of_it}");
            let found = cycles(&[lib, ("reader.rs", &reader), lists]);
            assert_eq!(found, [cycle(line)], "{reader}");
        }
        for other in [
            // Another method with the same name.
            "impl Reader { fn f(&self, other: &Other) { other.levels() } }",
            "fn f(any: &Any) { any.levels(1) } trait Levels { fn levels(&self, _: u8); }",
            "fn f(any: &Any) { any.levels(1) } struct Own; impl Own { fn levels(&self, _: u8) {} }",
            // An unknown type, which can be from another crate.
            "fn f(any: &Any) { any.get().levels(1) }",
        ] {
            let reader = format!("pub struct Reader; {other}");
            assert_acyclic(&[lib, ("reader.rs", &reader), lists]);
        }
    }

    #[test]
    fn names_that_a_glob_or_a_module_re_exports_are_edges() {
        let lib = "mod a;\nmod b;\npub use a::A;\n";
        let glob = ("b.rs", "use super::*;\npub fn g(_: A) {}\n");
        let found = cycles(&[
            ("lib.rs", lib),
            ("a.rs", "pub struct A;\nfn f() { crate::b::g(A) }\n"),
            glob,
        ]);
        let cycle = "  crate::a (a.rs:2) -> crate::b (b.rs:2) -> crate::a";
        assert_eq!(found, [cycle]);
        let found = cycles(&[
            ("lib.rs", "mod a;\nmod b;\nmod facade;\n"),
            ("a.rs", "pub struct A;\nfn f() { crate::b::g() }\n"),
            ("b.rs", "use crate::facade;\npub fn g() { facade::A; }\n"),
            ("facade.rs", "pub use crate::a::A;\n"),
        ]);
        assert!(found.contains(&cycle.to_owned()), "{found:?}");
    }

    #[test]
    fn paths_in_attributes_are_edges() {
        let found = cycles(&[
            ("lib.rs", "mod a;\nmod b;\n"),
            (
                "a.rs",
                "pub struct A {\n    #[arg(value_parser = crate::b::parse)]\n    field: u8,\n}\n",
            ),
            ("b.rs", "pub fn parse() -> crate::a::A { loop {} }\n"),
        ]);
        assert_eq!(found, ["  crate::a (a.rs:2) -> crate::b (b.rs:1) -> crate::a"]);
    }

    #[test]
    fn modules_of_which_a_cfg_selects_one_count_as_one() {
        let found = cycles(&[
            (
                "lib.rs",
                "mod a;\n#[cfg(unix)]\n#[path = \"unix.rs\"]\nmod b;\n#[cfg(not(unix))]\n\
                 #[path = \"other.rs\"]\nmod b;\n",
            ),
            ("a.rs", "pub fn f() { crate::b::g() }\n"),
            ("unix.rs", "pub fn g() {}\n"),
            ("other.rs", "pub fn g() {\n    crate::a::f()\n}\n"),
        ]);
        assert_eq!(found, ["  crate::a (a.rs:1) -> crate::b (other.rs:2) -> crate::a"]);
    }

    #[test]
    fn modules_within_a_file_are_modules() {
        let found = cycles(&[(
            "lib.rs",
            "mod a {\n    pub fn f() { super::b::g() }\n}\nmod b {\n    use super::a;\n    \
             pub fn g() { a::f() }\n}\n",
        )]);
        assert_eq!(found, ["  crate::a (lib.rs:2) -> crate::b (lib.rs:5) -> crate::a"]);
    }

    #[test]
    fn cycles_between_modules_with_their_children_are_found() {
        let found = cycles(&[
            ("lib.rs", "mod a;\nmod b;\n"),
            ("a/mod.rs", "mod one;\nmod two;\npub use one::f;\n"),
            ("a/one.rs", "pub fn f() {}\n"),
            ("a/two.rs", "fn g() {\n    crate::b::h()\n}\n"),
            ("b.rs", "pub fn h() { crate::a::f() }\n"),
        ]);
        assert_eq!(found, ["  crate::a (a/two.rs:2) -> crate::b (b.rs:1) -> crate::a"]);
    }

    #[test]
    fn an_exported_macro_belongs_to_its_module() {
        assert_acyclic(&[
            ("lib.rs", "mod a;\nmod b;\nfn f() { a::g() }\n"),
            ("a.rs", "pub fn g() { crate::shout!() }\n"),
            ("b.rs", "#[macro_export]\nmacro_rules! shout { () => {} }\n"),
        ]);
    }

    #[test]
    fn a_module_without_a_file_is_named() {
        let error = Crate::read(std::path::Path::new("/nowhere/lib.rs"), "/".as_ref());
        let error = error.err().unwrap().to_string();
        assert!(error.contains("/nowhere/lib.rs"), "{error}");
    }
}
