//! `cargo xtask bench`: measures the cost of writing an event and compares it with the
//! `tracelogging` crate.
//!
//! The benchmark executes compiled Windows code under a CPU emulator and counts instructions
//! (tools/bench/count.py), so the counts do not depend on the machine.

mod answers;
mod counted;
mod table;

use std::{fmt::Write as _, path::PathBuf, process::Command};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use driver_build::{
    files,
    toolchain::{Machine, Toolchain},
};

use self::{
    counted::{Figures, OURS, WAYS, cells, figure, figures, header, verdict_on},
    table::{goal, is_met, number, verdict},
};
use crate::{
    environment::BENCH,
    process::{json, root, run_quietly, target},
    progress::step,
};

/// The file with the last result.
const RESULT: &str = "docs/benchmark.md";

/// The additional columns of the table, and the image features that add eight events of each kind.
const MORE: [(&str, &str); 4] = [
    ("described", "more-described"),
    ("manifest", "more-in-manifest"),
    ("unprotected", "more-without-rundown"),
    ("peer", "more-of-the-peer"),
];

/// The image feature that adds events through the facades.
const FACADES: &str = "facades";

/// A row of the table: the figures, and the goal for this project's ways of writing.
struct Row {
    what: String,
    most: Option<f64>,
    figures: Figures,
}

fn image(toolchain: &Toolchain, feature: Option<&str>) -> Result<PathBuf> {
    let built_in = target().join("bench-build");
    let mut command = toolchain.build(&root().join("tools/bench/image"), &built_in)?;
    command.args(["--release", "--locked"]);
    if let Some(feature) = feature {
        command.args(["--features", feature]);
    }
    run_quietly(&mut command)?;
    let from = built_in.join(toolchain.target()).join("release/bench_image.dll");
    let to = built_in.join(format!("{}.dll", feature.unwrap_or("base")));
    files::copy(&from, &to)?;
    Ok(to)
}

fn measure(toolchain: &Toolchain) -> Result<Value> {
    let base = image(toolchain, None)?;
    let mut command = Command::new(BENCH.python());
    command.arg(root().join("tools/bench/count.py")).arg(&base);
    for (name, feature) in MORE {
        let path = image(toolchain, Some(feature))?;
        command.arg(format!("{name}={}", path.display()));
    }
    let path = image(toolchain, Some(FACADES))?;
    command.arg(format!("facades={}", path.display()));
    json(&mut command).context("cannot count with the emulator")
}

/// The callers in which the event is measured: the name in `count.py`, the name in the table, and
/// true if the goals apply. In the callers without goals, any event costs a frame, space for a
/// fifth argument, or loads of the values.
const CALLERS: [(&str, &str, bool); 4] = [
    ("five", "five arguments", true),
    ("four", "four arguments", false),
    ("request", "a request", false),
    ("leaf", "leaf", false),
];

/// The states in which the event is not written.
const WITHOUT: [(&str, &str); 3] = [
    ("disabled", "disabled"),
    ("by level", "filtered by level"),
    ("by keyword", "filtered by keyword"),
];

/// Returns the maximum of a figure over all callers and all states without a written event, or
/// `None` if one of them lacks the figure.
fn max_when_not_written(measured: &Value, name: &str) -> Figures {
    WAYS.map(|(way, _)| {
        let mut all = WITHOUT.iter().flat_map(|(state, _)| {
            CALLERS.iter().map(|(caller, ..)| figure(measured, way, state, caller, name))
        });
        all.try_fold(0.0_f64, |most, one| Some(most.max(one?)))
    })
}

/// Returns the rows for events that are not written.
fn filtered(measured: &Value) -> Vec<Row> {
    let mut rows = Vec::new();
    for (state, title) in WITHOUT {
        rows.push(Row {
            what: format!("{title}: the check, instructions"),
            most: Some(3.0),
            figures: figures(measured, state, "five", "check"),
        });
        rows.extend(CALLERS.map(|(caller, name, goal)| Row {
            what: format!("{title}: difference, {name}"),
            most: match caller {
                "leaf" => Some(9.0),
                _ => goal.then_some(4.0),
            },
            figures: figures(measured, state, caller, "delta"),
        }));
    }
    let never = [
        ("loads of the provider's state", "loads", 1.0),
        ("branches taken", "taken", 0.0),
        ("arguments evaluated", "evaluated", 0.0),
    ];
    rows.extend(never.map(|(what, name, most)| Row {
        what: format!("not written: {what}, at most"),
        most: Some(most),
        figures: max_when_not_written(measured, name),
    }));
    rows.extend(CALLERS.map(|(caller, name, goal)| Row {
        what: format!("not written: stack of the caller, {name}, bytes"),
        most: goal.then_some(0.0),
        figures: figures(measured, "disabled", caller, "frame"),
    }));
    rows
}

