//! Pool, times, versions, processors, objects and callback objects.

use core::{
    ffi::c_void,
    sync::atomic::{AtomicU64, Ordering},
};

use crate::{
    call::{address, at, boolean, call, low, same},
    objects::now,
};

const TAG: u64 = 0x7473_6574;

pub fn run() {
    pool();
    memory();
    times();
    versions_and_processors();
    handles();
    callbacks();
}

fn pool() {
    let block = call!("ExAllocatePoolWithTag", 0x200, 24, TAG);
    same!(block != 0, true);
    call!("ExFreePoolWithTag", block, TAG);
    // Paged and zeroed pool.
    let block = call!("ExAllocatePoolWithTag", 0x401, 24, TAG);
    // SAFETY: the block is 24 bytes long.
    same!(unsafe { *(block as *const u64) }, 0);
    call!("ExFreePool", block);
    let block = call!("ExAllocatePoolWithQuotaTag", 0x208, 24, TAG);
    call!("ExFreePoolWithTag", block, 0);
    let block = call!("ExAllocatePool3", 0x40, 24, TAG, 0, 0);
    call!("ExFreePoolWithTag", block, TAG);
    same!(call!("ExAllocatePool2", 0x40, 0, TAG), 0);
    same!(call!("ExAllocatePool2", 0x140, 8, TAG), 0);
}

fn memory() {
    let (mut one, mut other) = ([1_u8, 2, 3, 4], [1_u8, 2, 9, 4]);
    same!(call!("RtlCompareMemory", at(&mut one), at(&mut other), 4), 2);
    same!(call!("RtlCompareMemory", at(&mut one), at(&mut one), 4), 4);
    call!("RtlFillMemory", at(&mut one), 3, 7);
    same!(one == [7, 7, 7, 4], true);
    call!("RtlZeroMemory", at(&mut one), 2);
    same!(one == [0, 0, 7, 4], true);
    call!("RtlMoveMemory", at(&mut one), at(&mut other), 4);
    same!(one == other, true);
    let mut sid = [1_u8, 1, 0, 0, 0, 0, 0, 5, 18, 0, 0, 0];
    same!(boolean(call!("RtlValidSid", at(&mut sid))), true);
    same!(low(call!("RtlLengthSid", at(&mut sid))), 12);
    let mut copy = [0_u8; 12];
    same!(low(call!("RtlCopySid", 8, at(&mut copy), at(&mut sid))), 0xC000_0023);
    same!(low(call!("RtlCopySid", 12, at(&mut copy), at(&mut sid))), 0);
    same!(copy == sid, true);
    same!(call!("RtlFindLeastSignificantBit", 0x50) & 0xFF, 4);
    same!(call!("RtlFindMostSignificantBit", 0x50) & 0xFF, 6);
    same!(call!("RtlFindLeastSignificantBit", 0) & 0xFF, 0xFF);
    same!(boolean(call!("MmIsAddressValid", at(&mut sid))), true);
    same!(boolean(call!("MmIsAddressValid", 8)), false);
}

fn times() {
    // The time is 2024-02-29 12:34:56.789, a Thursday.
    let mut time = 133_536_836_967_890_000_i64;
    let mut fields = [0_i16; 8];
    call!("RtlTimeToTimeFields", at(&mut time), at(&mut fields));
    same!(fields == [2024, 2, 29, 12, 34, 56, 789, 4], true);
    let mut back = 0_i64;
    same!(boolean(call!("RtlTimeFieldsToTime", at(&mut fields), at(&mut back))), true);
    same!(back, time);
    fields[0] = 2023;
    same!(boolean(call!("RtlTimeFieldsToTime", at(&mut fields), at(&mut back))), false);
    let mut start = 0_i64;
    call!("RtlTimeToTimeFields", at(&mut start), at(&mut fields));
    same!(fields == [1601, 1, 1, 0, 0, 0, 0, 1], true);
    let before = now();
    call!("KeStallExecutionProcessor", 50);
    same!((500..600).contains(&(now() - before)), true);
    same!(low(call!("KeQueryTimeIncrement")), 156_250);
}

