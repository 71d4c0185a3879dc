//! `cargo xtask mutants`: breaks the code in one place at a time, and finds the breaks that no test
//! notices.
//!
//! cargo-mutants makes the mutants, each with one change, in a copy of the workspace. Each group of files is
//! run against the tests that speak for it. A mutant that passes them is missed. The file
//! `equivalent-mutants.toml` lists the mutants that behave as the original does, each with its reason;
//! every other missed mutant fails the command.

mod copy;
mod equivalent;
mod outcome;
mod shard;

use std::{
    collections::BTreeSet,
    fmt::Write as _,
    fs,
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};

pub use self::shard::Shard;
use self::{
    copy::WorkspaceCopy,
    equivalent::Entries,
    outcome::{End, Mutant, Outcome, Summary},
};
use crate::{
    environment::ORACLES,
    packages,
    process::{output_of, root, run_quietly, target},
    progress::{step, step_with_output},
};

/// Files whose mutants run against the same tests.
struct Group {
    /// The name on the command line.
    name: &'static str,
    /// The mutated package.
    package: &'static str,
    /// The patterns of the mutated files; empty for all of the package.
    files: &'static [&'static str],
    /// The patterns of the files of the package that are left out.
    without: &'static [&'static str],
    /// The rounds of tests: each runs the mutants that the one before missed, so that tests that take long
    /// to build run for few of them.
    rounds: &'static [Tests],
}

/// Tests that speak for a package.
struct Tests {
    /// The packages with the tests.
    packages: &'static [&'static str],
    /// The arguments of `cargo test`.
    arguments: &'static [&'static str],
}

/// The file of the library that only programs in user mode compile.
const USER_MODE: &str = "provider-lib/src/ffi/user.rs";

/// The modules that unit tests are in.
const UNIT_TESTS: &str = "tests::";

const ETL_UNIT_TESTS: Tests = Tests { packages: &["etl-file"], arguments: &["--lib"] };

const ETL_ALL_TESTS: Tests = Tests {
    packages: &["etl-file"],
    arguments: &[
        "--tests",
        "--",
        "--skip",
        "every_changed_byte",
        "--skip",
        "decoders_",
        "--skip",
        "third_party_",
    ],
};

/// A group of files of the `.etl` crate, with the tests that reach most of what unit tests do not.
macro_rules! etl {
    ($name:literal, $files:literal, [$($argument:literal),+]) => {
        Group {
            name: $name,
            package: "etl-file",
            files: &[$files],
            without: &[],
            rounds: &[
                ETL_UNIT_TESTS,
                Tests {
                    packages: &["etl-file"],
                    arguments: &[$($argument),+],
                },
                ETL_ALL_TESTS,
            ],
        }
    };
}

