//! Spin locks, lists, mutexes and rundown protection.

use core::ffi::c_void;

use crate::{
    call::{Routine, at, boolean, call, low, same},
    objects::{Object, TIMEOUT, wait_for},
    queues::irql,
    threads,
};

pub fn run() {
    spin_locks();
    lists();
    fast_mutexes();
    rundown();
}

fn spin_locks() {
    let mut lock = 0xEE_u64;
    call!("KeInitializeSpinLock", at(&mut lock));
    let acquire = Routine::find("KeAcquireSpinLockRaiseToDpc");
    let release = Routine::find("KeReleaseSpinLock");
    let test = Routine::find("KeTestSpinLock");
    let attempt = Routine::find("KeTryToAcquireSpinLockAtDpcLevel");
    let give_back = Routine::find("KeReleaseSpinLockFromDpcLevel");
    same!(boolean(test.call(&[at(&mut lock)])), true);
    let before = acquire.call(&[at(&mut lock)]) & 0xFF;
    same!((before, irql()) == (0, 2), true);
    same!(boolean(test.call(&[at(&mut lock)])), false);
    same!(boolean(attempt.call(&[at(&mut lock)])), false);
    let mut other = 0_u64;
    same!(boolean(attempt.call(&[at(&mut other)])), true);
    give_back.call(&[at(&mut other)]);
    release.call(&[at(&mut lock), before]);
    same!(irql(), 0);
    let mut handle = [0_u64; 3];
    let enter = Routine::find("KeAcquireInStackQueuedSpinLock");
    let leave = Routine::find("KeReleaseInStackQueuedSpinLock");
    enter.call(&[at(&mut lock), at(&mut handle)]);
    same!(irql(), 2);
    leave.call(&[at(&mut handle)]);
    same!((irql(), lock) == (0, 0), true);
}

fn lists() {
    let mut lock = 0_u64;
    let mut head = [0_u64; 2];
    head = [at(&mut head); 2];
    let (mut one, mut two) = ([0_u64; 2], [0_u64; 2]);
    let lock = at(&mut lock);
    same!(call!("ExInterlockedInsertTailList", at(&mut head), at(&mut one), lock), 0);
    same!(call!("ExInterlockedInsertTailList", at(&mut head), at(&mut two), lock), at(&mut one));
    same!(call!("ExInterlockedRemoveHeadList", at(&mut head), lock), at(&mut one));
    same!(call!("ExInterlockedInsertHeadList", at(&mut head), at(&mut one), lock), at(&mut two));
    same!(call!("ExInterlockedRemoveHeadList", at(&mut head), lock), at(&mut one));
    same!(call!("ExInterlockedRemoveHeadList", at(&mut head), lock), at(&mut two));
    same!(call!("ExInterlockedRemoveHeadList", at(&mut head), lock), 0);
    let (mut header, mut first, mut second) = (Object::new(), Object::new(), Object::new());
    call!("InitializeSListHead", header.at());
    same!(call!("ExpInterlockedPushEntrySList", header.at(), first.at()), 0);
    same!(call!("ExpInterlockedPushEntrySList", header.at(), second.at()), first.at());
    same!(low(call!("ExQueryDepthSList", header.at())), 2);
    same!(call!("ExpInterlockedPopEntrySList", header.at()), second.at());
    same!(call!("ExpInterlockedFlushSList", header.at()), first.at());
    same!(call!("ExpInterlockedPopEntrySList", header.at()), 0);
    same!(low(call!("ExQueryDepthSList", header.at())), 0);
}

fn fast_mutexes() {
    let mut mutex = Object::new();
    // This initializes the mutex like ExInitializeFastMutex, which the headers define inline.
    mutex.0[0] = 1;
    let event = mutex.at() + 24;
    call!("KeInitializeEvent", event, 1, 0);
    let (acquire, release) =
        (Routine::find("ExAcquireFastMutex"), Routine::find("ExReleaseFastMutex"));
    let attempt = Routine::find("ExTryToAcquireFastMutex");
    acquire.call(&[mutex.at()]);
    same!(irql(), 1);
    same!(boolean(attempt.call(&[mutex.at()])), false);
    release.call(&[mutex.at()]);
    same!(irql(), 0);
    call!("KeInitializeGuardedMutex", mutex.at());
    call!("KeAcquireGuardedMutex", mutex.at());
    same!(irql(), 0);
    // Another thread waits until the mutex is released.
    let thread = threads::start(guarded, mutex.at());
    same!(wait_for(thread, -10_000), TIMEOUT);
    call!("KeReleaseGuardedMutex", mutex.at());
    threads::join(thread);
}

unsafe extern "C" fn guarded(mutex: *mut c_void) {
    call!("KeAcquireGuardedMutex", mutex);
    call!("KeReleaseGuardedMutex", mutex);
}

fn rundown() {
    let mut reference = 1_u64;
    call!("ExInitializeRundownProtection", at(&mut reference));
    same!(boolean(call!("ExAcquireRundownProtection", at(&mut reference))), true);
    let thread = threads::start(release_later, at(&mut reference));
    call!("ExWaitForRundownProtectionRelease", at(&mut reference));
    same!(boolean(call!("ExAcquireRundownProtection", at(&mut reference))), false);
    call!("ExRundownCompleted", at(&mut reference));
    call!("ExReInitializeRundownProtection", at(&mut reference));
    same!(boolean(call!("ExAcquireRundownProtection", at(&mut reference))), true);
    call!("ExReleaseRundownProtection", at(&mut reference));
    threads::join(thread);
}

unsafe extern "C" fn release_later(reference: *mut c_void) {
    let mut time = -10_000_i64;
    call!("KeDelayExecutionThread", 0, 0, at(&mut time));
    call!("ExReleaseRundownProtection", reference);
}
