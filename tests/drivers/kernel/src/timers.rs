//! DPCs, timers and work items.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use wdk_sys::{
    KDPC, PDEVICE_OBJECT, PEX_TIMER, PVOID, STATUS_SUCCESS, STATUS_TIMEOUT, WORK_QUEUE_ITEM,
};

use crate::{
    call::{NULL, call, pointer, same, with_device},
    dispatcher::{Object, pass, wait, wait_for},
};

pub use etw_driver_support::irql;

static CALLS: AtomicU32 = AtomicU32::new(0);
static SEEN: AtomicU64 = AtomicU64::new(0);

fn calls() -> u32 {
    CALLS.swap(0, Ordering::Relaxed)
}

/// A DPC's routine.
pub unsafe extern "C" fn dpc_routine(_dpc: *mut KDPC, context: PVOID, one: PVOID, two: PVOID) {
    same!(irql(), context);
    SEEN.store(one as u64 * 10 + two as u64, Ordering::Relaxed);
    CALLS.fetch_add(1, Ordering::Relaxed);
}

pub fn run() {
    dpcs();
    timers();
    executive_timers();
    work_items();
}

fn dpcs() {
    let mut dpc = Object::new();
    call!(KeInitializeDpc, dpc.at(), Some(dpc_routine), pointer(2));
    same!(call!(KeInsertQueueDpc, dpc.at(), pointer(3), pointer(4)), true);
    same!((calls(), SEEN.load(Ordering::Relaxed)) == (1, 34), true);
    let before = call!(KfRaiseIrql, 2);
    same!(call!(KeInsertQueueDpc, dpc.at(), pointer(5), pointer(6)), true);
    same!(call!(KeInsertQueueDpc, dpc.at(), pointer(7), pointer(8)), false);
    same!(calls(), 0);
    same!(call!(KeRemoveQueueDpc, dpc.at()), true);
    same!(call!(KeRemoveQueueDpc, dpc.at()), false);
    same!(call!(KeInsertQueueDpc, dpc.at(), pointer(1), pointer(2)), true);
    call!(KeLowerIrql, before);
    same!((calls(), SEEN.load(Ordering::Relaxed)) == (1, 12), true);
    call!(KeFlushQueuedDpcs);
    call!(KeInitializeThreadedDpc, dpc.at(), Some(dpc_routine), NULL);
    same!(call!(KeInsertQueueDpc, dpc.at(), NULL, pointer(1)), true);
    same!(calls(), 1);
}

fn timers() {
    let (mut timer, mut dpc) = (Object::new(), Object::new());
    call!(KeInitializeDpc, dpc.at(), Some(dpc_routine), pointer(2));
    call!(KeInitializeTimerEx, timer.at(), 0);
    same!(call!(KeSetTimer, timer.at(), -50_000_i64, NULL), false);
    same!(call!(KeReadStateTimer, timer.at()), false);
    same!(wait(timer.at()), STATUS_SUCCESS);
    // A notification timer stays signaled until it is set again.
    same!(call!(KeReadStateTimer, timer.at()), true);
    same!(call!(KeSetTimer, timer.at(), -50_000_i64, dpc.at()), false);
    same!(call!(KeSetTimer, timer.at(), -60_000_i64, dpc.at()), true);
    same!(wait_for(timer.at(), -40_000), STATUS_TIMEOUT);
    same!(calls(), 0);
    same!(call!(KeCancelTimer, timer.at()), true);
    same!(call!(KeCancelTimer, timer.at()), false);
    // A periodic synchronization timer satisfies one wait per period.
    call!(KeInitializeTimerEx, timer.at(), 1);
    call!(KeSetTimerEx, timer.at(), -10_000_i64, 2, dpc.at());
    same!(wait(timer.at()), STATUS_SUCCESS);
    same!(wait_for(timer.at(), 0), STATUS_TIMEOUT);
    same!(wait(timer.at()), STATUS_SUCCESS);
    same!(calls(), 2);
    same!(call!(KeCancelTimer, timer.at()), true);
}

unsafe extern "C" fn timer_callback(_timer: PEX_TIMER, context: PVOID) {
    same!(irql(), 2);
    SEEN.store(context as u64, Ordering::Relaxed);
    CALLS.fetch_add(1, Ordering::Relaxed);
}

fn executive_timers() {
    let timer = call!(ExAllocateTimer, Some(timer_callback), pointer(77), 4);
    same!(timer.is_null(), false);
    same!(call!(ExSetTimer, timer, -10_000_i64, 10_000, NULL), false);
    pass(-35_000);
    same!((calls(), SEEN.load(Ordering::Relaxed)) == (3, 77), true);
    same!(call!(ExCancelTimer, timer, NULL), true);
    same!(call!(ExCancelTimer, timer, NULL), false);
    same!(call!(ExDeleteTimer, timer, 1, 1, NULL), false);
    same!(call!(ExAllocateTimer, Some(timer_callback), pointer(77), 1), 0);
}

unsafe extern "C" fn work(device: PDEVICE_OBJECT, event: PVOID) {
    same!((device.is_null(), irql()) == (false, 0), true);
    CALLS.fetch_add(1, Ordering::Relaxed);
    call!(KeSetEvent, event, 0, 0);
}

/// A work item that waits for the thread that queued it.
unsafe extern "C" fn slow_work(_device: PDEVICE_OBJECT, events: PVOID) {
    // SAFETY: the creator passes the addresses of two events, and waits for the second.
    let [first, second] = unsafe { *events.cast::<[PVOID; 2]>() };
    same!(wait(first), STATUS_SUCCESS);
    call!(KeSetEvent, second, 0, 0);
}

fn work_items() {
    with_device(work_items_of);
    same!(call!(IoSizeofWorkItem) > 0, true);
    let mut event = Object::new();
    call!(KeInitializeEvent, event.at(), 1, 0);
    let mut own = WORK_QUEUE_ITEM {
        WorkerRoutine: Some(own_work),
        Parameter: event.at(),
        ..WORK_QUEUE_ITEM::default()
    };
    call!(ExQueueWorkItem, &mut own, 1);
    same!(wait(event.at()), STATUS_SUCCESS);
}

fn work_items_of(device: PVOID) {
    let mut event = Object::new();
    call!(KeInitializeEvent, event.at(), 1, 0);
    let item = call!(IoAllocateWorkItem, device);
    call!(IoQueueWorkItem, item, Some(work), 1, event.at());
    same!(calls(), 0);
    same!(wait(event.at()), STATUS_SUCCESS);
    same!(calls(), 1);
    // The work item waits for an event that its creator sets only after its own wait.
    let mut second = Object::new();
    call!(KeInitializeEvent, second.at(), 1, 0);
    let mut events = [event.at(), second.at()];
    call!(IoQueueWorkItem, item, Some(slow_work), 1, &mut events);
    same!(wait_for(second.at(), -10_000), STATUS_TIMEOUT);
    call!(KeSetEvent, event.at(), 0, 0);
    same!(wait(second.at()), STATUS_SUCCESS);
    call!(IoFreeWorkItem, item);
}

unsafe extern "C" fn own_work(event: PVOID) {
    call!(KeSetEvent, event, 0, 0);
}
