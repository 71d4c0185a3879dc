//! `cargo xtask bench --loop`: measures how fast cargo answers after an edit and after a change of the
//! selected packages.
//!
//! Everything is compiled in a folder of its own, with incremental compilation, as when somebody
//! works on the code.

use std::{
    collections::BTreeSet,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Instant,
};

use anyhow::{Context, Result, ensure};
use driver_build::{
    files,
    toolchain::{Machine, Toolchain},
};

use crate::{
    build,
    process::{cargo, root, target},
    progress::step,
};

/// The document with the last result, and the lines around it.
const DOCUMENT: &str = "CONTRIBUTING.md";
const BEGIN: &str = "<!-- begin of `cargo xtask bench --loop` -->\n";
const END: &str = "<!-- end of `cargo xtask bench --loop` -->\n";

/// The selections of packages, in the order in which they are compiled.
const SELECTIONS: [&str; 7] = [
    "wdk-etw", "wdk-etw-schema", "etw-compile-fail", "wdk-etw-build", "standin-kernel",
    "etw-scenarios", "etw-probes",
];

/// An edit: what it changes, the file, the line after which it adds one, and the tests that answer.
struct Edit {
    what: &'static str,
    file: &'static str,
    after: &'static str,
    tests: &'static [&'static str],
}

const EDITS: [Edit; 4] = [
    Edit {
        what: "the library",
        file: "provider-lib/src/provider/registration.rs",
        after: "    fn change_phase(&self) -> Result<(), RegisterError> {\n",
        tests: &["-p", "wdk-etw", "--test", "it"],
    },
    Edit {
        what: "the macros",
        file: "provider-lib/macros/src/writer.rs",
        after: "fn value(leaf: &Leaf) -> TokenStream {\n",
        tests: &["-p", "wdk-etw", "--test", "it"],
    },
    Edit {
        what: "a decoder",
        file: "formats/etl-file/src/decode/tracelogging.rs",
        after: "fn tags(c: &mut Cursor<'_>) -> Result<u32, MetadataError> {\n",
        tests: &["-p", "etl-file", "--lib"],
    },
    Edit {
        what: "the kernel",
        file: "standin-kernel/src/services/ntoskrnl/ke/timers.rs",
        after: "pub fn stop(context: &Context, address: u64) -> bool {\n",
        tests: &["-p", "standin-kernel", "--test", "it", "ntoskrnl"],
    },
];

/// A file with an edit, which ends when the value is dropped.
struct Edited {
    path: PathBuf,
    text: String,
}

impl Edited {
    /// Adds a line to a file, after another line, which changes the code that the compiler generates.
    fn new(path: PathBuf, after: &str) -> Result<Self> {
        let text = files::read_to_string(&path)?;
        let changed = text.replacen(after, &format!("{after}    core::hint::black_box(());\n"), 1);
        ensure!(changed != text, "{} has no line {after:?}", path.display());
        let edited = Self { path, text };
        files::write(&edited.path, changed)?;
        Ok(edited)
    }
}

impl Drop for Edited {
    fn drop(&mut self) {
        if let Err(error) = fs::write(&self.path, &self.text) {
            eprintln!("error: cannot restore {}: {error}", self.path.display());
        }
    }
}

/// Returns the folder that everything is compiled in.
fn folder() -> PathBuf {
    target().join("loop")
}

/// Returns a `cargo test` command.
fn test(arguments: &[&str]) -> Command {
    let mut command = cargo(&["test", "--locked"]);
    // Warnings about the edit do not matter.
    command.args(arguments).env("CARGO_TARGET_DIR", folder()).env("CARGO_INCREMENTAL", "1");
    command
}

/// Runs a command, and returns the seconds that it takes and what it prints on standard error.
fn timed(command: &mut Command) -> Result<(f64, String)> {
    let start = Instant::now();
    let output = command.stdin(Stdio::null()).output().context("cannot start cargo")?;
    let seconds = start.elapsed().as_secs_f64();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.success(), "{errors}{}", String::from_utf8_lossy(&output.stdout));
    Ok((seconds, errors))
}

/// Returns the packages that cargo says it compiles, and whether each is of this workspace.
fn compiled(errors: &str) -> impl Iterator<Item = (&str, bool)> {
    let lines = errors.lines().filter_map(|line| line.trim_start().strip_prefix("Compiling "));
    lines.map(|line| match line.split_once(" (") {
        Some((package, _)) => (package, true),
        None => (line, false),
    })
}

