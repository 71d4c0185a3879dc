//! Output for programs: JSON with one object per line.
//!
//! The first line is the trace's header (`"record": "header"`). The events follow, sorted by time
//! (`"record": "event"`). The last line (`"record": "end"`) counts the events that were shown and
//! omitted. Masks and codes are hexadecimal strings, because they can exceed the precision of JSON
//! readers' numbers.

use std::io::{self, Read, Seek, Write};

use etl_file::decode::Decoded;
use etl_file::decode::catalog::Catalog;
use etl_file::lines::Members;
use etl_file::read::{EventRef, TraceFile, TraceHeader};
use etl_file::select::Selection;
use etl_file::stream::{
    Additions, Contents, Events, OutputError, RecordCounts, Summary, hide_hardware_addresses, view,
};
use etl_file::time::FileTime;
use serde::Serialize;

/// Writes a trace's header, then the selected events, sorted by time, then the last line.
///
/// # Errors
/// Fails with [`OutputError`] if the trace cannot be read or the output cannot be written.
pub fn write_lines<R: Read + Seek>(
    file: &mut TraceFile<R>,
    catalog: &Catalog,
    selection: &Selection,
    out: impl Write,
) -> Result<Summary, OutputError> {
    let mut writer = Writer::new(out);
    writer.header(file.header(), file.buffers())?;
    let mut events = if Contents::scan(file)?.completes {
        Events::complete(file, catalog, selection, &Additions::default())?
    } else {
        Events::new(file, catalog, selection)
    };
    while let Some((record, mut decoded)) = events.next()? {
        if let Some(event) = view(&record) {
            let hidden = hide_hardware_addresses(&record, &mut decoded);
            let user_data = hidden.as_deref().unwrap_or(event.user_data);
            writer.event(&EventRef { user_data, ..event }, &decoded)?;
        }
    }
    let summary = events.summary();
    writer.end(&summary)?;
    Ok(summary)
}

/// Writes the lines of a trace.
///
/// Lines are buffered in memory. Dropping the writer writes the rest and ignores errors;
/// [`end`](Self::end) returns them.
#[derive(Debug)]
pub struct Writer<W: Write> {
    out: W,
    /// The lines that have not been written yet.
    lines: Vec<u8>,
    members: Members,
}

impl<W: Write> Drop for Writer<W> {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let _unheard = self.write_lines();
        }
    }
}

/// The number of bytes after which lines are written out.
const MANY: usize = 1 << 16;

impl<W: Write> Writer<W> {
    /// Returns a writer of lines to `out`, which need not be buffered.
    pub fn new(out: W) -> Self {
        Self { out, lines: Vec::new(), members: Members::default() }
    }

    /// Writes the line for the trace's header.
    ///
    /// # Errors
    /// Fails with the output's error.
    pub fn header(&mut self, header: &TraceHeader, buffers_read: u32) -> io::Result<()> {
        self.serialized(&HeaderLine::new(header, buffers_read))
    }

    /// Writes an event's line. `event` is the event as recorded.
    ///
    /// # Errors
    /// Fails with the output's error.
    pub fn event(&mut self, event: &EventRef<'_>, decoded: &Decoded) -> io::Result<()> {
        self.members.line(event, decoded, &mut self.lines)?;
        if self.lines.len() >= MANY {
            self.write_lines()?;
        }
        Ok(())
    }

    /// Writes lines that [`Members::line`] created.
    ///
    /// # Errors
    /// Fails with the output's error.
    pub fn lines(&mut self, lines: &[u8]) -> io::Result<()> {
        self.write_lines()?;
        self.out.write_all(lines)
    }

    /// Writes the buffered lines, and empties the buffer even if that fails.
    fn write_lines(&mut self) -> io::Result<()> {
        let result = self.out.write_all(&self.lines);
        self.lines.clear();
        result
    }

    /// Writes the last line, and flushes the output.
    ///
    /// # Errors
    /// Fails with the output's error.
    pub fn end(&mut self, summary: &Summary) -> io::Result<()> {
        self.serialized(&EndLine::new(summary))?;
        self.write_lines()?;
        self.out.flush()
    }

    fn serialized(&mut self, line: &impl Serialize) -> io::Result<()> {
        serde_json::to_writer(&mut self.lines, line)?;
        self.lines.push(b'\n');
        Ok(())
    }
}

#[derive(Serialize)]
struct HeaderLine<'a> {
    record: &'static str,
    session: &'a str,
    file: &'a str,
    buffer_size: u32,
    buffers_written: u32,
    buffers_read: u32,
    processors: u32,
    pointer_size: u32,
    clock: u32,
    perf_frequency: i64,
    cpu_mhz: u32,
    start_clock: i64,
    start: FileTime,
    end: Option<FileTime>,
    boot: FileTime,
    log_file_mode: String,
    maximum_file_size: u32,
    os: String,
    events_lost: u32,
    buffers_lost: u32,
}

impl<'a> HeaderLine<'a> {
    fn new(header: &'a TraceHeader, buffers_read: u32) -> Self {
        let session = &header.session;
        Self {
            record: "header",
            session: &session.session_name,
            file: &session.log_file_name,
            buffer_size: session.buffer_size,
            buffers_written: header.buffers_written,
            buffers_read,
            processors: session.processors,
            pointer_size: header.pointer_size,
            clock: session.clock.raw(),
            perf_frequency: session.perf_frequency,
            cpu_mhz: session.cpu_mhz,
            start_clock: session.start_clock,
            start: session.start_time,
            end: header.end_time,
            boot: session.boot_time,
            log_file_mode: format!("{:#010x}", session.log_file_mode),
            maximum_file_size: session.maximum_file_size,
            os: format!("{}.{}.{}", session.os_major, session.os_minor, session.os_build),
            events_lost: header.events_lost,
            buffers_lost: header.buffers_lost,
        }
    }
}

#[derive(Serialize)]
struct EndLine<'a> {
    record: &'static str,
    /// The numbers of decoded and of selected records.
    events: u64,
    selected: u64,
    with_problems: u64,
    /// The number of system records with an unknown layout.
    of_system: u64,
    /// The number of WPP messages without a loaded format.
    without_format: u64,
    late: u64,
    skipped: Skipped<'a>,
    /// The numbers of stacks that were joined with events, and that remain separate events.
    stacks_joined: u64,
    stacks_unmatched: u64,
    /// The number of processes, threads, images and stacks that were dropped because the tables
    /// were full.
    unnamed: u64,
    damaged: u64,
    damages: Vec<String>,
}

impl<'a> EndLine<'a> {
    fn new(summary: &'a Summary) -> Self {
        let damages = &summary.damages;
        Self {
            record: "end",
            events: summary.decoded,
            selected: summary.selected,
            with_problems: summary.with_problems,
            of_system: summary.of_system,
            without_format: summary.without_format,
            late: summary.late,
            skipped: Skipped(&summary.skipped),
            stacks_joined: summary.stacks.joined,
            stacks_unmatched: summary.stacks.unmatched,
            unnamed: summary.dropped,
            damaged: damages.count(),
            damages: damages.listed().iter().map(ToString::to_string).collect(),
        }
    }
}

struct Skipped<'a>(&'a RecordCounts);

#[derive(Serialize)]
struct SkippedCount {
    records: u64,
    bytes: u64,
}

impl Serialize for Skipped<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(kind, count)| {
            let count = SkippedCount { records: count.records, bytes: count.bytes };
            (kind, count)
        }))
    }
}

#[cfg(test)]
mod tests;
