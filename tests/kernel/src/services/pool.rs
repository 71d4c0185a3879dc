//! The pool that drivers allocate from.

use std::{
    collections::{BTreeMap, VecDeque},
    fmt,
    sync::Arc,
};

use parking_lot::Mutex;

use crate::{
    execution::{call::Call, environment::Environment, thread::Thread},
    ground::{
        arena::{Arena, UNINITIALIZED},
        backtrace::Backtrace,
    },
};

/// The number of freed blocks that are remembered, to distinguish a double free from a free of
/// a wrong address.
const REMEMBERED: usize = 4096;

/// A pool tag: four characters that name an allocation's purpose.
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
    /// Its tag.
    pub tag: Tag,
    /// Set if the block is from paged pool.
    pub paged: bool,
    /// Set for `POOL_FLAG_UNINITIALIZED`.
    pub uninitialized: bool,
}

/// One allocation.
#[derive(Clone)]
pub struct Allocation {
    /// The requested size in bytes.
    pub size: usize,
    /// Its tag.
    pub tag: Tag,
    /// Set if the block is from paged pool.
    pub paged: bool,
    guarded: bool,
    /// The call that allocated it.
    pub allocated_by: Call,
    /// The calls that led to that call.
    pub backtrace: Backtrace,
}

/// A block that was freed.
#[derive(Clone)]
pub struct Freed {
    address: u64,
    size: usize,
    /// Its tag.
    pub tag: Tag,
    /// The call that freed it.
    pub by: Call,
    /// The calls that led to that call.
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
    /// Set to place every block between inaccessible pages and to make freed blocks inaccessible.
    special: bool,
    state: Mutex<State>,
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
        Self {
            environment,
            special,
            state: Mutex::default(),
        }
    }

    /// Allocates memory for a thread's current call, and returns its address.
    pub fn allocate(&self, wanted: Wanted, thread: &Thread, by: Call) -> u64 {
        let fill = if wanted.uninitialized {
            UNINITIALIZED
        } else {
            0
        };
        let backtrace = thread.short_backtrace();
        let mut state = self.state.lock();
        // Paged memory is closed and opened as a whole, which would open guard pages.
        let guarded = self.special && !wanted.paged;
        let address = if wanted.paged {
            self.environment.paged.allocate(wanted.size, fill)
        } else if guarded {
            Arena::non_paged().allocate_guarded(wanted.size, fill)
        } else {
            Arena::non_paged().allocate(wanted.size, fill)
        };
        state.freed.retain(|freed| freed.address != address);
        state.live.insert(
            address,
            Allocation {
                size: wanted.size,
                tag: wanted.tag,
                paged: wanted.paged,
                guarded,
                allocated_by: by,
                backtrace,
            },
        );
        state.allocations += 1;
        address
    }

    /// Frees the block at `address` for a thread's current call.
    pub fn free(&self, address: u64, thread: &Thread, by: Call) -> Result<Tag, FreeError> {
        let backtrace = thread.short_backtrace();
        let mut state = self.state.lock();
        let Some(allocation) = state.live.remove(&address) else {
            return Err(state
                .freed
                .iter()
                .rev()
                .find(|freed| freed.address == address)
                .map_or(FreeError::NotPool, |freed| {
                    FreeError::Twice(Box::new(freed.clone()))
                }));
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
        let state = self.state.lock();
        state.live.get(&address).map(|allocation| allocation.paged)
    }

    /// Returns the freed block that contains an address, unless its memory was allocated again.
    pub fn freed_at(&self, address: u64) -> Option<Freed> {
        let state = self.state.lock();
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

    /// Removes the live blocks that `belongs` selects from the pool, and returns them in the
    /// order of their addresses.
    pub fn take_leaks(&self, belongs: impl Fn(&Call) -> bool) -> Vec<Allocation> {
        let mut state = self.state.lock();
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
        leaks
            .into_iter()
            .map(|(_, allocation)| allocation)
            .collect()
    }

    /// Returns the numbers of blocks that were allocated and freed.
    pub fn counts(&self) -> (u64, u64) {
        let state = self.state.lock();
        (state.allocations, state.frees)
    }

    fn give_back(&self, address: u64, allocation: &Allocation) {
        if allocation.paged {
            self.environment.paged.free(address, allocation.size);
        } else if allocation.guarded {
            Arena::non_paged().free_guarded(address, allocation.size);
        } else {
            Arena::non_paged().free(address, allocation.size);
        }
    }
}
