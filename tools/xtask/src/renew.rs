//! `cargo xtask renew`: writes the tracked files that are generated, and lists those that changed.
//!
//! A test or another command of this program compares each file with its source; here is only how each is
//! written. `docs/benchmark.md` has measurements, which `cargo xtask bench --write` makes.

use std::{
    collections::BTreeMap,
    fs,
    hash::{DefaultHasher, Hash, Hasher},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use driver_build::toolchain::{Machine, Toolchain};

use crate::{
    api, cargo_etw, demo, lock_files,
    packages::BROWSER,
    probes,
    process::{cargo, root, run_quietly, target},
    progress::step,
    tree,
};

/// The environment variable that makes a test write its file before it compares the file.
const VARIABLE: &str = "WDK_ETW_RENEW";

/// The reason why a part cannot be renewed here, or `None` if it was renewed.
type Outcome = Result<Option<String>>;

/// Files that are written together.
struct Part {
    /// The name on the command line.
    name: &'static str,
    /// A description of the files, for progress and help.
    title: &'static str,
    /// True if the part is renewed only when it is named.
    is_named_only: bool,
    write: fn() -> Outcome,
}

const fn part(name: &'static str, title: &'static str, write: fn() -> Outcome) -> Part {
    Part { name, title, is_named_only: false, write }
}

/// All parts. Those that others are compiled from come first.
const PARTS: [Part; 13] = [
    part("lock", "the lock files", || {
        lock_files::update()?;
        Ok(None)
    }),
    part("manifest", "the sample driver's manifest", || {
        cargo_etw::write_manifest()?;
        Ok(None)
    }),
    part("recipes", "the sample driver's tracing instructions and profile", || {
        cargo_etw::write_recipes()?;
        Ok(None)
    }),
    part("fixtures", "the manifests and declarations that tests import and compile", fixtures),
    part("field-types", "the documentation's table of field types", || {
        test("wdk-etw-schema", &["--test", "it", "field_types"])
    }),
    part("expanded", "the expansions of two events, and the writers of each form of field", || {
        test("wdk-etw-macros", &["--lib", "expanded::"])
    }),
    part("errors", "the errors of declarations, and what those without mistakes mean", || {
        test("etw-compile-fail", &[])?;
        test("wdk-etw-schema", &["--test", "it", "--", "accepted", "refused"])
    }),
    part("snapshots", "the outputs of etl", snapshots),
    part("guide", "the lists of steps, settings and rules", || {
        test("standin-kernel", &["--test", "it", "guide::"])
    }),
    part("answers", "the stand-in kernel's answers to the probes", answers),
    part("probes", "the list of probes", || {
        test("etw-probes", &["--test", "stand_in", "the_reference_lists_the_probes_and_answers"])
    }),
    part("api", "the public API of the published crates", api::write),
    Part {
        // Each run of the demo has other times.
        is_named_only: true,
        ..part("pictures", "the pictures of a report", pictures)
    },
];

/// Returns the names of the parts.
pub fn names() -> Vec<&'static str> {
    PARTS.iter().map(|part| part.name).collect()
}

/// Returns the parts and their contents, for the command's help.
pub fn help() -> String {
    let line = |part: &Part| {
        let when = if part.is_named_only { " (only when named)" } else { "" };
        format!("  {:<12} {}{when}\n", part.name, part.title)
    };
    format!("Parts:\n{}", PARTS.iter().map(line).collect::<String>())
}

/// Makes a package's tests write the files that they compare.
fn test(package: &str, arguments: &[&str]) -> Outcome {
    let mut command = cargo(&["test", "--locked", "--package", package]);
    run_quietly(command.args(arguments).env(VARIABLE, "1"))?;
    Ok(None)
}

/// Returns the packages whose tests write files, without those in a workspace of their own.
#[cfg(test)]
pub fn tested_packages() -> std::collections::BTreeSet<String> {
    let root = root();
    let compared = compared(&root, &tree::files(&root).unwrap()).unwrap();
    let name = |one: Compared| {
        let text = fs::read_to_string(root.join(one.manifest)).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix("name = "));
        line.unwrap().trim_matches('"').to_owned()
    };
    let written = ["wdk-etw-build", "cargo-etw", "etl"].map(ToOwned::to_owned);
    compared.into_iter().map(name).chain(written).collect()
}

