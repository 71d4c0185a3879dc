//! Asynchronous procedure calls.

use core::{
    ffi::c_void,
    sync::atomic::{AtomicU64, Ordering},
};

use wdk_sys::{BOOLEAN, KAPC, PKTHREAD, PVOID, STATUS_SUCCESS, STATUS_TIMEOUT};

use crate::{
    call::{NULL, at, call, field, pointer, same},
    dispatcher::{Object, wait, wait_for},
    routines::NormalRoutine,
    threads,
    timers::irql,
};

/// Memory for an APC.
type Apc = [u64; 11];

/// The routines that have run, one digit each: 1 for a kernel routine, 2 for a rundown routine, and
/// 3 for a normal routine.
static RAN: AtomicU64 = AtomicU64::new(0);
/// The thread on which the last routine ran, and its IRQL.
static THREAD: AtomicU64 = AtomicU64::new(0);
static LEVEL: AtomicU64 = AtomicU64::new(0);

fn note(digit: u64) {
    RAN.store(10 * RAN.load(Ordering::Relaxed) + digit, Ordering::Relaxed);
    LEVEL.store(irql().into(), Ordering::Relaxed);
    THREAD.store(call!(KeGetCurrentThread) as u64, Ordering::Relaxed);
}

/// Returns the routines that have run since the last call.
fn ran() -> u64 {
    RAN.swap(0, Ordering::Relaxed)
}

unsafe extern "C" fn kernel(
    _apc: *mut KAPC,
    normal: *mut NormalRoutine,
    context: *mut PVOID,
    first: *mut PVOID,
    second: *mut PVOID,
) {
    note(1);
    same!(LEVEL.load(Ordering::Relaxed), 1);
    // SAFETY: the kernel passes the addresses of the APC's routine and arguments.
    let arguments = [context, first, second].map(|argument| unsafe { *argument }.addr());
    // SAFETY: as above.
    let normal = unsafe { &mut *normal };
    if normal.is_some() {
        same!(arguments == [7, 8, 9], true);
    }
    // The kernel routine determines the arguments of the normal routine, and whether it runs.
    // SAFETY: as above.
    unsafe { *second = pointer(10) };
    if CANCELS.load(Ordering::Relaxed) != 0 {
        *normal = None;
    }
}

static CANCELS: AtomicU64 = AtomicU64::new(0);

unsafe extern "C" fn rundown(_apc: *mut KAPC) {
    note(2);
}

unsafe extern "C" fn normal(context: PVOID, first: PVOID, second: PVOID) {
    note(3);
    same!(LEVEL.load(Ordering::Relaxed), 0);
    same!([context, first, second].map(<*mut c_void>::addr) == [7, 8, 10], true);
}

/// Initializes an APC for a thread: a special APC or, if `normal_mode` is given, a normal APC for
/// this mode.
fn initialize(apc: &mut Apc, thread: PKTHREAD, normal_mode: Option<u64>) {
    let routine: NormalRoutine = if normal_mode.is_some() { Some(normal) } else { None };
    let mode = normal_mode.unwrap_or(1);
    call!(KeInitializeApc, apc, thread, 0, Some(kernel), Some(rundown), routine, mode, pointer(7));
}

fn insert(apc: &mut Apc) -> BOOLEAN {
    call!(KeInsertQueueApc, apc, pointer(8), pointer(9), 0)
}

pub fn run() {
    on_this_thread();
    on_waiting_threads();
    at_the_end();
}

fn on_this_thread() {
    let this = call!(KeGetCurrentThread);
    let (mut special, mut plain) = ([0x55_u64; 11], [0x55_u64; 11]);
    initialize(&mut special, this, None);
    initialize(&mut plain, this, Some(0));
    same!(special[0] & 0xFF, 18);
    same!(insert(&mut special), true);
    same!(ran(), 1);
    same!(THREAD.load(Ordering::Relaxed), this);
    same!(insert(&mut plain), true);
    same!(ran(), 13);
    // A kernel routine cancels the normal routine.
    CANCELS.store(1, Ordering::Relaxed);
    same!(insert(&mut plain), true);
    same!(ran(), 1);
    CANCELS.store(0, Ordering::Relaxed);
    // In a critical region, normal APCs wait.
    call!(KeEnterCriticalRegion);
    same!(insert(&mut plain), true);
    same!(insert(&mut plain), false);
    same!(ran(), 0);
    same!(insert(&mut special), true);
    same!(ran(), 1);
    call!(KeLeaveCriticalRegion);
    same!(ran(), 13);
    // In a guarded region, all APCs wait; then special APCs run first.
    call!(KeEnterGuardedRegion);
    same!(insert(&mut plain), true);
    same!(insert(&mut special), true);
    same!(ran(), 0);
    call!(KeLeaveGuardedRegion);
    same!(ran(), 113);
    // All APCs also wait at APC_LEVEL.
    let raised = call!(KfRaiseIrql, 1);
    same!(call!(KeInsertQueueApc, &mut special, pointer(8), pointer(9), 0), true);
    same!(ran(), 0);
    call!(KeLowerIrql, raised);
    same!(ran(), 1);
    // An APC that is removed from its queue does not run.
    call!(KeEnterCriticalRegion);
    same!(insert(&mut plain), true);
    same!(call!(KeRemoveQueueApc, &mut plain), true);
    same!(call!(KeRemoveQueueApc, &mut plain), false);
    call!(KeLeaveCriticalRegion);
    same!(ran(), 0);
    // In the stand-in kernel, no thread returns to user mode.
    initialize(&mut plain, this, Some(1));
    same!(insert(&mut plain), true);
    same!(ran(), 0);
    same!(call!(KeRemoveQueueApc, &mut plain), true);
}

