//! `cargo xtask bench --traces`: measures how fast `etl` reads large files, and how much memory it
//! uses.
//!
//! An example in the `etl` crate generates the files. GNU time (`/usr/bin/time -v`) reports
//! time and memory.

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, ensure};
use driver_build::files;

use crate::{
    environment::ORACLES,
    process::{cargo, root, run_quietly, target},
    progress::step,
};

/// The heading of the section written by this command.
const HEADING: &str = "# Reading traces";
/// GNU time, from the Debian package `time`.
const TIME: &str = "/usr/bin/time";
/// The manifest for the manifest events.
const MANIFEST: &str = "tests/etl-fixtures/src/sample.man";
/// The numbers of events in the small and the large file.
const EVENTS: [u32; 2] = [1_000_000, 10_000_000];
/// The number of processors in the files.
const PROCESSORS: u32 = 4;
/// The maximum memory use of a command, in MiB.
const MAX_MEMORY: f64 = 64.0;
/// The maximum cost of an event in the large file, relative to one in the small file.
const MAX_GROWTH: f64 = 1.1;

/// An `etl` command to measure.
struct Measured {
    title: &'static str,
    command: &'static str,
    /// The arguments after the file.
    arguments: &'static [&'static str],
    /// The minimum number of events per second of processor time on one thread.
    rate: Option<f64>,
    /// The minimum ratio of the speed on all threads to the speed on one thread, with at least two
    /// processors.
    speed_up: Option<f64>,
}

impl Measured {
    const fn new(
        title: &'static str,
        command: &'static str,
        arguments: &'static [&'static str],
    ) -> Self {
        Self { title, command, arguments, rate: None, speed_up: None }
    }
}

const COMMANDS: [Measured; 6] = [
    Measured { rate: Some(1e6), ..Measured::new("`etl stats`", "stats", &[]) },
    Measured {
        rate: Some(600e3),
        speed_up: Some(1.8),
        ..Measured::new("`etl dump --format json`", "dump", &["--format", "json"])
    },
    Measured::new("`etl dump --format csv`", "dump", &["--format", "csv"]),
    Measured::new("`etl dump --format csv --fields`", "dump", &["--format", "csv", "--fields"]),
    Measured::new("`etl dump --format perfetto`", "dump", &["--format", "perfetto"]),
    Measured::new("`etl dump`", "dump", &["--width", "120"]),
];

/// GNU time's report on a run.
#[derive(Clone, Copy)]
struct Run {
    /// The elapsed time.
    seconds: f64,
    /// The processor time, in user and kernel mode.
    busy: f64,
    /// The maximum resident set size, in MiB.
    memory: f64,
}

/// Runs a command whose output is discarded.
fn timed(command: &Command, report: &Path) -> Result<Run> {
    let mut timed = Command::new(TIME);
    timed.args(["-f", "%e %U %S %M", "-o"]).arg(report);
    timed.arg(command.get_program()).args(command.get_args());
    let status = timed
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()
        .with_context(|| format!("cannot start {TIME}: install the Debian package `time`"))?;
    ensure!(status.success(), "failed ({status}): {timed:?}");
    let text = fs::read_to_string(report).context("GNU time reported nothing")?;
    let figures: Vec<f64> =
        text.split_whitespace().filter_map(|figure| figure.parse().ok()).collect();
    let &[seconds, user, system, kibibytes] = figures.as_slice() else {
        anyhow::bail!("GNU time reported {text:?}, not four numbers");
    };
    Ok(Run { seconds, busy: user + system, memory: kibibytes / 1024.0 })
}

impl Run {
    /// Returns the lower figures of two runs, but the higher figure for the memory.
    const fn best(self, other: Self) -> Self {
        Self {
            seconds: self.seconds.min(other.seconds),
            busy: self.busy.min(other.busy),
            memory: self.memory.max(other.memory),
        }
    }
}

/// Runs each command several times, in rotation, and returns the best figures of each.
fn best<const N: usize>(commands: [&Command; N], report: &Path, runs: usize) -> Result<[Run; N]> {
    let worst = Run { seconds: f64::INFINITY, busy: f64::INFINITY, memory: 0.0 };
    let mut best = [worst; N];
    for _ in 0..runs {
        for (best, command) in best.iter_mut().zip(commands) {
            *best = best.best(timed(command, report)?);
        }
    }
    Ok(best)
}

/// Generates a file with this number of events, unless it exists.
fn generated(events: u32) -> Result<PathBuf> {
    let folder = target().join("bench-traces");
    fs::create_dir_all(&folder).context("cannot make the folder of the traces")?;
    let file = folder.join(format!("{events}.etl"));
    if !file.exists() {
        let part = folder.join("part.etl");
        run_quietly(
            Command::new(target().join("release/examples/generate"))
                .args(["--events", &events.to_string()])
                .args(["--processors", &PROCESSORS.to_string()])
                .arg("-o")
                .arg(&part),
        )?;
        fs::rename(&part, &file).context("cannot rename the trace")?;
    }
    Ok(file)
}