/// Writes the manifests of declarations, and the declarations of manifests and of WPP's messages.
fn fixtures() -> Outcome {
    test("wdk-etw-build", &["--test", "it", "--", "declared::", "imported::"])?;
    test("cargo-etw", &["--test", "it", "wpp::"])?;
    // An imported declaration is compiled with the tests, and formatted like them.
    run_quietly(&mut cargo(&["fmt", "--package", "wdk-etw"]))?;
    Ok(None)
}

/// A test program's modules that compare with snapshots.
#[derive(Debug, PartialEq, Eq)]
struct Compared {
    /// The package's `Cargo.toml`, relative to the repository.
    manifest: PathBuf,
    program: String,
    /// The modules, as filters of tests.
    modules: Vec<String>,
}

/// Returns the modules among `files` that compare with snapshots.
fn compared(root: &Path, files: &[String]) -> Result<Vec<Compared>> {
    let mut found: Vec<Compared> = Vec::new();
    for file in files.iter().filter(|file| tree::extension_of(file) == "rs") {
        // The program of `tests/it/a/b.rs` is `it`, and the module is `a::b`.
        let Some((package, path)) = file.split_once("/tests/") else { continue };
        let Some((program, module)) = path.trim_end_matches(".rs").split_once('/') else {
            continue;
        };
        let text =
            fs::read_to_string(root.join(file)).with_context(|| format!("cannot read {file}"))?;
        if !text.contains("insta::assert_") {
            continue;
        }
        let manifest = Path::new(package).join("Cargo.toml");
        let module = format!("{}::", module.trim_end_matches("/mod").replace('/', "::"));
        match found.iter_mut().find(|one| one.manifest == manifest && one.program == program) {
            Some(one) => one.modules.push(module),
            None => found.push(Compared {
                manifest,
                program: program.to_owned(),
                modules: vec![module],
            }),
        }
    }
    Ok(found)
}

/// Writes the snapshots of all packages.
fn snapshots() -> Outcome {
    let root = root();
    for one in compared(&root, &tree::files(&root)?)? {
        let mut command = cargo(&["test", "--locked", "--manifest-path"]);
        command.arg(root.join(&one.manifest)).args(["--test", &one.program, "--"]);
        // With this value, a test passes after it has written its snapshot.
        run_quietly(command.args(&one.modules).env("INSTA_UPDATE", "always"))?;
    }
    Ok(None)
}

/// Runs the probes in the stand-in kernel.
fn answers() -> Outcome {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return Ok(Some("the stand-in kernel runs on x86-64 Linux only".to_owned()));
    }
    if Toolchain::find(Machine::X64).is_none() {
        let install = Toolchain::how_to_install(Machine::X64);
        return Ok(Some(format!("the probes' driver needs the cross toolchain: `{install}`")));
    }
    probes::run(&root().join(probes::ANSWERS))?;
    Ok(None)
}

/// Takes pictures of the report of the demo's trace.
fn pictures() -> Outcome {
    if BROWSER.path().is_none() {
        return Ok(Some(
            "no browser was found; `cargo xtask doctor --install` installs one".to_owned(),
        ));
    }
    demo::run(&target().join("demo"))?;
    let mut command = cargo(&["test", "--locked", "--package", "etl", "--test", "it"]);
    command.args(["--", "--ignored", "the_documentation_has_pictures_of_the_page"]);
    command.env("WDK_ETW_BROWSER", BROWSER.path().unwrap_or_default());
    run_quietly(command.env(VARIABLE, "1"))?;
    Ok(None)
}

/// The contents of files, as hashes.
type Contents = BTreeMap<String, u64>;

/// Reads all files that git does not ignore.
fn contents(root: &Path) -> Result<Contents> {
    let files = tree::files(root)?.into_iter();
    files
        .map(|file| {
            let mut hasher = DefaultHasher::new();
            fs::read(root.join(&file))
                .with_context(|| format!("cannot read {file}"))?
                .hash(&mut hasher);
            Ok((file, hasher.finish()))
        })
        .collect()
}

