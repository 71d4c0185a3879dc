//! The kernel memory that contains all blocks that drivers can access.
//!
//! All blocks are allocated from one reserved range of addresses, so that kernel addresses can be
//! distinguished from all other addresses of the process. A freed block is filled with a pattern,
//! and is reused only after enough other blocks of its size were freed. For larger sizes, fewer
//! blocks are enough, so that a driver that repeatedly allocates and frees a large block does not
//! exhaust the range.

use std::{
    collections::{HashMap, VecDeque},
    sync::{
        OnceLock,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
};

use parking_lot::Mutex;

use super::host::{Mapping, protection::Protection};

pub const PAGE: usize = 4096;
/// The size of an arena's address range. Only allocated blocks use memory.
const RESERVED: usize = 16 << 30;
/// The granularity in which memory is made accessible.
const STEP: usize = 256 * 1024;
/// The size of a small block's header, and the alignment of every block.
const UNIT: usize = 16;
/// The part of the range that is reserved for the kernel's own blocks, so that a driver that exhausts
/// the pool does not harm the kernel.
const KEPT_BACK: usize = 1 << 30;
/// The limits of the quarantine of freed blocks of one size: a number of blocks and, for more than one
/// block, a number of bytes.
const QUARANTINED_BLOCKS: usize = 64;
const QUARANTINED_BYTES: usize = 64 << 20;
/// The number of bytes at the start of a freed block that stay in memory and contain the pattern.
/// The memory of the other bytes is released, and they are zero when the block is reused.
const KEPT: usize = 256 * 1024;
/// The byte that fills freed memory.
pub const FREED: u8 = 0xDD;
/// The byte that fills memory allocated with `POOL_FLAG_UNINITIALIZED`.
pub const UNINITIALIZED: u8 = 0xCD;

/// A reserved range of addresses and the blocks in it.
pub struct Arena {
    memory: Mapping,
    /// The number of bytes from the base that are accessible.
    committed: AtomicUsize,
    live: AtomicU64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The number of bytes from the base that have been allocated.
    used: usize,
    /// The freed blocks by their rounded sizes, oldest first.
    free: HashMap<usize, VecDeque<usize>>,
    /// The freed guarded blocks, which stay inaccessible.
    guarded_free: HashMap<usize, VecDeque<usize>>,
}

impl State {
    /// Takes `size` bytes below `limit` that have never been allocated.
    fn take(&mut self, size: usize, limit: usize) -> Option<usize> {
        let start = self.used.next_multiple_of(if size < PAGE { size } else { PAGE });
        let end = start.checked_add(size).filter(|end| *end <= limit)?;
        self.used = end;
        Some(start)
    }

    /// Takes the oldest freed block of `size` bytes if the quarantine is full.
    fn rested(&mut self, size: usize) -> Option<usize> {
        pop_rested(&mut self.free, size)
    }

    /// Merges adjacent freed blocks of whole pages. Returns their previous offsets and sizes.
    fn merge(&mut self) -> Vec<(usize, usize)> {
        let whole = |size: &usize| size.is_multiple_of(PAGE);
        let mut blocks: Vec<(usize, usize)> = Vec::new();
        for (size, free) in self.free.extract_if(|size, _| whole(size)) {
            blocks.extend(free.into_iter().map(|offset| (offset, size)));
        }
        blocks.sort_unstable();
        let mut merged: Vec<(usize, usize)> = Vec::new();
        for (offset, size) in blocks.iter().copied() {
            match merged.last_mut() {
                Some((start, length)) if *start + *length == offset => *length += size,
                _ => merged.push((offset, size)),
            }
        }
        for (offset, size) in merged {
            self.free.entry(size).or_default().push_back(offset);
        }
        blocks
    }

    /// Takes `size` bytes from the smallest freed block that is large enough.
    fn part_of_larger(&mut self, size: usize) -> Option<usize> {
        let sizes = self.free.iter().filter(|(_, free)| !free.is_empty());
        let larger = sizes.map(|(of, _)| *of).filter(|of| *of >= size).min()?;
        let offset = self.free.get_mut(&larger)?.pop_front()?;
        let unit = size.max(larger.min(PAGE));
        if larger > unit {
            let rest = self.free.entry(larger - unit).or_default();
            rest.push_back(offset + unit);
        }
        // The rest of the page or of the smaller block is divided into free blocks of this size.
        let parts = (offset + size..offset + unit).step_by(size);
        self.free.entry(size).or_default().extend(parts);
        Some(offset)
    }
}

/// Takes the oldest freed block of a size if the quarantine for this size is full.
fn pop_rested(freed: &mut HashMap<usize, VecDeque<usize>>, size: usize) -> Option<usize> {
    let resting = (QUARANTINED_BYTES / size.max(1)).clamp(1, QUARANTINED_BLOCKS);
    let blocks = freed.get_mut(&size)?;
    if blocks.len() > resting { blocks.pop_front() } else { None }
}

/// Returns the size of a block including its padding, and the offset of its first usable byte.
///
/// As on Windows, a small block follows a header of 16 bytes. Blocks are aligned to their padded
/// sizes, so a small block's address is a multiple of 16 but not of 32: drivers that rely on a larger
/// alignment than Windows guarantees fail here, too.
fn rounded(size: usize) -> (usize, usize) {
    let whole = size.max(1).next_multiple_of(UNIT) + UNIT;
    if whole <= PAGE { (whole.next_power_of_two(), UNIT) } else { (size.next_multiple_of(PAGE), 0) }
}

impl Arena {
    /// Reserves a range of addresses.
    pub fn reserve() -> Self {
        let memory = Mapping::reserve(RESERVED)
            .expect("the address range for the kernel's memory can be reserved");
        Self {
            memory,
            committed: AtomicUsize::new(0),
            live: AtomicU64::new(0),
            state: Mutex::default(),
        }
    }

    /// Returns the process's memory that is never paged.
    pub fn non_paged() -> &'static Self {
        static ARENA: OnceLock<Arena> = OnceLock::new();
        ARENA.get_or_init(Self::reserve)
    }

    /// Returns the first address.
    pub fn base(&self) -> u64 {
        self.memory.address()
    }

    /// Returns whether an address is in the arena's range.
    pub fn contains(&self, address: u64) -> bool {
        address.checked_sub(self.base()).is_some_and(|offset| offset < RESERVED as u64)
    }

    fn protect(&self, offset: usize, length: usize, protection: Protection) {
        self.memory
            .protect(offset, length, protection)
            .expect("the protection of the arena's own pages can be set");
    }

    /// Makes the memory below `end` accessible. Returns `false` if the system has no memory left.
    fn commit(&self, end: usize) -> bool {
        let committed = self.committed.load(Ordering::Relaxed);
        if end > committed {
            let to = end.next_multiple_of(STEP).min(RESERVED);
            if self.memory.protect(committed, to - committed, Protection::ReadWrite).is_err() {
                return false;
            }
            self.committed.store(to, Ordering::Relaxed);
        }
        true
    }

    /// Allocates a block of at least `size` bytes for a driver, filled with `fill`. The arena must be
    /// accessible. Returns `None` if the range is exhausted.
    pub fn allocate(&self, size: usize, fill: u8) -> Option<u64> {
        self.allocate_below(RESERVED - KEPT_BACK, size, fill)
    }

    /// Allocates a block of `size` bytes below `limit`, which is an offset in the range.
    fn allocate_below(&self, limit: usize, size: usize, fill: u8) -> Option<u64> {
        if size > limit {
            return None;
        }
        let (size, header) = rounded(size);
        let mut state = self.state.lock();
        // The number of bytes at the start that are not zero.
        let mut used = KEPT.min(size);
        let offset = if let Some(offset) = state.rested(size) {
            offset
        } else if let Some(offset) = state.take(size, limit) {
            if !self.commit(offset + size) {
                return None;
            }
            used = 0;
            offset
        } else {
            self.scavenge(&mut state, size)?
        };
        drop(state);
        self.fill(offset, if fill == 0 { used } else { size }, fill);
        self.live.fetch_add(1, Ordering::Relaxed);
        Some(self.base() + (offset + header) as u64)
    }

    /// Takes `size` bytes from freed blocks that are still in quarantine or, after merging adjacent
    /// blocks, from larger blocks.
    fn scavenge(&self, state: &mut State, size: usize) -> Option<usize> {
        if let Some(offset) = state.part_of_larger(size) {
            return Some(offset);
        }
        for (offset, size) in state.merge() {
            // The memory inside a merged block must be zero.
            self.discard(offset, size.min(KEPT), Protection::ReadWrite);
        }
        state.part_of_larger(size)
    }

    const fn fill(&self, offset: usize, size: usize, with: u8) {
        // SAFETY: the block is accessible and has no other owner.
        unsafe { self.memory.at_offset(offset).write_bytes(with, size) };
    }

    /// Frees a block that [`Self::allocate`] returned for `size` bytes. The arena must be accessible.
    pub fn free(&self, address: u64, size: usize) {
        let (size, header) = rounded(size);
        let offset = self.offset(address) - header;
        self.fill(offset, size.min(KEPT), FREED);
        if size > KEPT {
            self.discard(offset + KEPT, size - KEPT, Protection::ReadWrite);
        }
        self.live.fetch_sub(1, Ordering::Relaxed);
        let mut state = self.state.lock();
        state.free.entry(size).or_default().push_back(offset);
    }

    /// Releases the memory of pages with this protection, which then read as zero. `offset` and
    /// `length` are multiples of the page size.
    fn discard(&self, offset: usize, length: usize, protection: Protection) {
        self.memory
            .discard(offset, length, protection)
            .expect("the memory of the arena's own pages can be given back");
    }

    fn offset(&self, address: u64) -> usize {
        usize::try_from(address.wrapping_sub(self.base())).unwrap_or(usize::MAX)
    }

    /// Allocates a block directly before inaccessible memory (except for its alignment to 16
    /// bytes), as special pool does. A block of a page or more begins at a page. Returns `None` if the range is exhausted.
    pub fn allocate_guarded(&self, size: usize, fill: u8) -> Option<u64> {
        self.allocate_guarded_below(RESERVED - KEPT_BACK, size, fill)
    }

    fn allocate_guarded_below(&self, limit: usize, size: usize, fill: u8) -> Option<u64> {
        if size > limit {
            return None;
        }
        let pages = size.max(1).next_multiple_of(PAGE);
        let mut state = self.state.lock();
        let offset = if let Some(offset) = pop_rested(&mut state.guarded_free, pages) {
            offset
        } else if let Some(offset) = state.take(pages + PAGE, limit) {
            if !self.commit(offset + pages + PAGE) {
                return None;
            }
            offset
        } else {
            state.guarded_free.get_mut(&pages)?.pop_front()?
        };
        drop(state);
        self.protect(offset, pages, Protection::ReadWrite);
        self.protect(offset + pages, PAGE, Protection::None);
        // The memory is new or was released, so it is zero.
        if fill != 0 {
            self.fill(offset, pages, fill);
        }
        self.live.fetch_add(1, Ordering::Relaxed);
        let before = if size < PAGE { PAGE - size.max(1).next_multiple_of(UNIT) } else { 0 };
        Some(self.base() + (offset + before) as u64)
    }

    /// Frees a block that [`Self::allocate_guarded`] returned for `size` bytes, and makes it
    /// inaccessible.
    pub fn free_guarded(&self, address: u64, size: usize) {
        let pages = size.max(1).next_multiple_of(PAGE);
        let offset = self.offset(address) / PAGE * PAGE;
        self.protect(offset, pages, Protection::None);
        self.discard(offset, pages, Protection::None);
        self.live.fetch_sub(1, Ordering::Relaxed);
        let mut state = self.state.lock();
        state.guarded_free.entry(pages).or_default().push_back(offset);
    }

    /// Makes all blocks inaccessible, or accessible again. Must not be called for an arena with
    /// guarded blocks.
    pub fn set_accessible(&self, accessible: bool) {
        if self.live.load(Ordering::Relaxed) == 0 {
            return;
        }
        let protection = if accessible { Protection::ReadWrite } else { Protection::None };
        self.protect(0, self.committed.load(Ordering::Relaxed), protection);
    }
}

