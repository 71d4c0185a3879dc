//! The pool from which drivers allocate.

use std::{
    cell::Cell,
    collections::{BTreeMap, VecDeque},
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use parking_lot::{RwLock, RwLockWriteGuard};

use crate::{
    execution::{call::Call, environment::Environment, thread::Thread},
    ground::{
        arena::{Arena, PAGE, UNINITIALIZED},
        backtrace::Backtrace,
    },
};

/// The number of freed blocks that are remembered, to distinguish a double free from a free of a
/// wrong address.
const REMEMBERED: usize = 4096;

/// The size in bytes of a cache line, to which blocks are aligned on request.
const CACHE_LINE: usize = 64;

/// A pool tag: four characters that identify the purpose of an allocation.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Tag(pub u32);

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("'")?;
        for byte in self.0.to_le_bytes() {
            if byte.is_ascii_graphic() || byte == b' ' {
                write!(f, "{}", char::from(byte))?;
            } else {
                write!(f, "\\x{byte:02x}")?;
            }
        }
        f.write_str("'")
    }
}

/// A driver's request for pool.
#[derive(Clone, Copy)]
pub struct Wanted {
    /// The size in bytes.
    pub size: usize,
    /// The pool tag.
    pub tag: Tag,
    /// Set if the block is from paged pool.
    pub paged: bool,
    /// Set for `POOL_FLAG_UNINITIALIZED`.
    pub uninitialized: bool,
    /// Set if the block is aligned to a cache line.
    pub cache_aligned: bool,
}

/// The addresses that a thread recently passed and that were not in freed blocks, with the pool's
/// change count at that time.
#[derive(Default)]
pub struct SoundAddresses([Cell<(u64, u64)>; 16]);

impl SoundAddresses {
    fn slot(&self, address: u64) -> Option<&Cell<(u64, u64)>> {
        // Blocks are aligned to 16 bytes.
        let number = usize::try_from(address >> 4).ok()?;
        self.0.get(number % self.0.len())
    }
}

/// One allocation.
#[derive(Clone)]
pub struct Allocation {
    /// The requested size in bytes.
    pub size: usize,
    /// The pool tag.
    pub tag: Tag,
    /// Set if the block is from paged pool.
    pub paged: bool,
    guarded: bool,
    /// The size of the memory in bytes, including padding for the alignment.
    reserved: usize,
    /// The call that allocated it.
    pub allocated_by: Call,
    /// The calls that led to the allocation.
    pub backtrace: Backtrace,
}

/// A block that was freed.
#[derive(Clone)]
pub struct Freed {
    address: u64,
    size: usize,
    /// The pool tag.
    pub tag: Tag,
    /// The call that freed it.
    pub by: Call,
    /// The calls that led to the free.
    pub backtrace: Backtrace,
}

/// The reason that a block was not freed.
pub enum FreeError {
    /// The block had already been freed.
    Twice(Box<Freed>),
    /// The address is not a pool block.
    NotPool,
}

/// The pool of a kernel.
pub struct Pool {
    environment: Arc<Environment>,
    /// Set to place every block before inaccessible memory, and to make freed blocks inaccessible.
    special: bool,
    state: RwLock<State>,
    /// The number of state changes, plus 1. Changed while the state is locked.
    changes: AtomicU64,
}

#[derive(Default)]
struct State {
    live: BTreeMap<u64, Allocation>,
    freed: VecDeque<Freed>,
    allocations: u64,
    frees: u64,
}

impl Pool {
    /// Creates an empty pool.
    pub fn new(environment: Arc<Environment>, special: bool) -> Self {
        Self { environment, special, state: RwLock::default(), changes: AtomicU64::new(1) }
    }

