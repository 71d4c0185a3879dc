//! Events for timelines: the trace event format that Chrome's tracing and Perfetto read.
//!
//! A start event and the stop event of the same provider and activity are a span; every
//! other event is an instant. Times are microseconds since the first event.

use std::collections::HashSet;
use std::io::{self, Write};

use serde::Serialize;

use crate::decode::{Decoded, Fields, serialize_fields};
use crate::guid::Guid;

/// `EVENT_TRACE_TYPE_START` and `EVENT_TRACE_TYPE_END`.
const START: u8 = 1;
const STOP: u8 = 2;

#[derive(Serialize)]
struct File<'a> {
    #[serde(rename = "displayTimeUnit")]
    unit: &'static str,
    #[serde(rename = "traceEvents")]
    events: Vec<Entry<'a>>,
}

#[derive(Serialize)]
struct Entry<'a> {
    name: &'a str,
    cat: String,
    ph: &'static str,
    ts: f64,
    pid: u32,
    tid: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    s: Option<&'static str>,
    args: Arguments<'a>,
}

struct Arguments<'a>(&'a Fields);

impl Serialize for Arguments<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize_fields(self.0, serializer)
    }
}

/// What makes a span: the provider and the activity.
fn span(event: &Decoded) -> Option<(Guid, Guid)> {
    (!event.activity.is_null()).then_some((event.provider, event.activity))
}

/// Writes events, which are in the order of time.
///
/// # Errors
/// Whatever `out` fails with.
pub fn write_events(events: &[Decoded], out: impl Write) -> io::Result<()> {
    let first = events.first().map_or(0, |event| event.time.unix_nanos());
    let with_opcode = |opcode: u8| -> HashSet<(Guid, Guid)> {
        let ones = events
            .iter()
            .filter(|event| event.descriptor.opcode == opcode);
        ones.filter_map(span).collect()
    };
    // A span has two ends; what lacks one is shown as an instant.
    let starts = with_opcode(START);
    let stops = with_opcode(STOP);
    let entries = events.iter().map(|event| {
        let whole = span(event).filter(|key| starts.contains(key) && stops.contains(key));
        let phase = match (whole, event.descriptor.opcode) {
            (Some(_), START) => "b",
            (Some(_), STOP) => "e",
            _ => "i",
        };
        let provider = event.provider.to_string();
        #[expect(
            clippy::cast_precision_loss,
            reason = "microseconds of a trace are far below the precision's end"
        )]
        let time = (event.time.unix_nanos() - first) as f64 / 1000.0;
        Entry {
            name: event.event_name.as_deref().unwrap_or("(no name)"),
            cat: event.provider_name.clone().unwrap_or(provider),
            ph: phase,
            ts: time,
            pid: event.process_id,
            tid: event.thread_id,
            id: (phase != "i").then(|| event.activity.to_string()),
            s: (phase == "i").then_some("t"),
            args: Arguments(&event.fields),
        }
    });
    let file = File {
        unit: "ns",
        events: entries.collect(),
    };
    serde_json::to_writer(out, &file)?;
    Ok(())
}
