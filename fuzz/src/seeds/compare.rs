//! Other decoders' output for the trace of the `compare` target.

use std::{fmt::Write as _, io::Cursor, iter, sync::LazyLock};

use etl::compare::Ours;
use etl_file::{
    Catalog, ClockType, Decoded, Guid, Selection, TraceFile, decode::Value, write::Losses,
};
use etl_fixtures::trace;
use serde_json::json;

use super::seed::Seed;

/// The number of events in the trace.
const EVENTS: u32 = 4;
/// The events of the trace.
pub static OURS: LazyLock<Ours> = LazyLock::new(|| {
    let mut catalog = Catalog::new();
    catalog.add(trace::MANIFEST).expect("the manifest is well-formed");
    let header = trace::header(ClockType::Qpc, 0x1000, 1);
    let (file, _) = trace::file(header, EVENTS, Losses::default());
    let mut file = TraceFile::new(Cursor::new(file)).expect("the trace is valid");
    Ours::read(&mut file, &catalog, &Selection::default()).expect("the trace has few events")
});

/// The number of events whose output is in a seed; more do not fit.
const STATED: usize = 2;

/// Returns the trace's events in each format, and outputs that differ from the events.
pub fn seeds() -> Vec<Seed> {
    let events = &OURS.events[..STATED];
    let all: String = events.iter().map(xml).collect();
    let all = format!("<Events>{all}</Events>");
    let wide = iter::once(0xFEFF).chain(all.encode_utf16());
    let wide: Vec<u8> = wide.flat_map(u16::to_le_bytes).collect();
    let lines: String = events.iter().map(|one| line(one) + "\r\n").collect();
    let in_json = json!({ "events": [{ "id": 1, "xml": xml(&OURS.events[1]) }] });
    let changed = line(&OURS.events[1]).replace("\"version\":1", "\"version\":2");
    vec![
        Seed::new("tracerpt", wide),
        Seed::new("winevent", in_json.to_string()),
        Seed::new("tdh", lines),
        Seed::new("changed", changed),
        Seed::new("empty", ""),
        Seed::new("not_events", "<Other/>"),
    ]
}

/// Adds a field's values with their names; a structure member's name includes the structure's name.
fn add(name: &str, value: &Value, fields: &mut Vec<(String, String)>) {
    match value {
        Value::Array(elements) => {
            for (at, element) in elements.iter().enumerate() {
                add(&format!("{name}[{at}]"), element, fields);
            }
        }
        Value::Struct(members) => {
            for (member, value) in members {
                add(&format!("{name}.{member}"), value, fields);
            }
        }
        // Other decoders show text without quotation marks, and names without their numbers.
        Value::Text(text) => fields.push((name.to_owned(), text.clone())),
        Value::Named { name: of_value, .. } => {
            fields.push((name.to_owned(), of_value.to_string()));
        }
        leaf => fields.push((name.to_owned(), leaf.to_string())),
    }
}

fn fields(event: &Decoded) -> Vec<(String, String)> {
    let mut fields = Vec::new();
    for (name, value) in &event.fields {
        add(name, value, &mut fields);
    }
    fields
}

/// Returns an event as a line of the sample driver's client.
fn line(event: &Decoded) -> String {
    let one = &event.descriptor;
    let mut line = json!({
        "time": event.time.to_string(),
        "process": event.process_id,
        "thread": event.thread_id,
        "processor": event.processor,
        "provider": event.provider_name.as_deref(),
        "guid": event.provider.to_string(),
        "id": one.id,
        "version": one.version,
        "level": one.level,
        "task": one.task,
        "opcode": one.opcode,
        "keyword": format!("{:#x}", one.keyword),
        "fields": fields(event),
    });
    if event.activity != Guid::default() {
        line["activity"] = event.activity.to_string().into();
    }
    if let Some(related) = event.related_activity {
        line["related_activity"] = related.to_string().into();
    }
    line.to_string()
}

/// Returns an event in tracerpt's format.
fn xml(event: &Decoded) -> String {
    let one = &event.descriptor;
    let name = event.provider_name.as_deref().unwrap_or_default();
    let related = event.related_activity.unwrap_or_default();
    let mut data = String::new();
    for (name, value) in fields(event) {
        write!(data, "<Data Name=\"{name}\">{value}</Data>").expect("a String takes everything");
    }
    format!(
        "<Event><System><Provider Name=\"{name}\" Guid=\"{}\"/><EventID>{}</EventID>\
         <Version>{}</Version><Level>{}</Level><Task>{}</Task><Opcode>{}</Opcode>\
         <Keywords>{:#x}</Keywords><TimeCreated SystemTime=\"{}\"/>\
         <Correlation ActivityID=\"{}\" RelatedActivityID=\"{related}\"/>\
         <Execution ProcessID=\"{}\" ThreadID=\"{}\" ProcessorID=\"{}\"/></System>\
         <EventData>{data}</EventData></Event>",
        event.provider,
        one.id,
        one.version,
        one.level,
        one.task,
        one.opcode,
        one.keyword,
        event.time,
        event.activity,
        event.process_id,
        event.thread_id,
        event.processor,
    )
}
