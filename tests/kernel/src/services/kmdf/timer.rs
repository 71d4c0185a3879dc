//! Timers and DPCs. Both run at `DISPATCH_LEVEL`: a DPC as soon as the IRQL of
//! the processor allows, a timer when the clock reaches its time.

use std::collections::VecDeque;

use super::{
    object::{create, get_parent, read_attributes},
    state::framework::{Context, Data, Entries, Kmdf, ObjectRoutine},
};
use crate::{
    execution::{identity::Identity, routine::Routine},
    ground::{
        abi::{DpcConfig, TimerConfig},
        irql::Irql,
        rule::Rule,
        status::NtStatus,
    },
};

/// The number of 100 ns units in a millisecond, the unit of periods.
const MILLISECOND: i64 = 10_000;

/// A timer.
pub struct TimerData {
    function: u64,
    /// The period in milliseconds; 0 for a timer that fires once.
    period: u32,
    /// The counter's reading at which the timer fires next.
    due: Option<i64>,
}

/// A DPC.
pub struct DpcData {
    function: u64,
    queued: bool,
}

impl Data for TimerData {
    const NAME: &'static str = "WDFTIMER";
    const BEFORE_DELETE: Option<ObjectRoutine> = Some(stop_before_delete);
}

impl Data for DpcData {
    const NAME: &'static str = "WDFDPC";
    const BEFORE_DELETE: Option<ObjectRoutine> = Some(stop_before_delete);
}

/// The DPCs that wait for the IRQL to fall, by handle.
#[derive(Default)]
struct Dpcs(VecDeque<u64>);

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

/// Creates a timer or DPC, which must have a parent object.
fn create_with_parent(
    context: &Context,
    data: impl Data,
    attributes: u64,
    result: u64,
) -> NtStatus {
    let Some(attributes) = read_attributes(context, attributes) else {
        return NtStatus::WDF_PARENT_NOT_SPECIFIED;
    };
    if attributes.parent == 0 {
        return NtStatus::WDF_PARENT_NOT_SPECIFIED;
    }
    match create(context, data, Some(&attributes), None) {
        Ok(handle) => {
            context.write(result, &handle);
            NtStatus::SUCCESS
        }
        Err(status) => status,
    }
}

fn timer_create(context: &Context, _globals: u64, config: u64, attributes: u64, timer: u64) -> u64 {
    let config: TimerConfig = context.read(config);
    if config.size as usize != size_of::<TimerConfig>() {
        return NtStatus::INFO_LENGTH_MISMATCH.to_register();
    }
    if config.function == 0 {
        return NtStatus::INVALID_PARAMETER.to_register();
    }
    let data = TimerData {
        function: config.function,
        period: config.period,
        due: None,
    };
    create_with_parent(context, data, attributes, timer).to_register()
}

/// Starts a timer. Due times are in 100 ns units: negative ones are relative to now, others count
/// from 1601.
fn timer_start(context: &Context, _globals: u64, timer: u64, due: u64) -> u64 {
    let clock = context.clock();
    let due = due.cast_signed();
    let at = if due < 0 {
        clock.last().saturating_sub(due)
    } else {
        due.saturating_sub(clock.boot_time())
    };
    let was_set = context.with::<TimerData, _>(timer, |timer| timer.due.replace(at).is_some());
    u64::from(was_set)
}

fn timer_stop(context: &Context, _globals: u64, timer: u64, wait: u64) -> u64 {
    stop_if_waiting_too_high(context, wait);
    let was_set = context.with::<TimerData, _>(timer, |timer| timer.due.take().is_some());
    u64::from(was_set)
}

fn dpc_create(context: &Context, _globals: u64, config: u64, attributes: u64, dpc: u64) -> u64 {
    let config: DpcConfig = context.read(config);
    if config.size as usize != size_of::<DpcConfig>() {
        return NtStatus::INFO_LENGTH_MISMATCH.to_register();
    }
    if config.function == 0 {
        return NtStatus::INVALID_PARAMETER.to_register();
    }
    let data = DpcData {
        function: config.function,
        queued: false,
    };
    create_with_parent(context, data, attributes, dpc).to_register()
}

fn dpc_enqueue(context: &Context, _globals: u64, dpc: u64) -> u64 {
    let newly = context.with::<DpcData, _>(dpc, |data| !core::mem::replace(&mut data.queued, true));
    if newly {
        context.framework().part::<Dpcs>().0.push_back(dpc);
        if context.irql() < Irql::DISPATCH_LEVEL {
            run_dpcs(context);
        }
    }
    u64::from(newly)
}

fn dpc_cancel(context: &Context, _globals: u64, dpc: u64, wait: u64) -> u64 {
    stop_if_waiting_too_high(context, wait);
    let was_queued = context.with::<DpcData, _>(dpc, |data| core::mem::take(&mut data.queued));
    context
        .framework()
        .part::<Dpcs>()
        .0
        .retain(|queued| *queued != dpc);
    u64::from(was_queued)
}

/// Bugchecks if a stop waits for the callback above `PASSIVE_LEVEL`. The `BOOLEAN` is the
/// register's low byte.
fn stop_if_waiting_too_high(context: &Context, wait: u64) {
    let call = context.call();
    if wait & 0xFF != 0 && call.irql > Irql::PASSIVE_LEVEL {
        context.stop(
            Rule::IrqlTooHigh,
            format!(
                "{} was called with Wait at {} from {}; the highest IRQL for a wait is {}",
                call.name,
                call.irql,
                context.caller(),
                Irql::PASSIVE_LEVEL
            ),
        );
    }
}

/// Runs the pending DPCs in the order in which they were queued.
pub fn run_dpcs(context: &Context) {
    loop {
        let next = {
            let mut framework = context.framework();
            let Some(handle) = framework.part::<Dpcs>().0.pop_front() else {
                return;
            };
            framework
                .get::<DpcData>(handle)
                .ok()
                .and_then(|dpc| core::mem::take(&mut dpc.queued).then_some((handle, dpc.function)))
        };
        if let Some((handle, function)) = next {
            context.call_driver_at(Irql::DISPATCH_LEVEL, "EvtDpcFunc", function, [handle]);
        }
    }
}

/// Returns the counter's reading at which the next timer fires.
pub fn next_due(kmdf: &Kmdf) -> Option<i64> {
    let mut framework = kmdf.framework();
    let timers = framework.all::<TimerData>();
    timers
        .into_iter()
        .filter_map(|handle| framework.get::<TimerData>(handle).ok()?.due)
        .min()
}

/// Fires the timers that are due up to `until` (a reading of the counter), earliest first, and
/// advances the clock to each.
pub fn run_timers(context: &Context, until: i64) {
    loop {
        let next = {
            let mut framework = context.framework();
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
        context.clock().move_to(due);
        context.as_identity(Identity::IDLE, || {
            context.call_driver_at(Irql::DISPATCH_LEVEL, "EvtTimerFunc", function, [handle])
        });
    }
    context.clock().move_to(until);
}

/// Keeps a timer or DPC that is being deleted from firing.
fn stop_before_delete(context: &Context, handle: u64) {
    let mut framework = context.framework();
    if let Ok(timer) = framework.get::<TimerData>(handle) {
        timer.due = None;
    }
    if let Ok(dpc) = framework.get::<DpcData>(handle) {
        dpc.queued = false;
        framework
            .part::<Dpcs>()
            .0
            .retain(|queued| *queued != handle);
    }
}
