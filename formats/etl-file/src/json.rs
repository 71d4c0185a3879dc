//! Output for programs: JSON with one object per line.
//!
//! The first line is the trace's header (`"record": "header"`). The events follow, sorted by time
//! (`"record": "event"`). The last line (`"record": "end"`) counts the events that were shown and
//! omitted. Masks and codes are hexadecimal strings, because they can exceed the precision of JSON
//! readers' numbers.

use std::collections::HashMap;
use std::io::{self, Read, Seek, Write};
use std::string::ToString;
use std::sync::Arc;

use etw_wire::Guid;
use serde::Serialize;
use serde_json::Serializer;

use crate::decode::{Decoded, Kind, serialize_fields};
use crate::pipeline::{Pipeline, RecordCounts, Summary};
use crate::read::{EventRef, ReadError, TraceFile, TraceHeader};
use crate::text::{self, Times};
use crate::time::FileTime;

/// Writes a trace's header, then the selected events, sorted by time, then the last line.
///
/// # Errors
/// Fails with [`OutputError`] if the trace cannot be read or the output cannot be written.
pub fn write_lines<R: Read + Seek + Send>(
    file: &mut TraceFile<R>,
    pipeline: &Pipeline<'_>,
    out: impl Write,
) -> Result<Summary, OutputError> {
    let mut writer = Writer::new(out);
    writer.header(file.header(), file.buffers())?;
    let written: Result<Summary, OutputError> = pipeline.run(
        file,
        Members::default,
        |members, event, decoded, lines: &mut Vec<u8>| Ok(members.line(event, &decoded, lines)?),
        |lines| Ok(writer.lines(lines)?),
    );
    let summary = written?;
    writer.end(&summary)?;
    Ok(summary)
}

/// The reason why a trace could not be converted.
#[derive(Debug, thiserror::Error)]
pub enum OutputError {
    /// The trace could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The output could not be written.
    #[error("cannot write the output: {0}")]
    Write(#[from] io::Error),
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

/// The part of a line that is the same for all events of a kind.
#[derive(Debug)]
struct KindText {
    kind: Kind,
    provider: Guid,
    group: Option<Guid>,
    descriptor: crate::record::EventDescriptor,
    /// The names, in the order of [`names_of`].
    names: [Option<Arc<str>>; 5],
    keywords: Arc<[Arc<str>]>,
    text: Vec<u8>,
}

/// The maximum number of kinds whose text is cached.
const MAX_KINDS: usize = 1024;

const fn names_of(decoded: &Decoded) -> [&Option<Arc<str>>; 5] {
    let Decoded { provider_name, channel_name, level_name, opcode_name, task_name, .. } = decoded;
    [provider_name, channel_name, level_name, opcode_name, task_name]
}

impl KindText {
    fn is_of(&self, decoded: &Decoded) -> bool {
        let same = |one: &Option<Arc<str>>, other: &Option<Arc<str>>| match (one, other) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other) || one == other,
            (None, None) => true,
            _ => false,
        };
        self.provider == decoded.provider
            && self.descriptor == decoded.descriptor
            && self.kind == decoded.kind
            && self.group == decoded.group
            && self.names.iter().zip(names_of(decoded)).all(|(one, other)| same(one, other))
            && (Arc::ptr_eq(&self.keywords, &decoded.keywords.names)
                || self.keywords == decoded.keywords.names)
    }

    fn new(decoded: &Decoded) -> Self {
        Self {
            kind: decoded.kind,
            provider: decoded.provider,
            group: decoded.group,
            descriptor: decoded.descriptor,
            names: names_of(decoded).map(Clone::clone),
            keywords: Arc::clone(&decoded.keywords.names),
            text: Self::text(decoded),
        }
    }

    fn text(decoded: &Decoded) -> Vec<u8> {
        let mut text = Vec::new();
        let out = &mut text;
        let descriptor = &decoded.descriptor;
        out.extend_from_slice(b",\"provider\":\"");
        text::guid(decoded.provider, out);
        out.extend_from_slice(b"\",\"provider_name\":");
        optional(decoded.provider_name.as_deref(), out);
        out.extend_from_slice(b",\"group\":");
        optional_guid(decoded.group, out);
        for (name, number) in [
            ("id", descriptor.id),
            ("version", descriptor.version.into()),
            ("channel", descriptor.channel.into()),
            ("level", descriptor.level.into()),
        ] {
            key(name, out);
            text::decimal(number, out);
        }
        key("channel_name", out);
        optional(decoded.channel_name.as_deref(), out);
        key("level_name", out);
        optional(decoded.level_name.as_deref(), out);
        key("opcode", out);
        text::decimal(descriptor.opcode, out);
        key("opcode_name", out);
        optional(decoded.opcode_name.as_deref(), out);
        key("task", out);
        text::decimal(descriptor.task, out);
        key("task_name", out);
        optional(decoded.task_name.as_deref(), out);
        key("keyword", out);
        out.push(b'"');
        text::hexadecimal(descriptor.keyword, 1, out);
        out.push(b'"');
        key("keyword_names", out);
        list(decoded.keywords.names.iter(), out, |name, out| {
            text::json_string(name, out);
        });
        text
    }
}

/// Appends a comma and a member's name, which needs no escaping.
fn key(name: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(b",\"");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":");
}