/// A block of zeroed, non-paged kernel memory that drivers can access. Its address is a multiple of
/// 16 or, if the block is at least a page long, of the page size.
pub struct Block {
    address: u64,
    size: usize,
    guarded: bool,
}

impl Block {
    /// Allocates a block of at least `size` bytes from the kernel's reserve.
    ///
    /// # Panics
    ///
    /// Panics if the reserve is exhausted. [`Self::try_zeroed`] is for sizes that a driver chooses.
    pub fn zeroed(size: usize) -> Self {
        let address = Arena::non_paged().allocate_below(RESERVED, size, 0);
        Self {
            address: address.expect("the kernel's own blocks fit into its memory"),
            size,
            guarded: false,
        }
    }

    /// Allocates a block of at least `size` bytes, a size that a driver chose. Returns `None` if
    /// the memory for drivers is exhausted.
    pub fn try_zeroed(size: usize) -> Option<Self> {
        Some(Self { address: Arena::non_paged().allocate(size, 0)?, size, guarded: false })
    }

    /// Allocates a block directly before inaccessible memory. The block becomes inaccessible when
    /// it is dropped.
    ///
    /// # Panics
    ///
    /// Panics if the kernel's reserve is exhausted.
    pub fn guarded(size: usize) -> Self {
        let address = Arena::non_paged().allocate_guarded_below(RESERVED, size, 0);
        Self {
            address: address.expect("the kernel's own blocks fit into its memory"),
            size,
            guarded: true,
        }
    }

