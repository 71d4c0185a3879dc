//! The time of a write and of a check on this machine.
//!
//! The program in tools/bench/timing calls the loops in the benchmark's image. This module computes
//! medians and ratios from its rounds.

use std::{fmt, fs, path::Path, process::Command};

use anyhow::{Result, ensure};
use serde_json::Value;

use super::table::{goal, is_met, number, verdict};
use crate::{
    build::Profile,
    process::{self, cargo, json, run_quietly, target},
};

/// The ways of writing in a loop that only writes: the name in the program's output and the title.
/// This project's ways come first, then the peer, then only the call of `EtwWriteEx`. To time
/// another declaration of the provider, add a line to this list, before the peer's, and one in
/// tools/bench/timing/src/measure.rs.
const WRITES: [(&str, &str); 6] = [
    ("described", "TraceLogging"),
    ("manifest", "manifest"),
    ("single", "TraceLogging, one stripe"),
    ("unprotected", "TraceLogging, no rundown"),
    ("peer", "peer"),
    ("bare", "bare call"),
];

/// The number of ways with goals, which come first. A provider with one stripe has no goal, because
/// it is meant for drivers that write rarely and not from several processors simultaneously.
const GOALS: usize = 2;

/// The ways of writing in a loop over an array.
const ARRAYS: [(&str, &str); 5] = [
    ("described", "TraceLogging"),
    ("manifest", "manifest"),
    ("unprotected", "TraceLogging, no rundown"),
    ("peer", "peer"),
    ("nothing", "no event"),
];

/// The loops over an array.
const LOOPS: [(&str, &str); 2] = [("sum", "a sum"), ("checksum", "a checksum")];

/// The maximum cost of a write with two threads, relative to one thread. If a bare call exceeds it,
/// the machine is not quiet.
const MAX_OF_TWO: f64 = 1.15;

/// The maximum fraction of the time that threads wait for a processor on a quiet machine.
const MAX_WAITED: f64 = 0.02;

/// The median and the extremes of several rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Spread {
    median: f64,
    low: f64,
    high: f64,
}

impl Spread {
    /// Returns the spread of the rounds, or `None` if there are none.
    fn of(rounds: &[f64]) -> Option<Self> {
        let mut sorted = rounds.to_vec();
        sorted.sort_by(f64::total_cmp);
        let upper = sorted.len() / 2;
        let lower = sorted.len().checked_sub(1)? / 2;
        Some(Self {
            median: f64::midpoint(*sorted.get(lower)?, *sorted.get(upper)?),
            low: *sorted.first()?,
            high: *sorted.last()?,
        })
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [median, low, high] = [self.median, self.low, self.high].map(|one| number(Some(one)));
        write!(formatter, "{median} (from {low} to {high})")
    }
}

/// The program's output.
pub struct Timing(Value);

/// Returns the numbers under these keys in the program's output.
fn rounds(output: &Value, keys: [&str; 4]) -> Result<Vec<f64>> {
    let [kind, one, other, name] = keys;
    let rounds = output[kind][one][other][name].as_array();
    let numbers = rounds.and_then(|all| all.iter().map(Value::as_f64).collect::<Option<Vec<_>>>());
    let numbers = numbers.unwrap_or_default();
    ensure!(
        !numbers.is_empty(),
        "the output of bench-timing has no figures for {kind}, {one}, {other}, {name}"
    );
    Ok(numbers)
}

/// Builds the program that calls the loops. The loops themselves are in the image, which is always
/// optimized.
fn program(profile: Profile) -> Result<Command> {
    if profile == Profile::Debug {
        return Ok(Command::new(process::program("bench-timing", "bench-timing", false)?));
    }
    run_quietly(&mut cargo(&["build", "--locked", "--release", "--package", "bench-timing"]))?;
    Ok(Command::new(target().join("release/bench-timing")))
}

/// Checks that an image's loops write the expected events, without timing them.
pub fn check(image: &Path) -> Result<()> {
    // The debug build shares its dependencies with the tests.
    run_quietly(program(Profile::Debug)?.arg(image).arg("--check"))
}

/// Times an image's loops.
pub fn measure(image: &Path) -> Result<Timing> {
    json(program(Profile::Release)?.arg(image)).map(Timing)
}

/// A row: the title, each way's figure, and the goal for this project's ways.
struct Row {
    what: String,
    most: Option<f64>,
    spreads: Vec<Option<Spread>>,
}

impl Row {
    fn new(what: impl Into<String>, spreads: Vec<Option<Spread>>) -> Self {
        Self { what: what.into(), most: None, spreads }
    }

    /// Returns whether this project's ways meet the goal, or `None` if there is no goal.
    fn is_met(&self) -> Option<bool> {
        let ours = self.spreads.iter().take(GOALS);
        is_met(ours.map(|spread| spread.map(|spread| spread.median)), self.most)
    }

