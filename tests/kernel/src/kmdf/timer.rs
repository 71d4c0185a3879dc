//! Timers and DPCs. Both run at `DISPATCH_LEVEL`: a DPC as soon as the IRQL of
//! the processor allows, a timer when the clock reaches its time.

use super::{
    Entries, Routine, lock_framework,
    object::{Kind, create, read_attributes},
};
use crate::{
    abi::{DpcConfig, TimerConfig},
    irql::Irql,
    status::NtStatus,
    thread::{self, Identity, Thread},
    verifier::Rule,
};

/// Units of 100 ns in a millisecond, which periods are given in.
const MILLISECOND: i64 = 10_000;

/// A timer.
pub struct TimerData {
    function: u64,
    /// In milliseconds; 0 for a timer that fires once.
    period: u32,
    /// The counter's reading at which it fires next.
    due: Option<i64>,
}

/// A DPC.
pub struct DpcData {
    function: u64,
    queued: bool,
}

pub const ENTRIES: Entries = &[
    ("WdfTimerCreate", Routine::Four(timer_create)),
    ("WdfTimerStart", Routine::Three(timer_start)),
    ("WdfTimerStop", Routine::Three(timer_stop)),
    (
        "WdfTimerGetParentObject",
        Routine::Two(get_parent::<TimerData>),
    ),
    ("WdfDpcCreate", Routine::Four(dpc_create)),
    ("WdfDpcEnqueue", Routine::Two(dpc_enqueue)),
    ("WdfDpcCancel", Routine::Three(dpc_cancel)),
    ("WdfDpcGetParentObject", Routine::Two(get_parent::<DpcData>)),
];

/// Timers and DPCs must say which object they belong to.
fn create_with_parent(thread: &Thread, kind: Kind, attributes: u64, result: u64) -> NtStatus {
    let Some(attributes) = read_attributes(thread, attributes) else {
        return NtStatus::WDF_PARENT_NOT_SPECIFIED;
    };
    if attributes.parent == 0 {
        return NtStatus::WDF_PARENT_NOT_SPECIFIED;
    }
    match create(thread, kind, Some(&attributes), None) {
        Ok(handle) => {
            thread.write(result, &handle);
            NtStatus::SUCCESS
        }
        Err(status) => status,
    }
}

extern "win64" fn timer_create(_globals: u64, config: u64, attributes: u64, timer: u64) -> u64 {
    let thread = thread::current();
    let config: TimerConfig = thread.read(config);
    if config.size as usize != size_of::<TimerConfig>() {
        return NtStatus::INFO_LENGTH_MISMATCH.to_register();
    }
    if config.function == 0 {
        return NtStatus::INVALID_PARAMETER.to_register();
    }
    let kind = Kind::Timer(TimerData {
        function: config.function,
        period: config.period,
        due: None,
    });
    create_with_parent(&thread, kind, attributes, timer).to_register()
}

/// Due times are 100 ns units: negative ones from now on, others since 1601.
extern "win64" fn timer_start(_globals: u64, timer: u64, due: u64) -> u64 {
    let thread = thread::current();
    let clock = &thread.shared().clock;
    let due = due.cast_signed();
    let at = if due < 0 {
        clock.last().saturating_sub(due)
    } else {
        due.saturating_sub(clock.boot_time())
    };
    let was_set = thread.with::<TimerData, _>(timer, |timer| timer.due.replace(at).is_some());
    u64::from(was_set)
}

extern "win64" fn timer_stop(_globals: u64, timer: u64, wait: u64) -> u64 {
    let thread = thread::current();
    stop_if_waiting_too_high(&thread, wait);
    let was_set = thread.with::<TimerData, _>(timer, |timer| timer.due.take().is_some());
    u64::from(was_set)
}

extern "win64" fn dpc_create(_globals: u64, config: u64, attributes: u64, dpc: u64) -> u64 {
    let thread = thread::current();
    let config: DpcConfig = thread.read(config);
    if config.size as usize != size_of::<DpcConfig>() {
        return NtStatus::INFO_LENGTH_MISMATCH.to_register();
    }
    if config.function == 0 {
        return NtStatus::INVALID_PARAMETER.to_register();
    }
    let kind = Kind::Dpc(DpcData {
        function: config.function,
        queued: false,
    });
    create_with_parent(&thread, kind, attributes, dpc).to_register()
}

