//! Events, mutexes and semaphores, and waits for them on one thread.

use crate::call::{at, call, driver, low, same};

/// The statuses of waits.
pub const SUCCESS: u32 = 0;
pub const TIMEOUT: u32 = 0x102;

/// Memory for an object that threads can wait for.
#[repr(C, align(16))]
pub struct Object(pub [u64; 8]);

impl Object {
    pub const fn new() -> Self {
        Self([0; 8])
    }

    /// Returns the object's address.
    pub fn at(&mut self) -> u64 {
        self.0.as_mut_ptr() as u64
    }
}

/// Waits for an object without a timeout.
pub fn wait(object: u64) -> u32 {
    low(call!("KeWaitForSingleObject", object, 0, 0, 0, 0))
}

/// Waits for an object with a timeout in units of 100 ns.
pub fn wait_for(object: u64, mut timeout: i64) -> u32 {
    low(call!("KeWaitForSingleObject", object, 0, 0, 0, at(&mut timeout)))
}

/// Returns the time since the start in units of 100 ns.
pub fn now() -> i64 {
    let mut counter = 0_i64;
    call!("KeQueryInterruptTimePrecise", at(&mut counter)).cast_signed()
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
    same!(call!("ObReferenceObjectSafe", object) & 0xFF, 1);
    same!(call!("ObReferenceObjectSafeWithTag", object, 7) & 0xFF, 1);
    same!(low(call!("ObReferenceObjectByPointerWithTag", object, 0, 0, 0, 7)), 0);
    call!("ObDereferenceObjectDeferDelete", object);
    call!("ObDereferenceObjectDeferDelete", object);
    call!("ObDereferenceObjectDeferDeleteWithTag", object, 7);
}

/// Requests for a device, of any size, and pool that counts against a quota.
fn requests() {
    let irp = call!("IoAllocateIrpEx", 0, 2, 0);
    let size = call!("IoSizeOfIrpEx", 0, 2) & 0xFFFF;
    same!(size, 208 + 2 * 72);
    call!("IoFreeIrp", irp);
    let block = call!("ExAllocatePoolWithQuota", 512, size);
    call!("IoInitializeIrpEx", block, 0, size, 2);
    call!("ExFreePool", block);
}

fn events() {
    let mut event = Object::new();
    call!("KeInitializeEvent", event.at(), 0, 0);
    same!(low(call!("KeReadStateEvent", event.at())), 0);
    same!(wait_for(event.at(), 0), TIMEOUT);
    let before = now();
    same!(wait_for(event.at(), -10_000), TIMEOUT);
    let took = now() - before;
    same!((10_000..20_000).contains(&took), true);
    // An absolute time in the past.
    same!(wait_for(event.at(), 1), TIMEOUT);
    same!(low(call!("KeSetEvent", event.at(), 0, 0)), 0);
    same!(low(call!("KeSetEvent", event.at(), 0, 0)), 1);
    // A notification event stays signaled.
    same!(wait(event.at()), SUCCESS);
    same!(wait(event.at()), SUCCESS);
    same!(low(call!("KeResetEvent", event.at())), 1);
    same!(low(call!("KeResetEvent", event.at())), 0);
    call!("KeSetEvent", event.at(), 0, 0);
    call!("KeClearEvent", event.at());
    same!(low(call!("KeReadStateEvent", event.at())), 0);
    // A synchronization event satisfies one wait.
    call!("KeInitializeEvent", event.at(), 1, 1);
    same!(wait(event.at()), SUCCESS);
    same!(wait_for(event.at(), 0), TIMEOUT);
}

fn mutexes() {
    let mut mutex = Object::new();
    call!("KeInitializeMutex", mutex.at(), 0);
    same!(low(call!("KeReadStateMutex", mutex.at())), 1);
    same!(wait(mutex.at()), SUCCESS);
    same!(wait(mutex.at()), SUCCESS);
    same!(low(call!("KeReadStateMutex", mutex.at())), u32::MAX);
    same!(low(call!("KeReleaseMutex", mutex.at(), 0)), u32::MAX);
    same!(low(call!("KeReleaseMutex", mutex.at(), 0)), 0);
    same!(low(call!("KeReadStateMutex", mutex.at())), 1);
}

fn semaphores() {
    let mut semaphore = Object::new();
    call!("KeInitializeSemaphore", semaphore.at(), 1, 3);
    same!(wait(semaphore.at()), SUCCESS);
    same!(wait_for(semaphore.at(), 0), TIMEOUT);
    same!(low(call!("KeReleaseSemaphore", semaphore.at(), 0, 3, 0)), 0);
    same!(low(call!("KeReadStateSemaphore", semaphore.at())), 3);
}

fn several() {
    let (mut one, mut other) = (Object::new(), Object::new());
    call!("KeInitializeEvent", one.at(), 1, 0);
    call!("KeInitializeEvent", other.at(), 1, 1);
    let mut objects = [one.at(), other.at()];
    let mut timeout = 0_i64;
    let any = |objects: &mut [u64; 2], timeout: &mut i64| {
        low(call!("KeWaitForMultipleObjects", 2, at(objects), 1, 0, 0, 0, at(timeout), 0))
    };
    let all = |objects: &mut [u64; 2], timeout: &mut i64| {
        low(call!("KeWaitForMultipleObjects", 2, at(objects), 0, 0, 0, 0, at(timeout), 0))
    };
    // The wait acquires all objects or none: the event that was signaled stays signaled.
    same!(all(&mut objects, &mut timeout), TIMEOUT);
    same!(any(&mut objects, &mut timeout), 1);
    same!(any(&mut objects, &mut timeout), TIMEOUT);
    call!("KeSetEvent", one.at(), 0, 0);
    call!("KeSetEvent", other.at(), 0, 0);
    same!(all(&mut objects, &mut timeout), SUCCESS);
    same!(low(call!("KeReadStateEvent", one.at())), 0);
}
