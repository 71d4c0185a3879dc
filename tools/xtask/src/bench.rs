//! `cargo xtask bench`: what events cost, beside a peer.
//!
//! The benchmark executes compiled Windows code under a CPU emulator and counts
//! instructions (tools/bench/count.py), so that a run on any machine gives the same.

use std::{fmt::Write as _, fs, path::PathBuf, process::Command};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::{
    environment::BENCH,
    process::{output_of, root, run_quietly, target},
    progress::step,
    toolchain::{TARGET, Toolchain},
};

/// Where the last result is kept.
const RESULT: &str = "docs/benchmark.md";

/// The features of the image that add eight events each, and whose events those are.
const MORE: [(&str, &str); 3] = [
    ("described", "more-described"),
    ("manifest", "more-in-manifest"),
    ("peer", "more-of-the-peer"),
];

/// A figure of this project's two kinds of events and of the peer's, and what ours are to
/// be at most.
struct Row {
    what: String,
    most: Option<f64>,
    figures: [Option<f64>; 3],
}

fn image(toolchain: &Toolchain, feature: Option<&str>) -> Result<PathBuf> {
    let built_in = target().join("bench-build");
    let mut command = toolchain.cargo();
    command
        .current_dir(root().join("tools/bench/image"))
        .args(["build", "--release", "--locked", "--target-dir"])
        .arg(&built_in)
        .args(
            toolchain
                .build_options()
                .into_iter()
                .filter(|option| !option.contains("profile.dev")),
        );
    if let Some(feature) = feature {
        command.args(["--features", feature]);
    }
    run_quietly(&mut command)?;
    let from = built_in.join(TARGET).join("release/bench_image.dll");
    let to = built_in.join(format!("{}.dll", feature.unwrap_or("base")));
    fs::copy(&from, &to).with_context(|| format!("cannot copy {}", from.display()))?;
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
    let output = command.output().context("the emulator cannot be started")?;
    ensure!(
        output.status.success(),
        "the emulator failed:\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).context("the emulator's output is no JSON")
}

/// The ways of writing, in the order of the table's columns.
const WAYS: [&str; 3] = ["described", "manifest", "peer"];

/// A figure of every way to write, in one state and caller.
fn figures(measured: &Value, state: &str, caller: &str, name: &str) -> [Option<f64>; 3] {
    WAYS.map(|way| measured["states"][state][format!("{way} {caller}")][name].as_f64())
}

/// What an event costs that nobody gets.
fn filtered(measured: &Value) -> impl Iterator<Item = Row> {
    let states = [
        ("disabled", "disabled"),
        ("by level", "filtered by level"),
        ("by keyword", "filtered by keyword"),
    ];
    let parts = [
        ("the check, instructions", "nl", "check", 3.0),
        ("difference, caller with other calls", "nl", "delta", 4.0),
        ("difference, leaf", "leaf", "delta", 9.0),
        ("stack of the caller, bytes", "nl", "frame", 0.0),
    ];
    states.into_iter().flat_map(move |(state, title)| {
        parts.map(|(what, caller, name, most)| Row {
            what: format!("{title}: {what}"),
            most: Some(most),
            figures: figures(measured, state, caller, name),
        })
    })
}

/// What an event costs that somebody gets.
fn enabled(measured: &Value) -> Vec<Row> {
    let of = |name| figures(measured, "enabled", "nl", name);
    let mut stack = of("stack");
    for (sum, frame) in stack.iter_mut().zip(of("frame")) {
        *sum = sum.zip(frame).map(|(below, frame)| below + frame);
    }
    [
        ("data descriptors", Some(4.0), of("descriptors")),
        (
            "from the check to the call of ETW, instructions",
            Some(46.0),
            of("to call"),
        ),
        (
            "all of it, difference, caller with other calls",
            None,
            of("delta"),
        ),
        (
            "of these, to keep the handle while the write uses it",
            None,
            of("rundown"),
        ),
        ("stack, bytes", Some(160.0), stack),
        ("record in the buffer, bytes", None, of("record")),
    ]
    .into_iter()
    .map(|(what, most, figures)| Row {
        what: format!("enabled: {what}"),
        most,
        figures,
    })
    .collect()
}

/// What an event costs in the image.
fn sizes(measured: &Value) -> impl Iterator<Item = Row> {
    let parts = [
        ("code", "code", 64.0),
        ("read-only data", "read-only", 56.0),
        ("relocations", "relocations", 0.0),
        ("writable data", "writable", 0.0),
    ];
    parts.into_iter().map(|(what, name, most)| Row {
        what: format!("an event more: {what}, bytes"),
        most: Some(most),
        figures: WAYS.map(|way| measured["per event"][way][name].as_f64()),
    })
}

/// What a record in a manifest costs, against one that describes itself.
fn ratio(measured: &Value) -> Row {
    let [described, manifest, _] = figures(measured, "enabled", "nl", "record");
    Row {
        what: "record, manifest against TraceLogging".to_owned(),
        most: Some(0.6),
        figures: [
            None,
            manifest.zip(described).map(|(one, other)| one / other),
            None,
        ],
    }
}

fn number(figure: Option<f64>) -> String {
    figure.map_or_else(
        || "–".to_owned(),
        |figure| {
            if figure.fract() == 0.0 {
                format!("{figure:.0}")
            } else {
                format!("{figure:.2}")
            }
        },
    )
}

/// A goal, and whether this project's events, those of both kinds, meet it.
fn verdict(row: &Row) -> (String, &'static str) {
    let Some(most) = row.most else {
        return (String::new(), "");
    };
    let mut ours = row.figures.iter().take(2).flatten().peekable();
    let met = ours.peek().is_some() && ours.all(|figure| *figure <= most);
    let goal = format!("≤ {}", number(Some(most)));
    (goal, if met { "met" } else { "**not met**" })
}

fn table(measured: &Value, toolchain: &Toolchain) -> Result<(String, usize)> {
    let mut text = String::from(
        "# What an event costs\n\n\
         Written by `cargo xtask bench`, which executes the compiled Windows code under a CPU \
         emulator\nand counts the image's own instructions; what the kernel does in the call is \
         not in it.\n\n\
         The event: `ReadComplete`, level 4, keyword 2, a status (32 bits), a number of bytes (64 \
         bits)\nand a text of 12 bytes, no activity; provider `Contoso.Driver`. A *difference* is \
         a function\nwith the event minus the same function without it, so register allocation in \
         the rest of the\nfunction is in it. The caller with other calls makes one before and one \
         after, of a routine with\nfive arguments, and uses the event's values there too; the leaf \
         only computes. *An event more* is\nan eighth of what eight events with the same types of \
         fields add to the image. The peer is the\npublished crate `tracelogging` 1.2.4 with \
         `kernel_mode`, built and run the same way in the same run.\n\n",
    );
    let compiler = match toolchain {
        Toolchain::Installed { .. } => "rustc",
        Toolchain::Debian { .. } => "/usr/bin/rustc",
    };
    let version = output_of(Command::new(compiler).arg("--version")).unwrap_or_default();
    let version = version.split(" (").next().unwrap_or_default();
    writeln!(
        text,
        "Compiled with {version}, opt-level 3, fat LTO, for {TARGET}.\n"
    )?;
    text.push_str("| | TraceLogging | manifest | peer | goal | |\n|---|--:|--:|--:|--:|---|\n");
    let mut missed = 0;
    let rows = filtered(measured)
        .chain(enabled(measured))
        .chain(sizes(measured))
        .chain([ratio(measured)]);
    for row in rows {
        let [described, manifest, peer] = row.figures.map(number);
        let (goal, verdict) = verdict(&row);
        missed += usize::from(verdict.contains("not"));
        writeln!(
            text,
            "| {} | {described} | {manifest} | {peer} | {goal} | {verdict} |",
            row.what
        )?;
    }
    text.push_str(
        "\nThe peer hands over a handle that another processor may just be releasing; keeping it \
         costs the\nthree instructions above. Its code is in line, at the price of bytes for each \
         event and of the\ncaller's stack.\n",
    );
    Ok((text, missed))
}

/// Measures, prints, and keeps the result.
pub fn run() -> Result<()> {
    let toolchain = step("find the cross toolchain", Toolchain::find_or_install)?;
    step("install the emulator", || BENCH.install())?;
    let measured = step("build the images and execute them", || measure(&toolchain))?;
    let (text, missed) = table(&measured, &toolchain)?;
    println!("\n{text}");
    let path = root().join(RESULT);
    fs::write(&path, &text).with_context(|| format!("cannot write {}", path.display()))?;
    println!("Kept in {RESULT}.");
    ensure!(
        missed == 0,
        "{missed} goals are not met; the table says which"
    );
    Ok(())
}
