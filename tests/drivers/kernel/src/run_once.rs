//! One-time initializations, identifiers, strings, times, and information about threads.

use core::{
    ffi::c_void,
    sync::atomic::{AtomicU32, AtomicU64, Ordering},
};

use etw_driver_support::utf16;
use wdk_sys::{
    NTSTATUS, PRTL_RUN_ONCE, PRTL_RUN_ONCE_INIT_FN, PVOID, STATUS_INVALID_PARAMETER,
    STATUS_NO_MEMORY, STATUS_PENDING, STATUS_TIMEOUT, STATUS_UNSUCCESSFUL, ULONG,
};

use crate::{
    apcs,
    call::{NULL, at, boolean, call, pointer, same},
    dispatcher::{pass, wait_for},
    security, threads,
};

/// The services that must break a rule.
pub const FAULTS: &[(&str, fn())] = &[
    ("fault-critical", critical_in_guarded),
    ("fault-guarded", guarded_in_critical),
    ("fault-once", never_complete),
    ("fault-once-context", bad_context),
    ("fault-attached", attached_twice),
    ("fault-ended-attached", ended_attached),
    ("fault-guarded-unsafe", unsafe_outside),
    ("fault-rundown", free_unknown),
    ("fault-rundown-freed", free_freed),
    ("fault-file-left", leave_file),
    ("fault-small-rundown", small_rundown),
];

/// `RTL_RUN_ONCE_CHECK_ONLY`, `RTL_RUN_ONCE_ASYNC` and `RTL_RUN_ONCE_INIT_FAILED`.
const CHECK_ONLY: u32 = 1;
const ASYNC: u32 = 2;
const FAILED: u32 = 4;

pub fn run() {
    initializations();
    initialization_by_a_thread();
    concurrent_initializations();
    executions();
    rundown();
    identifiers();
    texts();
    times();
    stacks();
    frames();
    regions();
    processes();
    thread_facts();
}

/// Starts an initialization. Returns the status and the context.
fn begin(once: PVOID, flags: u32) -> (NTSTATUS, usize) {
    let mut context = pointer(99);
    let status = call!(RtlRunOnceBeginInitialize, once, flags, &mut context);
    (status, context.addr())
}

fn complete(once: PVOID, flags: u32, context: usize) -> NTSTATUS {
    call!(RtlRunOnceComplete, once, flags, pointer(context))
}

fn initializations() {
    let mut memory = 7_u64;
    let once = at(&mut memory);
    call!(RtlRunOnceInitialize, once);
    same!(memory, 0);
    same!(begin(once, CHECK_ONLY) == (STATUS_UNSUCCESSFUL, 99), true);
    same!(begin(once, CHECK_ONLY | ASYNC).0, STATUS_INVALID_PARAMETER);
    same!(begin(once, 8).0, STATUS_INVALID_PARAMETER);
    same!(complete(once, 0, 16), STATUS_UNSUCCESSFUL);
    same!(begin(once, 0).0, STATUS_PENDING);
    same!(begin(once, ASYNC).0, STATUS_INVALID_PARAMETER);
    same!(begin(once, CHECK_ONLY).0, STATUS_UNSUCCESSFUL);
    same!(complete(once, ASYNC, 16), STATUS_UNSUCCESSFUL);
    // The low bits of a context must be 0, because they contain the state.
    same!(complete(once, 0, 18), STATUS_INVALID_PARAMETER);
    same!(complete(once, FAILED, 16), STATUS_INVALID_PARAMETER);
    same!(complete(once, FAILED, 0), 0);
    same!(begin(once, 0).0, STATUS_PENDING);
    same!(complete(once, 0, 16), 0);
    same!(begin(once, 0) == (0, 16), true);
    same!(begin(once, CHECK_ONLY) == (0, 16), true);
    same!(begin(once, ASYNC) == (0, 16), true);
    same!(complete(once, 0, 16), STATUS_UNSUCCESSFUL);
    same!(call!(RtlRunOnceBeginInitialize, once, 0, NULL), 0);
}

