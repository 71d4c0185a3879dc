//! The filters that the runtime applies after level and keywords.
//!
//! A filter never passes an event that the level or keywords reject (ETW-3.5.8).

use super::enable_info::EnableInfo;

/// The maximum number of ids in one filter (ETW-3.5.9).
const MAX_IDS: usize = 64;
/// The maximum size in bytes of the names in one filter: the documented limit of filter data.
const MAX_NAME_BYTES: usize = 4096;

/// A filter by event id (`EVENT_FILTER_TYPE_EVENT_ID`). `TraceLogging` events have no ids and
/// always pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventIdFilter {
    /// Set to record only the listed events. Otherwise, the listed events are dropped.
    pub keep: bool,
    /// The listed ids.
    pub ids: Vec<u16>,
}

/// A filter of `TraceLogging` events by name (`EVENT_FILTER_TYPE_EVENT_NAME`).
///
/// The filter has its own level and keywords, and examines only events that match them. All other
/// events pass, including manifest-based events (ETW-3.5.10).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventNameFilter {
    /// Set to record only the listed events. Otherwise, the listed events are dropped.
    pub keep: bool,
    /// The highest level of events to examine; 0 for all levels.
    pub level: u8,
    /// The match-any mask of the events to examine; 0 for all events.
    pub match_any: u64,
    /// The match-all mask of the events to examine.
    pub match_all: u64,
    /// The listed names.
    pub names: Vec<String>,
}

/// A session's filters for a provider.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventFilters {
    /// The filter by event id.
    pub ids: Option<EventIdFilter>,
    /// The filter by event name.
    pub names: Option<EventNameFilter>,
}

/// A schematized filter, in a format that the provider defines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterData {
    /// The filter's id, which the provider defines.
    pub id: u16,
    /// The filter's version.
    pub version: u8,
    /// The filter's bytes, at most 1,000.
    pub data: Vec<u8>,
}

/// Returns the bit that represents a session in a write's filter argument (ETW-3.5.5).
pub const fn instance_bit(session: u16) -> u64 {
    1 << (session % 64)
}

/// The values of an event that filters examine.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    pub id: u16,
    pub level: u8,
    pub keyword: u64,
    /// The name of a `TraceLogging` event.
    pub name: Option<&'a str>,
}

impl EventFilters {
    /// Returns whether no filter is set.
    pub(super) const fn is_empty(&self) -> bool {
        self.ids.is_none() && self.names.is_none()
    }

    /// Returns a description of an error in the filters, if there is one.
    pub(super) fn complaint(&self) -> Option<String> {
        if let Some(ids) = &self.ids
            && (ids.ids.is_empty() || ids.ids.len() > MAX_IDS)
        {
            return Some(format!(
                "a filter by event id must contain 1 to {MAX_IDS} ids, not {}",
                ids.ids.len()
            ));
        }
        let names = self.names.as_ref()?;
        let bytes: usize = names.names.iter().map(|name| name.len() + 1).sum();
        (names.names.is_empty() || bytes > MAX_NAME_BYTES).then(|| {
            format!(
                "a filter by event name must contain 1 to {MAX_NAME_BYTES} bytes of names, not \
                 {bytes}"
            )
        })
    }

    /// Returns whether the filters pass an event that has passed the level and keywords.
    pub(super) fn pass(&self, event: Subject<'_>) -> bool {
        let by_id = self
            .ids
            .as_ref()
            .filter(|_| event.name.is_none())
            .is_none_or(|filter| filter.ids.contains(&event.id) == filter.keep);
        let by_name = self.names.as_ref().zip(event.name).is_none_or(|(filter, name)| {
            let looked_at = EnableInfo {
                level: filter.level,
                match_any: filter.match_any,
                match_all: filter.match_all,
                ignore_keyword_0: false,
                all_without_any: true,
            };
            !looked_at.passes(event.level, event.keyword)
                || filter.names.iter().any(|listed| listed == name) == filter.keep
        });
        by_id && by_name
    }
}

/// Returns the event name in event metadata. The name follows the size and the tag. The top bit is
/// set in every byte of the tag except the last.
pub fn name_of(description: &[u8]) -> Option<&str> {
    let tag = description.get(2..)?;
    let name = tag.iter().position(|byte| byte & 0x80 == 0)? + 1;
    let rest = tag.get(name..)?;
    let end = rest.iter().position(|byte| *byte == 0)?;
    std::str::from_utf8(rest.get(..end)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn subject(id: u16, name: Option<&str>) -> Subject<'_> {
        Subject { id, level: 4, keyword: 1, name }
    }

    // R-O10
    #[test]
    fn ids_are_kept_or_dropped_and_names_have_none() {
        for keep in [true, false] {
            let filters =
                EventFilters { ids: Some(EventIdFilter { keep, ids: vec![1, 3] }), names: None };
            assert_eq!(filters.pass(subject(1, None)), keep);
            assert_eq!(filters.pass(subject(2, None)), !keep);
            assert!(filters.pass(subject(2, Some("Evt"))));
        }
    }

    // R-O10
    #[test]
    fn names_are_compared_only_within_the_filters_level_and_keywords() {
        let filters = |keep, level, match_any| EventFilters {
            ids: None,
            names: Some(EventNameFilter {
                keep,
                level,
                match_any,
                match_all: 0,
                names: vec!["Read".to_owned()],
            }),
        };
        assert!(filters(true, 0, 0).pass(subject(0, Some("Read"))));
        assert!(!filters(true, 0, 0).pass(subject(0, Some("Write"))));
        assert!(!filters(false, 4, 1).pass(subject(0, Some("Read"))));
        assert!(filters(false, 3, 1).pass(subject(0, Some("Read"))));
        assert!(filters(false, 4, 2).pass(subject(0, Some("Read"))));
        assert!(filters(true, 0, 0).pass(subject(0, None)));
    }

    #[test]
    fn filters_have_limits() {
        let ids = |count| EventFilters {
            ids: Some(EventIdFilter { keep: true, ids: (0..count).collect() }),
            names: None,
        };
        assert_eq!(ids(64).complaint(), None);
        assert!(ids(65).complaint().is_some() && ids(0).complaint().is_some());
        assert_eq!(EventFilters::default().complaint(), None);
    }

    #[test]
    fn a_name_is_found_after_the_tag() {
        assert_eq!(name_of(b"\x07\0\0Evt\0"), Some("Evt"));
        assert_eq!(name_of(b"\x08\0\x81\x01Evt\0"), Some("Evt"));
        assert_eq!(name_of(b"\x03\0\x81"), None);
        assert_eq!(name_of(b""), None);
    }
}
