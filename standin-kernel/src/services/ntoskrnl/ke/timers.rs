//! Timers that threads can wait for (`KTIMER`).

use zerocopy::FromZeros;

use super::{
    dispatcher::set_state,
    dpc,
    header::{header_of, initialize, kind},
};
use crate::{
    execution::{
        identity::Identity,
        routine::{At, routine},
    },
    ground::{
        abi::{KernelDpc, KernelTimer},
        clock::Clock,
        memory,
        opaque::{ExTimer, TimerSetParameters},
    },
    services::ntoskrnl::context::{Context, Entries, Ntoskrnl},
};

pub const ENTRIES: Entries = &[
    routine("KeInitializeTimer", initialize_timer),
    routine("KeInitializeTimerEx", initialize_timer_ex),
    routine("KeSetTimer", set_timer),
    routine("KeSetTimerEx", set_timer_ex),
    routine("KeSetCoalescableTimer", set_coalescable_timer),
    routine("KeCancelTimer", cancel_timer),
    routine("KeReadStateTimer", read_timer),
];

/// The number of 100 ns units in a millisecond.
const MILLISECOND: i64 = 10_000;

const TIMERS: &[u8] = &[kind::NOTIFICATION_TIMER, kind::SYNCHRONIZATION_TIMER];

#[derive(Default)]
struct Set {
    issued: u64,
    all: Vec<SetTimer>,
}

impl Set {
    /// Removes a timer. Returns whether it was set.
    fn remove(&mut self, address: u64) -> bool {
        self.all.extract_if(.., |timer| timer.address == address).count() > 0
    }
}

#[derive(Clone, Copy)]
struct SetTimer {
    address: u64,
    /// The counter's reading at which the timer fires.
    due: i64,
    /// The period in units of 100 ns; 0 for a one-shot timer.
    period: i64,
    /// A number that orders timers that are due at the same time.
    number: u64,
    action: Action,
}

impl SetTimer {
    /// Returns the timer in its state after firing, if it is periodic.
    fn again(self) -> Option<Self> {
        (self.period > 0).then(|| Self { due: self.due.saturating_add(self.period), ..self })
    }
}

#[derive(Clone, Copy)]
enum Action {
    /// Signals the object, and queues the DPC unless it is 0.
    Signal { dpc: u64 },
    /// Calls the callback of an `EX_TIMER` or a device with the timer or device.
    Call { callback: u64, context: u64 },
}

/// Calls a device's timer routine once per second, at `DISPATCH_LEVEL`.
pub fn start_for_device(context: &Context, device: u64, routine: u64, callback_context: u64) {
    const SECOND: i64 = 1000 * MILLISECOND;
    let action = Action::Call { callback: routine, context: callback_context };
    start(context, device, -SECOND, SECOND, action);
}

/// Sets a timer, which fires immediately if its time has passed. Returns whether it was already set.
fn start(context: &Context, address: u64, due: i64, period: i64, action: Action) -> bool {
    let later = context.clock().due(due);
    let period = if period == 0 { 0 } else { period.max(Clock::SHORTEST_TICK) };
    let mut state = context.state();
    let timers = state.get::<Set>();
    let was_set = timers.remove(address);
    timers.issued += 1;
    let timer = SetTimer {
        address,
        due: later.unwrap_or_else(|| context.clock().last()),
        period,
        number: timers.issued,
        action,
    };
    timers.all.extend(if later.is_some() { Some(timer) } else { timer.again() });
    drop(state);
    if later.is_none() {
        fire(context, timer);
    }
    was_set
}

/// Cancels a timer. Returns whether it was set.
pub fn stop(context: &Context, address: u64) -> bool {
    context.with_state(|timers: &mut Set| timers.remove(address))
}

/// Returns the counter's reading at which the next timer fires.
pub fn next_due(nt: &Ntoskrnl) -> Option<i64> {
    nt.state().get::<Set>().all.iter().map(|one| one.due).min()
}

/// Fires the first timer that is due at `due`, and advances the clock to `due`.
pub fn fire_next(context: &Context, due: i64) {
    let timer = context.with_state(|Set { all, .. }: &mut Set| {
        let due = all.iter().enumerate().filter(|(_, timer)| timer.due <= due);
        let (first, _) = due.min_by_key(|(_, timer)| (timer.due, timer.number))?;
        let fired = all.remove(first);
        all.extend(fired.again());
        Some(fired)
    });
    let Some(timer) = timer else {
        return;
    };
    context.clock().interrupt_at(timer.due);
    context.as_identity(Identity::IDLE, || fire(context, timer));
}

