//! The periodic timer, and the times of its ticks.

use core::{
    ptr,
    sync::atomic::{AtomicPtr, AtomicU64, Ordering},
};

use etw_driver_support::{sized, wdf};
use etw_probes_interface::{Ask, Reply, TIMER_PERIOD_MS};
use wdk_sys::{NTSTATUS, WDF_TIMER_CONFIG, WDFDEVICE, WDFTIMER, WDFTIMER__};

use crate::{
    context::{attributes, check},
    system::{counter, frequency, reply_from_here},
};

/// The due time of the first tick, in units of 100 ns; negative values are relative to now.
const FIRST_TICK: i64 = -(TIMER_PERIOD_MS as i64) * 10_000;

static TIMER: AtomicPtr<WDFTIMER__> = AtomicPtr::new(ptr::null_mut());

/// Readings of the performance counter, and the number of ticks.
static STARTED: AtomicU64 = AtomicU64::new(0);
static FIRST: AtomicU64 = AtomicU64::new(0);
static LAST: AtomicU64 = AtomicU64::new(0);
static SHORTEST: AtomicU64 = AtomicU64::new(u64::MAX);
static LONGEST: AtomicU64 = AtomicU64::new(0);
static TICKS: AtomicU64 = AtomicU64::new(0);

/// Creates the device's timer, stopped.
pub fn create(device: WDFDEVICE) -> Result<(), NTSTATUS> {
    let mut config = sized!(WDF_TIMER_CONFIG {
        EvtTimerFunc: Some(tick),
        Period: TIMER_PERIOD_MS,
        // The callback uses only atomics, so it does not need the device's lock.
        AutomaticSerialization: 0
    });
    let mut attributes = attributes(device.cast());
    let mut timer: WDFTIMER = ptr::null_mut();
    check(wdf!(WdfTimerCreate, &raw mut config, &raw mut attributes, &raw mut timer,))?;
    TIMER.store(timer, Ordering::Release);
    Ok(())
}

/// Starts the timer. IRQL: `PASSIVE_LEVEL`.
pub fn start(ask: &Ask) -> Reply {
    let timer = TIMER.load(Ordering::Acquire);
    let _was_running = wdf!(WdfTimerStop, timer, 1);
    SHORTEST.store(u64::MAX, Ordering::Relaxed);
    for number in [&FIRST, &LAST, &LONGEST, &TICKS] {
        number.store(0, Ordering::Relaxed);
    }
    STARTED.store(counter(), Ordering::Release);
    let _was_running = wdf!(WdfTimerStart, timer, FIRST_TICK);
    reply_from_here(ask.operation)
}

/// Stops the timer, and returns the times of its ticks. IRQL: `PASSIVE_LEVEL`.
pub fn stop(ask: &Ask) -> Reply {
    let timer = TIMER.load(Ordering::Acquire);
    let _was_running = wdf!(WdfTimerStop, timer, 1);
    let mut reply = reply_from_here(ask.operation);
    let [started, first, last, shortest, longest, ticks] =
        [&STARTED, &FIRST, &LAST, &SHORTEST, &LONGEST, &TICKS]
            .map(|number| number.load(Ordering::Acquire));
    reply.numbers = [
        ticks,
        first.saturating_sub(started),
        shortest,
        longest,
        last.saturating_sub(first),
        frequency(),
        0,
        0,
    ];
    reply
}

/// `EvtTimerFunc`, at `DISPATCH_LEVEL`. Only one tick runs at a time.
extern "C" fn tick(_timer: WDFTIMER) {
    let now = counter();
    if TICKS.fetch_add(1, Ordering::AcqRel) == 0 {
        FIRST.store(now, Ordering::Relaxed);
    } else {
        let gap = now.saturating_sub(LAST.load(Ordering::Relaxed));
        SHORTEST.fetch_min(gap, Ordering::Relaxed);
        LONGEST.fetch_max(gap, Ordering::Relaxed);
    }
    LAST.store(now, Ordering::Release);
}
