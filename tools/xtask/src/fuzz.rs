//! `cargo xtask fuzz`: fuzzes every reader of untrusted bytes.
//!
//! The targets are in `fuzz/`, which documents their checks. They run one after the other, on one
//! core, each for an equal share of the time.

use std::{
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use driver_build::files;

use crate::{
    process::{output_of, root, run_quietly, target},
    progress::{step, step_with_output},
};

/// The maximum memory of a target in MiB; exceeding it is a failure.
const MAX_MEMORY: u32 = 2048;
/// The maximum time for one input in seconds; exceeding it is a failure.
const LONGEST: u32 = 20;
/// The target that `cargo fuzz` builds for; sanitizers require it to be specified.
const HOST: &str = "x86_64-unknown-linux-gnu";

/// The number of lines to show of a failure's report.
const SHOWN_LINES: usize = 15;

/// The result of running a target.
struct Run {
    target: String,
    executions: u64,
    coverage: u64,
    /// The fuzzer's report, if it found a failure.
    failure: Option<String>,
}

fn folder() -> PathBuf {
    root().join("fuzz")
}

/// Returns a cargo-fuzz command that runs in the targets' folder.
fn cargo_fuzz(command: &str) -> Command {
    let mut cargo = Command::new("cargo");
    cargo.current_dir(folder()).args(["+nightly", "fuzz", command]);
    cargo
}

/// Fails if a tool is missing, with the command that installs it.
fn find_tools() -> Result<()> {
    ensure!(
        output_of(Command::new("cargo").args(["+nightly", "--version"])).is_some(),
        "fuzzing needs Rust's nightly toolchain: `rustup toolchain install nightly`"
    );
    ensure!(
        output_of(&mut {
            let mut cargo = Command::new("cargo");
            cargo.args(["fuzz", "--version"]);
            cargo
        })
        .is_some(),
        "fuzzing needs cargo-fuzz: `cargo install cargo-fuzz --locked`"
    );
    Ok(())
}

/// Returns the names of the targets.
fn targets() -> Result<Vec<String>> {
    let list = output_of(&mut cargo_fuzz("list")).context("`cargo fuzz list` fails")?;
    let targets: Vec<String> = list.lines().map(str::to_owned).collect();
    ensure!(!targets.is_empty(), "fuzz/ has no targets");
    Ok(targets)
}

/// Writes the targets' seeds, replacing older ones.
fn write_seeds() -> Result<()> {
    let mut cargo = Command::new("cargo");
    run_quietly(cargo.current_dir(folder()).args(["run", "--locked", "--example", "seeds"]))
}

/// Builds all targets.
fn build() -> Result<PathBuf> {
    let built_in = target().join("fuzz");
    let mut build = cargo_fuzz("build");
    run_quietly(build.args(["--features", "libfuzzer", "--target-dir"]).arg(&built_in))?;
    Ok(built_in)
}

/// Runs a built target for a number of seconds.
fn run_target(name: &str, built_in: &Path, seconds: u64) -> Result<Run> {
    let folder = folder();
    let corpus = folder.join("corpus").join(name);
    let artifacts = folder.join("artifacts").join(name);
    for folder in [&corpus, &artifacts] {
        files::create_dir_all(folder)?;
    }
    // Runs the program directly, because `cargo fuzz run` might rebuild it.
    let program = built_in.join(HOST).join("release").join(name);
    let mut command = Command::new(&program);
    command
        .current_dir(&folder)
        .arg(&corpus)
        .arg(folder.join("seeds").join(name))
        .arg(format!("-artifact_prefix={}/", artifacts.display()))
        .arg(format!("-max_total_time={seconds}"))
        .arg(format!("-rss_limit_mb={MAX_MEMORY}"))
        .arg(format!("-timeout={LONGEST}"))
        .arg("-print_final_stats=1");
    let words = folder.join("dictionaries").join(format!("{name}.dict"));
    if words.exists() {
        command.arg(format!("-dict={}", words.display()));
    }
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot start {}", program.display()))?;
    Ok(read_run(name, &output))
}

/// Parses the fuzzer's output.
fn read_run(name: &str, output: &Output) -> Run {
    let log = String::from_utf8_lossy(&output.stderr);
    Run {
        target: name.to_owned(),
        executions: number_after(&log, "stat::number_of_executed_units:").unwrap_or(0),
        coverage: number_after(&log, " cov:").unwrap_or(0),
        failure: (!output.status.success()).then(|| failure(&log)),
    }
}

/// Returns the number after the last occurrence of `words` in `text`.
fn number_after(text: &str, words: &str) -> Option<u64> {
    let (_, rest) = text.rsplit_once(words)?;
    rest.split_whitespace().next()?.parse().ok()
}

/// Returns the part of a log to show: the failure, and the file that reproduces it.
fn failure(log: &str) -> String {
    let lines: Vec<&str> = log.lines().collect();
    let start =
        lines.iter().position(|line| line.contains("panicked at") || line.contains("ERROR: "));
    let start = start.unwrap_or_else(|| lines.len().saturating_sub(SHOWN_LINES));
    let mut shown: Vec<&str> = lines.iter().copied().skip(start).take(SHOWN_LINES).collect();
    let file = |line: &&&str| line.contains("Test unit written to");
    shown.extend(lines.iter().filter(file));
    shown.join("\n")
}

/// Runs all targets, for equal shares of a number of minutes.
pub fn run(minutes: u64) -> Result<()> {
    step("Finding cargo-fuzz and the nightly toolchain", find_tools)?;
    let targets = targets()?;
    step("Writing the seeds", write_seeds)?;
    let built_in = step("Building the fuzz targets", build)?;
    let share = Duration::from_secs(minutes * 60) / u32::try_from(targets.len())?;
    let seconds = share.as_secs().max(1);
    let mut runs = Vec::new();
    for name in &targets {
        let run = step_with_output(&format!("Fuzzing {name} for {seconds} s"), || {
            run_target(name, &built_in, seconds)
        })?;
        if let Some(failure) = &run.failure {
            eprintln!("{failure}");
        }
        runs.push(run);
    }
    println!("{:<16} {:>12} {:>10}", "target", "executions", "coverage");
    for run in &runs {
        let mark = run.failure.as_ref().map_or("", |_| "  FAILED");
        println!("{:<16} {:>12} {:>10}{mark}", run.target, run.executions, run.coverage);
    }
    let found = runs.iter().filter(|run| run.failure.is_some()).count();
    ensure!(
        found == 0,
        "{found} of {} targets failed; the inputs are in fuzz/artifacts; to reproduce a failure, \
         see docs/fuzzing.md",
        runs.len()
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "\
#2\tINITED cov: 12 ft: 13 corp: 1/1b exec/s: 0 rss: 40Mb
#900\tDONE   cov: 345 ft: 700 corp: 9/1Kb lim: 4 exec/s: 90 rss: 50Mb
stat::number_of_executed_units: 900
stat::average_exec_per_sec:     90
";

    #[test]
    fn executions_and_the_last_coverage_are_read() {
        let executed = number_after(LOG, "stat::number_of_executed_units:");
        assert_eq!(executed, Some(900));
        assert_eq!(number_after(LOG, " cov:"), Some(345));
        assert_eq!(number_after(LOG, "crashes:"), None);
    }

    #[test]
    fn a_finding_is_shown_from_its_message_with_its_file() {
        let log = format!(
            "{LOG}thread panicked at src/x.rs:1:2:\nno!\n{}artifact_prefix='x/'; Test unit \
             written to x/crash-1\n",
            "frame\n".repeat(50)
        );
        let shown = failure(&log);
        assert!(shown.starts_with("thread panicked at"), "{shown}");
        assert!(shown.ends_with("x/crash-1"), "{shown}");
        assert_eq!(shown.lines().count(), SHOWN_LINES + 1);
    }
}
