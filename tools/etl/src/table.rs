//! Output as tables.

use std::io::{self, Write};
use std::mem::take;
use std::sync::Arc;

use etl_file::internals::show::Escaped;
use etl_file::lines::Cells;
use etl_file::{Decoded, StackCounts, Summary, TraceHeader};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// A column of an event's first line: its title, and its text.
type Column = (&'static str, fn(&mut Cells, &Decoded) -> String);

/// The columns of an event's first line.
const COLUMNS: [Column; 8] = [
    ("Time (UTC)", |cells, _| take(&mut cells.time)),
    ("CPU", |cells, _| take(&mut cells.processor)),
    ("Provider", |cells, _| take(&mut cells.provider)),
    ("Event", |cells, _| take(&mut cells.event)),
    ("Level", |cells, _| take(&mut cells.level)),
    ("Keyword", |cells, _| take(&mut cells.keyword)),
    ("Opcode", |cells, _| take(&mut cells.opcode)),
    ("Channel", |cells, _| take(&mut cells.channel)),
];
const COUNT: usize = COLUMNS.len();

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
        let counted = |what: &str, count: u64, of: &str| {
            (count != 0).then(|| format!("{what:<8} {count} {of}"))
        };
        lines.extend(
            [
                counted(
                    "Partial",
                    summary.with_problems,
                    "shown events could not be decoded completely",
                ),
                counted(
                    "Unknown",
                    summary.of_system,
                    "shown system records have a layout that no source describes",
                ),
                counted(
                    "Unread",
                    summary.without_format,
                    "shown WPP messages, which no loaded TMF file or PDB describes",
                ),
            ]
            .into_iter()
            .flatten(),
        );
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
        lines.extend(
            [
                counted(
                    "Unnamed",
                    summary.dropped,
                    "processes, threads, images or stacks exceed the memory for them",
                ),
                counted("Late", summary.late, "records are out of order"),
                counted("Damaged", summary.damages.count(), "parts of the file"),
            ]
            .into_iter()
            .flatten(),
        );
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
        let sample = take(&mut self.sample);
        let mut widths = COLUMNS.map(|(title, _)| title.width());
        for entry in &sample {
            for (width, cell) in widths.iter_mut().zip(&entry.cells) {
                *width = (*width).max(cell.width().min(MAX_COLUMN));
            }
        }
        self.widths = Some(widths);
        let mut titles = COLUMNS.map(|(title, _)| title.to_owned());
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
        let mut cells = Cells::new(event, codes);
        let mut below: Vec<String> = cells.fields.lines().map(str::to_owned).collect();
        if !cells.activity.is_empty() {
            below.push(format!("activity {}", cells.activity.replace('\n', " ")));
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
            day: take(&mut cells.day),
            cells: COLUMNS.map(|(_, text)| text(&mut cells, event)),
            below,
        }
    }
}

fn escaped(text: &str) -> String {
    Escaped(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use etl_file::EventRecord;
    use etl_fixtures::decoded;

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
}
