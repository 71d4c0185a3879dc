//! Output as tables.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::iter;

use comfy_table::{ContentArrangement, Table, presets};

use crate::decode::Decoded;
use crate::read::Trace;
use crate::show::{Escaped, Hex};

/// The maximum number of characters of a value in a table.
const VALUE_LENGTH: usize = 160;

/// The columns of the table after the time.
const COLUMNS: [&str; 8] = [
    "CPU",
    "Provider",
    "Event",
    "Level",
    "Keyword",
    "Opcode",
    "Activity",
    "Message, fields",
];

/// Formats events as a table, in the given order.
///
/// `width` is the number of columns of the terminal, which limits the table. Without it, each event
/// takes one line, or two if it has a related activity or a message besides fields. Long values are
/// truncated and end with the number of missing characters. If all events are of the same day, the
/// day is in the heading of the time column.
#[must_use]
pub fn render(events: &[Decoded], width: Option<u16>) -> String {
    let day = one_day(events);
    let heading = day
        .as_ref()
        .map_or_else(|| "Time (UTC)".to_owned(), |day| format!("{day} (UTC)"));
    let mut table = Table::new();
    table
        .load_preset(presets::UTF8_FULL_CONDENSED)
        .set_header(iter::once(heading.as_str()).chain(COLUMNS));
    match width {
        Some(width) => table
            .set_content_arrangement(ContentArrangement::Dynamic)
            .set_width(width),
        None => table.set_content_arrangement(ContentArrangement::Disabled),
    };
    for event in events {
        let time = event.time.to_string();
        let time = match &day {
            None => time,
            Some(_) => time_of_day(&time).to_owned(),
        };
        table.add_row(iter::once(time).chain(row(event)));
    }
    table.trim_fmt()
}

/// Formats an event on one line: its time of day, provider, name, level, opcode, keywords, activity
/// and fields, and its message, if it has one.
#[must_use]
pub fn line(event: &Decoded) -> String {
    let [_, provider, name, level, keyword, opcode, activity, fields] = row(event);
    let time = event.time.to_string();
    let mut line = format!("{} {provider} {name} [{level}", time_of_day(&time));
    let mut add = |part: &str| {
        line.push_str(", ");
        line.push_str(part);
    };
    if event.descriptor.opcode != 0 {
        add(&opcode);
    }
    if event.descriptor.keyword != 0 {
        add(&keyword);
    }
    line.push(']');
    for part in [activity, fields].iter().flat_map(|parts| parts.lines()) {
        line.push(' ');
        line.push_str(part);
    }
    line
}

/// Returns the day of all events if it is the same.
fn one_day(events: &[Decoded]) -> Option<String> {
    let day = |event: &Decoded| {
        let time = event.time.to_string();
        time.split_once('T').map(|(day, _)| day.to_owned())
    };
    let first = day(events.first()?)?;
    events
        .iter()
        .all(|event| day(event).as_ref() == Some(&first))
        .then_some(first)
}

/// Returns the part of a time's text after the day.
fn time_of_day(time: &str) -> &str {
    let time = time.split_once('T').map_or(time, |(_, rest)| rest);
    time.trim_end_matches('Z')
}

/// Formats the header of a trace in a few lines.
#[must_use]
pub fn summary(trace: &Trace) -> String {
    let header = trace.header();
    let session = &header.session;
    let end = header.end_time.map_or_else(
        || "unknown, the recording was cut short".into(),
        |end| end.to_string(),
    );
    let mut text = format!(
        "Session  {}\nFile     {}\nTime     {} to {end}\nHolds    {} events in {} buffers of {} bytes\nLost     {} events, {} buffers\n",
        Escaped(&session.session_name),
        Escaped(&session.log_file_name),
        session.start_time,
        trace.events().count(),
        trace.buffers().len(),
        session.buffer_size,
        header.events_lost,
        header.buffers_lost,
    );
    let mut others: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for other in trace.others() {
        let (records, bytes) = others.entry(other.kind.name()).or_default();
        *records += 1;
        *bytes += u64::from(other.size);
    }
    for (kind, (records, bytes)) in others {
        let _infallible = writeln!(text, "Skipped  {records} {kind} records, {bytes} bytes");
    }
    text
}

/// Returns the cells of an event after its time.
fn row(event: &Decoded) -> [String; 8] {
    let descriptor = &event.descriptor;
    let provider = event
        .provider_name
        .as_ref()
        .map_or_else(|| event.provider.to_string(), |name| escaped(name));
    let name = event.event_name.as_ref().map_or_else(
        || {
            let task = event.task_name.as_deref().map(escaped).unwrap_or_default();
            let separator = if task.is_empty() { "" } else { " " };
            format!(
                "{task}{separator}id {} v{}",
                descriptor.id, descriptor.version
            )
        },
        |name| escaped(name),
    );
    [
        event.processor.to_string(),
        provider,
        name,
        number_or_name(descriptor.level, event.level_name.as_deref()),
        keyword(event),
        number_or_name(descriptor.opcode, event.opcode_name.as_deref()),
        activity(event),
        fields(event),
    ]
}

fn escaped(text: &str) -> String {
    Escaped(text).to_string()
}

fn number_or_name(number: u8, name: Option<&str>) -> String {
    name.map_or_else(|| number.to_string(), escaped)
}

fn keyword(event: &Decoded) -> String {
    let mut names: Vec<String> = event.keywords.names.iter().map(|n| escaped(n)).collect();
    if event.keywords.unnamed != 0 || names.is_empty() {
        names.push(format!("{:#x}", event.keywords.unnamed));
    }
    names.join("|")
}

fn activity(event: &Decoded) -> String {
    let mut lines = Vec::new();
    if !event.activity.is_null() {
        lines.push(event.activity.to_string());
    }
    if let Some(related) = event.related_activity {
        lines.push(format!("from {related}"));
    }
    lines.join("\n")
}

fn fields(event: &Decoded) -> String {
    let mut parts: Vec<String> = event
        .fields
        .iter()
        .map(|(name, value)| format!("{}={}", Escaped(name), shortened(&value.to_string())))
        .collect();
    if !event.leftover.is_empty() {
        let leftover = Hex(&event.leftover).to_string();
        parts.push(format!("rest=hex:{}", shortened(&leftover)));
    }
    for problem in &event.problems {
        parts.push(format!("({})", Escaped(&problem.to_string())));
    }
    let fields = parts.join(" ");
    // A message contains the values of the fields as text.
    match &event.message {
        Some(message) if fields.is_empty() => shortened(&escaped(message)),
        Some(message) => format!("{}\n{fields}", shortened(&escaped(message))),
        None => fields,
    }
}

/// Truncates a string that is too long for a table.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(VALUE_LENGTH) {
        None => text.to_owned(),
        Some((end, _)) => {
            let (kept, cut) = text.split_at(end);
            format!("{kept}… (+{} characters)", cut.chars().count())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_values_are_truncated_with_a_count() {
        assert_eq!(shortened("short"), "short");
        let long = "é".repeat(VALUE_LENGTH + 3);
        let kept = "é".repeat(VALUE_LENGTH);
        assert_eq!(shortened(&long), format!("{kept}… (+3 characters)"));
    }
}
