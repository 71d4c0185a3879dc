//! Spans of activities: pairs of a start event and the stop event that ends it.

use std::collections::HashMap;

use etw_wire::Guid;

use crate::decode::Decoded;

/// `EVENT_TRACE_TYPE_START` and `EVENT_TRACE_TYPE_END`.
const START: u8 = 1;
const STOP: u8 = 2;

/// A start event and its stop event, by their indices among the events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The index of the start event.
    pub start: usize,
    /// The index of the stop event.
    pub stop: usize,
}

/// Returns the spans of events, which must be sorted by time, in the order of their starts.
///
/// A stop event ends the last open start event of the same provider, activity and task. Events
/// without an activity do not form spans.
#[must_use]
pub fn spans(events: &[Decoded]) -> Vec<Span> {
    let mut open: HashMap<(Guid, Guid, u16), Vec<usize>> = HashMap::new();
    let mut spans = Vec::new();
    for (at, event) in events.iter().enumerate() {
        if event.activity.is_null() {
            continue;
        }
        let key = (event.provider, event.activity, event.descriptor.task);
        match event.descriptor.opcode {
            START => open.entry(key).or_default().push(at),
            STOP => {
                if let Some(start) = open.get_mut(&key).and_then(Vec::pop) {
                    spans.push(Span { start, stop: at });
                }
            }
            _ => {}
        }
    }
    spans.sort_by_key(|span| span.start);
    spans
}
