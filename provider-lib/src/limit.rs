//! Rate limits of events.

use crate::{
    Provider,
    sync::{AtomicU64, Ordering, const_unless_loom},
};

/// Skips occurrences of an event, so that the event can stay enabled on a hot path.
///
/// A limit counts occurrences, not time: it writes every n-th occurrence, beginning with the first,
/// or only the first. `emit!` and `event!` accept three forms:
///
/// - `every = 100` writes the occurrences 1, 101, 201 and so on at this call site;
/// - `once` writes the first occurrence;
/// - `limit = READS` uses a limit that the driver declares, in a `static` or in a structure such as
///   a device's context. Several call sites can share it, and the driver can read the number of
///   skipped events and reset the limit. A temporary value or a `const` is refused, because it
///   would admit every occurrence.
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
/// While no session enables the event, nothing is counted. The arguments of a skipped occurrence
/// are not evaluated. The limit counts skipped occurrences ([`Self::left_out`]) and, when it admits
/// the next one, adds them to the provider's counter
/// ([`Statistics::left_out`](crate::Statistics::left_out)). An occurrence that the limit admits
/// counts even if the write fails or only the match-all keywords exclude the event.
///
/// Every function is wait-free: one atomic addition for each occurrence, and no reader waits.
pub struct RateLimit {
    occurrences: AtomicU64,
    /// The number of occurrences from one written event to the next, or 0 to write only the first.
    every: u64,
    admitted: Multiples,
}

/// A set of numbers, tested without a division.
///
/// Multiplying by the inverse of the divisor's odd part, modulo 2^64, and rotating right by its
/// factors of two maps the divisor's multiples to 0, 1, 2 and so on, and all other numbers to
/// larger ones.
struct Multiples {
    inverse: u64,
    shift: u32,
    largest: u64,
}

impl Multiples {
    /// The set of 0 alone.
    const ZERO: Self = Self { inverse: 1, shift: 0, largest: 0 };

    /// Returns the set of a number's multiples, or [`Self::ZERO`] if the number is 0.
    const fn of(divisor: u64) -> Self {
        let Some(largest) = u64::MAX.checked_div(divisor) else {
            return Self::ZERO;
        };
        let shift = divisor.trailing_zeros();
        let odd = divisor >> shift;
        // Newton's method: an odd number is its own inverse modulo 8, and each step doubles the
        // number of bits.
        let mut inverse = odd;
        let mut bits = 3;
        while bits < u64::BITS {
            inverse = inverse.wrapping_mul(2_u64.wrapping_sub(odd.wrapping_mul(inverse)));
            bits = bits.saturating_mul(2);
        }
        Self { inverse, shift, largest }
    }

    #[inline]
    const fn contains(&self, number: u64) -> bool {
        number.wrapping_mul(self.inverse).rotate_right(self.shift) <= self.largest
    }
}

impl RateLimit {
    const_unless_loom! {
        /// Creates a limit that admits one of `count` occurrences, beginning with the first. A
        /// `count` of 0, which could come from a driver's settings, admits every occurrence, as 1
        /// does; `every = 0` in `emit!` and `event!` is a compile error.
        #[must_use]
        pub const fn every(count: u64) -> Self {
            let every = if count == 0 { 1 } else { count };
            Self {
                occurrences: AtomicU64::new(0),
                every,
                admitted: Multiples::of(every),
            }
        }
    }

    const_unless_loom! {
        /// Creates the limit for `every = …` in `emit!` and `event!`, a constant.
        #[doc(hidden)]
        #[must_use]
        #[track_caller]
        pub const fn __every(count: u64) -> Self {
            assert!(
                count != 0,
                "a rate limit writes one of at least 1 occurrences; to write none, remove the event"
            );
            Self::every(count)
        }
    }

    const_unless_loom! {
        /// Creates a limit that admits the first occurrence.
        #[must_use]
        pub const fn once() -> Self {
            Self {
                occurrences: AtomicU64::new(0),
                every: 0,
                admitted: Multiples::ZERO,
            }
        }
    }

    /// Returns the number of occurrences that the limit skipped since it was created or reset.
    #[must_use]
    pub fn left_out(&self) -> u64 {
        let occurrences = self.occurrences.load(Ordering::Relaxed);
        let written = match self.every {
            0 => occurrences.min(1),
            every => occurrences.div_ceil(every),
        };
        occurrences.saturating_sub(written)
    }

    /// Resets the limit, which then admits the next occurrence. A driver that calls this in its
    /// `on_enable` hook, for a `static` limit with [`RateLimit::once`], writes the event again
    /// whenever a session enables the provider or changes what it enables.
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
        // The counter needs no ordering: which of several concurrent occurrences is the n-th one is
        // unspecified.
        let before = limit.occurrences.fetch_add(1, Ordering::Relaxed);
        if limit.admitted.contains(before) {
            if before != 0 {
                // All limits share the provider's counter, so a limit adds to it only when it
                // admits an event, not for each skipped event.
                self.counters.count_left_out(limit.every.wrapping_sub(1));
            }
            true
        } else {
            if limit.every == 0 {
                self.counters.count_left_out(1);
            }
            false
        }
    }

    /// Does the same as [`Self::admits`], for a limit that admits only the first occurrence.
    #[doc(hidden)]
    #[inline]
    #[must_use]
    pub fn admits_once(&self, limit: &RateLimit) -> bool {
        let is_first = limit.occurrences.fetch_add(1, Ordering::Relaxed) == 0;
        if !is_first {
            self.counters.count_left_out(1);
        }
        is_first
    }
}

/// The option type of a rate limit that follows other options. It has no values: in `emit!` and
/// `event!`, the limit must come first.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "the rate limit must be the first option: `emit!(trace::event(…), every = 100, \
               activity = id)`",
    label = "move this option to the front"
)]
pub trait FirstOption {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn multiples_are_those_that_a_division_finds() {
        let edges = [1, 2, 3, 7, 100, 1 << 20, 3 << 40, 1 << 63, u64::MAX - 1, u64::MAX];
        for divisor in (1..200).chain(edges) {
            let multiples = Multiples::of(divisor);
            let near = edges.into_iter().flat_map(|edge| {
                let multiple = edge / divisor * divisor;
                (0..3).flat_map(move |more| {
                    [multiple.wrapping_add(more), multiple.wrapping_sub(more)]
                })
            });
            for number in (0..1000).chain(near) {
                assert_eq!(
                    multiples.contains(number),
                    number % divisor == 0,
                    "{number} and {divisor}"
                );
            }
        }
        assert!(Multiples::of(0).contains(0));
        assert!(!Multiples::of(0).contains(1));
    }
}
