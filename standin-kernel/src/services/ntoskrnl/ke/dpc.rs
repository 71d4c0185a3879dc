//! Deferred procedure calls. They run at `DISPATCH_LEVEL` as soon as the processor's IRQL allows;
//! threaded DPCs run at `PASSIVE_LEVEL`.

use std::collections::VecDeque;

use crate::{
    execution::{
        identity::Identity,
        routine::{At, Callback, Memory, routine},
    },
    ground::{NtStatus, abi::KernelDpc, irql::Irql, memory, opaque::ProcessorNumber},
    services::ntoskrnl::context::{Context, Entries, Ntoskrnl},
};

pub const ENTRIES: Entries = &[
    routine("KeInitializeDpc", initialize),
    routine("KeInitializeThreadedDpc", initialize_threaded),
    routine("KeInsertQueueDpc", insert),
    routine("KeRemoveQueueDpc", remove),
    routine("KeSetTargetProcessorDpc", set_target),
    routine("KeSetTargetProcessorDpcEx", set_target_ex),
    routine("KeSetImportanceDpc", set_importance),
    routine("KeFlushQueuedDpcs", flush),
];

/// The kinds of DPC objects, as stored in the first byte.
const DPC: u8 = 0x13;
const THREADED_DPC: u8 = 0x18;

/// The thread that runs threaded DPCs.
const DPC_THREAD: Identity = Identity { process: Identity::SYSTEM.process, thread: 0x14 };

/// `MediumImportance`.
const MEDIUM: u8 = 1;

/// The queued DPCs, in order.
#[derive(Default)]
struct Queue(VecDeque<Queued>);

/// A queued DPC, as of the time when it was queued.
struct Queued {
    /// The routine's name in messages.
    what: &'static str,
    address: u64,
    routine: u64,
    arguments: [u64; 4],
    is_threaded: bool,
    /// Set if the address is a DPC object's rather than a timer's.
    is_dpc: bool,
}

fn initialize(context: &Context, dpc: At<KernelDpc>, routine: Callback, deferred_context: Memory) {
    initialize_as(context, DPC, dpc.0, routine.0, deferred_context.0);
}

fn initialize_threaded(
    context: &Context,
    dpc: At<KernelDpc>,
    routine: Callback,
    deferred_context: Memory,
) {
    initialize_as(context, THREADED_DPC, dpc.0, routine.0, deferred_context.0);
}

fn initialize_as(context: &Context, kind: u8, dpc: u64, routine: u64, deferred_context: u64) {
    if is_queued(context, dpc) {
        context.stop_for_misuse(&format!("for the DPC at 0x{dpc:016X}, which is queued"));
    }
    // The other fields keep their values.
    context.update(dpc, |value: &mut KernelDpc| {
        value.kind = kind;
        value.importance = MEDIUM;
        value.number = 0;
        value.deferred_routine = routine;
        value.deferred_context = deferred_context;
        value.dpc_data = 0;
    });
}

fn is_queued(context: &Context, dpc: u64) -> bool {
    context.with_state(|Queue(all)| all.iter().any(|one| one.address == dpc))
}

/// Returns a DPC's fields. Bugchecks if it was not initialized.
fn read(context: &Context, dpc: u64) -> KernelDpc {
    let value: KernelDpc = context.read(dpc);
    if ![DPC, THREADED_DPC].contains(&value.kind) || value.deferred_routine == 0 {
        context
            .stop_for_misuse(&format!("with the DPC at 0x{dpc:016X}, which was not initialized"));
    }
    value
}

fn insert(context: &Context, dpc: At<KernelDpc>, argument_1: Memory, argument_2: Memory) -> bool {
    queue(context, dpc.0, argument_1.0, argument_2.0)
}

/// Queues a DPC, and runs it if the IRQL allows. Returns `false` if the DPC is already queued.
pub fn queue(context: &Context, dpc: u64, argument_1: u64, argument_2: u64) -> bool {
    let mut value = read(context, dpc);
    if is_queued(context, dpc) {
        return false;
    }
    value.system_argument1 = argument_1;
    value.system_argument2 = argument_2;
    // Drivers can only test whether the field is null.
    value.dpc_data = dpc;
    context.write(dpc, &value);
    let is_threaded = value.kind == THREADED_DPC;
    push(
        context,
        Queued {
            what: if is_threaded { "the threaded DPC's routine" } else { "the DPC's routine" },
            address: dpc,
            routine: value.deferred_routine,
            arguments: [dpc, value.deferred_context, argument_1, argument_2],
            is_threaded,
            is_dpc: true,
        },
    );
    true
}

