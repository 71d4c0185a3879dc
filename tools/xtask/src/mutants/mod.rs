//! `cargo xtask mutants`: breaks the code in one place at a time, and finds the breaks that no test
//! notices.
//!
//! cargo-mutants makes the mutants, each a copy of the workspace with one change. Each group of files is
//! run against the tests that speak for it. A mutant that passes them is missed. The file
//! `equivalent-mutants.toml` lists the mutants that behave as the original does, each with its reason;
//! every other missed mutant fails the command.

mod equivalent;
mod outcome;
mod shard;

use std::{collections::BTreeSet, fs, path::PathBuf, process::Command};

use anyhow::{Context, Result, bail, ensure};

pub use self::shard::Shard;
use self::{
    equivalent::Entries,
    outcome::{Mutant, Outcome, Summary},
};
use crate::{
    packages,
    process::{output_of, root, target},
    progress::{step, step_with_output},
};

/// Files whose mutants run against the same tests.
struct Group {
    /// The name on the command line, which is that of the mutated package, or begins with it.
    name: &'static str,
    package: &'static str,
    /// The patterns of the mutated files; empty for all of the package.
    files: &'static [&'static str],
    /// The patterns of the files of the package that are left out.
    without: &'static [&'static str],
    /// The packages with the tests.
    tested_by: &'static [&'static str],
    /// The arguments of `cargo test` that select the tests.
    tests: &'static [&'static str],
    /// The number of shards, of which `cargo xtask test --deep` runs one in about ten minutes.
    shards: u32,
}

/// The file of the library that only programs in user mode compile.
const USER_MODE: &str = "provider-lib/src/ffi/user.rs";

/// Tests that start compilers or browsers are left out: they cost minutes for each mutant, and others
/// test the same code.
const GROUPS: [Group; 6] = [
    Group {
        name: "wdk-etw",
        package: "wdk-etw",
        files: &[],
        without: &[USER_MODE],
        tested_by: &["wdk-etw"],
        tests: &["--lib", "--tests"],
        shards: 40,
    },
    Group {
        name: "wdk-etw-user-mode",
        package: "wdk-etw",
        files: &[USER_MODE],
        without: &[],
        tested_by: &["etw-user-mode"],
        tests: &["--tests"],
        shards: 1,
    },
    Group {
        name: "wdk-etw-schema",
        package: "wdk-etw-schema",
        files: &[],
        without: &[],
        tested_by: &["wdk-etw-schema"],
        tests: &["--lib", "--tests"],
        shards: 20,
    },
    Group {
        name: "wdk-etw-macros",
        package: "wdk-etw-macros",
        files: &[],
        without: &[],
        tested_by: &["wdk-etw-macros", "wdk-etw", "etw-compile-fail"],
        tests: &["--lib", "--tests"],
        shards: 10,
    },
    Group {
        name: "wdk-etw-build",
        package: "wdk-etw-build",
        files: &[],
        without: &[],
        tested_by: &["wdk-etw-build"],
        tests: &["--lib", "--tests"],
        shards: 20,
    },
    Group {
        name: "etl-file",
        package: "etl-file",
        files: &[],
        without: &[],
        tested_by: &["etl-file"],
        tests: &["--lib", "--bins", "--tests"],
        shards: 40,
    },
];

/// The number of cases that a property test tries, instead of 256.
const CASES: &str = "32";

/// The list of mutants that behave as the original does.
const EQUIVALENT: &str = "tools/xtask/equivalent-mutants.toml";

/// The exit codes of cargo-mutants with which it has run to the end: every mutant was caught, some were
/// missed, some ran into the time limit.
const COMPLETE: [i32; 3] = [0, 2, 3];

/// The mutants to run.
#[derive(Debug, Default)]
pub struct Selection {
    /// The names of groups; empty for all.
    pub groups: Vec<String>,
    /// The share of each group's mutants.
    pub shard: Option<Shard>,
    /// The patterns of the files; empty for all.
    pub files: Vec<String>,
    /// The number of mutants that run at the same time.
    pub jobs: usize,
}

/// Returns the names of all groups.
pub fn names() -> Vec<&'static str> {
    GROUPS.iter().map(|group| group.name).collect()
}

/// Returns a cargo-mutants command for a group's mutants.
fn cargo_mutants(group: &Group) -> Command {
    let mut command = Command::new("cargo");
    command
        .current_dir(root())
        .args(["mutants", "--package", group.package])
        // Each copy of the workspace has a target folder of its own.
        .env_remove("CARGO_TARGET_DIR")
        .env("PROPTEST_CASES", CASES);
    for file in group.without {
        command.args(["--exclude", file]);
    }
    command
}

/// Returns all mutants of a group, or those in the files that the patterns match.
fn list(group: &Group, files: &[String]) -> Result<Vec<Mutant>> {
    let mut command = cargo_mutants(group);
    command.args(["--list", "--json"]);
    for file in files_of(group, files) {
        command.args(["--file", file]);
    }
    let list = output_of(&mut command)
        .with_context(|| format!("cargo-mutants cannot list the mutants of {}", group.name))?;
    outcome::read_list(&list, |file| {
        fs::read_to_string(root().join(file)).with_context(|| format!("cannot read {file}"))
    })
}

