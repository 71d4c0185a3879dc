//! `cargo xtask mutants`: makes one change to the code at a time, and finds changes that no test
//! detects.
//!
//! cargo-mutants creates mutants, each with one change, in a copy of the workspace, and runs the
//! tests that cover the mutated package. Its configuration, `.cargo/mutants.toml`, lists equivalent
//! mutants, each with a reason. If any other mutant passes the tests, the command fails.

use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use clap::builder::PossibleValuesParser;
use driver_build::files;

use crate::{
    environment::ORACLES,
    packages,
    process::{cargo, output_of, root, target},
    progress::{step, step_with_output},
};

/// The library's file that only user-mode programs compile.
const USER_MODE: &str = "provider-lib/src/ffi/user.rs";

/// Mutants that are tested with the same tests.
struct Group {
    /// The name on the command line.
    name: &'static str,
    /// The cargo-mutants arguments that select the mutants.
    mutants: &'static [&'static str],
    /// The packages that contain the tests.
    tests: &'static [&'static str],
}

const GROUPS: [Group; 8] = [
    Group {
        name: "etw-wire",
        mutants: &["--package=etw-wire"],
        // A keyword outside the provider's bits is a compile error.
        tests: &["etw-wire", "etw-compile-fail"],
    },
    Group {
        name: "wdk-etw",
        mutants: &["--package=wdk-etw", "--exclude", USER_MODE],
        // The facades' events are written by functions that have no other callers.
        tests: &["wdk-etw", "wdk-etw-log", "wdk-etw-tracing"],
    },
    Group {
        name: "wdk-etw-user-mode",
        mutants: &["--package=wdk-etw", "--re", r"^provider-lib/src/ffi/user\.rs:"],
        tests: &["etw-user-mode"],
    },
    Group {
        name: "wdk-etw-schema",
        mutants: &["--package=wdk-etw-schema"],
        tests: &["wdk-etw-schema", "wdk-etw-build", "wdk-etw", "etw-compile-fail"],
    },
    Group {
        name: "wdk-etw-macros",
        mutants: &["--package=wdk-etw-macros"],
        tests: &["wdk-etw-macros", "wdk-etw", "etw-compile-fail"],
    },
    Group {
        name: "wdk-etw-build",
        mutants: &["--package=wdk-etw-build"],
        tests: &["wdk-etw-build"],
    },
    Group { name: "etl-file", mutants: &["--package=etl-file"], tests: &["etl-file", "etl"] },
    Group { name: "etl", mutants: &["--package=etl"], tests: &["etl"] },
];

/// The number of mutants in a share for `cargo xtask test --deep`. A share takes about five
/// minutes, most of which is builds: one before the first mutant, and one for each mutant.
const MUTANTS_IN_SHARE: usize = 8;

/// The mutants to run.
#[derive(Debug, clap::Args)]
pub struct Selection {
    /// A package to mutate; can be repeated [default: all].
    #[arg(long = "package", value_name = "PACKAGE", value_parser = PossibleValuesParser::new(names()))]
    groups: Vec<String>,
    /// Mutate only files that match a pattern; can be repeated.
    #[arg(long, value_name = "GLOB")]
    files: Vec<String>,
    /// Test only share K, counted from 0, of N equal shares of each package's mutants.
    #[arg(long, value_name = "K/N")]
    shard: Option<String>,
    /// The number of mutants that run at the same time.
    #[arg(long, value_name = "N", default_value_t = 2)]
    jobs: usize,
}

/// Returns the names of all groups.
fn names() -> [&'static str; GROUPS.len()] {
    GROUPS.map(|group| group.name)
}

/// Returns a cargo-mutants command for a group's mutants in files that match one of the patterns.
fn cargo_mutants(group: &Group, files: &[String]) -> Command {
    let mut command = cargo(&["mutants"]);
    command.args(group.mutants);
    for file in files {
        command.args(["--file", file]);
    }
    // The copy of the workspace has its own target folder, which lacks the third-party readers.
    command.env_remove("CARGO_TARGET_DIR").env("WDK_ETW_PYTHON", ORACLES.python());
    command
}