/// Signals a timer and queues its DPC or callback.
fn fire(context: &Context, timer: SetTimer) {
    match timer.action {
        Action::Signal { dpc } => {
            set_state(context, timer.address, 1);
            if dpc != 0 {
                let time = context.clock().file_time(timer.due).cast_unsigned();
                dpc::queue(context, dpc, time & 0xFFFF_FFFF, time >> 32);
            }
        }
        Action::Call { callback, context: callback_context } => {
            dpc::queue_callback(context, timer.address, callback, callback_context);
        }
    }
}

fn initialize_timer(context: &Context, timer: At<KernelTimer>) {
    initialize_timer_ex(context, timer, 0);
}

fn initialize_timer_ex(context: &Context, timer: At<KernelTimer>, synchronization: u32) {
    if is_set(context, timer.0) {
        context.stop_for_misuse(&format!("for the timer at 0x{timer:016X}, which is set"));
    }
    let timer_kind =
        if synchronization == 0 { kind::NOTIFICATION_TIMER } else { kind::SYNCHRONIZATION_TIMER };
    context.write(timer.0, &KernelTimer::new_zeroed());
    // Since Windows 7, the header's size field is `Hand`, which is 0 until the timer is set.
    initialize(context, timer.0, timer_kind, 0, 0);
}

pub fn is_set(context: &Context, timer: u64) -> bool {
    context.with_state(|set: &mut Set| set.all.iter().any(|one| one.address == timer))
}

fn set_timer(context: &Context, timer: At<KernelTimer>, due: u64, dpc: At<KernelDpc>) -> bool {
    set_timer_ex(context, timer, due, 0, dpc)
}

fn set_timer_ex(
    context: &Context,
    timer: At<KernelTimer>,
    due: u64,
    period: i32,
    dpc: At<KernelDpc>,
) -> bool {
    header_of(context, timer.0, TIMERS);
    if period < 0 {
        context.stop_for_misuse(&format!("with the period {period}"));
    }
    context.update(timer.0, |value: &mut KernelTimer| {
        value.header.signal_state = 0;
        value.dpc = dpc.0;
        value.period = period.cast_unsigned();
        value.due_time = due;
    });
    let action = Action::Signal { dpc: dpc.0 };
    let period = i64::from(period) * MILLISECOND;
    start(context, timer.0, due.cast_signed(), period, action)
}

fn set_coalescable_timer(
    context: &Context,
    timer: At<KernelTimer>,
    due: u64,
    period: u32,
    _tolerance: u32,
    dpc: At<KernelDpc>,
) -> bool {
    set_timer_ex(context, timer, due, period.cast_signed(), dpc)
}

fn cancel_timer(context: &Context, timer: At<KernelTimer>) -> bool {
    header_of(context, timer.0, TIMERS);
    stop(context, timer.0)
}

fn read_timer(context: &Context, timer: At<KernelTimer>) -> bool {
    header_of(context, timer.0, TIMERS).signal_state > 0
}

/// The timers that `ExAllocateTimer` returned, with their callbacks and callback contexts.
#[derive(Default)]
pub struct Allocated(pub Vec<(u64, u64, u64)>);

/// Returns the callback and its context. Bugchecks if `ExAllocateTimer` did not return the timer.
pub fn allocated(context: &Context, timer: u64) -> (u64, u64) {
    let found = context
        .with_state(|Allocated(all)| all.iter().find(|(address, ..)| *address == timer).copied());
    let (_, callback, callback_context) =
        found.unwrap_or_else(|| context.stop_for_wrong(timer, "a timer from ExAllocateTimer"));
    (callback, callback_context)
}

pub fn set(
    context: &Context,
    timer: At<ExTimer>,
    due: i64,
    period: i64,
    _parameters: At<TimerSetParameters>,
) -> bool {
    let timer = timer.0;
    let (callback, callback_context) = allocated(context, timer);
    set_state(context, timer, 0);
    let action = if callback == 0 {
        Action::Signal { dpc: 0 }
    } else {
        Action::Call { callback, context: callback_context }
    };
    start(context, timer, due, period.max(0), action)
}

/// Removes the set timers whose address, DPC or callback `belongs` selects. Returns their
/// addresses.
pub fn take_set(context: &Context, belongs: impl Fn(u64) -> bool) -> Vec<u64> {
    let routine_of = |action: Action| match action {
        Action::Signal { dpc: 0 } => 0,
        Action::Signal { dpc } => memory::read(dpc.wrapping_add(ROUTINE)).unwrap_or(0),
        Action::Call { callback, .. } => callback,
    };
    context.with_state(|timers: &mut Set| {
        let is_taken = |one: &mut SetTimer| belongs(one.address) || belongs(routine_of(one.action));
        timers.all.extract_if(.., is_taken).map(|one| one.address).collect()
    })
}

/// The offset of a DPC's routine.
const ROUTINE: u64 = std::mem::offset_of!(crate::ground::abi::KernelDpc, deferred_routine) as u64;