    /// Returns the row as text, for columns with these titles. The last column is a lower bound and
    /// not a way of writing events, so rows are never marked because of it.
    fn text(&self, titles: &[(&str, &str)]) -> String {
        let columns: Vec<_> = titles
            .iter()
            .zip(&self.spreads)
            .map(|((_, title), spread)| (*title, spread.map(|spread| spread.median)))
            .collect();
        let ours = titles.iter().take_while(|(way, _)| *way != "peer").count();
        let (ours, others) = columns.split_at(ours.min(columns.len()));
        let peers = others.split_last().map_or(others, |(_, peers)| peers);
        let cells = self.spreads.iter().map(|spread| {
            let cell = spread.map(|spread| spread.to_string());
            format!(" {} |", cell.unwrap_or_else(|| "–".to_owned()))
        });
        format!(
            "| {} |{} {} | {} |\n",
            self.what,
            cells.collect::<String>(),
            goal(self.most),
            verdict(self.is_met(), ours, peers)
        )
    }
}

fn header(titles: &[(&str, &str)]) -> String {
    let columns = titles.iter().map(|(_, title)| format!(" {title} |"));
    format!(
        "\n| |{} goal | |\n|---|{}--:|---|\n",
        columns.collect::<String>(),
        "--:|".repeat(titles.len())
    )
}

fn threads(count: u64) -> String {
    match count {
        1 => "one thread".to_owned(),
        2 => "two threads".to_owned(),
        more => format!("{more} threads"),
    }
}

/// Returns a row with the ratio of two figures from the same round, for each way of writing.
fn ratios(
    what: String,
    one: impl Fn(&str) -> Result<Vec<f64>>,
    other: impl Fn(&str) -> Result<Vec<f64>>,
    ways: &[(&str, &str)],
) -> Result<Row> {
    let ratio = |way| -> Result<Option<Spread>> {
        let ratios: Vec<f64> =
            one(way)?.into_iter().zip(other(way)?).map(|(one, other)| one / other).collect();
        Ok(Spread::of(&ratios))
    };
    let spreads = ways.iter().map(|(way, _)| ratio(way));
    Ok(Row::new(what, spreads.collect::<Result<_>>()?))
}

impl Timing {
    /// Returns the numbers of threads, which start with one and two.
    fn counts(&self) -> Result<Vec<u64>> {
        let counts = self.0["threads"].as_array();
        let counts =
            counts.and_then(|all| all.iter().map(Value::as_u64).collect::<Option<Vec<_>>>());
        let counts = counts.unwrap_or_default();
        ensure!(
            counts.starts_with(&[1, 2]),
            "the output of bench-timing has no figures for one thread and two"
        );
        Ok(counts)
    }

    /// Returns the nanoseconds per write in each round.
    fn write(&self, way: &str, count: u64) -> Result<Vec<f64>> {
        rounds(&self.0, ["writes", way, &count.to_string(), "ns"])
    }

    /// Returns the nanoseconds per thousand elements of a loop in each round.
    fn array(&self, name: &str, way: &str) -> Result<Vec<f64>> {
        let rounds = rounds(&self.0, ["arrays", name, way, "ns"])?;
        Ok(rounds.into_iter().map(|one| one * 1000.0).collect())
    }

    /// Returns the rows for enabled events.
    fn writes(&self) -> Result<Vec<Row>> {
        let counts = self.counts()?;
        let mut rows = Vec::new();
        for count in counts.iter().copied() {
            let spreads = WRITES.map(|(way, _)| Ok(Spread::of(&self.write(way, count)?)));
            let what = format!("{}: a write, nanoseconds", threads(count));
            rows.push(Row::new(what, spreads.into_iter().collect::<Result<_>>()?));
        }
        for count in counts.iter().copied().skip(1) {
            let what = format!("{} against one, for each write", threads(count));
            let many = |way: &str| self.write(way, count);
            let mut row = ratios(what, many, |way| self.write(way, 1), &WRITES)?;
            row.most = (count == 2).then_some(MAX_OF_TWO);
            rows.push(row);
        }
        for (base, title) in [("bare", "a bare call"), ("peer", "the peer")] {
            for count in counts.iter().copied() {
                let what = format!("{}: against {title}", threads(count));
                let of_base = |_: &str| self.write(base, count);
                rows.push(ratios(what, |way| self.write(way, count), of_base, &WRITES)?);
            }
        }
        Ok(rows)
    }

