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

impl TimerData {
    /// Returns the counter's reading at which the timer fires after it has fired at `due`.
    fn after(&self, due: i64) -> Option<i64> {
        (self.period != 0).then(|| due.saturating_add(i64::from(self.period) * MILLISECOND))
    }
}

/// A DPC.
pub struct DpcData {
    function: u64,
}

impl Data for TimerData {
    const NAME: &'static str = "WDFTIMER";
    const BEFORE_DELETE: Option<ObjectRoutine> = Some(stop_before_delete);
}

impl Data for DpcData {
    const NAME: &'static str = "WDFDPC";
    const BEFORE_DELETE: Option<ObjectRoutine> = Some(stop_before_delete);
}

/// The DPCs that wait for the IRQL to fall: an object's handle and the routine that runs for it.
#[derive(Default)]
struct Dpcs(VecDeque<(u64, ObjectRoutine)>);

/// The deadlines of the framework's own: the counter's reading, an object's handle, and the routine
/// that runs for it.
#[derive(Default)]
struct Deadlines(Vec<(i64, u64, ObjectRoutine)>);

/// Runs a routine for an object at `DISPATCH_LEVEL` when the counter reads `at`. An object has at
/// most one deadline.
pub fn set_deadline(context: &Context, object: u64, at: i64, run: ObjectRoutine) {
    clear_deadline(context, object);
    let mut framework = context.framework();
    framework.part::<Deadlines>().0.push((at, object, run));
}

/// Removes an object's deadline.
pub fn clear_deadline(context: &Context, object: u64) {
    let mut framework = context.framework();
    let deadlines = &mut framework.part::<Deadlines>().0;
    deadlines.retain(|(_, owner, _)| *owner != object);
}

/// Returns the counter's reading of a time in 100 ns units: negative times are relative to now,
/// others count from 1601.
pub fn reading_of(context: &Context, time: i64) -> i64 {
    context.clock().reading_of(time)
}

/// Queues a routine to run for an object at `DISPATCH_LEVEL`, as soon as the IRQL allows. The object
/// is queued once until it runs; returns whether it was not queued yet.
pub fn queue_dpc(context: &Context, object: u64, run: ObjectRoutine) -> bool {
    {
        let mut framework = context.framework();
        let queue = &mut framework.part::<Dpcs>().0;
        if queue.iter().any(|(queued, _)| *queued == object) {
            return false;
        }
        queue.push_back((object, run));
    }
    if context.irql() < Irql::DISPATCH_LEVEL {
        context
            .host()
            .irql_lowered(context.thread(), context.call());
    }
    true
}

/// Removes an object's queued DPC. Returns whether there was one.
pub fn forget_dpc(context: &Context, object: u64) -> bool {
    let mut framework = context.framework();
    let queue = &mut framework.part::<Dpcs>().0;
    let before = queue.len();
    queue.retain(|(queued, _)| *queued != object);
    queue.len() < before
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
/// from 1601. A timer whose due time has passed fires at once.
fn timer_start(context: &Context, _globals: u64, timer: u64, due: u64) -> u64 {
    let later = context.clock().due(due.cast_signed());
    let now = context.clock().last();
    let was_set = context.with::<TimerData, _>(timer, |timer| {
        let next = later.or_else(|| timer.after(now));
        std::mem::replace(&mut timer.due, next).is_some()
    });
    if later.is_none() {
        queue_dpc(context, timer, fire);
    }
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
    };
    create_with_parent(context, data, attributes, dpc).to_register()
}

fn dpc_enqueue(context: &Context, _globals: u64, dpc: u64) -> u64 {
    context.with::<DpcData, _>(dpc, |_| ());
    u64::from(queue_dpc(context, dpc, run_dpc))
}

fn dpc_cancel(context: &Context, _globals: u64, dpc: u64, wait: u64) -> u64 {
    stop_if_waiting_too_high(context, wait);
    context.with::<DpcData, _>(dpc, |_| ());
    u64::from(forget_dpc(context, dpc))
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

/// Returns whether a DPC waits.
pub fn is_dpc_pending(kmdf: &Kmdf) -> bool {
    !kmdf.framework().part::<Dpcs>().0.is_empty()
}

/// Runs the first pending DPC, at the current IRQL and on the current stack. Returns its object if there
/// was one.
pub fn run_one_dpc(context: &Context) -> Option<u64> {
    let (handle, run) = context.framework().part::<Dpcs>().0.pop_front()?;
    run(context, handle);
    Some(handle)
}

fn run_dpc(context: &Context, dpc: u64) {
    let function = {
        let mut framework = context.framework();
        framework.get::<DpcData>(dpc).map(|data| data.function)
    };
    if let Ok(function) = function {
        context.call_driver_at(Irql::DISPATCH_LEVEL, "EvtDpcFunc", function, [dpc]);
    }
}

/// Returns the counter's reading at which the next timer fires or the next deadline is.
pub fn next_due(kmdf: &Kmdf) -> Option<i64> {
    let mut framework = kmdf.framework();
    let deadline = framework.part::<Deadlines>().0.iter().map(|(at, ..)| *at);
    let deadline = deadline.min();
    let timers = framework.all::<TimerData>();
    timers
        .into_iter()
        .filter_map(|handle| framework.get::<TimerData>(handle).ok()?.due)
        .chain(deadline)
        .min()
}

/// Takes the earliest timer or deadline that is due up to `until`.
fn take_due(context: &Context, until: i64) -> Option<(i64, u64, ObjectRoutine)> {
    let mut framework = context.framework();
    let timers = framework.all::<TimerData>();
    let timer = timers
        .into_iter()
        .filter_map(|handle| Some((framework.get::<TimerData>(handle).ok()?.due?, handle)))
        .filter(|(due, _)| *due <= until)
        .min();
    let deadlines = &mut framework.part::<Deadlines>().0;
    let deadline = (0..deadlines.len())
        .filter(|at| deadlines[*at].0 <= until)
        .min_by_key(|at| deadlines[*at].0);
    if let Some(at) = deadline
        && timer.is_none_or(|(due, _)| deadlines[at].0 < due)
    {
        return Some(deadlines.remove(at));
    }
    let (due, handle) = timer?;
    let timer = framework.get::<TimerData>(handle).ok()?;
    timer.due = timer.after(due);
    Some((due, handle, fire))
}

fn fire(context: &Context, timer: u64) {
    let function = {
        let mut framework = context.framework();
        framework
            .get::<TimerData>(timer)
            .map(|timer| timer.function)
    };
    if let Ok(function) = function {
        context.call_driver_at(Irql::DISPATCH_LEVEL, "EvtTimerFunc", function, [timer]);
    }
}

/// Fires the timers and deadlines that are due up to `until` (a reading of the counter), earliest
/// first, and advances the clock to each.
pub fn run_timers(context: &Context, until: i64) {
    while let Some((due, handle, run)) = take_due(context, until) {
        context.clock().move_to(due);
        context.as_identity(Identity::IDLE, || context.as_dpc(|| run(context, handle)));
    }
    context.clock().move_to(until);
}

/// Keeps a timer or DPC that is being deleted from firing.
fn stop_before_delete(context: &Context, handle: u64) {
    let mut framework = context.framework();
    if let Ok(timer) = framework.get::<TimerData>(handle) {
        timer.due = None;
    }
    drop(framework);
    forget_dpc(context, handle);
}