/// The groups. Left out are tests that start other programs, and those that try thousands of inputs: they
/// cost minutes for each mutant.
const GROUPS: [Group; 14] = [
    Group {
        name: "etw-wire",
        package: "etw-wire",
        files: &[],
        without: &[],
        rounds: &[
            Tests { packages: &["etw-wire"], arguments: &["--lib"] },
            // A provider's keyword outside the provider's bits is a compile error.
            Tests { packages: &["etw-compile-fail"], arguments: &["--tests"] },
        ],
    },
    Group {
        name: "wdk-etw",
        package: "wdk-etw",
        files: &[],
        without: &[USER_MODE],
        rounds: &[
            Tests {
                packages: &["wdk-etw"],
                arguments: &[
                    "--lib",
                    "--test",
                    "it",
                    "--",
                    UNIT_TESTS,
                    "declared::",
                    "registration::",
                    "writing::",
                ],
            },
            Tests { packages: &["wdk-etw"], arguments: &["--tests"] },
            // The events of the facades are written by functions that nothing else calls.
            Tests { packages: &["wdk-etw-log", "wdk-etw-tracing"], arguments: &["--tests"] },
        ],
    },
    Group {
        name: "wdk-etw-user-mode",
        package: "wdk-etw",
        files: &[USER_MODE],
        without: &[],
        rounds: &[Tests { packages: &["etw-user-mode"], arguments: &["--tests"] }],
    },
    Group {
        name: "wdk-etw-schema",
        package: "wdk-etw-schema",
        files: &[],
        without: &[],
        rounds: &[
            Tests { packages: &["wdk-etw-schema"], arguments: &["--tests"] },
            Tests {
                packages: &["wdk-etw-build", "wdk-etw", "etw-compile-fail"],
                arguments: &["--tests"],
            },
        ],
    },
    Group {
        name: "wdk-etw-macros",
        package: "wdk-etw-macros",
        files: &[],
        without: &[],
        rounds: &[
            Tests { packages: &["wdk-etw-macros"], arguments: &["--lib"] },
            Tests {
                packages: &["wdk-etw"],
                arguments: &["--test", "it", "--", "declared::", "elements::", "limits::"],
            },
            Tests {
                packages: &["wdk-etw-macros", "wdk-etw", "etw-compile-fail"],
                arguments: &["--tests"],
            },
            // A declaration refuses the mode in which its package does not run.
            Tests { packages: &["etw-user-mode"], arguments: &["--test", "modes"] },
        ],
    },
    Group {
        name: "wdk-etw-build",
        package: "wdk-etw-build",
        files: &[],
        without: &[],
        rounds: &[
            Tests {
                packages: &["wdk-etw-build"],
                arguments: &["--lib", "--test", "it", "--", UNIT_TESTS, "declared::", "corners::"],
            },
            Tests { packages: &["wdk-etw-build"], arguments: &["--tests"] },
        ],
    },
    etl!(
        "etl-file-compare",
        "formats/etl-file/src/compare/**",
        ["--test", "it", "--", "compare::"]
    ),
    etl!(
        "etl-file-decode",
        "formats/etl-file/src/decode/**",
        ["--test", "it", "--", "kernel_cli::", "manifest::", "relogged::", "schemas::", "wpp::"]
    ),
    etl!(
        "etl-file-kernel",
        "formats/etl-file/src/kernel/**",
        [
            "--test",
            "it",
            "--",
            "damage::",
            "kernel_cli::",
            "kernel_events::",
            "relogged::",
            "wpp::",
            "--skip",
            "every_changed_byte",
            "--skip",
            "every_truncation"
        ]
    ),
    etl!(
        "etl-file-perfetto",
        "formats/etl-file/src/perfetto/**",
        ["--test", "it", "--", "kernel_cli::", "timeline::"]
    ),
    etl!(
        "etl-file-read",
        "formats/etl-file/src/read/**",
        [
            "--test",
            "it",
            "--",
            "compressed::",
            "damage::",
            "merge::",
            "relogged::",
            "streaming::",
            "--skip",
            "every_changed_byte",
            "--skip",
            "every_truncation"
        ]
    ),
    etl!(
        "etl-file-report",
        "formats/etl-file/src/report/**",
        ["--test", "it", "--", "kernel_cli::"]
    ),
    etl!(
        "etl-file-write",
        "formats/etl-file/src/write/**",
        [
            "--test",
            "it",
            "--",
            "compressed::",
            "damage::",
            "merge::",
            "round_trip::",
            "--skip",
            "every_changed_byte",
            "--skip",
            "every_truncation",
            "--skip",
            "any_events"
        ]
    ),
    Group {
        name: "etl-file-other",
        package: "etl-file",
        files: &[],
        without: &[
            "formats/etl-file/src/compare/**",
            "formats/etl-file/src/decode/**",
            "formats/etl-file/src/kernel/**",
            "formats/etl-file/src/perfetto/**",
            "formats/etl-file/src/read/**",
            "formats/etl-file/src/report/**",
            "formats/etl-file/src/write/**",
        ],
        rounds: &[
            ETL_UNIT_TESTS,
            Tests {
                packages: &["etl-file"],
                arguments: &[
                    "--test",
                    "it",
                    "--",
                    "cli::",
                    "kernel_cli::",
                    "merge::",
                    "names::",
                    "output::",
                    "relogged::",
                    "schemas::",
                    "--skip",
                    "more_threads",
                ],
            },
            ETL_ALL_TESTS,
        ],
    },
];