    /// Returns the rows for disabled events in loops over an array.
    fn arrays(&self) -> Result<Vec<Row>> {
        let mut rows = Vec::new();
        for (name, title) in LOOPS {
            let time = |way: &str| self.array(name, way);
            let spreads = ARRAYS.map(|(way, _)| Ok(Spread::of(&time(way)?)));
            rows.push(Row::new(
                format!("{title}: a thousand elements, nanoseconds"),
                spreads.into_iter().collect::<Result<_>>()?,
            ));
            let what = format!("{title}: against no event");
            rows.push(ratios(what, time, |_| time("nothing"), &ARRAYS)?);
        }
        Ok(rows)
    }

    /// Returns the signs that the machine was not quiet during this run; empty if there are none.
    pub fn noise(&self) -> Result<Vec<String>> {
        let mut reasons = Vec::new();
        let bare = ratios(
            String::new(),
            |way| self.write(way, 2),
            |way| self.write(way, 1),
            &[("bare", "")],
        )?;
        let bare = bare.spreads.first().copied().flatten();
        let quiet = 1.0 / MAX_OF_TWO..=MAX_OF_TWO;
        if let Some(bare) = bare.filter(|bare| !quiet.contains(&bare.median)) {
            reasons.push(format!(
                "with two threads, a bare call costs {} times as much as with one, although bare calls share nothing",
                number(Some(bare.median))
            ));
        }
        let mut waited = Vec::new();
        for (way, _) in WRITES {
            waited.extend(rounds(&self.0, ["writes", way, "1", "waited"])?);
            waited.extend(rounds(&self.0, ["writes", way, "2", "waited"])?);
        }
        for (name, _) in LOOPS {
            for (way, _) in ARRAYS {
                waited.extend(rounds(&self.0, ["arrays", name, way, "waited"])?);
            }
        }
        if let Some(waited) = Spread::of(&waited).filter(|waited| waited.median > MAX_WAITED) {
            reasons.push(format!(
                "the threads waited for their processors {} % of the time; at most {} % is quiet",
                number(Some(waited.median * 100.0)),
                number(Some(MAX_WAITED * 100.0))
            ));
        }
        Ok(reasons)
    }

    /// Returns the result as text, and the number of missed goals.
    pub fn table(&self) -> Result<(String, usize)> {
        let model = model(&fs::read_to_string("/proc/cpuinfo").unwrap_or_default()).to_owned();
        let mut text = concat!("\n", include_str!("prose/time.md.in"))
            .replace("@processors@", &self.0["processors"].to_string())
            .replace("@rounds@", &self.0["rounds"].to_string())
            .replace("@model@", &model);
        let writes = self.writes()?;
        let missed = writes.iter().filter(|row| row.is_met() == Some(false)).count();
        text.push_str(&header(&WRITES));
        text.extend(writes.iter().map(|row| row.text(&WRITES)));
        text.push_str(concat!("\n", include_str!("prose/arrays.md.in")));
        text.push_str(&header(&ARRAYS));
        text.extend(self.arrays()?.iter().map(|row| row.text(&ARRAYS)));
        Ok((text, missed))
    }
}

/// Returns the processor's name from the text of `/proc/cpuinfo`.
fn model(cpuinfo: &str) -> &str {
    cpuinfo
        .lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.trim() == "model name")
        .map_or("unknown", |(_, model)| model.trim())
}

