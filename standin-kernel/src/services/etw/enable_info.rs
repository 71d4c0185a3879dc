//! The combination of several sessions' enable info.
//!
//! `wdk-etw` implements the enable state separately (`provider-lib/src/state.rs`). Tests compare
//! the two implementations, so neither uses the other.

/// One session's parameters for a provider or group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EnableInfo {
    /// The level, 0 to 255; 0 passes every level.
    pub level: u8,
    /// The match-any mask; 0 passes every keyword.
    pub match_any: u64,
    /// The match-all mask. An event's keyword must contain all its bits.
    pub match_all: u64,
    /// Set to drop events without a keyword.
    pub ignore_keyword_0: bool,
    /// Set if `match_all` applies even when `match_any` is 0 (O2).
    pub all_without_any: bool,
}

/// The values that a provider receives, which are the least restrictive ones (ETW-3.2.3, R-E4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Combined {
    /// The highest level of any session; 255 if any session has no limit.
    pub level: u8,
    /// The union of the sessions' match-any masks.
    pub match_any: u64,
    /// The intersection of the sessions' match-all masks.
    pub match_all: u64,
}

impl EnableInfo {
    /// Returns the level, with 0 replaced by 255 (ETW-3.3.2).
    const fn widest_level(self) -> u8 {
        if self.level == 0 { u8::MAX } else { self.level }
    }

    /// Returns the match-any mask, with 0 replaced by all bits (ETW-3.4.2).
    const fn widest_any(self) -> u64 {
        if self.match_any == 0 { u64::MAX } else { self.match_any }
    }

    /// Returns whether the session records an event of this level and keyword (ETW-3.3.1,
    /// ETW-3.4.1, ETW-3.4.7).
    #[must_use]
    pub const fn passes(self, level: u8, keyword: u64) -> bool {
        if keyword == 0 && self.ignore_keyword_0 {
            return false;
        }
        passes(level, keyword, self.widest_level(), self.widest_any(), self.effective_all())
    }

    /// Returns the effective match-all mask (ETW-3.4.4).
    const fn effective_all(self) -> u64 {
        if self.match_any == 0 && !self.all_without_any { 0 } else { self.match_all }
    }
}

/// Returns whether an event passes the check in R-E8. The caller must already have replaced a level
/// of 0 and a match-any mask of 0.
#[must_use]
pub const fn passes(level: u8, keyword: u64, to_level: u8, any: u64, all: u64) -> bool {
    level <= to_level && (keyword == 0 || (keyword & any != 0 && keyword & all == all))
}

impl Combined {
    /// Combines several sessions' enable info. Returns `None` if there are no sessions.
    pub fn combine(enable_infos: impl IntoIterator<Item = EnableInfo>) -> Option<Self> {
        enable_infos
            .into_iter()
            .map(|one| Self {
                level: one.widest_level(),
                match_any: one.widest_any(),
                match_all: one.effective_all(),
            })
            .reduce(|a, b| Self {
                level: a.level.max(b.level),
                match_any: a.match_any | b.match_any,
                match_all: a.match_all & b.match_all,
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn enable_info(level: u8, match_any: u64, match_all: u64) -> EnableInfo {
        EnableInfo { level, match_any, match_all, ignore_keyword_0: false, all_without_any: true }
    }

    // O2
    #[test]
    fn match_all_without_match_any_is_configurable() {
        let strict = enable_info(4, 0, 2);
        assert!(!strict.passes(4, 1) && strict.passes(4, 3));
        let lax = EnableInfo { all_without_any: false, ..strict };
        assert!(lax.passes(4, 1));
        assert_eq!(Combined::combine([lax]).map(|all| all.match_all), Some(0));
    }

    // R-E4
    #[test]
    fn level_is_the_maximum_any_the_union_all_the_intersection() {
        let combined = Combined::combine([enable_info(3, 1, 0b110), enable_info(1, 4, 0b011)]);
        assert_eq!(combined, Some(Combined { level: 3, match_any: 5, match_all: 0b010 }));
        assert_eq!(Combined::combine([]), None);
    }

    // R-O3
    #[test]
    fn level_0_and_match_any_0_mean_no_limit() {
        let combined = Combined::combine([enable_info(0, 0, 0), enable_info(3, 1, 1)]);
        assert_eq!(combined, Some(Combined { level: 255, match_any: u64::MAX, match_all: 0 }));
    }

    // R-K3, R-E8, R-O3
    #[test]
    fn a_session_records_what_its_level_and_keywords_pass() {
        let local_reads = enable_info(4, 1, 3);
        assert!(local_reads.passes(4, 3));
        assert!(!local_reads.passes(4, 1), "a read that is not local");
        assert!(!local_reads.passes(5, 3), "too detailed");
        assert!(local_reads.passes(0, 3), "level 0 passes every level");
        assert!(local_reads.passes(4, 0), "keyword 0 passes every keyword");
        let strict = EnableInfo { ignore_keyword_0: true, ..local_reads };
        assert!(!strict.passes(4, 0));
        assert!(strict.passes(4, 3));
    }
}
