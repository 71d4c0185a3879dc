//! Physical pages: the frames of addresses, pages for memory descriptor lists, contiguous memory, and
//! sections of a driver that are locked in memory.
//!
//! A page is assigned a frame when a driver requests the page's frame number, and keeps the frame.
//! Frame numbers are small, as on a machine whose memory starts at 0.

use std::collections::{BTreeMap, HashMap};

use crate::{
    execution::routine::{At, Memory, low_half, routine},
    ground::{
        abi::Mdl,
        arena::{Block, PAGE, UNINITIALIZED},
        memory,
    },
    services::{
        managers::pool::Tag,
        ntoskrnl::context::{Context, Entries},
    },
};

pub const ENTRIES: Entries = &[
    routine("MmGetPhysicalAddress", physical_address),
    routine("MmGetVirtualForPhysical", virtual_address),
    routine("MmAllocatePagesForMdl", allocate),
    routine("MmAllocatePagesForMdlEx", allocate_ex),
    routine("MmAllocateNodePagesForMdlEx", allocate_of_node),
    routine("MmFreePagesFromMdl", free),
    routine("MmAllocateContiguousMemory", allocate_contiguous),
    routine("MmAllocateContiguousMemorySpecifyCache", allocate_contiguous_cached),
    routine("MmAllocateContiguousNodeMemory", allocate_contiguous_of_node),
    routine("MmFreeContiguousMemory", free_contiguous),
    routine("MmFreeContiguousMemorySpecifyCache", free_contiguous_cached),
    routine("MmLockPagableDataSection", lock_section),
    routine("MmLockPagableSectionByHandle", lock_section_again),
    routine("MmUnlockPagableImageSection", unlock_section),
];

const PAGE_SIZE: u64 = PAGE as u64;

/// The first frame that a page can have, because the first MiB belongs to the firmware.
const FIRST_FRAME: u64 = 0x100;
/// The number of frames in a 52-bit address space.
const FRAMES: u64 = 1 << 40;

/// The largest allocation in bytes.
const LARGEST: u64 = 1 << 30;

/// The frames that have been assigned.
#[derive(Default)]
struct Frames {
    /// The frames, by page address.
    of_page: HashMap<u64, u64>,
    /// The page addresses, by frame.
    pages: BTreeMap<u64, u64>,
}

/// The range of physical addresses for an allocation.
#[derive(Clone, Copy)]
struct Bounds {
    lowest: u64,
    highest: u64,
    /// A multiple that the allocation must not cross, or 0.
    boundary: u64,
}

impl Bounds {
    const ANY: Self = Self { lowest: 0, highest: u64::MAX, boundary: 0 };
}

impl Frames {
    /// Returns the first of `count` free adjacent frames within the bounds.
    fn find(&self, count: u64, bounds: Bounds) -> Option<u64> {
        let end = (bounds.highest / PAGE_SIZE).saturating_add(1).min(FRAMES);
        let boundary = bounds.boundary / PAGE_SIZE;
        let mut first = bounds.lowest.div_ceil(PAGE_SIZE).max(FIRST_FRAME);
        loop {
            if first.saturating_add(count) > end {
                return None;
            }
            let used = self.pages.range(first..first + count).next_back();
            let crossed = (boundary > 0 && first / boundary != (first + count - 1) / boundary)
                .then(|| (first / boundary + 1) * boundary);
            if boundary > 0 && count > boundary {
                return None;
            }
            match (used, crossed) {
                (Some((used, _)), _) => first = used + 1,
                (None, Some(next)) => first = next,
                (None, None) => return Some(first),
            }
        }
    }

    /// Assigns adjacent frames to adjacent pages. Returns `false` if none are free within the bounds.
    fn give(&mut self, address: u64, count: u64, bounds: Bounds) -> bool {
        self.take_back(address, count);
        let Some(first) = self.find(count, bounds) else {
            return false;
        };
        for (frame, page) in (first..first + count).zip((address..).step_by(PAGE)) {
            self.of_page.insert(page, frame);
            self.pages.insert(frame, page);
        }
        true
    }