    /// Returns the first byte's address.
    pub const fn address(&self) -> u64 {
        self.address
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        if self.guarded {
            Arena::non_paged().free_guarded(self.address, self.size);
        } else {
            Arena::non_paged().free(self.address, self.size);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::memory;

    #[test]
    fn blocks_are_zeroed_aligned_and_the_arenas_own() {
        for size in [1, 16, 24, 64, 100, 2048, 4080, 4095, 4096, 5000] {
            let block = Block::zeroed(size);
            let remainder = block.address() % 32;
            assert_eq!(remainder, if size <= PAGE - 16 { 16 } else { 0 }, "{size}");
            assert!(remainder == 16 || block.address().is_multiple_of(PAGE as u64));
            let guarded = Block::guarded(size).address();
            assert!(guarded.is_multiple_of(if size < PAGE { 16 } else { PAGE as u64 }));
            assert!(Arena::non_paged().contains(block.address()));
            let bytes = memory::read_bytes(block.address(), size).unwrap();
            assert!(bytes.iter().all(|byte| *byte == 0));
        }
        assert!(!Arena::non_paged().contains(8));
    }

    #[test]
    fn a_guarded_block_ends_where_access_ends_and_is_gone_when_freed() {
        let arena = Arena::reserve();
        let address = arena.allocate_guarded(40, 7).unwrap();
        assert_eq!(memory::read::<u8>(address + 39), Ok(7));
        assert!(memory::read::<u8>(address + 48).is_err());
        arena.free_guarded(address, 40);
        assert!(memory::read::<u8>(address).is_err());
    }

    #[test]
    fn an_exhausted_arena_has_what_is_freed() {
        const LARGE: usize = 1 << 30;
        let arena = Arena::reserve();
        assert_eq!(arena.allocate(usize::MAX, 0), None);
        let blocks: Vec<u64> = std::iter::from_fn(|| arena.allocate(LARGE, 0)).collect();
        assert_eq!(blocks.len(), (RESERVED - KEPT_BACK) / LARGE);
        let first = blocks[0];
        assert_eq!(arena.allocate(8, 0), None);
        assert_eq!(memory::write(first + KEPT as u64, &7_u64), Ok(()));
        arena.free(first, LARGE);
        // Smaller blocks are zeroed parts of the freed block, which leaves the quarantine.
        for size in [8, 40, PAGE, 3 * PAGE, LARGE / 2] {
            let part = arena.allocate(size, 0).unwrap();
            assert!((first..first + LARGE as u64).contains(&part), "{size}");
            let bytes = memory::read_bytes(part, size.min(4 * KEPT)).unwrap();
            assert!(bytes.iter().all(|byte| *byte == 0), "{size}");
            // The part overlaps no other block.
            memory::write_bytes(part, &vec![1; size.min(4 * KEPT)]).unwrap();
        }
        assert_eq!(arena.allocate(LARGE, 0), None);
        // Adjacent freed blocks merge, regardless of their contents.
        arena.free(blocks[5], LARGE);
        arena.free(blocks[4], LARGE);
        let both = arena.allocate(2 * LARGE, 0).unwrap();
        assert_eq!(both, blocks[4]);
        for at in [0, LARGE - 8, LARGE, LARGE + KEPT - 8, 2 * LARGE - 8] {
            assert_eq!(memory::read::<u64>(both + at as u64), Ok(0), "{at}");
        }
    }

    #[test]
    fn a_large_block_can_be_allocated_again_and_again() {
        const LARGE: usize = 1 << 30;
        let arena = Arena::reserve();
        let mut addresses = std::collections::HashSet::new();
        for _ in 0..100 {
            let address = arena.allocate(LARGE, 0).unwrap();
            let end = address + LARGE as u64 - 8;
            assert_eq!(memory::read::<u64>(end), Ok(0));
            memory::write(end, &1_u64).unwrap();
            addresses.insert(address);
            arena.free(address, LARGE);
            assert_eq!(memory::read::<u8>(address), Ok(FREED));
        }
        assert_eq!(addresses.len(), 2);
    }

    #[test]
    fn an_arena_can_be_closed_and_opened() {
        let arena = Arena::reserve();
        let address = arena.allocate(100, 5).unwrap();
        arena.set_accessible(false);
        assert!(memory::read::<u8>(address).is_err());
        arena.set_accessible(true);
        assert_eq!(memory::read::<u8>(address), Ok(5));
        arena.free(address, 100);
        assert_eq!(memory::read::<u8>(address), Ok(FREED));
    }
}
