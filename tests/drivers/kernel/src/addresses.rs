//! Probes of addresses, physical pages, and sections that are locked in memory.

use core::{
    ffi::c_void,
    sync::atomic::{AtomicU64, Ordering},
};

use etw_driver_support::at_irql;
use wdk_sys::{PMDL, PVOID};

use crate::call::{Bits, NULL, call, field, pointer, same, set_field};

const PAGE: u64 = 4096;

/// Code that the system can page out.
#[unsafe(link_section = "PAGE")]
#[inline(never)]
extern "C" fn pageable(value: u64) -> u64 {
    CALLS.fetch_add(value, Ordering::Relaxed)
}

static CALLS: AtomicU64 = AtomicU64::new(0);

pub fn run() {
    // A probe that raises no exception returns.
    call!(ProbeForRead, pointer(0x1_0000), 64, 4);
    call!(ProbeForRead, pointer(1), 0, 8);
    call!(ProbeForWrite, pointer(1), 0, 8);
    frames();
    lists();
    contiguous();
    let handle = call!(MmLockPagableDataSection, pageable as *const c_void);
    same!(handle.is_null(), false);
    call!(MmLockPagableSectionByHandle, handle);
    call!(MmUnlockPagableImageSection, handle);
    at_irql(2, || {
        pageable(1);
    });
    call!(MmUnlockPagableImageSection, handle);
}

/// Calls pageable code that is not locked in memory.
pub fn pageable_raised() {
    let handle = call!(MmLockPagableDataSection, pageable as *const c_void);
    call!(MmUnlockPagableImageSection, handle);
    at_irql(2, || {
        pageable(1);
    });
}

/// Returns the physical address of memory.
fn physical(memory: PVOID) -> u64 {
    call!(MmGetPhysicalAddress, memory).bits()
}

fn frames() {
    let block = call!(ExAllocatePool2, 0x40, 2 * PAGE, 0x7473_6574);
    let inside = block.wrapping_byte_add(8);
    let first = physical(inside);
    same!(first % PAGE, inside as u64 % PAGE);
    same!(physical(inside), first);
    same!(call!(MmGetVirtualForPhysical, first), inside);
    let other = physical(inside.wrapping_byte_add(PAGE as usize));
    same!(other != 0 && other != first, true);
    same!(physical(pointer(8)), 0);
    call!(ExFreePoolWithTag, block, 0);
}

fn lists() {
    let mdl = call!(MmAllocatePagesForMdlEx, 0, u64::MAX, 0, 2 * PAGE + 1, 1, 0);
    same!(mdl.is_null(), false);
    let word = |list: PMDL, offset: usize| field::<u64>(list.cast(), offset);
    // The list is locked and has three pages.
    same!(word(mdl, 8) >> 16 & 3, 2);
    same!(word(mdl, 40) & 0xFFFF_FFFF, 3 * PAGE);
    let mapped = call!(MmMapLockedPagesSpecifyCache, mdl, 0, 1, NULL, 0, 16);
    same!(!mapped.is_null() && mapped.addr().is_multiple_of(PAGE as usize), true);
    let second = mapped.wrapping_byte_add(PAGE as usize);
    same!(physical(second), word(mdl, 56) * PAGE);
    set_field(mapped, 3 * PAGE as usize - 8, 7_u64);
    let part = call!(IoAllocateMdl, pointer(PAGE as usize), 100, 0, 0, NULL);
    call!(IoBuildPartialMdl, mdl, part, pointer(PAGE as usize), 100);
    same!(field::<PVOID>(part.cast(), 24), second);
    call!(IoFreeMdl, part);
    call!(MmUnmapLockedPages, mapped, mdl);
    call!(MmFreePagesFromMdl, mdl);
    call!(ExFreePool, mdl);
    same!(call!(MmAllocatePagesForMdl, 0, 0xFFFF, 0, PAGE), 0);
}

fn contiguous() {
    let low = 0xFFFF_FFFF_u64;
    let block = call!(MmAllocateContiguousMemorySpecifyCache, 3 * PAGE, 0, low, 4 * PAGE, 1);
    same!(block.is_null(), false);
    let first = physical(block);
    same!(first + 3 * PAGE <= low, true);
    same!(first / (4 * PAGE), (first + 3 * PAGE - 1) / (4 * PAGE));
    for page in 0..3 {
        let at = block.wrapping_byte_add((page * PAGE) as usize);
        same!(physical(at), first + page * PAGE);
    }
    call!(MmFreeContiguousMemorySpecifyCache, block, 3 * PAGE, 1);
    let block = call!(MmAllocateContiguousMemory, 100, low);
    same!(block as u64 % PAGE, 0);
    call!(MmFreeContiguousMemory, block);
}

pub fn probe_stack() {
    let mut local = 0_u64;
    call!(ProbeForRead, &mut local, 8, 8);
}

pub fn probe_misaligned() {
    call!(ProbeForRead, pointer(0x1_0004), 8, 8);
}

pub fn probe_end() {
    call!(ProbeForWrite, pointer(0x7FFF_FFFE_FFF0), 0x20, 1);
}

pub fn probe_nothing() {
    call!(ProbeForWrite, pointer(0x1_0000), 8, 1);
}

pub fn raise() {
    call!(ExRaiseStatus, 0xC000_0022_u32);
}

pub fn pages_left() {
    call!(MmAllocateContiguousMemory, 100, u64::MAX);
}
