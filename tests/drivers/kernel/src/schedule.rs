//! DPCs and timers that queue themselves again, long waits, coarse times, and thread stacks.

use core::{
    ffi::c_void,
    hint::black_box,
    sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering},
};

use crate::{
    call::{Routine, address, at, boolean, call, low, same},
    objects::{Object, SUCCESS, TIMEOUT, now, wait, wait_for},
    queues::irql,
    threads,
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

/// Memory for a DPC, the routine that queues the DPC or sets its timer, and the DPC's count.
static mut DPC: Object = Object::new();
static mut TIMER: Object = Object::new();
static mut EVENT: Object = Object::new();
static INSERT: AtomicU64 = AtomicU64::new(0);
static CALLS: AtomicU32 = AtomicU32::new(0);
static WANTED: AtomicU32 = AtomicU32::new(0);
static NESTED: AtomicU32 = AtomicU32::new(0);
static UNTIL: AtomicI64 = AtomicI64::new(0);

type Deferred = unsafe extern "C" fn(u64, u64, u64, u64);

fn dpc() -> u64 {
    &raw mut DPC as u64
}

fn timer() -> u64 {
    &raw mut TIMER as u64
}

fn event() -> u64 {
    &raw mut EVENT as u64
}

fn initialize_dpc(routine: Deferred, wanted: u32) {
    WANTED.store(wanted, Ordering::Relaxed);
    call!("KeInitializeDpc", dpc(), address(routine as *const c_void), 0);
}

fn calls() -> u32 {
    CALLS.load(Ordering::Relaxed)
}

/// Finds a routine for DPCs to call. IRQL: `PASSIVE_LEVEL`.
fn keep(name: &str) {
    INSERT.store(Routine::find(name).address(), Ordering::Relaxed);
}

fn kept() -> Routine {
    Routine::of(INSERT.load(Ordering::Relaxed))
}

/// Queues its DPC again, until it has run often enough. Each run starts after the previous one has
/// returned.
unsafe extern "C" fn queue_again(dpc: u64, _context: u64, _one: u64, _two: u64) {
    same!(irql(), 2);
    same!(NESTED.swap(1, Ordering::Relaxed), 0);
    if CALLS.fetch_add(1, Ordering::Relaxed) + 1 < WANTED.load(Ordering::Relaxed) {
        same!(boolean(kept().call(&[dpc, 0, 0])), true);
    }
    NESTED.store(0, Ordering::Relaxed);
}

fn requeue() {
    keep("KeInsertQueueDpc");
    initialize_dpc(queue_again, 10_000);
    same!(boolean(call!("KeInsertQueueDpc", dpc(), 0, 0)), true);
    same!(calls(), 10_000);
    same!(irql(), 0);
}

fn requeue_forever() {
    keep("KeInsertQueueDpc");
    initialize_dpc(queue_again, u32::MAX);
    call!("KeInsertQueueDpc", dpc(), 0, 0);
}

/// Sets its timer again to `WANTED`, a due time without its sign, until the time in `UNTIL`.
unsafe extern "C" fn set_again(dpc: u64, _context: u64, _one: u64, _two: u64) {
    CALLS.fetch_add(1, Ordering::Relaxed);
    let mut counter = 0_i64;
    // SAFETY: the routine can be called at any IRQL, with the address of a local.
    let now = unsafe { wdk_sys::ntddk::KeQueryInterruptTimePrecise((&raw mut counter).cast()) };
    if now.cast_signed() < UNTIL.load(Ordering::Relaxed) {
        let due = -i64::from(WANTED.load(Ordering::Relaxed));
        kept().call(&[timer(), due as u64, dpc]);
    }
}

fn rearm() {
    keep("KeSetTimer");
    initialize_dpc(set_again, 1);
    call!("KeInitializeTimer", timer());
    // The time is in the past: the timer is signaled, and its DPC runs immediately.
    same!(boolean(call!("KeSetTimer", timer(), 0, dpc())), false);
    same!(boolean(call!("KeReadStateTimer", timer())), true);
    same!(calls(), 1);
    // The timer does not fire more often than the clock interrupt can occur: every 0.5 ms.
    UNTIL.store(now() + 100 * MILLISECOND, Ordering::Relaxed);
    call!("KeSetTimer", timer(), -1_i64, dpc());
    let mut never = Object::new();
    call!("KeInitializeEvent", never.at(), 0, 0);
    same!(wait_for(never.at(), -200 * MILLISECOND), TIMEOUT);
    same!((190..=202).contains(&calls()), true);
    same!(boolean(call!("KeCancelTimer", timer())), false);
}

fn rearm_forever() {
    keep("KeSetTimer");
    initialize_dpc(set_again, 0);
    UNTIL.store(i64::MAX, Ordering::Relaxed);
    call!("KeInitializeTimer", timer());
    call!("KeSetTimer", timer(), -MILLISECOND, dpc());
    let mut never = Object::new();
    call!("KeInitializeEvent", never.at(), 0, 0);
    wait_for(never.at(), -10 * MILLISECOND);
}

/// Sets the event on its last call.
unsafe extern "C" fn count(_dpc: u64, _context: u64, _one: u64, _two: u64) {
    if CALLS.fetch_add(1, Ordering::Relaxed) + 1 == WANTED.load(Ordering::Relaxed) {
        kept().call(&[event(), 0, 0]);
    }
}

/// Starts a periodic timer of 1 ms that sets the event after `wanted` periods.
fn start_counting(wanted: u32) {
    keep("KeSetEvent");
    initialize_dpc(count, wanted);
    call!("KeInitializeEvent", event(), 0, 0);
    call!("KeInitializeTimerEx", timer(), 1);
    call!("KeSetTimerEx", timer(), -MILLISECOND, 1, dpc());
}

/// A wait without a timeout can last 15 seconds during which a timer fires every millisecond.
fn patience() {
    start_counting(15_000);
    let before = now();
    same!(wait(event()), SUCCESS);
    let took = now() - before;
    same!((149_000_000..152_000_000).contains(&took), true);
    same!(boolean(call!("KeCancelTimer", timer())), true);
}

/// The timers fire throughout a wait that times out.
fn long_wait() {
    start_counting(u32::MAX);
    let mut never = Object::new();
    call!("KeInitializeEvent", never.at(), 0, 0);
    same!(wait_for(never.at(), -20_000 * MILLISECOND), TIMEOUT);
    same!((19_990..=20_001).contains(&calls()), true);
    same!(boolean(call!("KeCancelTimer", timer())), true);
}

fn wait_for_nothing() {
    start_counting(u32::MAX);
    wait(event());
}

/// A work item that queues itself again until the event is set.
unsafe extern "C" fn work_again(_object: u64, item: u64) {
    CALLS.fetch_add(1, Ordering::Relaxed);
    if low(call!("KeReadStateEvent", event())) == 0 {
        call!("IoQueueWorkItem", item, address(work_again as *const c_void), 1, item);
    }
}

/// Work that never ends does not stop the clock.
fn busy_work() {
    call!("KeInitializeEvent", event(), 0, 0);
    let item = call!("IoAllocateWorkItem", 0x1230);
    let routine = address(work_again as *const c_void);
    call!("IoQueueWorkItem", item, routine, 1, item);
    let mut never = Object::new();
    call!("KeInitializeEvent", never.at(), 0, 0);
    same!(wait_for(never.at(), -MILLISECOND), TIMEOUT);
    call!("KeSetEvent", event(), 0, 0);
    same!(wait_for(never.at(), -MILLISECOND), TIMEOUT);
    same!(calls() > 100, true);
    call!("IoFreeWorkItem", item);
}

/// A driver that polls a coarse time sees it advance by whole ticks.
fn coarse_times() {
    const TICK: u64 = 156_250;
    let interrupt = Routine::find("KeQueryInterruptTime");
    let start = interrupt.call(&[]);
    same!(start % TICK, 0);
    while interrupt.call(&[]) < start + 3 * TICK {}
    same!(interrupt.call(&[]), start + 3 * TICK);
    let ticks = Routine::find("KeQueryTickCount");
    let system = Routine::find("KeQuerySystemTime");
    let (mut first, mut time) = (0_u64, 0_u64);
    ticks.call(&[at(&mut first)]);
    system.call(&[at(&mut time)]);
    same!(first, start / TICK + 3);
    let mut now = first;
    while now < first + 2 {
        ticks.call(&[at(&mut now)]);
    }
    let mut later = time;
    system.call(&[at(&mut later)]);
    same!(later, time + 2 * TICK);
    let unbiased = Routine::find("KeQueryUnbiasedInterruptTime");
    same!(unbiased.call(&[]), start + 5 * TICK);
}

static IDS: [AtomicU32; 200] = [const { AtomicU32::new(0) }; 200];

/// A work item that records its thread, and waits until all items run.
unsafe extern "C" fn note_thread(_parameter: u64) {
    let id = low(call!("PsGetCurrentThreadId"));
    let number = CALLS.fetch_add(1, Ordering::Relaxed);
    if let Some(slot) = IDS.get(number as usize) {
        slot.store(id, Ordering::Relaxed);
    }
    if number + 1 == IDS.len() as u32 {
        call!("KeSetEvent", event(), 0, 0);
    }
    same!(wait(event()), SUCCESS);
    NESTED.fetch_add(1, Ordering::Relaxed);
}

static mut ITEMS: [[u64; 4]; 200] = [[0; 4]; 200];

fn many_work_items() {
    call!("KeInitializeEvent", event(), 0, 0);
    let routine = address(note_thread as *const c_void);
    let queue = Routine::find("ExQueueWorkItem");
    for number in 0..IDS.len() {
        let item = &raw mut ITEMS as u64 + 32 * number as u64;
        // SAFETY: the item belongs to a static, and nothing uses it yet.
        unsafe { (item as *mut [u64; 4]).write([0, 0, routine, 0]) };
        queue.call(&[item, 1]);
    }
    same!(wait(event()), SUCCESS);
    let mut never = Object::new();
    call!("KeInitializeEvent", never.at(), 0, 0);
    same!(wait_for(never.at(), -MILLISECOND), TIMEOUT);
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
fn use_stack(below: fn()) -> u64 {
    let mut bytes = [0_u8; 16 * 1024];
    black_box(&mut bytes);
    below();
    black_box(&mut bytes).as_ptr() as u64
}

const fn nothing() {}

unsafe extern "C" fn deep_dpc(_dpc: u64, _context: u64, _one: u64, _two: u64) {
    CALLS.fetch_add(1, Ordering::Relaxed);
    let place = use_stack(nothing);
    UNTIL.store(place.cast_signed(), Ordering::Relaxed);
}

/// DPCs have their own stack, regardless of the use of the thread's stack.
fn dpc_stack() {
    initialize_dpc(deep_dpc, 0);
    call!("KeInitializeTimer", timer());
    use_stack(|| {
        call!("KeInsertQueueDpc", dpc(), 0, 0);
    });
    same!(calls(), 1);
    let place = UNTIL.load(Ordering::Relaxed).cast_unsigned();
    let (mut start, mut end) = (0_u64, 0_u64);
    call!("IoGetStackLimits", at(&mut start), at(&mut end));
    same!(end - start, 24 * 1024);
    same!((start..end).contains(&at(&mut start)), true);
    same!((start..end).contains(&place), false);
    // A timer's DPC also has its own stack.
    use_stack(|| {
        call!("KeSetTimer", timer(), -MILLISECOND, dpc());
        same!(wait(timer()), SUCCESS);
    });
    same!(calls(), 2);
    same!(UNTIL.load(Ordering::Relaxed).cast_unsigned(), place);
}

/// A provider and one of its events.
static PROVIDER: [u64; 2] = [0x4B1D_7A20_93C1_55E7, 0x1122_3344_5566_7788];
static DESCRIPTOR: [u64; 2] = [0x0004_0000_0000_0001, 1];

/// Writes an event with 16 bytes at this address.
fn write_event(data: u64) {
    let mut handle = 0_u64;
    let provider = PROVIDER.as_ptr() as u64;
    same!(low(call!("EtwRegister", provider, 0, 0, at(&mut handle))), 0);
    let mut data = [data, 16];
    let descriptor = DESCRIPTOR.as_ptr() as u64;
    same!(low(call!("EtwWrite", handle, descriptor, 0, 1, at(&mut data))), 0);
    same!(low(call!("EtwUnregister", handle)), 0);
}

/// The address of a thread's data.
static PLACE: AtomicU64 = AtomicU64::new(0);

unsafe extern "C" fn wait_with_data(_context: *mut c_void) {
    let mut data = [7_u64; 2];
    PLACE.store(at(&mut data), Ordering::Relaxed);
    same!(wait(event()), SUCCESS);
    black_box(&mut data);
}

/// Starts a thread that waits.
fn start_waiting(routine: unsafe extern "C" fn(*mut c_void)) -> u64 {
    call!("KeInitializeEvent", event(), 0, 0);
    let thread = threads::start(routine, 0);
    same!(wait_for(thread, -MILLISECOND), TIMEOUT);
    thread
}

/// Data can be on the stack of a thread that waits until the event is written.
fn other_stack() {
    let thread = start_waiting(wait_with_data);
    write_event(PLACE.load(Ordering::Relaxed));
    call!("KeSetEvent", event(), 0, 0);
    threads::join(thread);
}

unsafe extern "C" fn wait_without_data(_context: *mut c_void) {
    let place = use_stack(nothing);
    PLACE.store(place, Ordering::Relaxed);
    same!(wait(event()), SUCCESS);
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
    let mut blocks = [0_u64; 64];
    let mut count = 0;
    for block in &mut blocks {
        *block = call!("ExAllocatePool2", PAGED, LARGE, TAG);
        count += u64::from(*block != 0);
    }
    same!((4..64).contains(&count), true);
    for block in blocks.into_iter().filter(|block| *block != 0) {
        call!("ExFreePool", block);
    }
    for round in 0..200_u64 {
        let block = call!("ExAllocatePool2", PAGED, LARGE / 2 + 4096 * round, TAG);
        same!(block != 0, true);
        // SAFETY: the block is large enough.
        same!(unsafe { ((block + LARGE / 2 - 8) as *const u64).read() }, 0);
        // SAFETY: as above.
        unsafe { ((block + LARGE / 2 - 8) as *mut u64).write(1) };
        call!("ExFreePool", block);
    }
}
