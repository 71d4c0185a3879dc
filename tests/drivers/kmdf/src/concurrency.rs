//! Locks and lists that several threads use concurrently, and the previous mode of a request's
//! thread.

use core::{
    cell::UnsafeCell,
    hint,
    mem::{MaybeUninit, offset_of},
    ptr,
    sync::atomic::{AtomicU64, Ordering},
};

use etw_driver_support::nt;
use wdk_sys::{
    _EVENT_TYPE, _KWAIT_REASON, _MODE, ERESOURCE, FAST_MUTEX, IO_REMOVE_LOCK, KIRQL, KMUTEX,
    KSEMAPHORE, KSPIN_LOCK, NTSTATUS, STATUS_SUCCESS, ULONG, WDFREQUEST,
};

use crate::{
    commands,
    framework::{answer, complete},
};

/// The number of times that each command acquires each lock.
const ROUNDS: usize = 60;
/// The number of entries in the lists.
const ENTRIES: usize = 8;

/// The number of kinds of locks.
const KINDS: usize = 6;

/// The state that the threads share.
#[repr(C, align(16))]
struct Shared {
    /// The lists, each with a header of two words.
    lists: [[u64; 2]; 2],
    entries: [[u64; 2]; ENTRIES],
    spin: KSPIN_LOCK,
    fast: FAST_MUTEX,
    mutex: KMUTEX,
    semaphore: KSEMAPHORE,
    resource: ERESOURCE,
    remove: IO_REMOVE_LOCK,
}

struct Place(UnsafeCell<MaybeUninit<Shared>>);

// SAFETY: the kernel's routines synchronize the threads' use of it, which the tests verify.
unsafe impl Sync for Place {}

static SHARED: Place = Place(UnsafeCell::new(MaybeUninit::zeroed()));

/// Counts that are incremented in several steps, each under its lock.
static COUNTS: [AtomicU64; KINDS] = [const { AtomicU64::new(0) }; KINDS];
/// Set to 1 while a thread has the entry.
static IS_OUT: [AtomicU64; ENTRIES] = [const { AtomicU64::new(0) }; ENTRIES];
/// The number of times that a thread took an entry that another thread already had.
static TWICE: AtomicU64 = AtomicU64::new(0);
/// The number of times that a thread that shared the resource saw its count change.
static TORN: AtomicU64 = AtomicU64::new(0);
/// The number of threads that take part in the removal, the number that use the device, and the
/// number of uses.
static PARTS: AtomicU64 = AtomicU64::new(0);
static USERS: AtomicU64 = AtomicU64::new(0);
static USES: AtomicU64 = AtomicU64::new(0);
/// The number of uses when the removal was complete.
static USES_AT_REMOVAL: AtomicU64 = AtomicU64::new(0);
/// The number of users for which the removal did not wait.
static LEFT_BEHIND: AtomicU64 = AtomicU64::new(0);

/// Returns the address of a field of the shared state.
macro_rules! shared {
    ($field:ident) => {
        shared!($field, 0, 0)
    };
    ($field:ident, $number:expr, $size:expr) => {
        SHARED.0.get().wrapping_byte_add(offset_of!(Shared, $field) + $number * $size).cast()
    };
}

/// Runs a command of this module. Returns false if the command belongs to another module.
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
            let _status = nt!(ExDeleteResourceLite, shared!(resource));
            let [spin, fast, mutex, semaphore, cancel, resource] = COUNTS.each_ref().map(number);
            let (twice, torn) = (number(&TWICE), number(&TORN));
            answer(request, &[spin, fast, mutex, semaphore, cancel, resource, twice, torn, left()]);
        }
        commands::REMOVE_TOGETHER => {
            // The first thread removes the memory that the other threads use.
            if PARTS.fetch_add(1, Ordering::Relaxed) == 0 {
                remove();
            } else {
                while use_once() {}
            }
            complete(request, STATUS_SUCCESS);
        }
        commands::REMOVED => {
            let _status = nt!(ExDeleteResourceLite, shared!(resource));
            let late = number(&USES) - number(&USES_AT_REMOVAL);
            answer(request, &[late, number(&USERS), number(&LEFT_BEHIND)]);
        }
        commands::PREVIOUS_MODE => {
            let mode = nt!(ExGetPreviousMode);
            answer(request, &[u32::from(mode.cast_unsigned())]);
        }
        _ => return false,
    }
    true
}

fn number(count: &AtomicU64) -> u32 {
    count.load(Ordering::Relaxed) as u32
}

/// Prepares the shared state.
fn prepare() {
    let fast: *mut FAST_MUTEX = shared!(fast);
    let count: *mut i32 = fast.wrapping_byte_add(offset_of!(FAST_MUTEX, Count)).cast();
    // SAFETY: the memory belongs to a static, and no other thread uses it yet.
    unsafe { count.write(1) };
    let event = fast.wrapping_byte_add(offset_of!(FAST_MUTEX, Event)).cast();
    nt!(KeInitializeEvent, event, _EVENT_TYPE::SynchronizationEvent, 0);
    nt!(KeInitializeMutex, shared!(mutex), 0);
    nt!(KeInitializeSemaphore, shared!(semaphore), 1, 1);
    let _status = nt!(ExInitializeResourceLite, shared!(resource));
    nt!(IoInitializeRemoveLockEx, shared!(remove), 0x6574, 0, 0, REMOVE_LOCK_SIZE);
    for list in 0..2 {
        nt!(InitializeSListHead, shared!(lists, list, 16));
    }
    for entry in 0..ENTRIES {
        push(0, shared!(entries, entry, 16));
    }
}

