//! Output for programs: JSON with one object per line.
//!
//! The first line is the trace's header (`"record": "header"`). The events follow, sorted by time
//! (`"record": "event"`). The last line (`"record": "end"`) counts the events that were shown and
//! omitted. Masks and codes are hexadecimal strings, because they can exceed the precision of JSON
//! readers' numbers.

use std::io::{self, Read, Seek, Write};

use etl_file::lines::Members;
use etl_file::{FileTime, Pipeline, ReadError, RecordCounts, Summary, TraceFile, TraceHeader};
use serde::Serialize;

/// The reason why the lines of a trace could not be written.
#[derive(Debug, thiserror::Error)]
pub enum LinesError {
    /// The trace could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The output could not be written.
    #[error("cannot write the output: {0}")]
    Write(#[from] io::Error),
}

/// The parts of the lines that depend on the command.
#[derive(Clone, Copy, Debug, Default)]
pub struct Form<'a> {
    /// The path of the file, for the header's line; `None` if it is the only file.
    pub path: Option<&'a str>,
    /// True to write the times of events as seconds since the session's start.
    pub relative: bool,
}

/// Writes a trace's header, then the selected events, sorted by time, then the last line. The output
/// need not be buffered. Returns the counts of the trace.
///
/// # Errors
/// Fails with [`LinesError`] if the trace cannot be read or the output cannot be written.
pub fn write_lines<R: Read + Seek + Send>(
    file: &mut TraceFile<R>,
    pipeline: &Pipeline<'_>,
    out: impl Write,
) -> Result<Summary, LinesError> {
    write_file(file, pipeline, Form::default(), out)
}

/// Writes the lines of a trace in a form, like [`write_lines`].
///
/// # Errors
/// Fails with [`LinesError`] if the trace cannot be read or the output cannot be written.
pub fn write_file<R: Read + Seek + Send>(
    file: &mut TraceFile<R>,
    pipeline: &Pipeline<'_>,
    form: Form<'_>,
    mut out: impl Write,
) -> Result<Summary, LinesError> {
    out.write_all(&line(&HeaderLine::new(file.header(), file.buffers(), form.path))?)?;
    let origin = form.relative.then_some(file.header().session.start_time);
    let written: Result<Summary, LinesError> = pipeline.run(
        file,
        || Members::since(origin),
        |members, event, decoded, lines: &mut Vec<u8>| Ok(members.line(event, &decoded, lines)?),
        |lines| Ok(out.write_all(lines)?),
    );
    let summary = written?;
    out.write_all(&line(&EndLine::new(&summary))?)?;
    out.flush()?;
    Ok(summary)
}

/// Formats an object on one line.
fn line(object: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(object)?;
    line.push(b'\n');
    Ok(line)
}

#[derive(Serialize)]
struct HeaderLine<'a> {
    record: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<&'a str>,
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
    fn new(header: &'a TraceHeader, buffers_read: u32, path: Option<&'a str>) -> Self {
        let session = &header.session;
        Self {
            record: "header",
            path,
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
