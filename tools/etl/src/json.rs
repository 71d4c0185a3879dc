//! Output for programs: JSON with one object per line.
//!
//! The first line is the trace's header (`"record": "header"`). The events follow, sorted by time
//! (`"record": "event"`). Masks and codes are hexadecimal strings, because they may exceed the
//! precision of numbers in JSON readers.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::string::ToString;
use std::sync::Arc;

use etw_wire::Guid;
use serde::{Serialize, Serializer};

use crate::decode::catalog::Catalog;
use crate::decode::{Decoded, Fields, Problem, decode, serialize_fields};
use crate::guid;
use crate::read::{Event, Other, Trace};
use crate::select::Selection;
use crate::show::Hex;
use crate::time::FileTime;

/// Writes the header of a trace, then the selected events, sorted by time.
///
/// # Errors
/// Returns the error of `out`.
pub fn write_lines(
    trace: &Trace,
    catalog: &Catalog,
    selection: &Selection,
    out: &mut impl Write,
) -> io::Result<()> {
    write_line(&HeaderLine::new(trace), out)?;
    for event in trace.events_by_time() {
        let decoded = decode(event, catalog);
        if selection.wants(&decoded) {
            write_line(&EventLine::new(event, &decoded), out)?;
        }
    }
    Ok(())
}

fn write_line(line: &impl Serialize, out: &mut impl Write) -> io::Result<()> {
    serde_json::to_writer(&mut *out, line)?;
    out.write_all(b"\n")
}

#[derive(Serialize)]
struct HeaderLine<'a> {
    record: &'static str,
    session: &'a str,
    file: &'a str,
    buffer_size: u32,
    buffers_written: u32,
    buffers_read: usize,
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
    events: usize,
    events_lost: u32,
    buffers_lost: u32,
    others: BTreeMap<String, OtherCount>,
    damages: Vec<String>,
}

#[derive(Default, Serialize)]
struct OtherCount {
    records: u64,
    bytes: u64,
}

impl<'a> HeaderLine<'a> {
    fn new(trace: &'a Trace) -> Self {
        let header = trace.header();
        let session = &header.session;
        Self {
            record: "header",
            session: &session.session_name,
            file: &session.log_file_name,
            buffer_size: session.buffer_size,
            buffers_written: header.buffers_written,
            buffers_read: trace.buffers().len(),
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
            os: format!(
                "{}.{}.{}",
                session.os_major, session.os_minor, session.os_build
            ),
            events: trace.events().count(),
            events_lost: header.events_lost,
            buffers_lost: header.buffers_lost,
            others: count_others(trace.others()),
            damages: trace.damages().iter().map(ToString::to_string).collect(),
        }
    }
}

/// The records that are not decoded, by kind.
fn count_others<'a>(others: impl Iterator<Item = &'a Other>) -> BTreeMap<String, OtherCount> {
    let mut counts: BTreeMap<String, OtherCount> = BTreeMap::new();
    for other in others {
        let count = counts.entry(other.kind.to_string()).or_default();
        count.records += 1;
        count.bytes += u64::from(other.size);
    }
    counts
}

/// An event as an object: a line of [`write_lines`].
#[derive(Serialize)]
pub struct EventLine<'a> {
    record: &'static str,
    time: FileTime,
    timestamp: i64,
    processor: u16,
    process: u32,
    thread: u32,
    #[serde(serialize_with = "guid::serialize")]
    provider: Guid,
    provider_name: Option<&'a str>,
    #[serde(serialize_with = "guid::serialize_option")]
    group: Option<Guid>,
    id: u16,
    version: u8,
    channel: u8,
    level: u8,
    level_name: Option<&'a str>,
    opcode: u8,
    opcode_name: Option<&'a str>,
    task: u16,
    task_name: Option<&'a str>,
    keyword: String,
    keyword_names: Names<'a>,
    #[serde(serialize_with = "guid::serialize")]
    activity: Guid,
    #[serde(serialize_with = "guid::serialize_option")]
    related_activity: Option<Guid>,
    event: Option<&'a str>,
    message: Option<&'a str>,
    fields: FieldsObject<'a>,
    leftover: String,
    problems: Vec<String>,
    kernel_time: u32,
    user_time: u32,
    property: u16,
    pointer_size: usize,
    extended: Vec<ItemObject>,
    payload: String,
    buffer: u32,
    offset: u64,
}

#[derive(Serialize)]
struct ItemObject {
    #[serde(rename = "type")]
    ext_type: u16,
    data: String,
}

struct Names<'a>(&'a [Arc<str>]);

impl Serialize for Names<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(AsRef::<str>::as_ref))
    }
}

struct FieldsObject<'a>(&'a Fields);

impl Serialize for FieldsObject<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize_fields(self.0, serializer)
    }
}

impl<'a> EventLine<'a> {
    /// Returns the object of an event and its decoded form.
    #[must_use]
    pub fn new(event: &Event, decoded: &'a Decoded) -> Self {
        let record = &event.record;
        let descriptor = &record.descriptor;
        Self {
            record: "event",
            time: decoded.time,
            timestamp: decoded.timestamp,
            processor: decoded.processor,
            process: decoded.process_id,
            thread: decoded.thread_id,
            provider: decoded.provider,
            provider_name: decoded.provider_name.as_deref(),
            group: decoded.group,
            id: descriptor.id,
            version: descriptor.version,
            channel: descriptor.channel,
            level: descriptor.level,
            level_name: decoded.level_name.as_deref(),
            opcode: descriptor.opcode,
            opcode_name: decoded.opcode_name.as_deref(),
            task: descriptor.task,
            task_name: decoded.task_name.as_deref(),
            keyword: format!("{:#x}", descriptor.keyword),
            keyword_names: Names(&decoded.keywords.names),
            activity: decoded.activity,
            related_activity: decoded.related_activity,
            event: decoded.event_name.as_deref(),
            message: decoded.message.as_deref(),
            fields: FieldsObject(&decoded.fields),
            leftover: Hex(&decoded.leftover).to_string(),
            problems: decoded.problems.iter().map(Problem::to_string).collect(),
            kernel_time: record.kernel_time,
            user_time: record.user_time,
            property: record.event_property,
            pointer_size: event.pointer_size.bytes(),
            extended: record
                .extended
                .iter()
                .map(|item| ItemObject {
                    ext_type: item.ext_type,
                    data: Hex(&item.data).to_string(),
                })
                .collect(),
            payload: Hex(&record.user_data).to_string(),
            buffer: event.buffer,
            offset: event.offset,
        }
    }
}