extern "win64" fn dpc_enqueue(_globals: u64, dpc: u64) -> u64 {
    let thread = thread::current();
    let newly = thread.with::<DpcData, _>(dpc, |data| !core::mem::replace(&mut data.queued, true));
    if newly {
        lock_framework(thread.shared()).dpcs.push_back(dpc);
        if thread.irql() < Irql::DISPATCH_LEVEL {
            run_dpcs(&thread);
        }
    }
    u64::from(newly)
}

extern "win64" fn dpc_cancel(_globals: u64, dpc: u64, wait: u64) -> u64 {
    let thread = thread::current();
    stop_if_waiting_too_high(&thread, wait);
    let was_queued = thread.with::<DpcData, _>(dpc, |data| core::mem::take(&mut data.queued));
    lock_framework(thread.shared())
        .dpcs
        .retain(|queued| *queued != dpc);
    u64::from(was_queued)
}

/// The parent of an object of a known kind.
pub extern "win64" fn get_parent<T: super::object::Data>(_globals: u64, handle: u64) -> u64 {
    let thread = thread::current();
    thread.with::<T, _>(handle, |_| ());
    lock_framework(thread.shared()).parent(handle).unwrap_or(0)
}

/// A stop that waits for the callback needs `PASSIVE_LEVEL`; the `BOOLEAN` is
/// the register's low byte.
fn stop_if_waiting_too_high(thread: &Thread, wait: u64) {
    let call = thread.call();
    if wait & 0xFF != 0 && call.irql > Irql::PASSIVE_LEVEL {
        thread.stop(
            Rule::IrqlTooHigh,
            format!(
                "{} was called with Wait at {} from {}; the highest IRQL it may wait at is {}",
                call.name(),
                call.irql,
                thread.shared().place(call.return_address),
                Irql::PASSIVE_LEVEL
            ),
        );
    }
}

/// Runs the DPCs that wait, in the order they were queued.
pub fn run_dpcs(thread: &Thread) {
    loop {
        let next = {
            let mut framework = lock_framework(thread.shared());
            let Some(handle) = framework.dpcs.pop_front() else {
                return;
            };
            framework
                .get::<DpcData>(handle)
                .ok()
                .and_then(|dpc| core::mem::take(&mut dpc.queued).then_some((handle, dpc.function)))
        };
        if let Some((handle, function)) = next {
            thread.call_driver_at(Irql::DISPATCH_LEVEL, "EvtDpcFunc", function, [handle]);
        }
    }
}

/// When the next timer fires, as a reading of the counter.
pub fn next_due(thread: &Thread) -> Option<i64> {
    let mut framework = lock_framework(thread.shared());
    let timers = framework.all::<TimerData>();
    timers
        .into_iter()
        .filter_map(|handle| framework.get::<TimerData>(handle).ok()?.due)
        .min()
}

/// Fires the timers that are due up to `until` (a reading of the counter), the
/// earliest first, and moves the clock along.
pub fn run_timers(thread: &Thread, until: i64) {
    loop {
        let next = {
            let mut framework = lock_framework(thread.shared());
            let timers = framework.all::<TimerData>();
            let earliest = timers
                .into_iter()
                .filter_map(|handle| {
                    let due = framework.get::<TimerData>(handle).ok()?.due?;
                    (due <= until).then_some((due, handle))
                })
                .min();
            let Some((due, handle)) = earliest else {
                break;
            };
            let Ok(timer) = framework.get::<TimerData>(handle) else {
                continue;
            };
            timer.due = (timer.period != 0)
                .then(|| due.saturating_add(i64::from(timer.period) * MILLISECOND));
            (due, handle, timer.function)
        };
        let (due, handle, function) = next;
        thread.shared().clock.move_to(due);
        thread.as_identity(Identity::IDLE, || {
            thread.call_driver_at(Irql::DISPATCH_LEVEL, "EvtTimerFunc", function, [handle])
        });
    }
    thread.shared().clock.move_to(until);
}

/// A timer or DPC that is being deleted fires no more.
pub fn stop_before_delete(thread: &Thread, handle: u64) {
    let mut framework = lock_framework(thread.shared());
    if let Ok(timer) = framework.get::<TimerData>(handle) {
        timer.due = None;
    }
    if let Ok(dpc) = framework.get::<DpcData>(handle) {
        dpc.queued = false;
        framework.dpcs.retain(|queued| *queued != handle);
    }
}
