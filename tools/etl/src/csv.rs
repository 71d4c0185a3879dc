//! Output for spreadsheets: CSV with one event per line.

use std::io::{self, Write};
use std::sync::Arc;

use crate::decode::Decoded;

/// The columns.
const COLUMNS: [&str; 14] = [
    "time",
    "processor",
    "process",
    "thread",
    "provider",
    "event",
    "id",
    "level",
    "keyword",
    "opcode",
    "task",
    "activity",
    "related activity",
    "fields",
];

/// Writes a header line and one line per event. All fields are in one column, as `name=value`
/// separated by spaces, because events have different fields.
///
/// # Errors
/// Returns the error of `out`.
pub fn write_events(events: &[Decoded], out: impl Write) -> io::Result<()> {
    let mut writer = csv::Writer::from_writer(out);
    writer.write_record(COLUMNS)?;
    for event in events {
        let fields: Vec<_> = event
            .fields
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let name_or = |name: &Option<Arc<str>>, number: u64| {
            name.as_deref()
                .map_or_else(|| number.to_string(), str::to_owned)
        };
        let provider = event.provider.to_string();
        let descriptor = &event.descriptor;
        let activity = if event.activity.is_null() {
            String::new()
        } else {
            event.activity.to_string()
        };
        let related = event.related_activity.map(|related| related.to_string());
        writer.write_record([
            event.time.to_string(),
            event.processor.to_string(),
            event.process_id.to_string(),
            event.thread_id.to_string(),
            event
                .provider_name
                .as_deref()
                .map_or(provider, str::to_owned),
            event.event_name.as_deref().unwrap_or_default().to_owned(),
            descriptor.id.to_string(),
            name_or(&event.level_name, descriptor.level.into()),
            format!("{:#x}", descriptor.keyword),
            name_or(&event.opcode_name, descriptor.opcode.into()),
            name_or(&event.task_name, descriptor.task.into()),
            activity,
            related.unwrap_or_default(),
            fields.join(" "),
        ])?;
    }
    writer.flush()
}
