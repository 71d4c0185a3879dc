//! Resources (`ERESOURCE`) and bitmaps.

use core::ffi::c_void;

use wdk_sys::PVOID;

use crate::{
    call::{NULL, at, call, driver, field, same},
    dispatcher::delay,
    threads,
};

/// The size of `ERESOURCE` in 64-bit words.
const WORDS: usize = 13;

pub fn run() {
    resource();
    bitmap();
}

fn resource() {
    let mut memory = [0xEE_u64; WORDS];
    let lock = at(&mut memory);
    same!(call!(ExInitializeResourceLite, lock), 0);
    call!(KeEnterCriticalRegion);
    same!(call!(ExAcquireResourceSharedLite, lock, 0), true);
    same!(call!(ExAcquireResourceExclusiveLite, lock, 0), false);
    same!(call!(ExAcquireSharedStarveExclusive, lock, 1), true);
    same!(call!(ExIsResourceAcquiredSharedLite, lock), 2);
    same!(call!(ExIsResourceAcquiredExclusiveLite, lock), false);
    call!(ExReleaseResourceLite, lock);
    call!(ExReleaseResourceForThreadLite, lock, call!(PsGetCurrentThread) as u64);
    same!(call!(ExAcquireResourceExclusiveLite, lock, 1), true);
    same!(call!(ExAcquireSharedWaitForExclusive, lock, 1), true);
    same!(call!(ExIsResourceAcquiredExclusiveLite, lock), true);
    call!(ExReleaseResourceLite, lock);
    call!(ExConvertExclusiveToSharedLite, lock);
    same!(call!(ExIsResourceAcquiredExclusiveLite, lock), false);
    same!(call!(ExGetExclusiveWaiterCount, lock), 0);
    same!(call!(ExGetSharedWaiterCount, lock), 0);
    call!(ExDisableResourceBoostLite, lock);
    call!(ExReleaseResourceLite, lock);
    // An address owns the resource in place of this thread.
    same!(call!(ExAcquireResourceExclusiveLite, lock, 1), true);
    let owner = at(&mut memory).wrapping_byte_add(3);
    call!(ExSetResourceOwnerPointer, lock, owner);
    same!(call!(ExIsResourceAcquiredExclusiveLite, lock), false);
    same!(call!(ExAcquireResourceSharedLite, lock, 0), false);
    call!(ExReleaseResourceForThreadLite, lock, owner as u64);
    call!(KeLeaveCriticalRegion);
    // A thread waits for the resource until this thread releases it.
    call!(ExEnterCriticalRegionAndAcquireResourceExclusive, lock);
    let waiter = threads::start(wait_for_resource, lock);
    // The thread runs during this millisecond.
    delay(-10_000);
    same!(call!(ExGetSharedWaiterCount, lock), 1);
    call!(ExReleaseResourceAndLeaveCriticalRegion, lock);
    threads::join(waiter);
    call!(ExEnterCriticalRegionAndAcquireSharedWaitForExclusive, lock);
    call!(ExReleaseResourceAndLeaveCriticalRegion, lock);
    same!(call!(ExReinitializeResourceLite, lock), 0);
    same!(call!(ExDeleteResourceLite, lock), 0);
}

unsafe extern "C" fn wait_for_resource(lock: *mut c_void) {
    call!(ExEnterCriticalRegionAndAcquireResourceShared, lock);
    call!(ExReleaseResourceAndLeaveCriticalRegion, lock);
}

fn bitmap() {
    let mut words = [0xFFFF_FFFF_u32; 2];
    let mut header = [0_u64; 2];
    let map = at(&mut header);
    call!(RtlInitializeBitMap, map, &mut words, 40);
    call!(RtlClearAllBits, map);
    same!(call!(RtlNumberOfClearBits, map), 40);
    call!(RtlSetBits, map, 4, 8);
    call!(RtlSetBit, map, 39);
    same!(words == [0x0000_0FF0, 0x80], true);
    same!(call!(RtlNumberOfSetBits, map), 9);
    same!(call!(RtlTestBit, map, 39), true);
    same!(call!(RtlAreBitsSet, map, 4, 8), true);
    same!(call!(RtlAreBitsSet, map, 4, 9), false);
    same!(call!(RtlAreBitsClear, map, 12, 27), true);
    same!(call!(RtlAreBitsClear, map, 39, 2), false);
    same!(call!(RtlFindClearBits, map, 5, 0), 12);
    same!(call!(RtlFindClearBits, map, 4, 33), 33);
    same!(call!(RtlFindSetBits, map, 9, 0), 0xFFFF_FFFF_u32);
    same!(call!(RtlFindClearBitsAndSet, map, 2, 0), 0);
    same!(call!(RtlFindSetBitsAndClear, map, 3, 4), 4);
    same!(words == [0x0000_0F83, 0x80], true);
    let mut start = 0_u32;
    same!(call!(RtlFindFirstRunClear, map, &mut start), 5);
    same!(start, 2);
    same!(call!(RtlFindLongestRunClear, map, &mut start), 27);
    same!(start, 12);
    same!(call!(RtlFindNextForwardRunClear, map, 20, &mut start), 19);
    same!(start, 20);
    call!(RtlClearBit, map, 39);
    call!(RtlClearBits, map, 0, 2);
    call!(RtlSetAllBits, map);
    same!(words == [u32::MAX; 2], true);
}

/// Releases a resource that no thread has acquired.
pub fn not_acquired() {
    let mut memory = [0_u64; WORDS];
    let lock = at(&mut memory);
    call!(ExInitializeResourceLite, lock);
    call!(ExReleaseResourceLite, lock);
}

/// Frees a block that contains a resource that was not deleted.
pub fn freed() {
    let block = call!(ExAllocatePool2, 0x40, 8 * WORDS, 0x7473_6574);
    call!(ExInitializeResourceLite, block);
    call!(ExFreePoolWithTag, block, 0);
}

/// Deletes a device whose extension contains a resource that was not deleted.
pub fn in_device() {
    const EXTENSION: usize = 0x40;
    let mut device = NULL;
    let size = 8 * WORDS;
    call!(IoCreateDevice, driver(), size, NULL, 0x22, 0, 0, &mut device);
    let extension: PVOID = field(device, EXTENSION);
    call!(ExInitializeResourceLite, extension);
    call!(IoDeleteDevice, device);
}

/// Exclusively acquires a resource that this thread shares, which would deadlock.
pub fn upgrade() {
    let mut memory = [0_u64; WORDS];
    let lock = at(&mut memory);
    call!(ExInitializeResourceLite, lock);
    call!(ExEnterCriticalRegionAndAcquireResourceShared, lock);
    call!(ExAcquireResourceExclusiveLite, lock, 1);
}

/// Sets bits beyond the end of a bitmap.
pub fn beyond() {
    let mut word = 0_u32;
    let mut header = [0_u64; 2];
    let map = at(&mut header);
    call!(RtlInitializeBitMap, map, &mut word, 20);
    call!(RtlSetBits, map, 16, 8);
}
