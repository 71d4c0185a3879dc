//! Memory descriptor lists.

use super::pages;
use crate::{
    execution::routine::{Routine, low_half},
    ground::{
        abi::Mdl,
        arena::{Arena, PAGE},
        irql::Irql,
        memory,
        rule::Rule,
    },
    services::{
        managers::pool::{Tag, Wanted},
        ntoskrnl::{
            context::{Context, Entries},
            ex::pool,
        },
    },
};
use std::collections::BTreeSet;

const DISPATCH: Irql = Irql::DISPATCH_LEVEL;
const APC: Irql = Irql::APC_LEVEL;
const HIGH: Irql = Irql::HIGH_LEVEL;

pub const ENTRIES: Entries = &[
    ("IoAllocateMdl", DISPATCH, Routine::Five(allocate)),
    ("IoFreeMdl", DISPATCH, Routine::One(free)),
    ("MmSizeOfMdl", HIGH, Routine::Two(size)),
    ("MmBuildMdlForNonPagedPool", DISPATCH, Routine::One(build)),
    ("MmProbeAndLockPages", DISPATCH, Routine::Three(probe_and_lock)),
    ("MmUnlockPages", DISPATCH, Routine::One(unlock)),
    ("MmMapLockedPagesSpecifyCache", DISPATCH, Routine::Six(map)),
    ("MmUnmapLockedPages", DISPATCH, Routine::Two(unmap)),
    ("KeFlushIoBuffers", DISPATCH, Routine::Three(flush_buffers)),
    ("IoBuildPartialMdl", DISPATCH, Routine::Four(build_partial)),
    ("MmPrepareMdlForReuse", DISPATCH, Routine::One(prepare_for_reuse)),
];

/// The tag of allocated descriptors.
const TAG: Tag = Tag(u32::from_le_bytes(*b"Mdl "));

/// The flags in `MdlFlags`.
mod flag {
    pub const MAPPED_TO_SYSTEM_VA: u16 = 0x1;
    pub const PAGES_LOCKED: u16 = 0x2;
    pub const SOURCE_IS_NONPAGED_POOL: u16 = 0x4;
    pub const PARTIAL: u16 = 0x10;
    pub const PARTIAL_HAS_BEEN_MAPPED: u16 = 0x20;
    pub const WRITE_OPERATION: u16 = 0x80;
}

/// The size of a descriptor's header, after which there are 8 bytes for each page.
const HEADER: u64 = size_of::<Mdl>() as u64;

const OF_PAGE: u64 = 8;
const PAGE_SIZE: u64 = PAGE as u64;

/// Returns the size of a descriptor for a buffer.
const fn size_for(address: u64, length: u64) -> u64 {
    let pages = ((address & (PAGE_SIZE - 1)) + length).div_ceil(PAGE_SIZE);
    HEADER + pages * OF_PAGE
}

pub const fn size(_context: &Context, address: u64, length: u64) -> u64 {
    size_for(address, length & 0xFFFF_FFFF)
}

/// Flushes the caches for a transfer, which on x64 are coherent with devices. The pages must be locked.
fn flush_buffers(context: &Context, mdl: u64, _is_read: u64, _is_dma: u64) -> u64 {
    let value: Mdl = context.read(mdl);
    if value.flags & (flag::PAGES_LOCKED | flag::SOURCE_IS_NONPAGED_POOL | flag::PARTIAL) == 0 {
        context
            .stop_for_misuse(&format!("for the list at 0x{mdl:016X}, whose pages are not locked"));
    }
    0
}

