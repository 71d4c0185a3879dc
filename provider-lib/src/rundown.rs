//! Rundown protection of the registration's handle.
//!
//! Writes in progress are counted. On a machine with many processors, a single count would move its
//! cache line to the writing processor with each write. So there are several counts, each in a
//! cache line of its own, and a write uses the count of its stack.

use core::slice;

use crate::{
    opaque, stack_index,
    sync::{AtomicU32, Ordering, const_unless_loom},
};

/// The unit of the reasons why a write cannot take the fast path; the bits below count the writes in
/// progress. Reasons are subtracted, so that the word is negative if there is one.
const REASON: u32 = 1 << 26;
/// The low bits, which count the writes in progress.
const COUNT: u32 = REASON - 1;
/// The units of the reason "no valid handle". It outweighs all [`Reason`]s, also when one thread
/// removes these while another still adds them: an open slot has at least −3 units, and a closed
/// one at most −13.
const CLOSED: u32 = 16;
/// A slot with more units than this is open.
const OPEN_ABOVE: i32 = -8;

const _: () = {
    let all = Reason::MatchAll as i32 + Reason::TraitsRefused as i32;
    let closed = CLOSED.cast_signed();
    assert!(-all > OPEN_ABOVE && all - closed <= OPEN_ABOVE);
    // The sum fits.
    assert!(closed + all <= 1 << (31 - REASON.trailing_zeros()));
};

/// A reason why writes must take the slow path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Sessions have match-all keywords, which the masks do not contain.
    MatchAll = 1,
    /// ETW refused the registration's traits, so manifest events must not use channel 12, which
    /// requires traits.
    TraitsRefused = 2,
}

/// The size of a cache line in bytes: `SYSTEM_CACHE_ALIGNMENT_SIZE` of ntddk.h.
#[cfg_attr(loom, expect(dead_code, reason = "the model has a slot in each stripe"))]
pub const LINE: usize = if cfg!(target_arch = "aarch64") { 128 } else { 64 };

/// A count of writes in progress.
#[derive(Debug)]
#[repr(C, align(8))]
struct Slot {
    word: AtomicU32,
}

/// The number of slots in a stripe.
#[cfg(not(loom))]
const SLOTS: usize = LINE / size_of::<Slot>();
/// The number of slots in a stripe: a model needs only one.
#[cfg(loom)]
const SLOTS: usize = 1;

/// Counts of writes in progress, in a cache line of their own.
///
/// A stripe has several counts because an address on the stack, shifted and used as the index of a
/// count, takes fewer instructions than its page's number, used as the index of a line.
#[derive(Debug)]
#[repr(C)]
#[cfg_attr(not(any(loom, target_arch = "aarch64")), repr(align(64)))]
#[cfg_attr(all(not(loom), target_arch = "aarch64"), repr(align(128)))]
pub struct Stripe {
    slots: [Slot; SLOTS],
}

const _: () = {
    // A stripe is all slots, so those of an array of stripes are an array.
    assert!(size_of::<Stripe>() == size_of::<Slot>() * SLOTS);
};

#[cfg(not(loom))]
impl Stripe {
    /// Creates a closed stripe.
    const fn new() -> Self {
        Self { slots: [const { Slot::new() }; SLOTS] }
    }
}

#[cfg(loom)]
impl Stripe {
    fn new() -> Self {
        Self { slots: core::array::from_fn(|_| Slot::new()) }
    }
}

impl Slot {
    const_unless_loom! {
        /// Creates a closed slot.
        const fn new() -> Self {
            Self {
                word: AtomicU32::new(CLOSED.wrapping_mul(REASON).wrapping_neg()),
            }
        }
    }

    /// Subtracts a number of reasons.
    fn add_reasons(&self, units: u32, order: Ordering) {
        self.word.fetch_sub(units.wrapping_mul(REASON), order);
    }

    fn remove_reasons(&self, units: u32, order: Ordering) {
        self.word.fetch_add(units.wrapping_mul(REASON), order);
    }
}

/// Counts the writes in progress, and admits no writes while it is closed.
///
/// A write enters and leaves with one atomic operation each, and never waits, at any IRQL. The
/// closing thread, at `PASSIVE_LEVEL`, waits until all counts are zero.
///
/// The wait ends: a closed rundown admits no writes, and every write in progress is in one call of
/// `EtwWriteEx`, `EtwProviderEnabled` or `EtwEventEnabled`, which do not block and do not run the
/// driver's code. A writer at `DISPATCH_LEVEL` or above runs on another processor, because this
/// one runs the closing thread. A writer below `DISPATCH_LEVEL` may have been preempted on this
/// processor by the closing thread, if that has a higher priority. Spinning would keep such a
/// writer from running, so the closing thread sleeps between two checks.
#[derive(Debug)]
#[repr(C)]
pub struct Rundown<S: ?Sized = [Stripe]> {
    stripes: S,
}

