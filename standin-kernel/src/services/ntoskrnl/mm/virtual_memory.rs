//! Virtual memory of processes, which drivers allocate with `ZwAllocateVirtualMemory`.
//!
//! All processes share this program's address space, and the kernel chooses the addresses. Memory is
//! accessible as soon as it is reserved, and whatever its protection.

use std::collections::BTreeMap;

use zerocopy::IntoBytes;

use crate::{
    execution::{
        kinds::NtObject,
        routine::{At, Handle, Memory, routine},
    },
    ground::{
        NtResult, NtStatus,
        arena::{Arena, Block},
        memory,
    },
    services::ntoskrnl::{
        context::{Context, Entries},
        ob::handles,
        variables::USER_PROBE_ADDRESS,
    },
};

pub const ENTRIES: Entries = &[
    routine("ZwAllocateVirtualMemory", allocate),
    routine("ZwFreeVirtualMemory", free),
    routine("ZwQueryVirtualMemory", query),
];

const CONFLICTING_ADDRESSES: NtStatus = NtStatus::from_bits(0xC000_0018);
const UNABLE_TO_FREE_VM: NtStatus = NtStatus::from_bits(0xC000_001A);
const INVALID_PAGE_PROTECTION: NtStatus = NtStatus::from_bits(0xC000_0045);
const FREE_VM_NOT_AT_BASE: NtStatus = NtStatus::from_bits(0xC000_009F);
const MEMORY_NOT_ALLOCATED: NtStatus = NtStatus::from_bits(0xC000_00A0);
/// `STATUS_INVALID_PARAMETER_2` to `STATUS_INVALID_PARAMETER_5`.
const INVALID_PARAMETER_2: NtStatus = NtStatus::from_bits(0xC000_00F0);
const INVALID_PARAMETER_3: NtStatus = NtStatus::from_bits(0xC000_00F1);
const INVALID_PARAMETER_4: NtStatus = NtStatus::from_bits(0xC000_00F2);
const INVALID_PARAMETER_5: NtStatus = NtStatus::from_bits(0xC000_00F3);

const PAGE: u64 = PAGE_BYTES as u64;
const PAGE_BYTES: usize = 0x1000;
/// The granularity of the start addresses of regions.
const GRANULARITY: u64 = 0x1_0000;

/// Allocation types, and the states of pages.
mod kind {
    pub const COMMIT: u32 = 0x1000;
    pub const RESERVE: u32 = 0x2000;
    pub const DECOMMIT: u32 = 0x4000;
    pub const RELEASE: u32 = 0x8000;
    pub const FREE: u32 = 0x1_0000;
    pub const PRIVATE: u32 = 0x2_0000;
    pub const RESET: u32 = 0x8_0000;
    pub const TOP_DOWN: u32 = 0x10_0000;
    pub const WRITE_WATCH: u32 = 0x20_0000;
}

/// `PAGE_NOACCESS`, and the other protections that private memory can have.
const NO_ACCESS: u32 = 1;
const PROTECTIONS: [u32; 6] = [NO_ACCESS, 0x2, 0x4, 0x10, 0x20, 0x40];
/// `PAGE_GUARD`, `PAGE_NOCACHE` and `PAGE_WRITECOMBINE`.
const MODIFIERS: u32 = 0x700;

/// The regions, by address.
#[derive(Default)]
struct Regions(BTreeMap<u64, Region>);

struct Region {
    process: u64,
    /// The protection with which the region was reserved.
    protection: u32,
    /// The protection of each page, or `None` if the page is not committed.
    pages: Vec<Option<u32>>,
    _memory: Block,
}

impl Region {
    const fn size(&self) -> u64 {
        self.pages.len() as u64 * PAGE
    }
}

/// Returns the region of a process that contains an address, and its base.
fn region_of(regions: &mut Regions, process: u64, address: u64) -> Option<(u64, &mut Region)> {
    let (base, region) = regions.0.range_mut(..=address).next_back()?;
    (region.process == process && address - base < region.size()).then_some((*base, region))
}

/// Returns the process object of a handle.
fn process_of(context: &Context, handle: Handle<NtObject>) -> NtResult<u64> {
    handles::must_be_process(context, handle.0)?;
    Ok(handles::target_of(context, handle.0)?.object)
}

/// Returns the first address of the page of `base`, and the last byte's page's end, if the range is in the
/// part of the address space that belongs to processes.
fn pages_of(base: u64, size: u64) -> Option<(u64, u64)> {
    let end = base.checked_add(size.max(1))?.checked_next_multiple_of(PAGE)?;
    (end <= USER_PROBE_ADDRESS).then_some((base & !(PAGE - 1), end))
}

