//! The kernel memory that holds all blocks that drivers can access.
//!
//! A range of addresses is reserved once, and blocks are allocated from it, so that kernel
//! addresses can be distinguished from all others of the process. Freed blocks are filled with
//! a pattern, and reused only after many other blocks were.

use std::{
    collections::{HashMap, VecDeque},
    ffi::c_void,
    num::NonZeroUsize,
    ptr::NonNull,
    sync::{
        OnceLock,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
};

use nix::sys::mman::{MapFlags, ProtFlags, mmap_anonymous, mprotect, munmap};
use parking_lot::Mutex;

pub const PAGE: usize = 4096;
/// The size of an arena's address range. Only allocated blocks use memory.
const RESERVED: usize = 16 << 30;
/// The step in which memory is made accessible.
const STEP: usize = 256 * 1024;
/// The size of the smallest block and the alignment of every block.
const UNIT: usize = 16;
/// The number of freed blocks of each size that are quarantined before one is reused.
const QUARANTINED_BLOCKS: usize = 64;
/// The byte that fills freed memory.
pub const FREED: u8 = 0xDD;
/// The byte that fills memory allocated with `POOL_FLAG_UNINITIALIZED`.
pub const UNINITIALIZED: u8 = 0xCD;

/// A reserved range of addresses and the blocks in it.
pub struct Arena {
    base: NonNull<c_void>,
    /// The number of bytes from the base that are accessible.
    committed: AtomicUsize,
    live: AtomicU64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The number of bytes from the base that were allocated.
    used: usize,
    /// The freed blocks by their rounded sizes, oldest first.
    free: HashMap<usize, VecDeque<usize>>,
    /// The freed guarded blocks, which stay inaccessible.
    guarded_free: HashMap<usize, VecDeque<usize>>,
}

impl State {
    /// Takes `size` bytes that were never allocated.
    fn take(&mut self, size: usize) -> usize {
        let start = self
            .used
            .next_multiple_of(if size < PAGE { size } else { PAGE });
        let end = start + size;
        assert!(end <= RESERVED, "kernel memory is exhausted");
        self.used = end;
        start
    }
}

// SAFETY: the base is only an address; the blocks' owners access the memory there, and a lock
// guards the other fields.
unsafe impl Send for Arena {}
// SAFETY: as above.
unsafe impl Sync for Arena {}

/// Returns the size of a block with its padding.
fn rounded(size: usize) -> usize {
    let size = size.max(1);
    if size < PAGE {
        size.next_multiple_of(UNIT).next_power_of_two()
    } else {
        size.next_multiple_of(PAGE)
    }
}

impl Arena {
    /// Reserves a range of addresses.
    pub fn reserve() -> Self {
        let size = NonZeroUsize::new(RESERVED).expect("the size is not zero");
        // SAFETY: a fresh anonymous mapping aliases nothing.
        let base = unsafe {
            mmap_anonymous(
                None,
                size,
                ProtFlags::PROT_NONE,
                MapFlags::MAP_PRIVATE | MapFlags::MAP_NORESERVE,
            )
        }
        .expect("the address range for the kernel's memory can be reserved");
        Self {
            base,
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
        self.base.as_ptr() as u64
    }

    /// Returns whether an address is one of the arena's.
    pub fn contains(&self, address: u64) -> bool {
        address
            .checked_sub(self.base())
            .is_some_and(|offset| offset < RESERVED as u64)
    }

    const fn at(&self, offset: usize) -> NonNull<u8> {
        // SAFETY: the offset is below what was reserved.
        unsafe { self.base.cast::<u8>().add(offset) }
    }

    fn protect(&self, offset: usize, length: usize, protection: ProtFlags) {
        if length == 0 {
            return;
        }
        // SAFETY: the pages are in the arena, and their owner requested the protection.
        unsafe { mprotect(self.at(offset).cast(), length, protection) }
            .expect("the protection of the arena's own pages can be set");
    }

    fn commit(&self, end: usize) {
        let committed = self.committed.load(Ordering::Relaxed);
        if end > committed {
            let to = end.next_multiple_of(STEP).min(RESERVED);
            self.protect(
                committed,
                to - committed,
                ProtFlags::PROT_READ | ProtFlags::PROT_WRITE,
            );
            self.committed.store(to, Ordering::Relaxed);
        }
    }

    /// Allocates a block of at least `size` bytes, filled with `fill`. The arena is accessible.
    pub fn allocate(&self, size: usize, fill: u8) -> u64 {
        let size = rounded(size);
        let mut state = self.state.lock();
        let rested = state
            .free
            .get_mut(&size)
            .filter(|free| free.len() > QUARANTINED_BLOCKS)
            .and_then(VecDeque::pop_front);
        let offset = rested.unwrap_or_else(|| {
            let offset = state.take(size);
            self.commit(offset + size);
            offset
        });
        drop(state);
        self.fill(offset, size, fill);
        self.live.fetch_add(1, Ordering::Relaxed);
        self.at(offset).as_ptr() as u64
    }

    const fn fill(&self, offset: usize, size: usize, with: u8) {
        // SAFETY: the block is accessible and has no other owner.
        unsafe { self.at(offset).write_bytes(with, size) };
    }

    /// Frees a block that [`Self::allocate`] returned for `size` bytes. The arena is accessible.
    pub fn free(&self, address: u64, size: usize) {
        let size = rounded(size);
        let offset = self.offset(address);
        self.fill(offset, size, FREED);
        self.live.fetch_sub(1, Ordering::Relaxed);
        let mut state = self.state.lock();
        state.free.entry(size).or_default().push_back(offset);
    }

    fn offset(&self, address: u64) -> usize {
        usize::try_from(address.wrapping_sub(self.base())).unwrap_or(usize::MAX)
    }

    /// Allocates a block directly before inaccessible memory (except for its alignment to 16
    /// bytes), as special pool does.
    pub fn allocate_guarded(&self, size: usize, fill: u8) -> u64 {
        let pages = size.max(1).next_multiple_of(PAGE);
        let mut state = self.state.lock();
        let rested = state
            .guarded_free
            .get_mut(&pages)
            .filter(|free| free.len() > QUARANTINED_BLOCKS)
            .and_then(VecDeque::pop_front);
        let offset = rested.unwrap_or_else(|| {
            let offset = state.take(pages + PAGE);
            self.commit(offset + pages + PAGE);
            offset
        });
        drop(state);
        self.protect(offset, pages, ProtFlags::PROT_READ | ProtFlags::PROT_WRITE);
        self.protect(offset + pages, PAGE, ProtFlags::PROT_NONE);
        self.fill(offset, pages, fill);
        self.live.fetch_add(1, Ordering::Relaxed);
        let start = offset + pages - size.max(1).next_multiple_of(UNIT);
        self.at(start).as_ptr() as u64
    }

    /// Frees a block that [`Self::allocate_guarded`] returned for `size` bytes, and makes it
    /// inaccessible.
    pub fn free_guarded(&self, address: u64, size: usize) {
        let pages = size.max(1).next_multiple_of(PAGE);
        let offset = self.offset(address) / PAGE * PAGE;
        self.protect(offset, pages, ProtFlags::PROT_NONE);
        self.live.fetch_sub(1, Ordering::Relaxed);
        let mut state = self.state.lock();
        state
            .guarded_free
            .entry(pages)
            .or_default()
            .push_back(offset);
    }

    /// Makes all blocks inaccessible, or accessible again. Must not be called for an arena with
    /// guarded blocks.
    pub fn set_accessible(&self, accessible: bool) {
        if self.live.load(Ordering::Relaxed) == 0 {
            return;
        }
        let protection = if accessible {
            ProtFlags::PROT_READ | ProtFlags::PROT_WRITE
        } else {
            ProtFlags::PROT_NONE
        };
        self.protect(0, self.committed.load(Ordering::Relaxed), protection);
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: the addresses are the arena's own, and its blocks are gone with it.
        let unmapped = unsafe { munmap(self.base, RESERVED) };
        debug_assert!(
            unmapped.is_ok(),
            "munmap succeeds for the arena's own mapping"
        );
    }
}

/// A block of zeroed, non-paged memory that drivers borrow from the kernel. Its address is a
/// multiple of 16, or of the page size if the block is at least a page long.
pub struct Block {
    address: u64,
    size: usize,
    guarded: bool,
}

impl Block {
    /// Allocates a block of at least `size` bytes.
    pub fn zeroed(size: usize) -> Self {
        Self {
            address: Arena::non_paged().allocate(size, 0),
            size,
            guarded: false,
        }
    }

    /// Allocates a block directly before inaccessible memory. It becomes inaccessible when it is
    /// dropped.
    pub fn guarded(size: usize) -> Self {
        Self {
            address: Arena::non_paged().allocate_guarded(size, 0),
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
        for size in [1, 16, 24, 100, 4095, 4096, 5000] {
            let block = Block::zeroed(size);
            assert_eq!(block.address() % 16, 0);
            assert!(size < PAGE || block.address().is_multiple_of(PAGE as u64));
            assert!(Arena::non_paged().contains(block.address()));
            let bytes = memory::read_bytes(block.address(), size).unwrap();
            assert!(bytes.iter().all(|byte| *byte == 0));
        }
        assert!(!Arena::non_paged().contains(8));
    }

    #[test]
    fn a_guarded_block_ends_where_access_ends_and_is_gone_when_freed() {
        let arena = Arena::reserve();
        let address = arena.allocate_guarded(40, 7);
        assert_eq!(memory::read::<u8>(address + 39), Ok(7));
        assert!(memory::read::<u8>(address + 48).is_err());
        arena.free_guarded(address, 40);
        assert!(memory::read::<u8>(address).is_err());
    }

    #[test]
    fn an_arena_can_be_closed_and_opened() {
        let arena = Arena::reserve();
        let address = arena.allocate(100, 5);
        arena.set_accessible(false);
        assert!(memory::read::<u8>(address).is_err());
        arena.set_accessible(true);
        assert_eq!(memory::read::<u8>(address), Ok(5));
        arena.free(address, 100);
        assert_eq!(memory::read::<u8>(address), Ok(FREED));
    }
}
