//! Output for timelines: the trace event format of Chrome's tracing page and Perfetto.
//!
//! A start event and the stop event of the same provider and activity are a span; every
//! other event is an instant. Times are microseconds since the first event.

use std::io::{self, Write};

use serde::Serialize;

use crate::decode::{Decoded, Fields, serialize_fields};
use crate::spans::spans;

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

/// Writes events, which must be sorted by time.
///
/// # Errors
/// Returns the error of `out`.
pub fn write_events(events: &[Decoded], out: impl Write) -> io::Result<()> {
    let first = events.first().map_or(0, |event| event.time.unix_nanos());
    // Only complete spans are written as spans; all other events are instants.
    let mut phases = vec!["i"; events.len()];
    for span in spans(events) {
        for (at, phase) in [(span.start, "b"), (span.stop, "e")] {
            if let Some(place) = phases.get_mut(at) {
                *place = phase;
            }
        }
    }
    let entries = events.iter().zip(phases).map(|(event, phase)| {
        let provider = event.provider.to_string();
        #[expect(
            clippy::cast_precision_loss,
            reason = "the microseconds of a trace are far below 2^53"
        )]
        let time = (event.time.unix_nanos() - first) as f64 / 1000.0;
        Entry {
            name: event.event_name.as_deref().unwrap_or("(no name)"),
            cat: event
                .provider_name
                .as_deref()
                .map_or(provider, str::to_owned),
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