/// Fails if [`Timing::noise`] found signs of a noisy run.
pub fn ensure_quiet(noise: &[String]) -> Result<()> {
    ensure!(
        noise.is_empty(),
        "this machine is not quiet: {}; end the programs that use its processors, and measure again",
        noise.join("; ")
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Returns a loop's figures in three rounds around a median.
    fn loop_of(median: f64, waited: f64) -> Value {
        json!({
            "ns": [median * 0.9, median * 2.0, median],
            "waited": [waited, waited, 0.0],
        })
    }

    /// Returns an output in which, with two threads instead of one, this project's write costs
    /// `ours` times as much and a bare call `bare` times as much.
    fn timing(ours: f64, bare: f64, waited: f64) -> Timing {
        let writes = |one: f64, ratio: f64| {
            json!({
                "1": loop_of(one, waited),
                "2": loop_of(one * ratio, waited),
                "8": loop_of(one * ratio * 4.0, waited),
            })
        };
        let arrays = json!({
            "nothing": loop_of(0.1, waited),
            "described": loop_of(0.3, waited),
            "manifest": loop_of(0.2, waited),
            "unprotected": loop_of(0.2, waited),
            "peer": loop_of(0.2, waited),
        });
        Timing(json!({
            "processors": 8,
            "rounds": 3,
            "threads": [1, 2, 8],
            "writes": {
                "described": writes(10.0, ours),
                "manifest": writes(5.0, ours),
                "single": writes(8.0, 4.0),
                "unprotected": writes(8.0, 1.0),
                "peer": writes(8.0, 1.0),
                "bare": writes(2.0, bare),
            },
            "arrays": {"sum": arrays, "checksum": arrays},
        }))
    }

    #[test]
    fn a_median_is_the_middle_round() {
        let median = |rounds: &[f64]| Spread::of(rounds).map(|spread| spread.median);
        assert_eq!(median(&[3.0, 100.0, 1.0]), Some(3.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 100.0]), Some(3.0));
        assert_eq!(median(&[7.0]), Some(7.0));
        assert_eq!(median(&[]), None);
        let spread = Spread::of(&[5.0, 2.5, 100.0]).unwrap();
        assert_eq!(spread.to_string(), "5 (from 2.50 to 100)");
    }

    #[test]
    fn threads_that_slow_each_other_down_miss_the_goal() {
        let (text, missed) = timing(2.5, 1.0, 0.0).table().unwrap();
        assert_eq!(missed, 1);
        let row = "| two threads against one, for each write | 2.50 (from 2.50 to 2.50) | \
                   2.50 (from 2.50 to 2.50) | 4 (from 4 to 4) | 1 (from 1 to 1) | 1 (from 1 to 1) | \
                   1 (from 1 to 1) | \
                   ≤ 1.15 | **not met**; **behind**: TraceLogging (peer), manifest (peer), \
                   TraceLogging, one stripe (peer) |\n";
        assert!(text.contains(row), "{text}");
        let (text, missed) = timing(1.1, 1.0, 0.0).table().unwrap();
        assert_eq!(missed, 0);
        assert!(text.contains("| ≤ 1.15 | met; **behind**: "), "{text}");
    }

    #[test]
    fn ratios_are_those_of_rounds() {
        let (text, _) = timing(1.0, 1.0, 0.0).table().unwrap();
        for row in [
            "| one thread: a write, nanoseconds | 10 (from 9 to 20) | 5 (from 4.50 to 10) | \
             8 (from 7.20 to 16) | 8 (from 7.20 to 16) | 8 (from 7.20 to 16) | 2 (from 1.80 to 4) |  | **behind**: TraceLogging (peer) |\n",
            "| 8 threads: a write, nanoseconds | 40 (from 36 to 80) |",
            "| 8 threads against one, for each write | 4 (from 4 to 4) |",
            "| one thread: against a bare call | 5 (from 5 to 5) | 2.50 (from 2.50 to 2.50) | \
             4 (from 4 to 4) | 4 (from 4 to 4) | 4 (from 4 to 4) | 1 (from 1 to 1) |",
            "| 8 threads: against the peer | 1.25 (from 1.25 to 1.25) | \
             0.63 (from 0.63 to 0.63) | 4 (from 4 to 4) | 1 (from 1 to 1) | 1 (from 1 to 1) |",
            "| a sum: a thousand elements, nanoseconds | 300 (from 270 to 600) | \
             200 (from 180 to 400) | 200 (from 180 to 400) | 200 (from 180 to 400) | \
             100 (from 90 to 200) |  | \
             **behind**: TraceLogging (peer) |\n",
            "| a checksum: against no event | 3 (from 3 to 3) | 2 (from 2 to 2) | \
             2 (from 2 to 2) | 2 (from 2 to 2) | 1 (from 1 to 1) |  | **behind**: TraceLogging (peer) |\n",
        ] {
            assert!(text.contains(row), "{row}\nis not in\n{text}");
        }
    }

    #[test]
    fn a_noisy_machine_is_named() {
        let noise = |bare, waited| timing(1.0, bare, waited).noise().unwrap();
        assert!(noise(1.0, 0.0).is_empty());
        assert!(noise(1.15, 0.02).is_empty());
        ensure_quiet(&[]).unwrap();
        for bare in [1.3, 0.8] {
            let error = ensure_quiet(&noise(bare, 0.0)).unwrap_err().to_string();
            assert!(
                error.contains(&format!("with two threads, a bare call costs {bare:.2} times")),
                "{error}"
            );
        }
        let error = ensure_quiet(&noise(1.0, 0.4)).unwrap_err().to_string();
        assert!(error.contains("waited for their processors 40 % of the time"), "{error}");
        assert_eq!(noise(1.3, 0.4).len(), 2);
    }

    #[test]
    fn an_output_without_a_loop_is_an_error() {
        let mut timing = timing(1.0, 1.0, 0.0);
        timing.0["writes"]["peer"]["2"] = json!({});
        let error = timing.table().unwrap_err().to_string();
        assert_eq!(error, "the output of bench-timing has no figures for writes, peer, 2, ns");
        timing.0["threads"] = json!([1]);
        timing.table().unwrap_err();
    }

    #[test]
    fn the_processor_is_named() {
        let cpuinfo = "processor\t: 0\nmodel name\t: A Fast One\nflags\t\t: sse2\n";
        assert_eq!(model(cpuinfo), "A Fast One");
        assert_eq!(model(""), "unknown");
    }
}