unsafe extern "C" fn wait_for_initialization(once: *mut c_void) {
    same!(begin(once, 0) == (0, 32), true);
}

/// A second thread waits until the first thread has completed the initialization.
fn initialization_by_a_thread() {
    let mut memory = 0_u64;
    let once = at(&mut memory);
    same!(begin(once, 0).0, STATUS_PENDING);
    let thread = threads::start(wait_for_initialization, once);
    same!(wait_for(thread, -10_000), STATUS_TIMEOUT);
    same!(complete(once, 0, 32), 0);
    threads::join(thread);
}

/// If several threads initialize at the same time, the first to finish provides the context.
fn concurrent_initializations() {
    let mut memory = 0_u64;
    let once = at(&mut memory);
    same!(begin(once, ASYNC).0, STATUS_PENDING);
    same!(begin(once, ASYNC).0, STATUS_PENDING);
    same!(begin(once, 0).0, STATUS_INVALID_PARAMETER);
    same!(complete(once, FAILED | ASYNC, 0), STATUS_INVALID_PARAMETER);
    same!(complete(once, 0, 4), STATUS_INVALID_PARAMETER);
    same!(complete(once, ASYNC, 4), 0);
    same!(complete(once, ASYNC, 8), STATUS_UNSUCCESSFUL);
    same!(begin(once, ASYNC) == (0, 4), true);
}

static EXECUTIONS: AtomicU64 = AtomicU64::new(0);

/// Fails at first, and then succeeds with a context.
unsafe extern "C" fn initialize(
    _once: PRTL_RUN_ONCE,
    parameter: PVOID,
    context: *mut PVOID,
) -> ULONG {
    same!(disabled() == (true, false), true);
    let mut resource = [0_u64; 13];
    call!(ExInitializeResourceLite, &mut resource);
    same!(call!(ExAcquireResourceExclusiveLite, &mut resource, 1), true);
    call!(ExReleaseResourceLite, &mut resource);
    call!(ExDeleteResourceLite, &mut resource);
    if EXECUTIONS.fetch_add(parameter as u64, Ordering::Relaxed) == 0 {
        return 0;
    }
    if !context.is_null() {
        // SAFETY: the routine's caller passes the address of a variable for the context.
        unsafe { context.write(pointer(64)) };
    }
    1
}

fn execute(once: PVOID, context: PVOID) -> NTSTATUS {
    let routine: PRTL_RUN_ONCE_INIT_FN = Some(initialize);
    call!(RtlRunOnceExecuteOnce, once, routine, pointer(10), context)
}

fn executions() {
    let (mut memory, mut context) = (0_u64, 0_u64);
    let once = at(&mut memory);
    let place = at(&mut context);
    same!(execute(once, place), STATUS_UNSUCCESSFUL);
    same!(execute(once, place), 0);
    same!(context, 64);
    context = 0;
    same!(execute(once, place), 0);
    same!(context, 64);
    same!(EXECUTIONS.load(Ordering::Relaxed), 20);
    same!(disabled() == (false, false), true);
    let mut other = 0_u64;
    same!(execute(at(&mut other), NULL), 0);
    same!(other, 2);
}

/// `NonPagedPoolNx`.
const NON_PAGED: u64 = 512;

unsafe extern "C" fn give_up(reference: *mut c_void) {
    pass(-10_000);
    call!(ExReleaseRundownProtectionCacheAwareEx, reference, 3);
}