/// Returns the rows for events that are written.
fn enabled(measured: &Value) -> Vec<Row> {
    let in_callers = |what: &'static str, name: &'static str, most: Option<f64>| {
        CALLERS.map(|(caller, title, goal)| Row {
            what: format!("enabled: {what}, {title}"),
            most: most.filter(|_| goal),
            figures: figures(measured, "enabled", caller, name),
        })
    };
    // The figure does not depend on the caller.
    let once = |what: &str, name: &str, most: Option<f64>| Row {
        what: format!("enabled: {what}"),
        most,
        figures: figures(measured, "enabled", "five", name),
    };
    let mut rows = vec![once("data descriptors", "descriptors", Some(4.0))];
    rows.extend(in_callers(
        "instructions from the is_enabled check to the EtwWriteEx call",
        "to call",
        Some(44.0),
    ));
    rows.extend(in_callers("difference", "delta", None));
    rows.push(once("of these, to keep the handle while the write uses it", "rundown", None));
    rows.extend(in_callers("bytes of stack", "stack", Some(160.0)));
    rows.push(once("record size in the buffer, bytes", "record", None));
    rows.push(once("record size with provider traits, bytes", "record with traits", None));
    rows
}

/// Returns the rows for the size of events in the image.
fn sizes(measured: &Value) -> impl Iterator<Item = Row> {
    let parts = [
        ("code", "code", 64.0),
        ("read-only data", "read-only", 56.0),
        ("relocations", "relocations", 0.0),
        ("writable data", "writable", 0.0),
    ];
    parts.into_iter().map(|(what, name, most)| Row {
        what: format!("one more event: {what}, bytes"),
        most: Some(most),
        figures: counted::sizes(measured, name),
    })
}

/// Returns the row that compares the record sizes of a manifest event and a `TraceLogging` event.
fn ratio(measured: &Value) -> Row {
    let [described, manifest, ..] = figures(measured, "enabled", "five", "record");
    Row {
        what: "record, manifest against TraceLogging".to_owned(),
        most: Some(0.6),
        figures: [None, manifest.zip(described).map(|(one, other)| one / other), None, None],
    }
}

impl Row {
    /// Returns the row as text, and true if its goal is not met.
    fn text(&self) -> (String, bool) {
        let met = is_met(self.figures.into_iter().take(OURS), self.most);
        let text = format!(
            "| {} | {} | {} | {} |\n",
            self.what,
            cells(self.figures),
            goal(self.most),
            verdict_on(met, self.figures)
        );
        (text, met == Some(false))
    }
}

fn table(measured: &Value, toolchain: &Toolchain) -> Result<(String, usize)> {
    let mut text = String::from(concat!(include_str!("prose/cost.md.in"), "\n"));
    let version = toolchain.rust().version().unwrap_or_default();
    let version = version.split(" (").next().unwrap_or_default();
    writeln!(text, "Compiled with {version}, opt-level 3, fat LTO, for {}.\n", toolchain.target())?;
    text.push_str(&header());
    let mut missed = 0;
    let rows = filtered(measured)
        .into_iter()
        .chain(enabled(measured))
        .chain(sizes(measured))
        .chain([ratio(measured)]);
    for row in rows {
        let (row, is_missed) = row.text();
        text.push_str(&row);
        missed += usize::from(is_missed);
    }
    let (helpers, missed_by_helpers) = helpers_table(measured)?;
    text.push_str(&helpers);
    missed += missed_by_helpers;
    let (facades, missed_by_facades) = facades_table(measured);
    text.push_str(&facades);
    missed += missed_by_facades;
    text.push_str(concat!("\n", include_str!("prose/callers.md.in")));
    Ok((text, missed))
}

/// The helpers for events: the name in `count.py`, the name in the table, and the goal for a
/// written event.
const HELPERS: [(&str, &str, f64); 7] = [
    ("every", "`emit!(…, every = 100)`", 59.0),
    ("once", "`emit!(…, once)`", 53.0),
    ("limit", "`emit!(…, limit = LIMIT)`", 59.0),
    ("single", "a provider with `stripes = 1`", 43.0),
    ("counted", "a provider with `statistics`", 56.0),
    ("dump", "a `HexDump` of 8 bytes instead of the string", 65.0),
    ("traced", "`status.traced(trace::failed)`, an event with the status only", 42.0),
];

