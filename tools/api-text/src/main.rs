//! Writes the public API of the published crates to `docs/api` as text, so that reviews show each
//! change.
//!
//! `api-text --check` compares the text files instead. rustdoc describes the crates as JSON in a
//! compiler-specific format; if the crate `public-api` cannot read it, the program reports this and
//! exits with [`UNKNOWN_FORMAT`]. The program also acts as a rustdoc wrapper that enables
//! JSON output: setting `RUSTC_BOOTSTRAP` for all of cargo would rebuild dependencies that look at it.

use std::{
    collections::{BTreeMap, BTreeSet},
    env, fs,
    ops::RangeInclusive,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use anyhow::{Context, Result, bail, ensure};
use public_api::PublicApi;
use serde::Deserialize;
use serde_json::Value;

/// The exit code if this compiler's JSON output cannot be read.
const UNKNOWN_FORMAT: u8 = 3;

/// The versions of rustdoc's JSON format that `public-api` can read.
const FORMATS: RangeInclusive<u64> = 57..=59;

/// The folder of the text files, relative to the repository's root.
const FOLDER: &str = "docs/api";

/// The largest sizes of texts, in bytes. A larger one needs fewer public items, or a reason.
const MAX_SIZES: [(&str, usize); 1] = [("etl-file.txt", 60_000)];

/// The environment variable with the path of the wrapped rustdoc.
const RUSTDOC: &str = "API_TEXT_RUSTDOC";

/// The environment variable with the names of the crates to describe, separated by spaces.
const CRATES: &str = "API_TEXT_CRATES";

/// The part of rustdoc's JSON that all versions of the format share.
#[derive(Deserialize)]
struct Format {
    format_version: u64,
}

/// The text files' contents by name, or the reason why there are none.
type Texts = Result<BTreeMap<String, String>, String>;

fn main() -> ExitCode {
    let done = env::var_os(RUSTDOC).map_or_else(
        || run(env::args().nth(1).as_deref() == Some("--check")),
        |rustdoc| rustdoc_with_json(Path::new(&rustdoc)),
    );
    done.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}

/// Runs rustdoc with this program's arguments and with JSON output enabled, unless it would describe a
/// crate that is not published.
fn rustdoc_with_json(rustdoc: &Path) -> Result<ExitCode> {
    let crates = env::var(CRATES).unwrap_or_default();
    let name = env::args().skip_while(|argument| argument != "--crate-name").nth(1);
    if name.is_some_and(|name| crates.split(' ').all(|one| one != name)) {
        return Ok(ExitCode::SUCCESS);
    }
    let mut command = Command::new(rustdoc);
    command.args(env::args_os().skip(1)).env("RUSTC_BOOTSTRAP", "1");
    let status = command.status().with_context(|| format!("cannot run {}", rustdoc.display()))?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn run(only_check: bool) -> Result<ExitCode> {
    let folder = root().join(FOLDER);
    let texts = match texts()? {
        Ok(texts) => texts,
        Err(reason) => {
            eprintln!("{reason}");
            return Ok(ExitCode::from(UNKNOWN_FORMAT));
        }
    };
    for (name, max) in MAX_SIZES {
        let size = texts.get(name).map_or(0, String::len);
        ensure!(
            (1..=max).contains(&size),
            "the public API of {FOLDER}/{name} has {size} bytes, and {max} at most are allowed: what only this \
             repository uses belongs to its `internals`"
        );
    }
    if only_check {
        check(&folder, &texts)?;
        return Ok(ExitCode::SUCCESS);
    }
    for (name, text) in texts {
        let path = folder.join(name);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the workspace's root.
fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).to_owned()
}

/// Fails if a file in the folder differs from its text.
fn check(folder: &Path, texts: &BTreeMap<String, String>) -> Result<()> {
    let mut names: BTreeSet<String> = texts.keys().cloned().collect();
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {FOLDER}"))? {
        names.insert(entry?.file_name().to_string_lossy().into_owned());
    }
    let mut problems = Vec::new();
    for name in names {
        let found = fs::read_to_string(folder.join(&name)).unwrap_or_default();
        let expected = texts.get(&name).map_or("", String::as_str);
        problems.extend(differences(&found, expected).map(|line| format!("{name}: {line}")));
    }
    ensure!(
        problems.is_empty(),
        "{FOLDER} differs from the API of the sources:\n{}\nreview the change, run `cargo xtask renew api` and \
         commit the files that it writes",
        problems.join("\n")
    );
    Ok(())
}

/// Returns the first lines that only one of two texts contains.
fn differences<'a>(found: &'a str, expected: &'a str) -> impl Iterator<Item = String> + 'a {
    const MAX_SHOWN: usize = 10;
    let alone = |one: &'a str, other: &'a str, mark: char| {
        let other: BTreeSet<&str> = other.lines().collect();
        let lines = one.lines().filter(move |line| !other.contains(line));
        lines.map(move |line| format!("{mark} {line}"))
    };
    alone(found, expected, '-').chain(alone(expected, found, '+')).take(MAX_SHOWN)
}

/// Lets rustdoc describe the published libraries, and returns their texts.
fn texts() -> Result<Texts> {
    let mut cargo = Command::new("cargo");
    cargo.current_dir(root()).args(["metadata", "--format-version", "1", "--no-deps"]);
    let metadata: Value = serde_json::from_slice(&output(&mut cargo)?)?;
    let libraries = libraries(&metadata);
    ensure!(!libraries.is_empty(), "the workspace publishes no library");
    let rustdoc = env::var_os("RUSTDOC").unwrap_or_else(|| "rustdoc".into());
    let crates: Vec<String> = libraries.iter().map(|name| name.replace('-', "_")).collect();
    let mut doc = Command::new("cargo");
    // With all default members and examples, cargo selects the features that its other commands
    // select, and so shares the checked dependencies with them.
    doc.current_dir(root())
        .args(["doc", "--locked", "--no-deps", "--lib", "--examples"])
        .env("RUSTDOCFLAGS", "-Zunstable-options --output-format json --cap-lints allow")
        .env(RUSTDOC, rustdoc)
        .env(CRATES, crates.join(" "))
        .env("RUSTDOC", env::current_exe().context("cannot find this program")?);
    output(&mut doc)?;
    let folder = metadata["target_directory"].as_str().context("cargo names no target folder")?;
    let mut texts = BTreeMap::new();
    for name in libraries {
        let json =
            Path::new(folder).join("doc").join(name.replace('-', "_")).with_extension("json");
        let bytes = fs::read(&json).with_context(|| format!("cannot read {}", json.display()))?;
        let version = serde_json::from_slice::<Format>(&bytes)?.format_version;
        if !FORMATS.contains(&version) {
            return Ok(Err(format!(
                "this compiler's rustdoc writes JSON of format {version}; formats {} to {} can be read",
                FORMATS.start(),
                FORMATS.end()
            )));
        }
        let api = public_api::Builder::from_rustdoc_json(&json)
            .omit_blanket_impls(true)
            .omit_auto_trait_impls(true)
            .build()
            .with_context(|| format!("cannot read {}", json.display()))?;
        texts.insert(format!("{name}.txt"), text(&api));
    }
    Ok(Ok(texts))
}

/// Returns the names of the published libraries.
fn libraries(metadata: &Value) -> Vec<String> {
    let published = |package: &&Value| {
        package["publish"].as_array().is_none_or(|registries| !registries.is_empty())
    };
    let has_library = |package: &&Value| {
        let targets = package["targets"].as_array().into_iter().flatten();
        // A library that is not for users has no documentation.
        let documented = targets.filter(|target| target["doc"] != false);
        let mut kinds =
            documented.flat_map(|target| target["kind"].as_array().into_iter().flatten());
        kinds.any(|kind| kind == "lib" || kind == "proc-macro")
    };
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let chosen = packages.filter(published).filter(has_library);
    chosen.filter_map(|package| package["name"].as_str()).map(str::to_owned).collect()
}

/// Returns a line for each item. A trait implementation is one line, because its functions are the
/// trait's; the derivable traits of a type share a line.
fn text(api: &PublicApi) -> String {
    let lines: Vec<_> =
        api.items().map(|item| (item, without_std_paths(&item.to_string()))).collect();
    let is_of_trait = |line: &str| line.starts_with("impl") && line.contains(" for ");
    let traits: BTreeSet<_> =
        lines.iter().filter(|(_, line)| is_of_trait(line)).map(|(item, _)| item.id()).collect();
    let shown = lines.iter().filter(|(item, line)| {
        let is_function = line.contains(" fn ")
            && item.parent_id().is_some_and(|parent| traits.contains(&parent));
        // `PartialEq` derives this, too.
        !is_function && !line.contains(" StructuralPartialEq for ")
    });
    joined(&shown.map(|(_, line)| line.as_str()).collect::<Vec<_>>())
}

/// Writes lines, and joins the implementations of derivable traits of a type.
fn joined(lines: &[&str]) -> String {
    let mut derived = BTreeMap::<_, BTreeSet<&str>>::new();
    for (before, name, after) in lines.iter().copied().filter_map(derivable) {
        derived.entry((before, after)).or_default().insert(name);
    }
    let mut text = String::new();
    for line in lines {
        match derivable(line).map(|(before, _, after)| (before, after)) {
            None => text.extend([line, "\n"]),
            Some(key) => {
                if let Some(names) = derived.remove(&key) {
                    text.extend([key.0, &Vec::from_iter(names).join(" + "), key.1, "\n"]);
                }
            }
        }
    }
    text
}

/// Splits the line of an implementation at the name of a derivable trait.
fn derivable(line: &str) -> Option<(&str, &str, &str)> {
    /// The traits that the standard library can derive.
    const DERIVABLE: [&str; 9] =
        ["Clone", "Copy", "Debug", "Default", "Eq", "Hash", "Ord", "PartialEq", "PartialOrd"];
    let at = line.starts_with("impl").then(|| line.find(" for "))??;
    let start = line[..at].rfind(' ')? + 1;
    let name = &line[start..at];
    DERIVABLE.contains(&name).then_some((&line[..start], name, &line[at..]))
}

/// Removes the modules from paths of the standard library's items.
fn without_std_paths(line: &str) -> String {
    let is_of_path = |one: char| one.is_alphanumeric() || one == '_' || one == ':';
    line.split_inclusive(|one| !is_of_path(one))
        .map(|word| {
            let is_std = ["core::", "alloc::", "std::"].iter().any(|root| word.starts_with(root));
            if is_std { word.rsplit("::").next().unwrap_or(word) } else { word }
        })
        .collect()
}

/// Runs a command, and returns its output.
fn output(command: &mut Command) -> Result<Vec<u8>> {
    let output = command.output().context("cannot run cargo")?;
    if !output.status.success() {
        bail!("{command:?} failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(output.stdout)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_differ_are_shown() {
        let shown: Vec<String> = differences("a\nb\n", "a\nc\n").collect();
        assert_eq!(shown, ["- b", "+ c"]);
        assert_eq!(differences("a\n", "a\n").count(), 0);
    }

    #[test]
    fn derivable_traits_of_a_type_share_a_line() {
        let lines = [
            "impl Eq for a::B", "impl Clone for a::B", "impl Error for a::B",
            "impl Debug for a::B", "impl<T: Debug> Debug for a::C<T>", "pub fn a::f()",
        ];
        assert_eq!(
            joined(&lines),
            "impl Clone + Debug + Eq for a::B\nimpl Error for a::B\nimpl<T: Debug> Debug for a::C<T>\npub fn a::f()\n"
        );
    }

    #[test]
    fn paths_of_the_standard_library_are_short() {
        let short = without_std_paths(
            "pub fn a::f(&a::B) -> core::result::Result<u8, alloc::vec::Vec<u8>>",
        );
        assert_eq!(short, "pub fn a::f(&a::B) -> Result<u8, Vec<u8>>");
    }

    #[test]
    fn libraries_that_are_not_published_are_left_out() {
        let package = |name: &str, kind: &str, publish: Value| serde_json::json!({"name": name, "targets": [{"kind": [kind]}], "publish": publish});
        let packages = serde_json::json!({"packages": [
            package("a", "lib", Value::Null),
            package("b", "proc-macro", Value::Null),
            package("c", "bin", Value::Null),
            package("d", "lib", Value::Array(Vec::new())),
        ]});
        assert_eq!(libraries(&packages), ["a", "b"]);
    }
}