fn rundown() {
    let reference = call!(ExAllocateCacheAwareRundownProtection, NON_PAGED, 0x7473_6574);
    same!(reference.is_null(), false);
    let acquire = |count: u64| call!(ExAcquireRundownProtectionCacheAwareEx, reference, count);
    same!(acquire(2), true);
    same!(call!(ExAcquireRundownProtectionCacheAware, reference), true);
    let thread = threads::start(give_up, reference.cast());
    call!(ExWaitForRundownProtectionReleaseCacheAware, reference);
    same!(acquire(1), false);
    threads::join(thread);
    call!(ExRundownCompletedCacheAware, reference);
    call!(ExReInitializeRundownProtectionCacheAware, reference);
    same!(acquire(1), true);
    call!(ExReleaseRundownProtectionCacheAware, reference);
    call!(ExFreeCacheAwareRundownProtection, reference);
    let mut own = [0xFFFF_u64; 8];
    let size = call!(ExSizeOfRundownProtectionCacheAware);
    same!(size <= size_of_val(&own) as u64, true);
    let own = at(&mut own);
    call!(ExInitializeRundownProtectionCacheAware, own, size);
    same!(call!(ExAcquireRundownProtectionCacheAware, own), true);
    call!(ExReleaseRundownProtectionCacheAware, own);
}

fn identifiers() {
    let mut last = [0_u64; 2];
    for _ in 0..3 {
        let mut uuid = [0_u64; 2];
        same!(call!(ExUuidCreate, &mut uuid), 0);
        // The UUID has version 1 and the RFC 4122 variant.
        same!(uuid[0] >> 60, 1);
        same!(uuid[1] >> 6 & 3, 2);
        same!(uuid != last, true);
        last = uuid;
    }
    let mut mask = 0xA000_0004_u32;
    let mut mapping = [0x1_u32, 0x10, 0x100, 0xFFFF];
    call!(RtlMapGenericMask, &mut mask, &mut mapping);
    same!(mask, 0x105);
    mask = 0x5000_0000;
    call!(RtlMapGenericMask, &mut mask, &mut mapping);
    same!(mask, 0xFFFF);
}

fn texts() {
    // The SID of Administrators, `S-1-5-32-544`.
    let mut sid = [0x0000_0201_u32, 0x0500_0000, 32, 544];
    let mut string = [0_u64; 2];
    let status = call!(RtlConvertSidToUnicodeString, &mut string, &mut sid, 1);
    same!(status, 0);
    same!(string[0], 0x001A_0018);
    // SAFETY: the routine returned a string of 12 characters and a terminator.
    let text = unsafe { *(string[1] as *const [u16; 13]) };
    same!(text == utf16(b"S-1-5-32-544\0"), true);
    call!(RtlFreeUnicodeString, &mut string);
    // An authority that does not fit in 32 bits is formatted in hexadecimal, and an identifier with
    // another revision is invalid.
    for (first, status, length) in
        [(0x0100_0101_u32, 0_u32, 42), (0x0201, 0, 0), (0x0102, 0xC000_0078_u32, 0)]
    {
        sid[0] = first;
        string = [0; 2];
        same!(call!(RtlConvertSidToUnicodeString, &mut string, &mut sid, 1), status);
        same!(length == 0 || string[0] & 0xFFFF == length, true);
        call!(RtlFreeUnicodeString, &mut string);
    }
    let mut words = [5_u32, 5, 5, 6];
    let equal = |length: u64| call!(RtlCompareMemoryUlong, &mut words.clone(), length, 5);
    same!(equal(16), 12);
    same!(equal(11), 8);
    words[3] = 5;
    same!(call!(RtlCompareMemoryUlong, &mut words, 16, 0x1_0000_0005_u64), 16);
}

fn times() {
    let (mut time, mut other) = (0_i64, 0_i64);
    call!(KeQuerySystemTimePrecise, &mut time);
    call!(ExSystemTimeToLocalTime, &mut time, &mut other);
    // The time zone is UTC.
    same!(other, time);
    other = 0;
    call!(ExLocalTimeToSystemTime, &mut time, &mut other);
    same!(other, time);
    let (mut longest, mut shortest, mut current) = (0_u32, 0_u32, 0_u32);
    call!(ExQueryTimerResolution, &mut longest, &mut shortest, &mut current);
    same!(longest, 156_250);
    same!(current, 156_250);
    same!(shortest <= 10_000, true);
    let set = |time: u64, sets: u64| call!(ExSetTimerResolution, time, sets);
    same!(set(10_000, 1), 10_000);
    // A longer interval changes nothing, and no interval is shorter than the minimum.
    same!(set(20_000, 1), 10_000);
    same!(set(1, 1), shortest);
    let asked = [&mut longest, &mut shortest, &mut current].map(at);
    call!(ExQueryTimerResolution, asked[0], asked[1], asked[2]);
    same!(longest, 156_250);
    same!(current, shortest);
    // When the last caller withdraws its request, the default is restored.
    same!(set(0, 0), shortest);
    same!(set(0, 0), shortest);
    same!(set(0, 0), 156_250);
    same!(set(0, 0), 156_250);
}

