//! Windows behavior that the tests of other implementations have established.

use core::ffi::c_void;

use wdk_sys::{PVOID, STATUS_INVALID_PARAMETER, STATUS_SUCCESS, STATUS_TIMEOUT};

use crate::{
    call::{NULL, at, boolean, call, driver, field, pointer, same},
    dispatcher::{Object, delay, wait, wait_for},
    names::with_string,
    threads,
    timers::dpc_routine,
    variables::variable,
};

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
    let (mut one, mut other) = (NULL, NULL);
    for (event, again, handle) in [
        (call!(IoCreateSynchronizationEvent, NULL, &mut one), STATUS_TIMEOUT, one),
        (call!(IoCreateNotificationEvent, NULL, &mut other), STATUS_SUCCESS, other),
    ] {
        same!(event.is_null(), false);
        same!(wait_for(event.cast(), 0), STATUS_SUCCESS);
        same!(wait_for(event.cast(), 0), again);
        same!(call!(ZwClose, handle), 0);
    }
}

/// The owner of a mutex is in a critical region, regardless of how often it has acquired the mutex.
fn mutexes() {
    let mut object = Object::new();
    let mutex = object.at();
    let disabled = || boolean(call!(KeAreApcsDisabled));
    call!(KeInitializeMutex, mutex, 0);
    same!(disabled(), false);
    same!(wait(mutex), STATUS_SUCCESS);
    same!(wait(mutex), STATUS_SUCCESS);
    same!(disabled(), true);
    call!(KeReleaseMutex, mutex, 0);
    same!(disabled(), true);
    call!(KeReleaseMutex, mutex, 0);
    same!(disabled(), false);
}

/// A thread that releases a resource hands it to the waiting threads before they run.
fn handed_over() {
    let mut memory = [0_u64; 13];
    let lock = at(&mut memory);
    same!(call!(ExInitializeResourceLite, lock), 0);
    let cases: [(unsafe extern "C" fn(*mut c_void), &dyn Fn() -> u32); 2] = [
        (share, &|| call!(ExGetSharedWaiterCount, lock)),
        (own, &|| call!(ExGetExclusiveWaiterCount, lock)),
    ];
    for (waits, waiting) in cases {
        call!(ExEnterCriticalRegionAndAcquireResourceExclusive, lock);
        let waiter = threads::start(waits, lock);
        delay(-10_000);
        same!(waiting(), 1);
        call!(ExReleaseResourceLite, lock);
        same!(waiting(), 0);
        same!(call!(ExAcquireResourceExclusiveLite, lock, 0), false);
        call!(KeLeaveCriticalRegion);
        threads::join(waiter);
    }
    same!(call!(ExDeleteResourceLite, lock), 0);
}

unsafe extern "C" fn share(lock: *mut c_void) {
    call!(ExEnterCriticalRegionAndAcquireResourceShared, lock);
    call!(ExReleaseResourceAndLeaveCriticalRegion, lock);
}

unsafe extern "C" fn own(lock: *mut c_void) {
    call!(ExEnterCriticalRegionAndAcquireResourceExclusive, lock);
    call!(ExReleaseResourceAndLeaveCriticalRegion, lock);
}

/// A process is signaled once it has ended.
fn processes() {
    let (mut thread, mut now) = (NULL, 0_u64);
    same!(wait_for(call!(PsGetCurrentProcess).cast(), 0), STATUS_TIMEOUT);
    same!(call!(ZwWaitForSingleObject, pointer(usize::MAX), 0, &mut now), STATUS_TIMEOUT);
    same!(call!(PsLookupThreadByThreadId, NULL, &mut thread), 0xC000_000B_u32);
}

