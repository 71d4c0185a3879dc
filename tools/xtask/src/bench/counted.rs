//! Access to the counts that `count.py` prints.

use serde_json::Value;

/// The ways of writing, in the order of the tables' columns.
pub const WAYS: [&str; 3] = ["described", "manifest", "peer"];

/// Returns a figure for every way of writing, in one state and caller.
pub fn figures(measured: &Value, state: &str, caller: &str, name: &str) -> [Option<f64>; 3] {
    WAYS.map(|way| measured["states"][state][format!("{way} {caller}")][name].as_f64())
}

/// Returns the size that one more event adds to the image, for every way of writing.
pub fn sizes(measured: &Value, name: &str) -> [Option<f64>; 3] {
    WAYS.map(|way| measured["per event"][way][name].as_f64())
}