    fn take_back(&mut self, address: u64, count: u64) {
        for page in (address..).step_by(PAGE).zip(0..count).map(|(page, _)| page) {
            if let Some(frame) = self.of_page.remove(&page) {
                self.pages.remove(&frame);
            }
        }
    }

    /// Returns the frame of a page, assigning one if necessary.
    fn frame(&mut self, page: u64) -> Option<u64> {
        if !self.of_page.contains_key(&page) {
            self.give(page, 1, Bounds::ANY);
        }
        self.of_page.get(&page).copied()
    }
}

/// Returns the physical address of an accessible address, or 0.
fn physical_address(context: &Context, address: Memory) -> u64 {
    if memory::read::<u8>(address.0).is_err() {
        return 0;
    }
    let page = address.0 & !(PAGE_SIZE - 1);
    let frame = context.state().get::<Frames>().frame(page);
    frame.map_or(0, |frame| frame * PAGE_SIZE + (address.0 - page))
}

/// Returns the virtual address for a physical address, or 0 if there is none.
fn virtual_address(context: &Context, physical: u64) -> Memory {
    let mut state = context.state();
    let page = state.get::<Frames>().pages.get(&(physical / PAGE_SIZE));
    page.map_or(At::NULL, |page| At::new(page + physical % PAGE_SIZE))
}

/// Pages that drivers have allocated, by list or by address.
#[derive(Default)]
struct Allocations {
    of_lists: HashMap<u64, Allocation>,
    contiguous: HashMap<u64, Allocation>,
    /// The pages of lists that were freed while their pages were still allocated.
    lost: Vec<Allocation>,
    /// The first addresses of the pages that partial lists describe.
    parts: HashMap<u64, u64>,
}

struct Allocation {
    memory: Block,
    pages: u64,
    /// The return address of the allocating call.
    by: u64,
}

fn new_pages(context: &Context, pages: u64, bounds: Bounds) -> Option<Allocation> {
    let bytes = pages * PAGE_SIZE;
    if pages == 0 || bytes > LARGEST || context.faults().take("ExAllocatePool2").is_some() {
        return None;
    }
    let memory = Block::try_zeroed(usize::try_from(bytes).ok()?)?;
    let mut state = context.state();
    let frames = state.get::<Frames>();
    let allocation = Allocation { pages, by: context.call().return_address, memory };
    frames.give(allocation.memory.address(), pages, bounds).then_some(allocation)
}

/// Frees pages. If their memory is reused, it is assigned other frames.
fn give_back(context: &Context, allocation: &Allocation) {
    let address = allocation.memory.address();
    context.state().get::<Frames>().take_back(address, allocation.pages);
}

/// The tag of memory descriptor lists.
const TAG: Tag = Tag(u32::from_le_bytes(*b"Mdl "));
/// `MDL_PAGES_LOCKED` and `MDL_MAPPED_TO_SYSTEM_VA`.
const LOCKED: i16 = 2;
const MAPPED: i16 = 1;

fn allocate(context: &Context, lowest: u64, highest: u64, skip: u64, bytes: u64) -> At<Mdl> {
    allocate_ex(context, lowest, highest, skip, bytes, 1, 0)
}

fn allocate_of_node(
    context: &Context,
    lowest: u64,
    highest: u64,
    skip: u64,
    bytes: u64,
    cache: u32,
    _node: u32,
    flags: u32,
) -> At<Mdl> {
    allocate_ex(context, lowest, highest, skip, bytes, cache, flags)
}

