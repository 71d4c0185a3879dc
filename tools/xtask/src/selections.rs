//! Checks what a selection of packages compiles. A package that several selections compile must have
//! the same features in all of them, since cargo compiles it once for each set of features.
//!
//! The selections are those of README.md and CONTRIBUTING.md (`cargo test -p …`, `cargo xtask` and
//! `cargo foreign`), and those that `cargo xtask renew` runs.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

use serde_json::Value;

use crate::{
    process::{cargo, json, output_of, root},
    renew,
};

/// The maximum number of packages that `cargo test -p wdk-etw` compiles.
const MAX_OF_LIBRARY: usize = 45;

/// A command that selects packages.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Selection {
    packages: Vec<String>,
    /// True if it also compiles the packages' tests, and so what they depend on.
    has_tests: bool,
}

/// For each package's id, the sets of features with which a selection compiles it. A crate that
/// procedural macros and other crates use can have two.
type Features = BTreeMap<String, BTreeSet<String>>;

impl Selection {
    /// Returns the selection of a command line, or `None` if it selects no package of `all`.
    fn parse(command: &str, all: &BTreeSet<String>) -> Option<Self> {
        let mut words = command.split_whitespace().skip_while(|word| *word != "cargo").skip(1);
        let (packages, has_tests) = match words.next()? {
            "xtask" => (vec!["xtask".to_owned()], false),
            "foreign" => (vec!["etw-foreign".to_owned()], false),
            "test" => {
                let words: Vec<&str> = words.collect();
                let pairs = words.iter().zip(words.iter().skip(1));
                let named = pairs.filter(|(option, _)| matches!(**option, "-p" | "--package"));
                (named.map(|(_, package)| (*package).to_owned()).collect(), true)
            }
            _ => return None,
        };
        let is_known = !packages.is_empty() && packages.iter().all(|one| all.contains(one));
        is_known.then_some(Self { packages, has_tests })
    }

    /// Returns the selections in a document's code spans and blocks.
    fn all_of(document: &str, all: &BTreeSet<String>) -> BTreeSet<Self> {
        let parts = document.lines().flat_map(|line| line.split('`'));
        parts.filter_map(|part| Self::parse(part, all)).collect()
    }

    fn command(&self) -> String {
        let verb = if self.has_tests { "test" } else { "run" };
        format!("cargo {verb} -p {}", self.packages.join(" -p "))
    }

    /// Returns what the selection compiles: the units that cargo would compile, which it lists only
    /// with an unstable option. `cargo tree` does not tell apart all that cargo does.
    fn features(&self) -> Features {
        let verb = if self.has_tests { "test" } else { "build" };
        let mut graph = cargo(&[verb, "--locked", "--unit-graph", "-Zunstable-options"]);
        for package in &self.packages {
            graph.args(["--package", package]);
        }
        let graph = json(graph.env("RUSTC_BOOTSTRAP", "1")).unwrap();
        let mut found = Features::new();
        for unit in list(&graph, "units").filter(|unit| unit["mode"] == "build") {
            let is_script = list(&unit["target"], "kind").any(|kind| kind == "custom-build");
            let package = unit["pkg_id"].as_str().unwrap_or_default();
            let features: Vec<&str> = list(unit, "features").filter_map(Value::as_str).collect();
            let sets = found.entry(package.to_owned()).or_default();
            if !is_script {
                sets.insert(features.join(","));
            }
        }
        found
    }
}

/// Returns cargo's metadata of all packages.
fn metadata() -> Value {
    json(&mut cargo(&["metadata", "--format-version", "1", "--locked"])).unwrap()
}

fn list<'a>(value: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    value[name].as_array().into_iter().flatten()
}

/// Returns the names of the workspace's packages.
fn members(metadata: &Value) -> BTreeSet<String> {
    let own = list(metadata, "packages").filter(|package| package["source"].is_null());
    own.filter_map(|package| package["name"].as_str().map(ToOwned::to_owned)).collect()
}

/// Returns the packages that ask for a feature of a crate.
fn who_asks(metadata: &Value, name: &str, feature: &str) -> Vec<String> {
    let asks = |dependency: &&Value| {
        let is_default = feature == "default" && dependency["uses_default_features"] == true;
        dependency["name"] == name
            && (is_default || list(dependency, "features").any(|one| one == feature))
    };
    let packages = list(metadata, "packages");
    let asking = packages.filter(|package| list(package, "dependencies").any(|one| asks(&one)));
    asking.filter_map(|package| package["name"].as_str().map(ToOwned::to_owned)).collect()
}

