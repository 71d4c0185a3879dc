//! Kernel-mode asynchronous procedure calls (APCs): driver routines that run on a thread of the
//! driver's choice.
//!
//! A special APC, which has no normal routine, runs below `APC_LEVEL` unless its thread is in a
//! guarded region. A normal APC runs at `PASSIVE_LEVEL` unless its thread is in a guarded or
//! critical region or runs another normal APC. Both can run during waits, before a thread's routine
//! starts, and after it ends. Each runs only in its environment: while its thread is attached to
//! another process, or while it is not. A user-mode APC stays queued, because no thread of the
//! stand-in kernel returns to user mode.

use std::sync::atomic::Ordering;

use super::thread_objects;
use crate::{
    execution::routine::{At, Callback, Memory, routine},
    ground::{abi::KernelApc, arena::Block, irql::Irql, memory, opaque::KernelThread},
    services::ntoskrnl::context::{Context, Entries, Ntoskrnl},
};

const APC: Irql = Irql::APC_LEVEL;

pub const ENTRIES: Entries = &[
    routine("KeInitializeApc", initialize),
    routine("KeInsertQueueApc", insert),
    routine("KeRemoveQueueApc", remove),
    routine("KeLeaveCriticalRegion", leave_region),
    routine("KeLeaveGuardedRegion", leave_guarded),
];

/// The queued APCs, oldest first.
#[derive(Default)]
struct Queue(Vec<Queued>);

#[derive(Clone, Copy)]
struct Queued {
    apc: u64,
    thread: u64,
    kind: Kind,
    /// The environment in which the APC runs, as [`thread_objects::environment`] returns it.
    environment: i8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Special,
    Normal,
    User,
}

/// `ApcObject`.
const TYPE: u8 = 18;

/// `CurrentApcEnvironment` and `InsertApcEnvironment`: the thread's environment at the
/// initialization or at the insertion of an APC.
const AT_INITIALIZATION: i32 = 2;
const AT_INSERTION: i8 = 3;

/// Changes the queue.
fn change<R>(context: &Context, change: impl FnOnce(&mut Vec<Queued>) -> R) -> R {
    let mut state = context.state();
    let Queue(all) = state.get();
    let result = change(all);
    context.ntoskrnl().queued_apcs().store(all.len(), Ordering::Relaxed);
    result
}

fn initialize(
    context: &Context,
    apc: At<KernelApc>,
    thread: At<KernelThread>,
    environment: i32,
    kernel_routine: Callback,
    rundown_routine: Callback,
    normal_routine: Callback,
    mode: i8,
    normal_context: Memory,
) {
    let current = thread_objects::environment(context, thread.0);
    let is_special = normal_routine == Callback(0);
    let value = KernelApc {
        kind: TYPE,
        size: u8::try_from(size_of::<KernelApc>()).unwrap_or(u8::MAX),
        thread: thread.0,
        reserved: [kernel_routine.0, rundown_routine.0, normal_routine.0],
        // A special APC has neither a mode nor a context.
        normal_context: if is_special { 0 } else { normal_context.0 },
        apc_state_index: match environment {
            AT_INITIALIZATION => current.cast_unsigned(),
            other => u8::try_from(other).unwrap_or(0),
        },
        apc_mode: if is_special { 0 } else { mode.cast_unsigned() },
        ..Default::default()
    };
    apc.write(context, value);
}

/// Queues an APC, unless it is already queued or its thread has ended.
fn insert(
    context: &Context,
    apc: At<KernelApc>,
    first: Memory,
    second: Memory,
    _increment: i32,
) -> bool {
    let value = apc.read(context);
    if value.kind != TYPE {
        context.stop_for_wrong(apc.0, "an APC that KeInitializeApc initialized");
    }
    let thread = value.thread;
    let has_ended = thread_objects::has_ended(context, thread)
        .unwrap_or_else(|| context.stop_for_wrong(thread, "a thread object"));
    if value.inserted != 0 || has_ended {
        return false;
    }
    let environment = match value.apc_state_index.cast_signed() {
        AT_INSERTION => thread_objects::environment(context, thread),
        other => other,
    };
    apc.write(
        context,
        KernelApc {
            system_argument1: first.0,
            system_argument2: second.0,
            apc_state_index: environment.cast_unsigned(),
            inserted: 1,
            ..value
        },
    );
    let kind = match (value.reserved[2], value.apc_mode) {
        (0, _) => Kind::Special,
        (_, 0) => Kind::Normal,
        _ => Kind::User,
    };
    change(context, |all| all.push(Queued { apc: apc.0, thread, kind, environment }));
    if thread == thread_objects::current(context).0 {
        deliver(context);
    }
    true
}