    /// Locks the state for a change.
    fn change(&self) -> RwLockWriteGuard<'_, State> {
        let state = self.state.write();
        self.changes.fetch_add(1, Ordering::Release);
        state
    }

    /// Allocates memory for a thread's current call. Returns its address, or `None` if the pool is
    /// exhausted.
    pub fn allocate(&self, wanted: Wanted, thread: &Thread, by: Call) -> Option<u64> {
        let fill = if wanted.uninitialized { UNINITIALIZED } else { 0 };
        let backtrace = thread.short_backtrace();
        let mut state = self.change();
        // Paged memory becomes accessible as a whole, which would open guard pages.
        let guarded = self.special && !wanted.paged;
        // A guarded block ends at a page, and a block of a page begins at one.
        let reserved = match (wanted.cache_aligned, guarded) {
            (false, _) => wanted.size,
            (true, true) => wanted.size.next_multiple_of(CACHE_LINE),
            (true, false) => wanted.size.max(PAGE),
        };
        let address = if wanted.paged {
            self.environment.paged.allocate(reserved, fill)
        } else if guarded {
            Arena::non_paged().allocate_guarded(reserved, fill)
        } else {
            Arena::non_paged().allocate(reserved, fill)
        }?;
        state.freed.retain(|freed| freed.address != address);
        state.live.insert(
            address,
            Allocation {
                size: wanted.size,
                tag: wanted.tag,
                paged: wanted.paged,
                guarded,
                reserved,
                allocated_by: by,
                backtrace,
            },
        );
        state.allocations += 1;
        Some(address)
    }

    /// Frees the block at `address` for a thread's current call.
    pub fn free(&self, address: u64, thread: &Thread, by: Call) -> Result<Tag, FreeError> {
        let backtrace = thread.short_backtrace();
        let mut state = self.change();
        let Some(allocation) = state.live.remove(&address) else {
            return Err(state
                .freed
                .iter()
                .rev()
                .find(|freed| freed.address == address)
                .map_or(FreeError::NotPool, |freed| FreeError::Twice(Box::new(freed.clone()))));
        };
        self.give_back(address, &allocation);
        if state.freed.len() == REMEMBERED {
            state.freed.pop_front();
        }
        state.freed.push_back(Freed {
            address,
            size: allocation.size,
            tag: allocation.tag,
            by,
            backtrace,
        });
        state.frees += 1;
        Ok(allocation.tag)
    }

    /// Returns whether a live block is from paged pool.
    pub fn is_paged(&self, address: u64) -> Option<bool> {
        let state = self.state.read();
        state.live.get(&address).map(|allocation| allocation.paged)
    }

    /// Returns the requested size of a live block.
    pub fn size(&self, address: u64) -> Option<usize> {
        let state = self.state.read();
        state.live.get(&address).map(|allocation| allocation.size)
    }

    /// Returns whether an address is in a live block.
    pub fn contains(&self, address: u64) -> bool {
        let state = self.state.read();
        let before = state.live.range(..=address).next_back();
        before.is_some_and(|(start, live)| address - start < live.size.max(1) as u64)
    }

    /// Returns the result of [`Self::freed_at`]. If the thread has passed the address before and it
    /// was not in a freed block then, does not look it up again until the pool changes.
    pub fn freed_at_again(&self, address: u64, sound: &SoundAddresses) -> Option<Freed> {
        let slot = sound.slot(address);
        let now = (self.changes.load(Ordering::Acquire), address);
        if slot.is_some_and(|slot| slot.get() == now) {
            return None;
        }
        let freed = self.freed_at(address);
        // If the pool has changed during the look-up, the stored change count is outdated, and no
        // later call matches it.
        if let (None, Some(slot)) = (&freed, slot) {
            slot.set(now);
        }
        freed
    }

    /// Returns the freed block that contains an address, unless its memory was reallocated.
    pub fn freed_at(&self, address: u64) -> Option<Freed> {
        let state = self.state.read();
        let in_live = state
            .live
            .range(..=address)
            .next_back()
            .is_some_and(|(start, live)| address - start < live.size.max(1) as u64);
        if in_live {
            return None;
        }
        state
            .freed
            .iter()
            .rev()
            .find(|freed| {
                address
                    .checked_sub(freed.address)
                    .is_some_and(|offset| offset < freed.size.max(1) as u64)
            })
            .cloned()
    }

    /// Removes the live blocks that `belongs` selects, and returns them in order of address.
    pub fn take_leaks(&self, belongs: impl Fn(&Call) -> bool) -> Vec<Allocation> {
        let mut state = self.change();
        let leaks: Vec<(u64, Allocation)> = state
            .live
            .iter()
            .filter(|(_, allocation)| belongs(&allocation.allocated_by))
            .map(|(address, allocation)| (*address, allocation.clone()))
            .collect();
        for (address, allocation) in &leaks {
            state.live.remove(address);
            self.give_back(*address, allocation);
        }
        leaks.into_iter().map(|(_, allocation)| allocation).collect()
    }

    /// Returns the number of allocations and the number of frees.
    pub fn counts(&self) -> (u64, u64) {
        let state = self.state.read();
        (state.allocations, state.frees)
    }

    fn give_back(&self, address: u64, allocation: &Allocation) {
        if allocation.paged {
            self.environment.paged.free(address, allocation.reserved);
        } else if allocation.guarded {
            Arena::non_paged().free_guarded(address, allocation.reserved);
        } else {
            Arena::non_paged().free(address, allocation.reserved);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn an_address_that_was_sound_is_found_once_its_block_is_freed() {
        const BLOCK: u64 = 0x1000;
        let environment = Arc::new(Environment::new(Duration::from_secs(1)));
        let pool = Pool::new(environment, false);
        let sound = SoundAddresses::default();
        let tag = Tag(u32::from_le_bytes(*b"test"));
        let addresses = [BLOCK, BLOCK + 8, BLOCK + 0x20];
        let freed = || addresses.map(|at| pool.freed_at_again(at, &sound).is_some());
        let allocate = || {
            let mut state = pool.change();
            state.freed.clear();
            let allocation = Allocation {
                size: 0x40,
                tag,
                paged: false,
                guarded: false,
                reserved: 0x40,
                allocated_by: Call::NONE,
                backtrace: Backtrace::default(),
            };
            state.live.insert(BLOCK, allocation);
        };
        allocate();
        for _ in 0..3 {
            assert_eq!(freed(), [false; 3]);
        }
        {
            let mut state = pool.change();
            state.live.clear();
            state.freed.push_back(Freed {
                address: BLOCK,
                size: 0x40,
                tag,
                by: Call::NONE,
                backtrace: Backtrace::default(),
            });
        }
        for _ in 0..3 {
            assert_eq!(freed(), [true; 3]);
        }
        allocate();
        assert_eq!(freed(), [false; 3]);
    }
}