/// Allocates a descriptor for a buffer, and optionally appends it to a request's list.
pub fn allocate(
    context: &Context,
    address: u64,
    length: u64,
    secondary: u64,
    _quota: u64,
    irp: u64,
) -> u64 {
    /// The offset of a request's list.
    const MDL_ADDRESS: u64 = 8;
    let length = u64::from(low_half(length));
    let size = size_for(address, length);
    // The size is a signed 16-bit field on disk formats, and Windows limits it to that too.
    let Ok(field) = i16::try_from(size.min(u64::from(i16::MAX.unsigned_abs()))) else {
        return 0;
    };
    let wanted = Wanted {
        size: usize::try_from(size).unwrap_or(usize::MAX),
        tag: TAG,
        paged: false,
        uninitialized: false,
    };
    let Some(mdl) = context.pool().allocate(wanted, context, context.call()) else {
        return 0;
    };
    pages::forget_list(context, mdl);
    let value = Mdl {
        next: 0,
        size: field,
        flags: 0,
        reserved: 0,
        process: 0,
        mapped: 0,
        start: address & !(PAGE_SIZE - 1),
        byte_count: low_half(length),
        byte_offset: low_half(address & (PAGE_SIZE - 1)),
    };
    context.write(mdl, &value);
    if irp != 0 {
        let mut at = irp.wrapping_add(MDL_ADDRESS);
        if secondary & 0xFF != 0 {
            // A descriptor's link is its first field.
            let mut seen = BTreeSet::new();
            loop {
                let next: u64 = context.read(at);
                if next == 0 {
                    break;
                }
                if !seen.insert(next) {
                    context.stop_for_misuse(
                        "for a request whose memory descriptor lists lead back to themselves",
                    );
                }
                at = next;
            }
        }
        context.write(at, &mdl);
    }
    mdl
}

pub fn free(context: &Context, mdl: u64) -> u64 {
    let value: Mdl = context.read(mdl);
    if value.flags & flag::PAGES_LOCKED != 0 {
        context.stop_for_misuse("for a memory descriptor list whose pages are locked");
    }
    pool::free_block(context, mdl);
    0
}

/// Returns the address of a descriptor's buffer.
pub const fn address_of(mdl: &Mdl) -> u64 {
    mdl.start.wrapping_add(mdl.byte_offset as u64)
}

/// Describes memory that is not paged. Bugchecks for other memory.
fn build(context: &Context, mdl: u64) -> u64 {
    let mut value: Mdl = context.read(mdl);
    let address = address_of(&value);
    let is_resident = Arena::non_paged().contains(address)
        || context.environment().images.contains(address)
        || context.environment().live_stacks.contains(address);
    if !is_resident {
        context.stop_for_misuse(&format!(
            "for the buffer at 0x{address:016X}, which is not in nonpaged memory"
        ));
    }
    value.flags |= flag::SOURCE_IS_NONPAGED_POOL;
    value.mapped = address;
    context.write(mdl, &value);
    0
}

/// The access that pages are locked for: `IoReadAccess`, `IoWriteAccess` or `IoModifyAccess`.
const READ_ACCESS: u32 = 0;

/// Locks a buffer's pages. Windows raises an exception for a bad buffer.
fn probe_and_lock(context: &Context, mdl: u64, _mode: u64, operation: u64) -> u64 {
    let mut value: Mdl = context.read(mdl);
    if value.flags & (flag::PAGES_LOCKED | flag::SOURCE_IS_NONPAGED_POOL) != 0 {
        context.stop_for_misuse("for a memory descriptor list that is locked or built already");
    }
    let address = address_of(&value);
    pages::forget_list(context, mdl);
    if context.environment().paged.contains(address) {
        context.require_irql(APC, "for a pageable buffer");
    }
    let last = address.wrapping_add(u64::from(value.byte_count).saturating_sub(1));
    for at in [address, last] {
        context.checked(memory::read::<u8>(at));
    }
    value.flags |= flag::PAGES_LOCKED;
    if low_half(operation) != READ_ACCESS {
        value.flags |= flag::WRITE_OPERATION;
    }
    context.write(mdl, &value);
    0
}

fn unlock(context: &Context, mdl: u64) -> u64 {
    let mut value: Mdl = context.read(mdl);
    if value.flags & flag::PAGES_LOCKED == 0 {
        context.stop_for_misuse("for a memory descriptor list whose pages are not locked");
    }
    value.flags &= !(flag::PAGES_LOCKED | flag::WRITE_OPERATION | flag::MAPPED_TO_SYSTEM_VA);
    value.mapped = 0;
    context.write(mdl, &value);
    0
}

