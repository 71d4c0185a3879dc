//! An event as a line of text.

use etw_wire::Channel;

use crate::decode::Decoded;
use crate::show::Escaped;
use crate::show::text::{self, Times};
use crate::time::FileTime;

/// The maximum number of characters of a value.
const VALUE_LENGTH: usize = 160;

/// The channel of `TraceLogging` events, which is not worth mentioning.
const TRACE_LOGGING: u8 = Channel::TRACELOGGING.0;

/// The parts of an event as text without control characters, in UTF-8.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Cells {
    /// The date; empty if the time is outside the calendar.
    pub day: Vec<u8>,
    /// The time of day.
    pub time: Vec<u8>,
    /// The processor.
    pub processor: Vec<u8>,
    /// The provider's name or GUID.
    pub provider: Vec<u8>,
    /// The event's name or id.
    pub event: Vec<u8>,
    /// The level's name or number.
    pub level: Vec<u8>,
    /// The keyword's names and its other bits.
    pub keyword: Vec<u8>,
    /// The opcode's name or number.
    pub opcode: Vec<u8>,
    /// The channel's name or number, if there is one other than that of `TraceLogging`.
    pub channel: Vec<u8>,
    /// The activity and the related activity, a line each.
    pub activity: Vec<u8>,
    /// The message on a line of its own, and the fields.
    pub fields: Vec<u8>,
    times: Times,
}

/// Formats an event on one line: its time of day, provider, name, level, opcode, keywords,
/// activity, fields, and message if there is one.
#[must_use]
pub fn line(event: &Decoded) -> String {
    let mut cells = Cells::default();
    cells.fill(event, false);
    let mut line = [&*cells.time, &cells.provider, &cells.event].join(&b' ');
    line.extend_from_slice(b" [");
    line.extend_from_slice(&cells.level);
    let shown = [(event.descriptor.opcode != 0, &cells.opcode)];
    let shown = shown.into_iter().chain([(event.descriptor.keyword != 0, &cells.keyword)]);
    for (_, part) in shown.filter(|(is_shown, _)| *is_shown) {
        line.extend_from_slice(b", ");
        line.extend_from_slice(part);
    }
    line.push(b']');
    let lines = [&cells.activity, &cells.fields].into_iter();
    for part in lines.flat_map(|lines| lines.split(|byte| *byte == b'\n')) {
        if !part.is_empty() {
            line.push(b' ');
            line.extend_from_slice(part);
        }
    }
    String::from_utf8_lossy(&line).into_owned()
}

impl Cells {
    /// Returns empty texts in which times are seconds since `origin`, or absolute times if it is `None`.
    #[must_use]
    pub fn since(origin: Option<FileTime>) -> Self {
        Self { times: Times::since(origin), ..Self::default() }
    }

    /// Replaces the texts by those of an event; `codes` adds the names of well-known status codes.
    pub fn fill(&mut self, event: &Decoded, codes: bool) {
        let descriptor = &event.descriptor;
        self.clear();
        self.time(event.time);
        text::decimal(event.processor, &mut self.processor);
        match &event.provider_name {
            Some(name) => text::escaped(name, &mut self.provider),
            None => text::guid(event.provider, &mut self.provider),
        }
        if let Some(name) = &event.event_name {
            text::escaped(name, &mut self.event);
        } else {
            if let Some(task) = event.task_name.as_deref().filter(|task| !task.is_empty()) {
                text::escaped(task, &mut self.event);
                self.event.push(b' ');
            }
            let number = format!("id {} v{}", descriptor.id, descriptor.version);
            self.event.extend_from_slice(number.as_bytes());
        }
        number_or_name(descriptor.level, event.level_name.as_deref(), &mut self.level);
        keyword(event, &mut self.keyword);
        number_or_name(descriptor.opcode, event.opcode_name.as_deref(), &mut self.opcode);
        if !matches!(descriptor.channel, 0 | TRACE_LOGGING) {
            let name = event.channel_name.as_deref();
            number_or_name(descriptor.channel, name, &mut self.channel);
        }
        if !event.activity.is_null() {
            text::guid(event.activity, &mut self.activity);
        }
        if let Some(related) = event.related_activity {
            if !self.activity.is_empty() {
                self.activity.push(b'\n');
            }
            self.activity.extend_from_slice(b"from ");
            text::guid(related, &mut self.activity);
        }
        fields(event, codes, &mut self.fields);
    }

