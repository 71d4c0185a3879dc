//! Spans of activities: start events paired with the stop events that end them.

use std::collections::{BTreeMap, HashMap};

use etw_wire::Guid;

use crate::decode::{Decoded, Kind};

/// `EVENT_TRACE_TYPE_START` and `EVENT_TRACE_TYPE_END`.
const START: u8 = 1;
const STOP: u8 = 2;

/// A start event and its stop event, by their indexes in the list of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The index of the start event.
    pub start: usize,
    /// The index of the stop event.
    pub stop: usize,
}

/// Returns the spans in a list of events in the order of their starts. The events must be sorted by
/// time.
///
/// A stop event ends the latest open start event with the same provider, activity and task. Events
/// without an activity do not form spans.
#[must_use]
pub fn spans(events: &[Decoded]) -> Vec<Span> {
    let mut open = OpenSpans::new(usize::MAX);
    let mut spans = Vec::new();
    for (at, event) in events.iter().enumerate() {
        match Part::from_event(event) {
            Some(Part::Start(key)) => drop(open.start(key, at)),
            Some(Part::Stop(key)) => {
                if let Some(start) = open.stop(&key) {
                    spans.push(Span { start, stop: at });
                }
            }
            None => {}
        }
    }
    spans.sort_by_key(|span| span.start);
    spans
}

/// The provider, activity and task that the events of a span share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SpanKey {
    /// The provider.
    pub provider: Guid,
    /// The activity.
    pub activity: Guid,
    /// The task.
    pub task: u16,
}

/// The role of an event in a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The event starts a span.
    Start(SpanKey),
    /// The event ends a span, if one is open.
    Stop(SpanKey),
}

impl Part {
    /// Returns the role of an event, or `None` if the event belongs to no span.
    #[must_use]
    pub const fn from_event(event: &Decoded) -> Option<Self> {
        if event.activity.is_null() {
            return None;
        }
        let key = SpanKey {
            provider: event.provider,
            activity: event.activity,
            task: event.descriptor.task,
        };
        match event.descriptor.opcode {
            START => Some(Self::Start(key)),
            STOP => Some(Self::Stop(key)),
            _ => None,
        }
    }

    /// Returns true if a provider's event starts or ends an operation, but has no activity that pairs
    /// it with another event.
    #[must_use]
    pub const fn lacks_activity(event: &Decoded) -> bool {
        matches!(event.kind, Kind::Event | Kind::Classic { .. })
            && matches!(event.descriptor.opcode, START | STOP)
            && event.activity.is_null()
    }
}

/// The start events in a stream that have no stop event yet, each with the caller's value.
///
/// The number of open spans is limited: a start event that would exceed the limit discards the
/// oldest span and the spans with the same key.
#[derive(Debug)]
pub struct OpenSpans<T> {
    limit: usize,
    next: u64,
    stacks: HashMap<SpanKey, Vec<(u64, T)>>,
    /// The keys, by the number of the start event.
    order: BTreeMap<u64, SpanKey>,
}

impl<T> OpenSpans<T> {
    /// Returns a table for at most `limit` open spans.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self { limit, next: 0, stacks: HashMap::new(), order: BTreeMap::new() }
    }

    /// Returns the value of the latest open span with this key.
    #[must_use]
    pub fn last(&self, key: &SpanKey) -> Option<&T> {
        let (_, value) = self.stacks.get(key)?.last()?;
        Some(value)
    }

    /// Opens a span. Returns the values of discarded spans.
    #[must_use]
    pub fn start(&mut self, key: SpanKey, value: T) -> Vec<T> {
        let given_up = if self.order.len() >= self.limit { self.give_up() } else { Vec::new() };
        self.order.insert(self.next, key);
        let stack = self.stacks.entry(key).or_default();
        stack.push((self.next, value));
        self.next += 1;
        given_up
    }

    /// Ends the latest open span with this key, and returns its value.
    pub fn stop(&mut self, key: &SpanKey) -> Option<T> {
        let stack = self.stacks.get_mut(key)?;
        let (number, value) = stack.pop()?;
        if stack.is_empty() {
            self.stacks.remove(key);
        }
        self.order.remove(&number);
        Some(value)
    }

    /// Discards the oldest span and those with the same key, and returns their values in the order
    /// of their starts.
    pub fn give_up(&mut self) -> Vec<T> {
        let Some((_, key)) = self.order.pop_first() else {
            return Vec::new();
        };
        let stack = self.stacks.remove(&key).unwrap_or_default();
        stack
            .into_iter()
            .map(|(number, value)| {
                self.order.remove(&number);
                value
            })
            .collect()
    }

    /// Returns the number of open spans.
    #[must_use]
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Returns true if no spans are open.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::decoded;
    use crate::record::{EventDescriptor, EventRecord};

    const fn key(activity: u128) -> SpanKey {
        SpanKey { provider: Guid::from_u128(1), activity: Guid::from_u128(activity), task: 0 }
    }

    #[test]
    fn a_stop_ends_the_last_start() {
        let mut open = OpenSpans::new(10);
        assert_eq!(open.start(key(1), 'a'), []);
        assert_eq!(open.start(key(2), 'b'), []);
        assert_eq!(open.start(key(1), 'c'), []);
        assert_eq!(open.len(), 3);
        assert!(!open.is_empty());
        assert_eq!(open.last(&key(1)), Some(&'c'));
        assert_eq!(open.stop(&key(1)), Some('c'));
        assert_eq!(open.stop(&key(1)), Some('a'));
        assert_eq!(open.stop(&key(1)), None);
        assert_eq!(open.len(), 1);
        assert_eq!(open.give_up(), ['b']);
        assert!(open.is_empty());
    }

    #[test]
    fn the_oldest_spans_are_given_up_at_the_limit() {
        let mut open = OpenSpans::new(3);
        assert_eq!(open.start(key(1), 'a'), []);
        assert_eq!(open.start(key(2), 'b'), []);
        assert_eq!(open.start(key(1), 'c'), []);
        assert_eq!(open.start(key(3), 'd'), ['a', 'c']);
        assert_eq!(open.stop(&key(1)), None);
        assert_eq!(open.stop(&key(2)), Some('b'));
        assert_eq!(open.stop(&key(3)), Some('d'));
    }

    #[test]
    fn events_of_one_activity_and_task_are_spans_in_the_order_of_their_starts() {
        let event = |opcode, activity, task| {
            decoded(EventRecord {
                descriptor: EventDescriptor { opcode, task, ..EventDescriptor::default() },
                activity_id: Guid::from_u128(activity),
                ..EventRecord::default()
            })
        };
        let events = [
            event(STOP, 1, 0),
            event(START, 1, 0),
            event(START, 1, 0),
            event(START, 0, 0),
            event(3, 1, 0),
            event(STOP, 0, 0),
            event(STOP, 1, 5),
            event(STOP, 1, 0),
            event(STOP, 1, 0),
        ];
        let span = |start, stop| Span { start, stop };
        assert_eq!(spans(&events), [span(1, 8), span(2, 7)]);
    }
}
