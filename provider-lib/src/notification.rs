//! Notifications, which ETW sends when a session enables or disables a provider or requests its
//! state.

use crate::{FilterData, Guid, Keyword, Level};

/// The combined enable info of all sessions that enable a provider. A level or match-any mask of 0,
/// which means "no limit", is replaced by the maximum value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EnableInfo {
    /// The highest level that any session enables.
    pub level: Level,
    /// The union of the sessions' match-any keywords.
    pub match_any: Keyword,
    /// The intersection of the sessions' match-all keywords.
    pub match_all: Keyword,
}

impl EnableInfo {
    /// The enable info that every event passes.
    pub const EVERYTHING: Self = Self {
        level: Level(u8::MAX),
        match_any: Keyword::from_bits(u64::MAX),
        match_all: Keyword::NONE,
    };

    /// Creates the enable info from the values that ETW delivers: a level of 0 means all levels, and a
    /// match-any mask of 0 means all keywords, whatever the match-all mask is
    /// (`EVENT_FILTER_LEVEL_KW` of evntprov.h).
    #[must_use]
    pub const fn delivered(level: u8, match_any: u64, match_all: u64) -> Self {
        Self {
            level: if level == 0 { Self::EVERYTHING.level } else { Level(level) },
            match_any: if match_any == 0 {
                Self::EVERYTHING.match_any
            } else {
                Keyword::from_bits(match_any)
            },
            match_all: if match_any == 0 { Keyword::NONE } else { Keyword::from_bits(match_all) },
        }
    }

    /// Returns whether an event of this level and keyword passes.
    ///
    /// If the match-any mask contains all keywords, the match-all mask is not evaluated: a session
    /// may have passed a match-any mask of 0, and the documentation does not say clearly whether
    /// its match-all mask then applies. ETW decides for each session.
    #[must_use]
    pub const fn passes(&self, level: Level, keyword: Keyword) -> bool {
        let (keyword, any) = (keyword.bits(), self.match_any.bits());
        let all = if any == u64::MAX { 0 } else { self.match_all.bits() };
        level.0 <= self.level.0 && (keyword == 0 || (keyword & any != 0 && keyword & all == all))
    }
}

/// The reason for a notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// The last session disabled the provider.
    Disable,
    /// A session enabled the provider or may have changed its enable info.
    Enable(EnableInfo),
    /// A session requests events that describe the provider's current state.
    CaptureState(EnableInfo),
}

/// A notification, borrowed for the hook's call.
///
/// Hooks run at `PASSIVE_LEVEL`. A hook should record what it needs and return. It can write
/// events, but it must not wait, load images, control sessions, or unregister the provider.
#[derive(Clone, Copy, Debug)]
pub struct Notification<'a> {
    /// The reason for the notification.
    pub control: Control,
    /// The source id that the controller passed. It is null if the controller passed none, if a
    /// session enabled the provider before it was registered, and when a session stops.
    pub source: Guid,
    /// The sessions' filter data, if a session set a filter.
    pub filter: Option<FilterData<'a>>,
    /// The arguments of the enable callback, as ETW passed them.
    pub raw: RawNotification,
}

/// The arguments that ETW passed to the enable callback (`PETWENABLECALLBACK`), unchanged, for
/// diagnostics. [`Notification::control`] interprets them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RawNotification {
    /// The control code, one of `EVENT_CONTROL_CODE_*`.
    pub control_code: u32,
    /// The level. ETW documents 0 as "all levels".
    pub level: u8,
    /// The match-any mask. 0 means all keywords.
    pub match_any: u64,
    /// The match-all mask.
    pub match_all: u64,
    /// The type of the filter descriptor, one of `EVENT_FILTER_TYPE_*`, or 0 without a descriptor.
    pub filter_kind: u32,
    /// The size in bytes that the filter descriptor states, or 0 without a descriptor.
    pub filter_size: u32,
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    // R-E8, R-K3, R-O3
    #[test]
    fn an_event_passes_by_level_any_and_all() {
        let info = EnableInfo::delivered(4, 1, 3);
        let passes = |level, keyword| info.passes(Level(level), Keyword::from_bits(keyword));
        assert!(passes(4, 3) && passes(0, 3) && passes(4, 0));
        assert!(!passes(5, 3) && !passes(4, 1) && !passes(4, 2));
    }

    // R-K3: whether match-all then applies is unknown (ETW-3.4.4), so ETW decides.
    #[test]
    fn with_all_keywords_in_match_any_no_event_is_excluded_by_match_all() {
        for any in [0, u64::MAX] {
            let info = EnableInfo::delivered(4, any, 2);
            assert!(info.passes(Level(4), Keyword::from_bits(1)), "match-any {any:#x}");
        }
    }

    // R-O3
    #[test]
    fn zeros_mean_no_limit() {
        assert_eq!(EnableInfo::delivered(0, 0, 0), EnableInfo::EVERYTHING);
    }
}