/// Allocates pages, and a list that describes them. The pages have no address until the driver maps
/// them. They are always adjacent, because a driver can require adjacent pages. Without a flag that
/// requires all of them, fewer pages than requested are allocated if there are not more.
fn allocate_ex(
    context: &Context,
    lowest: u64,
    highest: u64,
    _skip: u64,
    bytes: u64,
    _cache: u32,
    flags: u32,
) -> At<Mdl> {
    const HEADER: usize = size_of::<Mdl>();
    /// `MM_ALLOCATE_FULLY_REQUIRED` and `MM_ALLOCATE_REQUIRE_CONTIGUOUS_CHUNKS`.
    const ALL: u32 = 4 | 0x20;
    let pages = bytes.div_ceil(PAGE_SIZE);
    let pages = if flags & ALL == 0 { pages.min(LARGEST / PAGE_SIZE) } else { pages };
    let bounds = Bounds { lowest, highest, boundary: 0 };
    let Some(allocation) = new_pages(context, pages, bounds) else {
        return At::NULL;
    };
    let first = context.state().get::<Frames>().frame(allocation.memory.address()).unwrap_or(0);
    let frames: Vec<u8> = (first..first + pages).flat_map(u64::to_le_bytes).collect();
    let size = HEADER + frames.len();
    let Some(mdl) = context.allocate(size, TAG, false) else {
        return At::NULL;
    };
    let value = Mdl {
        // The field is too small for the size of the largest list.
        size: i16::try_from(size).unwrap_or(i16::MAX),
        mdl_flags: LOCKED,
        byte_count: low_half(pages * PAGE_SIZE),
        ..Default::default()
    };
    context.write(mdl, &value);
    context.write_bytes(mdl + HEADER as u64, &frames);
    context.state().get::<Allocations>().of_lists.insert(mdl, allocation);
    At::new(mdl)
}

/// Frees the pages of a list. The driver frees the list's own memory.
fn free(context: &Context, mdl: At<Mdl>) {
    let mut value = mdl.read(context);
    let freed = context.state().get::<Allocations>().of_lists.remove(&mdl.0);
    let Some(freed) = freed else {
        context.stop_for_wrong(mdl.0, "a list from MmAllocatePagesForMdl that still has its pages");
    };
    give_back(context, &freed);
    // Freeing the pages also unmaps them.
    value.mdl_flags &= !(LOCKED | MAPPED);
    value.mapped_system_va = 0;
    mdl.write(context, value);
}

/// Returns the address of a list's pages, if [`allocate`] created the list or the list describes a
/// part of such a list.
pub fn address_of(context: &Context, mdl: u64) -> Option<u64> {
    let mut state = context.state();
    let allocations = state.get::<Allocations>();
    let whole = allocations.of_lists.get(&mdl);
    let part = || allocations.parts.get(&mdl).copied();
    whole.map(|one| one.memory.address()).or_else(part)
}

/// Returns whether an address is in pages that a driver allocated.
pub fn contains(context: &Context, address: u64) -> bool {
    let mut state = context.state();
    let allocations = state.get::<Allocations>();
    let of_lists = allocations.of_lists.values();
    let mut all = of_lists.chain(allocations.contiguous.values());
    all.any(|one| {
        let offset = address.checked_sub(one.memory.address());
        offset.is_some_and(|offset| offset < one.pages * PAGE_SIZE)
    })
}

/// Records that a list describes a part of another list.
pub fn note_part(context: &Context, source: u64, target: u64, offset: u64) {
    let source = address_of(context, source);
    let mut state = context.state();
    let parts = &mut state.get::<Allocations>().parts;
    match source {
        Some(address) => {
            parts.insert(target, address.wrapping_add(offset));
        }
        None => {
            parts.remove(&target);
        }
    }
}

/// Removes the record of a list at an address. Another list is now at that address.
pub fn forget_list(context: &Context, mdl: u64) {
    let mut state = context.state();
    let allocations = state.get::<Allocations>();
    allocations.parts.remove(&mdl);
    if let Some(lost) = allocations.of_lists.remove(&mdl) {
        allocations.lost.push(lost);
    }
}

fn allocate_contiguous(context: &Context, bytes: u64, highest: u64) -> Memory {
    allocate_contiguous_cached(context, bytes, 0, highest, 0, 1)
}

fn allocate_contiguous_of_node(
    context: &Context,
    bytes: u64,
    lowest: u64,
    highest: u64,
    boundary: u64,
    _protection: u32,
    _node: u32,
) -> Memory {
    allocate_contiguous_cached(context, bytes, lowest, highest, boundary, 1)
}

