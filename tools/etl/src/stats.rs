//! Counts of the events in a trace.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use comfy_table::{CellAlignment, Table, presets};

use crate::decode::Decoded;
use crate::read::Trace;
use crate::show::Escaped;

/// The counts of one kind of events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Count {
    events: u64,
    bytes: u64,
}

/// Formats the counts of events by provider, event and level, their rate, and the losses.
#[must_use]
pub fn render(trace: &Trace, events: &[Decoded]) -> String {
    let mut counts: BTreeMap<(String, String, String), Count> = BTreeMap::new();
    for (event, decoded) in trace.events_by_time().into_iter().zip(events) {
        let provider = decoded.provider.to_string();
        let level = decoded.descriptor.level.to_string();
        let key = (
            decoded
                .provider_name
                .as_deref()
                .map_or(provider, str::to_owned),
            decoded
                .event_name
                .as_deref()
                .map_or_else(|| format!("id {}", decoded.descriptor.id), str::to_owned),
            decoded.level_name.as_deref().map_or(level, str::to_owned),
        );
        let count = counts.entry(key).or_default();
        count.events += 1;
        count.bytes += event.record.encoded_size() as u64;
    }
    let mut table = Table::new();
    table
        .load_preset(presets::UTF8_FULL_CONDENSED)
        .set_header(["Provider", "Event", "Level", "Events", "Bytes"]);
    for column in [3, 4] {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    for ((provider, event, level), count) in &counts {
        table.add_row([
            Escaped(provider).to_string(),
            Escaped(event).to_string(),
            Escaped(level).to_string(),
            count.events.to_string(),
            count.bytes.to_string(),
        ]);
    }
    let header = trace.header();
    let mut text = format!("{}\n\n", table.trim_fmt());
    let total: u64 = counts.values().map(|count| count.events).sum();
    let bytes: u64 = counts.values().map(|count| count.bytes).sum();
    let span = events.first().zip(events.last()).map(|(first, last)| {
        #[expect(clippy::cast_precision_loss, reason = "the number is only displayed")]
        let seconds = (last.time.unix_nanos() - first.time.unix_nanos()) as f64 / 1e9;
        seconds
    });
    #[expect(clippy::cast_precision_loss, reason = "the number is only displayed")]
    let rate = span
        .filter(|seconds| *seconds > 0.0)
        .map(|seconds| total as f64 / seconds);
    let _infallible = write!(text, "{total} events, {bytes} bytes");
    if let (Some(seconds), Some(rate)) = (span, rate) {
        let _infallible = write!(text, ", in {seconds:.6} s: {rate:.0} events a second");
    }
    let _infallible = write!(
        text,
        "\nLost: {} events, {} buffers\n",
        header.events_lost, header.buffers_lost
    );
    text
}