/// The number of mutants in a share of `cargo xtask test --deep`. A share takes about five minutes: most of
/// a mutant's time is the build, and so is most of the time before the first.
const MUTANTS_IN_SHARE: usize = 8;

/// The seconds that tests of several packages may always take with a mutant.
const MIN_SECONDS: u64 = 60;

/// The factor by which such tests may be slower with a mutant, in addition.
const MAX_SLOWDOWN: u64 = 6;

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

/// Returns the names of all groups, and of the packages that have several.
pub fn names() -> Vec<&'static str> {
    let groups = GROUPS.iter().map(|group| group.name);
    let packages = GROUPS.iter().map(|group| group.package);
    groups.chain(packages).collect::<BTreeSet<_>>().into_iter().collect()
}

/// Returns a cargo-mutants command for a group's mutants, which finds the workspace in a folder.
fn cargo_mutants(group: &Group, workspace: &Path) -> Command {
    let mut command = Command::new("cargo");
    command
        .current_dir(workspace)
        .args(["mutants", "--package", group.package])
        // Each copy of the workspace has a target folder of its own.
        .env_remove("CARGO_TARGET_DIR")
        // Which is why the third-party readers are not in it.
        .env("WDK_ETW_PYTHON", ORACLES.python());
    for file in group.without {
        command.args(["--exclude", file]);
    }
    command
}

/// Returns all mutants of a group, or those in the files that the patterns match.
fn list(group: &Group, files: &[String]) -> Result<Vec<Mutant>> {
    let mut command = cargo_mutants(group, &root());
    command.args(["--list", "--json"]);
    for file in files_of(group, files) {
        command.args(["--file", file]);
    }
    let list = output_of(&mut command)
        .with_context(|| format!("cargo-mutants cannot list the mutants of {}", group.name))?;
    outcome::read_list(&list, read_source)
}

fn files_of<'a>(group: &Group, files: &'a [String]) -> Vec<&'a str> {
    if files.is_empty() { group.files.to_vec() } else { files.iter().map(String::as_str).collect() }
}

/// Runs a share of a group's mutants, in place if there is a copy of the workspace.
fn run_group(
    group: &Group,
    selection: &Selection,
    entries: &Entries,
    copy: Option<&Path>,
) -> Result<Vec<Outcome>> {
    let workspace = copy.map_or_else(root, Path::to_owned);
    let is_whole = selection.shard.is_none() && selection.files.is_empty();
    let mut outcomes: Vec<Outcome> = Vec::new();
    for (round, tests) in group.rounds.iter().enumerate() {
        let mut command = cargo_mutants(group, &workspace);
        if copy.is_some() {
            command.arg("--in-place");
        } else {
            command.args(["--jobs", &selection.jobs.to_string()]);
        }
        for file in files_of(group, &selection.files) {
            command.args(["--file", file]);
        }
        let missed: Vec<&Mutant> = outcomes
            .iter()
            .filter(|outcome| outcome.end == End::Missed)
            .map(|outcome| &outcome.mutant)
            // The later rounds take long. Only a whole run looks whether they catch a listed mutant.
            .filter(|mutant| is_whole || !entries.lists(mutant))
            .collect();
        if round == 0 {
            if let Some(shard) = selection.shard {
                command.args(["--shard", &shard.to_string(), "--sharding", "round-robin"]);
            }
        } else if missed.is_empty() {
            break;
        } else {
            // Patterns of names do not select among the mutants that delete a field; a diff selects
            // among all, by line.
            let diff = target().join("mutants").join("missed.diff");
            fs::write(&diff, diff_of_lines(&missed, read_source)?)
                .with_context(|| format!("cannot write {}", diff.display()))?;
            command.arg("--in-diff").arg(&diff);
            for mutant in missed {
                command.args(["--re", &exactly(&mutant.name())]);
            }
        }
        let out = target().join("mutants").join(format!("{}-{}", group.name, round + 1));
        let found = run_round(group, tests, command, &workspace, &out)?;
        outcomes = merge(outcomes, found);
    }
    Ok(outcomes)
}

