//! Output as tables.

use std::io::{self, Write};
use std::mem::take;
use std::sync::{Arc, OnceLock};

use etl_file::internals::show::{Escaped, text};
use etl_file::lines::Cells;
use etl_file::{Decoded, FileTime, StackCounts, Summary, TraceHeader};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// A column of an event's first line: its title, and its text.
type Column = (&'static str, fn(&Cells) -> &Vec<u8>);

/// The columns of an event's first line.
const COLUMNS: [Column; 8] = [
    ("Time (UTC)", |cells| &cells.time),
    ("CPU", |cells| &cells.processor),
    ("Provider", |cells| &cells.provider),
    ("Event", |cells| &cells.event),
    ("Level", |cells| &cells.level),
    ("Keyword", |cells| &cells.keyword),
    ("Opcode", |cells| &cells.opcode),
    ("Channel", |cells| &cells.channel),
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
    rows: Rows,
    /// The first events, until the widths are determined.
    sample: Vec<Entry>,
    day: Vec<u8>,
    /// The title of the column of times.
    time_title: &'static str,
}

/// Formats events as the lines of a table. Other threads can create [`Lines`] with a copy of it.
#[derive(Clone, Debug)]
pub struct Rows {
    layout: Arc<Layout>,
    /// True to show well-known status codes with their names.
    codes: bool,
    entry: Entry,
}

/// The layout of a table.
#[derive(Debug, Default)]
struct Layout {
    width: Option<usize>,
    /// The widths of the columns, once they are determined.
    widths: OnceLock<[usize; COUNT]>,
}

/// The text of an event.
#[derive(Clone, Debug, Default)]
struct Entry {
    cells: Cells,
    /// The lines below the first, each with a line feed.
    below: Vec<u8>,
}

/// Lines of a table in memory.
#[derive(Debug, Default)]
pub struct Lines {
    /// The events from before the widths were determined.
    sample: Vec<Entry>,
    text: Vec<u8>,
    /// The offsets in the text at which the date changes, with the dates.
    days: Vec<(usize, Vec<u8>)>,
}

impl<W: Write> Writer<W> {
    /// Returns a writer to `out`. `width` is the terminal's number of columns; without it, lines
    /// are not wrapped.
    pub fn new(out: W, width: Option<u16>) -> Self {
        let width = width.map(|width| usize::from(width).max(MIN_WIDTH));
        let layout = Arc::new(Layout { width, ..Layout::default() });
        let rows = Rows { layout, codes: false, entry: Entry::default() };
        let [(time_title, _), ..] = COLUMNS;
        Self { out, rows, sample: Vec::new(), day: Vec::new(), time_title }
    }

    /// Shows times in seconds since `origin`.
    #[must_use]
    pub fn since(self, origin: FileTime) -> Self {
        let entry = Entry { cells: Cells::since(Some(origin)), ..Entry::default() };
        Self { rows: Rows { entry, ..self.rows }, time_title: "Time (s)", ..self }
    }

    /// Sets whether well-known status codes are shown with their names.
    #[must_use]
    pub fn with_codes(self, codes: bool) -> Self {
        Self { rows: Rows { codes, ..self.rows }, ..self }
    }

    /// Returns the line format. Other threads can create [`Lines`] with it.
    #[must_use]
    pub fn rows(&self) -> Rows {
        self.rows.clone()
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
            self.line(&line)?;
        }
        Ok(())
    }

    fn line(&mut self, line: &str) -> io::Result<()> {
        let mut lines = Vec::new();
        self.rows.layout.wrapped(line.as_bytes(), 9, &mut lines);
        self.out.write_all(&lines)
    }

    /// Writes an event.
    ///
    /// # Errors
    /// Fails with the output's error.
    pub fn event(&mut self, event: &Decoded) -> io::Result<()> {
        let mut lines = Lines::default();
        self.rows.add(event, &mut lines);
        self.lines(&mut lines)
    }

    /// Writes lines that [`Rows::add`] created.
    ///
    /// # Errors
    /// Fails with the output's error.
    pub fn lines(&mut self, lines: &mut Lines) -> io::Result<()> {
        for entry in lines.sample.drain(..) {
            if let Some(widths) = self.rows.layout.widths.get().copied() {
                self.entry(&widths, &entry)?;
                continue;
            }
            self.sample.push(entry);
            if self.sample.len() >= SAMPLE {
                self.flush_sample()?;
            }
        }
        let ends = lines.days.iter().skip(1).map(|(at, _)| *at).chain([lines.text.len()]);
        for ((at, day), end) in lines.days.iter().zip(ends) {
            self.new_day(day)?;
            self.out.write_all(lines.text.get(*at..end).unwrap_or_default())?;
        }
        Ok(())
    }

    fn new_day(&mut self, day: &[u8]) -> io::Result<()> {
        if self.day != day {
            day.clone_into(&mut self.day);
            self.out.write_all(day)?;
            self.out.write_all(b"\n")?;
        }
        Ok(())
    }

    fn entry(&mut self, widths: &[usize; COUNT], entry: &Entry) -> io::Result<()> {
        self.new_day(&entry.cells.day)?;
        let mut lines = Vec::new();
        self.rows.layout.entry(widths, entry, &mut lines);
        self.out.write_all(&lines)
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
            self.line(&line)?;
        }
        self.out.flush()
    }

    /// Determines the column widths, and writes the first events.
    fn flush_sample(&mut self) -> io::Result<()> {
        if self.rows.layout.widths.get().is_some() {
            return Ok(());
        }
        let sample = take(&mut self.sample);
        let mut titles = COLUMNS.map(|(title, _)| title.as_bytes());
        titles[0] = self.time_title.as_bytes();
        let mut widths = titles.map(width_of);
        for entry in &sample {
            for (width, (_, cell)) in widths.iter_mut().zip(COLUMNS) {
                *width = (*width).max(width_of(cell(&entry.cells)).min(MAX_COLUMN));
            }
        }
        let widths = *self.rows.layout.widths.get_or_init(|| widths);
        // Most traces have no channels, so the last column is omitted; channels of later events
        // move to the right.
        if let Some(title) = titles.last_mut()
            && sample.iter().all(|entry| entry.cells.channel.is_empty())
        {
            *title = &[];
        }
        let mut lines = Vec::new();
        self.rows.layout.columns(&widths, titles, &mut lines);
        self.out.write_all(&lines)?;
        sample.iter().try_for_each(|entry| self.entry(&widths, entry))
    }
}