/// Returns the indices of pages in a region.
fn indices((start, end): (u64, u64), base: u64) -> std::ops::Range<usize> {
    let index = |address: u64| usize::try_from((address - base) / PAGE).unwrap_or(usize::MAX);
    index(start)..index(end)
}

/// Reserves a region and, if `commits` is set, commits its pages. Returns its address.
fn reserve(
    context: &Context,
    process: u64,
    size: u64,
    protection: u32,
    commits: bool,
) -> NtResult<u64> {
    let room = size.checked_add(GRANULARITY).and_then(|room| usize::try_from(room).ok());
    let memory = room.and_then(Block::try_zeroed).ok_or(NtStatus::NO_MEMORY)?;
    let address = memory.address().next_multiple_of(GRANULARITY);
    let count = usize::try_from(size / PAGE).unwrap_or(usize::MAX);
    let pages = vec![commits.then_some(protection); count];
    let region = Region { process, protection, pages, _memory: memory };
    context.with_state(|Regions(all)| all.insert(address, region));
    Ok(address)
}

fn allocate(
    context: &Context,
    process: Handle<NtObject>,
    base: At<u64>,
    zero_bits: u64,
    size: At<u64>,
    allocation: u32,
    protection: u32,
) -> NtResult {
    /// The largest number of address bits that can be required to be zero; 32 and more are a mask.
    const MAX_ZERO_BITS: u64 = 20;
    const KNOWN: u32 =
        kind::COMMIT | kind::RESERVE | kind::RESET | kind::TOP_DOWN | kind::WRITE_WATCH;
    if zero_bits > MAX_ZERO_BITS && zero_bits < 32 {
        return Err(INVALID_PARAMETER_3);
    }
    if zero_bits != 0 {
        context.stop_for_unprovided("with ZeroBits");
    }
    let changes = allocation & (kind::COMMIT | kind::RESERVE | kind::RESET);
    if changes == 0 || allocation & kind::RESET != 0 && allocation != kind::RESET {
        return Err(INVALID_PARAMETER_5);
    }
    if allocation & !KNOWN != 0 {
        context.stop_for_unprovided(&format!("for the allocation type 0x{allocation:X}"));
    }
    let is_guarded = protection & MODIFIERS != 0;
    let of_pages = protection & !MODIFIERS;
    if !PROTECTIONS.contains(&of_pages) || is_guarded && of_pages == NO_ACCESS {
        return Err(INVALID_PAGE_PROTECTION);
    }
    let (wanted, length) = (base.read(context), size.read(context));
    if wanted >= USER_PROBE_ADDRESS {
        return Err(INVALID_PARAMETER_2);
    }
    if length == 0 || length > USER_PROBE_ADDRESS - wanted {
        return Err(INVALID_PARAMETER_4);
    }
    let process = process_of(context, process)?;
    let commits = allocation & kind::COMMIT != 0;
    if wanted == 0 {
        if allocation == kind::RESET {
            return Err(CONFLICTING_ADDRESSES);
        }
        let length = length.next_multiple_of(PAGE);
        base.write(context, reserve(context, process, length, protection, commits)?);
        size.write(context, length);
        return Ok(());
    }
    // The kernel chooses the addresses of new regions.
    if allocation & kind::RESERVE != 0 {
        return Err(CONFLICTING_ADDRESSES);
    }
    let (start, end) = pages_of(wanted, length).ok_or(INVALID_PARAMETER_4)?;
    context.with_state(|regions: &mut Regions| {
        let (base, region) = region_of(regions, process, start).ok_or(CONFLICTING_ADDRESSES)?;
        let pages = region.pages.get_mut(indices((start, end), base));
        let pages = pages.ok_or(CONFLICTING_ADDRESSES)?;
        if commits {
            pages.fill(Some(protection));
        }
        Ok(())
    })?;
    base.write(context, start);
    size.write(context, end - start);
    Ok(())
}

/// Frees the memory of a process that has ended.
pub fn free_all_of(context: &Context, process: u64) {
    context.with_state(|Regions(all)| all.retain(|_, region| region.process != process));
}

