//! The properties of an event other than its fields.

use super::annotations::Annotations;
use super::schema::annotation;
use etl_file::Decoded;
use etl_file::decode::Kind;

/// The channel of `TraceLogging` events, which is not worth mentioning.
const TRACE_LOGGING_CHANNEL: u8 = 11;

/// Returns an event's name or, if it has none, its id.
pub fn name(event: &Decoded) -> String {
    match (event.event_name.as_deref(), event.kind) {
        (Some(name), _) if !name.is_empty() => name.to_owned(),
        (_, Kind::Kernel { hook }) => format!("hook {hook:#06x}"),
        (_, Kind::Classic { opcode, .. }) => format!("type {opcode}"),
        _ => format!("event {}", event.descriptor.id),
    }
}

/// Adds the properties that all events of a kind share.
pub fn add_properties(to: &mut Annotations<'_, '_>, event: &Decoded) {
    let descriptor = &event.descriptor;
    to.uint("etw_level", descriptor.level.into());
    if descriptor.id != 0 {
        to.uint("etw_id", descriptor.id.into());
    }
    if descriptor.keyword != 0 {
        to.add("etw_keyword", |to| to.uint(annotation::POINTER_VALUE, descriptor.keyword));
    }
    let about = about(event);
    if !about.is_empty() {
        to.repeated("etw_about", &about);
    }
}

/// Returns the names of the event's keyword, opcode and task, and rarely used numbers.
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
        let number = descriptor.channel;
        let named = |name| format!("channel {name} ({number})");
        let name = event.channel_name.as_deref();
        parts.push(name.map_or_else(|| format!("channel {number}"), named));
    }
    if let Some(group) = event.group {
        parts.push(format!("group {group}"));
    }
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use etl_file::EventRecord;
    use etl_fixtures::decoded;

    #[test]
    fn an_event_without_a_name_has_its_number() {
        let mut event = decoded(EventRecord::default());
        event.descriptor.id = 7;
        let classic = Kind::Classic { class: event.provider, opcode: 3 };
        for (kind, number) in [
            (Kind::Event, "event 7"),
            (Kind::Kernel { hook: 0x0501 }, "hook 0x0501"),
            (classic, "type 3"),
        ] {
            event.kind = kind;
            for (own, shown) in [(None, number), (Some(""), number), (Some("Name"), "Name")] {
                event.event_name = own.map(Into::into);
                assert_eq!(name(&event), shown);
            }
        }
    }
}
