//! The cancellation of requests, and the queues for drivers with a `StartIo` routine.

use std::{
    collections::{HashMap, VecDeque},
    mem::offset_of,
    thread::ThreadId,
};

use super::irp::STACK;
use crate::{
    execution::routine::{At, Callback, routine},
    ground::{
        abi::{DeviceObject, DriverObject, Irp, IrpStack},
        arena::Block,
        irql::Irql,
        memory,
        rule::Rule,
    },
    services::ntoskrnl::context::{Context, Entries},
};

const DISPATCH: Irql = Irql::DISPATCH_LEVEL;

pub const ENTRIES: Entries = &[
    routine("IoCancelIrp", cancel),
    routine("IoAcquireCancelSpinLock", acquire),
    routine("IoReleaseCancelSpinLock", release),
    routine("IoStartPacket", start_packet),
    routine("IoStartNextPacket", start_next),
];

/// The offset of the current request in a device object.
const CURRENT: u64 = offset_of!(DeviceObject, current_irp) as u64;

/// The owner of the system's cancel spin lock.
#[derive(Default)]
struct CancelLock(Option<ThreadId>);

fn take(context: &Context) -> Irql {
    let before = context.raise_irql(DISPATCH);
    let this = context.id();
    let try_take = || context.with_state(|CancelLock(owner)| *owner.get_or_insert(this));
    if context.with_state(|CancelLock(owner)| *owner == Some(this)) {
        context.stop_call(Rule::Deadlock, "while its caller holds the cancel spin lock");
    }
    context.wait_for("the cancel spin lock, which is never released", || {
        (try_take() == this).then_some(())
    });
    before
}

fn acquire(context: &Context, irql: At<u8>) {
    let before = take(context);
    irql.write(context, before.number());
}

fn release(context: &Context, irql: u8) {
    let this = context.id();
    let released = context.state().get::<CancelLock>().0.take_if(|owner| *owner == this);
    if released.is_none() {
        context.stop_call(
            Rule::IrqlNotLowered,
            "for the cancel spin lock, which its caller does not hold",
        );
    }
    context.lower_irql(Irql::from_number(irql));
}

fn cancel(context: &Context, irp: At<Irp>) -> bool {
    cancel_request(context, irp.0)
}

/// Cancels a request. Returns `true` if its cancel routine was called.
pub fn cancel_request(context: &Context, irp: u64) -> bool {
    let before = take(context);
    // The driver's own code also exchanges the routine, without holding the lock.
    let field = |offset: usize| irp.wrapping_add(offset as u64);
    context.write(field(offset_of!(Irp, cancel)), &1_u8);
    context.write(field(offset_of!(Irp, cancel_irql)), &before.number());
    let routine = context.checked(memory::exchange(field(offset_of!(Irp, cancel_routine)), 0));
    if routine == 0 {
        release(context, before.number());
        return false;
    }
    let own = context.with_state(|OwnRoutines(all)| all.get(&routine).map(|(_, run)| *run));
    if let Some(run) = own {
        release(context, before.number());
        run(context, irp);
        return true;
    }
    let location = context.read::<Irp>(irp).tail[STACK];
    let device = context.read::<IrpStack>(location).device_object;
    // The routine releases the lock.
    context.call_driver_lowering(before, "the cancel routine", routine, [device, irp]);
    true
}

/// A cancel routine of this kernel. It is called without the lock.
pub type Cancelled = fn(&Context, u64);

/// The cancel routines of this kernel, by the addresses that represent them in requests.
#[derive(Default)]
struct OwnRoutines(HashMap<u64, (Block, Cancelled)>);

/// Sets a cancel routine of this kernel for a request.
pub fn set_own_routine(context: &Context, irp: u64, run: Cancelled) {
    let address = context.with_state(|OwnRoutines(all)| {
        let known = all.iter().find(|(_, (_, one))| std::ptr::fn_addr_eq(*one, run));
        if let Some((address, _)) = known {
            return *address;
        }
        let block = Block::zeroed(1);
        let address = block.address();
        all.insert(address, (block, run));
        address
    });
    exchange_routine(context, irp, address);
}

/// Sets a request's cancel routine, and returns the previous one (`IoSetCancelRoutine`).
pub fn exchange_routine(context: &Context, irp: u64, routine: u64) -> u64 {
    let at = irp.wrapping_add(offset_of!(Irp, cancel_routine) as u64);
    context.checked(memory::exchange(at, routine))
}

/// The requests that wait for a device's `StartIo` routine, and their keys.
#[derive(Default)]
struct Packets(VecDeque<(u64, u64, u64)>);

/// Passes a request to the driver's `StartIo` routine, or queues it if the device is busy.
fn start_packet(
    context: &Context,
    device: At<DeviceObject>,
    irp: At<Irp>,
    key: At<u32>,
    cancel: Callback,
) {
    let key = key.read_optional(context).map_or(u64::MAX, u64::from);
    if cancel != Callback(0) {
        context.update(irp.0, |value: &mut Irp| value.cancel_routine = cancel.0);
    }
    let is_idle = context.atomically(|state| {
        let mut value: DeviceObject = memory::read(device.0)?;
        let is_idle = value.current_irp == 0;
        if is_idle {
            value.current_irp = irp.0;
            memory::write(device.0.wrapping_add(CURRENT), &value.current_irp)?;
        } else {
            let packets = &mut state.get::<Packets>().0;
            let after = packets.iter().position(|(_, _, other)| *other > key);
            packets.insert(after.unwrap_or(packets.len()), (device.0, irp.0, key));
        }
        Ok(is_idle)
    });
    if is_idle {
        start(context, device.0, irp.0);
    }
}

/// Calls a driver's `StartIo` routine.
fn start(context: &Context, device: u64, irp: u64) {
    let driver = context.read::<DeviceObject>(device).driver_object;
    let routine = context.read::<DriverObject>(driver).driver_start_io;
    context.call_driver_at(DISPATCH, "StartIo", routine, [device, irp]);
}

/// Passes the next queued request to the driver's `StartIo` routine.
fn start_next(context: &Context, device: At<DeviceObject>, _cancelable: bool) {
    context.require_at_least(DISPATCH);
    let irp = context.atomically(|state| {
        let mut value: DeviceObject = memory::read(device.0)?;
        let packets = &mut state.get::<Packets>().0;
        let at = packets.iter().position(|(owner, ..)| *owner == device.0);
        let next = at.and_then(|at| packets.remove(at));
        value.current_irp = next.map_or(0, |(_, irp, _)| irp);
        memory::write(device.0.wrapping_add(CURRENT), &value.current_irp)?;
        Ok(value.current_irp)
    });
    if irp != 0 {
        start(context, device.0, irp);
    }
}