/// Returns a sentence for each third-party crate that two selections compile with other features.
fn differences(selections: &[(String, Features)], metadata: &Value) -> Vec<String> {
    let mut problems = Vec::new();
    let packages: BTreeSet<&String> =
        selections.iter().flat_map(|(_, features)| features.keys()).collect();
    // The id of a package of this workspace is a path.
    for package in packages.into_iter().filter(|package| package.starts_with("registry+")) {
        let mut compiled: BTreeMap<&BTreeSet<String>, Vec<&str>> = BTreeMap::new();
        for (command, features) in selections {
            if let Some(sets) = features.get(package) {
                compiled.entry(sets).or_default().push(command);
            }
        }
        if compiled.len() < 2 {
            continue;
        }
        let sets: Vec<BTreeSet<&str>> = compiled
            .keys()
            .flat_map(|sets| sets.iter())
            .map(|set| set.split(',').filter(|feature| !feature.is_empty()).collect())
            .collect();
        let package = package.rsplit(['#', '/']).next().unwrap_or_default();
        let name = package.split('@').next().unwrap_or_default();
        let somewhere: BTreeSet<&str> = sets.iter().flatten().copied().collect();
        let mut lines = vec![format!("{package} has other features in other selections:")];
        for (sets, commands) in &compiled {
            let sets: Vec<String> = sets.iter().map(|set| format!("[{set}]")).collect();
            lines.push(format!("    {} in `{}`", sets.join(" and "), commands.join("`, `")));
        }
        for feature in somewhere.into_iter().filter(|one| sets.iter().any(|set| !set.contains(one)))
        {
            let asking = who_asks(metadata, name, feature).join(", ");
            lines.push(format!("    `{feature}` is asked for by {asking}"));
        }
        problems.push(lines.join("\n"));
    }
    problems
}

#[test]
fn selections_share_their_third_party_crates() {
    let metadata = metadata();
    let members = members(&metadata);
    let documents =
        ["README.md", "CONTRIBUTING.md"].map(|name| fs::read_to_string(root().join(name)).unwrap());
    let named = documents.iter().flat_map(|text| Selection::all_of(text, &members));
    let mut named: BTreeSet<Selection> = named.collect();
    // `cargo xtask renew` runs these.
    let tested = renew::tested_packages().into_iter().filter(|package| members.contains(package));
    named.extend(tested.map(|package| Selection { packages: vec![package], has_tests: true }));
    for expected in
        ["wdk-etw", "standin-kernel", "etw-scenarios", "xtask", "etw-foreign", "cargo-etw", "etl"]
    {
        assert!(named.iter().any(|one| one.packages == [expected]), "{expected}: {named:?}");
    }
    let selections: Vec<(String, Features)> =
        named.iter().map(|selection| (selection.command(), selection.features())).collect();
    let problems = differences(&selections, &metadata);
    assert!(
        problems.is_empty(),
        "one selection would compile again what another has compiled; see \"One set of features\" in \
         CONTRIBUTING.md:\n{}",
        problems.join("\n")
    );
}

#[test]
fn the_librarys_tests_compile_few_packages() {
    let selection = Selection { packages: vec!["wdk-etw".to_owned()], has_tests: true };
    let features = selection.features();
    let packages: Vec<&str> =
        features.keys().filter_map(|package| package.rsplit('/').next()).collect();
    assert!(
        packages.len() <= MAX_OF_LIBRARY,
        "`{}` compiles {} packages, more than {MAX_OF_LIBRARY}: {}",
        selection.command(),
        packages.len(),
        packages.join(", ")
    );
}

#[test]
fn commands_of_documents_are_selections() {
    let all = BTreeSet::from(["a".to_owned(), "b".to_owned(), "xtask".to_owned()]);
    let text = "Run `cargo test -p a --lib -p b`, not `cargo run -p a` or `cargo test -p c`.\n\
                    X=1 cargo test --package b text  # file\n`cargo xtask renew`";
    let found = Selection::all_of(text, &all);
    let commands: Vec<String> = found.iter().map(Selection::command).collect();
    assert_eq!(commands, ["cargo test -p a -p b", "cargo test -p b", "cargo run -p xtask"]);
}

#[test]
fn a_crate_with_other_features_is_named_with_who_asks() {
    let selection = |command: &str, package: &str, sets: &[&str]| {
        let sets = sets.iter().map(|&set| set.to_owned()).collect();
        (command.to_owned(), Features::from([(package.to_owned(), sets)]))
    };
    let metadata = serde_json::json!({ "packages": [
        { "name": "x", "dependencies": [
            { "name": "flate2", "uses_default_features": false, "features": ["zlib"] }] },
        { "name": "y", "dependencies": [
            { "name": "flate2", "uses_default_features": true, "features": [] }] },
    ] });
    let (one, other) = ("registry+https://host/index#flate2@1.0.0", "path+file:///own#0.1.0");
    let selections = [
        selection("first", one, &["default", "std"]),
        selection("second", one, &["default", "zlib"]),
        selection("first", other, &["a"]),
        selection("second", other, &["b"]),
    ];
    let problems = differences(&selections, &metadata);
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(problems[0].contains("`zlib` is asked for by x"), "{problems:?}");
    assert!(problems[0].contains("`default` is asked for by y"), "{problems:?}");
    let same = [selection("first", one, &["std"]), selection("second", one, &["std"])];
    assert_eq!(differences(&same, &metadata), [] as [&str; 0]);
}

#[test]
fn a_drivers_tests_compile_no_readers_of_others_formats_and_no_command_line() {
    let mut tree = cargo(&["tree", "--locked", "--package", "standin-kernel", "--edges"]);
    let printed = output_of(tree.args(["normal,build", "--prefix", "none"])).unwrap();
    let names: BTreeSet<&str> =
        printed.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert!(names.contains("etl-file") && names.contains("etw-manifest"), "{printed}");
    let unused =
        ["anyhow", "clap", "comfy-table", "csv", "landlock", "pcap-file", "quick-xml", "roxmltree"];
    let compiled: Vec<_> = unused.iter().filter(|name| names.contains(**name)).collect();
    assert!(compiled.is_empty(), "users of the stand-in kernel's library compile {compiled:?}");
}
