//! Reports: HTML pages that show traces in a browser.
//!
//! A page is a single file without dependencies. It contains facts about the sessions, counts, a
//! timeline of activities, and a table of events that can be filtered and sorted. The contents of a
//! trace are untrusted: the page parses them as JSON and shows them as text, never as markup.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};

use etw_wire::Guid;
use serde::Serialize;

use crate::decode::catalog::Catalog;
use crate::decode::{Decoded, Fields, decode};
use crate::read::{Event, Trace};
use crate::spans::spans;

/// The template of the page, with placeholders for style, data and script.
const PAGE: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// A trace and its name.
pub struct Input<'a> {
    /// The name, for example that of the file.
    pub name: &'a str,
    /// The trace.
    pub trace: &'a Trace,
}

/// The data for the page's script.
#[derive(Serialize)]
struct Data {
    sessions: Vec<Session>,
    /// The counts, each as provider, event, level, number.
    counts: Vec<(usize, String, usize, u64)>,
    /// The names of providers and events, which events refer to by index.
    providers: Vec<String>,
    levels: Vec<String>,
    activities: Vec<String>,
    /// The time of the first event.
    start: String,
    events: Vec<Row>,
    /// The spans, each as the indices of its two events.
    spans: Vec<(usize, usize)>,
}

#[derive(Serialize)]
struct Session {
    file: String,
    name: String,
    start: String,
    end: Option<String>,
    events: usize,
    events_lost: u32,
    buffers_lost: u32,
    damages: Vec<String>,
}

/// An event: nanoseconds since the first one, provider, name, level, process, thread,
/// processor, activity (0 for none), text.
#[derive(Serialize)]
struct Row(i64, usize, String, usize, u32, u32, u16, usize, String);

/// Assigns each string a number, in the order of first use.
#[derive(Default)]
struct Names {
    names: Vec<String>,
    numbers: HashMap<String, usize>,
}

impl Names {
    fn number(&mut self, name: String) -> usize {
        *self.numbers.entry(name).or_insert_with_key(|name| {
            self.names.push(name.clone());
            self.names.len() - 1
        })
    }
}

fn session(input: &Input<'_>) -> Session {
    let header = input.trace.header();
    Session {
        file: input.name.to_owned(),
        name: header.session.session_name.clone(),
        start: header.session.start_time.to_string(),
        end: header.end_time.map(|time| time.to_string()),
        events: input.trace.events().count(),
        events_lost: header.events_lost,
        buffers_lost: header.buffers_lost,
        damages: input
            .trace
            .damages()
            .iter()
            .map(ToString::to_string)
            .collect(),
    }
}

/// Returns the text of an event: its message, or its fields.
fn text(event: &Decoded) -> String {
    let fields = |fields: &Fields| {
        let fields: Vec<String> = fields
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        fields.join(" ")
    };
    let said = event.message.clone();
    let mut text = said.unwrap_or_else(|| fields(&event.fields));
    for problem in &event.problems {
        text.push_str(" [");
        text.push_str(&problem.to_string());
        text.push(']');
    }
    text
}

fn data(inputs: &[Input<'_>], catalog: &Catalog) -> Data {
    let mut all: Vec<&Event> = inputs
        .iter()
        .flat_map(|input| input.trace.events())
        .collect();
    all.sort_by_key(|event| event.time);
    let events: Vec<Decoded> = all
        .into_iter()
        .map(|event| decode(event, catalog))
        .collect();
    let first = events.first().map(|event| event.time);
    let (mut providers, mut levels, mut activities) =
        (Names::default(), Names::default(), Names::default());
    // Number 0 means none.
    activities.number(String::new());
    let mut counts: BTreeMap<(usize, String, usize), u64> = BTreeMap::new();
    let mut rows = Vec::with_capacity(events.len());
    for event in &events {
        let provider = event.provider_name.as_deref().map(str::to_owned);
        let provider = providers.number(provider.unwrap_or_else(|| event.provider.to_string()));
        let name = event.event_name.as_deref().map(str::to_owned);
        let name = name.unwrap_or_else(|| format!("id {}", event.descriptor.id));
        let level = event.level_name.as_deref().map(str::to_owned);
        let level = levels.number(level.unwrap_or_else(|| event.descriptor.level.to_string()));
        *counts.entry((provider, name.clone(), level)).or_default() += 1;
        let activity = if event.activity == Guid::NULL {
            0
        } else {
            activities.number(event.activity.to_string())
        };
        let since = first.map_or(0, |first| event.time.unix_nanos() - first.unix_nanos());
        rows.push(Row(
            i64::try_from(since).unwrap_or(i64::MAX),
            provider,
            name,
            level,
            event.process_id,
            event.thread_id,
            event.processor,
            activity,
            text(event),
        ));
    }
    let spans = spans(&events).into_iter();
    Data {
        sessions: inputs.iter().map(session).collect(),
        counts: counts
            .into_iter()
            .map(|((provider, name, level), count)| (provider, name, level, count))
            .collect(),
        providers: providers.names,
        levels: levels.names,
        activities: activities.names,
        start: first.map_or_else(String::new, |time| time.to_string()),
        events: rows,
        spans: spans.map(|span| (span.start, span.stop)).collect(),
    }
}

/// Writes the page for traces, with their events sorted by time.
///
/// # Errors
/// Returns the error of `out`.
pub fn write(inputs: &[Input<'_>], catalog: &Catalog, mut out: impl Write) -> io::Result<()> {
    // In JSON, `<` only occurs in strings, where it can be escaped. Nothing in the data can then
    // look like the end of the script element.
    let data = serde_json::to_string(&data(inputs, catalog))?.replace('<', "\\u003c");
    let mut rest = PAGE;
    for (place, content) in [
        ("{{style}}", STYLE),
        ("{{data}}", &data),
        ("{{script}}", SCRIPT),
    ] {
        let (before, after) = rest.split_once(place).unwrap_or((rest, ""));
        out.write_all(before.as_bytes())?;
        out.write_all(content.as_bytes())?;
        rest = after;
    }
    out.write_all(rest.as_bytes())?;
    out.flush()
}
