//! Output as tables.

use std::io::{self, Write};
use std::sync::Arc;

use etw_wire::Channel;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::decode::Decoded;
use crate::pipeline::Summary;
use crate::read::TraceHeader;
use crate::show::{Escaped, Hex};
use crate::stacks::StackCounts;

/// The maximum number of characters of a value in a table.
const VALUE_LENGTH: usize = 160;

/// The columns of an event's first line.
const COLUMNS: [&str; COUNT] =
    ["Time (UTC)", "CPU", "Provider", "Event", "Level", "Keyword", "Opcode", "Channel"];
const COUNT: usize = 8;

/// The channel of `TraceLogging` events, which is not worth mentioning.
const TRACE_LOGGING: u8 = Channel::TRACELOGGING.0;

/// The number of events whose names determine the column widths.
const SAMPLE: usize = 256;
/// The maximum width of a column. Longer names move the rest of their line to the right.
const MAX_COLUMN: usize = 32;
/// The number of spaces between two columns.
const GAP: usize = 2;
/// The number of spaces that indent the lines below an event's first line.
const INDENT: usize = 4;
/// The minimum width of a table.
const MIN_WIDTH: usize = 20;

/// Writes events as a table.
///
/// The first line of an event contains the time, the processor and the names. The following lines
/// contain the message, fields, activity, call stack and parts that could not be decoded, if any.
/// Lines wider than the terminal are wrapped. The first events determine the column widths, so that
/// traces of any length can be written.
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    width: Option<usize>,
    /// True to show well-known status codes with their names.
    codes: bool,
    /// The first events, until the widths are determined.
    sample: Vec<Entry>,
    widths: Option<[usize; COUNT]>,
    day: String,
}

/// The text of an event.
#[derive(Debug)]
pub struct Entry {
    day: String,
    cells: [String; COUNT],
    below: Vec<String>,
}

impl<W: Write> Writer<W> {
    /// Returns a writer to `out`. `width` is the terminal's number of columns; without it, lines
    /// are not wrapped.
    pub fn new(out: W, width: Option<u16>) -> Self {
        Self {
            out,
            width: width.map(|width| usize::from(width).max(MIN_WIDTH)),
            codes: false,
            sample: Vec::new(),
            widths: None,
            day: String::new(),
        }
    }

    /// Sets whether well-known status codes are shown with their names.
    #[must_use]
    pub const fn with_codes(mut self, codes: bool) -> Self {
        self.codes = codes;
        self
    }

    /// Writes a trace's header as a few lines.
    ///
    /// # Errors
    /// Fails with the output's error.
    pub fn header(&mut self, header: &TraceHeader, buffers: u32) -> io::Result<()> {
        let session = &header.session;
        let end = header
            .end_time
            .map_or_else(|| "unknown, the recording was cut short".into(), |end| end.to_string());
        let lines = [
            format!("Session  {}", Escaped(&session.session_name)),
            format!("File     {}", Escaped(&session.log_file_name)),
            format!("Time     {} to {end}", session.start_time),
            format!("Buffers  {buffers} of {} bytes", session.buffer_size),
        ];
        for line in lines {
            self.wrapped(&line, 9)?;
        }
        Ok(())
    }

    /// Writes an event.
    ///
    /// # Errors
    /// Fails with the output's error.
    pub fn event(&mut self, event: &Decoded) -> io::Result<()> {
        self.add(Entry::new(event, self.codes))
    }

    /// Writes an entry.
    ///
    /// # Errors
    /// Fails with the output's error.
    pub fn add(&mut self, entry: Entry) -> io::Result<()> {
        if self.widths.is_some() {
            return self.entry(&entry);
        }
        self.sample.push(entry);
        if self.sample.len() >= SAMPLE {
            self.flush_sample()?;
        }
        Ok(())
    }

