//! Windows behavior that the tests of other implementations have established.

use core::ffi::c_void;

use crate::{
    call::{at, boolean, call, driver, low, same},
    names::with_string,
    objects::{Object, SUCCESS, TIMEOUT, wait, wait_for},
    threads,
};

const INVALID_PARAMETER: u32 = 0xC000_000D;

pub fn run() {
    unnamed_events();
    mutexes();
    handed_over();
    processes();
    statuses();
    lookaside_lists();
    memory();
    fields();
    handles();
    addresses();
    priorities();
}

/// If the name is empty, the I/O manager's routines create a separate event, which is signaled.
fn unnamed_events() {
    for (kind, again) in
        [("IoCreateSynchronizationEvent", TIMEOUT), ("IoCreateNotificationEvent", SUCCESS)]
    {
        let mut handle = 0_u64;
        let event = crate::call::Routine::find(kind).call(&[0, at(&mut handle)]);
        same!(event != 0, true);
        same!(wait_for(event, 0), SUCCESS);
        same!(wait_for(event, 0), again);
        same!(low(call!("ZwClose", handle)), 0);
    }
}

/// The owner of a mutex is in a critical region, regardless of how often it has acquired the mutex.
fn mutexes() {
    let mut object = Object::new();
    let mutex = object.at();
    let disabled = || boolean(call!("KeAreApcsDisabled"));
    call!("KeInitializeMutex", mutex, 0);
    same!(disabled(), false);
    same!(wait(mutex), SUCCESS);
    same!(wait(mutex), SUCCESS);
    same!(disabled(), true);
    call!("KeReleaseMutex", mutex, 0);
    same!(disabled(), true);
    call!("KeReleaseMutex", mutex, 0);
    same!(disabled(), false);
}

/// A thread that releases a resource hands it to the waiting threads before they run.
fn handed_over() {
    let mut memory = [0_u64; 13];
    let lock = at(&mut memory);
    let mut millisecond = -10_000_i64;
    same!(low(call!("ExInitializeResourceLite", lock)), 0);
    for (waits, count) in [
        (share as unsafe extern "C" fn(*mut c_void), "ExGetSharedWaiterCount"),
        (own, "ExGetExclusiveWaiterCount"),
    ] {
        let waiting = || low(crate::call::Routine::find(count).call(&[lock]));
        call!("ExEnterCriticalRegionAndAcquireResourceExclusive", lock);
        let waiter = threads::start(waits, lock);
        call!("KeDelayExecutionThread", 0, 0, at(&mut millisecond));
        same!(waiting(), 1);
        call!("ExReleaseResourceLite", lock);
        same!(waiting(), 0);
        same!(boolean(call!("ExAcquireResourceExclusiveLite", lock, 0)), false);
        call!("KeLeaveCriticalRegion");
        threads::join(waiter);
    }
    same!(low(call!("ExDeleteResourceLite", lock)), 0);
}

unsafe extern "C" fn share(lock: *mut c_void) {
    call!("ExEnterCriticalRegionAndAcquireResourceShared", lock as u64);
    call!("ExReleaseResourceAndLeaveCriticalRegion", lock as u64);
}

unsafe extern "C" fn own(lock: *mut c_void) {
    call!("ExEnterCriticalRegionAndAcquireResourceExclusive", lock as u64);
    call!("ExReleaseResourceAndLeaveCriticalRegion", lock as u64);
}

/// A process is signaled once it has ended.
fn processes() {
    let (mut thread, mut now) = (0_u64, 0_u64);
    same!(wait_for(call!("PsGetCurrentProcess"), 0), TIMEOUT);
    same!(low(call!("ZwWaitForSingleObject", u64::MAX, 0, at(&mut now))), TIMEOUT);
    same!(low(call!("PsLookupThreadByThreadId", 0, at(&mut thread))), 0xC000_000B_u32);
}