/// Queues a call to a timer's callback, unless a call is already queued.
pub fn queue_callback(context: &Context, timer: u64, callback: u64, callback_context: u64) {
    if !is_queued(context, timer) {
        push(
            context,
            Queued {
                what: "the timer's callback",
                address: timer,
                routine: callback,
                arguments: [timer, callback_context, 0, 0],
                is_threaded: false,
                is_dpc: false,
            },
        );
    }
}

/// Appends a DPC to the queue. The queue runs immediately if the IRQL allows.
fn push(context: &Context, dpc: Queued) {
    context.state().get::<Queue>().0.push_back(dpc);
    run_pending(context);
}

/// Runs the queued DPCs, including the framework's DPCs, if the IRQL allows.
fn run_pending(context: &Context) {
    if context.irql() < Irql::DISPATCH_LEVEL {
        context.host().irql_lowered(context.thread(), context.call());
    }
}

fn remove(context: &Context, dpc: At<KernelDpc>) -> bool {
    read(context, dpc.0);
    let was_queued = !take_queued(context, |address, _| address == dpc.0).is_empty();
    if was_queued {
        clear(dpc.0);
    }
    was_queued
}

/// Marks a DPC as not queued. Its memory may already be freed.
fn clear(dpc: u64) {
    let at = dpc.wrapping_add(std::mem::offset_of!(KernelDpc, dpc_data) as u64);
    let _written = memory::write(at, &0_u64);
}

/// Selects a processor by number. The selection has no effect: all DPCs run on the caller's
/// processor.
fn set_target(context: &Context, dpc: At<KernelDpc>, processor: i8) {
    aim(context, dpc.0, processor.cast_unsigned().into());
}

fn aim(context: &Context, dpc: u64, number: u16) {
    let mut value = read(context, dpc);
    if number >= context.processors() {
        context.stop_for_misuse(&format!("with the processor {number}, which does not exist"));
    }
    value.number = number + 1;
    context.write(dpc, &value);
}

fn set_target_ex(
    context: &Context,
    dpc: At<KernelDpc>,
    processor: At<ProcessorNumber>,
) -> NtStatus {
    let [group, number]: [u16; 2] = context.read(processor.0);
    let number = number & 0xFF;
    if group != 0 || number >= context.processors() {
        return NtStatus::INVALID_PARAMETER;
    }
    aim(context, dpc.0, number);
    NtStatus::SUCCESS
}

fn set_importance(context: &Context, dpc: At<KernelDpc>, importance: u32) {
    let mut value = read(context, dpc.0);
    value.importance = (importance & 3) as u8;
    context.write(dpc.0, &value);
}

/// Waits until the queued DPCs have run. Below `DISPATCH_LEVEL`, they have always run.
fn flush(context: &Context) {
    run_pending(context);
}

/// Returns whether a threaded or ordinary DPC is waiting.
pub fn is_pending(nt: &Ntoskrnl, is_threaded: bool) -> bool {
    let mut state = nt.state();
    let mut queue = state.get::<Queue>().0.iter();
    queue.any(|one| one.is_threaded == is_threaded)
}

/// Runs the first queued threaded or ordinary DPC, at the current IRQL and on the current stack.
/// Returns the DPC's routine if a DPC was queued.
pub fn run_one(context: &Context, is_threaded: bool) -> Option<u64> {
    let dpc = context.with_state(|Queue(all)| {
        let at = all.iter().position(|one| one.is_threaded == is_threaded)?;
        all.remove(at)
    })?;
    if dpc.is_dpc {
        clear(dpc.address);
    }
    let call = || context.call_driver(dpc.what, dpc.routine, dpc.arguments);
    if is_threaded {
        context.as_identity(DPC_THREAD, call);
    } else {
        call();
    }
    Some(dpc.routine)
}

/// Removes the queued DPCs that `belongs` selects, given their addresses and routines.
pub fn take_queued(context: &Context, belongs: impl Fn(u64, u64) -> bool) -> Vec<u64> {
    context.with_state(|Queue(all)| {
        let (taken, left): (Vec<_>, Vec<_>) =
            std::mem::take(all).into_iter().partition(|one| belongs(one.address, one.routine));
        all.extend(left);
        taken.into_iter().map(|one| one.address).collect()
    })
}