    /// Writes the counts of shown and omitted events, and flushes the output.
    ///
    /// # Errors
    /// Fails with the output's error.
    pub fn end(&mut self, header: &TraceHeader, summary: &Summary) -> io::Result<()> {
        self.flush_sample()?;
        writeln!(self.out)?;
        let mut lines = vec![format!("Holds    {} events", summary.decoded)];
        if summary.selected != summary.decoded {
            lines.push(format!("Shown    {} events", summary.selected));
        }
        lines.push(format!(
            "Lost     {} events, {} buffers",
            header.events_lost, header.buffers_lost
        ));
        if summary.with_problems != 0 {
            lines.push(format!(
                "Partial  {} shown events could not be decoded completely",
                summary.with_problems
            ));
        }
        if summary.of_system != 0 {
            lines.push(format!(
                "Unknown  {} shown system records have a layout that no source describes",
                summary.of_system
            ));
        }
        if summary.without_format != 0 {
            lines.push(format!(
                "Unread   {} shown WPP messages, which no loaded TMF file or PDB describes",
                summary.without_format
            ));
        }
        for (kind, count) in summary.skipped.iter() {
            lines.push(format!(
                "Skipped  {} {} records, {} bytes",
                count.records,
                Escaped(kind),
                count.bytes
            ));
        }
        if summary.stacks != StackCounts::default() {
            lines.push(format!("Stacks   {}", summary.stacks));
        }
        if summary.dropped != 0 {
            lines.push(format!(
                "Unnamed  {} processes, threads, images or stacks exceed the memory for them",
                summary.dropped
            ));
        }
        if summary.late != 0 {
            lines.push(format!("Late     {} records are out of order", summary.late));
        }
        if !summary.damages.is_empty() {
            lines.push(format!("Damaged  {} parts of the file", summary.damages.count()));
        }
        for line in lines {
            self.wrapped(&line, 9)?;
        }
        self.out.flush()
    }

    /// Determines the column widths, and writes the first events.
    fn flush_sample(&mut self) -> io::Result<()> {
        if self.widths.is_some() {
            return Ok(());
        }
        let sample = std::mem::take(&mut self.sample);
        let mut widths = COLUMNS.map(UnicodeWidthStr::width);
        for entry in &sample {
            for (width, cell) in widths.iter_mut().zip(&entry.cells) {
                *width = (*width).max(cell.width().min(MAX_COLUMN));
            }
        }
        self.widths = Some(widths);
        let mut titles = COLUMNS.map(str::to_owned);
        // Most traces have no channels, so the last column is omitted; channels of later events
        // move to the right.
        if let Some(title) = titles.last_mut()
            && sample.iter().all(|entry| entry.cells.last().is_some_and(String::is_empty))
        {
            title.clear();
        }
        self.columns(&titles)?;
        for entry in &sample {
            self.entry(entry)?;
        }
        Ok(())
    }

    fn entry(&mut self, entry: &Entry) -> io::Result<()> {
        if self.day != entry.day {
            self.day.clone_from(&entry.day);
            writeln!(self.out, "{}", entry.day)?;
        }
        self.columns(&entry.cells)?;
        for part in &entry.below {
            let indented = format!("{:INDENT$}{part}", "");
            self.wrapped(&indented, INDENT)?;
        }
        Ok(())
    }

    fn columns(&mut self, cells: &[String; COUNT]) -> io::Result<()> {
        let mut line = String::new();
        let widths = self.widths.unwrap_or([0; COUNT]);
        for (cell, width) in cells.iter().zip(widths) {
            line.push_str(cell);
            let padding = width.saturating_sub(cell.width()) + GAP;
            line.extend(std::iter::repeat_n(' ', padding));
        }
        self.wrapped(line.trim_end(), INDENT)
    }

    /// Writes a line. If it is wider than the terminal, continues on indented lines.
    fn wrapped(&mut self, line: &str, indent: usize) -> io::Result<()> {
        let Some(limit) = self.width.filter(|limit| line.width() > *limit) else {
            return writeln!(self.out, "{line}");
        };
        let mut rest = line;
        let mut room = limit;
        let mut first = true;
        while !rest.is_empty() {
            if !first {
                write!(self.out, "{:indent$}", "")?;
                room = limit - indent;
            }
            first = false;
            let (part, remaining) = split(rest, room);
            writeln!(self.out, "{}", part.trim_end())?;
            rest = remaining.trim_start();
        }
        Ok(())
    }
}

/// Splits text to fit a width, if possible at a space after the indentation.
fn split(text: &str, width: usize) -> (&str, &str) {
    let mut used = 0;
    let mut space = None;
    let mut word = false;
    for (at, c) in text.char_indices() {
        used += c.width().unwrap_or(0);
        if used > width {
            if c == ' ' && word {
                space = Some(at);
            }
            let at = space.unwrap_or(at).max(1);
            return text.split_at_checked(at).unwrap_or((text, ""));
        }
        if c != ' ' {
            word = true;
        } else if word {
            space = Some(at);
        }
    }
    (text, "")
}

/// Formats events as a table, in the given order (see [`Writer`]).
#[must_use]
pub fn render(events: &[Decoded], width: Option<u16>) -> String {
    let mut writer = Writer::new(Vec::new(), width);
    for event in events {
        let _infallible = writer.event(event);
    }
    let _infallible = writer.flush_sample();
    String::from_utf8_lossy(&writer.out).into_owned()
}

