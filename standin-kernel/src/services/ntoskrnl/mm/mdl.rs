//! Memory descriptor lists.

use super::pages;
use crate::{
    execution::routine::{At, Memory, low_half, routine},
    ground::{
        abi::{Irp, Mdl},
        arena::{Arena, PAGE},
        irql::Irql,
        memory,
        rule::Rule,
    },
    services::{
        managers::pool::Tag,
        ntoskrnl::{
            context::{Context, Entries},
            ex::pool,
        },
    },
};
use std::collections::BTreeSet;

const APC: Irql = Irql::APC_LEVEL;

pub const ENTRIES: Entries = &[
    routine("IoAllocateMdl", allocate),
    routine("IoFreeMdl", free),
    routine("MmSizeOfMdl", size),
    routine("MmBuildMdlForNonPagedPool", build),
    routine("MmProbeAndLockPages", probe_and_lock),
    routine("MmUnlockPages", unlock),
    routine("MmMapLockedPages", map_cached),
    routine("MmMapLockedPagesSpecifyCache", map),
    routine("MmUnmapLockedPages", unmap),
    routine("KeFlushIoBuffers", flush_buffers),
    routine("IoBuildPartialMdl", build_partial),
    routine("MmPrepareMdlForReuse", prepare_for_reuse),
];

/// The tag of allocated descriptors.
const TAG: Tag = Tag(u32::from_le_bytes(*b"Mdl "));

/// The flags in `MdlFlags`.
mod flag {
    pub const MAPPED_TO_SYSTEM_VA: i16 = 0x1;
    pub const PAGES_LOCKED: i16 = 0x2;
    pub const SOURCE_IS_NONPAGED_POOL: i16 = 0x4;
    pub const PARTIAL: i16 = 0x10;
    pub const PARTIAL_HAS_BEEN_MAPPED: i16 = 0x20;
    pub const WRITE_OPERATION: i16 = 0x80;
}

/// The size of a descriptor's header. The header is followed by 8 bytes per page.
const HEADER: u64 = size_of::<Mdl>() as u64;

const OF_PAGE: u64 = 8;
const PAGE_SIZE: u64 = PAGE as u64;

/// Returns the size of a descriptor for a buffer.
const fn size_for(address: u64, length: u64) -> u64 {
    let pages = ((address & (PAGE_SIZE - 1)) + length).div_ceil(PAGE_SIZE);
    HEADER + pages * OF_PAGE
}

const fn size(_context: &Context, address: Memory, length: u64) -> u64 {
    size_for(address.0, length & 0xFFFF_FFFF)
}

/// Checks that the pages are locked. Has no other effect, because x64 caches are coherent with
/// devices.
fn flush_buffers(context: &Context, mdl: At<Mdl>, _is_read: bool, _is_dma: bool) {
    let value = mdl.read(context);
    if value.mdl_flags & (flag::PAGES_LOCKED | flag::SOURCE_IS_NONPAGED_POOL | flag::PARTIAL) == 0 {
        context.stop_for_misuse(&format!(
            "for the list at 0x{:016X}, whose pages are not locked",
            mdl.0
        ));
    }
}

/// Allocates a descriptor for a buffer, and optionally appends it to a request's list.
fn allocate(
    context: &Context,
    address: Memory,
    length: u32,
    secondary: bool,
    _quota: bool,
    irp: At<Irp>,
) -> At<Mdl> {
    /// The offset of a request's list.
    const MDL_ADDRESS: u64 = 8;
    let size = size_for(address.0, length.into());
    // The field is too small for the size of the largest list.
    let field = i16::try_from(size).unwrap_or(i16::MAX);
    let size = usize::try_from(size).unwrap_or(usize::MAX);
    let Some(mdl) = context.allocate(size, TAG, false) else {
        return At::NULL;
    };
    pages::forget_list(context, mdl);
    let value = Mdl {
        size: field,
        start_va: address.0 & !(PAGE_SIZE - 1),
        byte_count: length,
        byte_offset: low_half(address.0 & (PAGE_SIZE - 1)),
        ..Default::default()
    };
    context.write(mdl, &value);
    if !irp.is_null() {
        let mut at = irp.0.wrapping_add(MDL_ADDRESS);
        if secondary {
            // The first field of a descriptor is its link.
            let mut seen = BTreeSet::new();
            loop {
                let next: u64 = context.read(at);
                if next == 0 {
                    break;
                }
                if !seen.insert(next) {
                    context.stop_for_misuse(
                        "for a request whose memory descriptor lists form a cycle",
                    );
                }
                at = next;
            }
        }
        context.write(at, &mdl);
    }
    At::new(mdl)
}

