//! Locks and lists that several threads use at the same time, and the mode of a request's thread.

use core::{cell::UnsafeCell, hint, mem::MaybeUninit, ptr};

use wdk_sys::{
    _EVENT_TYPE, _KWAIT_REASON, _MODE, FAST_MUTEX, KIRQL, KMUTEX, KSEMAPHORE, KSPIN_LOCK,
    STATUS_SUCCESS, ULONG, WDFREQUEST,
    ntddk::{
        ExAcquireFastMutex, ExGetPreviousMode, ExReleaseFastMutex, ExpInterlockedPopEntrySList,
        ExpInterlockedPushEntrySList, InitializeSListHead, IoAcquireCancelSpinLock,
        IoReleaseCancelSpinLock, KeAcquireSpinLockRaiseToDpc, KeInitializeEvent, KeInitializeMutex,
        KeInitializeSemaphore, KeReleaseMutex, KeReleaseSemaphore, KeReleaseSpinLock,
        KeWaitForSingleObject,
    },
};

use crate::{
    commands,
    framework::{answer, complete},
};

/// The number of times that one command takes each lock.
const ROUNDS: usize = 60;
/// The number of entries in the lists.
const ENTRIES: usize = 8;

/// The number of kinds of locks.
const KINDS: usize = 5;

/// What the threads share.
#[repr(C, align(16))]
struct Shared {
    /// The lists, each with a header of two words, and the entries, of two words each.
    lists: [[u64; 2]; 2],
    entries: [[u64; 2]; ENTRIES],
    spin: KSPIN_LOCK,
    fast: FAST_MUTEX,
    mutex: KMUTEX,
    semaphore: KSEMAPHORE,
    /// Incremented under a lock each.
    counts: [u64; KINDS],
    /// Set while a thread has the entry.
    is_out: [u64; ENTRIES],
    /// The number of entries that a thread took although another one had it.
    twice: u64,
}

struct Place(UnsafeCell<MaybeUninit<Shared>>);

// SAFETY: the threads take turns by the locks in it, which is what they test.
unsafe impl Sync for Place {}

static SHARED: Place = Place(UnsafeCell::new(MaybeUninit::zeroed()));

fn shared() -> *mut Shared {
    SHARED.0.get().cast()
}

/// The commands that this module handles.
pub fn device_control(request: WDFREQUEST, code: ULONG) -> bool {
    match code {
        commands::PREPARE => {
            prepare();
            complete(request, STATUS_SUCCESS);
        }
        commands::TOGETHER => {
            for _ in 0..ROUNDS {
                take_locks();
                take_entry();
            }
            complete(request, STATUS_SUCCESS);
        }
        commands::COUNTS => {
            // SAFETY: the threads are done.
            let (counts, twice) = unsafe { ((*shared()).counts, (*shared()).twice) };
            let [spin, fast, mutex, semaphore, cancel] = counts.map(|count| count as u32);
            let numbers = [spin, fast, mutex, semaphore, cancel, twice as u32, left()];
            answer(request, &numbers);
        }
        commands::PREVIOUS_MODE => {
            // SAFETY: the routine has no preconditions.
            let mode = unsafe { ExGetPreviousMode() };
            answer(request, &[u32::from(mode.cast_unsigned())]);
        }
        _ => return false,
    }
    true
}

/// Prepares what the threads share.
fn prepare() {
    let shared = shared();
    // SAFETY: the memory is a static's, and no other thread uses it yet. Each routine gets the address
    // of an object of its kind.
    unsafe {
        (*shared).fast.Count = 1;
        KeInitializeEvent(
            &raw mut (*shared).fast.Event,
            _EVENT_TYPE::SynchronizationEvent,
            0,
        );
        KeInitializeMutex(&raw mut (*shared).mutex, 0);
        KeInitializeSemaphore(&raw mut (*shared).semaphore, 1, 1);
        for list in 0..2 {
            InitializeSListHead((&raw mut (*shared).lists[list]).cast());
        }
        for entry in 0..ENTRIES {
            push(0, (&raw mut (*shared).entries[entry]).cast());
        }
    }
}

/// Increments a count, which the caller's lock guards, in several steps.
fn count(kind: usize) {
    // SAFETY: the lock that the caller holds keeps other threads away, which is what this tests.
    let count = unsafe { &raw mut (*shared()).counts[kind] };
    // SAFETY: as above.
    let before = unsafe { count.read_volatile() };
    for _ in 0..20 {
        hint::spin_loop();
    }
    // SAFETY: as above.
    unsafe { count.write_volatile(before + 1) };
}

/// Takes each lock once.
fn take_locks() {
    let shared = shared();
    let wait = |object: *mut core::ffi::c_void| {
        // SAFETY: the object was initialized.
        unsafe {
            KeWaitForSingleObject(
                object,
                _KWAIT_REASON::Executive,
                _MODE::KernelMode as i8,
                0,
                ptr::null_mut(),
            )
        };
    };
    // SAFETY: the locks were initialized, and each is released by the thread that acquired it.
    unsafe {
        let irql = KeAcquireSpinLockRaiseToDpc(&raw mut (*shared).spin);
        count(0);
        KeReleaseSpinLock(&raw mut (*shared).spin, irql);
        ExAcquireFastMutex(&raw mut (*shared).fast);
        count(1);
        ExReleaseFastMutex(&raw mut (*shared).fast);
        wait((&raw mut (*shared).mutex).cast());
        count(2);
        KeReleaseMutex(&raw mut (*shared).mutex, 0);
        wait((&raw mut (*shared).semaphore).cast());
        count(3);
        KeReleaseSemaphore(&raw mut (*shared).semaphore, 0, 1, 0);
        let mut irql: KIRQL = 0;
        IoAcquireCancelSpinLock(&raw mut irql);
        count(4);
        IoReleaseCancelSpinLock(irql);
    }
}

fn push(list: usize, entry: *mut core::ffi::c_void) {
    // SAFETY: the list was initialized, and the entry is in no list.
    unsafe {
        ExpInterlockedPushEntrySList((&raw mut (*shared()).lists[list]).cast(), entry.cast())
    };
}

fn pop(list: usize) -> *mut core::ffi::c_void {
    // SAFETY: the list was initialized.
    unsafe { ExpInterlockedPopEntrySList((&raw mut (*shared()).lists[list]).cast()) }.cast()
}

/// Moves an entry from one list to the other and back.
fn take_entry() {
    for (from, to) in [(0, 1), (1, 0)] {
        let entry = pop(from);
        if entry.is_null() {
            continue;
        }
        // SAFETY: the lists have only entries of the array.
        let first = unsafe { &raw mut (*shared()).entries } as usize;
        let number = (entry as usize - first) / 16;
        // SAFETY: the entry is in no list, so no other thread has it, which is what this tests.
        unsafe {
            let is_out = &raw mut (*shared()).is_out[number];
            if is_out.read_volatile() != 0 {
                (*shared()).twice += 1;
            }
            is_out.write_volatile(1);
            hint::spin_loop();
            is_out.write_volatile(0);
        }
        push(to, entry);
    }
}

/// Takes all entries out of the lists. Returns their number.
fn left() -> u32 {
    let of_list = |list: usize| {
        let mut count = 0;
        while !pop(list).is_null() && count < 1000 {
            count += 1;
        }
        count
    };
    of_list(0) + of_list(1)
}
