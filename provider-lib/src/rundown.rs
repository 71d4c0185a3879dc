//! Rundown protection of the registration's handle.
//!
//! A write in progress owns the slot of its stack or, if that slot is taken, is counted beside it.
//! On a machine with many processors, a single slot would move its cache line to the writing
//! processor with each write. So there are slots in several cache lines.

use core::slice;

use crate::{
    opaque, stack_index,
    sync::{AtomicU32, Ordering, const_unless_loom},
};

/// The owner of a free slot.
const FREE: u32 = 0;
/// The owner of a slot that a write or the closed rundown has taken.
const TAKEN: u32 = 1;
/// Set in the count of a closed slot. The bits below count writes.
const CLOSED: u32 = 1 << 31;

/// The size of a cache line in bytes: `SYSTEM_CACHE_ALIGNMENT_SIZE` of ntddk.h.
#[cfg_attr(loom, expect(dead_code, reason = "the model has a slot in each stripe"))]
pub const LINE: usize = if cfg!(target_arch = "aarch64") { 128 } else { 64 };

/// A slot for one write in progress, and a count of the writes that found it taken.
#[derive(Debug)]
#[repr(C, align(8))]
struct Slot {
    /// [`FREE`] or [`TAKEN`]. Only the write that took a slot may change a taken slot.
    owner: AtomicU32,
    count: AtomicU32,
}

/// The number of slots in a stripe.
#[cfg(not(loom))]
const SLOTS: usize = LINE / size_of::<Slot>();
/// The number of slots in a stripe; a model needs only one.
#[cfg(loom)]
const SLOTS: usize = 1;

/// Slots for writes in progress, in their own cache line.
///
/// A stripe has several slots because indexing slots by a shifted stack address takes fewer
/// instructions than indexing lines by the address's page number.
#[derive(Debug)]
#[repr(C)]
#[cfg_attr(not(any(loom, target_arch = "aarch64")), repr(align(64)))]
#[cfg_attr(all(not(loom), target_arch = "aarch64"), repr(align(128)))]
pub struct Stripe {
    slots: [Slot; SLOTS],
}

const _: () = {
    // A stripe consists only of slots, so an array of stripes is also an array of slots.
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
            Self { owner: AtomicU32::new(TAKEN), count: AtomicU32::new(CLOSED) }
        }
    }

    /// Takes the slot if it is free. If it is taken, nothing changes.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the function is one atomic operation")]
    fn take(&self) -> bool {
        // Acquire: everything before the slot was freed happens before this. Setting the bit again
        // has no effect, and takes two instructions less than a compare-exchange. The model checker
        // would let another thread's `FREE` precede this store, which no CPU does.
        #[cfg(not(loom))]
        return self.owner.fetch_or(TAKEN, Ordering::Acquire) & TAKEN == FREE;
        #[cfg(loom)]
        return self
            .owner
            .compare_exchange(FREE, TAKEN, Ordering::Acquire, Ordering::Relaxed)
            .is_ok();
    }
}

/// Tracks the writes in progress, and admits no writes while it is closed.
///
/// A write never waits, at any IRQL. It takes the slot of its stack with one atomic operation, and
/// frees it with a store. The store cannot undo another thread's change, because nothing else
/// changes a taken slot. If the slot is taken, by another stack, by a write on the same stack that
/// this one interrupted, or by the closed rundown, the write is counted instead. The closing
/// thread, at `PASSIVE_LEVEL`, takes every slot and waits until all counts are zero.
///
/// The wait ends: every write in progress is in one call of `EtwWriteEx`, `EtwProviderEnabled` or
/// `EtwEventEnabled`, which do not block and do not run the driver's code, and the provider admits
/// no new writes ([`Provider`](crate::Provider) checks before it enters). A writer at
/// `DISPATCH_LEVEL` or above runs on another processor, because this one runs the closing thread. A
/// writer below `DISPATCH_LEVEL` may have been preempted on this processor by a closing thread of
/// higher priority. Spinning would keep such a writer from running, so the closing thread sleeps
/// between two checks.
///
/// A rundown without stripes protects nothing.
#[derive(Debug)]
#[repr(C)]
pub struct Rundown<S: ?Sized = [Stripe]> {
    stripes: S,
}

/// A write in progress; dropping it ends the write.
pub enum Guard<'a> {
    /// The write has taken the slot with this owner.
    Owns(&'a AtomicU32),
    /// The write is included in this count.
    Counted(&'a AtomicU32),
    /// The provider has no rundown.
    #[cfg_attr(debug_assertions, expect(dead_code, reason = "debug builds count these writes"))]
    Unprotected,
}

impl<'a> Guard<'a> {
    /// Counts a write of a provider without a rundown.
    #[cfg(debug_assertions)]
    pub fn counted(count: &'a AtomicU32) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self::Counted(count)
    }
}

impl Drop for Guard<'_> {
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "the function is one instruction where the variant is known"
    )]
    fn drop(&mut self) {
        // Release: the write happens before everything that the slot's next owner does or, once the
        // count is zero, the closing thread.
        match self {
            Self::Owns(owner) => owner.store(FREE, Ordering::Release),
            Self::Counted(count) => {
                count.fetch_sub(1, Ordering::Release);
            }
            Self::Unprotected => {}
        }
    }
}

#[cfg(not(loom))]
impl<const N: usize> Rundown<[Stripe; N]> {
    /// Creates a closed rundown with `N` stripes, a power of two or 0.
    pub const fn new() -> Self {
        const {
            assert!(
                N == 0 || (N.is_power_of_two() && N <= MAX_STRIPES),
                "a provider must have 1, 2, 4, 8, 16, 32 or 64 stripes"
            );
        }
        Self { stripes: [const { Stripe::new() }; N] }
    }
}