/// A write in progress; dropping it ends the write.
pub struct Guard<'a> {
    slot: &'a Slot,
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        // Release: the write happens before everything that the closing thread does once the
        // count is zero.
        self.slot.word.fetch_sub(1, Ordering::Release);
    }
}

#[cfg(not(loom))]
impl<const N: usize> Rundown<[Stripe; N]> {
    /// Creates a closed rundown with `N` stripes, a power of two.
    pub const fn new() -> Self {
        const {
            assert!(
                N.is_power_of_two() && N <= MAX_STRIPES,
                "a provider has 1, 2, 4, 8, 16, 32 or 64 stripes"
            );
        }
        Self { stripes: [const { Stripe::new() }; N] }
    }
}

#[cfg(loom)]
impl<const N: usize> Rundown<[Stripe; N]> {
    /// Creates a closed rundown with `N` stripes, a power of two.
    pub fn new() -> Self {
        const {
            assert!(N.is_power_of_two() && N <= MAX_STRIPES);
        }
        Self { stripes: core::array::from_fn(|_| Stripe::new()) }
    }
}

/// The largest number of stripes.
const MAX_STRIPES: usize = 64;

impl Rundown {
    /// Returns all slots, those of a stripe one after the other.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the function only takes an address")]
    const fn slots(&self) -> &[Slot] {
        let count = self.stripes.len().wrapping_mul(SLOTS);
        // SAFETY: a stripe is all slots, as asserted above, so those of an array of stripes are an
        // array.
        unsafe { slice::from_raw_parts(self.stripes.as_ptr().cast(), count) }
    }

    /// Returns the slot of the current stack.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "the function compiles to a few instructions at the start of each write"
    )]
    fn slot(&self) -> Option<&Slot> {
        let stripes = self.stripes.len();
        if stripes == 1 {
            return self.slots().first();
        }
        // Otherwise the compiler adds the array's offset in the provider last, by one more
        // instruction, and keeps the address and the index until the end of the write.
        let slots = opaque::slice(self.slots());
        let slot = slots.get(stack_index::stack_index::<SLOTS>(stripes))?;
        Some(opaque::reference(slot))
    }

    /// Starts a write on the fast path. Returns `None` while the rundown is closed or there is a
    /// [`Reason`] for the slow path.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "inlined once, at the start of each event's write function"
    )]
    pub fn enter_fast(&self) -> Option<Guard<'_>> {
        let guard = Guard { slot: self.slot()? };
        // Acquire: everything before `open` happens before the write. The word is negative if there
        // is a reason, so that this is one instruction and a branch on the sign. Dropping the guard
        // restores the count; a closing thread then checks once more.
        let before = guard.slot.word.fetch_add(1, Ordering::Acquire);
        (before.cast_signed() >= 0).then_some(guard)
    }

    /// Starts a write, or returns `None` while the rundown is closed.
    pub fn enter(&self) -> Option<Guard<'_>> {
        let slot = self.slot()?;
        // No mask keeps these writes away from a closed rundown, so without this check many of them
        // could let the closing thread see a count again and again.
        if units(slot.word.load(Ordering::Relaxed)) <= OPEN_ABOVE {
            return None;
        }
        let guard = Guard { slot };
        let before = guard.slot.word.fetch_add(1, Ordering::Acquire);
        (units(before) > OPEN_ABOVE).then_some(guard)
    }

    /// Opens the rundown.
    pub fn open(&self) {
        for slot in self.slots() {
            slot.remove_reasons(CLOSED, Ordering::Release);
        }
    }

    /// Closes the rundown, and waits until the writes in progress have finished. Between two checks
    /// it calls `pause`, which must let other threads run, including those of lower priority.
    pub fn close(&self, pause: impl Fn()) {
        for slot in self.slots() {
            slot.add_reasons(CLOSED, Ordering::Acquire);
        }
        for slot in self.slots() {
            // The slot admits no writes any more.
            while slot.word.load(Ordering::Acquire) & COUNT != 0 {
                pause();
            }
        }
    }

    /// Adds a reason for the slow path. Every call that adds a reason must be followed by one that
    /// removes it before the next that adds it; they may run at the same time.
    pub fn add_reason(&self, reason: Reason) {
        for slot in self.slots() {
            slot.add_reasons(reason as u32, Ordering::Relaxed);
        }
    }

    /// Removes a reason for the slow path; see [`Self::add_reason`].
    pub fn remove_reason(&self, reason: Reason) {
        for slot in self.slots() {
            slot.remove_reasons(reason as u32, Ordering::Relaxed);
        }
    }
}

/// Returns the reasons in a word as a signed number of units.
const fn units(word: u32) -> i32 {
    word.cast_signed() >> REASON.trailing_zeros()
}