fn optional(value: Option<&str>, out: &mut Vec<u8>) {
    match value {
        Some(value) => text::json_string(value, out),
        None => out.extend_from_slice(b"null"),
    }
}

fn optional_guid(value: Option<Guid>, out: &mut Vec<u8>) {
    match value {
        Some(value) => quoted(out, |out| text::guid(value, out)),
        None => out.extend_from_slice(b"null"),
    }
}

fn quoted(out: &mut Vec<u8>, content: impl FnOnce(&mut Vec<u8>)) {
    out.push(b'"');
    content(out);
    out.push(b'"');
}

fn list<T>(items: impl Iterator<Item = T>, out: &mut Vec<u8>, write: impl Fn(T, &mut Vec<u8>)) {
    out.push(b'[');
    for (number, item) in items.enumerate() {
        if number != 0 {
            out.push(b',');
        }
        write(item, out);
    }
    out.push(b']');
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

/// Formats events as members of JSON objects. Caches the text that events of a kind share.
#[derive(Debug, Default)]
pub struct Members {
    times: Times,
    kinds: HashMap<u64, KindText>,
}

impl Members {
    /// Appends an event's line. `event` is the event as recorded.
    ///
    /// # Errors
    /// Fails if a value cannot be serialized.
    pub fn line(
        &mut self,
        event: &EventRef<'_>,
        decoded: &Decoded,
        out: &mut Vec<u8>,
    ) -> io::Result<()> {
        out.push(b'{');
        self.append(event, decoded, out)?;
        out.extend_from_slice(b"}\n");
        Ok(())
    }

    /// Appends the members of an event's object without braces. `event` is the event as recorded.
    ///
    /// # Errors
    /// Fails if a value cannot be serialized.
    pub fn append(
        &mut self,
        event: &EventRef<'_>,
        decoded: &Decoded,
        out: &mut Vec<u8>,
    ) -> io::Result<()> {
        out.extend_from_slice(b"\"record\":\"event\",\"kind\":\"");
        out.extend_from_slice(kind_name(decoded.kind).as_bytes());
        out.extend_from_slice(b"\",\"time\":\"");
        self.times.write(decoded.time, out);
        out.extend_from_slice(b"\",\"timestamp\":");
        text::decimal(decoded.timestamp, out);
        out.extend_from_slice(b",\"processor\":");
        text::decimal(decoded.processor, out);
        out.extend_from_slice(b",\"process\":");
        text::decimal(decoded.process_id, out);
        out.extend_from_slice(b",\"thread\":");
        text::decimal(decoded.thread_id, out);
        key("process_name", out);
        optional(decoded.process_name.as_deref(), out);
        key("thread_name", out);
        optional(decoded.thread_name.as_deref(), out);
        let name = decoded
            .provider_name
            .as_ref()
            .map_or(0, |name| Arc::as_ptr(name).cast::<u8>().addr() as u64);
        let hash = name
            ^ u64::from(decoded.descriptor.id) << 48
            ^ u64::from(decoded.descriptor.level) << 40
            ^ decoded.descriptor.keyword.rotate_left(17)
            ^ u64::from(decoded.descriptor.opcode) << 56;
        if let Some(kind) = self.kinds.get(&hash).filter(|kind| kind.is_of(decoded)) {
            out.extend_from_slice(&kind.text);
        } else {
            if self.kinds.len() >= MAX_KINDS {
                self.kinds.clear();
            }
            let kind = KindText::new(decoded);
            out.extend_from_slice(&kind.text);
            self.kinds.insert(hash, kind);
        }
        key("activity", out);
        quoted(out, |out| text::guid(decoded.activity, out));
        key("related_activity", out);
        optional_guid(decoded.related_activity, out);
        key("event", out);
        optional(decoded.event_name.as_deref(), out);
        key("message", out);
        optional(decoded.message.as_deref(), out);
        key("fields", out);
        serialize_fields(&decoded.fields, &mut Serializer::new(&mut *out))?;
        key("leftover", out);
        quoted(out, |out| text::hex(&decoded.leftover, out));
        key("problems", out);
        list(decoded.problems.iter(), out, |problem, out| {
            text::json_string(&problem.to_string(), out);
        });
        key("stack", out);
        match &decoded.stack {
            None => out.extend_from_slice(b"null"),
            Some(stack) => list(stack.frames.iter(), out, |frame, out| {
                text::json_string(&frame.to_string(), out);
            }),
        }
        for (name, number) in [
            ("kernel_time", event.kernel_time),
            ("user_time", event.user_time),
            ("property", event.event_property.into()),
        ] {
            key(name, out);
            text::decimal(number, out);
        }
        key("pointer_size", out);
        text::decimal(event.pointer_size.bytes(), out);
        key("extended", out);
        list(event.items.iter(), out, |(ext_type, data), out| {
            out.extend_from_slice(b"{\"type\":");
            text::decimal(ext_type, out);
            key("data", out);
            quoted(out, |out| text::hex(data, out));
            out.push(b'}');
        });
        key("payload", out);
        quoted(out, |out| text::hex(event.user_data, out));
        key("buffer", out);
        text::decimal(event.buffer, out);
        key("offset", out);
        text::decimal(event.offset, out);
        Ok(())
    }
}

const fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Event => "event",
        Kind::Kernel { .. } => "kernel",
        Kind::Classic { .. } => "classic",
        Kind::Wpp => "wpp",
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