/// Arguments that make Windows return a status.
fn statuses() {
    same!(low(call!("IoSetDeviceInterfaceState", 0, 1)), INVALID_PARAMETER);
    let link =
        |name: &[u8]| low(with_string(name, |name| call!("IoSetDeviceInterfaceState", name, 1)));
    same!(link(br"\??\"), INVALID_PARAMETER);
    same!(link(br"\??\\"), INVALID_PARAMETER);
    same!(link(br"\??\{aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa}"), INVALID_PARAMETER);
    same!(link(br"\??\A#B#C#{aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa}"), 0xC000_0034_u32);
    same!(link(br"\??\A#B#C#{aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa}\ref"), 0xC000_0034_u32);
    let (mut device, mut needed, mut buffer) = (0_u64, 0_u32, [0_u64; 4]);
    same!(low(call!("IoCreateDevice", driver(), 0, 0, 0x22, 0, 0, at(&mut device))), 0);
    let found = call!("IoGetDeviceProperty", device, 8, 32, at(&mut buffer), at(&mut needed));
    same!(low(found), 0xC000_0010_u32);
    call!("IoDeleteDevice", device);
}

/// The flags select the pool of a lookaside list.
fn lookaside_lists() {
    /// The offset of the pool type, in 32-bit words.
    const TYPE: usize = 9;
    for (paged, flags, kind) in [(false, 0, 0), (false, 512, 512), (true, 0, 1), (true, 512, 513)] {
        let mut list = [[0_u64; 2]; 16];
        let list_at = at(&mut list);
        if paged {
            call!("ExInitializePagedLookasideList", list_at, 0, 0, flags, 64, 1, 0);
        } else {
            call!("ExInitializeNPagedLookasideList", list_at, 0, 0, flags, 64, 1, 0);
        }
        same!(list.as_flattened()[TYPE / 2] >> 32, kind);
        if paged {
            call!("ExDeletePagedLookasideList", list_at);
        } else {
            call!("ExDeleteNPagedLookasideList", list_at);
        }
    }
}

/// A comparison ends at the first difference.
fn memory() {
    let (mut one, mut other) = ([7_u32; 4], [7_u32; 4]);
    other[1] = 8;
    same!(call!("RtlCompareMemory", at(&mut one), at(&mut other), u64::MAX), 4);
    same!(call!("RtlCompareMemoryUlong", at(&mut other), u64::MAX << 2, 7), 4);
}

/// Fields that drivers rarely read.
fn fields() {
    let irp = call!("IoAllocateIrp", 1, 0);
    // SAFETY: the request's fixed part is longer, and IoAllocateIrp has initialized it.
    let request = unsafe { core::slice::from_raw_parts(irp as *const u8, 0x48) };
    same!(irp != 0, true);
    same!(request[0x47], 4);
    call!("IoFreeIrp", irp);
    let mut timer = Object::new();
    call!("KeInitializeTimerEx", timer.at(), 0);
    same!(timer.0[0] >> 16 & 0xFF, 0);
    let mut dpc = [0x5555_5555_5555_5555_u64; 8];
    call!("KeInitializeDpc", at(&mut dpc), 1, 2);
    same!(dpc[5], 0x5555_5555_5555_5555_u64);
    same!(dpc[6], 0x5555_5555_5555_5555_u64);
    same!(dpc[7], 0);
    let (mut frames, mut hash) = ([0_u64; 2], 0x55_u32);
    let captured = call!("RtlCaptureStackBackTrace", 0, 0, at(&mut frames), at(&mut hash));
    same!(captured & 0xFFFF, 0);
    same!(hash, 0x55);
}

/// An object lives until the last of its handles is closed.
fn handles() {
    const CURRENT: u64 = u64::MAX;
    let (mut first, mut second, mut now) = (0_u64, 0_u64, 0_u64);
    call!("IoCreateNotificationEvent", 0, at(&mut first));
    let duplicate = |source: u64, to: u64, options: u64| {
        low(call!("ZwDuplicateObject", CURRENT, source, CURRENT, to, 0, 0, options))
    };
    same!(duplicate(first, at(&mut second), 2), 0);
    same!(low(call!("ZwClose", first)), 0);
    same!(low(call!("ZwWaitForSingleObject", second, 0, at(&mut now))), SUCCESS);
    same!(duplicate(first, at(&mut first), 2), 0xC000_0008_u32);
    same!(low(call!("ZwDuplicateObject", second, second, CURRENT, 0, 0, 0, 0)), 0xC000_0024_u32);
    // If there is no variable for another handle, the source is only closed.
    same!(duplicate(second, 0, 1), 0);
    same!(duplicate(second, at(&mut first), 2), 0xC000_0008_u32);
}

/// Routines for addresses, and the build number.
fn addresses() {
    let mut base = 1_u64;
    let code = handles as fn() as usize as u64;
    let found = call!("RtlPcToFileHeader", code, at(&mut base));
    same!(found, base);
    // SAFETY: an image starts with its header.
    same!(unsafe { *(base as *const u16) }, u16::from_le_bytes(*b"MZ"));
    same!(call!("RtlPcToFileHeader", 8, at(&mut base)), 0);
    same!(base, 0);
    let build = crate::call::Routine::find("NtBuildNumber").address() as *const u32;
    let mut version = [276_u32; 69];
    same!(low(call!("RtlGetVersion", at(&mut version))), 0);
    // SAFETY: the variable is exported.
    same!(unsafe { *build }, 0xF000_0000 | version[3]);
    let list = call!("MmAllocatePagesForMdl", 0, i64::MAX, 0, 4096);
    let mapped = call!("MmMapLockedPages", list, 0);
    same!(mapped != 0, true);
    call!("MmUnmapLockedPages", mapped, list);
    same!(call!("MmMapLockedPages", list, 0), mapped);
    // The mapping ends when the pages are freed.
    call!("MmFreePagesFromMdl", list);
    // SAFETY: the driver owns the list until it frees the list. The flags follow the size.
    same!(unsafe { *((list + 10) as *const u16) } & 3, 0);
    call!("ExFreePool", list);
    // The shared user data page contains the version that RtlGetVersion returns.
    let shared = |offset: u64| {
        // SAFETY: the stand-in kernel serves reads of the page.
        unsafe { ((0xFFFF_F780_0000_0000 + offset) as *const u32).read_volatile() }
    };
    same!(shared(0x26C), version[1]);
    same!(shared(0x270), version[2]);
    same!(shared(0x260), version[3]);
}

/// A thread whose wait ends receives a higher priority, unless it has a real-time priority.
fn priorities() {
    const NORMAL: u64 = 8;
    let mut event = Object::new();
    call!("KeInitializeEvent", event.at(), 1, 0);
    let priority = |thread: u64| u64::from(low(call!("KeQueryPriorityThread", thread)));
    let set = |thread: u64, to: u64| u64::from(low(call!("KeSetPriorityThread", thread, to)));
    let mut woken = |priority_before: u64, increment: u64| {
        let thread = threads::start(wait_twice, event.at());
        // The wait lets the thread wait.
        same!(wait_for(thread, -10_000), TIMEOUT);
        same!(priority(thread), NORMAL);
        same!(set(thread, priority_before), NORMAL);
        call!("KeSetEvent", event.at(), increment, 0);
        let with_boost = priority(thread);
        // The boost ends with the next wait.
        same!(wait_for(thread, -10_000), TIMEOUT);
        same!(priority(thread), priority_before);
        call!("KeSetEvent", event.at(), 0, 0);
        threads::join(thread);
        with_boost
    };
    for (before, increment, after) in [
        (NORMAL, 0, NORMAL),
        (NORMAL, 1, 9),
        (NORMAL, 31, 15),
        (12, 1, 12),
        (16, 2, 16),
        (31, 1, 31),
    ] {
        same!(woken(before, increment), after);
    }
    let thread = call!("KeGetCurrentThread");
    same!(low(call!("KeSetBasePriorityThread", thread, 31)), 0);
    same!(priority(thread), 15);
    same!(low(call!("KeSetBasePriorityThread", thread, 0)), 7);
    same!(priority(thread), NORMAL);
}

unsafe extern "C" fn wait_twice(event: *mut c_void) {
    same!(wait(event as u64), SUCCESS);
    same!(wait(event as u64), SUCCESS);
}
