//! Memory descriptor lists and lookaside lists.

use core::sync::atomic::{AtomicU32, Ordering};

use crate::call::{address, at, call, low, same};

const TAG: u64 = 0x7473_6574;

pub fn run() {
    descriptors();
    partial_descriptors();
    lookaside_lists();
}

/// Returns a field of a memory descriptor list.
const fn field(mdl: u64, offset: u64) -> u64 {
    // SAFETY: the list was allocated, and has the field.
    unsafe { ((mdl + offset) as *const u64).read() }
}

/// Returns the flags that state whether a list is mapped, is locked, and describes nonpaged pool.
const fn flags(mdl: u64) -> u64 {
    (field(mdl, 8) >> 16) & 0xFFFF
}

/// The offset of the address at which a list is mapped.
const MAPPED: u64 = 24;

fn descriptors() {
    let block = call!("ExAllocatePool2", 0x40, 100, TAG);
    let mdl = call!("IoAllocateMdl", block, 100, 0, 0, 0);
    same!(field(mdl, 32) + (field(mdl, 40) >> 32), block);
    same!(field(mdl, 40) & 0xFFFF_FFFF, 100);
    call!("MmBuildMdlForNonPagedPool", mdl);
    same!(flags(mdl), 4);
    same!(field(mdl, MAPPED), block);
    call!("IoFreeMdl", mdl);
    call!("ExFreePool", block);
    let block = call!("ExAllocatePool2", 0x100, 5000, TAG);
    let mdl = call!("IoAllocateMdl", block, 5000, 0, 0, 0);
    call!("MmProbeAndLockPages", mdl, 0, 1);
    same!(flags(mdl), 0x82);
    let mapped = call!("MmMapLockedPagesSpecifyCache", mdl, 0, 1, 0, 0, 16);
    same!(mapped, block);
    same!(flags(mdl), 0x83);
    call!("MmUnmapLockedPages", mapped, mdl);
    same!(flags(mdl), 0x82);
    call!("MmUnlockPages", mdl);
    same!(flags(mdl), 0);
    same!(low(call!("MmSizeOfMdl", 0x1FFF, 2)), 48 + 16);
    call!("IoFreeMdl", mdl);
    call!("ExFreePool", block);
}

fn partial_descriptors() {
    let block = call!("ExAllocatePool2", 0x40, 100, TAG);
    let whole = call!("IoAllocateMdl", block, 100, 0, 0, 0);
    call!("MmBuildMdlForNonPagedPool", whole);
    let part = call!("IoAllocateMdl", block, 100, 0, 0, 0);
    call!("IoBuildPartialMdl", whole, part, block + 40, 0);
    call!("KeFlushIoBuffers", whole, 1, 1);
    call!("KeFlushIoBuffers", part, 0, 1);
    same!(field(part, MAPPED), block + 40);
    same!(field(part, 40) & 0xFFFF_FFFF, 60);
    same!(flags(part), 0x14);
    call!("IoFreeMdl", part);
    call!("IoFreeMdl", whole);
    call!("ExFreePool", block);
}

static FREED: AtomicU32 = AtomicU32::new(0);

unsafe extern "C" fn free_entry(entry: u64, list: u64) {
    same!(list != 0, true);
    FREED.fetch_add(1, Ordering::Relaxed);
    call!("ExFreePoolWithTag", entry, TAG);
}

/// Memory for a lookaside list.
#[repr(C, align(64))]
struct List([u64; 16]);

fn lookaside_lists() {
    let mut list = List([0; 16]);
    let place = at(&mut list);
    call!("ExInitializeNPagedLookasideList", place, 0, 0, 0, 32, TAG, 0);
    // The headers' inline routines call the allocation routine when the list is empty.
    same!(call!("ExpInterlockedPopEntrySList", place), 0);
    same!(list.0[6] != 0, true);
    same!((list.0[5] & 0xFFFF_FFFF, list.0[5] >> 32) == (TAG, 32), true);
    let entry = call!("ExAllocatePoolWithTag", list.0[4] >> 32, 32, TAG);
    call!("ExpInterlockedPushEntrySList", place, entry);
    call!("ExDeleteNPagedLookasideList", place);
    let free = address(free_entry as *const core::ffi::c_void);
    let status = call!("ExInitializeLookasideListEx", place, 0, free, 512, 0, 32, TAG, 0);
    same!(low(status), 0);
    let entry = call!("ExAllocatePoolWithTag", 512, 32, TAG);
    call!("ExpInterlockedPushEntrySList", place, entry);
    call!("ExFlushLookasideListEx", place);
    same!(FREED.load(Ordering::Relaxed), 1);
    call!("ExDeleteLookasideListEx", place);
    same!(FREED.load(Ordering::Relaxed), 1);
}
