//! Timers and DPCs. Both run at `DISPATCH_LEVEL`: a DPC as soon as the processor's IRQL allows, and
//! a timer when the clock reaches its due time.

use std::{collections::VecDeque, thread::ThreadId};

use zerocopy::{FromZeros, IntoBytes};

use crate::{
    execution::{
        identity::Identity,
        routine::{At, Handle, Out, routine},
    },
    ground::{
        NtResult, NtStatus,
        abi::{DpcConfig, KernelDpc, ObjectAttributes, TimerConfig},
        arena::Block,
        irql::Irql,
        rule::Rule,
    },
    services::kmdf::{
        lifetime::{create, get_parent, give, hold, release, with_parent},
        state::{
            device_object::fill,
            framework::{Choices, Context, Data, Entries, Kmdf, ObjectRoutine},
        },
        synchronization::{
            presentation,
            presentation::{Lock, serialization},
            wait,
        },
        work::{Work, WorkKind, forget_work, queue_work},
    },
};

/// `WdfExecutionLevelPassive`.
const PASSIVE: u32 = 2;

/// The number of 100 ns units in a millisecond, the unit of periods.
const MILLISECOND: i64 = 10_000;

/// A timer.
pub struct TimerData {
    /// The lock that is held while the timer's function runs.
    lock: Option<Lock>,
    /// Set if a work item calls the function at `PASSIVE_LEVEL`.
    is_passive: bool,
    function: u64,
    /// The period in milliseconds; 0 for a one-shot timer.
    period: u32,
    /// The counter's reading at which the timer fires next.
    due: Option<i64>,
    /// Set while a work item waits to call the function.
    is_queued: bool,
    /// The thread on which a work item calls the function.
    runner: Option<ThreadId>,
    stop: Stop,
}

/// Whether `WdfTimerStop` waits for the function, which cannot start the timer meanwhile.
#[derive(PartialEq, Eq)]
enum Stop {
    None,
    Waits,
    /// The function has tried to start the timer.
    AbortedStart,
}

impl TimerData {
    /// Returns the counter's reading at which the timer fires next after firing at `due`.
    fn after(&self, due: i64) -> Option<i64> {
        (self.period != 0).then(|| due.saturating_add(i64::from(self.period) * MILLISECOND))
    }
}

/// A DPC.
pub struct DpcData {
    /// The lock that is held while the DPC's function runs.
    lock: Option<Lock>,
    function: u64,
    /// The `KDPC`, once the driver has requested it.
    object: Option<Block>,
}

impl Data for TimerData {
    const NAME: &'static str = "WDFTIMER";
    const CHOICES: Choices = Choices { level: true, scope: false, has_fixed_parent: false };
    const IS_PASSIVE: bool = true;
    const BEFORE_DELETE: Option<ObjectRoutine> = Some(stop_before_delete);
}

impl Data for DpcData {
    const NAME: &'static str = "WDFDPC";
    const IS_PASSIVE: bool = true;
    const BEFORE_DELETE: Option<ObjectRoutine> = Some(stop_before_delete);
}

/// The DPCs that wait for a lower IRQL: an object's handle and the routine to run for it.
#[derive(Default)]
struct Dpcs(VecDeque<(u64, ObjectRoutine)>);

/// The framework's internal deadlines: the counter's reading, an object's handle, and the routine to run
/// for it.
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

/// Returns the counter's reading at a time in units of 100 ns: a negative time is relative to now,
/// and any other time counts from 1601.
pub fn reading_of(context: &Context, time: i64) -> i64 {
    context.clock().reading_of(time)
}

/// Queues a routine to run for an object at `DISPATCH_LEVEL` as soon as the IRQL allows. Returns
/// `false` if the object is already queued.
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
        context.host().irql_lowered(context.thread(), context.call());
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
    routine("WdfTimerCreate", timer_create),
    routine("WdfTimerStart", timer_start),
    routine("WdfTimerStop", timer_stop),
    routine("WdfTimerGetParentObject", get_parent::<TimerData>),
    routine("WdfDpcCreate", dpc_create),
    routine("WdfDpcEnqueue", dpc_enqueue),
    routine("WdfDpcCancel", dpc_cancel),
    routine("WdfDpcWdmGetDpc", dpc_object),
    routine("WdfDpcGetParentObject", get_parent::<DpcData>),
];

/// Reads a timer's configuration. Older headers omit the last fields.
fn read_config(context: &Context, address: u64) -> Option<TimerConfig> {
    /// The structure's sizes up to KMDF 1.7 and 1.11.
    const OLD: [usize; 2] = [24, 32];
    let size: u32 = context.read(address);
    let length = size as usize;
    let mut config: TimerConfig = zerocopy::FromZeros::new_zeroed();
    if length != size_of_val(&config) && !OLD.contains(&length) {
        return None;
    }
    let bytes = zerocopy::IntoBytes::as_mut_bytes(&mut config);
    context.read_into(address, bytes.get_mut(..length)?);
    Some(config)
}