fn versions_and_processors() {
    let mut version = [0_u32; 71];
    version[0] = 284;
    same!(low(call!("RtlGetVersion", at(&mut version))), 0);
    same!((version[1], version[2], version[4]) == (10, 0, 2), true);
    version[0] = 10;
    same!(low(call!("RtlGetVersion", at(&mut version))), 0xC000_000D);
    same!(boolean(call!("RtlIsNtDdiVersionAvailable", 0x0A00_0000)), true);
    same!(boolean(call!("RtlIsNtDdiVersionAvailable", 0x0B00_0000)), false);
    let count = low(call!("KeQueryActiveProcessorCountEx", 0xFFFF));
    same!(count, 1);
    same!(low(call!("KeQueryActiveProcessorCountEx", 1)), 0);
    let mut number = 0_u32;
    same!(low(call!("KeGetProcessorNumberFromIndex", 0, at(&mut number))), 0);
    same!(low(call!("KeGetProcessorIndexFromNumber", at(&mut number))), 0);
    same!(low(call!("KeGetProcessorNumberFromIndex", 64, at(&mut number))), 0xC000_000D);
    same!(low(call!("KeGetCurrentProcessorNumberEx", 0)), 0);
    let mut affinity = [0_u64; 2];
    call!("KeQueryNodeActiveAffinity", 0, at(&mut affinity), 0);
    same!(affinity[0], 1);
}

fn handles() {
    let mut object = 0_u64;
    same!(
        low(call!("ObReferenceObjectByHandle", 0x1234, 0, 0, 0, at(&mut object), 0)),
        0xC000_0008
    );
    same!(object, 0);
    // NtCurrentThread.
    same!(low(call!("ObReferenceObjectByHandle", -2_i64, 0, 0, 0, at(&mut object), 0)), 0);
    same!(object, call!("KeGetCurrentThread"));
    call!("ObfDereferenceObject", object);
    same!(low(call!("PsGetThreadId", object)), 8);
    same!(boolean(call!("PsIsSystemThread", object)), true);
    current_process();
}

/// `NtCurrentProcess` is a handle to the current process.
fn current_process() {
    let mut object = 0_u64;
    same!(low(call!("ObReferenceObjectByHandle", -1_i64, 0, 0, 0, at(&mut object), 0)), 0);
    same!(object, call!("IoGetCurrentProcess"));
    call!("ObfDereferenceObject", object);
}

static NOTIFIED: AtomicU64 = AtomicU64::new(0);

unsafe extern "C" fn notified(context: *mut c_void, one: *mut c_void, two: *mut c_void) {
    NOTIFIED.store(context as u64 * 100 + one as u64 * 10 + two as u64, Ordering::Relaxed);
}

fn callbacks() {
    let units = b"\\Callback\\WdkTest".map(u16::from);
    let mut name = [0x0022_0022, units.as_ptr() as u64];
    let mut attributes = [48, 0, at(&mut name), 0, 0, 0];
    let mut object = 0_u64;
    same!(low(call!("ExCreateCallback", at(&mut object), at(&mut attributes), 0, 1)), 0xC000_0034);
    same!(low(call!("ExCreateCallback", at(&mut object), at(&mut attributes), 1, 1)), 0);
    let mut again = 0_u64;
    same!(low(call!("ExCreateCallback", at(&mut again), at(&mut attributes), 0, 1)), 0);
    same!(again, object);
    let registration = call!("ExRegisterCallback", object, address(notified as *const c_void), 1);
    same!(registration != 0, true);
    call!("ExNotifyCallback", object, 2, 3);
    same!(NOTIFIED.load(Ordering::Relaxed), 123);
    call!("ExUnregisterCallback", registration);
    call!("ExNotifyCallback", object, 4, 5);
    same!(NOTIFIED.load(Ordering::Relaxed), 123);
    call!("ObfDereferenceObject", object);
}
