//! One-line text forms of events, for comparisons and for logs.

use etl_file::{Decoded, Guid};

/// Formats an event on one line.
pub fn describe(
    name: &str,
    level: u8,
    keyword: u64,
    opcode: u8,
    related: Option<Guid>,
    fields: &[String],
) -> String {
    let related = related.map_or_else(String::new, |related| format!(", related to {related}"));
    format!(
        "{name} (level {level}, keyword 0x{keyword:x}, opcode {opcode}{related}) {{{}}}",
        fields.join(" ")
    )
}

/// Formats an event of a trace on one line, with the number of bytes that were not decoded.
pub fn describe_decoded(event: &Decoded) -> String {
    let descriptor = event.descriptor;
    let fields: Vec<String> = event
        .fields
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .chain(
            (!event.leftover.is_empty())
                .then(|| format!("{} undecoded bytes", event.leftover.len())),
        )
        .collect();
    describe(
        event.event_name.as_deref().unwrap_or("(no name)"),
        descriptor.level,
        descriptor.keyword,
        descriptor.opcode,
        event.related_activity,
        &fields,
    )
}