/// Returns the number of a group's mutants in files that match one of the patterns.
fn count(group: &Group, files: &[String]) -> Result<usize> {
    let list = output_of(cargo_mutants(group, files).arg("--list"));
    let list = list.with_context(|| {
        format!(
            "cargo-mutants cannot list the mutants of {}; run `cargo mutants --list`",
            group.name
        )
    })?;
    Ok(list.lines().count())
}

/// Tests a share of a group's mutants, and returns whether the tests detect all of them.
fn run_group(group: &Group, selection: &Selection) -> Result<bool> {
    let mut command = cargo_mutants(group, &selection.files);
    if let Some(shard) = &selection.shard {
        command.args(["--shard", shard, "--sharding", "round-robin"]);
    }
    for package in group.tests {
        command.args(["--test-package", package]);
    }
    let out = target().join("mutants").join(group.name);
    files::create_dir_all(&out)?;
    command.args(["--jobs", &selection.jobs.to_string()]).arg("--output").arg(&out);
    let status = command.status().context("cannot start `cargo mutants`")?;
    match status.code() {
        Some(0) => Ok(true),
        // A mutant exceeded the time limit, for example in an endless loop. Others can still be
        // missed.
        Some(3) => Ok(files::read_to_string(out.join("mutants.out/missed.txt"))?.trim().is_empty()),
        Some(2) => Ok(false),
        _ => bail!(
            "cargo-mutants fails for {} ({status}); if the tests fail without a mutant, their output is in {}",
            group.name,
            out.join("mutants.out/log").display()
        ),
    }
}

/// Tests the selected mutants. cargo-mutants prints those that no test detects.
///
/// # Errors
///
/// Fails if the tests miss a mutant that is not in the configuration, if they fail without a
/// mutant, or if no mutant is selected.
pub fn run(selection: &Selection) -> Result<()> {
    step("Finding cargo-mutants", packages::install_cargo_mutants)?;
    let is_selected = |group: &&Group| {
        selection.groups.is_empty() || selection.groups.iter().any(|name| name == group.name)
    };
    let (mut mutants, mut missed) = (0, Vec::new());
    for group in GROUPS.iter().filter(is_selected) {
        let found = count(group, &selection.files)?;
        mutants += found;
        let title = format!("Running the mutants of {}", group.name);
        if found > 0 && !step_with_output(&title, || run_group(group, selection))? {
            missed.push(group.name);
        }
    }
    ensure!(mutants > 0, "the selection has no mutant; choose other packages or files");
    ensure!(
        missed.is_empty(),
        "mutants of {} need a test, or a line with a reason in .cargo/mutants.toml; they are listed above",
        missed.join(", ")
    );
    Ok(())
}

/// Tests the share of mutants for `cargo xtask test --deep`. The number of commits selects the
/// share, so that a commit always gets the same share and successive commits go through all groups.
pub fn run_share() -> Result<()> {
    step("Finding cargo-mutants", packages::install_cargo_mutants)?;
    let commits =
        output_of(Command::new("git").current_dir(root()).args(["rev-list", "--count", "HEAD"]));
    // An unpacked archive has no commits.
    let commits: usize = commits.and_then(|count| count.trim().parse().ok()).unwrap_or(0);
    let mut groups = GROUPS.iter().cycle().skip(commits % GROUPS.len());
    let group = groups.next().context("there are no mutants")?;
    let shares = count(group, &[])?.div_ceil(MUTANTS_IN_SHARE).max(1);
    let shard = format!("{}/{shares}", commits / GROUPS.len() % shares);
    println!(
        "After {commits} commits: `cargo xtask mutants --package {} --shard {shard}`",
        group.name
    );
    run(&Selection {
        groups: vec![group.name.to_owned()],
        shard: Some(shard),
        files: Vec::new(),
        // Each job builds everything once, which takes longer than testing a share's mutants.
        jobs: 1,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_group_names_packages_of_the_workspace() {
        assert!(root().join(USER_MODE).exists());
        let lock = std::fs::read_to_string(root().join("Cargo.lock")).unwrap();
        for group in &GROUPS {
            let mutated = group.mutants.iter().filter_map(|one| one.strip_prefix("--package="));
            for package in group.tests.iter().copied().chain(mutated) {
                let line = format!("name = \"{package}\"\n");
                assert!(lock.contains(&line), "{}: no package {package}", group.name);
            }
        }
    }
}
