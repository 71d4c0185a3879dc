//! DPCs and timers that queue themselves again, long waits, coarse times, and thread stacks.

use core::{
    ffi::c_void,
    hint::black_box,
    ptr,
    sync::atomic::{AtomicI64, AtomicPtr, AtomicU32, Ordering},
};

use wdk_sys::{
    KDPC, LIST_ENTRY, PDEVICE_OBJECT, PIO_WORKITEM_ROUTINE, PVOID, STATUS_SUCCESS, STATUS_TIMEOUT,
    WORK_QUEUE_ITEM,
};

use crate::{
    call::{NULL, at, call, field, same, set_field, with_device},
    dispatcher::{Object, now, pass, wait, wait_for},
    threads,
    timers::irql,
};

/// The services that must not break a rule.
pub const SERVICES: &[(&str, fn())] = &[
    ("requeue", requeue),
    ("rearm", rearm),
    ("patience", patience),
    ("long-wait", long_wait),
    ("busy-work", busy_work),
    ("coarse-times", coarse_times),
    ("many-work-items", many_work_items),
    ("dpc-stack", dpc_stack),
    ("other-stack", other_stack),
    ("large-pool", large_pool),
];

/// The services that break a rule.
pub const FAULTS: &[(&str, fn())] = &[
    ("fault-requeue", requeue_forever),
    ("fault-rearm", rearm_forever),
    ("fault-endless-wait", wait_for_nothing),
    ("fault-stack-gone", stack_gone),
];

/// One millisecond in units of 100 ns.
const MILLISECOND: i64 = 10_000;

/// Memory for a DPC and its timer, an event, and the DPC's count.
static mut DPC: Object = Object::new();
static mut TIMER: Object = Object::new();
static mut EVENT: Object = Object::new();
static CALLS: AtomicU32 = AtomicU32::new(0);
static WANTED: AtomicU32 = AtomicU32::new(0);
static NESTED: AtomicU32 = AtomicU32::new(0);
static UNTIL: AtomicI64 = AtomicI64::new(0);

type Deferred = unsafe extern "C" fn(*mut KDPC, PVOID, PVOID, PVOID);

fn dpc() -> PVOID {
    (&raw mut DPC).cast()
}

fn timer() -> PVOID {
    (&raw mut TIMER).cast()
}

fn event() -> PVOID {
    (&raw mut EVENT).cast()
}

fn initialize_dpc(routine: Deferred, wanted: u32) {
    WANTED.store(wanted, Ordering::Relaxed);
    call!(KeInitializeDpc, dpc(), Some(routine), NULL);
}

fn calls() -> u32 {
    CALLS.load(Ordering::Relaxed)
}

/// Queues its DPC again, until it has run often enough. Each run starts after the previous one has
/// returned.
unsafe extern "C" fn queue_again(dpc: *mut KDPC, _context: PVOID, _one: PVOID, _two: PVOID) {
    same!(irql(), 2);
    same!(NESTED.swap(1, Ordering::Relaxed), 0);
    if CALLS.fetch_add(1, Ordering::Relaxed) + 1 < WANTED.load(Ordering::Relaxed) {
        same!(call!(KeInsertQueueDpc, dpc, NULL, NULL), true);
    }
    NESTED.store(0, Ordering::Relaxed);
}

fn requeue() {
    initialize_dpc(queue_again, 10_000);
    same!(call!(KeInsertQueueDpc, dpc(), NULL, NULL), true);
    same!(calls(), 10_000);
    same!(irql(), 0);
}

fn requeue_forever() {
    initialize_dpc(queue_again, u32::MAX);
    call!(KeInsertQueueDpc, dpc(), NULL, NULL);
}

/// Sets its timer again to `WANTED`, a due time without its sign, until the time in `UNTIL`.
unsafe extern "C" fn set_again(dpc: *mut KDPC, _context: PVOID, _one: PVOID, _two: PVOID) {
    CALLS.fetch_add(1, Ordering::Relaxed);
    if now() < UNTIL.load(Ordering::Relaxed) {
        let due = -i64::from(WANTED.load(Ordering::Relaxed));
        call!(KeSetTimer, timer(), due, dpc);
    }
}

fn rearm() {
    initialize_dpc(set_again, 1);
    call!(KeInitializeTimer, timer());
    // The time is in the past: the timer is signaled, and its DPC runs immediately.
    same!(call!(KeSetTimer, timer(), 0, dpc()), false);
    same!(call!(KeReadStateTimer, timer()), true);
    same!(calls(), 1);
    // The timer does not fire more often than the clock interrupt can occur: every 0.5 ms.
    UNTIL.store(now() + 100 * MILLISECOND, Ordering::Relaxed);
    call!(KeSetTimer, timer(), -1_i64, dpc());
    pass(-200 * MILLISECOND);
    same!((190..=202).contains(&calls()), true);
    same!(call!(KeCancelTimer, timer()), false);
}

