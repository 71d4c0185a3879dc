//! Kernel memory: the pool that drivers allocate from, and blocks of memory
//! that the kernel lends them.

use std::{
    collections::{HashMap, VecDeque},
    fmt,
    sync::atomic::AtomicU64,
};

use crate::thread::Call;

/// How many freed blocks are remembered, to tell a double free from a wild one.
const REMEMBERED: usize = 4096;

/// The smallest piece of pool. Drivers write to it behind the compiler's back,
/// which atomics allow for.
#[derive(Default)]
#[repr(align(16))]
pub struct Unit(#[expect(dead_code, reason = "only its address is used")] [AtomicU64; 2]);

/// A page of memory.
#[repr(align(4096))]
pub struct Page(#[expect(dead_code, reason = "only its address is used")] [Unit; 256]);

/// Zeroed memory with a fixed address: 16-byte aligned as pool is, and
/// page-aligned from a page's size on.
pub enum Block {
    /// Less than a page.
    Small(Box<[Unit]>),
    /// A page or more.
    Pages(Box<[Page]>),
}

impl Block {
    /// A block of at least `size` bytes.
    pub fn zeroed(size: usize) -> Self {
        if size < size_of::<Page>() {
            let count = size.div_ceil(size_of::<Unit>()).max(1);
            Self::Small((0..count).map(|_| Unit::default()).collect())
        } else {
            let count = size.div_ceil(size_of::<Page>());
            let page = || Page(core::array::from_fn(|_| Unit::default()));
            Self::Pages((0..count).map(|_| page()).collect())
        }
    }

    /// The first byte's address.
    pub fn address(&self) -> u64 {
        match self {
            Self::Small(units) => units.as_ptr() as u64,
            Self::Pages(pages) => pages.as_ptr() as u64,
        }
    }
}

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

/// One allocation.
pub struct Allocation {
    block: Block,
    /// Bytes asked for.
    pub size: usize,
    /// Its tag.
    pub tag: Tag,
    /// Whether it is from paged pool.
    pub paged: bool,
    /// The call that allocated it.
    pub allocated_by: Call,
}

/// Why a block was not freed.
pub enum FreeError {
    /// It had been freed before, by this call.
    Twice(Tag, Call),
    /// It is no pool block.
    NotPool,
}

/// The pool.
#[derive(Default)]
pub struct Pool {
    live: HashMap<u64, Allocation>,
    freed: VecDeque<(u64, Tag, Call)>,
    allocations: u64,
    frees: u64,
}

impl Pool {
    /// Allocates zeroed memory and returns its address.
    pub fn allocate(&mut self, size: usize, tag: Tag, paged: bool, by: Call) -> u64 {
        let block = Block::zeroed(size);
        let address = block.address();
        self.freed.retain(|(freed, ..)| *freed != address);
        self.live.insert(
            address,
            Allocation {
                block,
                size,
                tag,
                paged,
                allocated_by: by,
            },
        );
        self.allocations += 1;
        address
    }

    /// Frees the block at `address`.
    pub fn free(&mut self, address: u64, by: Call) -> Result<Tag, FreeError> {
        let Some(allocation) = self.live.remove(&address) else {
            return Err(self
                .freed
                .iter()
                .rev()
                .find(|(freed, ..)| *freed == address)
                .map_or(FreeError::NotPool, |(_, tag, call)| {
                    FreeError::Twice(*tag, *call)
                }));
        };
        debug_assert_eq!(allocation.block.address(), address);
        if self.freed.len() == REMEMBERED {
            self.freed.pop_front();
        }
        self.freed.push_back((address, allocation.tag, by));
        self.frees += 1;
        Ok(allocation.tag)
    }

    /// Takes the live blocks that `belongs` names out of the pool, in the order of
    /// their addresses.
    pub fn take_leaks(&mut self, belongs: impl Fn(&Call) -> bool) -> Vec<Allocation> {
        let mut leaks: Vec<(u64, Allocation)> = self
            .live
            .extract_if(|_, allocation| belongs(&allocation.allocated_by))
            .collect();
        leaks.sort_by_key(|(address, _)| *address);
        leaks
            .into_iter()
            .map(|(_, allocation)| allocation)
            .collect()
    }

    /// How many blocks were allocated and freed so far.
    pub const fn counts(&self) -> (u64, u64) {
        (self.allocations, self.frees)
    }
}
