//! Notifications: what ETW tells a provider of its sessions.

use crate::{FilterData, Guid, Keyword, Level};

/// What the sessions that enable a provider want, taken together. Zeros, which
/// stand for "no limit", are spelled out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Composite {
    /// The most detailed level that a session wants.
    pub level: Level,
    /// Keywords of which some session wants any.
    pub match_any: Keyword,
    /// Keywords that every session wants in each event.
    pub match_all: Keyword,
}

impl Composite {
    /// Every event.
    pub const EVERYTHING: Self = Self {
        level: Level(u8::MAX),
        match_any: Keyword::from_bits(u64::MAX),
        match_all: Keyword::NONE,
    };

    /// The composite that ETW delivers: a level of 0 means every level, a
    /// match-any mask of 0 every keyword.
    ///
    /// # IRQL
    ///
    /// Any.
    #[must_use]
    pub const fn delivered(level: u8, match_any: u64, match_all: u64) -> Self {
        Self {
            level: if level == 0 {
                Self::EVERYTHING.level
            } else {
                Level(level)
            },
            match_any: if match_any == 0 {
                Self::EVERYTHING.match_any
            } else {
                Keyword::from_bits(match_any)
            },
            match_all: Keyword::from_bits(match_all),
        }
    }

    /// Whether an event of this level and keyword passes.
    ///
    /// # IRQL
    ///
    /// Any.
    #[must_use]
    pub const fn passes(&self, level: Level, keyword: Keyword) -> bool {
        let (keyword, any, all) = (keyword.bits(), self.match_any.bits(), self.match_all.bits());
        level.0 <= self.level.0 && (keyword == 0 || (keyword & any != 0 && keyword & all == all))
    }
}

/// What a notification is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// No session wants the provider's events any more.
    Disable,
    /// Sessions want events; their composite may have changed.
    Enable(Composite),
    /// The provider is to write events that describe its present state.
    CaptureState(Composite),
}

/// A notification, valid while it is handled.
///
/// A handler runs at `PASSIVE_LEVEL`. It is to record what it needs and return: it
/// must not wait, load anything, control sessions, or unregister the provider. It may
/// write events.
#[derive(Clone, Copy, Debug)]
pub struct Notification<'a> {
    /// What it is about.
    pub control: Control,
    /// The id that the controller passed; null if it passed none, if the provider was
    /// enabled before it was registered, and when a session stops.
    pub source: Guid,
    /// The sessions' filters, if any was set.
    pub filter: Option<FilterData<'a>>,
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    // R-E8, R-K3, R-O3
    #[test]
    fn an_event_passes_by_level_any_and_all() {
        let composite = Composite::delivered(4, 1, 3);
        let passes = |level, keyword| composite.passes(Level(level), Keyword::from_bits(keyword));
        assert!(passes(4, 3) && passes(0, 3) && passes(4, 0));
        assert!(!passes(5, 3) && !passes(4, 1) && !passes(4, 2));
    }

    // R-O3
    #[test]
    fn zeros_mean_no_limit() {
        assert_eq!(Composite::delivered(0, 0, 0), Composite::EVERYTHING);
    }
}