fn free(context: &Context, mdl: At<Mdl>) {
    let value = mdl.read(context);
    if value.mdl_flags & flag::PAGES_LOCKED != 0 {
        context.stop_for_misuse("for a memory descriptor list whose pages are locked");
    }
    pool::free_block(context, mdl.0);
}

/// Returns the address of a descriptor's buffer.
pub const fn address_of(mdl: &Mdl) -> u64 {
    mdl.start_va.wrapping_add(mdl.byte_offset as u64)
}

/// Builds the descriptor of non-paged memory. Bugchecks for other memory.
fn build(context: &Context, mdl: At<Mdl>) {
    let mut value = mdl.read(context);
    let address = address_of(&value);
    let is_resident = Arena::non_paged().contains(address)
        || context.environment().images.contains(address)
        || context.environment().live_stacks.contains(address);
    if !is_resident {
        context.stop_for_misuse(&format!(
            "for the buffer at 0x{address:016X}, which is not in nonpaged memory"
        ));
    }
    value.mdl_flags |= flag::SOURCE_IS_NONPAGED_POOL;
    value.mapped_system_va = address;
    mdl.write(context, value);
}

/// The kind of access for which pages are locked: `IoReadAccess`, `IoWriteAccess` or `IoModifyAccess`.
const READ_ACCESS: u32 = 0;

/// Locks a buffer's pages. For a bad buffer, Windows raises an exception.
fn probe_and_lock(context: &Context, mdl: At<Mdl>, _mode: i8, operation: u32) {
    let mut value = mdl.read(context);
    if value.mdl_flags & (flag::PAGES_LOCKED | flag::SOURCE_IS_NONPAGED_POOL) != 0 {
        context.stop_for_misuse("for a memory descriptor list that is already locked or built");
    }
    let address = address_of(&value);
    pages::forget_list(context, mdl.0);
    if context.environment().paged.contains(address) {
        context.require_irql(APC, "for a pageable buffer");
    }
    let last = address.wrapping_add(u64::from(value.byte_count).saturating_sub(1));
    for at in [address, last] {
        context.checked(memory::read::<u8>(at));
    }
    value.mdl_flags |= flag::PAGES_LOCKED;
    if operation != READ_ACCESS {
        value.mdl_flags |= flag::WRITE_OPERATION;
    }
    mdl.write(context, value);
}

fn unlock(context: &Context, mdl: At<Mdl>) {
    let mut value = mdl.read(context);
    if value.mdl_flags & flag::PAGES_LOCKED == 0 {
        context.stop_for_misuse("for a memory descriptor list whose pages are not locked");
    }
    value.mdl_flags &= !(flag::PAGES_LOCKED | flag::WRITE_OPERATION | flag::MAPPED_TO_SYSTEM_VA);
    value.mapped_system_va = 0;
    mdl.write(context, value);
}

/// Marks a descriptor as mapped; its pages are already accessible.
pub fn map(
    context: &Context,
    mdl: At<Mdl>,
    mode: i8,
    _cache: u32,
    _address: Memory,
    _bugcheck: u32,
    _priority: u32,
) -> Memory {
    let mut value = mdl.read(context);
    if mode != 0 {
        context.stop_call(
            Rule::NotProvided,
            "to map memory for a process; the stand-in kernel does not provide that",
        );
    }
    if value.mdl_flags & (flag::PAGES_LOCKED | flag::PARTIAL) == 0 {
        context.stop_for_misuse("for a memory descriptor list whose pages are not locked");
    }
    if value.mdl_flags & flag::MAPPED_TO_SYSTEM_VA != 0 {
        context.stop_for_misuse("for a memory descriptor list that is already mapped");
    }
    value.mdl_flags |= flag::MAPPED_TO_SYSTEM_VA;
    if value.mdl_flags & flag::PARTIAL != 0 {
        value.mdl_flags |= flag::PARTIAL_HAS_BEEN_MAPPED;
    }
    let pages = pages::address_of(context, mdl.0);
    value.mapped_system_va = pages.unwrap_or_else(|| address_of(&value));
    mdl.write(context, value);
    At::new(value.mapped_system_va)
}