#[cfg(all(test, not(loom)))]
mod tests {
    use core::{
        cell::{Cell, RefCell, UnsafeCell},
        ptr,
        sync::atomic::AtomicBool,
    };
    extern crate std;
    use std::{collections::HashSet, thread, vec::Vec};

    use super::*;

    /// Returns the slot of the current stack as a number.
    fn slot_of(rundown: &Rundown) -> usize {
        let slot = ptr::from_ref(rundown.slot().unwrap());
        let first = rundown.slots().as_ptr();
        (slot.addr() - first.addr()) / size_of::<Slot>()
    }

    /// Returns the stripes of 64 threads' stacks.
    fn stripes_of_threads(rundown: &Rundown) -> HashSet<usize> {
        let barrier = std::sync::Barrier::new(64);
        thread::scope(|scope| {
            let threads: Vec<_> = (0..64)
                .map(|_| {
                    scope.spawn(|| {
                        // The threads' stacks exist at the same time.
                        barrier.wait();
                        slot_of(rundown) / SLOTS
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        })
    }

    #[test]
    fn the_stacks_of_threads_use_most_stripes() {
        let (one, two) = (Rundown::<[Stripe; 1]>::new(), Rundown::<[Stripe; 2]>::new());
        let (all, most) = (Rundown::<[Stripe; 16]>::new(), Rundown::<[Stripe; 64]>::new());
        let sizes = [&one as &Rundown, &two, &all, &most].map(|rundown| {
            let stripes = stripes_of_threads(rundown);
            assert!(stripes.iter().all(|stripe| *stripe < rundown.stripes.len()));
            stripes.len()
        });
        let [one, two, all, most] = sizes;
        assert_eq!((one, two), (1, 2));
        assert!(all >= 8 && most >= 16, "{all} of 16, {most} of 64");
    }

    #[test]
    fn a_pass_keeps_every_number_of_stripes_from_closing() {
        fn check<const N: usize>() {
            let rundown = Rundown::<[Stripe; N]>::new();
            let rundown: &Rundown = &rundown;
            assert!(rundown.enter().is_none());
            rundown.open();
            let pauses = Cell::new(0);
            let entered = RefCell::new([rundown.enter_fast(), rundown.enter_fast()]);
            assert!(entered.borrow().iter().all(Option::is_some));
            rundown.close(|| {
                pauses.set(pauses.get() + 1);
                match pauses.get() {
                    3 => entered.borrow_mut()[0] = None,
                    5 => entered.borrow_mut()[1] = None,
                    _ => {}
                }
            });
            assert_eq!(pauses.get(), 5, "{N} stripes");
            assert!(rundown.enter_fast().is_none());
        }
        check::<1>();
        check::<2>();
        check::<8>();
        check::<16>();
        check::<32>();
        check::<64>();
    }

    /// A value that only the closing thread writes, and only while the rundown is closed.
    struct Protected(UnsafeCell<u64>);

    // SAFETY: the rundown keeps the writes of the closing thread apart from the reads of others.
    unsafe impl Sync for Protected {}

    // Nothing else orders the accesses, so ThreadSanitizer reports every order that is too weak.
    #[test]
    fn threads_read_what_the_closing_thread_writes_only_while_it_is_open() {
        const ROUNDS: u64 = 300;
        let rundown = Rundown::<[Stripe; 4]>::new();
        let rundown: &Rundown = &rundown;
        let protected = Protected(UnsafeCell::new(0));
        let (protected, done) = (&protected, &AtomicBool::new(false));
        let closed_early = &AtomicBool::new(false);
        // The number of passes of each reader.
        let passes = &[const { AtomicU32::new(0) }; 4];
        thread::scope(|scope| {
            for (number, passes) in passes.iter().enumerate() {
                scope.spawn(move || {
                    while !done.load(Ordering::Relaxed) {
                        let guard =
                            if number % 2 == 0 { rundown.enter() } else { rundown.enter_fast() };
                        if let Some(_guard) = guard {
                            // SAFETY: the guard keeps the rundown from being closed.
                            let value = unsafe { *protected.0.get() };
                            passes.fetch_add(1, Ordering::Relaxed);
                            if value == 0 {
                                closed_early.store(true, Ordering::Relaxed);
                            }
                        }
                        thread::yield_now();
                    }
                });
            }
            let mut round = 0;
            while round < ROUNDS || passes.iter().any(|one| one.load(Ordering::Relaxed) == 0) {
                round += 1;
                // SAFETY: the rundown is closed.
                unsafe { *protected.0.get() = round };
                rundown.open();
                thread::yield_now();
                rundown.close(thread::yield_now);
                // SAFETY: the rundown is closed.
                unsafe { *protected.0.get() = 0 };
            }
            done.store(true, Ordering::Relaxed);
        });
        assert!(!closed_early.load(Ordering::Relaxed));
    }
}