/// Allocates uninitialized memory with adjacent pages.
fn allocate_contiguous_cached(
    context: &Context,
    bytes: u64,
    lowest: u64,
    highest: u64,
    boundary: u64,
    _cache: u32,
) -> Memory {
    let bounds = Bounds { lowest, highest, boundary };
    let pages = bytes.div_ceil(PAGE_SIZE);
    let Some(allocation) = new_pages(context, pages, bounds) else {
        return At::NULL;
    };
    let address = allocation.memory.address();
    let fill = vec![UNINITIALIZED; usize::try_from(pages * PAGE_SIZE).unwrap_or(0)];
    context.write_bytes(address, &fill);
    context.state().get::<Allocations>().contiguous.insert(address, allocation);
    At::new(address)
}

fn free_contiguous(context: &Context, address: Memory) {
    let freed = context.state().get::<Allocations>().contiguous.remove(&address.0);
    let Some(freed) = freed else {
        context.stop_for_wrong(address.0, "allocated contiguous memory");
    };
    give_back(context, &freed);
}

fn free_contiguous_cached(context: &Context, address: Memory, bytes: u64, _cache: u32) {
    let pages =
        context.state().get::<Allocations>().contiguous.get(&address.0).map(|found| found.pages);
    if pages.is_some_and(|pages| pages != bytes.div_ceil(PAGE_SIZE)) {
        context.stop_for_misuse(&format!(
            "for {bytes} bytes, which is not the size of the memory at 0x{address:016X}"
        ));
    }
    free_contiguous(context, address);
}

/// Locks the section that contains an address in memory. Returns its handle.
fn lock_section(context: &Context, address: Memory) -> Memory {
    let handle = context.environment().images.lock_section(address.0);
    At::new(handle.unwrap_or_else(|| context.stop_for_wrong(address.0, "in a loaded driver")))
}

/// Locks a section again, given the handle from its first lock.
fn lock_section_again(context: &Context, handle: Memory) {
    lock_section(context, handle);
}

fn unlock_section(context: &Context, handle: Memory) {
    if !context.environment().images.unlock_section(handle.0) {
        context.stop_for_wrong(handle.0, "the handle of a section that is locked");
    }
}

/// Removes the pages whose allocating call `belongs` selects. Returns the number of allocations.
pub fn take_left(context: &Context, belongs: impl Fn(u64) -> bool) -> usize {
    let taken = context.with_state(|allocations: &mut Allocations| {
        let (mut taken, lost) = std::mem::take(&mut allocations.lost)
            .into_iter()
            .partition::<Vec<_>, _>(|one| belongs(one.by));
        allocations.lost = lost;
        for map in [&mut allocations.of_lists, &mut allocations.contiguous] {
            let left = map.iter().filter(|(_, one)| belongs(one.by));
            let left: Vec<u64> = left.map(|(address, _)| *address).collect();
            taken.extend(left.iter().filter_map(|address| map.remove(address)));
        }
        taken
    });
    for one in &taken {
        give_back(context, one);
    }
    taken.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames_at(numbers: &[u64]) -> Frames {
        let mut frames = Frames::default();
        for number in numbers {
            frames.pages.insert(*number, 0);
        }
        frames
    }

    #[test]
    fn frames_are_found_within_their_bounds() {
        let frames = frames_at(&[0x100, 0x101, 0x104]);
        assert_eq!(frames.find(2, Bounds::ANY), Some(0x102));
        assert_eq!(frames.find(3, Bounds::ANY), Some(0x105));
        let bounds =
            |lowest: u64, highest: u64, boundary: u64| Bounds { lowest, highest, boundary };
        assert_eq!(frames.find(1, bounds(0x20_0001, u64::MAX, 0)), Some(0x201));
        assert_eq!(frames.find(2, bounds(0, 0x10_3FFF, 0)), Some(0x102));
        assert_eq!(frames.find(2, bounds(0, 0x10_2FFF, 0)), None);
        assert_eq!(frames.find(3, bounds(0, u64::MAX, 0x4000)), Some(0x105));
        assert_eq!(frames.find(4, bounds(0, u64::MAX, 0x4000)), Some(0x108));
        assert_eq!(frames.find(5, bounds(0, u64::MAX, 0x4000)), None);
    }
}
