//! Memory descriptor lists and lookaside lists.

use core::sync::atomic::{AtomicU32, Ordering};

use wdk_sys::{PLOOKASIDE_LIST_EX, PMDL, PVOID};

use crate::call::{NULL, at, call, field, pointer, same, set_field};

const TAG: u64 = 0x7473_6574;

pub fn run() {
    descriptors();
    partial_descriptors();
    lookaside_lists();
    virtual_memory();
}

/// Memory of the current process.
fn virtual_memory() {
    const PROCESS: PVOID = pointer(usize::MAX);
    const COMMIT: u32 = 0x1000;
    const RESERVE: u32 = 0x2000;
    const DECOMMIT: u32 = 0x4000;
    const RELEASE: u32 = 0x8000;
    let allocate = |base: &mut u64, size: &mut u64, kind: u32, protection: u32| {
        call!(ZwAllocateVirtualMemory, PROCESS, base, 0, size, kind, protection)
    };
    let free = |base: &mut u64, size: &mut u64, kind: u32| {
        call!(ZwFreeVirtualMemory, PROCESS, base, size, kind)
    };
    let refused = |start: u64, length: u64, kind: u32, protection: u32| {
        allocate(&mut start.clone(), &mut length.clone(), kind, protection)
    };
    same!(refused(0, 0, COMMIT, 4), 0xC000_00F2_u32);
    same!(refused(0, u64::MAX, COMMIT, 4), 0xC000_00F2_u32);
    same!(refused(0, 1, 0, 4), 0xC000_00F3_u32);
    same!(refused(0, 1, COMMIT, 0), 0xC000_0045_u32);
    same!(refused(0, 1, COMMIT, 8), 0xC000_0045_u32);
    same!(refused(1 << 63, 1, COMMIT, 4), 0xC000_00F0_u32);
    same!(refused(0x1_0000, 1, COMMIT, 4), 0xC000_0018_u32);
    let (mut base, mut size) = (0_u64, 0x5001_u64);
    same!(allocate(&mut base, &mut size, RESERVE, 4), 0);
    same!((base & 0xFFFF, size) == (0, 0x6000), true);
    let query = |address: u64| {
        let (mut found, mut length) = ([0_u64; 6], 0_u64);
        let place = pointer(address as usize);
        same!(call!(ZwQueryVirtualMemory, PROCESS, place, 0, &mut found, 48, &mut length), 0);
        same!(length, 48);
        found
    };
    // The state, and no protection yet.
    same!(query(base + 5) == [base, base, 4, 0x6000, 0x2000, 0x2_0000], true);
    let (mut part, mut length) = (base + 0x1FFF, 2_u64);
    same!(allocate(&mut part, &mut length, COMMIT, 2), 0);
    same!((part, length) == (base + 0x1000, 0x2000), true);
    same!(query(base)[3], 0x1000);
    let committed = [part, base, 4, 0x2000, 0x1000 | 2 << 32, 0x2_0000];
    same!(query(part) == committed, true);
    set_field(pointer(part as usize), 0, 5_u64);
    same!(free(&mut part, &mut length, 0), 0xC000_00F2_u32);
    same!(free(&mut (base + 0x10_0000), &mut 0, RELEASE), 0xC000_00A0_u32);
    same!(free(&mut (base + 0x1000), &mut 0, RELEASE), 0xC000_009F_u32);
    same!(free(&mut (base + 0x1000), &mut 0x6000, DECOMMIT), 0xC000_001A_u32);
    same!(free(&mut part, &mut length, DECOMMIT), 0);
    same!(query(base) == [base, base, 4, 0x6000, 0x2000, 0x2_0000], true);
    // Committed again, a page is zeroed.
    same!(allocate(&mut part, &mut length, COMMIT, 4), 0);
    same!(field::<u64>(pointer(part as usize), 0), 0);
    let mut nothing = 0;
    same!(free(&mut base, &mut nothing, RELEASE), 0);
    same!(nothing, 0x6000);
    same!(query(base)[4] & 0xFFFF_FFFF, 0x1_0000);
}

/// Returns a field of a memory descriptor list.
const fn word(mdl: PMDL, offset: usize) -> u64 {
    field(mdl.cast(), offset)
}

/// Returns the flags that state whether a list is mapped, is locked, and describes nonpaged pool.
const fn flags(mdl: PMDL) -> u64 {
    (word(mdl, 8) >> 16) & 0xFFFF
}

/// The offset of the address at which a list is mapped.
const MAPPED: usize = 24;