#[cfg(loom)]
impl<const N: usize> Rundown<[Stripe; N]> {
    /// Creates a closed rundown with `N` stripes, a power of two or 0.
    pub fn new() -> Self {
        const {
            assert!(N == 0 || (N.is_power_of_two() && N <= MAX_STRIPES));
        }
        Self { stripes: core::array::from_fn(|_| Stripe::new()) }
    }
}

/// The largest number of stripes.
const MAX_STRIPES: usize = 64;

impl Rundown {
    /// Returns all slots, stripe by stripe.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the function only takes an address")]
    const fn slots(&self) -> &[Slot] {
        let count = self.stripes.len().wrapping_mul(SLOTS);
        // SAFETY: a stripe consists only of slots, as asserted above, so an array of stripes is
        // also an array of slots.
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
        // Otherwise the compiler adds the array's offset in the provider last, with one more
        // instruction, and keeps the address and the index until the end of the write.
        let slots = opaque::slice(self.slots());
        let slot = slots.get(stack_index::stack_index::<SLOTS>(stripes))?;
        Some(opaque::reference(slot))
    }

    /// Returns whether the rundown has any slots, and so protects writes.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the answer is a constant for most callers")]
    pub const fn protects(&self) -> bool {
        !self.stripes.is_empty()
    }

    /// Starts a write in the slot of its stack. Returns `None` if the slot is taken; all slots are
    /// taken while the rundown is closed.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "inlined once, at the start of each event's write function"
    )]
    pub fn enter_fast(&self) -> Option<Guard<'_>> {
        let slot = self.slot()?;
        // A guard must not exist before the slot is taken: dropping it frees the slot.
        slot.take().then(|| Guard::Owns(&slot.owner))
    }

    /// Starts a write, or returns `None` while the rundown is closed.
    pub fn enter(&self) -> Option<Guard<'_>> {
        if let Some(guard) = self.enter_fast() {
            return Some(guard);
        }
        // Acquire: everything before `open` happens before the write. If the slot is closed,
        // dropping the guard restores the count, and a closing thread then checks once more.
        let count = &self.slot()?.count;
        let before = count.fetch_add(1, Ordering::Acquire);
        let guard = Guard::Counted(count);
        (before & CLOSED == 0).then_some(guard)
    }

    /// Opens the rundown. The slots for the fast path stay taken unless `is_fast`.
    pub fn open(&self, is_fast: bool) {
        for slot in self.slots() {
            slot.count.fetch_and(!CLOSED, Ordering::Release);
            if is_fast {
                slot.owner.store(FREE, Ordering::Release);
            }
        }
    }

    /// Closes the rundown that was opened with `is_fast`, and waits until the writes in progress
    /// have finished. Between two checks it calls `pause`, which must let other threads run,
    /// including threads of lower priority.
    ///
    /// The caller must keep new writes from entering, or the wait may not end.
    pub fn close(&self, is_fast: bool, pause: impl Fn()) {
        for slot in self.slots() {
            slot.count.fetch_or(CLOSED, Ordering::Relaxed);
        }
        for slot in self.slots() {
            // Acquire: the slot's last write happens before the code after `close`.
            while is_fast && !slot.take() {
                pause();
            }
            // Acquire: the counted writes also happen before the code after `close`.
            while slot.count.load(Ordering::Acquire) != CLOSED {
                pause();
            }
        }
    }
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

    /// Returns the index of the current stack's slot.
    fn slot_of(rundown: &Rundown) -> usize {
        let slot = ptr::from_ref(rundown.slot().unwrap());
        let first = rundown.slots().as_ptr();
        (slot.addr() - first.addr()) / size_of::<Slot>()
    }

    /// Returns the stripes that the stacks of 64 threads use.
    fn stripes_of_threads(rundown: &Rundown) -> HashSet<usize> {
        let barrier = std::sync::Barrier::new(64);
        thread::scope(|scope| {
            let threads: Vec<_> = (0..64)
                .map(|_| {
                    scope.spawn(|| {
                        // Keep all the threads' stacks alive at the same time.
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
            rundown.open(true);
            let pauses = Cell::new(0);
            // The second write finds the slot taken, so it is counted.
            let entered = RefCell::new([rundown.enter_fast(), rundown.enter()]);
            assert!(entered.borrow().iter().all(Option::is_some));
            rundown.close(true, || {
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

    // A write that interrupts another one on its stack begins and ends within it.
    #[test]
    fn an_interrupted_write_keeps_its_slot() {
        let rundown = Rundown::<[Stripe; 1]>::new();
        let rundown: &Rundown = &rundown;
        rundown.open(true);
        let outer = rundown.enter_fast();
        for _ in 0..3 {
            let nested = (rundown.enter(), rundown.enter());
            assert!(matches!(nested, (Some(Guard::Counted(_)), Some(Guard::Counted(_)))));
        }
        assert!(outer.is_some() && rundown.enter_fast().is_none());
        drop(outer);
        assert!(rundown.enter_fast().is_some(), "the slot is free again");
        rundown.close(true, || panic!("no write is in progress"));
        rundown.open(true);
        assert!(matches!(rundown.enter(), Some(Guard::Owns(_))));
    }

    // Nothing else orders the accesses, so ThreadSanitizer reports any ordering that is too weak.
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
                rundown.open(true);
                thread::yield_now();
                rundown.close(true, thread::yield_now);
                // SAFETY: the rundown is closed.
                unsafe { *protected.0.get() = 0 };
            }
            done.store(true, Ordering::Relaxed);
        });
        assert!(!closed_early.load(Ordering::Relaxed));
    }
}
