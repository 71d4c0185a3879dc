//! Selection of events.

use etw_wire::Guid;

use crate::decode::Decoded;

/// A selection of events: an event is selected if it matches every criterion.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// The providers, by GUID or name; an empty list selects all.
    pub providers: Vec<String>,
    /// The names or ids of events; an empty list selects all.
    pub events: Vec<String>,
    /// The highest level; level 0 is always selected.
    pub level: Option<u8>,
    /// Keywords: events with any of them, and events without keywords, are selected.
    pub keyword: Option<u64>,
    /// An activity: its events, and events that are related to it, are selected.
    pub activity: Option<Guid>,
}

impl Selection {
    /// Returns true if the event is selected.
    #[must_use]
    pub fn wants(&self, event: &Decoded) -> bool {
        let provider = |wanted: &String| {
            event
                .provider_name
                .as_ref()
                .is_some_and(|name| name.eq_ignore_ascii_case(wanted))
                || wanted.parse() == Ok(event.provider)
        };
        let named = |wanted: &String| {
            event.event_name.as_deref() == Some(wanted) || wanted.parse() == Ok(event.descriptor.id)
        };
        let descriptor = &event.descriptor;
        (self.providers.is_empty() || self.providers.iter().any(provider))
            && (self.events.is_empty() || self.events.iter().any(named))
            && self.level.is_none_or(|level| descriptor.level <= level)
            && self
                .keyword
                .is_none_or(|mask| descriptor.keyword == 0 || descriptor.keyword & mask != 0)
            && self.activity.is_none_or(|activity| {
                event.activity == activity || event.related_activity == Some(activity)
            })
    }
}