fn descriptors() {
    let block = call!(ExAllocatePool2, 0x40, 100, TAG);
    let mdl = call!(IoAllocateMdl, block, 100, 0, 0, NULL);
    same!(word(mdl, 32) + (word(mdl, 40) >> 32), block);
    same!(word(mdl, 40) & 0xFFFF_FFFF, 100);
    call!(MmBuildMdlForNonPagedPool, mdl);
    same!(flags(mdl), 4);
    same!(word(mdl, MAPPED), block);
    call!(IoFreeMdl, mdl);
    call!(ExFreePool, block);
    let block = call!(ExAllocatePool2, 0x100, 5000, TAG);
    let mdl = call!(IoAllocateMdl, block, 5000, 0, 0, NULL);
    call!(MmProbeAndLockPages, mdl, 0, 1);
    same!(flags(mdl), 0x82);
    let mapped = call!(MmMapLockedPagesSpecifyCache, mdl, 0, 1, NULL, 0, 16);
    same!(mapped, block);
    same!(flags(mdl), 0x83);
    call!(MmUnmapLockedPages, mapped, mdl);
    same!(flags(mdl), 0x82);
    let reserved = call!(MmAllocateMappingAddress, 8192, TAG);
    let mapped = call!(MmMapLockedPagesWithReservedMapping, reserved, TAG, mdl, 1);
    same!(mapped, block);
    call!(MmUnmapReservedMapping, reserved, TAG, mdl);
    same!(flags(mdl), 0x82);
    call!(MmFreeMappingAddress, reserved, TAG);
    let small = call!(MmAllocateMappingAddress, 1, TAG);
    same!(call!(MmMapLockedPagesWithReservedMapping, small, TAG, mdl, 1), NULL);
    call!(MmFreeMappingAddress, small, TAG);
    call!(MmUnlockPages, mdl);
    same!(flags(mdl), 0);
    same!(call!(MmSizeOfMdl, pointer(0x1FFF), 2), 48 + 16);
    call!(IoFreeMdl, mdl);
    call!(ExFreePool, block);
}

fn partial_descriptors() {
    let block = call!(ExAllocatePool2, 0x40, 100, TAG);
    let whole = call!(IoAllocateMdl, block, 100, 0, 0, NULL);
    call!(MmBuildMdlForNonPagedPool, whole);
    let part = call!(IoAllocateMdl, block, 100, 0, 0, NULL);
    call!(IoBuildPartialMdl, whole, part, block.wrapping_byte_add(40), 0);
    call!(KeFlushIoBuffers, whole, 1, 1);
    call!(KeFlushIoBuffers, part, 0, 1);
    same!(word(part, MAPPED), block.wrapping_byte_add(40));
    same!(word(part, 40) & 0xFFFF_FFFF, 60);
    same!(flags(part), 0x14);
    call!(IoFreeMdl, part);
    call!(IoFreeMdl, whole);
    call!(ExFreePool, block);
}

static FREED: AtomicU32 = AtomicU32::new(0);

unsafe extern "C" fn free_entry(entry: PVOID, list: PLOOKASIDE_LIST_EX) {
    same!(list.is_null(), false);
    FREED.fetch_add(1, Ordering::Relaxed);
    call!(ExFreePoolWithTag, entry, TAG);
}

/// Memory for a lookaside list.
#[repr(C, align(64))]
struct List([u64; 16]);

fn lookaside_lists() {
    let mut list = List([0; 16]);
    let place = at(&mut list);
    call!(ExInitializeNPagedLookasideList, place, None, None, 0, 32, TAG, 0);
    // The headers' inline routines call the allocation routine when the list is empty.
    same!(call!(ExpInterlockedPopEntrySList, place), 0);
    same!(list.0[6] != 0, true);
    same!((list.0[5] & 0xFFFF_FFFF, list.0[5] >> 32) == (TAG, 32), true);
    let entry = call!(ExAllocatePoolWithTag, list.0[4] >> 32, 32, TAG);
    call!(ExpInterlockedPushEntrySList, place, entry);
    call!(ExDeleteNPagedLookasideList, place);
    same!(call!(ExInitializeLookasideListEx, place, None, Some(free_entry), 512, 0, 32, TAG, 0), 0);
    let entry = call!(ExAllocatePoolWithTag, 512, 32, TAG);
    call!(ExpInterlockedPushEntrySList, place, entry);
    call!(ExFlushLookasideListEx, place);
    same!(FREED.load(Ordering::Relaxed), 1);
    call!(ExDeleteLookasideListEx, place);
    same!(FREED.load(Ordering::Relaxed), 1);
}