impl Entry {
    /// Formats an event; `codes` adds the names of well-known status codes.
    #[must_use]
    pub fn new(event: &Decoded, codes: bool) -> Self {
        let [cpu, provider, name, level, keyword, opcode, channel, activity, fields] =
            row(event, codes);
        let time = event.time.to_string();
        let day = day(&time).unwrap_or_default();
        let mut below: Vec<String> = fields.lines().map(str::to_owned).collect();
        if !activity.is_empty() {
            below.push(format!("activity {}", activity.replace('\n', " ")));
        }
        if event.process_name.is_some() || event.thread_name.is_some() {
            let name = |name: &Option<Arc<str>>| {
                let name = name.as_deref().map(escaped);
                name.map_or_else(String::new, |name| format!(" {name}"))
            };
            below.push(format!(
                "process {}{}, thread {}{}",
                event.process_id,
                name(&event.process_name),
                event.thread_id,
                name(&event.thread_name)
            ));
        }
        if let Some(stack) = &event.stack {
            let frames = stack.frames.iter().map(|frame| {
                let place = frame.place.as_deref().map(escaped);
                place.unwrap_or_else(|| format!("{:#x}", frame.address))
            });
            below.push(format!("stack {}", frames.collect::<Vec<_>>().join(" ")));
        }
        Self {
            day: day.to_owned(),
            cells: [
                time_of_day(&time).to_owned(),
                cpu,
                provider,
                name,
                level,
                keyword,
                opcode,
                channel,
            ],
            below,
        }
    }
}

/// Formats an event on one line: its time of day, provider, name, level, opcode, keywords,
/// activity, fields, and message if there is one.
#[must_use]
pub fn line(event: &Decoded) -> String {
    let [_, provider, name, level, keyword, opcode, _, activity, fields] = row(event, false);
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

/// Returns an event's cells after the time.
fn row(event: &Decoded, codes: bool) -> [String; 9] {
    let descriptor = &event.descriptor;
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
    [
        event.processor.to_string(),
        provider,
        name,
        number_or_name(descriptor.level, event.level_name.as_deref()),
        keyword(event),
        number_or_name(descriptor.opcode, event.opcode_name.as_deref()),
        match descriptor.channel {
            0 | TRACE_LOGGING => String::new(),
            channel => number_or_name(channel, event.channel_name.as_deref()),
        },
        activity(event),
        fields(event, codes),
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
    fn lines_are_split_at_spaces_and_long_words_where_they_end() {
        assert_eq!(split("ab cd ef", 5), ("ab cd", " ef"));
        assert_eq!(split("ab cd ef", 4), ("ab", " cd ef"));
        assert_eq!(split("abcdef", 4), ("abcd", "ef"));
        assert_eq!(split("    abcdef", 6), ("    ab", "cdef"));
        // Each of these characters occupies two columns.
        assert_eq!(split("日本語", 5), ("日本", "語"));
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
    fn lines_are_wrapped_if_they_are_wider_than_the_terminal() {
        let wrapped = |line: &str| {
            let mut writer = Writer::new(Vec::new(), Some(20));
            writer.wrapped(line, 4).unwrap();
            String::from_utf8(writer.out).unwrap()
        };
        assert_eq!(wrapped(""), "\n");
        // A line that fits is written unchanged.
        assert_eq!(wrapped("aaaa bbbb cccc dddd "), "aaaa bbbb cccc dddd \n");
        assert_eq!(
            wrapped("aaaa bbbb cccc dddd eeee ffff gggg hhhh"),
            "aaaa bbbb cccc dddd\n    eeee ffff gggg\n    hhhh\n"
        );
        assert_eq!(
            wrapped("aaaa bbbb cccc dddd 0123456789abcdefg"),
            "aaaa bbbb cccc dddd\n    0123456789abcdef\n    g\n"
        );
    }

    #[test]
    fn the_process_and_the_thread_are_shown_if_one_has_a_name() {
        let below = |process: Option<&str>, thread: Option<&str>| {
            let event = Decoded {
                process_id: 5,
                thread_id: 6,
                process_name: process.map(Into::into),
                thread_name: thread.map(Into::into),
                ..decoded(EventRecord::default())
            };
            Entry::new(&event, false).below
        };
        assert!(below(None, None).is_empty());
        assert_eq!(below(Some("P"), None), ["process 5 P, thread 6"]);
        assert_eq!(below(None, Some("T")), ["process 5, thread 6 T"]);
        assert_eq!(below(Some("P"), Some("T")), ["process 5 P, thread 6 T"]);
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
