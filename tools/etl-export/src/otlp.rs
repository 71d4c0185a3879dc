//! OpenTelemetry logs and spans, as lines of OTLP's JSON.
//!
//! Each event is a log record. A start and a stop event of an activity are also a span, whose trace id
//! is the activity's id. `otlpjsonfilereceiver` of the OpenTelemetry Collector reads the files. 64-bit
//! numbers are strings, and ids are hexadecimal digits, as OTLP's JSON has them.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use etl_file::decode::Value;
use etl_file::internals::spans::{OpenSpans, Part};
use etl_file::{FileTime, Guid};
use serde_json::{Value as Json, json};

use crate::ExportError;
use crate::row::Row;
use crate::tables::Source;

/// The maximum number of spans that wait for their stop events.
const MAX_OPEN: usize = 1 << 16;

/// Writes the logs and spans of a trace.
pub struct Logs {
    records: Lines,
    spans: Lines,
    resource: Json,
    open: OpenSpans<Start>,
    next: u64,
    /// The number of starts that were given up because too many were open.
    given_up: usize,
}

/// A file of lines.
struct Lines {
    path: PathBuf,
    out: BufWriter<File>,
}

impl Lines {
    fn create(path: PathBuf) -> Result<Self, ExportError> {
        match File::create(&path) {
            Ok(file) => Ok(Self { path, out: BufWriter::new(file) }),
            Err(source) => Err(ExportError::Io { path, source }),
        }
    }

    fn write(&mut self, line: &Json) -> Result<(), ExportError> {
        writeln!(self.out, "{line}").map_err(|source| self.failed(source))
    }

    fn failed(&self, source: io::Error) -> ExportError {
        ExportError::Io { path: self.path.clone(), source }
    }
}

/// The start of a span.
#[derive(Debug)]
struct Start {
    number: u64,
    time: FileTime,
    name: String,
    attributes: Vec<Json>,
}

impl Logs {
    /// Creates the files for a trace, `TRACE-START-logs.jsonl` and `TRACE-START-spans.jsonl`, in a folder.
    ///
    /// # Errors
    /// Fails if a file cannot be created.
    pub fn create(folder: &Path, source: &Source) -> Result<Self, ExportError> {
        fs::create_dir_all(folder)
            .map_err(|error| ExportError::Io { path: folder.to_owned(), source: error })?;
        let file = |what| {
            Lines::create(folder.join(format!(
                "{}-{}-{what}.jsonl",
                source.trace,
                source.start.raw()
            )))
        };
        let resource = [
            attribute("host.name", string(&source.host)),
            attribute("os.type", string("windows")),
            attribute("etl.trace", string(&source.trace)),
            attribute("etl.boot", string(&source.boot.to_string())),
        ];
        Ok(Self {
            records: file("logs")?,
            spans: file("spans")?,
            resource: json!({ "attributes": resource }),
            open: OpenSpans::new(MAX_OPEN),
            next: 1,
            given_up: 0,
        })
    }

    /// Adds an event, and the span that it ends.
    ///
    /// # Errors
    /// Fails if a file cannot be written.
    pub fn add(&mut self, row: &Row) -> Result<(), ExportError> {
        let event = &row.event;
        let mut span = None;
        match Part::from_event(event) {
            Some(Part::Start(key)) => {
                span = Some(self.next);
                let (time, name) = (event.time, row.name());
                let start =
                    Start { number: self.next, time, name, attributes: fields(&row.fields) };
                self.next += 1;
                // Spans without an end are not written; their events are.
                self.given_up += self.open.start(key, start).len();
            }
            Some(Part::Stop(key)) => {
                if let Some(start) = self.open.stop(&key) {
                    span = Some(start.number);
                    self.span(row, start)?;
                }
            }
            None => {}
        }
        let record = log(row, span);
        let scope = scope(row);
        self.records.write(&json!({ "resourceLogs": [{
            "resource": self.resource,
            "scopeLogs": [{ "scope": scope, "logRecords": [record] }],
        }] }))
    }

    fn span(&mut self, row: &Row, start: Start) -> Result<(), ExportError> {
        let mut attributes = start.attributes;
        // The fields of both events can have the same names.
        attributes.extend(fields(&row.fields).into_iter().map(|mut field| {
            field["key"] = json!(format!("stop.{}", field["key"].as_str().unwrap_or_default()));
            field
        }));
        attributes.push(attribute("thread.id", integer(row.event.thread_id.into())));
        attributes.push(attribute("process.pid", integer(row.event.process_id.into())));
        let span = json!({
            "traceId": hex(row.event.activity),
            "spanId": format!("{:016x}", start.number),
            "name": start.name,
            "kind": 1,
            "startTimeUnixNano": nanoseconds(start.time),
            "endTimeUnixNano": nanoseconds(row.event.time),
            "attributes": attributes,
            "status": {},
        });
        let scope = scope(row);
        self.spans.write(&json!({ "resourceSpans": [{
            "resource": self.resource,
            "scopeSpans": [{ "scope": scope, "spans": [span] }],
        }] }))
    }