/// Runs the measurements, prints the result, and writes it to a document if one is given. Returns
/// the number of missed goals.
pub fn run(document: Option<&Path>) -> Result<usize> {
    step("Building etl", || {
        run_quietly(
            cargo(&["build", "--locked", "--release", "--package", "etl"])
                .args(["--bins", "--example", "generate"]),
        )
    })?;
    step("Installing dissect.etl", || ORACLES.install())?;
    let files = step("Writing the traces", || {
        EVENTS.into_iter().map(generated).collect::<Result<Vec<_>>>()
    })?;
    let (text, missed) = step("Reading the traces", || measured(&files))?;
    println!("\n{text}");
    if let Some(path) = document {
        let old = files::read_to_string(path)?;
        let kept = old.split(HEADING).next().unwrap_or_default().trim_end();
        files::write(path, format!("{kept}\n\n{text}"))?;
        println!("Written to {}.", path.display());
    }
    Ok(missed)
}

/// Returns the section that an earlier run of this command wrote to the document.
pub fn earlier(document: &str) -> String {
    document.split_once(HEADING).map(|(_, rest)| format!("\n{HEADING}{rest}")).unwrap_or_default()
}

fn measured(files: &[PathBuf]) -> Result<(String, usize)> {
    let report = target().join("bench-traces/time.txt");
    let processors = std::thread::available_parallelism().map_or(0, usize::from);
    let mut text = include_str!("prose/traces.md.in")
        .replace("@processors of the traces@", &PROCESSORS.to_string())
        .replace("@processors@", &processors.to_string());
    let mut missed = 0;
    for Measured { title, command, arguments, rate: goal, speed_up } in COMMANDS {
        let speed_up = speed_up.filter(|_| processors > 1);
        let mut small = None;
        for (file, events) in files.iter().zip(EVENTS) {
            let mut etl = Command::new(target().join("release/etl"));
            etl.arg(command).arg(file).args(arguments);
            etl.arg("--man").arg(root().join(MANIFEST));
            let mut single = Command::new(etl.get_program());
            single.args(etl.get_args()).args(["--threads", "1"]);
            let runs = if events == EVENTS[0] { 3 } else { 1 };
            let [run, all] = best([&single, &etl], &report, runs)?;
            let memory = run.memory.max(all.memory);
            let rate = f64::from(events) / run.busy;
            let growth = *small.get_or_insert(rate) / rate;
            let faster = run.seconds / all.seconds;
            let met = goal.is_none_or(|goal| rate >= goal)
                && speed_up.is_none_or(|speed_up| faster >= speed_up)
                && memory <= MAX_MEMORY
                && growth <= MAX_GROWTH;
            missed += usize::from(!met && goal.is_some());
            let verdict = match (goal, met) {
                (None, _) => "",
                (_, true) => "met",
                (_, false) => "**not met**",
            };
            let goal = goal.map_or_else(String::new, |goal| {
                let speed_up = speed_up.map_or_else(String::new, |goal| format!(" ≥ {goal} ×,"));
                format!("≥ {:.1} M/s,{speed_up} ≤ {MAX_MEMORY} MiB, ≤ {MAX_GROWTH}", goal / 1e6)
            });
            let size = fs::metadata(file).context("the trace no longer exists")?.len();
            writeln!(
                text,
                "| {title} | {} M | {} | {:.2} M | {:.2} M | {:.2} M | {faster:.2} | {memory:.1} | {growth:.2} \
                 | {goal} | {verdict} |",
                events / 1_000_000,
                size / u64::from(events),
                rate / 1e6,
                f64::from(events) / run.seconds / 1e6,
                f64::from(events) / all.seconds / 1e6,
            )?;
        }
    }
    if let Some((file, events)) = files.iter().zip(EVENTS).next() {
        let mut dissect = Command::new(ORACLES.python());
        dissect.arg(root().join("tools/bench/dissect_count.py")).arg(file);
        let [run] = best([&dissect], &report, 1)?;
        let size = fs::metadata(file).context("the trace no longer exists")?.len();
        writeln!(
            text,
            "| dissect.etl | {} M | {} | {:.2} M | {:.2} M | | | {:.1} | | | |",
            events / 1_000_000,
            size / u64::from(events),
            f64::from(events) / run.busy / 1e6,
            f64::from(events) / run.seconds / 1e6,
            run.memory,
        )?;
    }
    Ok((text, missed))
}