/// Maps a descriptor's pages, which are at their address already.
fn map(
    context: &Context,
    mdl: u64,
    mode: u64,
    _cache: u64,
    _address: u64,
    _bugcheck: u64,
    _priority: u64,
) -> u64 {
    let mut value: Mdl = context.read(mdl);
    if mode & 0xFF != 0 {
        context.stop(
            Rule::NotProvided,
            format!(
                "{} was called from {} to map memory for a process; the stand-in kernel does not \
                 provide that",
                context.call().name,
                context.caller()
            ),
        );
    }
    if value.flags & (flag::PAGES_LOCKED | flag::PARTIAL) == 0 {
        context.stop_for_misuse("for a memory descriptor list whose pages are not locked");
    }
    if value.flags & flag::MAPPED_TO_SYSTEM_VA != 0 {
        context.stop_for_misuse("for a memory descriptor list that is mapped already");
    }
    value.flags |= flag::MAPPED_TO_SYSTEM_VA;
    if value.flags & flag::PARTIAL != 0 {
        value.flags |= flag::PARTIAL_HAS_BEEN_MAPPED;
    }
    let pages = pages::address_of(context, mdl);
    value.mapped = pages.unwrap_or_else(|| address_of(&value));
    context.write(mdl, &value);
    value.mapped
}

fn unmap(context: &Context, address: u64, mdl: u64) -> u64 {
    let mut value: Mdl = context.read(mdl);
    if value.flags & flag::MAPPED_TO_SYSTEM_VA == 0 || value.mapped != address {
        context.stop_for_misuse("for an address at which the list is not mapped");
    }
    value.flags &= !(flag::MAPPED_TO_SYSTEM_VA | flag::PARTIAL_HAS_BEEN_MAPPED);
    value.mapped = 0;
    context.write(mdl, &value);
    0
}

/// Describes a part of another descriptor's buffer.
fn build_partial(context: &Context, source: u64, target: u64, address: u64, length: u64) -> u64 {
    let from: Mdl = context.read(source);
    let mut to: Mdl = context.read(target);
    let offset = address.wrapping_sub(address_of(&from));
    let rest = u64::from(from.byte_count).checked_sub(offset);
    let length = match u64::from(low_half(length)) {
        0 => rest,
        length => rest.filter(|rest| length <= *rest).map(|_| length),
    };
    let room = length.map(|length| size_for(address, length) <= u64::from(to.size.unsigned_abs()));
    let (Some(length), Some(true)) = (length, room) else {
        context.stop_for_misuse("with a part that does not fit one of the lists");
    };
    to.start = address & !(PAGE_SIZE - 1);
    to.byte_offset = low_half(address & (PAGE_SIZE - 1));
    to.byte_count = low_half(length);
    to.process = from.process;
    to.flags = flag::PARTIAL
        | from.flags
            & (flag::SOURCE_IS_NONPAGED_POOL | flag::WRITE_OPERATION | flag::MAPPED_TO_SYSTEM_VA);
    if from.flags & (flag::SOURCE_IS_NONPAGED_POOL | flag::MAPPED_TO_SYSTEM_VA) != 0 {
        to.mapped = from.mapped.wrapping_add(offset);
    }
    pages::note_part(context, source, target, offset);
    context.write(target, &to);
    0
}

/// Forgets that a partial list was mapped.
fn prepare_for_reuse(context: &Context, mdl: u64) -> u64 {
    let mut value: Mdl = context.read(mdl);
    value.flags &= !(flag::PARTIAL_HAS_BEEN_MAPPED | flag::MAPPED_TO_SYSTEM_VA);
    context.write(mdl, &value);
    0
}

/// Allocates a descriptor for the I/O manager, whose pages are locked.
pub fn locked(context: &Context, address: u64, length: usize) -> u64 {
    let mdl = allocate(context, address, length as u64, 0, 0, 0);
    let mut value: Mdl = context.read(mdl);
    value.flags |= flag::PAGES_LOCKED;
    context.write(mdl, &value);
    mdl
}

/// Frees a descriptor of the I/O manager.
pub fn discard(context: &Context, mdl: u64) {
    // The block is this module's.
    drop(context.pool().free(mdl, context, context.call()));
}
