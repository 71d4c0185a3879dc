//! The properties of an event besides its fields.

use super::annotations;
use super::intern::Interned;
use super::schema::annotation;
use super::wire::Message;
use crate::decode::{Decoded, Kind};

/// The channel of `TraceLogging` events, which nothing needs to mention.
const TRACE_LOGGING_CHANNEL: u8 = 11;

/// Returns the name of an event, or its id.
pub fn name(event: &Decoded) -> String {
    match (event.event_name.as_deref(), event.kind) {
        (Some(name), _) if !name.is_empty() => name.to_owned(),
        (_, Kind::Kernel { hook }) => format!("hook {hook:#06x}"),
        (_, Kind::Classic { opcode, .. }) => format!("type {opcode}"),
        _ => format!("event {}", event.descriptor.id),
    }
}

/// Adds the properties that all events of a kind have in common.
pub fn add_properties(to: &mut Message<'_>, number: u32, event: &Decoded, interned: &mut Interned) {
    let descriptor = &event.descriptor;
    annotations::add(to, number, "etw_level", interned, |to| {
        to.uint(annotation::UINT_VALUE, u64::from(descriptor.level));
    });
    if descriptor.id != 0 {
        annotations::add(to, number, "etw_id", interned, |to| {
            to.uint(annotation::UINT_VALUE, u64::from(descriptor.id));
        });
    }
    if descriptor.keyword != 0 {
        annotations::add(to, number, "etw_keyword", interned, |to| {
            to.uint(annotation::POINTER_VALUE, descriptor.keyword);
        });
    }
    let about = about(event);
    if !about.is_empty() {
        annotations::add_repeated(to, number, "etw_about", &about, interned);
    }
}

/// Returns the names of the event's keyword, opcode and task, and the rare numbers.
fn about(event: &Decoded) -> String {
    let descriptor = &event.descriptor;
    let mut parts = Vec::new();
    if !event.keywords.names.is_empty() {
        let names: Vec<&str> = event.keywords.names.iter().map(AsRef::as_ref).collect();
        parts.push(format!("keyword {}", names.join("|")));
    }
    for (what, number, name) in [
        ("opcode", u16::from(descriptor.opcode), &event.opcode_name),
        ("task", descriptor.task, &event.task_name),
    ] {
        match (number, name) {
            (0, _) => {}
            (number, Some(name)) => parts.push(format!("{what} {name} ({number})")),
            (number, None) => parts.push(format!("{what} {number}")),
        }
    }
    if descriptor.version != 0 {
        parts.push(format!("version {}", descriptor.version));
    }
    if descriptor.channel != 0 && descriptor.channel != TRACE_LOGGING_CHANNEL {
        parts.push(format!("channel {}", descriptor.channel));
    }
    if let Some(group) = event.group {
        parts.push(format!("group {group}"));
    }
    parts.join(", ")
}
