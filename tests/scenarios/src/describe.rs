//! The one-line form of an event, for comparisons and for logs.

use etl_file::Decoded;

/// Formats an event of a trace on one line, including the number of bytes that were not decoded.
pub fn describe_decoded(event: &Decoded) -> String {
    let descriptor = event.descriptor;
    let mut fields: Vec<String> =
        event.fields.iter().map(|(name, value)| format!("{name}={value}")).collect();
    if !event.leftover.is_empty() {
        fields.push(format!("{} undecoded bytes", event.leftover.len()));
    }
    let related = event.related_activity;
    let related = related.map_or_else(String::new, |related| format!(", related to {related}"));
    format!(
        "{} (level {}, keyword 0x{:x}, opcode {}{related}) {{{}}}",
        event.event_name.as_deref().unwrap_or("(no name)"),
        descriptor.level,
        descriptor.keyword,
        descriptor.opcode,
        fields.join(" ")
    )
}