fn stacks() {
    let (mut start, mut end) = (0_u64, 0_u64);
    call!(IoGetStackLimits, &mut start, &mut end);
    same!(call!(IoGetInitialStack), end);
    let inside = |at: u64, size: u64| call!(IoWithinStackLimits, at, size);
    same!(inside(start, end - start), 1);
    same!(inside(start, end - start + 1), 0);
    same!(inside(start - 1, 1), 0);
    same!(inside(end - 8, u64::MAX), 0);
}

/// Captures the call stack at two call sites of the same function.
#[inline(never)]
fn captured(skip: u64) -> ([u64; 4], u64, u32) {
    let (mut addresses, mut hash) = ([0_u64; 4], 0_u32);
    let count = call!(RtlCaptureStackBackTrace, skip, 4, &mut addresses, &mut hash);
    (addresses, count.into(), hash)
}

fn frames() {
    let (all, count, hash) = captured(0);
    same!(count, 4);
    same!(hash, all.iter().sum::<u64>() as u32);
    let (rest, count, _) = captured(1);
    same!(count >= 3, true);
    // From this function's caller outward, the frames are the same.
    same!(rest[2], all[3]);
    same!(rest[0] != all[0], true);
    // `skip` exceeds the number of frames on the stack.
    same!(captured(100).1, 0);
    let mut walked = [0_u64; 3];
    same!(call!(RtlWalkFrameChain, &mut walked, 3, 1), 0);
    same!(call!(RtlWalkFrameChain, &mut walked, 3, 0), 3);
    same!(walked.contains(&all[3]), true);
    // The skipped frames are counted, but are not stored in the array.
    let mut rest = [0_u64; 3];
    same!(call!(RtlWalkFrameChain, &mut rest, 3, 1 << 8), 3);
    same!(rest[..2] == walked[1..], true);
    same!(rest[2], 0);
    same!(call!(RtlWalkFrameChain, &mut rest, 3, 5 << 8), 3);
    let depth = call!(RtlWalkFrameChain, &mut [0_u64; 64], 64, 0);
    same!(call!(RtlWalkFrameChain, &mut rest, 64, 63 << 8), depth);
}

/// Returns two flags: whether normal APCs are disabled, and whether all APCs are disabled.
fn disabled() -> (bool, bool) {
    (boolean(call!(KeAreApcsDisabled)), boolean(call!(KeAreAllApcsDisabled)))
}

fn regions() {
    same!(disabled() == (false, false), true);
    call!(KeEnterCriticalRegion);
    same!(disabled() == (true, false), true);
    call!(KeEnterGuardedRegion);
    same!(disabled() == (true, true), true);
    call!(KeLeaveCriticalRegion);
    same!(disabled() == (true, true), true);
    call!(KeLeaveGuardedRegion);
    same!(disabled() == (false, false), true);
    let mut mutex = [0_u64; 8];
    let mutex = at(&mut mutex);
    call!(KeInitializeGuardedMutex, mutex);
    call!(KeAcquireGuardedMutex, mutex);
    same!(disabled() == (true, true), true);
    call!(KeReleaseGuardedMutex, mutex);
    same!(disabled() == (false, false), true);
    same!(call!(KeTryToAcquireGuardedMutex, mutex), true);
    same!(disabled() == (true, true), true);
    same!(call!(KeTryToAcquireGuardedMutex, mutex), false);
    call!(KeReleaseGuardedMutex, mutex);
    same!(disabled() == (false, false), true);
    call!(KeEnterGuardedRegion);
    call!(KeAcquireGuardedMutexUnsafe, mutex);
    call!(KeReleaseGuardedMutexUnsafe, mutex);
    call!(KeLeaveGuardedRegion);
    same!(disabled() == (false, false), true);
    let before = call!(KfRaiseIrql, 1);
    let all = call!(KeAreAllApcsDisabled);
    // The raised IRQL is not a region, so the routine does not report it.
    let normal = call!(KeAreApcsDisabled);
    // At this IRQL, no region is needed.
    call!(KeAcquireGuardedMutexUnsafe, mutex);
    call!(KeReleaseGuardedMutexUnsafe, mutex);
    call!(KeLowerIrql, before);
    same!(all, true);
    same!(normal, false);
}

