//! The figures for C code, which the benchmark cites instead of measuring because the compiler and
//! headers are not available.

use serde_json::Value;

use super::{
    counted::{Figures, cells, figures, header, sizes, verdict_on},
    table::{Column, number},
};

/// A cited figure or range.
#[derive(Clone, Copy)]
enum Cited {
    One(f64),
    Range(f64, f64),
    /// The source contains no figure for this row.
    Unknown,
}

use Cited::{One, Range, Unknown};

impl Cited {
    /// Returns the figure to compare with; for a range, the lowest value.
    const fn best(self) -> Option<f64> {
        match self {
            One(figure) | Range(figure, _) => Some(figure),
            Unknown => None,
        }
    }

    fn shown(self) -> String {
        match self {
            Range(low, high) => format!("{} to {}", number(Some(low)), number(Some(high))),
            One(_) | Unknown => number(self.best()),
        }
    }
}

/// The location of a row's figures in this run's results.
#[derive(Clone, Copy)]
enum Place {
    /// A state, a caller and a figure's name.
    State(&'static str, &'static str, &'static str),
    /// The size that each additional event adds to a part of the image.
    Size(&'static str),
}

use Place::{Size, State};

/// The titles of the cited columns: the peer as measured earlier, and C code.
const TITLES: [&str; 3] = ["cited peer", "TraceLoggingProvider.h", "mc.exe -km"];

/// The rows: the title, the location of this run's figures, and the cited figures in the order of
/// [`TITLES`]. All are from docs/reference/event-cost.md, whose first caller corresponds to the
/// caller with four arguments: the peer uses 128 bytes of stack in both.
const ROWS: [(&str, Place, [Cited; 3]); 13] = [
    (
        "disabled: the check, instructions",
        State("disabled", "four", "check"),
        [Unknown, One(2.0), One(2.0)],
    ),
    (
        "disabled: difference, four arguments",
        State("disabled", "four", "delta"),
        [One(5.0), One(3.0), Range(3.0, 6.0)],
    ),
    (
        "disabled: difference, leaf",
        State("disabled", "leaf", "delta"),
        [One(10.0), One(8.0), One(10.0)],
    ),
    (
        "filtered by level: difference, four arguments",
        State("by level", "four", "delta"),
        [One(5.0), One(3.0), Range(3.0, 6.0)],
    ),
    (
        "filtered by keyword: difference, four arguments",
        State("by keyword", "four", "delta"),
        [One(7.0), One(5.0), Range(3.0, 6.0)],
    ),
    (
        "not written: stack of the caller, four arguments, bytes",
        State("disabled", "four", "frame"),
        [One(128.0), One(160.0), Range(16.0, 32.0)],
    ),
    (
        "enabled: data descriptors",
        State("enabled", "four", "descriptors"),
        [One(6.0), One(6.0), One(5.0)],
    ),
    (
        "enabled: instructions from the check to the call, four arguments",
        State("enabled", "four", "to call"),
        [One(41.0), One(48.0), One(46.0)],
    ),
    (
        "enabled: difference, four arguments",
        State("enabled", "four", "delta"),
        [One(45.0), One(50.0), One(55.0)],
    ),
    (
        "enabled: bytes of stack, four arguments",
        State("enabled", "four", "stack"),
        [One(128.0), One(160.0), One(240.0)],
    ),
    (
        "enabled: record size in the buffer, bytes",
        State("enabled", "four", "record"),
        [One(186.0), One(186.0), One(106.0)],
    ),
    ("one more event: code, bytes", Size("code"), [One(288.0), One(336.0), One(64.0)]),
    ("one more event: read-only data, bytes", Size("read-only"), [One(38.0), One(50.0), One(16.0)]),
];

/// Returns the table of this run's and the cited figures.
pub fn table(measured: &Value) -> String {
    let mut text = String::from(concat!("\n", include_str!("prose/cited.md.in"), "\n"));
    text.push_str(&header(&TITLES));
    text.extend(ROWS.map(|(what, place, cited)| {
        let figures = match place {
            State(state, caller, name) => figures(measured, state, caller, name),
            Size(name) => sizes(measured, name),
        };
        row(what, figures, cited)
    }));
    text
}

fn row(what: &str, counted: Figures, cited: [Cited; 3]) -> String {
    let others: Vec<Column<'_>> = TITLES.into_iter().zip(cited.map(Cited::best)).collect();
    let verdict = verdict_on(None, counted, &others);
    format!(
        "| {what} | {} | {} | {verdict} |\n",
        cells(counted),
        cited.map(Cited::shown).join(" | ")
    )
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, fs};

    use serde_json::json;

    use super::*;
    use crate::process::root;

    #[test]
    fn a_row_in_which_cited_code_is_ahead_is_marked() {
        let counted = [Some(4.0), Some(3.0), Some(3.0), Some(5.0)];
        assert_eq!(
            row("disabled", counted, [One(5.0), One(3.0), Range(3.0, 6.0)]),
            "| disabled | 4 | 3 | 3 | 5 | 5 | 3 | 3 to 6 | **behind**: TraceLogging \
             (TraceLoggingProvider.h, mc.exe -km) |\n"
        );
        assert_eq!(
            row("disabled", counted, [Unknown, One(4.0), Range(4.0, 6.0)]),
            "| disabled | 4 | 3 | 3 | 5 | – | 4 | 4 to 6 |  |\n"
        );
    }

    #[test]
    fn the_table_has_every_row_and_this_runs_figures() {
        let measured = json!({
            "states": {"disabled": {"described four": {"delta": 77}}},
            "per event": {"manifest": {"code": 88}},
        });
        let table = table(&measured);
        for (what, ..) in ROWS {
            assert!(table.contains(&format!("\n| {what} | ")), "{what}");
        }
        assert!(
            table.contains("| disabled: difference, four arguments | 77 | – | – | – | 5 | 3 |")
        );
        assert!(
            table.contains("| one more event: code, bytes | – | 88 | – | – | 288 | 336 | 64 |")
        );
    }

    /// Returns the numbers in those lines of the source that contain `text`.
    fn numbers(source: &str, text: &str) -> BTreeSet<String> {
        source
            .lines()
            .filter(|line| line.contains(text))
            .flat_map(|line| line.split(|one: char| !one.is_ascii_digit()))
            .map(str::to_owned)
            .collect()
    }

    #[test]
    fn every_cited_figure_is_in_its_source() {
        let source = fs::read_to_string(root().join("docs/reference/event-cost.md")).unwrap();
        let of_all = numbers(&source, "A record has 80 bytes");
        let check = "The check itself has two instructions with `asm!`, in C and in mc.exe's code";
        assert!(source.contains(check));
        let lines = ["| tracelogging 1.2.4", "| TraceLoggingWrite in C", "| mc.exe"];
        for (number, line) in lines.iter().enumerate() {
            let known = numbers(&source, line);
            for (what, _, cited) in ROWS {
                let figures = match cited[number] {
                    One(figure) => vec![figure],
                    Range(low, high) => vec![low, high],
                    Unknown => vec![],
                };
                for figure in figures.into_iter().map(|one| format!("{one:.0}")) {
                    let is_known = known.contains(&figure)
                        || (what.contains("record") && of_all.contains(&figure))
                        || (what.contains("the check") && figure == "2");
                    assert!(is_known, "{line}: {what}: {figure} is not in the source");
                }
            }
        }
    }
}