    /// Empties all texts.
    fn clear(&mut self) {
        // A text that is missing here is a compile error, one that is not emptied a warning.
        let Self {
            day,
            time,
            processor,
            provider,
            event,
            level,
            keyword,
            opcode,
            channel,
            activity,
            fields,
            times: _,
        } = self;
        for text in [
            day, time, processor, provider, event, level, keyword, opcode, channel, activity,
            fields,
        ] {
            text.clear();
        }
    }

    /// Writes the date and the time of day, or the whole text of a time outside the calendar. Aligns
    /// seconds since an origin to the right.
    fn time(&mut self, time: FileTime) {
        const DATE: usize = "2026-01-31T".len();
        const SECONDS: usize = "9999.1234567".len();
        self.times.write(time, &mut self.time);
        if self.times.are_relative() {
            let missing = SECONDS.saturating_sub(self.time.len());
            self.time.splice(0..0, vec![b' '; missing]);
        }
        if self.time.get(DATE - 1) == Some(&b'T')
            && self.time.pop_if(|last| *last == b'Z').is_some()
        {
            self.day.extend(self.time.drain(..DATE));
            self.day.pop();
        }
    }
}

fn number_or_name(number: u8, name: Option<&str>, out: &mut Vec<u8>) {
    match name {
        Some(name) => text::escaped(name, out),
        None => text::decimal(number, out),
    }
}

fn keyword(event: &Decoded, out: &mut Vec<u8>) {
    for name in &*event.keywords.names {
        text::escaped(name, out);
        out.push(b'|');
    }
    if event.keywords.unnamed != 0 || event.keywords.names.is_empty() {
        text::hexadecimal(event.keywords.unnamed, 1, out);
    } else {
        out.pop();
    }
}

fn fields(event: &Decoded, codes: bool, out: &mut Vec<u8>) {
    // A message already contains the field values as text.
    if let Some(message) = &event.message {
        text::escaped(message, out);
        shorten(out, 0);
        out.push(b'\n');
    }
    let start = out.len();
    for (name, value) in &event.fields {
        text::escaped(name, out);
        out.push(b'=');
        let start = out.len();
        value.show(codes, out);
        shorten(out, start);
        out.push(b' ');
    }
    if !event.leftover.is_empty() {
        out.extend_from_slice(b"rest=hex:");
        let start = out.len();
        text::hex(&event.leftover, out);
        shorten(out, start);
        out.push(b' ');
    }
    if let Some(duration) = event.duration {
        out.extend_from_slice(format!("(took {duration:?}) ").as_bytes());
    }
    for problem in &event.problems {
        out.extend_from_slice(format!("({}) ", Escaped(&problem.to_string())).as_bytes());
    }
    // Removes the space, or the line feed after a message without fields.
    if out.len() > start || event.message.is_some() {
        out.pop();
    }
}

/// Truncates the text from `start` on if it is too long for a table.
fn shorten(out: &mut Vec<u8>, start: usize) {
    if out.len() - start <= VALUE_LENGTH {
        return;
    }
    let text = str::from_utf8(out.get(start..).unwrap_or_default()).unwrap_or_default();
    if let Some((end, _)) = text.char_indices().nth(VALUE_LENGTH) {
        let cut = text.get(end..).map_or(0, |cut| cut.chars().count());
        out.truncate(start + end);
        out.extend_from_slice(format!("… (+{cut} characters)").as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::decoded;
    use crate::record::{EventDescriptor, EventRecord};

    #[test]
    fn long_values_are_truncated_with_a_count() {
        let shortened = |text: &str| {
            let mut out = format!("é{text}").into_bytes();
            shorten(&mut out, "é".len());
            String::from_utf8(out).unwrap().split_off("é".len())
        };
        let fitting = "é".repeat(VALUE_LENGTH);
        assert_eq!(shortened(&fitting), fitting);
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
        let fields = |event: &Decoded| {
            let mut out = Vec::new();
            fields(event, false, &mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(fields(&event), "");
        event.message = Some("Message".to_owned());
        assert_eq!(fields(&event), "Message");
        event.leftover = vec![0xAB];
        assert_eq!(fields(&event), "Message\nrest=hex:ab");
        event.message = None;
        assert_eq!(fields(&event), "rest=hex:ab");
    }
}
