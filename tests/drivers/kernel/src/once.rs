//! One-time initializations, identifiers, strings, times, and information about threads.

use core::{
    ffi::c_void,
    sync::atomic::{AtomicU32, AtomicU64, Ordering},
};

use etw_driver_support::utf16;

use crate::{
    apcs,
    call::{Routine, address, at, boolean, call, low, same},
    objects::{Object, TIMEOUT, wait_for},
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

const INVALID_PARAMETER: u32 = 0xC000_000D;
const UNSUCCESSFUL: u32 = 0xC000_0001;
const PENDING: u32 = 0x103;

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
fn begin(once: u64, flags: u32) -> (u32, u64) {
    let mut context = 99_u64;
    let status = call!("RtlRunOnceBeginInitialize", once, flags, at(&mut context));
    (low(status), context)
}

fn complete(once: u64, flags: u32, context: u64) -> u32 {
    low(call!("RtlRunOnceComplete", once, flags, context))
}

fn initializations() {
    let mut memory = 7_u64;
    let once = at(&mut memory);
    call!("RtlRunOnceInitialize", once);
    same!(memory, 0);
    same!(begin(once, CHECK_ONLY) == (UNSUCCESSFUL, 99), true);
    same!(begin(once, CHECK_ONLY | ASYNC).0, INVALID_PARAMETER);
    same!(begin(once, 8).0, INVALID_PARAMETER);
    same!(complete(once, 0, 16), UNSUCCESSFUL);
    same!(begin(once, 0).0, PENDING);
    same!(begin(once, ASYNC).0, INVALID_PARAMETER);
    same!(begin(once, CHECK_ONLY).0, UNSUCCESSFUL);
    same!(complete(once, ASYNC, 16), UNSUCCESSFUL);
    // The low bits of a context must be 0, because they contain the state.
    same!(complete(once, 0, 18), INVALID_PARAMETER);
    same!(complete(once, FAILED, 16), INVALID_PARAMETER);
    same!(complete(once, FAILED, 0), 0);
    same!(begin(once, 0).0, PENDING);
    same!(complete(once, 0, 16), 0);
    same!(begin(once, 0) == (0, 16), true);
    same!(begin(once, CHECK_ONLY) == (0, 16), true);
    same!(begin(once, ASYNC) == (0, 16), true);
    same!(complete(once, 0, 16), UNSUCCESSFUL);
    same!(low(call!("RtlRunOnceBeginInitialize", once, 0, 0)), 0);
}

unsafe extern "C" fn wait_for_initialization(once: *mut c_void) {
    same!(begin(once as u64, 0) == (0, 32), true);
}

/// A second thread waits until the first thread has completed the initialization.
fn initialization_by_a_thread() {
    let mut memory = 0_u64;
    let once = at(&mut memory);
    same!(begin(once, 0).0, PENDING);
    let thread = threads::start(wait_for_initialization, once);
    same!(wait_for(thread, -10_000), TIMEOUT);
    same!(complete(once, 0, 32), 0);
    threads::join(thread);
}

/// If several threads initialize at the same time, the first to finish provides the context.
fn concurrent_initializations() {
    let mut memory = 0_u64;
    let once = at(&mut memory);
    same!(begin(once, ASYNC).0, PENDING);
    same!(begin(once, ASYNC).0, PENDING);
    same!(begin(once, 0).0, INVALID_PARAMETER);
    same!(complete(once, FAILED | ASYNC, 0), INVALID_PARAMETER);
    same!(complete(once, 0, 4), INVALID_PARAMETER);
    same!(complete(once, ASYNC, 4), 0);
    same!(complete(once, ASYNC, 8), UNSUCCESSFUL);
    same!(begin(once, ASYNC) == (0, 4), true);
}

static EXECUTIONS: AtomicU64 = AtomicU64::new(0);

/// Fails at first, and then succeeds with a context.
unsafe extern "C" fn initialize(_once: u64, parameter: u64, context: u64) -> u32 {
    same!(disabled() == (true, false), true);
    let mut resource = [0_u64; 13];
    call!("ExInitializeResourceLite", at(&mut resource));
    let acquired = call!("ExAcquireResourceExclusiveLite", at(&mut resource), 1);
    same!(boolean(acquired), true);
    call!("ExReleaseResourceLite", at(&mut resource));
    call!("ExDeleteResourceLite", at(&mut resource));
    if EXECUTIONS.fetch_add(parameter, Ordering::Relaxed) == 0 {
        return 0;
    }
    if context != 0 {
        // SAFETY: the routine's caller passes the address of a variable for the context.
        unsafe { (context as *mut u64).write(64) };
    }
    1
}

fn execute(once: u64, context: u64) -> u32 {
    let routine = address(initialize as *const c_void);
    low(call!("RtlRunOnceExecuteOnce", once, routine, 10, context))
}

fn executions() {
    let (mut memory, mut context) = (0_u64, 0_u64);
    let once = at(&mut memory);
    let place = at(&mut context);
    same!(execute(once, place), UNSUCCESSFUL);
    same!(execute(once, place), 0);
    same!(context, 64);
    context = 0;
    same!(execute(once, place), 0);
    same!(context, 64);
    same!(EXECUTIONS.load(Ordering::Relaxed), 20);
    same!(disabled() == (false, false), true);
    let mut other = 0_u64;
    same!(execute(at(&mut other), 0), 0);
    same!(other, 2);
}

/// `NonPagedPoolNx`.
const NON_PAGED: u64 = 512;

unsafe extern "C" fn give_up(reference: *mut c_void) {
    let mut never = Object::new();
    call!("KeInitializeEvent", never.at(), 0, 0);
    same!(wait_for(never.at(), -10_000), TIMEOUT);
    call!("ExReleaseRundownProtectionCacheAwareEx", reference as u64, 3);
}

fn rundown() {
    let reference = call!("ExAllocateCacheAwareRundownProtection", NON_PAGED, 0x7473_6574);
    same!(reference != 0, true);
    let acquire =
        |count: u64| boolean(call!("ExAcquireRundownProtectionCacheAwareEx", reference, count));
    same!(acquire(2), true);
    let one = call!("ExAcquireRundownProtectionCacheAware", reference);
    same!(boolean(one), true);
    let thread = threads::start(give_up, reference);
    call!("ExWaitForRundownProtectionReleaseCacheAware", reference);
    same!(acquire(1), false);
    threads::join(thread);
    call!("ExRundownCompletedCacheAware", reference);
    call!("ExReInitializeRundownProtectionCacheAware", reference);
    same!(acquire(1), true);
    call!("ExReleaseRundownProtectionCacheAware", reference);
    call!("ExFreeCacheAwareRundownProtection", reference);
    let mut own = [0xFFFF_u64; 8];
    let size = call!("ExSizeOfRundownProtectionCacheAware");
    same!(size <= size_of_val(&own) as u64, true);
    let own = at(&mut own);
    call!("ExInitializeRundownProtectionCacheAware", own, size);
    let one = call!("ExAcquireRundownProtectionCacheAware", own);
    same!(boolean(one), true);
    call!("ExReleaseRundownProtectionCacheAware", own);
}

fn identifiers() {
    let mut last = [0_u64; 2];
    for _ in 0..3 {
        let mut uuid = [0_u64; 2];
        same!(low(call!("ExUuidCreate", at(&mut uuid))), 0);
        // The UUID has version 1 and the RFC 4122 variant.
        same!(uuid[0] >> 60, 1);
        same!(uuid[1] >> 6 & 3, 2);
        same!(uuid != last, true);
        last = uuid;
    }
    let mut mask = 0xA000_0004_u32;
    let mut mapping = [0x1_u32, 0x10, 0x100, 0xFFFF];
    call!("RtlMapGenericMask", at(&mut mask), at(&mut mapping));
    same!(mask, 0x105);
    mask = 0x5000_0000;
    call!("RtlMapGenericMask", at(&mut mask), at(&mut mapping));
    same!(mask, 0xFFFF);
}

fn texts() {
    // The SID of Administrators, `S-1-5-32-544`.
    let mut sid = [0x0000_0201_u32, 0x0500_0000, 32, 544];
    let mut string = [0_u64; 2];
    let status = call!("RtlConvertSidToUnicodeString", at(&mut string), at(&mut sid), 1);
    same!(low(status), 0);
    same!(string[0], 0x001A_0018);
    // SAFETY: the routine returned a string of 12 characters and a terminator.
    let text = unsafe { *(string[1] as *const [u16; 13]) };
    same!(text == utf16(b"S-1-5-32-544\0"), true);
    call!("RtlFreeUnicodeString", at(&mut string));
    // An authority that does not fit in 32 bits is formatted in hexadecimal, and an identifier with
    // another revision is invalid.
    for (first, status, length) in
        [(0x0100_0101_u32, 0_u32, 42), (0x0201, 0, 0), (0x0102, 0xC000_0078_u32, 0)]
    {
        sid[0] = first;
        string = [0; 2];
        let found = call!("RtlConvertSidToUnicodeString", at(&mut string), at(&mut sid), 1);
        same!(low(found), status);
        same!(length == 0 || string[0] & 0xFFFF == length, true);
        call!("RtlFreeUnicodeString", at(&mut string));
    }
    let mut words = [5_u32, 5, 5, 6];
    let equal = |length: u64| call!("RtlCompareMemoryUlong", at(&mut words.clone()), length, 5);
    same!(equal(16), 12);
    same!(equal(11), 8);
    words[3] = 5;
    same!(call!("RtlCompareMemoryUlong", at(&mut words), 16, 0x1_0000_0005_u64), 16);
}

fn times() {
    let (mut time, mut other) = (0_i64, 0_i64);
    call!("KeQuerySystemTimePrecise", at(&mut time));
    call!("ExSystemTimeToLocalTime", at(&mut time), at(&mut other));
    // The time zone is UTC.
    same!(other, time);
    other = 0;
    call!("ExLocalTimeToSystemTime", at(&mut time), at(&mut other));
    same!(other, time);
    let (mut longest, mut shortest, mut current) = (0_u32, 0_u32, 0_u32);
    call!("ExQueryTimerResolution", at(&mut longest), at(&mut shortest), at(&mut current));
    same!(longest, 156_250);
    same!(current, 156_250);
    same!(shortest <= 10_000, true);
    let set = |time: u64, sets: u64| low(call!("ExSetTimerResolution", time, sets));
    same!(set(10_000, 1), 10_000);
    // A longer interval changes nothing, and no interval is shorter than the minimum.
    same!(set(20_000, 1), 10_000);
    same!(set(1, 1), shortest);
    let asked = [&mut longest, &mut shortest, &mut current].map(at);
    call!("ExQueryTimerResolution", asked[0], asked[1], asked[2]);
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
    call!("IoGetStackLimits", at(&mut start), at(&mut end));
    same!(call!("IoGetInitialStack"), end);
    let inside = |at: u64, size: u64| call!("IoWithinStackLimits", at, size);
    same!(inside(start, end - start), 1);
    same!(inside(start, end - start + 1), 0);
    same!(inside(start - 1, 1), 0);
    same!(inside(end - 8, u64::MAX), 0);
}

/// Captures the call stack at two call sites of the same function.
#[inline(never)]
fn captured(skip: u64) -> ([u64; 4], u64, u32) {
    let (mut addresses, mut hash) = ([0_u64; 4], 0_u32);
    let capture = Routine::find("RtlCaptureStackBackTrace");
    let count = capture.call(&[skip, 4, at(&mut addresses), at(&mut hash)]);
    (addresses, count & 0xFFFF, hash)
}

fn frames() {
    let (all, count, hash) = captured(0);
    same!(count, 4);
    same!(hash, low(all.iter().sum()));
    let (rest, count, _) = captured(1);
    same!(count >= 3, true);
    // From this function's caller outward, the frames are the same.
    same!(rest[2], all[3]);
    same!(rest[0] != all[0], true);
    // `skip` exceeds the number of frames on the stack.
    same!(captured(100).1, 0);
    let mut walked = [0_u64; 3];
    same!(call!("RtlWalkFrameChain", at(&mut walked), 3, 1), 0);
    same!(call!("RtlWalkFrameChain", at(&mut walked), 3, 0), 3);
    same!(walked.contains(&all[3]), true);
    // The skipped frames are counted, but are not stored in the array.
    let mut rest = [0_u64; 3];
    same!(call!("RtlWalkFrameChain", at(&mut rest), 3, 1 << 8), 3);
    same!(rest[..2] == walked[1..], true);
    same!(rest[2], 0);
    same!(call!("RtlWalkFrameChain", at(&mut rest), 3, 5 << 8), 3);
    let depth = call!("RtlWalkFrameChain", at(&mut [0_u64; 64]), 64, 0);
    same!(call!("RtlWalkFrameChain", at(&mut rest), 64, 63 << 8), depth);
}

/// Returns two flags: whether normal APCs are disabled, and whether all APCs are disabled.
fn disabled() -> (bool, bool) {
    (boolean(call!("KeAreApcsDisabled")), boolean(call!("KeAreAllApcsDisabled")))
}

fn regions() {
    same!(disabled() == (false, false), true);
    call!("KeEnterCriticalRegion");
    same!(disabled() == (true, false), true);
    call!("KeEnterGuardedRegion");
    same!(disabled() == (true, true), true);
    call!("KeLeaveCriticalRegion");
    same!(disabled() == (true, true), true);
    call!("KeLeaveGuardedRegion");
    same!(disabled() == (false, false), true);
    let mut mutex = [0_u64; 8];
    let mutex = at(&mut mutex);
    call!("KeInitializeGuardedMutex", mutex);
    call!("KeAcquireGuardedMutex", mutex);
    same!(disabled() == (true, true), true);
    call!("KeReleaseGuardedMutex", mutex);
    same!(disabled() == (false, false), true);
    same!(boolean(call!("KeTryToAcquireGuardedMutex", mutex)), true);
    same!(disabled() == (true, true), true);
    same!(boolean(call!("KeTryToAcquireGuardedMutex", mutex)), false);
    call!("KeReleaseGuardedMutex", mutex);
    same!(disabled() == (false, false), true);
    call!("KeEnterGuardedRegion");
    call!("KeAcquireGuardedMutexUnsafe", mutex);
    call!("KeReleaseGuardedMutexUnsafe", mutex);
    call!("KeLeaveGuardedRegion");
    same!(disabled() == (false, false), true);
    let find = Routine::find;
    let (raise, lower) = (find("KfRaiseIrql"), find("KeLowerIrql"));
    let ask = find("KeAreAllApcsDisabled");
    let find_normal = find("KeAreApcsDisabled");
    let unsafe_mutex = (find("KeAcquireGuardedMutexUnsafe"), find("KeReleaseGuardedMutexUnsafe"));
    let before = raise.call(&[1]);
    let all = ask.call(&[]);
    // The raised IRQL is not a region, so the routine does not report it.
    let normal = find_normal.call(&[]);
    // At this IRQL, no region is needed.
    let (acquire, release) = unsafe_mutex;
    acquire.call(&[mutex]);
    release.call(&[mutex]);
    lower.call(&[before & 0xFF]);
    same!(boolean(all), true);
    same!(boolean(normal), false);
}

fn processes() {
    let own = call!("PsGetCurrentProcess");
    let thread = call!("PsGetCurrentThread");
    same!(call!("PsGetThreadProcess", thread), own);
    same!(boolean(call!("IoIsSystemThread", thread)), true);
    same!(call!("PsGetProcessExitTime"), 0);
    call!("KeAttachProcess", own);
    call!("KeDetachProcess");
    call!("KeDetachProcess");
    same!(call!("IoGetTopLevelIrp"), 0);
    call!("IoSetTopLevelIrp", 3);
    same!(call!("IoGetTopLevelIrp"), 3);
    call!("IoSetTopLevelIrp", 0);
}

/// Attaches the thread to the process that the test started, and to its own process.
pub fn attach() {
    let own = call!("PsGetCurrentProcess");
    let other = other_process();
    let current = || call!("PsGetCurrentProcess");
    call!("KeAttachProcess", other);
    same!(current(), other);
    // The thread is already attached to the process.
    call!("KeAttachProcess", other);
    same!(current(), other);
    call!("KeDetachProcess");
    same!(current(), own);
    call!("KeDetachProcess");
    same!(current(), own);
    call!("KeAttachProcess", own);
    call!("KeAttachProcess", other);
    same!(current(), other);
    call!("KeDetachProcess");
    same!(current(), own);
    apcs::environments(other);
    security::token(other, false);
    call!("ObfDereferenceObject", other);
}

/// Returns a reference to the process that the test started.
fn other_process() -> u64 {
    let mut process = 0_u64;
    let status = call!("PsLookupProcessByProcessId", 40, at(&mut process));
    same!(low(status), 0);
    process
}

/// Allocates memory while the test makes every allocation fail.
pub fn no_memory() {
    const NO_MEMORY: u32 = 0xC000_0017;
    let reference = call!("ExAllocateCacheAwareRundownProtection", NON_PAGED, 0x7473);
    same!(reference, 0);
    let (mut text, mut copy) = ([0_u64; 2], [0_u64; 2]);
    let mut units = utf16(b"a\0");
    call!("RtlInitUnicodeString", at(&mut text), at(&mut units));
    let status = call!("RtlDuplicateUnicodeString", 1, at(&mut text), at(&mut copy));
    same!(low(status), NO_MEMORY);
    let (process, mut path) = (call!("PsGetCurrentProcess"), 0_u64);
    let status = call!("SeLocateProcessImageName", process, at(&mut path));
    same!(low(status), NO_MEMORY);
}

static ENDED: AtomicU32 = AtomicU32::new(0);

unsafe extern "C" fn end_with_status(_context: *mut c_void) {
    let thread = call!("PsGetCurrentThread");
    same!(boolean(call!("PsIsThreadTerminating", thread)), false);
    same!(low(call!("PsGetThreadExitStatus", thread)), PENDING);
    same!(call!("IoGetTopLevelIrp"), 0);
    ENDED.fetch_add(1, Ordering::Relaxed);
    call!("PsTerminateSystemThread", 0xC000_0123_u64);
    ENDED.fetch_add(1, Ordering::Relaxed);
}

const unsafe extern "C" fn end_by_returning(_context: *mut c_void) {}

fn thread_facts() {
    let mut before = 0_i64;
    call!("KeQuerySystemTimePrecise", at(&mut before));
    let expected =
        [(end_with_status as *const c_void, 0xC000_0123_u32), (end_by_returning as _, 0)];
    for (routine, status) in expected {
        // SAFETY: the address is one of the routines above.
        let routine = unsafe {
            core::mem::transmute::<*const c_void, unsafe extern "C" fn(*mut c_void)>(routine)
        };
        let thread = threads::start(routine, 0);
        call!("KeWaitForSingleObject", thread, 0, 0, 0, 0);
        same!(boolean(call!("PsIsThreadTerminating", thread)), true);
        same!(low(call!("PsGetThreadExitStatus", thread)), status);
        let created = call!("PsGetThreadCreateTime", thread).cast_signed();
        let mut now = 0_i64;
        call!("KeQuerySystemTimePrecise", at(&mut now));
        same!((before..=now).contains(&created), true);
        call!("ObfDereferenceObject", thread);
    }
    same!(ENDED.load(Ordering::Relaxed), 1);
}

/// Prints the image path of each process.
pub fn images() {
    for id in [4_u64, 40] {
        let (mut process, mut path) = (0_u64, 0_u64);
        let status = call!("PsLookupProcessByProcessId", id, at(&mut process));
        same!(low(status), 0);
        let status = call!("SeLocateProcessImageName", process, at(&mut path));
        same!(low(status), 0);
        let name = call!("PsGetProcessImageFileName", process);
        call!("DbgPrint", c"%s %wZ|\n".as_ptr().addr(), name, path,);
        call!("ExFreePool", path);
        call!("ObfDereferenceObject", process);
    }
}

fn critical_in_guarded() {
    call!("KeEnterGuardedRegion");
    call!("KeLeaveCriticalRegion");
}

fn guarded_in_critical() {
    call!("KeEnterCriticalRegion");
    call!("KeLeaveGuardedRegion");
}

fn never_complete() {
    let mut once = 0_u64;
    begin(at(&mut once), 0);
    begin(at(&mut once), 0);
}

/// Returns a context whose lowest bits overlap the state.
const unsafe extern "C" fn low_bits(_once: u64, _parameter: u64, context: u64) -> u32 {
    // SAFETY: the routine's caller passes the address of a variable for the context.
    unsafe { (context as *mut u64).write(66) };
    1
}

fn bad_context() {
    let (mut once, mut context) = (0_u64, 0_u64);
    let routine = address(low_bits as *const c_void);
    for _ in 0..2 {
        call!("RtlRunOnceExecuteOnce", at(&mut once), routine, 0, at(&mut context));
    }
}

unsafe extern "C" fn attach_twice(_context: *mut c_void) {
    let own = call!("PsGetCurrentProcess");
    call!("KeAttachProcess", other_process());
    call!("KeAttachProcess", own);
}

fn attached_twice() {
    threads::join(threads::start(attach_twice, 0));
}

unsafe extern "C" fn stay_attached(_context: *mut c_void) {
    call!("KeAttachProcess", other_process());
}

fn ended_attached() {
    threads::join(threads::start(stay_attached, 0));
}

fn unsafe_outside() {
    let mut mutex = [0_u64; 8];
    call!("KeInitializeGuardedMutex", at(&mut mutex));
    // A critical region is not a guarded region.
    call!("KeEnterCriticalRegion");
    call!("KeAcquireGuardedMutexUnsafe", at(&mut mutex));
}

fn free_freed() {
    let reference = call!("ExAllocateCacheAwareRundownProtection", NON_PAGED, 0x7473);
    call!("ExFreePool", reference);
    call!("ExFreeCacheAwareRundownProtection", reference);
}

/// Opens another driver's device, and does not release the file.
fn leave_file() {
    let text = utf16(br"\Device\WdmTest");
    let mut name = [(size_of_val(&text) as u64) * 0x1_0001, text.as_ptr().addr() as u64];
    let (mut file, mut device) = (0_u64, 0_u64);
    let status =
        call!("IoGetDeviceObjectPointer", at(&mut name), 1, at(&mut file), at(&mut device));
    same!(low(status), 0);
}

fn free_unknown() {
    let mut own = [0_u64; 8];
    call!("ExFreeCacheAwareRundownProtection", at(&mut own));
}

fn small_rundown() {
    let mut own = [0_u64; 8];
    call!("ExInitializeRundownProtectionCacheAware", at(&mut own), 8);
}
