//! Access to the counts that `count.py` prints.

use serde_json::Value;

use super::table::{number, verdict};

/// The ways of writing, in column order: the name in `count.py` and the title. This project's ways
/// come first, then the peer.
pub const WAYS: [(&str, &str); 4] = [
    ("described", "TraceLogging"),
    ("manifest", "manifest"),
    ("unprotected", "no rundown"),
    ("peer", "peer"),
];

/// The number of this project's ways of writing.
pub const OURS: usize = WAYS.len() - 1;

/// A figure for every way of writing.
pub type Figures = [Option<f64>; WAYS.len()];

/// Returns a figure for one way of writing, in one state and caller.
pub fn figure(measured: &Value, way: &str, state: &str, caller: &str, name: &str) -> Option<f64> {
    measured["states"][state][format!("{way} {caller}")][name].as_f64()
}

/// Returns a figure for every way of writing, in one state and caller.
pub fn figures(measured: &Value, state: &str, caller: &str, name: &str) -> Figures {
    WAYS.map(|(way, _)| figure(measured, way, state, caller, name))
}

/// Returns the size that each additional event adds to the image, for every way of writing.
pub fn sizes(measured: &Value, name: &str) -> Figures {
    WAYS.map(|(way, _)| measured["per event"][way][name].as_f64())
}

/// Returns the first lines of a table that has a column for every way of writing, and the goal.
pub fn header() -> String {
    let titles = WAYS.map(|(_, title)| format!(" {title} |")).concat();
    format!("| |{titles} goal | |\n|---|{}--:|---|\n", "--:|".repeat(WAYS.len()))
}

/// Returns a row's figures as table cells.
pub fn cells(figures: Figures) -> String {
    figures.map(number).join(" | ")
}

/// Returns the verdict for a row with these figures, compared with the peer's.
pub fn verdict_on(is_met: Option<bool>, figures: Figures) -> String {
    let [.., peer] = figures;
    let columns: Vec<_> =
        WAYS.map(|(_, title)| title).into_iter().zip(figures).take(OURS).collect();
    verdict(is_met, &columns, peer)
}