/// Returns a line for each file that differs.
fn differences(before: &Contents, after: &Contents) -> Vec<String> {
    let written = after.iter().filter_map(|(file, content)| match before.get(file) {
        None => Some(format!("new      {file}")),
        Some(old) if old != content => Some(format!("changed  {file}")),
        Some(_) => None,
    });
    let removed = before.keys().filter(|file| !after.contains_key(*file));
    written.chain(removed.map(|file| format!("removed  {file}"))).collect()
}

/// Renews the named parts or, without names, all parts. A part that fails does not keep the others from
/// being renewed.
pub fn run(names: &[String]) -> Result<()> {
    let is_chosen = |part: &&Part| {
        if names.is_empty() {
            !part.is_named_only
        } else {
            names.iter().any(|name| name == part.name)
        }
    };
    let root = root();
    let before = contents(&root)?;
    let mut failures = Vec::new();
    for part in PARTS.iter().filter(is_chosen) {
        match step(&format!("Renewing {}", part.title), part.write) {
            Ok(None) => {}
            Ok(Some(reason)) => eprintln!("NOT RENEWED: {}: {reason}", part.title),
            Err(error) => failures.push(format!("cannot renew {}: {error:#}", part.title)),
        }
    }
    let changed = differences(&before, &contents(&root)?);
    if changed.is_empty() {
        println!("Nothing changed.");
    }
    for line in &changed {
        println!("{line}");
    }
    if failures.is_empty() { Ok(()) } else { bail!(failures.join("\nerror: ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_difference_is_listed() {
        let contents = |files: &[(&str, u64)]| -> Contents {
            files.iter().map(|(file, content)| ((*file).to_owned(), *content)).collect()
        };
        let before = contents(&[("a", 1), ("b", 2), ("c", 3)]);
        let after = contents(&[("a", 1), ("b", 4), ("d", 3)]);
        assert_eq!(differences(&before, &after), ["changed  b", "new      d", "removed  c"]);
        assert!(differences(&before, &before).is_empty());
    }

    #[test]
    fn the_modules_with_snapshots_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let files = ["a/tests/it/b.rs", "a/tests/it/c/mod.rs", "a/tests/it/d.rs", "a/src/e.rs"];
        for file in files {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            let text = if file.contains("/d.rs") { "" } else { "insta::assert_snapshot!(1);" };
            fs::write(path, text).unwrap();
        }
        let files = files.map(str::to_owned);
        let expected = Compared {
            manifest: "a/Cargo.toml".into(),
            program: "it".to_owned(),
            modules: vec!["b::".to_owned(), "c::".to_owned()],
        };
        assert_eq!(compared(folder.path(), &files).unwrap(), [expected]);
    }

    /// A test that writes its file belongs to a part, or nobody would run it.
    #[test]
    fn every_file_with_snapshots_or_the_variable_belongs_to_a_part() {
        let root = root();
        let files = tree::files(&root).unwrap();
        let compared = compared(&root, &files).unwrap();
        for file in files.iter().filter(|file| tree::extension_of(file) == "snap") {
            // A snapshot is in the folder `snapshots` of its program.
            let is_of = |one: &Compared| {
                let folder = one.manifest.with_file_name("tests").join(&one.program);
                Path::new(file).parent() == Some(&folder.join("snapshots"))
            };
            assert!(compared.iter().any(is_of), "no part renews {file}");
        }
        let tests = files.iter().filter(|file| {
            tree::extension_of(file) == "rs"
                && *file != "tools/xtask/src/renew.rs"
                && fs::read_to_string(root.join(file))
                    .is_ok_and(|text| text.contains(&format!("{VARIABLE:?}")))
        });
        for file in tests {
            let text = fs::read_to_string(root.join(file)).unwrap();
            let part = PARTS
                .iter()
                .find(|part| text.contains(&format!("cargo xtask renew {}", part.name)));
            assert!(part.is_some(), "{file} does not name the command that renews its file");
        }
    }
}