/// Returns a diff that adds the lines in which mutants begin, and nothing else.
fn diff_of_lines(mutants: &[&Mutant], read: impl Fn(&str) -> Result<String>) -> Result<String> {
    let mut lines = BTreeSet::new();
    for mutant in mutants {
        lines.insert((mutant.file.as_str(), mutant.line()?));
    }
    let mut diff = String::new();
    let mut last = "";
    for (file, line) in lines {
        if file != last {
            writeln!(diff, "--- a/{file}\n+++ b/{file}")?;
            last = file;
        }
        let source = read(file)?;
        let before = line - 1;
        let text = source.lines().nth(before);
        let text = text.with_context(|| format!("{file} has no line {line}"))?;
        writeln!(diff, "@@ -{before},0 +{line},1 @@\n+{text}")?;
    }
    Ok(diff)
}

/// Returns a regular expression that only this text matches. It escapes nothing but what has a meaning of
/// its own: with a backslash, `<` and `>` match the edges of a word.
fn exactly(text: &str) -> String {
    let mut pattern = "^".to_owned();
    for letter in text.chars() {
        if r"\.+*?()|[]{}^$#&-~".contains(letter) {
            pattern.push('\\');
        }
        pattern.push(letter);
    }
    pattern.push('$');
    pattern
}

/// Replaces the outcomes of mutants that ran again.
fn merge(before: Vec<Outcome>, again: Vec<Outcome>) -> Vec<Outcome> {
    let mut merged = before;
    merged.retain(|old| again.iter().all(|new| new.mutant != old.mutant));
    merged.extend(again);
    merged
}

/// Runs a group's mutants against a round of tests.
fn run_round(
    group: &Group,
    tests: &Tests,
    mut command: Command,
    workspace: &Path,
    out: &Path,
) -> Result<Vec<Outcome>> {
    // The results of an earlier run must not be taken for those of this one.
    if out.exists() {
        fs::remove_dir_all(out).with_context(|| format!("cannot remove {}", out.display()))?;
    }
    fs::create_dir_all(out).with_context(|| format!("cannot create {}", out.display()))?;
    for package in tests.packages {
        command.args(["--test-package", package]);
    }
    if tests.packages != [group.package] {
        // cargo-mutants tries the unchanged code with the tests of the mutated package only. Without its
        // tests' time, it would take slow tests of other packages for endless loops.
        let limit = MIN_SECONDS + MAX_SLOWDOWN * time_unchanged(tests, workspace)?.as_secs();
        command.args(["--baseline", "skip", "--timeout", &limit.to_string()]);
    }
    // What follows `--` does not reach the build before the tests, which would be that of all tests.
    let (targets, of_harness) = split(tests.arguments);
    for argument in targets {
        command.arg(format!("--cargo-arg={argument}"));
    }
    let status = command
        .arg("--output")
        .arg(out)
        .arg("--")
        .args(of_harness)
        .status()
        .context("cannot start `cargo mutants`")?;
    ensure!(
        status.code().is_some_and(|code| COMPLETE.contains(&code)),
        "cargo-mutants fails for {} ({status}); if the tests fail without a mutant, their output is in {}",
        group.name,
        out.join("mutants.out/log").display()
    );
    let outcomes = out.join("mutants.out/outcomes.json");
    if !outcomes.exists() {
        // The share has no mutants.
        return Ok(Vec::new());
    }
    let text = fs::read_to_string(&outcomes)
        .with_context(|| format!("cannot read {}", outcomes.display()))?;
    outcome::read(&text, read_source)
}

