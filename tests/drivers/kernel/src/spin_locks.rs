//! Spin locks, lists, mutexes and rundown protection.

use core::ffi::c_void;

use wdk_sys::STATUS_TIMEOUT;

use crate::{
    call::{NULL, at, call, same},
    dispatcher::{Object, delay, wait_for},
    threads,
    timers::irql,
};

pub fn run() {
    spin_locks();
    lists();
    fast_mutexes();
    rundown();
}

fn spin_locks() {
    let mut lock = 0xEE_u64;
    call!(KeInitializeSpinLock, &mut lock);
    same!(call!(KeTestSpinLock, &mut lock), true);
    let before = call!(KeAcquireSpinLockRaiseToDpc, &mut lock);
    same!((before, irql()) == (0, 2), true);
    same!(call!(KeTestSpinLock, &mut lock), false);
    same!(call!(KeTryToAcquireSpinLockAtDpcLevel, &mut lock), false);
    let mut other = 0_u64;
    same!(call!(KeTryToAcquireSpinLockAtDpcLevel, &mut other), true);
    call!(KeReleaseSpinLockFromDpcLevel, &mut other);
    call!(KeReleaseSpinLock, &mut lock, before);
    same!(irql(), 0);
    let mut handle = [0_u64; 3];
    call!(KeAcquireInStackQueuedSpinLock, &mut lock, &mut handle);
    same!(irql(), 2);
    call!(KeReleaseInStackQueuedSpinLock, &mut handle);
    same!((irql(), lock) == (0, 0), true);
}

fn lists() {
    let mut lock = 0_u64;
    let mut head = [NULL; 2];
    head = [at(&mut head); 2];
    let (mut one, mut two) = ([0_u64; 2], [0_u64; 2]);
    let lock = at(&mut lock);
    same!(call!(ExInterlockedInsertTailList, &mut head, &mut one, lock), 0);
    same!(call!(ExInterlockedInsertTailList, &mut head, &mut two, lock), at(&mut one));
    same!(call!(ExInterlockedRemoveHeadList, &mut head, lock), at(&mut one));
    same!(call!(ExInterlockedInsertHeadList, &mut head, &mut one, lock), at(&mut two));
    same!(call!(ExInterlockedRemoveHeadList, &mut head, lock), at(&mut one));
    same!(call!(ExInterlockedRemoveHeadList, &mut head, lock), at(&mut two));
    same!(call!(ExInterlockedRemoveHeadList, &mut head, lock), 0);
    let (mut header, mut first, mut second) = (Object::new(), Object::new(), Object::new());
    call!(InitializeSListHead, header.at());
    same!(call!(ExpInterlockedPushEntrySList, header.at(), first.at()), 0);
    same!(call!(ExpInterlockedPushEntrySList, header.at(), second.at()), first.at());
    same!(call!(ExQueryDepthSList, header.at()), 2);
    same!(call!(ExpInterlockedPopEntrySList, header.at()), second.at());
    same!(call!(ExpInterlockedFlushSList, header.at()), first.at());
    same!(call!(ExpInterlockedPopEntrySList, header.at()), 0);
    same!(call!(ExQueryDepthSList, header.at()), 0);
}

fn fast_mutexes() {
    let mut mutex = Object::new();
    // This initializes the mutex like ExInitializeFastMutex, which the headers define inline.
    mutex.0[0] = 1;
    let event = mutex.at().wrapping_byte_add(24);
    call!(KeInitializeEvent, event, 1, 0);
    call!(ExAcquireFastMutex, mutex.at());
    same!(irql(), 1);
    same!(call!(ExTryToAcquireFastMutex, mutex.at()), false);
    call!(ExReleaseFastMutex, mutex.at());
    same!(irql(), 0);
    call!(KeInitializeGuardedMutex, mutex.at());
    call!(KeAcquireGuardedMutex, mutex.at());
    same!(irql(), 0);
    // Another thread waits until the mutex is released.
    let thread = threads::start(guarded, mutex.at());
    same!(wait_for(thread, -10_000), STATUS_TIMEOUT);
    call!(KeReleaseGuardedMutex, mutex.at());
    threads::join(thread);
}

unsafe extern "C" fn guarded(mutex: *mut c_void) {
    call!(KeAcquireGuardedMutex, mutex);
    call!(KeReleaseGuardedMutex, mutex);
}

fn rundown() {
    let mut reference = 1_u64;
    call!(ExInitializeRundownProtection, &mut reference);
    same!(call!(ExAcquireRundownProtection, &mut reference), true);
    let thread = threads::start(release_later, at(&mut reference));
    call!(ExWaitForRundownProtectionRelease, &mut reference);
    same!(call!(ExAcquireRundownProtection, &mut reference), false);
    call!(ExRundownCompleted, &mut reference);
    call!(ExReInitializeRundownProtection, &mut reference);
    same!(call!(ExAcquireRundownProtection, &mut reference), true);
    call!(ExReleaseRundownProtection, &mut reference);
    threads::join(thread);
}

unsafe extern "C" fn release_later(reference: *mut c_void) {
    delay(-10_000);
    call!(ExReleaseRundownProtection, reference);
}