fn rearm_forever() {
    initialize_dpc(set_again, 0);
    UNTIL.store(i64::MAX, Ordering::Relaxed);
    call!(KeInitializeTimer, timer());
    call!(KeSetTimer, timer(), -MILLISECOND, dpc());
    pass(-10 * MILLISECOND);
}

/// Sets the event on its last call.
unsafe extern "C" fn count(_dpc: *mut KDPC, _context: PVOID, _one: PVOID, _two: PVOID) {
    if CALLS.fetch_add(1, Ordering::Relaxed) + 1 == WANTED.load(Ordering::Relaxed) {
        call!(KeSetEvent, event(), 0, 0);
    }
}

/// Starts a periodic timer of 1 ms that sets the event after `wanted` periods.
fn start_counting(wanted: u32) {
    initialize_dpc(count, wanted);
    call!(KeInitializeEvent, event(), 0, 0);
    call!(KeInitializeTimerEx, timer(), 1);
    call!(KeSetTimerEx, timer(), -MILLISECOND, 1, dpc());
}

/// A wait without a timeout can last 15 seconds during which a timer fires every millisecond.
fn patience() {
    start_counting(15_000);
    let before = now();
    same!(wait(event()), STATUS_SUCCESS);
    let took = now() - before;
    same!((149_000_000..152_000_000).contains(&took), true);
    same!(call!(KeCancelTimer, timer()), true);
}

/// The timers fire throughout a wait that times out.
fn long_wait() {
    start_counting(u32::MAX);
    pass(-20_000 * MILLISECOND);
    same!((19_990..=20_001).contains(&calls()), true);
    same!(call!(KeCancelTimer, timer()), true);
}

fn wait_for_nothing() {
    start_counting(u32::MAX);
    wait(event());
}

/// A work item that queues itself again until the event is set.
unsafe extern "C" fn work_again(_object: PDEVICE_OBJECT, item: PVOID) {
    CALLS.fetch_add(1, Ordering::Relaxed);
    if call!(KeReadStateEvent, event()) == 0 {
        call!(IoQueueWorkItem, item, Some(work_again), 1, item);
    }
}

/// Work that never ends does not stop the clock.
fn busy_work() {
    call!(KeInitializeEvent, event(), 0, 0);
    with_device(|device| {
        let item = call!(IoAllocateWorkItem, device);
        let routine: PIO_WORKITEM_ROUTINE = Some(work_again);
        call!(IoQueueWorkItem, item, routine, 1, item);
        pass(-MILLISECOND);
        call!(KeSetEvent, event(), 0, 0);
        pass(-MILLISECOND);
        same!(calls() > 100, true);
        call!(IoFreeWorkItem, item);
    });
}

/// A driver that polls a coarse time sees it advance by whole ticks.
fn coarse_times() {
    const TICK: u64 = 156_250;
    let start = call!(KeQueryInterruptTime);
    same!(start % TICK, 0);
    while call!(KeQueryInterruptTime) < start + 3 * TICK {}
    same!(call!(KeQueryInterruptTime), start + 3 * TICK);
    let (mut first, mut time) = (0_u64, 0_u64);
    call!(KeQueryTickCount, &mut first);
    call!(KeQuerySystemTime, &mut time);
    same!(first, start / TICK + 3);
    let mut now = first;
    while now < first + 2 {
        call!(KeQueryTickCount, &mut now);
    }
    let mut later = time;
    call!(KeQuerySystemTime, &mut later);
    same!(later, time + 2 * TICK);
    same!(call!(KeQueryUnbiasedInterruptTime), start + 5 * TICK);
}

static IDS: [AtomicU32; 200] = [const { AtomicU32::new(0) }; 200];

/// A work item that records its thread, and waits until all items run.
unsafe extern "C" fn note_thread(_parameter: PVOID) {
    let id = call!(PsGetCurrentThreadId).addr() as u32;
    let number = CALLS.fetch_add(1, Ordering::Relaxed);
    if let Some(slot) = IDS.get(number as usize) {
        slot.store(id, Ordering::Relaxed);
    }
    if number + 1 == IDS.len() as u32 {
        call!(KeSetEvent, event(), 0, 0);
    }
    same!(wait(event()), STATUS_SUCCESS);
    NESTED.fetch_add(1, Ordering::Relaxed);
}

static mut ITEMS: [WORK_QUEUE_ITEM; 200] = [WORK_QUEUE_ITEM {
    List: LIST_ENTRY { Flink: ptr::null_mut(), Blink: ptr::null_mut() },
    WorkerRoutine: Some(note_thread),
    Parameter: NULL,
}; 200];

fn many_work_items() {
    call!(KeInitializeEvent, event(), 0, 0);
    for number in 0..IDS.len() {
        call!(ExQueueWorkItem, (&raw mut ITEMS).cast::<WORK_QUEUE_ITEM>().wrapping_add(number), 1);
    }
    same!(wait(event()), STATUS_SUCCESS);
    pass(-MILLISECOND);
    same!(NESTED.load(Ordering::Relaxed), IDS.len());
    for (number, id) in IDS.iter().enumerate() {
        let id = id.load(Ordering::Relaxed);
        let same = |other: &&AtomicU32| other.load(Ordering::Relaxed) == id;
        same!((id % 4, IDS.iter().filter(same).count()) == (0, 1), true);
        same!(id != 0, number < IDS.len());
    }
}

