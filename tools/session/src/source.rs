//! The providers and groups that a session enables, and the filters for their events.

use std::fmt;

use etl_file::Guid;

/// A provider or provider group that a session enables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A provider, by its GUID.
    Provider(Guid),
    /// A provider group, by its GUID.
    Group(Guid),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Provider(guid) => write!(f, "provider {guid}"),
            Self::Group(guid) => write!(f, "group {guid}"),
        }
    }
}

/// The filter that a session passes when enabling a provider or group (`EnableTraceEx2`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// The highest level that passes; 0 passes all.
    pub level: u8,
    /// Match-any: events with at least one of these keywords pass; 0 passes all.
    pub any: u64,
    /// Match-all: events must also have all of these keywords.
    pub all: u64,
    /// The event ids that pass or do not pass (`EVENT_FILTER_TYPE_EVENT_ID`).
    pub ids: Option<Ids>,
}

/// An event id filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ids {
    /// Only events with these ids pass.
    Only(Vec<u16>),
    /// Only events with other ids pass.
    Without(Vec<u16>),
}