fn processes() {
    let own = call!(PsGetCurrentProcess);
    let thread = call!(PsGetCurrentThread);
    same!(call!(PsGetThreadProcess, thread), own);
    same!(call!(IoIsSystemThread, thread), true);
    same!(call!(PsGetProcessExitTime), 0);
    call!(KeAttachProcess, own);
    call!(KeDetachProcess);
    call!(KeDetachProcess);
    same!(call!(IoGetTopLevelIrp), 0);
    call!(IoSetTopLevelIrp, pointer(3));
    same!(call!(IoGetTopLevelIrp), 3);
    call!(IoSetTopLevelIrp, NULL);
}

/// Attaches the thread to the process that the test started, and to its own process.
pub fn attach() {
    let own = call!(PsGetCurrentProcess);
    let other = other_process();
    let current = || call!(PsGetCurrentProcess);
    call!(KeAttachProcess, other);
    same!(current(), other);
    // The thread is already attached to the process.
    call!(KeAttachProcess, other);
    same!(current(), other);
    call!(KeDetachProcess);
    same!(current(), own);
    call!(KeDetachProcess);
    same!(current(), own);
    call!(KeAttachProcess, own);
    call!(KeAttachProcess, other);
    same!(current(), other);
    call!(KeDetachProcess);
    same!(current(), own);
    apcs::environments(other);
    security::token(other, false);
    call!(ObfDereferenceObject, other);
}

/// Returns a reference to the process that the test started.
fn other_process() -> PVOID {
    let mut process = NULL;
    same!(call!(PsLookupProcessByProcessId, pointer(40), &mut process), 0);
    process
}

/// Allocates memory while the test makes every allocation fail.
pub fn no_memory() {
    same!(call!(ExAllocateCacheAwareRundownProtection, NON_PAGED, 0x7473), 0);
    let (mut text, mut copy) = ([0_u64; 2], [0_u64; 2]);
    let mut units = utf16(b"a\0");
    call!(RtlInitUnicodeString, &mut text, &mut units);
    same!(call!(RtlDuplicateUnicodeString, 1, &mut text, &mut copy), STATUS_NO_MEMORY);
    let (process, mut path) = (call!(PsGetCurrentProcess), NULL);
    same!(call!(SeLocateProcessImageName, process, &mut path), STATUS_NO_MEMORY);
}

static ENDED: AtomicU32 = AtomicU32::new(0);

unsafe extern "C" fn end_with_status(_context: *mut c_void) {
    let thread = call!(PsGetCurrentThread);
    same!(call!(PsIsThreadTerminating, thread), false);
    same!(call!(PsGetThreadExitStatus, thread), STATUS_PENDING);
    same!(call!(IoGetTopLevelIrp), 0);
    ENDED.fetch_add(1, Ordering::Relaxed);
    call!(PsTerminateSystemThread, 0xC000_0123_u64);
    ENDED.fetch_add(1, Ordering::Relaxed);
}

const unsafe extern "C" fn end_by_returning(_context: *mut c_void) {}

