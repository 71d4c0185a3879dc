//! An event as a line of text.

use etw_wire::Channel;

use crate::decode::Decoded;
use crate::show::{Escaped, Hex};

/// The maximum number of characters of a value.
const VALUE_LENGTH: usize = 160;

/// The channel of `TraceLogging` events, which is not worth mentioning.
const TRACE_LOGGING: u8 = Channel::TRACELOGGING.0;

/// The parts of an event as text without control characters.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Cells {
    /// The date; empty if the time is outside the calendar.
    pub day: String,
    /// The time of day.
    pub time: String,
    /// The processor.
    pub processor: String,
    /// The provider's name or GUID.
    pub provider: String,
    /// The event's name or id.
    pub event: String,
    /// The level's name or number.
    pub level: String,
    /// The keyword's names and its other bits.
    pub keyword: String,
    /// The opcode's name or number.
    pub opcode: String,
    /// The channel's name or number, if there is one other than that of `TraceLogging`.
    pub channel: String,
    /// The activity and the related activity, a line each.
    pub activity: String,
    /// The message on a line of its own, and the fields.
    pub fields: String,
}

/// Formats an event on one line: its time of day, provider, name, level, opcode, keywords,
/// activity, fields, and message if there is one.
#[must_use]
pub fn line(event: &Decoded) -> String {
    let cells = Cells::new(event, false);
    let mut line = format!("{} {} {} [{}", cells.time, cells.provider, cells.event, cells.level);
    let mut add = |part: &str| {
        line.push_str(", ");
        line.push_str(part);
    };
    if event.descriptor.opcode != 0 {
        add(&cells.opcode);
    }
    if event.descriptor.keyword != 0 {
        add(&cells.keyword);
    }
    line.push(']');
    for part in [cells.activity, cells.fields].iter().flat_map(|parts| parts.lines()) {
        line.push(' ');
        line.push_str(part);
    }
    line
}

/// Returns the date in a time's text, unless the time is outside the calendar.
fn day(time: &str) -> Option<&str> {
    let (day, _) = time.split_once('T')?;
    (!time.contains(' ')).then_some(day)
}

/// Returns the part of a time's text after the date.
fn time_of_day(time: &str) -> &str {
    let rest = day(time).and_then(|day| time.get(day.len() + 1..));
    rest.map_or(time, |rest| rest.trim_end_matches('Z'))
}

impl Cells {
    /// Formats an event; `codes` adds the names of well-known status codes.
    #[must_use]
    pub fn new(event: &Decoded, codes: bool) -> Self {
        let descriptor = &event.descriptor;
        let time = event.time.to_string();
        let provider = event
            .provider_name
            .as_ref()
            .map_or_else(|| event.provider.to_string(), |name| escaped(name));
        let name = event.event_name.as_ref().map_or_else(
            || {
                let task = event.task_name.as_deref().map(escaped).unwrap_or_default();
                let separator = if task.is_empty() { "" } else { " " };
                format!("{task}{separator}id {} v{}", descriptor.id, descriptor.version)
            },
            |name| escaped(name),
        );
        Self {
            day: day(&time).unwrap_or_default().to_owned(),
            time: time_of_day(&time).to_owned(),
            processor: event.processor.to_string(),
            provider,
            event: name,
            level: number_or_name(descriptor.level, event.level_name.as_deref()),
            keyword: keyword(event),
            opcode: number_or_name(descriptor.opcode, event.opcode_name.as_deref()),
            channel: match descriptor.channel {
                0 | TRACE_LOGGING => String::new(),
                channel => number_or_name(channel, event.channel_name.as_deref()),
            },
            activity: activity(event),
            fields: fields(event, codes),
        }
    }
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

fn fields(event: &Decoded, codes: bool) -> String {
    let mut parts: Vec<String> = event
        .fields
        .iter()
        .map(|(name, value)| {
            let value = if codes { format!("{value:#}") } else { value.to_string() };
            format!("{}={}", Escaped(name), shortened(&value))
        })
        .collect();
    if !event.leftover.is_empty() {
        let leftover = Hex(&event.leftover).to_string();
        parts.push(format!("rest=hex:{}", shortened(&leftover)));
    }
    if let Some(duration) = event.duration {
        parts.push(format!("(took {duration:?})"));
    }
    for problem in &event.problems {
        parts.push(format!("({})", Escaped(&problem.to_string())));
    }
    let fields = parts.join(" ");
    // A message already contains the field values as text.
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
    use crate::decode::decoded;
    use crate::record::{EventDescriptor, EventRecord};

    #[test]
    fn long_values_are_truncated_with_a_count() {
        assert_eq!(shortened("short"), "short");
        let long = "é".repeat(VALUE_LENGTH + 3);
        let kept = "é".repeat(VALUE_LENGTH);
        assert_eq!(shortened(&long), format!("{kept}… (+3 characters)"));
    }

    #[test]
    fn a_line_has_the_opcode_and_the_keywords_of_an_event_that_has_them() {
        let shown = |opcode, keyword| {
            let event = decoded(EventRecord {
                descriptor: EventDescriptor {
                    id: 7,
                    level: 3,
                    opcode,
                    keyword,
                    ..EventDescriptor::default()
                },
                ..EventRecord::default()
            });
            let line = line(&event);
            let (_, rest) = line.split_once(" [").unwrap();
            rest.split_once(']').unwrap().0.to_owned()
        };
        assert_eq!(shown(0, 0), "Warning");
        assert_eq!(shown(1, 0), "Warning, Start");
        assert_eq!(shown(0, 0x40), "Warning, 0x40");
        assert_eq!(shown(2, 0x40), "Warning, Stop, 0x40");
    }

    #[test]
    fn fields_follow_the_message_if_there_are_any() {
        let mut event = decoded(EventRecord::default());
        let fields = |event: &Decoded| fields(event, false);
        assert_eq!(fields(&event), "");
        event.message = Some("Message".to_owned());
        assert_eq!(fields(&event), "Message");
        event.leftover = vec![0xAB];
        assert_eq!(fields(&event), "Message\nrest=hex:ab");
        event.message = None;
        assert_eq!(fields(&event), "rest=hex:ab");
    }
}