impl Rows {
    /// Adds an event's lines.
    pub fn add(&mut self, event: &Decoded, lines: &mut Lines) {
        self.entry.fill(event, self.codes);
        let Some(widths) = self.layout.widths.get() else {
            lines.sample.push(self.entry.clone());
            return;
        };
        let day = &self.entry.cells.day;
        if lines.days.last().is_none_or(|(_, last)| last != day) {
            lines.days.push((lines.text.len(), day.clone()));
        }
        self.layout.entry(widths, &self.entry, &mut lines.text);
    }
}

impl Layout {
    fn entry(&self, widths: &[usize; COUNT], entry: &Entry, out: &mut Vec<u8>) {
        self.columns(widths, COLUMNS.map(|(_, cell)| cell(&entry.cells).as_slice()), out);
        for line in entry.below.split_inclusive(|byte| *byte == b'\n') {
            let start = out.len();
            out.extend_from_slice(&[b' '; INDENT]);
            out.extend_from_slice(line);
            self.wrap(start, INDENT, out);
        }
    }

    fn columns(&self, widths: &[usize; COUNT], cells: [&[u8]; COUNT], out: &mut Vec<u8>) {
        let start = out.len();
        for (cell, width) in cells.into_iter().zip(widths) {
            out.extend_from_slice(cell);
            let padding = width.saturating_sub(width_of(cell)) + GAP;
            out.resize(out.len() + padding, b' ');
        }
        let end = out.iter().rposition(|byte| *byte != b' ').map_or(start, |last| last + 1);
        out.truncate(end.max(start));
        out.push(b'\n');
        self.wrap(start, INDENT, out);
    }

