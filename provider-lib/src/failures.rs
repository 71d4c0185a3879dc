//! Counting the writes that ETW did not take.

use crate::{
    NtStatus,
    sync::{AtomicU64, Ordering, const_unless_loom},
};

/// The statuses that are counted apart.
const STATUSES: [NtStatus; 6] = [
    NtStatus::NO_MEMORY,
    NtStatus::BUFFER_OVERFLOW,
    NtStatus::INTEGER_OVERFLOW,
    NtStatus::LOG_FILE_FULL,
    NtStatus::INVALID_HANDLE,
    NtStatus::INVALID_PARAMETER,
];

/// How often writes failed, by status. Every number counts from the driver's load on.
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

    /// How many texts, blobs and arrays were cut because the event would not have
    /// fitted. A `FieldCut` event before the event in the trace says which.
    ///
    /// # IRQL
    ///
    /// Any.
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

    /// How many writes failed with this status; statuses that no page of ETW's
    /// names share one count.
    ///
    /// # IRQL
    ///
    /// Any.
    #[must_use]
    pub fn with_status(&self, status: NtStatus) -> u64 {
        self.counter(status).load(Ordering::Relaxed)
    }

    /// How many writes failed.
    ///
    /// # IRQL
    ///
    /// Any.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.counts
            .iter()
            .chain([&self.other])
            .fold(0, |sum: u64, count| {
                sum.saturating_add(count.load(Ordering::Relaxed))
            })
    }
}