/// Maps the pages of a list. See [`map`].
fn map_cached(context: &Context, mdl: At<Mdl>, mode: i8) -> Memory {
    /// `MmCached`.
    const CACHED: u32 = 1;
    map(context, mdl, mode, CACHED, At::NULL, 1, 0)
}

pub fn unmap(context: &Context, address: Memory, mdl: At<Mdl>) {
    let mut value = mdl.read(context);
    if value.mdl_flags & flag::MAPPED_TO_SYSTEM_VA == 0 || value.mapped_system_va != address.0 {
        context.stop_for_misuse("for an address at which the list is not mapped");
    }
    value.mdl_flags &= !(flag::MAPPED_TO_SYSTEM_VA | flag::PARTIAL_HAS_BEEN_MAPPED);
    value.mapped_system_va = 0;
    mdl.write(context, value);
}

/// Builds a descriptor for a part of another descriptor's buffer.
fn build_partial(
    context: &Context,
    source: At<Mdl>,
    target: At<Mdl>,
    address: Memory,
    length: u32,
) {
    let from = source.read(context);
    let mut to = target.read(context);
    let offset = address.0.wrapping_sub(address_of(&from));
    let offset_in_list = u32::try_from(offset).ok();
    let rest = offset_in_list.and_then(|offset| from.byte_count.checked_sub(offset));
    let length = match length {
        0 => rest,
        length => rest.filter(|rest| length <= *rest).map(|_| length),
    };
    let room = length
        .map(|length| size_for(address.0, length.into()) <= u64::from(to.size.unsigned_abs()));
    let (Some(length), Some(true)) = (length, room) else {
        context.stop_for_misuse(
            "with a range that is not in the source MDL's buffer, or a target MDL that is too small for it",
        );
    };
    to.start_va = address.0 & !(PAGE_SIZE - 1);
    to.byte_offset = low_half(address.0 & (PAGE_SIZE - 1));
    to.byte_count = length;
    to.process = from.process;
    to.mdl_flags = flag::PARTIAL
        | from.mdl_flags
            & (flag::SOURCE_IS_NONPAGED_POOL | flag::WRITE_OPERATION | flag::MAPPED_TO_SYSTEM_VA);
    if from.mdl_flags & (flag::SOURCE_IS_NONPAGED_POOL | flag::MAPPED_TO_SYSTEM_VA) != 0 {
        to.mapped_system_va = from.mapped_system_va.wrapping_add(offset);
    }
    pages::note_part(context, source.0, target.0, offset);
    target.write(context, to);
}

/// Marks a partial list as not mapped.
fn prepare_for_reuse(context: &Context, mdl: At<Mdl>) {
    let mut value = mdl.read(context);
    value.mdl_flags &= !(flag::PARTIAL_HAS_BEEN_MAPPED | flag::MAPPED_TO_SYSTEM_VA);
    mdl.write(context, value);
}

/// Allocates a descriptor with locked pages for the I/O manager.
pub fn locked(context: &Context, address: u64, length: usize) -> u64 {
    let mdl = allocate(
        context,
        At::new(address),
        u32::try_from(length).unwrap_or(u32::MAX),
        false,
        false,
        At::NULL,
    );
    let mut value: Mdl = context.read(mdl.0);
    value.mdl_flags |= flag::PAGES_LOCKED;
    context.write(mdl.0, &value);
    mdl.0
}

/// Frees a descriptor that the I/O manager allocated.
pub fn discard(context: &Context, mdl: u64) {
    context.free_own(mdl);
}
