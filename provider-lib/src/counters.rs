//! A provider's counters.

use crate::{
    Failures, stack_index,
    sync::{AtomicU64, Ordering, const_unless_loom},
};

/// A provider's counters. They share no cache line with the enable state's masks, which every
/// write site reads: counting on one processor must not slow the checks on the others.
#[cfg_attr(not(target_arch = "aarch64"), repr(align(64)))]
#[cfg_attr(target_arch = "aarch64", repr(align(128)))]
pub struct Counters {
    pub failures: Failures,
    dropped: AtomicU64,
    left_out: AtomicU64,
    /// The number of writes in progress, for a provider without a rundown.
    #[cfg(debug_assertions)]
    pub unprotected: crate::sync::AtomicU32,
    /// The number of notifications that are being handled. Their writes need no rundown, because ETW
    /// waits for them before it releases the handle.
    #[cfg(debug_assertions)]
    pub notified: crate::sync::AtomicU32,
}

const _: () = {
    // The alignment is a cache line's size, so the counters fill whole lines.
    assert!(align_of::<Counters>() >= 64);
    assert!(size_of::<Counters>().is_multiple_of(64));
};

impl Counters {
    const_unless_loom! {
        pub const fn new() -> Self {
            Self {
                failures: Failures::new(),
                dropped: AtomicU64::new(0),
                left_out: AtomicU64::new(0),
                #[cfg(debug_assertions)]
                unprotected: crate::sync::AtomicU32::new(0),
                #[cfg(debug_assertions)]
                notified: crate::sync::AtomicU32::new(0),
            }
        }
    }

    /// Returns whether a write without a rundown is in progress outside the provider's hooks. If
    /// hooks are running, waits for them, because their writes are counted too.
    #[cfg(debug_assertions)]
    pub fn is_writing(&self) -> bool {
        loop {
            let before = self.notified.load(Ordering::SeqCst);
            // A write is included in this count, or sees the reason that closes the provider.
            if self.unprotected.load(Ordering::SeqCst) == 0 {
                return false;
            }
            if before == 0 && self.notified.load(Ordering::SeqCst) == 0 {
                return true;
            }
            crate::ffi::pause();
        }
    }

    #[cold]
    #[inline(never)]
    pub fn count_dropped(&self) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
    }

    pub fn count_left_out(&self, events: u64) {
        self.left_out.fetch_add(events, Ordering::Relaxed);
    }

    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    pub fn left_out(&self) -> u64 {
        self.left_out.load(Ordering::Relaxed)
    }
}

/// The number of events that a provider has written, counted in several cache lines.
///
/// [`Statistics::written`](crate::Statistics::written) returns it for providers with `statistics`.
#[derive(Debug)]
pub struct WrittenCounts {
    lines: [Line; LINES],
}

/// The number of lines.
const LINES: usize = 16;

/// A count in its own cache line.
#[derive(Debug)]
#[cfg_attr(not(target_arch = "aarch64"), repr(align(64)))]
#[cfg_attr(target_arch = "aarch64", repr(align(128)))]
struct Line(AtomicU64);

impl WrittenCounts {
    /// Creates counts of 0.
    #[must_use]
    #[cfg(not(loom))]
    pub const fn new() -> Self {
        Self { lines: [const { Line(AtomicU64::new(0)) }; LINES] }
    }

    /// Creates counts of 0.
    #[must_use]
    #[cfg(loom)]
    pub fn new() -> Self {
        Self { lines: core::array::from_fn(|_| Line(AtomicU64::new(0))) }
    }

    /// Counts an event in the line of the current stack.
    #[inline]
    pub(crate) fn count(&self) {
        if let Some(line) = self.lines.get(stack_index::stack_index::<1>(LINES)) {
            line.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn sum(&self) -> u64 {
        self.lines.iter().fold(0, |sum, line| sum.wrapping_add(line.0.load(Ordering::Relaxed)))
    }
}

impl Default for WrittenCounts {
    fn default() -> Self {
        Self::new()
    }
}
