//! The spans that threads have entered.
//!
//! A kernel has no thread-local storage for drivers, but ETW keeps an activity id for each thread.
//! Entering a span makes its activity the thread's; leaving it restores the previous activity. This
//! table keeps that previous activity for each span that a thread has entered.
//!
//! All functions are called at `APC_LEVEL` or below, except [`Entered::enter_in_vain`] and
//! [`Entered::leave_later`]. A thread accesses only its own entries; in other threads' entries it
//! reads only the thread id. So only one thread accesses an entry's contents. An APC or a DPC may
//! interrupt the thread during an access, and ends before the thread continues.

use wdk_etw::ActivityId;

use crate::{
    spans::AtomicId,
    sync::{AtomicU32, AtomicU64, Ordering, array_of, const_unless_loom},
};

/// The span id of an entry that its thread left above `APC_LEVEL`.
const LEFT: u64 = u64::MAX;

/// A span that a thread has entered.
struct Entry {
    /// The thread, or 0 if the entry is free.
    thread: AtomicU64,
    /// The span's id, [`LEFT`], or 0 before the entry is complete.
    span: AtomicU64,
    /// Increases with each entry.
    order: AtomicU64,
    /// The number of times that the thread, or code that interrupted it, entered the span again at
    /// `DISPATCH_LEVEL`, without effect, and has not left it yet.
    in_vain: AtomicU32,
    activity: AtomicId,
    /// The thread's previous activity.
    previous: AtomicId,
}

impl Entry {
    const_unless_loom! {
        const fn new() -> Self {
            Self {
                thread: AtomicU64::new(0),
                span: AtomicU64::new(0),
                order: AtomicU64::new(0),
                in_vain: AtomicU32::new(0),
                activity: AtomicId::new(),
                previous: AtomicId::new(),
            }
        }
    }

    fn span(&self) -> u64 {
        self.span.load(Ordering::Relaxed)
    }

    fn order(&self) -> u64 {
        self.order.load(Ordering::Relaxed)
    }

    /// Ends an entry that [`Entered::enter_in_vain`] recorded, and returns whether there was one.
    fn end_in_vain(&self) -> bool {
        let fewer = self.in_vain.load(Ordering::Relaxed).checked_sub(1);
        if let Some(fewer) = fewer {
            self.in_vain.store(fewer, Ordering::Relaxed);
        }
        fewer.is_some()
    }
}

/// The activities of a thread that leaves a span: if the thread's activity is the first, the second
/// replaces it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Left {
    /// The span's activity.
    pub activity: ActivityId,
    /// The thread's previous activity.
    pub previous: ActivityId,
}

/// The spans that threads have entered, at most `N` in total.
pub struct Entered<const N: usize> {
    entries: [Entry; N],
    order: AtomicU64,
}

impl<const N: usize> Entered<N> {
    const_unless_loom! {
        /// Creates an empty table.
        pub const fn new() -> Self {
            Self {
                entries: array_of!(Entry::new()),
                order: AtomicU64::new(0),
            }
        }
    }

    /// Records that a thread enters a span: the thread's activity `previous` is being replaced by
    /// `activity`. Returns false if the table is full.
    pub fn enter(
        &self,
        thread: u64,
        span: u64,
        activity: ActivityId,
        previous: ActivityId,
    ) -> bool {
        let claimed = self.entries.iter().find(|entry| {
            // Acquire, paired with the Release of `free`: the previous thread's accesses are over.
            entry.thread.compare_exchange(0, thread, Ordering::Acquire, Ordering::Relaxed).is_ok()
        });
        let Some(entry) = claimed else {
            return false;
        };
        let order = self.order.fetch_add(1, Ordering::Relaxed);
        entry.order.store(order, Ordering::Relaxed);
        entry.in_vain.store(0, Ordering::Relaxed);
        entry.activity.store(activity);
        entry.previous.store(previous);
        entry.span.store(span, Ordering::Relaxed);
        true
    }

    /// Returns the entries of a thread.
    fn entries_of(&self, thread: u64) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(move |entry| {
            entry.thread.load(Ordering::Relaxed) == thread && entry.span() != 0
        })
    }

    fn newest(&self, thread: u64, span: u64) -> Option<&Entry> {
        self.entries_of(thread)
            .filter(|entry| entry.span() == span)
            .max_by_key(|entry| entry.order())
    }

    /// Records that a thread leaves a span. Returns the activities to exchange, or `None` if the
    /// thread did not enter the span or has entered another since. Leaving that other span then
    /// restores the activity from before both. If the thread also entered the span at `DISPATCH_LEVEL`,
    /// ends only the entry recorded by [`Self::enter_in_vain`].
    pub fn leave(&self, thread: u64, span: u64) -> Option<Left> {
        let entry = self.newest(thread, span)?;
        if entry.end_in_vain() {
            return None;
        }
        let next = self
            .entries_of(thread)
            .filter(|other| other.order() > entry.order())
            .min_by_key(|other| other.order());
        let left = Left { activity: entry.activity.load(), previous: entry.previous.load() };
        if let Some(next) = next {
            next.previous.store(left.previous);
        }
        entry.span.store(0, Ordering::Relaxed);
        entry.thread.store(0, Ordering::Release);
        next.is_none().then_some(left)
    }

    /// Records that code at `DISPATCH_LEVEL` enters a span without effect. The code may be a DPC,
    /// whose current thread is the thread it interrupted, so leaving it must not leave that thread's
    /// span. Has no effect before the thread enters the span: guards usually end in the reverse order,
    /// and the span's later entry then ends first.
    pub fn enter_in_vain(&self, thread: u64, span: u64) {
        if let Some(entry) = self.newest(thread, span) {
            entry.in_vain.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Records that a thread leaves a span at `DISPATCH_LEVEL`, where its activity cannot be
    /// changed; [`Self::leave_now`] changes it later. If the span was entered at `DISPATCH_LEVEL`,
    /// ends only the entry recorded by [`Self::enter_in_vain`].
    pub fn leave_later(&self, thread: u64, span: u64) {
        let Some(entry) = self.newest(thread, span) else {
            return;
        };
        if !entry.end_in_vain() {
            entry.span.store(LEFT, Ordering::Relaxed);
        }
    }

    /// Leaves, as [`Self::leave`] does, each span that the thread left with [`Self::leave_later`].
    pub fn leave_now(&self, thread: u64) -> Option<Left> {
        while self.newest(thread, LEFT).is_some() {
            let left = self.leave(thread, LEFT);
            if left.is_some() {
                return left;
            }
        }
        None
    }

    /// Returns the span that a thread entered last, with its activity.
    pub fn current(&self, thread: u64) -> Option<(u64, ActivityId)> {
        self.entries_of(thread)
            .max_by_key(|entry| entry.order())
            .map(|entry| (entry.span(), entry.activity.load()))
    }
}
