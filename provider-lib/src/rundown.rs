//! Letting writes finish before a handle goes.

use crate::sync::{AtomicU32, Ordering, const_unless_loom};

/// Set while there is no handle to use.
const CLOSED: u32 = 1 << 31;

/// Counts the writes that are under way, and lets no new ones in once it is closed.
///
/// A write enters and leaves with one atomic operation each and never waits,
/// whatever its IRQL. Who closes it, at `PASSIVE_LEVEL`, waits until the count is
/// zero.
///
/// The wait ends: once closed, nobody new gets in, and everyone inside is in one call
/// of `EtwWriteEx`, `EtwProviderEnabled` or `EtwEventEnabled`, which do not block and
/// run none of the driver's code. A writer at `DISPATCH_LEVEL` or above is on another
/// processor, since this one runs the closer, and goes on by itself. A writer below
/// that may have been preempted on this very processor, though, by a closer of a higher
/// priority: a closer that only looked again and again would keep it from running. So
/// the closer sleeps between two looks.
pub struct Rundown {
    word: AtomicU32,
}

/// A write that is under way.
pub struct Pass<'a> {
    rundown: &'a Rundown,
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        // What the write did comes before whatever is done once the count is zero.
        self.rundown.word.fetch_sub(1, Ordering::Release);
    }
}

impl Rundown {
    const_unless_loom! {
        /// Closed.
        pub const fn new() -> Self {
            Self {
                word: AtomicU32::new(CLOSED),
            }
        }
    }

    /// Starts a write, unless it is closed.
    pub fn enter(&self) -> Option<Pass<'_>> {
        let pass = Pass { rundown: self };
        // What was done before opening comes before the write. (The top bit makes this one
        // instruction and a branch on its sign.) When it is closed, dropping the pass
        // takes the count back. Few come so late, since the masks are cleared before, and
        // who waits looks again.
        (self.word.fetch_add(1, Ordering::Acquire) & CLOSED == 0).then_some(pass)
    }

    /// Lets writes in.
    pub fn open(&self) {
        self.word.fetch_and(!CLOSED, Ordering::Release);
    }

    /// Lets no more writes in, and waits for those under way. `pause`, called between
    /// two looks, lets other threads run, those of a lower priority too.
    pub fn close(&self, pause: impl Fn()) {
        let mut word = self.word.fetch_or(CLOSED, Ordering::Acquire);
        while word & !CLOSED != 0 {
            pause();
            word = self.word.load(Ordering::Acquire);
        }
    }
}
