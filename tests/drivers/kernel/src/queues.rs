//! DPCs, timers and work items.

use core::{
    ffi::c_void,
    sync::atomic::{AtomicU32, AtomicU64, Ordering},
};

pub use etw_driver_support::irql;

use crate::{
    call::{Routine, address, at, boolean, call, low, same},
    objects::{Object, SUCCESS, TIMEOUT, wait, wait_for},
};

static CALLS: AtomicU32 = AtomicU32::new(0);
static SEEN: AtomicU64 = AtomicU64::new(0);

fn calls() -> u32 {
    CALLS.swap(0, Ordering::Relaxed)
}

/// A DPC's routine.
pub unsafe extern "C" fn dpc_routine(_dpc: u64, context: u64, one: u64, two: u64) {
    same!(irql(), context);
    SEEN.store(one * 10 + two, Ordering::Relaxed);
    CALLS.fetch_add(1, Ordering::Relaxed);
}

pub fn run() {
    dpcs();
    timers();
    executive_timers();
    work_items();
}

/// Returns the address of [`dpc_routine`].
pub fn dpc_address() -> u64 {
    address(dpc_routine as *const c_void)
}

fn dpcs() {
    let mut dpc = Object::new();
    call!("KeInitializeDpc", dpc.at(), dpc_address(), 2);
    same!(boolean(call!("KeInsertQueueDpc", dpc.at(), 3, 4)), true);
    same!((calls(), SEEN.load(Ordering::Relaxed)) == (1, 34), true);
    let (insert, remove) = (Routine::find("KeInsertQueueDpc"), Routine::find("KeRemoveQueueDpc"));
    let (raise, lower) = (Routine::find("KfRaiseIrql"), Routine::find("KeLowerIrql"));
    let before = raise.call(&[2]);
    same!(boolean(insert.call(&[dpc.at(), 5, 6])), true);
    same!(boolean(insert.call(&[dpc.at(), 7, 8])), false);
    same!(calls(), 0);
    same!(boolean(remove.call(&[dpc.at()])), true);
    same!(boolean(remove.call(&[dpc.at()])), false);
    same!(boolean(insert.call(&[dpc.at(), 1, 2])), true);
    lower.call(&[before & 0xFF]);
    same!((calls(), SEEN.load(Ordering::Relaxed)) == (1, 12), true);
    call!("KeFlushQueuedDpcs");
    call!("KeInitializeThreadedDpc", dpc.at(), dpc_address(), 0);
    same!(boolean(call!("KeInsertQueueDpc", dpc.at(), 0, 1)), true);
    same!(calls(), 1);
}

fn timers() {
    let (mut timer, mut dpc) = (Object::new(), Object::new());
    call!("KeInitializeDpc", dpc.at(), dpc_address(), 2);
    call!("KeInitializeTimerEx", timer.at(), 0);
    same!(boolean(call!("KeSetTimer", timer.at(), -50_000_i64, 0)), false);
    same!(boolean(call!("KeReadStateTimer", timer.at())), false);
    same!(wait(timer.at()), SUCCESS);
    // A notification timer stays signaled until it is set again.
    same!(boolean(call!("KeReadStateTimer", timer.at())), true);
    same!(boolean(call!("KeSetTimer", timer.at(), -50_000_i64, dpc.at())), false);
    same!(boolean(call!("KeSetTimer", timer.at(), -60_000_i64, dpc.at())), true);
    same!(wait_for(timer.at(), -40_000), TIMEOUT);
    same!(calls(), 0);
    same!(boolean(call!("KeCancelTimer", timer.at())), true);
    same!(boolean(call!("KeCancelTimer", timer.at())), false);
    // A periodic synchronization timer satisfies one wait per period.
    call!("KeInitializeTimerEx", timer.at(), 1);
    call!("KeSetTimerEx", timer.at(), -10_000_i64, 2, dpc.at());
    same!(wait(timer.at()), SUCCESS);
    same!(wait_for(timer.at(), 0), TIMEOUT);
    same!(wait(timer.at()), SUCCESS);
    same!(calls(), 2);
    same!(boolean(call!("KeCancelTimer", timer.at())), true);
}

unsafe extern "C" fn timer_callback(_timer: u64, context: u64) {
    same!(irql(), 2);
    SEEN.store(context, Ordering::Relaxed);
    CALLS.fetch_add(1, Ordering::Relaxed);
}

fn executive_timers() {
    let timer = call!("ExAllocateTimer", address(timer_callback as *const c_void), 77, 4);
    same!(timer != 0, true);
    same!(boolean(call!("ExSetTimer", timer, -10_000_i64, 10_000, 0)), false);
    let mut never = Object::new();
    call!("KeInitializeEvent", never.at(), 0, 0);
    same!(wait_for(never.at(), -35_000), TIMEOUT);
    same!((calls(), SEEN.load(Ordering::Relaxed)) == (3, 77), true);
    same!(boolean(call!("ExCancelTimer", timer, 0)), true);
    same!(boolean(call!("ExCancelTimer", timer, 0)), false);
    same!(boolean(call!("ExDeleteTimer", timer, 1, 1, 0)), false);
    same!(call!("ExAllocateTimer", address(timer_callback as *const c_void), 77, 1), 0);
}

unsafe extern "C" fn work(device: u64, event: u64) {
    same!((device, irql()) == (0x1230, 0), true);
    CALLS.fetch_add(1, Ordering::Relaxed);
    call!("KeSetEvent", event, 0, 0);
}

/// A work item that waits for the thread that queued it.
unsafe extern "C" fn slow_work(_device: u64, events: u64) {
    // SAFETY: the creator passes the addresses of two events, and waits for the second.
    let [first, second] = unsafe { *(events as *const [u64; 2]) };
    same!(wait(first), SUCCESS);
    call!("KeSetEvent", second, 0, 0);
}

fn work_items() {
    let mut event = Object::new();
    call!("KeInitializeEvent", event.at(), 1, 0);
    let item = call!("IoAllocateWorkItem", 0x1230);
    call!("IoQueueWorkItem", item, address(work as *const c_void), 1, event.at());
    same!(calls(), 0);
    same!(wait(event.at()), SUCCESS);
    same!(calls(), 1);
    // The work item waits for an event that its creator sets only after its own wait.
    let mut second = Object::new();
    call!("KeInitializeEvent", second.at(), 1, 0);
    let mut events = [event.at(), second.at()];
    call!("IoQueueWorkItem", item, address(slow_work as *const c_void), 1, at(&mut events));
    same!(wait_for(second.at(), -10_000), TIMEOUT);
    call!("KeSetEvent", event.at(), 0, 0);
    same!(wait(second.at()), SUCCESS);
    call!("IoFreeWorkItem", item);
    same!(low(call!("IoSizeofWorkItem")) > 0, true);
    let mut own = Object([0, 0, address(own_work as *const c_void), event.at(), 0, 0, 0, 0]);
    call!("ExQueueWorkItem", own.at(), 1);
    same!(wait(event.at()), SUCCESS);
}

unsafe extern "C" fn own_work(event: u64) {
    call!("KeSetEvent", event, 0, 0);
}
