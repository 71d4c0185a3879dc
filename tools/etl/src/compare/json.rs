//! Events in JSON: from Get-WinEvent with their XML, and from the sample driver's client.

use std::collections::BTreeMap;

use etw_wire::Guid;
use serde::Deserialize;
use serde_json::Value;

use super::event::{Content, Form, OtherEvent};
use super::property::Property;
use super::xml;

/// Reads all events in JSON text: an array of events, an object with an `events` array, one event
/// per line, or a single event.
pub(super) fn events(text: &str) -> Result<(Form, Vec<OtherEvent>), Content> {
    let records = match serde_json::from_str::<Value>(text) {
        Ok(Value::Array(list)) => list,
        Ok(Value::Object(mut object)) => match object.remove("events") {
            Some(Value::Array(list)) => list,
            // Windows PowerShell's ConvertTo-Json writes an empty list as null.
            Some(Value::Null) => Vec::new(),
            Some(one) => vec![one],
            None => vec![Value::Object(object)],
        },
        Ok(other) => vec![other],
        Err(error) => lines(text, error)?,
    };
    let mut form = None;
    let mut events = Vec::new();
    for (at, record) in records.into_iter().enumerate() {
        let number = at + 1;
        let (own, event) = event(record, number)?;
        if *form.get_or_insert(own) != own {
            return Err(Content::Record { number });
        }
        events.push(event);
    }
    Ok((form.unwrap_or(Form::Empty), events))
}

/// Reads a value from each line. If the first line is not JSON, returns the error of the whole
/// text.
fn lines(text: &str, whole: serde_json::Error) -> Result<Vec<Value>, Content> {
    let mut records = Vec::new();
    for (at, line) in text.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        match serde_json::from_str(line) {
            Ok(value) => records.push(value),
            Err(_) if at == 0 => return Err(Content::Json(whole)),
            Err(source) => {
                return Err(Content::Line { line: at + 1, source });
            }
        }
    }
    Ok(records)
}

fn event(record: Value, number: usize) -> Result<(Form, OtherEvent), Content> {
    let xml = match &record {
        Value::String(xml) => Some(xml),
        Value::Object(object) => match object.get("xml") {
            Some(Value::String(xml)) => Some(xml),
            _ => None,
        },
        _ => None,
    };
    if let Some(xml) = xml {
        let read = xml::events(xml.trim())
            .map_err(|source| Content::Inner { number, source: Box::new(source) })?;
        let [event] = <[OtherEvent; 1]>::try_from(read).map_err(|_| Content::Record { number })?;
        return Ok((Form::XmlInJson, event));
    }
    if record.get("fields").is_none() {
        return Err(Content::Record { number });
    }
    let event: Client =
        serde_json::from_value(record).map_err(|source| Content::Client { number, source })?;
    Ok((Form::Lines, event.into()))
}

/// An event from the sample driver's client. Older clients do not write `guid` and `task`.
#[derive(Deserialize)]
struct Client {
    time: String,
    process: u32,
    thread: u32,
    processor: Option<u16>,
    /// The provider's name or, if TDH does not know it, its GUID.
    provider: String,
    guid: Option<String>,
    id: u16,
    version: u8,
    level: u8,
    task: Option<u16>,
    opcode: u8,
    keyword: String,
    activity: Option<String>,
    related_activity: Option<String>,
    fields: Vec<(String, String)>,
    problem: Option<String>,
}

impl From<Client> for OtherEvent {
    fn from(event: Client) -> Self {
        let mut properties = [
            (Property::Time, event.time),
            (Property::Process, event.process.to_string()),
            (Property::Thread, event.thread.to_string()),
            (Property::Id, event.id.to_string()),
            (Property::Version, event.version.to_string()),
            (Property::Level, event.level.to_string()),
            (Property::Opcode, event.opcode.to_string()),
            (Property::Keywords, event.keyword),
        ]
        .into_iter()
        .collect::<BTreeMap<_, _>>();
        let is_guid = event.provider.parse::<Guid>().is_ok();
        let provider = if is_guid { Property::Provider } else { Property::ProviderName };
        properties.insert(provider, event.provider);
        for (property, value) in [
            (Property::Provider, event.guid),
            (Property::Task, event.task.map(|task| task.to_string())),
            (Property::Processor, event.processor.map(|number| number.to_string())),
            (Property::Activity, event.activity),
            (Property::RelatedActivity, event.related_activity),
        ] {
            if let Some(value) = value {
                properties.insert(property, value);
            }
        }
        Self {
            properties,
            has_data: true,
            fields: event.fields,
            problem: event.problem,
            is_classic: false,
        }
    }
}
