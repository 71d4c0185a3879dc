//! Events, mutexes and semaphores, and waits for them on one thread.

use wdk_sys::{NTSTATUS, PVOID, STATUS_SUCCESS, STATUS_TIMEOUT};

use crate::call::{NULL, call, driver, same};

/// Memory for an object that threads can wait for.
#[repr(C, align(16))]
pub struct Object(pub [u64; 8]);

impl Object {
    pub const fn new() -> Self {
        Self([0; 8])
    }

    /// Returns the object's address.
    pub const fn at(&mut self) -> PVOID {
        self.0.as_mut_ptr().cast()
    }
}

/// Waits for an object without a timeout.
pub fn wait(object: PVOID) -> NTSTATUS {
    call!(KeWaitForSingleObject, object, 0, 0, 0, NULL)
}

/// Waits for an object with a timeout in units of 100 ns.
pub fn wait_for(object: PVOID, mut timeout: i64) -> NTSTATUS {
    call!(KeWaitForSingleObject, object, 0, 0, 0, &mut timeout)
}

/// Waits for an event that nothing sets, for a relative time in units of 100 ns, which is negative.
pub fn pass(time: i64) {
    let mut never = Object::new();
    call!(KeInitializeEvent, never.at(), 0, 0);
    same!(wait_for(never.at(), time), STATUS_TIMEOUT);
}

/// Delays the thread by a relative time in units of 100 ns, which is negative.
pub fn delay(mut interval: i64) {
    call!(KeDelayExecutionThread, 0, 0, &mut interval);
}

/// Returns the time since the start in units of 100 ns.
pub fn now() -> i64 {
    let mut counter = 0_i64;
    call!(KeQueryInterruptTimePrecise, &mut counter).cast_signed()
}

pub fn run() {
    events();
    mutexes();
    semaphores();
    several();
    references();
    requests();
}

/// The routines with which drivers count references, besides those that macros call.
fn references() {
    let object = driver();
    same!(call!(ObReferenceObjectSafe, object), 1);
    same!(call!(ObReferenceObjectSafeWithTag, object, 7), 1);
    same!(call!(ObReferenceObjectByPointerWithTag, object, 0, NULL, 0, 7), 0);
    call!(ObDereferenceObjectDeferDelete, object);
    call!(ObDereferenceObjectDeferDelete, object);
    call!(ObDereferenceObjectDeferDeleteWithTag, object, 7);
}

/// Requests for a device, of any size, and pool that counts against a quota.
fn requests() {
    let irp = call!(IoAllocateIrpEx, NULL, 2, 0);
    let size = call!(IoSizeOfIrpEx, NULL, 2);
    same!(size, 208 + 2 * 72);
    call!(IoFreeIrp, irp);
    let block = call!(ExAllocatePoolWithQuota, 512, size);
    call!(IoInitializeIrpEx, block, NULL, size, 2);
    call!(ExFreePool, block);
}

fn events() {
    let mut event = Object::new();
    call!(KeInitializeEvent, event.at(), 0, 0);
    same!(call!(KeReadStateEvent, event.at()), 0);
    same!(wait_for(event.at(), 0), STATUS_TIMEOUT);
    let before = now();
    same!(wait_for(event.at(), -10_000), STATUS_TIMEOUT);
    let took = now() - before;
    same!((10_000..20_000).contains(&took), true);
    // An absolute time in the past.
    same!(wait_for(event.at(), 1), STATUS_TIMEOUT);
    same!(call!(KeSetEvent, event.at(), 0, 0), 0);
    same!(call!(KeSetEvent, event.at(), 0, 0), 1);
    // A notification event stays signaled.
    same!(wait(event.at()), STATUS_SUCCESS);
    same!(wait(event.at()), STATUS_SUCCESS);
    same!(call!(KeResetEvent, event.at()), 1);
    same!(call!(KeResetEvent, event.at()), 0);
    call!(KeSetEvent, event.at(), 0, 0);
    call!(KeClearEvent, event.at());
    same!(call!(KeReadStateEvent, event.at()), 0);
    // A synchronization event satisfies one wait.
    call!(KeInitializeEvent, event.at(), 1, 1);
    same!(wait(event.at()), STATUS_SUCCESS);
    same!(wait_for(event.at(), 0), STATUS_TIMEOUT);
}

fn mutexes() {
    let mut mutex = Object::new();
    call!(KeInitializeMutex, mutex.at(), 0);
    same!(call!(KeReadStateMutex, mutex.at()), 1);
    same!(wait(mutex.at()), STATUS_SUCCESS);
    same!(wait(mutex.at()), STATUS_SUCCESS);
    same!(call!(KeReadStateMutex, mutex.at()), u32::MAX);
    same!(call!(KeReleaseMutex, mutex.at(), 0), u32::MAX);
    same!(call!(KeReleaseMutex, mutex.at(), 0), 0);
    same!(call!(KeReadStateMutex, mutex.at()), 1);
}

fn semaphores() {
    let mut semaphore = Object::new();
    call!(KeInitializeSemaphore, semaphore.at(), 1, 3);
    same!(wait(semaphore.at()), STATUS_SUCCESS);
    same!(wait_for(semaphore.at(), 0), STATUS_TIMEOUT);
    same!(call!(KeReleaseSemaphore, semaphore.at(), 0, 3, 0), 0);
    same!(call!(KeReadStateSemaphore, semaphore.at()), 3);
}

fn several() {
    let (mut one, mut other) = (Object::new(), Object::new());
    call!(KeInitializeEvent, one.at(), 1, 0);
    call!(KeInitializeEvent, other.at(), 1, 1);
    let mut objects = [one.at(), other.at()];
    let mut timeout = 0_i64;
    let any = |objects: &mut [PVOID; 2], timeout: &mut i64| {
        call!(KeWaitForMultipleObjects, 2, objects, 1, 0, 0, 0, timeout, NULL)
    };
    let all = |objects: &mut [PVOID; 2], timeout: &mut i64| {
        call!(KeWaitForMultipleObjects, 2, objects, 0, 0, 0, 0, timeout, NULL)
    };
    // The wait acquires all objects or none: the event that was signaled stays signaled.
    same!(all(&mut objects, &mut timeout), STATUS_TIMEOUT);
    same!(any(&mut objects, &mut timeout), 1);
    same!(any(&mut objects, &mut timeout), STATUS_TIMEOUT);
    call!(KeSetEvent, one.at(), 0, 0);
    call!(KeSetEvent, other.at(), 0, 0);
    same!(all(&mut objects, &mut timeout), STATUS_SUCCESS);
    same!(call!(KeReadStateEvent, one.at()), 0);
}