fn free(
    context: &Context,
    process: Handle<NtObject>,
    base: At<u64>,
    size: At<u64>,
    free: u32,
) -> NtResult {
    if free != kind::DECOMMIT && free != kind::RELEASE {
        return Err(INVALID_PARAMETER_4);
    }
    let (wanted, length) = (base.read(context), size.read(context));
    if wanted >= USER_PROBE_ADDRESS {
        return Err(INVALID_PARAMETER_2);
    }
    if length > USER_PROBE_ADDRESS - wanted {
        return Err(INVALID_PARAMETER_3);
    }
    let process = process_of(context, process)?;
    let page = wanted & !(PAGE - 1);
    let (start, end, whole) = context.with_state(|regions: &mut Regions| {
        let found = region_of(regions, process, page).ok_or(MEMORY_NOT_ALLOCATED)?;
        let (at, region) = (found.0, &*found.1);
        if length == 0 {
            // The size 0 stands for the whole region, whose base the caller must pass.
            let is_base = at == page;
            return if is_base {
                Ok((at, at + region.size(), true))
            } else {
                Err(FREE_VM_NOT_AT_BASE)
            };
        }
        let (start, end) = pages_of(wanted, length).ok_or(INVALID_PARAMETER_3)?;
        if end > at + region.size() {
            return Err(UNABLE_TO_FREE_VM);
        }
        Ok((start, end, start == at && end == at + region.size()))
    })?;
    if free == kind::RELEASE && !whole {
        context.stop_for_unprovided("to release a part of a region");
    }
    if free == kind::RELEASE {
        context.with_state(|Regions(all)| all.remove(&start));
    } else {
        let committed: Vec<u64> = context.with_state(|regions: &mut Regions| {
            let found = region_of(regions, process, start);
            let pages =
                found.and_then(|(at, region)| region.pages.get_mut(indices((start, end), at)));
            let pages = (start..end).step_by(PAGE_BYTES).zip(pages.into_iter().flatten());
            pages.filter_map(|(page, state)| state.take().map(|_| page)).collect()
        });
        // Pages that are committed again are zeroed.
        for page in committed {
            context.write_bytes(page, &[0; PAGE_BYTES]);
        }
    }
    base.write(context, start);
    size.write(context, end - start);
    Ok(())
}

/// `MEMORY_BASIC_INFORMATION`.
#[derive(IntoBytes, zerocopy::Immutable)]
#[repr(C)]
struct BasicInformation {
    base: u64,
    allocation: u64,
    allocation_protection: u32,
    partition: u32,
    size: u64,
    state: u32,
    protection: u32,
    kind: u32,
    _padding: u32,
}

/// Describes the pages from an address on that are alike.
fn describe(regions: &mut Regions, process: u64, page: u64) -> BasicInformation {
    let next = regions.0.range(page + 1..).find(|(_, region)| region.process == process);
    let free = next.map_or(USER_PROBE_ADDRESS, |(base, _)| *base) - page;
    let Some((base, region)) = region_of(regions, process, page) else {
        return BasicInformation {
            base: page,
            allocation: 0,
            allocation_protection: 0,
            partition: 0,
            size: free,
            state: kind::FREE,
            protection: NO_ACCESS,
            kind: 0,
            _padding: 0,
        };
    };
    let first = usize::try_from((page - base) / PAGE).unwrap_or(usize::MAX);
    let rest = region.pages.get(first..).unwrap_or_default();
    let protection = rest.first().copied().flatten();
    let alike = rest.iter().take_while(|one| **one == protection).count();
    BasicInformation {
        base: page,
        allocation: base,
        allocation_protection: region.protection,
        partition: 0,
        size: alike as u64 * PAGE,
        state: if protection.is_some() { kind::COMMIT } else { kind::RESERVE },
        protection: protection.unwrap_or(0),
        kind: kind::PRIVATE,
        _padding: 0,
    }
}

/// Describes memory that was allocated here, and memory that is free.
fn query(
    context: &Context,
    process: Handle<NtObject>,
    address: Memory,
    class: i32,
    buffer: Memory,
    length: u64,
    needed: At<u64>,
) -> NtResult {
    /// `MemoryBasicInformation`.
    const BASIC: i32 = 0;
    const SIZE: u64 = size_of::<BasicInformation>() as u64;
    if class != BASIC {
        context.stop_for_unprovided(&format!("for the MEMORY_INFORMATION_CLASS {class}"));
    }
    if length < SIZE {
        return Err(NtStatus::INFO_LENGTH_MISMATCH);
    }
    if address.0 >= USER_PROBE_ADDRESS {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    let process = process_of(context, process)?;
    let page = address.0 & !(PAGE - 1);
    let found = context.with_state(|regions: &mut Regions| describe(regions, process, page));
    // The kernel's own memory is not the process's.
    let is_kernels = Arena::non_paged().contains(page);
    if found.state == kind::FREE && !is_kernels && memory::read::<u8>(page).is_ok() {
        context.stop_for_unprovided("for memory that ZwAllocateVirtualMemory did not allocate");
    }
    context.write_bytes(buffer.0, found.as_bytes());
    needed.write_optional(context, SIZE);
    Ok(())
}
