//! Rundown protection of the registration's handle.

use crate::sync::{AtomicU32, Ordering, const_unless_loom};

/// Set while there is no valid handle.
const CLOSED: u32 = 1 << 31;

/// Counts the writes in progress, and admits no writes while it is closed.
///
/// A write enters and leaves with one atomic operation each, and never waits, at any IRQL. The
/// closing thread, at `PASSIVE_LEVEL`, waits until the count is zero.
///
/// The wait ends: a closed rundown admits no writes, and every write in progress is in one call of
/// `EtwWriteEx`, `EtwProviderEnabled` or `EtwEventEnabled`, which do not block and do not run the
/// driver's code. A writer at `DISPATCH_LEVEL` or above runs on another processor, because this
/// one runs the closing thread. A writer below `DISPATCH_LEVEL` may have been preempted on this
/// processor by the closing thread, if that has a higher priority. Spinning would keep such a
/// writer from running, so the closing thread sleeps between two checks.
pub struct Rundown {
    word: AtomicU32,
}

/// A write in progress; dropping it ends the write.
pub struct Pass<'a> {
    rundown: &'a Rundown,
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        // Release: the write happens before everything that the closing thread does once the
        // count is zero.
        self.rundown.word.fetch_sub(1, Ordering::Release);
    }
}

impl Rundown {
    const_unless_loom! {
        /// Creates a closed rundown.
        pub const fn new() -> Self {
            Self {
                word: AtomicU32::new(CLOSED),
            }
        }
    }

    /// Starts a write, or returns `None` while the rundown is closed.
    pub fn enter(&self) -> Option<Pass<'_>> {
        let pass = Pass { rundown: self };
        // Acquire: everything before `open` happens before the write. `CLOSED` is the top bit, so
        // that this is one instruction and a branch on its sign. While the rundown is closed,
        // dropping the pass restores the count. That is rare, because the masks are cleared first;
        // the closing thread then checks once more.
        (self.word.fetch_add(1, Ordering::Acquire) & CLOSED == 0).then_some(pass)
    }

    /// Opens the rundown.
    pub fn open(&self) {
        self.word.fetch_and(!CLOSED, Ordering::Release);
    }

    /// Closes the rundown, and waits until the writes in progress have finished. Between two checks
    /// it calls `pause`, which must let other threads run, including those of lower priority.
    pub fn close(&self, pause: impl Fn()) {
        let mut word = self.word.fetch_or(CLOSED, Ordering::Acquire);
        while word & !CLOSED != 0 {
            pause();
            word = self.word.load(Ordering::Acquire);
        }
    }
}