/// Compiles each selection after the others, then each again, and returns the table.
fn selections() -> Result<String> {
    let mut table = "| selection | first time | packages compiled | third-party ones among them \
                     compiled before | again after the others |\n| --- | --- | --- | --- | --- |\n"
        .to_owned();
    let mut before = BTreeSet::new();
    let mut first = Vec::new();
    for package in SELECTIONS {
        let (seconds, errors) = timed(&mut test(&["-p", package, "--no-run"]))?;
        let (mut count, mut again) = (0, 0);
        for (package, is_own) in compiled(&errors) {
            count += 1;
            again += usize::from(!before.insert(package.to_owned()) && !is_own);
        }
        first.push((package, seconds, count, again));
    }
    for (package, seconds, count, again) in first {
        let (later, _) = timed(&mut test(&["-p", package, "--no-run"]))?;
        writeln!(
            table,
            "| `cargo test -p {package}` | {seconds:.1} s | {count} | {again} | {later:.1} s |"
        )?;
    }
    Ok(table)
}

/// Makes each edit, and returns the table.
fn edits() -> Result<String> {
    let mut table =
        "| edit | command | compiled | with the tests |\n| --- | --- | --- | --- |\n".to_owned();
    for Edit { what, file, after, tests } in EDITS {
        let no_run = [tests.get(..tests.len().min(4)).unwrap_or_default(), &["--no-run"]].concat();
        // The first edit makes the compiler keep what it can use again.
        let mut seconds = f64::INFINITY;
        timed(&mut test(&no_run))?;
        for _ in 0..3 {
            let edited = Edited::new(root().join(file), after)?;
            seconds = seconds.min(timed(&mut test(&no_run))?.0);
            drop(edited);
            seconds = seconds.min(timed(&mut test(&no_run))?.0);
        }
        let (running, _) = timed(&mut test(tests))?;
        let both = seconds + running;
        let command = format!("cargo test {}", tests.join(" "));
        writeln!(table, "| {what}, `{file}` | `{command}` | {seconds:.1} s | {both:.1} s |")?;
    }
    Ok(table)
}

/// Measures, prints the tables and, if `write` is true, writes them to [`DOCUMENT`].
pub fn run(write: bool) -> Result<()> {
    let toolchain =
        step("Finding the cross toolchain", || Toolchain::find_or_install(Machine::X64))?;
    // The kernel's tests run them.
    build::build_all(&toolchain)?;
    if folder().exists() {
        fs::remove_dir_all(folder()).context("cannot remove what was compiled before")?;
    }
    let text = format!("{}\n{}", selections()?, edits()?);
    println!("{text}");
    if write {
        let path = root().join(DOCUMENT);
        files::write(&path, replaced(&path, &text)?)?;
        println!("Written to {DOCUMENT}.");
    }
    Ok(())
}

/// Returns a document with another result.
fn replaced(path: &Path, result: &str) -> Result<String> {
    let text = files::read_to_string(path)?;
    let parts = text.split_once(BEGIN).and_then(|(before, rest)| {
        let (_, after) = rest.split_once(END)?;
        Some(format!("{before}{BEGIN}\n{result}\n{END}{after}"))
    });
    parts.with_context(|| format!("{} has no place for the result", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_to_edit_exist() {
        for edit in EDITS {
            let text = fs::read_to_string(root().join(edit.file)).unwrap_or_default();
            assert!(text.contains(edit.after), "{}: {}", edit.file, edit.after);
        }
    }

    #[test]
    fn an_edit_ends() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.rs");
        let text = "fn a() {\n}\n";
        fs::write(&path, text).unwrap();
        let edited = Edited::new(path.clone(), "fn a() {\n").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 3);
        drop(edited);
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }

    #[test]
    fn third_party_packages_have_no_path() {
        let printed = "   Compiling a v1.0.0\n   Compiling b v0.1.0 (/folder)\n    Finished\n";
        assert!(compiled(printed).eq([("a v1.0.0", false), ("b v0.1.0", true)]));
    }

    #[test]
    fn the_document_has_a_place_for_the_result() {
        let text = replaced(&root().join(DOCUMENT), "new").unwrap();
        assert!(text.contains("\nnew\n"));
    }
}
