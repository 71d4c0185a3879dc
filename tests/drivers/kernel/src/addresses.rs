//! Probes of addresses, physical pages, and sections that are locked in memory.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::call::{Routine, at, call, same};

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
    call!("ProbeForRead", 0x1_0000, 64, 4);
    call!("ProbeForRead", 1, 0, 8);
    call!("ProbeForWrite", 1, 0, 8);
    frames();
    lists();
    contiguous();
    let handle = call!("MmLockPagableDataSection", pageable as *const () as u64);
    same!(handle != 0, true);
    call!("MmLockPagableSectionByHandle", handle);
    call!("MmUnlockPagableImageSection", handle);
    raised(|| {
        pageable(1);
    });
    call!("MmUnlockPagableImageSection", handle);
}

/// Calls pageable code that is not locked in memory.
pub fn pageable_raised() {
    let handle = call!("MmLockPagableDataSection", pageable as *const () as u64);
    call!("MmUnlockPagableImageSection", handle);
    raised(|| {
        pageable(1);
    });
}

fn raised(body: impl FnOnce()) {
    let (raise, lower) = (Routine::find("KfRaiseIrql"), Routine::find("KeLowerIrql"));
    let before = raise.call(&[2]);
    body();
    lower.call(&[before & 0xFF]);
}

fn frames() {
    let block = call!("ExAllocatePool2", 0x40, 2 * PAGE, 0x7473_6574);
    let physical = call!("MmGetPhysicalAddress", block + 8);
    same!(physical % PAGE, (block + 8) % PAGE);
    same!(call!("MmGetPhysicalAddress", block + 8), physical);
    same!(call!("MmGetVirtualForPhysical", physical), block + 8);
    let other = call!("MmGetPhysicalAddress", block + PAGE + 8);
    same!(other != 0 && other != physical, true);
    same!(call!("MmGetPhysicalAddress", 8), 0);
    call!("ExFreePoolWithTag", block, 0);
}

/// Reads a field of a memory descriptor list.
const fn field(mdl: u64, offset: u64) -> u64 {
    // SAFETY: the list was allocated, and has the field.
    unsafe { ((mdl + offset) as *const u64).read() }
}

fn lists() {
    let mdl = call!("MmAllocatePagesForMdlEx", 0, u64::MAX, 0, 2 * PAGE + 1, 1, 0);
    same!(mdl != 0, true);
    // The list is locked and has three pages.
    same!(field(mdl, 8) >> 16 & 3, 2);
    same!(field(mdl, 40) & 0xFFFF_FFFF, 3 * PAGE);
    let mapped = call!("MmMapLockedPagesSpecifyCache", mdl, 0, 1, 0, 0, 16);
    same!(mapped != 0 && mapped.is_multiple_of(PAGE), true);
    same!(call!("MmGetPhysicalAddress", mapped + PAGE), field(mdl, 56) * PAGE);
    // SAFETY: three pages are mapped.
    unsafe { ((mapped + 3 * PAGE - 8) as *mut u64).write(7) };
    let part = call!("IoAllocateMdl", PAGE, 100, 0, 0, 0);
    call!("IoBuildPartialMdl", mdl, part, PAGE, 100);
    same!(field(part, 24), mapped + PAGE);
    call!("IoFreeMdl", part);
    call!("MmUnmapLockedPages", mapped, mdl);
    call!("MmFreePagesFromMdl", mdl);
    call!("ExFreePool", mdl);
    same!(call!("MmAllocatePagesForMdl", 0, 0xFFFF, 0, PAGE), 0);
}

fn contiguous() {
    let low = 0xFFFF_FFFF_u64;
    let block = call!("MmAllocateContiguousMemorySpecifyCache", 3 * PAGE, 0, low, 4 * PAGE, 1);
    same!(block != 0, true);
    let first = call!("MmGetPhysicalAddress", block);
    same!(first + 3 * PAGE <= low, true);
    same!(first / (4 * PAGE), (first + 3 * PAGE - 1) / (4 * PAGE));
    for page in 0..3 {
        let at = block + page * PAGE;
        same!(call!("MmGetPhysicalAddress", at), first + page * PAGE);
    }
    call!("MmFreeContiguousMemorySpecifyCache", block, 3 * PAGE, 1);
    let block = call!("MmAllocateContiguousMemory", 100, low);
    same!(block % PAGE, 0);
    call!("MmFreeContiguousMemory", block);
}

pub fn probe_stack() {
    let mut local = 0_u64;
    call!("ProbeForRead", at(&mut local), 8, 8);
}

pub fn probe_misaligned() {
    call!("ProbeForRead", 0x1_0004, 8, 8);
}

pub fn probe_end() {
    call!("ProbeForWrite", 0x7FFF_FFFE_FFF0_u64, 0x20, 1);
}

pub fn probe_nothing() {
    call!("ProbeForWrite", 0x1_0000, 8, 1);
}

pub fn raise() {
    call!("ExRaiseStatus", 0xC000_0022_u32);
}

pub fn pages_left() {
    call!("MmAllocateContiguousMemory", 100, u64::MAX);
}