/// Splits the arguments of `cargo test` into those that select what is built, and those from `--` on.
fn split<'a>(arguments: &'a [&'static str]) -> (&'a [&'static str], &'a [&'static str]) {
    let end = arguments.iter().position(|argument| *argument == "--");
    arguments.split_at(end.unwrap_or(arguments.len()))
}

/// Runs tests of the unchanged code, and returns their time without the build's.
fn time_unchanged(tests: &Tests, workspace: &Path) -> Result<Duration> {
    let cargo_test = |more: &[&str]| {
        let mut command = Command::new("cargo");
        command
            .current_dir(workspace)
            .args(["test", "--quiet", "--profile", "mutants"])
            .env_remove("CARGO_TARGET_DIR");
        for package in tests.packages {
            command.args(["--package", package]);
        }
        command.args(more).args(tests.arguments).env("WDK_ETW_PYTHON", ORACLES.python());
        run_quietly(&mut command)
    };
    cargo_test(&["--no-run"])?;
    let start = Instant::now();
    cargo_test(&[]).context("the tests fail without a mutant")?;
    Ok(start.elapsed())
}

/// Reads a file of the workspace.
fn read_source(file: &str) -> Result<String> {
    fs::read_to_string(root().join(file)).with_context(|| format!("cannot read {file}"))
}

/// Returns whether a name is that of the package of a group, and of no group.
fn is_package(name: &str, group: &Group) -> bool {
    name == group.package && GROUPS.iter().all(|one| one.name != name)
}

/// Returns the selected groups.
fn selected(selection: &Selection) -> Vec<&'static Group> {
    let is_selected = |group: &&Group| {
        let mut names = selection.groups.iter();
        selection.groups.is_empty()
            || names.any(|name| name == group.name || is_package(name, group))
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
    // Several mutants at the same time need a copy each, which cargo-mutants makes anew for each round.
    let copy = if selection.jobs == 1 {
        Some(step("Copying the workspace", || WorkspaceCopy::renew(&target().join("mutants")))?)
    } else {
        None
    };
    let copy = copy.as_ref().map(WorkspaceCopy::path);
    let mut total = Summary::default();
    let mut failures = BTreeSet::new();
    for group in selected(selection) {
        if !selection.files.is_empty() && list(group, &selection.files)?.is_empty() {
            continue;
        }
        let title = format!("Running the mutants of {}", group.name);
        let outcomes = step_with_output(&title, || run_group(group, selection, &entries, copy))?;
        let (summary, unexplained) = entries.explain(&outcomes);
        println!("{}: {summary}", group.name);
        total += summary;
        failures.extend(unexplained);
        if selection.shard.is_none() {
            failures.extend(entries.superfluous(&outcomes));
        }
    }
    ensure!(
        total.all() > 0,
        "the selection has no mutant; choose other packages, files or another shard"
    );
    println!("all: {total}");
    for failure in &failures {
        println!("{failure}");
    }
    if !failures.is_empty() {
        bail!("{} mutants need a test, or an entry with a reason in {EQUIVALENT}", failures.len());
    }
    Ok(())
}

/// Runs the share of the mutants that `cargo xtask test --deep` runs. The number of commits chooses it, so
/// that one commit always has the same share, and successive commits go through all of them.
pub fn run_share() -> Result<()> {
    step("Finding cargo-mutants", packages::install_cargo_mutants)?;
    let commits = commits();
    let mut shards = Vec::new();
    for group in &GROUPS {
        shards.push(shards_of(list(group, &[])?.len())?);
    }
    let Some((at, shard)) = shard::of_commit(commits, &shards) else {
        bail!("no group of mutants has a shard");
    };
    let Some(group) = GROUPS.get(at) else {
        bail!("there is no group {at} of mutants");
    };
    println!(
        "After {commits} commits: `cargo xtask mutants --package {} --shard {shard}`, one of {} shares",
        group.name,
        shards.iter().sum::<u32>()
    );
    run(&Selection {
        groups: vec![group.name.to_owned()],
        shard: Some(shard),
        files: Vec::new(),
        // Each job builds everything once, which takes longer than the mutants of a share.
        jobs: 1,
    })
}

/// Returns the number of shares of a group with a number of mutants.
fn shards_of(mutants: usize) -> Result<u32> {
    let shards = mutants.div_ceil(MUTANTS_IN_SHARE);
    u32::try_from(shards).context("there are too many mutants")
}

/// Returns the number of commits before and including the checked out one, or 0 without git.
fn commits() -> u32 {
    let count =
        output_of(Command::new("git").current_dir(root()).args(["rev-list", "--count", "HEAD"]));
    count.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_well_formed() {
        let text = fs::read_to_string(root().join(EQUIVALENT)).unwrap();
        Entries::read(&text).unwrap();
    }

    #[test]
    fn a_package_stands_for_its_groups() {
        let of = |name: &str| {
            let selection = Selection { groups: vec![name.to_owned()], ..Selection::default() };
            selected(&selection).iter().map(|group| group.name).collect::<Vec<_>>()
        };
        assert_eq!(of("wdk-etw"), ["wdk-etw"]);
        assert_eq!(of("etl-file-read"), ["etl-file-read"]);
        assert!(of("etl-file").len() > 5);
        assert!(of("etl-file").iter().all(|name| name.starts_with("etl-file-")));
        assert!(names().contains(&"etl-file") && names().contains(&"etl-file-other"));
        assert!(GROUPS.iter().all(|group| {
            group
                .files
                .iter()
                .chain(group.without)
                .all(|pattern| root().join(pattern.trim_end_matches("/**")).exists())
        }));
    }

    #[test]
    fn a_share_has_at_most_eight_mutants() {
        let shards = [0, 1, 8, 9, 560].map(|mutants| shards_of(mutants).unwrap());
        assert_eq!(shards, [0, 1, 1, 2, 70]);
    }

    #[test]
    fn arguments_of_the_test_harness_select_nothing_to_build() {
        let arguments = ["--test", "a", "--", "--skip", "b"];
        assert_eq!(split(&arguments), (&["--test", "a"][..], &["--", "--skip", "b"][..]));
        assert_eq!(split(&["--lib"]), (&["--lib"][..], &[][..]));
    }

    #[test]
    fn a_mutants_name_is_matched_literally() {
        assert_eq!(
            exactly("src/a.rs:2:7: replace f -> Option<u8> with Some(1)"),
            r"^src/a\.rs:2:7: replace f \-> Option<u8> with Some\(1\)$"
        );
    }

    #[test]
    fn a_diff_has_the_lines_of_mutants_only() {
        let mutant = |file: &str, line: usize| Mutant {
            file: file.to_owned(),
            function: String::new(),
            change: "delete field a".to_owned(),
            code: String::new(),
            place: format!("{file}:{line}:5"),
        };
        let mutants = [
            mutant("src/b.rs", 1),
            mutant("src/a.rs", 3),
            mutant("src/a.rs", 2),
            mutant("src/a.rs", 3),
        ];
        let all: Vec<&Mutant> = mutants.iter().collect();
        let read = |file: &str| Ok(format!("one {file}\n  two\nthree\n"));
        assert_eq!(
            diff_of_lines(&all, read).unwrap(),
            "--- a/src/a.rs\n+++ b/src/a.rs\n@@ -1,0 +2,1 @@\n+  two\n@@ -2,0 +3,1 @@\n+three\n\
             --- a/src/b.rs\n+++ b/src/b.rs\n@@ -0,0 +1,1 @@\n+one src/b.rs\n"
        );
        let beyond = mutant("src/a.rs", 4);
        assert!(diff_of_lines(&[&beyond], read).is_err());
    }

    #[test]
    fn a_later_round_replaces_outcomes() {
        let outcome = |place: &str, end| Outcome {
            mutant: Mutant {
                file: "src/a.rs".to_owned(),
                function: "f".to_owned(),
                change: "replace f with ()".to_owned(),
                code: "f()".to_owned(),
                place: place.to_owned(),
            },
            end,
        };
        let before = vec![outcome("1", End::Missed), outcome("2", End::Caught)];
        let merged = merge(before, vec![outcome("1", End::Caught)]);
        assert_eq!(merged.len(), 2);
        assert!(merged.iter().all(|one| one.end == End::Caught));
    }

    #[test]
    fn every_group_names_packages_of_the_workspace() {
        let manifest = fs::read_to_string(root().join("Cargo.lock")).unwrap();
        for group in &GROUPS {
            let tests = group.rounds.iter().flat_map(|round| round.packages);
            for package in tests.copied().chain([group.package]) {
                let line = format!("name = \"{package}\"\n");
                assert!(manifest.contains(&line), "{}: no package {package}", group.name);
            }
        }
    }
}
