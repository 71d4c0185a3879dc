//! Deferred procedure calls. They run at `DISPATCH_LEVEL` as soon as the IRQL of the processor allows,
//! threaded ones at `PASSIVE_LEVEL`.

use std::collections::VecDeque;

use super::context::{Context, Entries};
use crate::{
    execution::{identity::Identity, routine::Routine},
    ground::{abi::KernelDpc, irql::Irql, memory, status::NtStatus},
};

const HIGH: Irql = Irql::HIGH_LEVEL;

pub const ENTRIES: Entries = &[
    ("KeInitializeDpc", HIGH, Routine::Three(initialize)),
    (
        "KeInitializeThreadedDpc",
        HIGH,
        Routine::Three(initialize_threaded),
    ),
    ("KeInsertQueueDpc", HIGH, Routine::Three(insert)),
    ("KeRemoveQueueDpc", HIGH, Routine::One(remove)),
    ("KeSetTargetProcessorDpc", HIGH, Routine::Two(set_target)),
    (
        "KeSetTargetProcessorDpcEx",
        HIGH,
        Routine::Two(set_target_ex),
    ),
    ("KeSetImportanceDpc", HIGH, Routine::Two(set_importance)),
    ("KeFlushQueuedDpcs", Irql::APC_LEVEL, Routine::Zero(flush)),
];

/// The kinds of DPC objects, as the first byte has them.
const DPC: u8 = 0x13;
const THREADED_DPC: u8 = 0x18;

/// The thread that runs threaded DPCs.
const DPC_THREAD: Identity = Identity {
    process: Identity::SYSTEM.process,
    thread: 0x14,
};

/// `MediumImportance`.
const MEDIUM: u8 = 1;

/// The queued DPCs, in their order.
#[derive(Default)]
struct Queue(VecDeque<Queued>);

/// A queued DPC, as it was when it was queued.
struct Queued {
    address: u64,
    routine: u64,
    arguments: [u64; 4],
    is_threaded: bool,
}

fn initialize(context: &Context, dpc: u64, routine: u64, its_context: u64) -> u64 {
    initialize_as(context, DPC, dpc, routine, its_context)
}

fn initialize_threaded(context: &Context, dpc: u64, routine: u64, its_context: u64) -> u64 {
    initialize_as(context, THREADED_DPC, dpc, routine, its_context)
}

fn initialize_as(context: &Context, kind: u8, dpc: u64, routine: u64, its_context: u64) -> u64 {
    if is_queued(context, dpc) {
        context.stop_for_misuse(&format!("for the DPC at 0x{dpc:016X}, which is queued"));
    }
    let value = KernelDpc {
        kind,
        importance: MEDIUM,
        number: 0,
        reserved: 0,
        list_entry: 0,
        processor_history: 0,
        routine,
        context: its_context,
        argument_1: 0,
        argument_2: 0,
        data: 0,
    };
    context.write(dpc, &value);
    0
}

fn is_queued(context: &Context, dpc: u64) -> bool {
    let mut state = context.state();
    state.get::<Queue>().0.iter().any(|one| one.address == dpc)
}

/// Returns a DPC's fields. Bugchecks if it was not initialized.
fn read(context: &Context, dpc: u64) -> KernelDpc {
    let value: KernelDpc = context.read(dpc);
    if ![DPC, THREADED_DPC].contains(&value.kind) || value.routine == 0 {
        context.stop_for_misuse(&format!(
            "with the DPC at 0x{dpc:016X}, which was not initialized"
        ));
    }
    value
}

fn insert(context: &Context, dpc: u64, argument_1: u64, argument_2: u64) -> u64 {
    u64::from(queue(context, dpc, argument_1, argument_2))
}