fn timer_create(
    context: &Context,
    config: At<TimerConfig>,
    attributes: At<ObjectAttributes>,
    timer: Out<TimerData>,
) -> NtResult {
    let attributes = with_parent(context, attributes.0)?;
    let config = read_config(context, config.0).ok_or(NtStatus::INFO_LENGTH_MISMATCH)?;
    // A tolerable delay and high resolution exclude each other. A timer without a function has no
    // effect.
    let is_contradictory = config.tolerable_delay != 0 && config.use_high_resolution_timer != 0;
    if config.period > i32::MAX.unsigned_abs() || is_contradictory {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    let is_passive = attributes.execution_level == PASSIVE;
    // A periodic timer would expire again without waiting for the work item.
    if is_passive && config.period != 0 {
        return Err(NtStatus::NOT_SUPPORTED);
    }
    let is_serialized = config.automatic_serialization != 0;
    let data = TimerData {
        lock: serialization(context, attributes.parent_object, is_serialized, is_passive)?,
        is_passive,
        function: config.evt_timer_func,
        period: config.period,
        due: None,
        is_queued: false,
        runner: None,
        stop: Stop::None,
    };
    give(context, create(context, data, Some(&attributes), None), timer.0)
}

/// Starts a timer. Due times are in units of 100 ns: a negative time is relative to now, and any
/// other time counts from 1601. If the due time has passed, the timer fires immediately. A timer does
/// not start while `WdfTimerStop` waits for its function.
fn timer_start(context: &Context, timer: Handle<TimerData>, due: i64) -> bool {
    timer.check(context);
    if context.framework().is_disposing(timer.0) {
        context.warn_of_misuse(|| "for a timer that was deleted; it does not start".to_owned());
        return false;
    }
    let is_aborted = timer.with(context, |timer| {
        let is_stopping = timer.stop != Stop::None;
        if is_stopping {
            timer.stop = Stop::AbortedStart;
        }
        is_stopping
    });
    if is_aborted {
        return false;
    }
    let later = context.clock().due(due);
    let now = context.clock().last();
    let was_set = timer.with(context, |timer| {
        let next = later.or_else(|| timer.after(now));
        std::mem::replace(&mut timer.due, next).is_some()
    });
    if later.is_none() {
        queue_dpc(context, timer.0, fire);
    }
    was_set
}

fn timer_stop(context: &Context, timer: Handle<TimerData>, wait: bool) -> bool {
    stop_if_waiting_too_high(context, wait);
    let this = context.id();
    if wait && timer.with(context, |timer| timer.runner == Some(this)) {
        context.warn_of_misuse(|| {
            "with Wait inside the timer's own callback; the framework does nothing".to_owned()
        });
        return false;
    }
    let was_set = timer.with(context, |timer| {
        if wait {
            timer.stop = Stop::Waits;
        }
        timer.due.take().is_some()
    });
    if !wait {
        return was_set;
    }
    wait_for(context, timer.0);
    timer.with(context, |timer| {
        was_set | (std::mem::replace(&mut timer.stop, Stop::None) == Stop::AbortedStart)
    })
}

/// Waits until no work item is calling the timer's function.
fn wait_for(context: &Context, timer: u64) {
    let is_over = wait::wait_until(context, None, |context| {
        !context.is::<TimerData>(timer, |timer| timer.is_queued || timer.runner.is_some())
    });
    if !is_over {
        context.stop_call(Rule::Deadlock, "and would wait forever for a timer's callback");
    }
}

fn dpc_create(
    context: &Context,
    config: At<DpcConfig>,
    attributes: At<ObjectAttributes>,
    dpc: Out<DpcData>,
) -> NtResult {
    let attributes = with_parent(context, attributes.0)?;
    let config = config.read(context);
    if config.size as usize != size_of::<DpcConfig>() {
        return Err(NtStatus::INFO_LENGTH_MISMATCH);
    }
    let is_serialized = config.automatic_serialization != 0;
    let data = DpcData {
        lock: serialization(context, attributes.parent_object, is_serialized, false)?,
        function: config.evt_dpc_func,
        object: None,
    };
    give(context, create(context, data, Some(&attributes), None), dpc.0)
}

/// Returns the address of a DPC's `KDPC`. A driver can set the `KDPC`'s processor and importance.
/// Its routine belongs to the framework, and the stand-in kernel never calls it.
fn dpc_object(context: &Context, dpc: Handle<DpcData>) -> At<KernelDpc> {
    /// `DpcObject` and `MediumImportance`.
    const KIND: u8 = 0x13;
    const MEDIUM: u8 = 1;
    At::new(dpc.with(context, |data| {
        let object = data.object.get_or_insert_with(|| {
            let object = Block::zeroed(size_of::<KernelDpc>());
            let mut value = KernelDpc::new_zeroed();
            value.kind = KIND;
            value.importance = MEDIUM;
            value.deferred_routine = dpc.0;
            value.deferred_context = dpc.0;
            fill(object.address(), value.as_bytes());
            object
        });
        object.address()
    }))
}

fn dpc_enqueue(context: &Context, dpc: Handle<DpcData>) -> bool {
    dpc.check(context);
    queue_dpc(context, dpc.0, run_dpc)
}

fn dpc_cancel(context: &Context, dpc: Handle<DpcData>, wait: bool) -> bool {
    stop_if_waiting_too_high(context, wait);
    dpc.check(context);
    forget_dpc(context, dpc.0)
}

/// Bugchecks if a stop that waits for the callback is called above `PASSIVE_LEVEL`.
fn stop_if_waiting_too_high(context: &Context, wait: bool) {
    if wait {
        context.check_irql(Irql::PASSIVE_LEVEL, "with Wait", "a wait");
    }
}

/// Returns whether a DPC is waiting.
pub fn is_dpc_pending(kmdf: &Kmdf) -> bool {
    !kmdf.framework().part::<Dpcs>().0.is_empty()
}

/// Runs the first pending DPC, at the current IRQL and on the current stack. Returns the DPC's
/// object if a DPC was pending.
pub fn run_one_dpc(context: &Context) -> Option<u64> {
    let (handle, run) = context.framework().part::<Dpcs>().0.pop_front()?;
    run(context, handle);
    Some(handle)
}

fn run_dpc(context: &Context, dpc: u64) {
    let function = context.framework().get::<DpcData>(dpc).map(|data| (data.function, data.lock));
    if let Ok((function, lock)) = function
        && function != 0
    {
        call_serialized(context, lock, "EvtDpcFunc", function, dpc);
    }
}

/// Returns the counter's reading at the next timer or deadline.
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

/// Takes the earliest timer or deadline that is due by `until`.
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

/// Calls the function of a timer or DPC at `DISPATCH_LEVEL`, with its lock, a spin lock, held.
fn call_serialized(context: &Context, lock: Option<Lock>, what: &str, function: u64, object: u64) {
    let before = context.raise_irql(Irql::DISPATCH_LEVEL);
    presentation::locked(context, lock, || context.call_driver(what, function, [object]));
    context.lower_irql(before);
}

fn fire(context: &Context, timer: u64) {
    let routine = context.framework().get::<TimerData>(timer).ok().map(|data| {
        data.is_queued |= data.is_passive && data.function != 0;
        (data.function, data.is_passive)
    });
    let Some((routine, is_passive)) = routine.filter(|(routine, _)| *routine != 0) else {
        return;
    };
    if is_passive {
        queue_work(
            context,
            Work { kind: WorkKind::Timer, routine, handle: timer, run: call_timer },
        );
    } else {
        call_timer(context, timer);
    }
}

fn call_timer(context: &Context, timer: u64) {
    let found = context
        .framework()
        .get::<TimerData>(timer)
        .map(|data| (data.function, data.lock, data.is_passive));
    match found {
        Ok((function, lock, true)) => {
            let this = context.id();
            hold(context, timer);
            context.with::<TimerData, _>(timer, |data| {
                (data.is_queued, data.runner) = (false, Some(this));
            });
            presentation::locked(context, lock, || {
                context.call_driver("EvtTimerFunc", function, [timer])
            });
            context.with::<TimerData, _>(timer, |data| data.runner = None);
            release(context, timer);
        }
        Ok((function, lock, false)) => {
            call_serialized(context, lock, "EvtTimerFunc", function, timer);
        }
        Err(_) => {}
    }
}

/// Fires the timers and deadlines that are due by `until` (a reading of the counter), earliest
/// first, and advances the clock to each one.
pub fn run_timers(context: &Context, until: i64) {
    while let Some((due, handle, run)) = take_due(context, until) {
        context.clock().interrupt_at(due);
        context.as_identity(Identity::IDLE, || context.as_dpc(|| run(context, handle)));
    }
    context.clock().interrupt_at(until);
}

/// Prevents a timer or DPC that is being deleted from firing and, if it has fired, waits for its
/// callback.
fn stop_before_delete(context: &Context, handle: u64) {
    let this = context.id();
    let waits = context.is::<TimerData>(handle, |timer| {
        timer.due = None;
        timer.runner != Some(this)
    });
    forget_dpc(context, handle);
    if waits && context.irql() == Irql::PASSIVE_LEVEL {
        wait_for(context, handle);
    }
    forget_work(context, WorkKind::Timer, handle);
}
