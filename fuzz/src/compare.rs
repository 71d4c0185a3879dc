//! Reads arbitrary bytes as another decoder's output for a trace, and compares the two.

use std::iter;

use etl::compare::{Comparison, Form, Other, render, to_json};

use crate::{
    seeds::compare::OURS,
    text::{assert_harmless, sentence},
};

/// The number of differences to list before the rest are only counted.
const LISTED: usize = 3;

/// The result of the comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compared {
    /// The format of the other decoder's file.
    pub form: Form,
    /// The number of events in both decoders' output.
    pub both: u64,
    /// The number of events that only the other decoder's output contains.
    pub only_theirs: u64,
    /// The number of differences.
    pub differences: u64,
}

/// Checks that each event is counted once, that all differences are counted but no more than the
/// requested number is listed, that the printed text is harmless, and that UTF-16 gives the same
/// events.
///
/// # Errors
///
/// Fails with the text of the error if the bytes are not in a known format.
pub fn check(data: &[u8]) -> Result<Compared, String> {
    let mut other = Other::parse(data).map_err(|error| sentence(&error))?;
    check_encoding(data, &other);
    let all = other.events.clone();
    other.select(&[], &OURS);
    assert_eq!(other.events, all, "without providers, all are selected");
    let comparison = Comparison::new(&OURS, &other, LISTED);
    let count = |events: usize| events as u64;
    let in_trace = comparison.compared + comparison.only_ours;
    assert_eq!(in_trace, count(OURS.events.len()));
    let in_file = comparison.compared + comparison.only_theirs;
    assert_eq!(in_file, count(other.events.len()));
    assert!(comparison.differences >= comparison.only_ours + comparison.only_theirs);
    assert_eq!(count(comparison.listed.len()), comparison.differences.min(count(LISTED)));
    let unlisted = Comparison::new(&OURS, &other, 0);
    assert!(unlisted.listed.is_empty());
    assert_eq!(unlisted.differences, comparison.differences);
    assert_eq!(unlisted.agrees(), comparison.agrees());
    let compared = Compared {
        form: other.form,
        both: comparison.compared,
        only_theirs: comparison.only_theirs,
        differences: comparison.differences,
    };
    let results = [("other".to_owned(), other, comparison)];
    assert_harmless(&render("trace.etl", &OURS, &results));
    let said = to_json("trace.etl", &OURS, &results).to_string();
    assert!(serde_json::from_str::<serde_json::Value>(&said).is_ok());
    Ok(compared)
}

/// Checks that UTF-16 gives the same events as UTF-8.
fn check_encoding(data: &[u8], other: &Other) {
    let Ok(text) = str::from_utf8(data) else {
        return;
    };
    // A byte order mark at the start is removed in both encodings.
    let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
    let wide = iter::once(0xFEFF).chain(text.encode_utf16());
    let wide: Vec<u8> = wide.flat_map(u16::to_le_bytes).collect();
    let same = Other::parse(&wide).expect("UTF-8 was read");
    assert_eq!(same.events, other.events);
}