/// Removes an APC from its queue. Returns whether it was queued.
fn remove(context: &Context, apc: At<KernelApc>) -> bool {
    let removed = change(context, |all| {
        let at = all.iter().position(|one| one.apc == apc.0)?;
        Some(all.remove(at))
    });
    if removed.is_some() {
        apc.update(context, |value| value.inserted = 0);
    }
    removed.is_some()
}

/// Takes the oldest APC that a thread can run now. Special APCs come first.
fn next(context: &Context, thread: u64, runs_normal: bool) -> Option<Queued> {
    let environment = thread_objects::environment(context, thread);
    let mut kinds = [Kind::Special, Kind::Normal].into_iter().take(if runs_normal { 2 } else { 1 });
    change(context, |all| {
        let place = |kind: Kind| {
            let is_next = |one: &Queued| {
                one.thread == thread && one.kind == kind && one.environment == environment
            };
            all.iter().position(is_next)
        };
        kinds.find_map(place).map(|at| all.remove(at))
    })
}

/// Returns whether an APC is queued.
pub fn is_any(nt: &Ntoskrnl) -> bool {
    nt.queued_apcs().load(Ordering::Relaxed) > 0
}

/// Runs the current thread's APCs that can run now.
pub fn deliver(context: &Context) {
    while is_any(context.ntoskrnl()) && !thread_objects::gets_no_calls(context) {
        let thread = thread_objects::current(context);
        let is_passive = context.irql() == Irql::PASSIVE_LEVEL;
        let runs_normal = is_passive
            && !thread_objects::are_apcs_disabled(context)
            && !thread_objects::with_current(context, |thread| thread.runs_apc);
        let Some(queued) = next(context, thread.0, runs_normal) else {
            return;
        };
        run(context, queued.apc);
    }
}

fn run(context: &Context, apc: u64) {
    let value = context.update(apc, |value: &mut KernelApc| {
        value.inserted = 0;
        *value
    });
    let [kernel_routine, _, normal_routine] = value.reserved;
    let is_normal = normal_routine != 0;
    if is_normal {
        thread_objects::with_current(context, |thread| thread.runs_apc = true);
    }
    // The kernel routine can change the normal routine's arguments, and it may free the APC.
    let given = Block::zeroed(4 * 8);
    let at = given.address();
    context.write(
        at,
        &[normal_routine, value.normal_context, value.system_argument1, value.system_argument2],
    );
    let what = "the kernel routine of an APC";
    let arguments = [apc, at, at + 8, at + 16, at + 24];
    context.call_driver_at(APC, what, kernel_routine, arguments);
    let [normal_routine, argument, first, second]: [u64; 4] = context.read(at);
    if is_normal && normal_routine != 0 {
        let what = "the normal routine of an APC";
        context.call_driver(what, normal_routine, [argument, first, second]);
    }
    if is_normal {
        thread_objects::with_current(context, |thread| thread.runs_apc = false);
    }
}

/// Leaves a critical region. APCs can then run.
fn leave_region(context: &Context) {
    thread_objects::leave_region(context);
    deliver(context);
}

/// Runs `body`, in a critical region if `is_region` is set.
pub fn in_region<R>(context: &Context, is_region: bool, body: impl FnOnce() -> R) -> R {
    if !is_region {
        return body();
    }
    thread_objects::enter_region(context);
    let result = body();
    leave_region(context);
    result
}

/// Leaves a guarded region. APCs can then run.
fn leave_guarded(context: &Context) {
    thread_objects::leave_guarded(context);
    deliver(context);
}

/// Removes the APCs of the current thread, which is ending, and calls their rundown routines.
pub fn run_down(context: &Context) {
    let thread = thread_objects::current(context);
    let left =
        change(context, |all| all.extract_if(.., |one| one.thread == thread.0).collect::<Vec<_>>());
    for one in left {
        let value = context.update(one.apc, |value: &mut KernelApc| {
            value.inserted = 0;
            *value
        });
        if value.reserved[1] != 0 {
            context.call_driver("the rundown routine of an APC", value.reserved[1], [one.apc]);
        }
    }
}

/// Removes the APCs with routines that `belongs` selects. Returns their number.
pub fn take_left(context: &Context, belongs: impl Fn(u64) -> bool) -> usize {
    let all = context.state().get::<Queue>().0.clone();
    let is_left = |one: &Queued| {
        let value = memory::read::<KernelApc>(one.apc);
        belongs(one.apc) || value.is_ok_and(|value| value.reserved.iter().any(|it| belongs(*it)))
    };
    let left: Vec<u64> = all.iter().filter(|one| is_left(one)).map(|one| one.apc).collect();
    change(context, |all| all.retain(|one| !left.contains(&one.apc)));
    left.len()
}