fn files_of<'a>(group: &Group, files: &'a [String]) -> Vec<&'a str> {
    if files.is_empty() {
        group.files.to_vec()
    } else {
        files.iter().map(String::as_str).collect()
    }
}

/// Runs a share of a group's mutants.
fn run_group(group: &Group, selection: &Selection) -> Result<Vec<Outcome>> {
    let out = target().join("mutants").join(group.name);
    fs::create_dir_all(&out).with_context(|| format!("cannot create {}", out.display()))?;
    let mut command = cargo_mutants(group);
    for file in files_of(group, &selection.files) {
        command.args(["--file", file]);
    }
    for package in group.tested_by {
        command.args(["--test-package", package]);
    }
    if let Some(shard) = selection.shard {
        command.args(["--shard", &shard.to_string(), "--sharding", "round-robin"]);
    }
    command
        .args(["--no-shuffle", "--jobs", &selection.jobs.to_string()])
        .arg("--output")
        .arg(&out)
        .arg("--")
        .args(group.tests);
    let status = command
        .status()
        .context("cannot start `cargo mutants`")?;
    ensure!(
        status.code().is_some_and(|code| COMPLETE.contains(&code)),
        "cargo-mutants fails for {} ({status}); if the tests fail without a mutant, its log is in {}",
        group.name,
        out.join("mutants.out/log").display()
    );
    let outcomes = out.join("mutants.out/outcomes.json");
    let text = fs::read_to_string(&outcomes)
        .with_context(|| format!("cannot read {}", outcomes.display()))?;
    outcome::read(&text, |file| {
        fs::read_to_string(root().join(file)).with_context(|| format!("cannot read {file}"))
    })
}

/// Returns the selected groups.
fn selected(selection: &Selection) -> Vec<&'static Group> {
    let is_selected = |group: &&Group| {
        let mut names = selection.groups.iter();
        selection.groups.is_empty() || names.any(|name| name == group.name)
    };
    GROUPS.iter().filter(is_selected).collect()
}

/// Runs the selected mutants, and prints the missed ones that the list does not explain.
///
/// # Errors
///
/// Fails if a mutant is missed that the list does not explain, if an entry of the list matches no mutant
/// or one that the tests catch, and if the tests fail without a mutant.
pub fn run(selection: &Selection) -> Result<()> {
    step("Finding cargo-mutants", packages::install_cargo_mutants)?;
    let path = root().join(EQUIVALENT);
    let text =
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let entries = Entries::read(&text).with_context(|| format!("cannot read {EQUIVALENT}"))?;
    step("Comparing the list of equivalent mutants with the code", || {
        let mut all = Vec::new();
        for group in &GROUPS {
            all.extend(list(group, &[])?);
        }
        entries.check(&all)
    })?;
    let mut total = Summary::default();
    let mut failures = BTreeSet::new();
    for group in selected(selection) {
        if !selection.files.is_empty() && list(group, &selection.files)?.is_empty() {
            continue;
        }
        let title = format!("Running the mutants of {}", group.name);
        let outcomes = step_with_output(&title, || run_group(group, selection))?;
        let (summary, unexplained) = entries.explain(&outcomes);
        println!("{}: {summary}", group.name);
        total += summary;
        failures.extend(unexplained);
    }
    ensure!(
        total.viable() > 0,
        "the selection has no mutant that compiles; choose other packages, files or another shard"
    );
    println!("all: {total}");
    for failure in &failures {
        println!("{failure}");
    }
    if !failures.is_empty() {
        bail!(
            "{} mutants need a test, or an entry with a reason in {EQUIVALENT}",
            failures.len()
        );
    }
    Ok(())
}

/// Runs the share of the mutants that `cargo xtask test --deep` runs. The number of commits chooses it, so
/// that one commit always has the same share, and successive commits go through all of them.
pub fn run_share() -> Result<()> {
    let commits = commits();
    let Some((at, shard)) = shard::of_commit(commits, &GROUPS.each_ref().map(|group| group.shards))
    else {
        bail!("no group of mutants has a shard");
    };
    let Some(group) = GROUPS.get(at) else {
        bail!("there is no group {at} of mutants");
    };
    println!(
        "After {commits} commits: `cargo xtask mutants --package {} --shard {shard}`",
        group.name
    );
    run(&Selection {
        groups: vec![group.name.to_owned()],
        shard: Some(shard),
        files: Vec::new(),
        jobs: 2,
    })
}

/// Returns the number of commits before and including the checked out one, or 0 without git.
fn commits() -> u32 {
    let count = output_of(
        Command::new("git")
            .current_dir(root())
            .args(["rev-list", "--count", "HEAD"]),
    );
    count
        .and_then(|count| count.trim().parse().ok())
        .unwrap_or(0)
}

/// Returns the folder that results are written to.
#[cfg(test)]
fn results() -> PathBuf {
    target().join("mutants")
}