/// An APC runs in the middle of a wait, and the wait continues.
fn on_waiting_threads() {
    let mut event = Object::new();
    call!(KeInitializeEvent, event.at(), 0, 0);
    let thread = threads::start(wait_once, event.at());
    same!(wait_for(thread, -10_000), STATUS_TIMEOUT);
    let (mut special, mut plain) = ([0_u64; 11], [0_u64; 11]);
    initialize(&mut special, thread.cast(), None);
    initialize(&mut plain, thread.cast(), Some(0));
    same!(insert(&mut plain), true);
    same!(insert(&mut special), true);
    same!(wait_for(thread, -10_000), STATUS_TIMEOUT);
    same!(ran(), 113);
    same!(THREAD.load(Ordering::Relaxed), thread);
    call!(KeSetEvent, event.at(), 0, 0);
    same!(wait(thread), STATUS_SUCCESS);
    // The thread has ended.
    same!(insert(&mut special), false);
    call!(ObfDereferenceObject, thread);
}

unsafe extern "C" fn wait_once(event: *mut c_void) {
    same!(wait(event), STATUS_SUCCESS);
}

/// APCs that are still queued when a thread ends are run down.
fn at_the_end() {
    let mut event = Object::new();
    call!(KeInitializeEvent, event.at(), 0, 0);
    let thread = threads::start(wait_once, event.at());
    let mut apc = [0_u64; 11];
    initialize(&mut apc, thread.cast(), Some(1));
    same!(insert(&mut apc), true);
    call!(KeSetEvent, event.at(), 0, 0);
    threads::join(thread);
    same!(ran(), 2);
    same!(apc[10] >> 16 & 0xFF, 0);
    // Kernel APCs run on a thread that never waits, before its routine.
    let thread = threads::start(note_start, NULL);
    let (mut special, mut plain) = ([0_u64; 11], [0_u64; 11]);
    initialize(&mut special, thread.cast(), None);
    initialize(&mut plain, thread.cast(), Some(0));
    same!(insert(&mut plain), true);
    same!(insert(&mut special), true);
    threads::join(thread);
    same!(ran(), 1134);
}

unsafe extern "C" fn note_start(_context: *mut c_void) {
    note(4);
}

/// An APC runs while its thread is attached to a process, or while it is not.
pub fn environments(other: PVOID) {
    /// `OriginalApcEnvironment`, `CurrentApcEnvironment` and `InsertApcEnvironment`.
    const ORIGINAL: u64 = 0;
    const CURRENT: u64 = 2;
    const AT_INSERTION: u64 = 3;
    let this = call!(KeGetCurrentThread);
    let mut apc = [0_u64; 11];
    let mut initialized = |environment: u64| {
        let at = at(&mut apc);
        call!(KeInitializeApc, at, this, environment, Some(kernel), None, None, 0, NULL);
        (at, field::<u8>(at, 80))
    };
    let inserted = |at: PVOID| call!(KeInsertQueueApc, at, pointer(8), pointer(9), 0);
    same!(initialized(CURRENT).1, 0);
    call!(KeAttachProcess, other);
    let (at, index) = initialized(CURRENT);
    same!(index, 1);
    same!(inserted(at), true);
    same!(ran(), 1);
    let (at, index) = initialized(AT_INSERTION);
    same!(index, 3);
    same!(inserted(at), true);
    same!(ran(), 1);
    let (at, index) = initialized(ORIGINAL);
    same!(index, 0);
    same!(inserted(at), true);
    same!(ran(), 0);
    call!(KeDetachProcess);
    same!(ran(), 1);
}

pub const FAULTS: &[(&str, fn())] = &[
    ("fault-exit-critical", || end_in(in_critical_region)),
    ("fault-exit-guarded", || end_in(in_guarded_region)),
    ("fault-exit-mutex", || end_in(as_owner)),
];

fn end_in(routine: unsafe extern "C" fn(*mut c_void)) {
    let mut mutex = Object::new();
    call!(KeInitializeMutex, mutex.at(), 0);
    threads::join(threads::start(routine, mutex.at()));
}

unsafe extern "C" fn in_critical_region(_context: *mut c_void) {
    call!(KeEnterCriticalRegion);
    call!(KeEnterCriticalRegion);
}

unsafe extern "C" fn in_guarded_region(_context: *mut c_void) {
    call!(KeEnterGuardedRegion);
}

unsafe extern "C" fn as_owner(mutex: *mut c_void) {
    same!(wait(mutex), STATUS_SUCCESS);
    call!(PsTerminateSystemThread, 0);
}
