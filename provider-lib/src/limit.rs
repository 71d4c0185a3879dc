//! Rate limits of events.

use crate::{
    Provider,
    sync::{AtomicU64, Ordering, const_unless_loom},
};

/// Leaves out occurrences of an event, so that a hot path can keep the event enabled.
///
/// A limit counts occurrences, not time: it writes every n-th occurrence, beginning with the first,
/// or the first one only. `emit!` and `event!` have three forms of it:
///
/// - `every = 100` writes the occurrences 1, 101, 201 and so on of this place in the source;
/// - `once` writes the first occurrence;
/// - `limit = READS` uses a limit that the driver declares, in a `static` or in a structure such as a
///   device's context. Several places can share it, and the driver can read what it left out, and
///   reset it. A temporary value or a `const`, which would admit every occurrence, is refused.
///
/// ```
/// # #[wdk_etw::provider(name = "Contoso.Driver")]
/// # mod trace {
/// #     #[event(level = Verbose, keyword = none)]
/// #     pub fn polled(register: u32, left_out: u64);
/// #     #[event(level = Warning, keyword = none)]
/// #     pub fn obsolete_request();
/// # }
/// use wdk_etw::{RateLimit, emit};
///
/// static POLLS: RateLimit = RateLimit::every(1000);
///
/// # fn example(register: u32) {
/// emit!(trace::polled(register, POLLS.left_out()), limit = POLLS);
/// emit!(trace::obsolete_request(), once);
/// # }
/// ```
///
/// While no session enables the event, nothing is counted. The arguments of an occurrence that is
/// left out are not evaluated. The occurrences that are left out are counted here
/// ([`Self::left_out`]) and, when the limit admits the next one, in the provider
/// ([`Statistics::left_out`](crate::Statistics::left_out)). An occurrence that the limit admits
/// counts even if the write fails or only the match-all keywords exclude the event.
///
/// Every function is wait-free: one atomic addition for each occurrence, and no reader waits.
pub struct RateLimit {
    /// The number of occurrences from one that is written to the next, or 0 for the first only.
    every: u64,
    occurrences: AtomicU64,
}

impl RateLimit {
    const_unless_loom! {
        /// Creates a limit that admits one of `count` occurrences, beginning with the first.
        ///
        /// # Panics
        ///
        /// Panics if `count` is 0. In a `static`, which is where a limit belongs, that is a compile
        /// error.
        #[must_use]
        #[track_caller]
        pub const fn every(count: u64) -> Self {
            assert!(
                count != 0,
                "a rate limit writes one of at least 1 occurrences; to write none, remove the event"
            );
            Self {
                every: count,
                occurrences: AtomicU64::new(0),
            }
        }
    }

    const_unless_loom! {
        /// Creates a limit that admits the first occurrence.
        #[must_use]
        pub const fn once() -> Self {
            Self {
                every: 0,
                occurrences: AtomicU64::new(0),
            }
        }
    }

    /// Returns the number of occurrences that the limit left out since it was created or reset.
    #[must_use]
    pub fn left_out(&self) -> u64 {
        let occurrences = self.occurrences.load(Ordering::Relaxed);
        let written = match self.every {
            0 => occurrences.min(1),
            every => occurrences.div_ceil(every),
        };
        occurrences.saturating_sub(written)
    }

    /// Starts again: the limit admits the next occurrence. A driver that calls this in its
    /// `on_enable` hook writes a `once` event for each session that enables the provider.
    pub fn reset(&self) {
        self.occurrences.store(0, Ordering::Relaxed);
    }
}

impl Provider {
    /// Counts an occurrence of an event, and returns whether the limit admits it. `emit!` and
    /// `event!` call this function after the check that a session enables the event.
    #[inline]
    #[must_use]
    pub fn admits(&self, limit: &RateLimit) -> bool {
        // The counter orders nothing: which occurrence on which processor is the n-th one is
        // unspecified.
        let before = limit.occurrences.fetch_add(1, Ordering::Relaxed);
        match limit.every {
            0 if before == 0 => true,
            0 => {
                self.counters.count_left_out(1);
                false
            }
            every => {
                let admits = before.checked_rem(every) == Some(0);
                if admits && before != 0 {
                    // The provider's counter is shared by all limits, so those that leave out many
                    // events add to it once for each event that they admit.
                    self.counters.count_left_out(every.wrapping_sub(1));
                }
                admits
            }
        }
    }
}

/// The type of a rate limit's option behind other options, which has no values: `emit!` and
/// `event!` take the limit first.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "the rate limit must be the first option: `emit!(trace::event(…), every = 100, \
               activity = id)`",
    label = "move this option to the front"
)]
pub trait FirstOption {}
