//! Resources (`ERESOURCE`) and bitmaps.

use core::ffi::c_void;

use crate::{
    call::{at, boolean, call, driver, low, same},
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
    same!(call!("ExInitializeResourceLite", lock), 0);
    call!("KeEnterCriticalRegion");
    same!(boolean(call!("ExAcquireResourceSharedLite", lock, 0)), true);
    same!(boolean(call!("ExAcquireResourceExclusiveLite", lock, 0)), false);
    same!(boolean(call!("ExAcquireSharedStarveExclusive", lock, 1)), true);
    same!(low(call!("ExIsResourceAcquiredSharedLite", lock)), 2);
    same!(boolean(call!("ExIsResourceAcquiredExclusiveLite", lock)), false);
    call!("ExReleaseResourceLite", lock);
    call!("ExReleaseResourceForThreadLite", lock, call!("PsGetCurrentThread"));
    same!(boolean(call!("ExAcquireResourceExclusiveLite", lock, 1)), true);
    same!(boolean(call!("ExAcquireSharedWaitForExclusive", lock, 1)), true);
    same!(boolean(call!("ExIsResourceAcquiredExclusiveLite", lock)), true);
    call!("ExReleaseResourceLite", lock);
    call!("ExConvertExclusiveToSharedLite", lock);
    same!(boolean(call!("ExIsResourceAcquiredExclusiveLite", lock)), false);
    same!(low(call!("ExGetExclusiveWaiterCount", lock)), 0);
    same!(low(call!("ExGetSharedWaiterCount", lock)), 0);
    call!("ExDisableResourceBoostLite", lock);
    call!("ExReleaseResourceLite", lock);
    call!("KeLeaveCriticalRegion");
    // A thread waits for the resource until this thread releases it.
    call!("ExEnterCriticalRegionAndAcquireResourceExclusive", lock);
    let waiter = threads::start(wait_for_resource, lock);
    // The thread runs during this millisecond.
    let mut interval = -10_000_i64;
    call!("KeDelayExecutionThread", 0, 0, at(&mut interval));
    same!(low(call!("ExGetSharedWaiterCount", lock)), 1);
    call!("ExReleaseResourceAndLeaveCriticalRegion", lock);
    threads::join(waiter);
    call!("ExEnterCriticalRegionAndAcquireSharedWaitForExclusive", lock);
    call!("ExReleaseResourceAndLeaveCriticalRegion", lock);
    same!(call!("ExReinitializeResourceLite", lock), 0);
    same!(call!("ExDeleteResourceLite", lock), 0);
}

unsafe extern "C" fn wait_for_resource(lock: *mut c_void) {
    let lock = lock as u64;
    call!("ExEnterCriticalRegionAndAcquireResourceShared", lock);
    call!("ExReleaseResourceAndLeaveCriticalRegion", lock);
}

fn bitmap() {
    let mut words = [0xFFFF_FFFF_u32; 2];
    let mut header = [0_u64; 2];
    let map = at(&mut header);
    call!("RtlInitializeBitMap", map, at(&mut words), 40);
    call!("RtlClearAllBits", map);
    same!(low(call!("RtlNumberOfClearBits", map)), 40);
    call!("RtlSetBits", map, 4, 8);
    call!("RtlSetBit", map, 39);
    same!(words == [0x0000_0FF0, 0x80], true);
    same!(low(call!("RtlNumberOfSetBits", map)), 9);
    same!(boolean(call!("RtlTestBit", map, 39)), true);
    same!(boolean(call!("RtlAreBitsSet", map, 4, 8)), true);
    same!(boolean(call!("RtlAreBitsSet", map, 4, 9)), false);
    same!(boolean(call!("RtlAreBitsClear", map, 12, 27)), true);
    same!(boolean(call!("RtlAreBitsClear", map, 39, 2)), false);
    same!(low(call!("RtlFindClearBits", map, 5, 0)), 12);
    same!(low(call!("RtlFindClearBits", map, 4, 33)), 33);
    same!(low(call!("RtlFindSetBits", map, 9, 0)), 0xFFFF_FFFF);
    same!(low(call!("RtlFindClearBitsAndSet", map, 2, 0)), 0);
    same!(low(call!("RtlFindSetBitsAndClear", map, 3, 4)), 4);
    same!(words == [0x0000_0F83, 0x80], true);
    let mut start = 0_u32;
    same!(low(call!("RtlFindFirstRunClear", map, at(&mut start))), 5);
    same!(start, 2);
    same!(low(call!("RtlFindLongestRunClear", map, at(&mut start))), 27);
    same!(start, 12);
    same!(low(call!("RtlFindNextForwardRunClear", map, 20, at(&mut start))), 19);
    same!(start, 20);
    call!("RtlClearBit", map, 39);
    call!("RtlClearBits", map, 0, 2);
    call!("RtlSetAllBits", map);
    same!(words == [u32::MAX; 2], true);
}

/// Releases a resource that no thread has acquired.
pub fn not_acquired() {
    let mut memory = [0_u64; WORDS];
    let lock = at(&mut memory);
    call!("ExInitializeResourceLite", lock);
    call!("ExReleaseResourceLite", lock);
}

/// Frees a block that contains a resource that was not deleted.
pub fn freed() {
    let block = call!("ExAllocatePool2", 0x40, 8 * WORDS, 0x7473_6574);
    call!("ExInitializeResourceLite", block);
    call!("ExFreePoolWithTag", block, 0);
}

/// Deletes a device whose extension contains a resource that was not deleted.
pub fn in_device() {
    const EXTENSION: u64 = 0x40;
    let mut device = 0_u64;
    let size = 8 * WORDS;
    call!("IoCreateDevice", driver(), size, 0, 0x22, 0, 0, at(&mut device));
    // SAFETY: the device was created above.
    let extension = unsafe { ((device + EXTENSION) as *const u64).read() };
    call!("ExInitializeResourceLite", extension);
    call!("IoDeleteDevice", device);
}

/// Exclusively acquires a resource that this thread shares, which would deadlock.
pub fn upgrade() {
    let mut memory = [0_u64; WORDS];
    let lock = at(&mut memory);
    call!("ExInitializeResourceLite", lock);
    call!("ExEnterCriticalRegionAndAcquireResourceShared", lock);
    call!("ExAcquireResourceExclusiveLite", lock, 1);
}

/// Sets bits beyond the end of a bitmap.
pub fn beyond() {
    let mut word = 0_u32;
    let mut header = [0_u64; 2];
    let map = at(&mut header);
    call!("RtlInitializeBitMap", map, at(&mut word), 20);
    call!("RtlSetBits", map, 16, 8);
}