/// Arguments that make Windows return a status.
fn statuses() {
    same!(call!(IoSetDeviceInterfaceState, NULL, 1), STATUS_INVALID_PARAMETER);
    let link = |name: &[u8]| with_string(name, |name| call!(IoSetDeviceInterfaceState, name, 1));
    same!(link(br"\??\"), STATUS_INVALID_PARAMETER);
    same!(link(br"\??\\"), STATUS_INVALID_PARAMETER);
    same!(link(br"\??\{aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa}"), STATUS_INVALID_PARAMETER);
    same!(link(br"\??\A#B#C#{aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa}"), 0xC000_0034_u32);
    same!(link(br"\??\A#B#C#{aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa}\ref"), 0xC000_0034_u32);
    let (mut device, mut needed, mut buffer) = (NULL, 0_u32, [0_u64; 4]);
    same!(call!(IoCreateDevice, driver(), 0, NULL, 0x22, 0, 0, &mut device), 0);
    same!(call!(IoGetDeviceProperty, device, 8, 32, &mut buffer, &mut needed), 0xC000_0010_u32);
    call!(IoDeleteDevice, device);
}

/// The flags select the pool of a lookaside list.
fn lookaside_lists() {
    /// The offset of the pool type, in 32-bit words.
    const TYPE: usize = 9;
    for (paged, flags, kind) in [(false, 0, 0), (false, 512, 512), (true, 0, 1), (true, 512, 513)] {
        let mut list = [[0_u64; 2]; 16];
        let list_at = at(&mut list);
        if paged {
            call!(ExInitializePagedLookasideList, list_at, None, None, flags, 64, 1, 0);
        } else {
            call!(ExInitializeNPagedLookasideList, list_at, None, None, flags, 64, 1, 0);
        }
        same!(list.as_flattened()[TYPE / 2] >> 32, kind);
        if paged {
            call!(ExDeletePagedLookasideList, list_at);
        } else {
            call!(ExDeleteNPagedLookasideList, list_at);
        }
    }
}

/// A comparison ends at the first difference.
fn memory() {
    let (mut one, mut other) = ([7_u32; 4], [7_u32; 4]);
    other[1] = 8;
    same!(call!(RtlCompareMemory, &mut one, &mut other, u64::MAX), 4);
    same!(call!(RtlCompareMemoryUlong, &mut other, u64::MAX << 2, 7), 4);
}

/// Fields that drivers rarely read.
fn fields() {
    let irp = call!(IoAllocateIrp, 1, 0);
    // SAFETY: the request's fixed part is longer, and IoAllocateIrp has initialized it.
    let request = unsafe { core::slice::from_raw_parts(irp as *const u8, 0x48) };
    same!(irp.is_null(), false);
    same!(request[0x47], 4);
    call!(IoFreeIrp, irp);
    let mut timer = Object::new();
    call!(KeInitializeTimerEx, timer.at(), 0);
    same!(timer.0[0] >> 16 & 0xFF, 0);
    let mut dpc = [0x5555_5555_5555_5555_u64; 8];
    call!(KeInitializeDpc, &mut dpc, Some(dpc_routine), pointer(2));
    same!(dpc[5], 0x5555_5555_5555_5555_u64);
    same!(dpc[6], 0x5555_5555_5555_5555_u64);
    same!(dpc[7], 0);
    let (mut frames, mut hash) = ([0_u64; 2], 0x55_u32);
    same!(call!(RtlCaptureStackBackTrace, 0, 0, &mut frames, &mut hash), 0);
    same!(hash, 0x55);
}

/// An object lives until the last of its handles is closed.
fn handles() {
    const CURRENT: PVOID = pointer(usize::MAX);
    let (mut first, mut second, mut now) = (NULL, NULL, 0_u64);
    call!(IoCreateNotificationEvent, NULL, &mut first);
    let duplicate = |source: PVOID, to: PVOID, options: u64| {
        call!(ZwDuplicateObject, CURRENT, source, CURRENT, to, 0, 0, options)
    };
    same!(duplicate(first, at(&mut second), 2), 0);
    same!(call!(ZwClose, first), 0);
    same!(call!(ZwWaitForSingleObject, second, 0, &mut now), STATUS_SUCCESS);
    same!(duplicate(first, at(&mut first), 2), 0xC000_0008_u32);
    same!(call!(ZwDuplicateObject, second, second, CURRENT, NULL, 0, 0, 0), 0xC000_0024_u32);
    // If there is no variable for another handle, the source is only closed.
    same!(duplicate(second, NULL, 1), 0);
    same!(duplicate(second, at(&mut first), 2), 0xC000_0008_u32);
}

/// Routines for addresses, and the build number.
fn addresses() {
    let mut base = pointer(1);
    let code = handles as *const c_void;
    same!(call!(RtlPcToFileHeader, code, &mut base), base);
    // SAFETY: an image starts with its header.
    same!(unsafe { *base.cast::<u16>() }, u16::from_le_bytes(*b"MZ"));
    same!(call!(RtlPcToFileHeader, pointer(8), &mut base), 0);
    same!(base, 0);
    let build = variable("NtBuildNumber").cast::<u32>();
    let mut version = [276_u32; 69];
    same!(call!(RtlGetVersion, &mut version), 0);
    // SAFETY: the variable is exported.
    same!(unsafe { *build }, 0xF000_0000_u32 | version[3]);
    let list = call!(MmAllocatePagesForMdl, 0, i64::MAX, 0, 4096);
    let mapped = call!(MmMapLockedPages, list, 0);
    same!(mapped.is_null(), false);
    call!(MmUnmapLockedPages, mapped, list);
    same!(call!(MmMapLockedPages, list, 0), mapped);
    // The mapping ends when the pages are freed.
    call!(MmFreePagesFromMdl, list);
    // The flags follow the size.
    same!(field::<u16>(list.cast(), 10) & 3, 0);
    call!(ExFreePool, list);
    // The shared user data page contains the version that RtlGetVersion returns.
    let shared = |offset: usize| field::<u32>(pointer(0xFFFF_F780_0000_0000), offset);
    same!(shared(0x26C), version[1]);
    same!(shared(0x270), version[2]);
    same!(shared(0x260), version[3]);
}

/// A thread whose wait ends receives a higher priority, unless it has a real-time priority.
fn priorities() {
    const NORMAL: i32 = 8;
    let mut event = Object::new();
    call!(KeInitializeEvent, event.at(), 1, 0);
    let priority = |thread: PVOID| call!(KeQueryPriorityThread, thread);
    let set = |thread: PVOID, to: i32| call!(KeSetPriorityThread, thread, to);
    let mut woken = |priority_before: i32, increment: i32| {
        let thread = threads::start(wait_twice, event.at());
        // The wait lets the thread wait.
        same!(wait_for(thread, -10_000), STATUS_TIMEOUT);
        same!(priority(thread), NORMAL);
        same!(set(thread, priority_before), NORMAL);
        call!(KeSetEvent, event.at(), increment, 0);
        let with_boost = priority(thread);
        // The boost ends with the next wait.
        same!(wait_for(thread, -10_000), STATUS_TIMEOUT);
        same!(priority(thread), priority_before);
        call!(KeSetEvent, event.at(), 0, 0);
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
    let thread = call!(KeGetCurrentThread);
    same!(call!(KeSetBasePriorityThread, thread, 31), 0);
    same!(priority(thread.cast()), 15);
    same!(call!(KeSetBasePriorityThread, thread, 0), 7);
    same!(priority(thread.cast()), NORMAL);
}

unsafe extern "C" fn wait_twice(event: *mut c_void) {
    same!(wait(event), STATUS_SUCCESS);
    same!(wait(event), STATUS_SUCCESS);
}
