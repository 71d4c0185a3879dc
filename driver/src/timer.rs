//! The periodic timer.

use core::sync::atomic::Ordering;

use etw_sample_interface::TIMER_PERIOD_MS;
use wdk::wdf::Timer;
use wdk_sys::{NTSTATUS, WDF_TIMER_CONFIG, WDFDEVICE, WDFTIMER, call_unsafe_wdf_function_binding};

use crate::{context, state::Device, trace};

/// Until the first tick: negative for "from now on", in units of 100 ns.
const FIRST_TICK: i64 = -(TIMER_PERIOD_MS as i64) * 10_000;

/// Makes the device's timer, stopped.
pub fn create(device: WDFDEVICE) -> Result<Timer, NTSTATUS> {
    let mut config = WDF_TIMER_CONFIG {
        Size: size_of::<WDF_TIMER_CONFIG>() as u32,
        EvtTimerFunc: Some(tick),
        Period: TIMER_PERIOD_MS,
        // The callback touches atomics only, so it needs no lock of the device's.
        AutomaticSerialization: 0,
        ..WDF_TIMER_CONFIG::default()
    };
    let mut attributes = context::attributes();
    attributes.ParentObject = device.cast();
    Timer::try_new(&mut config, &mut attributes)
}

/// A user starts the timer. Of two users at once, what the later one wants is what the timer
/// does: wish and timer change together.
pub fn start(device: &Device) {
    device.with_timer(|timer| {
        device.timer_wanted.store(true, Ordering::Relaxed);
        // Whether it was running already makes no difference.
        let _was_running = timer.start(FIRST_TICK);
    });
}

/// A user stops the timer. A tick that runs may end a little later.
pub fn stop(device: &Device) {
    device.with_timer(|timer| {
        device.timer_wanted.store(false, Ordering::Relaxed);
        // At `DISPATCH_LEVEL` it must not wait.
        let _was_running = timer.stop(false);
    });
}

/// Goes on ticking, if a user wants the timer to run.
pub fn resume(device: &Device) {
    device.with_timer(|timer| {
        if device.timer_wanted.load(Ordering::Relaxed) {
            let _was_running = timer.start(FIRST_TICK);
        }
    });
}

/// Stops ticking until [`resume`]. At `PASSIVE_LEVEL`: it waits for a tick that runs.
pub fn pause(device: &Device) {
    // Whether it was running makes no difference.
    let _was_running = device.timer.stop(true);
}

/// `EvtTimerFunc`, at `DISPATCH_LEVEL`.
extern "C" fn tick(timer: WDFTIMER) {
    // SAFETY: the framework passes a live timer.
    let device = unsafe { call_unsafe_wdf_function_binding!(WdfTimerGetParentObject, timer) };
    // SAFETY: the timer's parent is the device that it was created for.
    let device = unsafe { Device::of(device.cast()) };
    let ticks = device
        .timer_ticks
        .fetch_add(1, Ordering::Relaxed)
        .wrapping_add(1);
    trace::timer_ticked(ticks);
}