/// Increments a count in several steps, under the caller's lock.
fn count(kind: usize) {
    let before = COUNTS[kind].load(Ordering::Relaxed);
    for _ in 0..20 {
        hint::spin_loop();
    }
    COUNTS[kind].store(before + 1, Ordering::Relaxed);
}

fn wait(object: *mut core::ffi::c_void) {
    let mode = _MODE::KernelMode as i8;
    let _status =
        nt!(KeWaitForSingleObject, object, _KWAIT_REASON::Executive, mode, 0, ptr::null_mut());
}

/// Acquires each lock once.
fn take_locks() {
    let irql = nt!(KeAcquireSpinLockRaiseToDpc, shared!(spin));
    count(0);
    nt!(KeReleaseSpinLock, shared!(spin), irql);
    nt!(ExAcquireFastMutex, shared!(fast));
    count(1);
    nt!(ExReleaseFastMutex, shared!(fast));
    wait(shared!(mutex));
    count(2);
    nt!(KeReleaseMutex, shared!(mutex), 0);
    wait(shared!(semaphore));
    count(3);
    nt!(KeReleaseSemaphore, shared!(semaphore), 0, 1, 0);
    let mut irql: KIRQL = 0;
    nt!(IoAcquireCancelSpinLock, &raw mut irql);
    count(4);
    nt!(IoReleaseCancelSpinLock, irql);
    nt!(ExEnterCriticalRegionAndAcquireResourceExclusive, shared!(resource));
    count(5);
    nt!(ExReleaseResourceAndLeaveCriticalRegion, shared!(resource));
    nt!(ExEnterCriticalRegionAndAcquireResourceShared, shared!(resource));
    let before = number(&COUNTS[5]);
    for _ in 0..20 {
        hint::spin_loop();
    }
    if number(&COUNTS[5]) != before {
        TORN.fetch_add(1, Ordering::Relaxed);
    }
    nt!(ExReleaseResourceAndLeaveCriticalRegion, shared!(resource));
}

const REMOVE_LOCK_SIZE: u32 = size_of::<IO_REMOVE_LOCK>() as u32;

/// Acquires the remove lock, with a tag that no other acquisition uses.
fn acquire_remove_lock(tag: usize) -> NTSTATUS {
    nt!(
        IoAcquireRemoveLockEx,
        shared!(remove),
        ptr::without_provenance_mut(tag),
        c"".as_ptr().cast(),
        1,
        REMOVE_LOCK_SIZE
    )
}

/// Uses the memory that the remove lock protects. Returns false if the memory is being removed.
fn use_once() -> bool {
    let tag = PARTS.fetch_add(1, Ordering::Relaxed) as usize;
    if acquire_remove_lock(tag) != STATUS_SUCCESS {
        return false;
    }
    USERS.fetch_add(1, Ordering::Relaxed);
    // The kernel can let another thread run at this point.
    push(0, pop(0));
    USES.fetch_add(1, Ordering::Relaxed);
    USERS.fetch_sub(1, Ordering::Relaxed);
    nt!(IoReleaseRemoveLockEx, shared!(remove), ptr::without_provenance_mut(tag), REMOVE_LOCK_SIZE);
    true
}

/// Removes the memory that the other threads use, after they have stopped using it.
fn remove() {
    while number(&USES) < 50 {
        // The kernel can let another thread run at this point.
        push(1, pop(0));
        push(0, pop(1));
    }
    let _status = acquire_remove_lock(0);
    nt!(IoReleaseRemoveLockAndWaitEx, shared!(remove), ptr::null_mut(), REMOVE_LOCK_SIZE);
    USES_AT_REMOVAL.store(USES.load(Ordering::Relaxed), Ordering::Relaxed);
    LEFT_BEHIND.store(USERS.load(Ordering::Relaxed), Ordering::Relaxed);
}

fn push(list: usize, entry: *mut core::ffi::c_void) {
    nt!(ExpInterlockedPushEntrySList, shared!(lists, list, 16), entry.cast());
}

fn pop(list: usize) -> *mut core::ffi::c_void {
    nt!(ExpInterlockedPopEntrySList, shared!(lists, list, 16)).cast()
}

/// Moves an entry from one list to the other and back.
fn take_entry() {
    for (from, to) in [(0, 1), (1, 0)] {
        let entry = pop(from);
        if entry.is_null() {
            continue;
        }
        let first: *mut u8 = shared!(entries);
        let number = (entry as usize - first as usize) / 16;
        // No other thread can have this entry, because it is in neither list; the test checks this.
        if IS_OUT[number].load(Ordering::Relaxed) != 0 {
            TWICE.fetch_add(1, Ordering::Relaxed);
        }
        IS_OUT[number].store(1, Ordering::Relaxed);
        hint::spin_loop();
        IS_OUT[number].store(0, Ordering::Relaxed);
        push(to, entry);
    }
}

/// Removes all entries from the lists. Returns their number.
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