    /// Completes the files. Returns the number of start events that are no spans, because no stop event
    /// followed, or too many other spans were open before it did.
    ///
    /// # Errors
    /// Fails if a file cannot be written.
    pub fn finish(mut self) -> Result<usize, ExportError> {
        for lines in [&mut self.records, &mut self.spans] {
            lines.out.flush().map_err(|source| lines.failed(source))?;
        }
        Ok(self.given_up + self.open.len())
    }
}

fn log(row: &Row, span: Option<u64>) -> Json {
    let event = &row.event;
    // The numbers and names of OpenTelemetry's severities.
    let (severity, text) = match event.descriptor.level {
        1 => (21, "FATAL"),
        2 => (17, "ERROR"),
        3 => (13, "WARN"),
        4 => (9, "INFO"),
        5 => (5, "DEBUG"),
        0 => (0, ""),
        _ => (1, "TRACE"),
    };
    let mut attributes = vec![
        attribute("etw.provider.guid", string(&row.provider)),
        attribute("etw.event.id", integer(event.descriptor.id.into())),
        attribute("etw.event.version", integer(event.descriptor.version.into())),
        attribute("etw.keyword", string(&format!("{:#x}", event.descriptor.keyword))),
        attribute("etw.opcode", integer(event.descriptor.opcode.into())),
        attribute("process.pid", integer(event.process_id.into())),
        attribute("thread.id", integer(event.thread_id.into())),
        attribute("cpu.logical_number", integer(event.processor.into())),
    ];
    if let Some(related) = &row.related {
        attributes.push(attribute("etw.related_activity", string(related)));
    }
    if !row.problems.is_empty() {
        let problems: Vec<Json> = row.problems.iter().map(|problem| string(problem)).collect();
        attributes.push(attribute("etw.problems", array(&problems)));
    }
    attributes.extend(fields(&row.fields));
    let body = event.message.as_deref().map_or_else(|| row.name(), str::to_owned);
    let mut record = json!({
        "timeUnixNano": nanoseconds(event.time),
        "observedTimeUnixNano": nanoseconds(event.time),
        "severityNumber": severity,
        "severityText": text,
        "eventName": row.name(),
        "body": string(&body),
        "attributes": attributes,
    });
    if !event.activity.is_null() {
        record["traceId"] = json!(hex(event.activity));
        if let Some(span) = span {
            record["spanId"] = json!(format!("{span:016x}"));
        }
    }
    record
}

fn scope(row: &Row) -> Json {
    json!({ "name": row.provider() })
}

fn fields(fields: &Value) -> Vec<Json> {
    let Value::Struct(fields) = fields else {
        return Vec::new();
    };
    fields.iter().map(|(name, value)| attribute(name, any(value))).collect()
}

fn attribute(key: &str, value: Json) -> Json {
    let entries = [("key".to_owned(), key.into()), ("value".to_owned(), value)];
    Json::Object(entries.into_iter().collect())
}

fn string(text: &str) -> Json {
    json!({ "stringValue": text })
}

fn integer(number: i64) -> Json {
    json!({ "intValue": number.to_string() })
}

fn array(values: &[Json]) -> Json {
    json!({ "arrayValue": { "values": values } })
}

/// Returns a value as OTLP's `AnyValue`. Numbers beyond its signed 64 bits are text.
fn any(value: &Value) -> Json {
    match value {
        Value::Null => json!({}),
        Value::Int(number) => integer(*number),
        Value::UInt(number) | Value::ProcessId(number) | Value::ThreadId(number) => {
            i64::try_from(*number).map_or_else(|_| string(&number.to_string()), integer)
        }
        Value::Port(number) => integer((*number).into()),
        Value::Bool(value) => json!({ "boolValue": value }),
        Value::Float(number) if number.is_finite() => json!({ "doubleValue": number }),
        Value::Double(number) if number.is_finite() => json!({ "doubleValue": number }),
        Value::Text(text) => string(text),
        Value::Named { value, name, .. } => {
            let entries =
                [attribute("value", integer(value.cast_signed())), attribute("name", string(name))];
            json!({ "kvlistValue": { "values": entries } })
        }
        Value::Array(values) => array(&values.iter().map(any).collect::<Vec<_>>()),
        Value::Struct(members) => {
            let values: Vec<Json> =
                members.iter().map(|(name, value)| attribute(name, any(value))).collect();
            json!({ "kvlistValue": { "values": values } })
        }
        other => string(&other.to_string()),
    }
}

/// Returns a time in nanoseconds since 1970. OTLP has no earlier times; 0 means unknown.
fn nanoseconds(time: FileTime) -> String {
    u64::try_from(time.unix_nanos()).unwrap_or(0).to_string()
}

/// Returns the digits of a GUID without hyphens: OTLP's trace id.
fn hex(guid: Guid) -> String {
    guid.to_string().replace('-', "")
}
