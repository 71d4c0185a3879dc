//! Counters of failed writes.

use crate::{
    NtStatus,
    sync::{AtomicU64, Ordering, const_unless_loom},
};

/// The statuses with their own counters: those that the ETW documentation lists.
pub const STATUSES: [NtStatus; 6] = [
    NtStatus::NO_MEMORY,
    NtStatus::BUFFER_OVERFLOW,
    NtStatus::INTEGER_OVERFLOW,
    NtStatus::LOG_FILE_FULL,
    NtStatus::INVALID_HANDLE,
    NtStatus::INVALID_PARAMETER,
];

/// The numbers of failed writes, by status, since the driver was loaded.
pub struct Failures {
    counts: [AtomicU64; STATUSES.len()],
    other: AtomicU64,
    cut: AtomicU64,
}

impl Failures {
    const_unless_loom! {
        pub(crate) const fn new() -> Self {
            Self {
                counts: [
                    AtomicU64::new(0),
                    AtomicU64::new(0),
                    AtomicU64::new(0),
                    AtomicU64::new(0),
                    AtomicU64::new(0),
                    AtomicU64::new(0),
                ],
                other: AtomicU64::new(0),
                cut: AtomicU64::new(0),
            }
        }
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn count(&self, status: NtStatus) {
        self.counter(status).fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_cut(&self) {
        self.cut.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the number of strings, byte strings and arrays that were cut because they did not
    /// fit in the event, plus the numbers that were limited to the field's `#[repr(…)]`. In the
    /// trace, an event `FieldCut` before the event identifies the field.
    #[must_use]
    pub fn cut(&self) -> u64 {
        self.cut.load(Ordering::Relaxed)
    }

    fn counter(&self, status: NtStatus) -> &AtomicU64 {
        STATUSES
            .iter()
            .zip(&self.counts)
            .find(|(known, _)| **known == status)
            .map_or(&self.other, |(_, counter)| counter)
    }

    /// Returns the number of writes that failed with this status. Statuses that the ETW
    /// documentation does not list share one counter.
    #[must_use]
    pub fn with_status(&self, status: NtStatus) -> u64 {
        self.counter(status).load(Ordering::Relaxed)
    }

    /// Returns the number of writes that failed with a status that has no counter of its own.
    pub(crate) fn otherwise(&self) -> u64 {
        self.other.load(Ordering::Relaxed)
    }

    /// Returns the number of failed writes.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.counts
            .iter()
            .chain([&self.other])
            .fold(0, |sum: u64, count| sum.saturating_add(count.load(Ordering::Relaxed)))
    }
}
