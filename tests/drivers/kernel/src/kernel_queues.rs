//! Spin locks that threads share, device queues, and kernel queues for which threads wait.

use core::{ffi::c_void, ptr};

use wdk_sys::{PLIST_ENTRY, PVOID};

use crate::{
    call::{NULL, at, call, pointer, same},
    dispatcher::delay,
    threads,
    timers::irql,
};

pub fn run() {
    locks();
    for_dpc();
    device_queues();
    queues();
}

fn locks() {
    let mut lock = 0_u32;
    let lock_at = at(&mut lock);
    let value = || {
        // SAFETY: the lock is a local of the caller.
        unsafe { lock_at.cast::<u32>().read_volatile() }
    };
    let before = call!(ExAcquireSpinLockShared, lock_at);
    same!((before, irql(), value()) == (0, 2, 1), true);
    call!(ExAcquireSpinLockSharedAtDpcLevel, lock_at);
    same!(value(), 2);
    same!(call!(ExTryConvertSharedSpinLockExclusive, lock_at), 0);
    same!(call!(ExTryAcquireSpinLockExclusiveAtDpcLevel, lock_at), 0);
    call!(ExReleaseSpinLockSharedFromDpcLevel, lock_at);
    same!(call!(ExTryConvertSharedSpinLockExclusive, lock_at), 1);
    same!(value(), 0x8000_0000_u32);
    call!(ExReleaseSpinLockExclusive, lock_at, before);
    same!((irql(), value()) == (0, 0), true);
    let before = call!(ExAcquireSpinLockExclusive, lock_at);
    same!(value(), 0x8000_0000_u32);
    call!(ExReleaseSpinLockExclusive, lock_at, before);
    let before = call!(ExAcquireSpinLockShared, lock_at);
    call!(ExReleaseSpinLockShared, lock_at, before);
    same!((irql(), value()) == (0, 0), true);
}

fn for_dpc() {
    let mut lock = 0_u64;
    let before = call!(KeAcquireSpinLockForDpc, &mut lock);
    same!((before, irql()) == (0, 2), true);
    call!(KeReleaseSpinLockForDpc, &mut lock, before);
    same!(irql(), 0);
}

/// An entry of a device queue.
#[repr(C, align(8))]
struct Entry([u64; 3]);

impl Entry {
    const fn new() -> Self {
        Self([0; 3])
    }

    const fn at(&mut self) -> PVOID {
        self.0.as_mut_ptr().cast()
    }

    fn inserted(&mut self) -> u8 {
        // SAFETY: the entry is this value. Kernel routines change it.
        unsafe { self.at().wrapping_byte_add(20).cast::<u8>().read_volatile() }
    }
}

fn device_queues() {
    let mut queue = [0_u64; 5];
    let queue = at(&mut queue);
    let mut entries = [const { Entry::new() }; 4];
    let [first, one, two, three] = entries.each_mut().map(Entry::at);
    call!(KeInitializeDeviceQueue, queue);
    let before = call!(KfRaiseIrql, 2);
    same!(call!(KeRemoveByKeyDeviceQueueIfBusy, queue, 0), 0);
    same!(call!(KeInsertDeviceQueue, queue, first), false);
    same!(call!(KeInsertByKeyDeviceQueue, queue, three, 30), true);
    same!(call!(KeInsertByKeyDeviceQueue, queue, one, 10), true);
    same!(call!(KeInsertByKeyDeviceQueue, queue, two, 20), true);
    same!(call!(KeRemoveByKeyDeviceQueue, queue, 15), two);
    same!(call!(KeRemoveByKeyDeviceQueue, queue, 40), one);
    same!(call!(KeRemoveEntryDeviceQueue, queue, three), true);
    same!(call!(KeRemoveEntryDeviceQueue, queue, three), false);
    same!(call!(KeInsertDeviceQueue, queue, three), true);
    same!(call!(KeRemoveDeviceQueue, queue), three);
    same!(call!(KeRemoveDeviceQueue, queue), 0);
    same!(call!(KeInsertDeviceQueue, queue, two), false);
    same!(call!(KeRemoveDeviceQueue, queue), 0);
    call!(KeLowerIrql, before);
    same!(entries[3].inserted(), 0);
}

/// A queue, and the entries that its thread removed from it.
struct Work {
    queue: [u64; 8],
    taken: [PLIST_ENTRY; 3],
}

unsafe extern "C" fn worker(context: *mut c_void) {
    let work: *mut Work = context.cast();
    // SAFETY: the creator keeps the structure until this thread has ended.
    let queue = unsafe { &raw mut (*work).queue };
    for number in 0..3 {
        let entry = call!(KeRemoveQueue, queue, 0, NULL);
        // SAFETY: as above. The creator reads the entry when this thread has ended.
        unsafe { (*work).taken[number] = entry };
    }
}

fn queues() {
    let mut work = Work { queue: [0; 8], taken: [ptr::null_mut(); 3] };
    let queue = work.queue.as_mut_ptr();
    let mut entries = [[0_u64; 2]; 3];
    let [one, two, three] = entries.each_mut().map(|entry| entry.as_mut_ptr().cast());
    call!(KeInitializeQueue, queue, 0);
    let mut timeout = 0_i64;
    same!(call!(KeRemoveQueue, queue, 0, &mut timeout), 0x102);
    timeout = -10_000;
    same!(call!(KeRemoveQueue, queue, 0, &mut timeout), 0x102);
    same!(call!(KeInsertQueue, queue, one), 0);
    same!(call!(KeInsertQueue, queue, two), 1);
    same!(call!(KeInsertHeadQueue, queue, three), 2);
    same!(call!(KeReadStateQueue, queue), 3);
    same!(call!(KeRemoveQueue, queue, 0, NULL), three);
    same!(call!(KeRemoveQueue, queue, 0, NULL), one);
    let thread = threads::start(worker, at(&mut work));
    call!(KeInsertQueue, queue, three);
    // The thread removes both entries, and waits for a third.
    delay(-10_000);
    same!(call!(KeReadStateQueue, queue), 0);
    same!(call!(KeRundownQueue, queue), 0);
    threads::join(thread);
    same!(work.taken == [two, three, pointer(0x80).cast()], true);
    call!(KeInsertQueue, queue, one);
    call!(KeInsertQueue, queue, two);
    same!(call!(KeRundownQueue, queue), one);
    same!(entries[0] == [two as u64; 2], true);
}

pub fn owned_twice() {
    let mut lock = 0_u32;
    call!(ExAcquireSpinLockExclusive, &mut lock);
    call!(ExAcquireSpinLockExclusive, &mut lock);
}

pub fn not_shared() {
    let mut lock = 0_u32;
    call!(ExAcquireSpinLockExclusive, &mut lock);
    call!(ExReleaseSpinLockShared, &mut lock, 0);
}

pub fn waits_forever() {
    let mut queue = [0_u64; 8];
    call!(KeInitializeQueue, &mut queue, 0);
    call!(KeRemoveQueue, &mut queue, 0, NULL);
}
