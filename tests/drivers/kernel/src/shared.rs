//! Spin locks that threads share, device queues, and kernel queues for which threads wait.

use core::ffi::c_void;

use crate::{
    call::{Routine, at, boolean, call, low, same},
    queues::irql,
    threads,
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
        unsafe { (lock_at as *const u32).read_volatile() }
    };
    let find = Routine::find;
    let [share, unshare, own, disown] = [
        find("ExAcquireSpinLockShared"),
        find("ExReleaseSpinLockShared"),
        find("ExAcquireSpinLockExclusive"),
        find("ExReleaseSpinLockExclusive"),
    ];
    let again = find("ExAcquireSpinLockSharedAtDpcLevel");
    let leave = find("ExReleaseSpinLockSharedFromDpcLevel");
    let convert = find("ExTryConvertSharedSpinLockExclusive");
    let attempt = find("ExTryAcquireSpinLockExclusiveAtDpcLevel");
    let before = share.call(&[lock_at]) & 0xFF;
    same!((before, irql(), value()) == (0, 2, 1), true);
    again.call(&[lock_at]);
    same!(value(), 2);
    same!(low(convert.call(&[lock_at])), 0);
    same!(low(attempt.call(&[lock_at])), 0);
    leave.call(&[lock_at]);
    same!(low(convert.call(&[lock_at])), 1);
    same!(value(), 0x8000_0000_u32);
    disown.call(&[lock_at, before]);
    same!((irql(), value()) == (0, 0), true);
    let before = own.call(&[lock_at]) & 0xFF;
    same!(value(), 0x8000_0000_u32);
    disown.call(&[lock_at, before]);
    let before = share.call(&[lock_at]) & 0xFF;
    unshare.call(&[lock_at, before]);
    same!((irql(), value()) == (0, 0), true);
}

fn for_dpc() {
    let mut lock = 0_u64;
    let acquire = Routine::find("KeAcquireSpinLockForDpc");
    let release = Routine::find("KeReleaseSpinLockForDpc");
    let before = acquire.call(&[at(&mut lock)]) & 0xFF;
    same!((before, irql()) == (0, 2), true);
    release.call(&[at(&mut lock), before]);
    same!(irql(), 0);
}

/// An entry of a device queue.
#[repr(C, align(8))]
struct Entry([u64; 3]);

impl Entry {
    const fn new() -> Self {
        Self([0; 3])
    }

    fn at(&mut self) -> u64 {
        self.0.as_mut_ptr() as u64
    }

    fn inserted(&mut self) -> u64 {
        // SAFETY: the entry is this value. Kernel routines change it.
        unsafe { ((self.at() + 20) as *const u8).read_volatile() }.into()
    }
}

fn device_queues() {
    let mut queue = [0_u64; 5];
    let queue = at(&mut queue);
    let mut entries = [const { Entry::new() }; 4];
    let [first, one, two, three] = entries.each_mut().map(Entry::at);
    call!("KeInitializeDeviceQueue", queue);
    let find = Routine::find;
    let (insert, by_key) = (find("KeInsertDeviceQueue"), find("KeInsertByKeyDeviceQueue"));
    let (remove, from_key) = (find("KeRemoveDeviceQueue"), find("KeRemoveByKeyDeviceQueue"));
    let if_busy = find("KeRemoveByKeyDeviceQueueIfBusy");
    let entry = find("KeRemoveEntryDeviceQueue");
    let (raise, lower) = (find("KfRaiseIrql"), find("KeLowerIrql"));
    let before = raise.call(&[2]);
    same!(if_busy.call(&[queue, 0]), 0);
    same!(boolean(insert.call(&[queue, first])), false);
    same!(boolean(by_key.call(&[queue, three, 30])), true);
    same!(boolean(by_key.call(&[queue, one, 10])), true);
    same!(boolean(by_key.call(&[queue, two, 20])), true);
    same!(from_key.call(&[queue, 15]), two);
    same!(from_key.call(&[queue, 40]), one);
    same!(boolean(entry.call(&[queue, three])), true);
    same!(boolean(entry.call(&[queue, three])), false);
    same!(boolean(insert.call(&[queue, three])), true);
    same!(remove.call(&[queue]), three);
    same!(remove.call(&[queue]), 0);
    same!(boolean(insert.call(&[queue, two])), false);
    same!(remove.call(&[queue]), 0);
    lower.call(&[before & 0xFF]);
    same!(entries[3].inserted(), 0);
}

/// A queue, and the entries that its thread removed from it.
struct Work {
    queue: [u64; 8],
    taken: [u64; 3],
}

unsafe extern "C" fn worker(context: *mut c_void) {
    let work: *mut Work = context.cast();
    // SAFETY: the creator keeps the structure until this thread has ended.
    let queue = unsafe { &raw mut (*work).queue } as u64;
    for number in 0..3 {
        let entry = call!("KeRemoveQueue", queue, 0, 0);
        // SAFETY: as above. The creator reads the entry when this thread has ended.
        unsafe { (*work).taken[number] = entry };
    }
}

fn queues() {
    let mut work = Work { queue: [0; 8], taken: [0; 3] };
    let queue = work.queue.as_mut_ptr() as u64;
    let mut entries = [[0_u64; 2]; 3];
    let [one, two, three] = entries.each_mut().map(|entry| entry.as_mut_ptr() as u64);
    call!("KeInitializeQueue", queue, 0);
    let mut timeout = 0_i64;
    same!(call!("KeRemoveQueue", queue, 0, at(&mut timeout)), 0x102);
    timeout = -10_000;
    same!(call!("KeRemoveQueue", queue, 0, at(&mut timeout)), 0x102);
    same!(low(call!("KeInsertQueue", queue, one)), 0);
    same!(low(call!("KeInsertQueue", queue, two)), 1);
    same!(low(call!("KeInsertHeadQueue", queue, three)), 2);
    same!(low(call!("KeReadStateQueue", queue)), 3);
    same!(call!("KeRemoveQueue", queue, 0, 0), three);
    same!(call!("KeRemoveQueue", queue, 0, 0), one);
    let thread = threads::start(worker, at(&mut work));
    call!("KeInsertQueue", queue, three);
    // The thread removes both entries, and waits for a third.
    let mut interval = -10_000_i64;
    call!("KeDelayExecutionThread", 0, 0, at(&mut interval));
    same!(low(call!("KeReadStateQueue", queue)), 0);
    same!(call!("KeRundownQueue", queue), 0);
    threads::join(thread);
    same!(work.taken == [two, three, 0x80], true);
    call!("KeInsertQueue", queue, one);
    call!("KeInsertQueue", queue, two);
    same!(call!("KeRundownQueue", queue), one);
    same!(entries[0] == [two, two], true);
}

pub fn owned_twice() {
    let mut lock = 0_u32;
    let acquire = Routine::find("ExAcquireSpinLockExclusive");
    acquire.call(&[at(&mut lock)]);
    acquire.call(&[at(&mut lock)]);
}

pub fn not_shared() {
    let mut lock = 0_u32;
    let acquire = Routine::find("ExAcquireSpinLockExclusive");
    let release = Routine::find("ExReleaseSpinLockShared");
    acquire.call(&[at(&mut lock)]);
    release.call(&[at(&mut lock), 0]);
}

pub fn waits_forever() {
    let mut queue = [0_u64; 8];
    call!("KeInitializeQueue", at(&mut queue), 0);
    call!("KeRemoveQueue", at(&mut queue), 0, 0);
}