/// Returns the table of the helpers' costs, and the number of missed goals.
fn helpers_table(measured: &Value) -> Result<(String, usize)> {
    let mut text = String::from(concat!("\n", include_str!("prose/helpers.md.in")));
    let mut missed = 0;
    for (name, title, most) in HELPERS {
        let figures = ["disabled", "left out", "written"]
            .map(|situation| measured["helpers"][name][situation].as_f64());
        let is_met = is_met([figures[2]], Some(most));
        missed += usize::from(is_met == Some(false));
        writeln!(
            text,
            "| {title} | {} | {} | {} |",
            figures.map(number).join(" | "),
            goal(Some(most)),
            verdict(is_met, &[], None)
        )?;
    }
    Ok((text, missed))
}

/// The ways of writing in the image with the facades: the name in `count.py` and the name in the
/// table.
const THROUGH_FACADES: [(&str, &str); 5] = [
    ("native", "declared"),
    ("log", "`log`, formatted"),
    ("pairs", "`log`, pairs"),
    ("tracing", "`tracing`, event"),
    ("span", "`tracing`, span"),
];

/// The rows of the facades' table: the state and the figure in `count.py`, the title, and the goal.
const OF_FACADES: [(&str, &str, &str, Option<f64>); 10] = [
    ("disabled", "delta", "disabled: difference", Some(8.0)),
    ("by level", "delta", "filtered by level: difference", Some(8.0)),
    ("by keyword", "delta", "filtered by keyword: difference", Some(8.0)),
    ("disabled", "evaluated", "disabled: arguments evaluated", Some(0.0)),
    ("disabled", "stack", "disabled: bytes of stack", None),
    ("enabled", "delta", "enabled: difference", None),
    ("enabled", "long", "enabled: a message of 1 MiB, instructions", None),
    ("enabled", "descriptors", "enabled: data descriptors", None),
    // The facades' `MAX_STACK` plus the caller's stack.
    ("enabled", "stack", "enabled: bytes of stack", Some(3072.0)),
    ("enabled", "record", "enabled: record size in the buffer, bytes", None),
];

/// Returns the table of the facades' costs, and the number of missed goals. For an enabled event,
/// only the stack has a goal, because the other costs come from assembling metadata and formatting
/// values.
fn facades_table(measured: &Value) -> (String, usize) {
    let mut text = String::from(concat!("\n", include_str!("prose/facades.md.in"), "\n|"));
    text.extend(THROUGH_FACADES.map(|(_, title)| format!(" | {title}")));
    text.push_str(" | goal | |\n|---|--:|--:|--:|--:|--:|--:|---|\n");
    let mut missed = 0;
    text.extend(OF_FACADES.map(|(state, figure, title, most)| {
        let figures = THROUGH_FACADES.map(|(way, _)| {
            let figure = &measured["facades"][way][state][figure];
            figure.as_f64()
        });
        let met = most.map(|most| figures.iter().all(|one| one.is_some_and(|one| one <= most)));
        missed += usize::from(met == Some(false));
        let figures = figures.map(number).join(" | ");
        let (goal, verdict) = (goal(most), verdict(met, &[], None));
        format!("| {title} | {figures} | {goal} | {verdict} |\n")
    }));
    (text, missed)
}

/// Measures how fast cargo answers after an edit and after a change of the selected packages.
pub fn run_loop(write: bool) -> Result<()> {
    answers::run(write)
}

/// A mode of `cargo xtask bench`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Prints the result.
    Print,
    /// Prints the result, and writes it to the documentation.
    Write,
    /// Prints only the goals that are not met.
    Quick,
}

/// Counts the cost of an event, and fails if it misses a goal.
pub fn run(mode: Mode) -> Result<()> {
    let toolchain =
        step("Finding the cross toolchain", || Toolchain::find_or_install(Machine::X64))?;
    step("Installing the emulator", || BENCH.install())?;
    let measured =
        step("Building the images and counting their instructions", || measure(&toolchain))?;
    let (text, missed) = table(&measured, &toolchain)?;
    if mode == Mode::Quick {
        for line in text.lines().filter(|line| line.contains("not met")) {
            println!("{line}");
        }
    } else {
        println!("\n{text}");
    }
    if mode == Mode::Write {
        files::write(root().join(RESULT), &text)?;
        println!("Written to {RESULT}.");
    }
    ensure!(missed == 0, "{missed} goals are not met; see the rows marked \"not met\" above");
    Ok(())
}
