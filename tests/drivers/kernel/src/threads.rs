//! System threads.

use core::{
    ffi::c_void,
    sync::atomic::{AtomicPtr, AtomicU32, Ordering},
};

use wdk_sys::{PVOID, STATUS_SUCCESS, STATUS_TIMEOUT};

use crate::{
    call::{NULL, call, pointer, same},
    dispatcher::{Object, delay, now, wait, wait_for},
};

/// `THREAD_ALL_ACCESS`.
const ALL_ACCESS: u64 = 0x001F_FFFF;

/// Starts a thread. Returns a reference to its object.
pub fn start(routine: unsafe extern "C" fn(*mut c_void), context: PVOID) -> PVOID {
    let mut handle = NULL;
    let mut client = [NULL; 2];
    let status = call!(
        PsCreateSystemThread,
        &mut handle,
        ALL_ACCESS,
        NULL,
        NULL,
        &mut client,
        Some(routine),
        context
    );
    same!(status, 0);
    same!(client[0], 4);
    let mut object = NULL;
    same!(call!(ObReferenceObjectByHandle, handle, 0, NULL, 0, &mut object, NULL), 0);
    same!(call!(ZwClose, handle), 0);
    object
}

/// Waits for a thread's end, and releases its reference.
pub fn join(object: PVOID) {
    same!(wait(object), STATUS_SUCCESS);
    call!(ObfDereferenceObject, object);
}

static STEPS: AtomicU32 = AtomicU32::new(0);

/// Records a step. It must be the next step.
fn step(number: u32) {
    same!(STEPS.fetch_add(1, Ordering::Relaxed), number);
}

/// Two events by which a thread and its creator take turns.
struct Turns {
    there: Object,
    back: Object,
}

pub fn run() {
    take_turns();
    signals_are_not_lost();
    sleep();
    mutex_between_threads();
    nested_termination();
    affinity_and_priority();
}

fn take_turns() {
    let mut turns = Turns { there: Object::new(), back: Object::new() };
    call!(KeInitializeEvent, turns.there.at(), 1, 0);
    call!(KeInitializeEvent, turns.back.at(), 1, 0);
    let thread = start(other_side, (&raw mut turns).cast());
    step(0);
    for round in 0..3 {
        call!(KeSetEvent, turns.there.at(), 0, 0);
        same!(wait(turns.back.at()), STATUS_SUCCESS);
        step(2 * round + 2);
    }
    join(thread);
}

unsafe extern "C" fn other_side(context: *mut c_void) {
    // SAFETY: the creator passes its events, and waits for this thread's end.
    let turns = unsafe { &mut *context.cast::<Turns>() };
    for round in 0..3 {
        same!(wait(turns.there.at()), STATUS_SUCCESS);
        step(2 * round + 1);
        call!(KeSetEvent, turns.back.at(), 0, 0);
    }
}

/// An event that is set and immediately reset still ends a thread's wait.
fn signals_are_not_lost() {
    let mut event = Object::new();
    call!(KeInitializeEvent, event.at(), 0, 0);
    let thread = start(wait_once, event.at());
    // The wait lets the thread start and wait.
    same!(wait_for(thread, -10_000), STATUS_TIMEOUT);
    call!(KeSetEvent, event.at(), 0, 0);
    call!(KeResetEvent, event.at());
    join(thread);
}

unsafe extern "C" fn wait_once(event: *mut c_void) {
    same!(wait(event), STATUS_SUCCESS);
}

fn sleep() {
    let before = now();
    let thread = start(sleeper, pointer(500_000));
    join(thread);
    let took = now() - before;
    same!((500_000..600_000).contains(&took), true);
}

unsafe extern "C" fn sleeper(time: *mut c_void) {
    let mut time = -(time as i64);
    same!(call!(KeDelayExecutionThread, 0, 0, &mut time), 0);
}

/// A thread that waits for a mutex acquires it when the owner releases it.
fn mutex_between_threads() {
    let mut mutex = Object::new();
    call!(KeInitializeMutex, mutex.at(), 0);
    same!(wait(mutex.at()), STATUS_SUCCESS);
    let thread = start(take_mutex, mutex.at());
    same!(wait_for(thread, -10_000), STATUS_TIMEOUT);
    call!(KeReleaseMutex, mutex.at(), 0);
    // The mutex now belongs to the thread, even though the thread has not run yet.
    same!(wait_for(mutex.at(), 0), STATUS_TIMEOUT);
    join(thread);
    same!(call!(KeReadStateMutex, mutex.at()), 1);
}

unsafe extern "C" fn take_mutex(mutex: *mut c_void) {
    same!(wait(mutex), STATUS_SUCCESS);
    call!(KeReleaseMutex, mutex, 0);
}

static AFTER: AtomicU32 = AtomicU32::new(0);

fn nested_termination() {
    join(start(deep, NULL));
    same!(AFTER.load(Ordering::Relaxed), 0);
    // Only a thread that a driver created can end itself.
    same!(call!(PsTerminateSystemThread, 0), 0xC000_000D_u32);
}

unsafe extern "C" fn deep(_context: *mut c_void) {
    end_below(3);
    AFTER.store(1, Ordering::Relaxed);
}

#[inline(never)]
fn end_below(depth: u32) {
    if depth == 0 {
        call!(PsTerminateSystemThread, 0);
    } else {
        end_below(depth - 1);
    }
    AFTER.store(2, Ordering::Relaxed);
}

fn affinity_and_priority() {
    let thread = call!(KeGetCurrentThread);
    let before = call!(KeSetPriorityThread, thread, 16);
    same!(call!(KeSetPriorityThread, thread, before), 16);
    same!(call!(KeSetSystemAffinityThreadEx, 1), 0);
    call!(KeRevertToUserAffinityThreadEx, 0);
    same!(call!(KeAreApcsDisabled), 0);
    call!(KeEnterCriticalRegion);
    same!(call!(KeAreApcsDisabled), 1);
    call!(KeLeaveCriticalRegion);
}

/// The thread that runs until the driver is unloaded, and the flag that ends it.
static ENDLESS: AtomicPtr<c_void> = AtomicPtr::new(NULL);
static STOP: AtomicU32 = AtomicU32::new(0);
static ROUNDS: AtomicU32 = AtomicU32::new(0);

/// Starts a thread that polls a flag until the driver is unloaded.
pub fn together() {
    ENDLESS.store(start(poll, NULL), Ordering::Relaxed);
}

unsafe extern "C" fn poll(_context: *mut c_void) {
    while STOP.load(Ordering::Relaxed) == 0 {
        delay(-10_000);
        ROUNDS.fetch_add(1, Ordering::Relaxed);
    }
}

/// Ends the thread of [`together`], if it is running.
pub fn stop() {
    let thread = ENDLESS.swap(NULL, Ordering::Relaxed);
    if !thread.is_null() {
        STOP.store(1, Ordering::Relaxed);
        join(thread);
        wdk::println!("{} rounds", ROUNDS.load(Ordering::Relaxed));
    }
}
