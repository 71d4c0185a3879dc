//! Renders comparison results as text and as JSON.

use std::fmt::Write as _;

use comfy_table::{Table, presets};
use serde_json::{Value, json};

use super::comparison::{Comparison, Difference};
use super::other::Other;
use super::ours::Ours;
use etl_file::internals::show::Escaped;

/// The maximum number of characters of a value in the table.
const SHOWN: usize = 120;

/// Returns the results as text: a line for each file, and a table of the differences.
#[must_use]
pub fn render(trace: &str, ours: &Ours, results: &[(String, Other, Comparison)]) -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = write!(text, "{}: {} events", Escaped(trace), ours.events.len());
    let _ = writeln!(text, "{}", left_out(ours.left_out));
    for (name, other, result) in results {
        let _ = write!(
            text,
            "{} ({}): {} events compared, {} only in the trace, {} only in the file, {} properties \
             and {} fields compared",
            Escaped(name),
            other.form,
            result.compared,
            result.only_ours,
            result.only_theirs,
            result.properties,
            result.fields,
        );
        let _ = write!(text, "{}", left_out(other.left_out));
        let _ = match (result.differences, result.compared) {
            (0, 0) => writeln!(text, ": nothing was compared"),
            (0, _) => writeln!(text, ": equal"),
            (1, _) => writeln!(text, ": 1 difference"),
            (count, _) => writeln!(text, ": {count} differences"),
        };
        for silence in &result.unstated {
            let _ = writeln!(
                text,
                "  the {} is not stated for {} events",
                silence.property, silence.events
            );
        }
        if result.described > 0 {
            let _ = writeln!(
                text,
                "  {} status codes are stated only by the system's texts, which are not compared",
                result.described
            );
        }
        if result.undecoded > 0 {
            let _ = writeln!(
                text,
                "  the fields are not stated for {} TraceLogging events, which Get-WinEvent does not decode",
                result.undecoded
            );
        }
    }
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table.set_header(["File", "Event", "Field", "Trace", "File's"]);
    let mut unlisted = 0;
    for (name, _, result) in results {
        unlisted += result.differences - result.listed.len() as u64;
        for difference in &result.listed {
            table.add_row([
                Escaped(name).to_string(),
                Escaped(&difference.event).to_string(),
                Escaped(&difference.field).to_string(),
                cell(difference.ours.as_deref()),
                cell(difference.theirs.as_deref()),
            ]);
        }
    }
    if !table.is_empty() {
        text.push('\n');
        for line in table.lines() {
            let _ = writeln!(text, "{}", line.trim_end());
        }
    }
    if unlisted > 0 {
        let _ = writeln!(text, "{unlisted} more differences are not listed");
    }
    text
}

fn left_out(count: u64) -> String {
    match count {
        0 => String::new(),
        _ => format!(", {count} classic or kernel events omitted"),
    }
}

/// Returns a value for the table, or a dash if it is missing.
fn cell(value: Option<&str>) -> String {
    let Some(value) = value else {
        return "-".to_owned();
    };
    let mut shown: String = value.chars().take(SHOWN).collect();
    if shown.len() < value.len() {
        shown.push('…');
    }
    if value.is_empty() || value == "-" {
        return format!("{shown:?}");
    }
    Escaped(&shown).to_string()
}

/// Returns the results as JSON, for programs.
#[must_use]
pub fn to_json(trace: &str, ours: &Ours, results: &[(String, Other, Comparison)]) -> Value {
    let difference = |one: &Difference| {
        json!({
            "event": one.event,
            "field": one.field,
            "ours": one.ours,
            "theirs": one.theirs,
        })
    };
    let files: Vec<Value> = results
        .iter()
        .map(|(name, other, result)| {
            let unstated: serde_json::Map<String, Value> = result
                .unstated
                .iter()
                .map(|one| (one.property.name().to_owned(), one.events.into()))
                .collect();
            json!({
                "file": name,
                "form": other.form.to_string(),
                "events": other.events.len(),
                "left_out": other.left_out,
                "compared": result.compared,
                "only_ours": result.only_ours,
                "only_theirs": result.only_theirs,
                "properties": result.properties,
                "fields": result.fields,
                "unstated": unstated,
                "described": result.described,
                "undecoded": result.undecoded,
                "differences": result.differences,
                "listed": result.listed.iter().map(difference).collect::<Vec<_>>(),
                "agrees": result.agrees(),
            })
        })
        .collect();
    json!({
        "version": 1,
        "trace": trace,
        "events": ours.events.len(),
        "left_out": ours.left_out,
        "files": files,
        "agrees": results.iter().all(|(.., result)| result.agrees()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_tells_a_missing_value_from_an_empty_one_and_is_cut() {
        assert_eq!(cell(None), "-");
        assert_eq!(cell(Some("")), "\"\"");
        assert_eq!(cell(Some("-")), "\"-\"");
        assert_eq!(cell(Some("a")), "a");
        let long = "ü".repeat(SHOWN);
        assert_eq!(cell(Some(&long)), long);
        assert_eq!(cell(Some(&format!("{long}x"))), format!("{long}…"));
    }

    #[test]
    fn events_that_are_left_out_are_counted_if_there_are_any() {
        assert_eq!(left_out(0), "");
        assert_eq!(left_out(2), ", 2 classic or kernel events omitted");
    }
}
