//! The periodic timer.

use core::sync::atomic::Ordering;

use etw_sample_interface::TIMER_PERIOD_MS;
use wdk::wdf::Timer;
use wdk_sys::{NTSTATUS, WDF_TIMER_CONFIG, WDFDEVICE, WDFTIMER, call_unsafe_wdf_function_binding};

use crate::{context, state::Device, trace};

/// The due time of the first tick, in units of 100 ns; negative values are relative to now.
const FIRST_TICK: i64 = -(TIMER_PERIOD_MS as i64) * 10_000;

/// Creates the device's timer, stopped.
pub fn create(device: WDFDEVICE) -> Result<Timer, NTSTATUS> {
    let mut config = WDF_TIMER_CONFIG {
        Size: size_of::<WDF_TIMER_CONFIG>() as u32,
        EvtTimerFunc: Some(tick),
        Period: TIMER_PERIOD_MS,
        // The callback only uses atomics, so it needs no lock of the device.
        AutomaticSerialization: 0,
        ..WDF_TIMER_CONFIG::default()
    };
    let mut attributes = context::attributes();
    attributes.ParentObject = device.cast();
    Timer::try_new(&mut config, &mut attributes)
}

/// Starts the timer for a user. The lock makes the timer and `timer_wanted` change together, so
/// that the last of several concurrent requests wins.
pub fn start(device: &Device) {
    device.with_timer(|timer| {
        device.timer_wanted.store(true, Ordering::Relaxed);
        // It does not matter if the timer was already running.
        let _was_running = timer.start(FIRST_TICK);
    });
}

/// Stops the timer for a user. A tick that is in progress may end after this function returns.
pub fn stop(device: &Device) {
    device.with_timer(|timer| {
        device.timer_wanted.store(false, Ordering::Relaxed);
        // The lock raised the IRQL to `DISPATCH_LEVEL`, where waiting is not allowed.
        let _was_running = timer.stop(false);
    });
}

/// Restarts the timer if a user had started it.
pub fn resume(device: &Device) {
    device.with_timer(|timer| {
        if device.timer_wanted.load(Ordering::Relaxed) {
            let _was_running = timer.start(FIRST_TICK);
        }
    });
}

/// Stops the timer until [`resume`]. IRQL: `PASSIVE_LEVEL`, because it waits for running ticks.
pub fn pause(device: &Device) {
    // It does not matter if the timer was running.
    let _was_running = device.timer.stop(true);
}

/// `EvtTimerFunc`, at `DISPATCH_LEVEL`.
extern "C" fn tick(timer: WDFTIMER) {
    // SAFETY: the framework passes a live timer.
    let device = unsafe { call_unsafe_wdf_function_binding!(WdfTimerGetParentObject, timer) };
    // SAFETY: the timer's parent is the device that it was created for.
    let device = unsafe { Device::from_handle(device.cast()) };
    let ticks = device.timer_ticks.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
    trace::timer_ticked(ticks);
}
