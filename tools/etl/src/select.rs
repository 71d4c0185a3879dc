//! Choosing events.

use etw_wire::Guid;

use crate::decode::Decoded;

/// Which events are wanted: those that pass everything that is said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// Events of these providers, by GUID or name; of all, if there are none.
    pub providers: Vec<String>,
    /// Events with these names or ids; all, if there are none.
    pub events: Vec<String>,
    /// Events up to this level, level 0 always.
    pub level: Option<u8>,
    /// Events with any of these keywords, and those without keywords.
    pub keyword: Option<u64>,
    /// Events of this activity, and those that come from it.
    pub activity: Option<Guid>,
}

impl Selection {
    /// Whether an event is wanted.
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
            event.event_name.as_ref() == Some(wanted) || wanted.parse() == Ok(event.descriptor.id)
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