fn thread_facts() {
    let mut before = 0_i64;
    call!(KeQuerySystemTimePrecise, &mut before);
    let expected: [(unsafe extern "C" fn(*mut c_void), u32); 2] =
        [(end_with_status, 0xC000_0123), (end_by_returning, 0)];
    for (routine, status) in expected {
        let thread = threads::start(routine, NULL);
        call!(KeWaitForSingleObject, thread, 0, 0, 0, NULL);
        same!(call!(PsIsThreadTerminating, thread), true);
        same!(call!(PsGetThreadExitStatus, thread), status);
        let created = call!(PsGetThreadCreateTime, thread);
        let mut now = 0_i64;
        call!(KeQuerySystemTimePrecise, &mut now);
        same!((before..=now).contains(&created), true);
        call!(ObfDereferenceObject, thread);
    }
    same!(ENDED.load(Ordering::Relaxed), 1);
}

/// Prints the image path of each process.
pub fn images() {
    for id in [4, 40] {
        let (mut process, mut path) = (NULL, NULL);
        same!(call!(PsLookupProcessByProcessId, pointer(id), &mut process), 0);
        same!(call!(SeLocateProcessImageName, process, &mut path), 0);
        let name = call!(PsGetProcessImageFileName, process);
        call!(DbgPrint, c"%s %wZ|\n".as_ptr(); name, path);
        call!(ExFreePool, path);
        call!(ObfDereferenceObject, process);
    }
}

fn critical_in_guarded() {
    call!(KeEnterGuardedRegion);
    call!(KeLeaveCriticalRegion);
}

fn guarded_in_critical() {
    call!(KeEnterCriticalRegion);
    call!(KeLeaveGuardedRegion);
}

fn never_complete() {
    let mut once = 0_u64;
    begin(at(&mut once), 0);
    begin(at(&mut once), 0);
}

/// Returns a context whose lowest bits overlap the state.
const unsafe extern "C" fn low_bits(
    _once: PRTL_RUN_ONCE,
    _parameter: PVOID,
    context: *mut PVOID,
) -> ULONG {
    // SAFETY: the routine's caller passes the address of a variable for the context.
    unsafe { context.write(pointer(66)) };
    1
}

fn bad_context() {
    let (mut once, mut context) = (0_u64, NULL);
    let routine: PRTL_RUN_ONCE_INIT_FN = Some(low_bits);
    for _ in 0..2 {
        call!(RtlRunOnceExecuteOnce, &mut once, routine, NULL, &mut context);
    }
}

unsafe extern "C" fn attach_twice(_context: *mut c_void) {
    let own = call!(PsGetCurrentProcess);
    call!(KeAttachProcess, other_process());
    call!(KeAttachProcess, own);
}

fn attached_twice() {
    threads::join(threads::start(attach_twice, NULL));
}

unsafe extern "C" fn stay_attached(_context: *mut c_void) {
    call!(KeAttachProcess, other_process());
}

fn ended_attached() {
    threads::join(threads::start(stay_attached, NULL));
}

fn unsafe_outside() {
    let mut mutex = [0_u64; 8];
    call!(KeInitializeGuardedMutex, &mut mutex);
    // A critical region is not a guarded region.
    call!(KeEnterCriticalRegion);
    call!(KeAcquireGuardedMutexUnsafe, &mut mutex);
}

fn free_freed() {
    let reference = call!(ExAllocateCacheAwareRundownProtection, NON_PAGED, 0x7473);
    call!(ExFreePool, reference);
    call!(ExFreeCacheAwareRundownProtection, reference);
}

/// Opens another driver's device, and does not release the file.
fn leave_file() {
    let text = utf16(br"\Device\WdmTest");
    let mut name = [(size_of_val(&text) as u64) * 0x1_0001, text.as_ptr().addr() as u64];
    let (mut file, mut device) = (NULL, NULL);
    same!(call!(IoGetDeviceObjectPointer, &mut name, 1, &mut file, &mut device), 0);
}

fn free_unknown() {
    let mut own = [0_u64; 8];
    call!(ExFreeCacheAwareRundownProtection, &mut own);
}

fn small_rundown() {
    let mut own = [0_u64; 8];
    call!(ExInitializeRundownProtectionCacheAware, &mut own, 8);
}