/// Queues a DPC, and runs it if the IRQL allows. Returns `false` if it is queued already.
pub fn queue(context: &Context, dpc: u64, argument_1: u64, argument_2: u64) -> bool {
    let mut value = read(context, dpc);
    if is_queued(context, dpc) {
        return false;
    }
    value.argument_1 = argument_1;
    value.argument_2 = argument_2;
    // Drivers may only test that it is not null.
    value.data = dpc;
    context.write(dpc, &value);
    context.state().get::<Queue>().0.push_back(Queued {
        address: dpc,
        routine: value.routine,
        arguments: [dpc, value.context, argument_1, argument_2],
        is_threaded: value.kind == THREADED_DPC,
    });
    if context.irql() < Irql::DISPATCH_LEVEL {
        run_dpcs(context);
    }
    true
}

fn remove(context: &Context, dpc: u64) -> u64 {
    read(context, dpc);
    let was_queued = is_queued(context, dpc);
    let mut state = context.state();
    state.get::<Queue>().0.retain(|one| one.address != dpc);
    drop(state);
    if was_queued {
        clear(dpc);
    }
    u64::from(was_queued)
}

/// Marks a DPC as not queued. Its memory may be gone by then.
fn clear(dpc: u64) {
    let at = dpc.wrapping_add(std::mem::offset_of!(KernelDpc, data) as u64);
    let _written = memory::write(at, &0_u64);
}

/// Chooses the processor, by its number. All DPCs run on the caller's.
fn set_target(context: &Context, dpc: u64, processor: u64) -> u64 {
    let mut value = read(context, dpc);
    // The number is a signed byte.
    let number = (processor & 0xFF) as u16;
    if number >= context.processors() {
        context.stop_for_misuse(&format!(
            "with the processor {number}, which does not exist"
        ));
    }
    value.number = number + 1;
    context.write(dpc, &value);
    0
}

fn set_target_ex(context: &Context, dpc: u64, processor: u64) -> u64 {
    let [group, number]: [u16; 2] = context.read(processor);
    let number = number & 0xFF;
    if group != 0 || number >= context.processors() {
        return NtStatus::INVALID_PARAMETER.to_register();
    }
    set_target(context, dpc, u64::from(number));
    NtStatus::SUCCESS.to_register()
}

fn set_importance(context: &Context, dpc: u64, importance: u64) -> u64 {
    let mut value = read(context, dpc);
    value.importance = (importance & 3) as u8;
    context.write(dpc, &value);
    0
}

/// Waits until the queued DPCs have run, which they have below `DISPATCH_LEVEL`.
fn flush(context: &Context) -> u64 {
    run_dpcs(context);
    0
}

/// Runs the queued DPCs that the IRQL allows, in their order.
pub fn run_dpcs(context: &Context) {
    while let Some(dpc) = take_next(context) {
        clear(dpc.address);
        if dpc.is_threaded {
            context.as_identity(DPC_THREAD, || {
                context.call_driver("the threaded DPC's routine", dpc.routine, dpc.arguments);
            });
        } else {
            let irql = Irql::DISPATCH_LEVEL;
            context.call_driver_at(irql, "the DPC's routine", dpc.routine, dpc.arguments);
        }
    }
}

fn take_next(context: &Context) -> Option<Queued> {
    let irql = context.irql();
    let mut state = context.state();
    let queue = &mut state.get::<Queue>().0;
    let can_run = |one: &Queued| {
        irql < Irql::DISPATCH_LEVEL && (!one.is_threaded || irql == Irql::PASSIVE_LEVEL)
    };
    let at = queue.iter().position(can_run)?;
    queue.remove(at)
}

/// Takes the queued DPCs that `belongs` selects by their address and routine out of the queue.
pub fn take_queued(context: &Context, belongs: impl Fn(u64, u64) -> bool) -> Vec<u64> {
    let mut state = context.state();
    let queue = &mut state.get::<Queue>().0;
    let (taken, left): (Vec<_>, Vec<_>) = std::mem::take(queue)
        .into_iter()
        .partition(|one| belongs(one.address, one.routine));
    queue.extend(left);
    taken.into_iter().map(|one| one.address).collect()
}
