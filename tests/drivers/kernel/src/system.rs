//! Pool, times, versions, processors, objects and callback objects.

use core::sync::atomic::{AtomicU64, Ordering};

use wdk_sys::PVOID;

use crate::{
    call::{NULL, at, call, pointer, same},
    dispatcher::now,
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
    let block = call!(ExAllocatePoolWithTag, 0x200, 24, TAG);
    same!(block.is_null(), false);
    call!(ExFreePoolWithTag, block, TAG);
    // Paged and zeroed pool.
    let block = call!(ExAllocatePoolWithTag, 0x401, 24, TAG);
    // SAFETY: the block is 24 bytes long.
    same!(unsafe { *block.cast::<u64>() }, 0);
    call!(ExFreePool, block);
    let block = call!(ExAllocatePoolWithQuotaTag, 0x208, 24, TAG);
    call!(ExFreePoolWithTag, block, 0);
    let block = call!(ExAllocatePool3, 0x40, 24, TAG, NULL, 0);
    call!(ExFreePoolWithTag, block, TAG);
    same!(call!(ExAllocatePool2, 0x40, 0, TAG), 0);
    same!(call!(ExAllocatePool2, 0x140, 8, TAG), 0);
}

fn memory() {
    let (mut one, mut other) = ([1_u8, 2, 3, 4], [1_u8, 2, 9, 4]);
    same!(call!(RtlCompareMemory, &mut one, &mut other, 4), 2);
    same!(call!(RtlCompareMemory, &mut one, &mut one, 4), 4);
    call!(RtlFillMemory, &mut one, 3, 7);
    same!(one == [7, 7, 7, 4], true);
    call!(RtlZeroMemory, &mut one, 2);
    same!(one == [0, 0, 7, 4], true);
    call!(RtlMoveMemory, &mut one, &mut other, 4);
    same!(one == other, true);
    let mut sid = [1_u8, 1, 0, 0, 0, 0, 0, 5, 18, 0, 0, 0];
    same!(call!(RtlValidSid, &mut sid), true);
    same!(call!(RtlLengthSid, &mut sid), 12);
    let mut copy = [0_u8; 12];
    same!(call!(RtlCopySid, 8, &mut copy, &mut sid), 0xC000_0023_u32);
    same!(call!(RtlCopySid, 12, &mut copy, &mut sid), 0);
    same!(copy == sid, true);
    same!(call!(RtlFindLeastSignificantBit, 0x50), 4);
    same!(call!(RtlFindMostSignificantBit, 0x50), 6);
    same!(call!(RtlFindLeastSignificantBit, 0), -1_i8);
    same!(call!(MmIsAddressValid, &mut sid), true);
    same!(call!(MmIsAddressValid, pointer(8)), false);
}

fn times() {
    // The time is 2024-02-29 12:34:56.789, a Thursday.
    let mut time = 133_536_836_967_890_000_i64;
    let mut fields = [0_i16; 8];
    call!(RtlTimeToTimeFields, &mut time, &mut fields);
    same!(fields == [2024, 2, 29, 12, 34, 56, 789, 4], true);
    let mut back = 0_i64;
    same!(call!(RtlTimeFieldsToTime, &mut fields, &mut back), true);
    same!(back, time);
    fields[0] = 2023;
    same!(call!(RtlTimeFieldsToTime, &mut fields, &mut back), false);
    let mut start = 0_i64;
    call!(RtlTimeToTimeFields, &mut start, &mut fields);
    same!(fields == [1601, 1, 1, 0, 0, 0, 0, 1], true);
    let before = now();
    call!(KeStallExecutionProcessor, 50);
    same!((500..600).contains(&(now() - before)), true);
    same!(call!(KeQueryTimeIncrement), 156_250);
}

fn versions_and_processors() {
    let mut version = [0_u32; 71];
    version[0] = 284;
    same!(call!(RtlGetVersion, &mut version), 0);
    same!((version[1], version[2], version[4]) == (10, 0, 2), true);
    version[0] = 10;
    same!(call!(RtlGetVersion, &mut version), 0xC000_000D_u32);
    same!(call!(RtlIsNtDdiVersionAvailable, 0x0A00_0000), true);
    same!(call!(RtlIsNtDdiVersionAvailable, 0x0B00_0000), false);
    same!(call!(KeQueryActiveProcessorCountEx, 0xFFFF), 1);
    same!(call!(KeQueryActiveProcessorCountEx, 1), 0);
    let mut number = 0_u32;
    same!(call!(KeGetProcessorNumberFromIndex, 0, &mut number), 0);
    same!(call!(KeGetProcessorIndexFromNumber, &mut number), 0);
    same!(call!(KeGetProcessorNumberFromIndex, 64, &mut number), 0xC000_000D_u32);
    same!(call!(KeGetCurrentProcessorNumberEx, NULL), 0);
    let mut affinity = [0_u64; 2];
    call!(KeQueryNodeActiveAffinity, 0, &mut affinity, NULL);
    same!(affinity[0], 1);
}

fn handles() {
    let mut object = NULL;
    same!(
        call!(ObReferenceObjectByHandle, pointer(0x1234), 0, NULL, 0, &mut object, NULL),
        0xC000_0008_u32
    );
    same!(object, 0);
    // NtCurrentThread.
    same!(
        call!(ObReferenceObjectByHandle, pointer(usize::MAX - 1), 0, NULL, 0, &mut object, NULL),
        0
    );
    same!(object, call!(KeGetCurrentThread));
    call!(ObfDereferenceObject, object);
    same!(call!(PsGetThreadId, object), 8);
    same!(call!(PsIsSystemThread, object), true);
    current_process();
}

/// `NtCurrentProcess` is a handle to the current process.
fn current_process() {
    let mut object = NULL;
    same!(call!(ObReferenceObjectByHandle, pointer(usize::MAX), 0, NULL, 0, &mut object, NULL), 0);
    same!(object, call!(IoGetCurrentProcess));
    call!(ObfDereferenceObject, object);
}

static NOTIFIED: AtomicU64 = AtomicU64::new(0);

unsafe extern "C" fn notified(context: PVOID, one: PVOID, two: PVOID) {
    NOTIFIED.store(context as u64 * 100 + one as u64 * 10 + two as u64, Ordering::Relaxed);
}

fn callbacks() {
    let units = b"\\Callback\\WdkTest".map(u16::from);
    let mut name = [0x0022_0022, units.as_ptr() as u64];
    let mut attributes = [48, 0, at(&mut name) as u64, 0, 0, 0];
    let mut object = NULL;
    same!(call!(ExCreateCallback, &mut object, &mut attributes, 0, 1), 0xC000_0034_u32);
    same!(call!(ExCreateCallback, &mut object, &mut attributes, 1, 1), 0);
    let mut again = NULL;
    same!(call!(ExCreateCallback, &mut again, &mut attributes, 0, 1), 0);
    same!(again, object);
    let registration = call!(ExRegisterCallback, object, Some(notified), pointer(1));
    same!(registration.is_null(), false);
    call!(ExNotifyCallback, object, pointer(2), pointer(3));
    same!(NOTIFIED.load(Ordering::Relaxed), 123);
    call!(ExUnregisterCallback, registration);
    call!(ExNotifyCallback, object, pointer(4), pointer(5));
    same!(NOTIFIED.load(Ordering::Relaxed), 123);
    call!(ObfDereferenceObject, object);
}