    /// Wraps the line from `start` on, which ends with a line feed, if it is too wide.
    fn wrap(&self, start: usize, indent: usize, out: &mut Vec<u8>) {
        let is_wide = |width| out.get(start..).is_some_and(|line| width_of(line) > width + 1);
        if self.width.is_some_and(is_wide) {
            let line = out.split_off(start);
            self.wrapped(line.strip_suffix(b"\n").unwrap_or(&line), indent, out);
        }
    }

    /// Writes a line. If it is wider than the terminal, continues on indented lines.
    fn wrapped(&self, line: &[u8], indent: usize, out: &mut Vec<u8>) {
        let Some(limit) = self.width.filter(|limit| width_of(line) > *limit) else {
            out.extend_from_slice(line);
            out.push(b'\n');
            return;
        };
        let line = String::from_utf8_lossy(line);
        let mut rest = &*line;
        let mut room = limit;
        while !rest.is_empty() {
            let (part, remaining) = split(rest, room);
            out.extend_from_slice(part.trim_end().as_bytes());
            out.push(b'\n');
            rest = remaining.trim_start();
            room = limit - indent;
            if !rest.is_empty() {
                out.resize(out.len() + indent, b' ');
            }
        }
    }
}

/// Returns the number of columns that text takes; a line feed takes one.
fn width_of(text: &[u8]) -> usize {
    if text.is_ascii() { text.len() } else { String::from_utf8_lossy(text).width() }
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
    /// Replaces the text by that of an event; `codes` adds the names of well-known status codes.
    fn fill(&mut self, event: &Decoded, codes: bool) {
        let Self { cells, below } = self;
        cells.fill(event, codes);
        below.clear();
        if !cells.fields.is_empty() {
            below.extend_from_slice(&cells.fields);
            below.push(b'\n');
        }
        if !cells.activity.is_empty() {
            below.extend_from_slice(b"activity ");
            let parts = cells.activity.iter();
            below.extend(parts.map(|byte| if *byte == b'\n' { b' ' } else { *byte }));
            below.push(b'\n');
        }
        if event.process_name.is_some() || event.thread_name.is_some() {
            let name = |name: &Option<Arc<str>>| {
                let name = name.as_deref().map(escaped);
                name.map_or_else(String::new, |name| format!(" {name}"))
            };
            let line = format!(
                "process {}{}, thread {}{}\n",
                event.process_id,
                name(&event.process_name),
                event.thread_id,
                name(&event.thread_name)
            );
            below.extend_from_slice(line.as_bytes());
        }
        if let Some(stack) = &event.stack {
            below.extend_from_slice(b"stack ");
            for frame in &stack.frames {
                match &frame.place {
                    Some(place) => text::escaped(place, below),
                    None => text::hexadecimal(frame.address, 1, below),
                }
                below.push(b' ');
            }
            below.pop_if(|last| *last == b' ' && !stack.frames.is_empty());
            below.push(b'\n');
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
            let mut out = Vec::new();
            Layout { width: Some(20), ..Layout::default() }.wrapped(line.as_bytes(), 4, &mut out);
            String::from_utf8(out).unwrap()
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
            let mut entry = Entry::default();
            entry.fill(&event, false);
            String::from_utf8(entry.below).unwrap()
        };
        assert!(below(None, None).is_empty());
        assert_eq!(below(Some("P"), None), "process 5 P, thread 6\n");
        assert_eq!(below(None, Some("T")), "process 5, thread 6 T\n");
        assert_eq!(below(Some("P"), Some("T")), "process 5 P, thread 6 T\n");
    }
}