/// Uses 16 KiB of the stack, and returns an address in that part.
#[inline(never)]
fn use_stack(below: fn()) -> PVOID {
    let mut bytes = [0_u8; 16 * 1024];
    black_box(&mut bytes);
    below();
    black_box(&mut bytes).as_mut_ptr().cast()
}

const fn nothing() {}

unsafe extern "C" fn deep_dpc(_dpc: *mut KDPC, _context: PVOID, _one: PVOID, _two: PVOID) {
    CALLS.fetch_add(1, Ordering::Relaxed);
    let place = use_stack(nothing);
    UNTIL.store(place as i64, Ordering::Relaxed);
}

/// DPCs have their own stack, regardless of the use of the thread's stack.
fn dpc_stack() {
    initialize_dpc(deep_dpc, 0);
    call!(KeInitializeTimer, timer());
    use_stack(|| {
        call!(KeInsertQueueDpc, dpc(), NULL, NULL);
    });
    same!(calls(), 1);
    let place = UNTIL.load(Ordering::Relaxed).cast_unsigned();
    let (mut start, mut end) = (0_u64, 0_u64);
    call!(IoGetStackLimits, &mut start, &mut end);
    same!(end - start, 24 * 1024);
    same!((start..end).contains(&(&raw const start as u64)), true);
    same!((start..end).contains(&place), false);
    // A timer's DPC also has its own stack.
    use_stack(|| {
        call!(KeSetTimer, timer(), -MILLISECOND, dpc());
        same!(wait(timer()), STATUS_SUCCESS);
    });
    same!(calls(), 2);
    same!(UNTIL.load(Ordering::Relaxed).cast_unsigned(), place);
}

/// A provider and one of its events.
static PROVIDER: [u64; 2] = [0x4B1D_7A20_93C1_55E7, 0x1122_3344_5566_7788];
static DESCRIPTOR: [u64; 2] = [0x0004_0000_0000_0001, 1];

/// Writes an event with 16 bytes at this address.
fn write_event(data: PVOID) {
    let mut handle = 0_u64;
    let provider = PROVIDER.as_ptr();
    same!(call!(EtwRegister, provider, None, NULL, &mut handle), 0);
    let mut data = [data as u64, 16];
    let descriptor = DESCRIPTOR.as_ptr();
    same!(call!(EtwWrite, handle, descriptor, NULL, 1, &mut data), 0);
    same!(call!(EtwUnregister, handle), 0);
}

/// The address of a thread's data.
static PLACE: AtomicPtr<c_void> = AtomicPtr::new(NULL);

unsafe extern "C" fn wait_with_data(_context: *mut c_void) {
    let mut data = [7_u64; 2];
    PLACE.store(at(&mut data), Ordering::Relaxed);
    same!(wait(event()), STATUS_SUCCESS);
    black_box(&mut data);
}

/// Starts a thread that waits.
fn start_waiting(routine: unsafe extern "C" fn(*mut c_void)) -> PVOID {
    call!(KeInitializeEvent, event(), 0, 0);
    let thread = threads::start(routine, NULL);
    same!(wait_for(thread, -MILLISECOND), STATUS_TIMEOUT);
    thread
}

/// Data can be on the stack of a thread that waits until the event is written.
fn other_stack() {
    let thread = start_waiting(wait_with_data);
    write_event(PLACE.load(Ordering::Relaxed));
    call!(KeSetEvent, event(), 0, 0);
    threads::join(thread);
}

unsafe extern "C" fn wait_without_data(_context: *mut c_void) {
    let place = use_stack(nothing);
    PLACE.store(place, Ordering::Relaxed);
    same!(wait(event()), STATUS_SUCCESS);
}

fn stack_gone() {
    start_waiting(wait_without_data);
    write_event(PLACE.load(Ordering::Relaxed));
}

/// Exhausting the pool makes an allocation fail, and large blocks can be allocated repeatedly.
fn large_pool() {
    const PAGED: u64 = 0x100;
    const LARGE: u64 = 1 << 30;
    const TAG: u64 = 0x7473_6574;
    let mut blocks = [NULL; 64];
    let mut count = 0;
    for block in &mut blocks {
        *block = call!(ExAllocatePool2, PAGED, LARGE, TAG);
        count += u64::from(!block.is_null());
    }
    same!((4..64).contains(&count), true);
    for block in blocks.into_iter().filter(|block| !block.is_null()) {
        call!(ExFreePool, block);
    }
    for round in 0..200_u64 {
        let block = call!(ExAllocatePool2, PAGED, LARGE / 2 + 4096 * round, TAG);
        same!(block.is_null(), false);
        let last = LARGE as usize / 2 - 8;
        same!(field::<u64>(block, last), 0);
        set_field(block, last, 1_u64);
        call!(ExFreePool, block);
    }
}
