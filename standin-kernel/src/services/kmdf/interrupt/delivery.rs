//! Connects interrupts to their resources, and delivers them to the driver.

use super::{
    lock::{acquire, release},
    state::{InterruptData, Line},
};
use crate::{
    ground::{NtResult, NtStatus, irql::Irql},
    services::kmdf::{
        deferred::timer::queue_dpc,
        resource_lists::{Resource, Resources},
        state::{device::DeviceData, framework::Context},
        synchronization::presentation,
        work::{Work, WorkKind, queue_work},
    },
};

/// Returns the interrupts of a device, oldest first.
pub fn of_device(context: &Context, device: u64) -> Vec<u64> {
    let mut framework = context.framework();
    let mut interrupts = framework.all::<InterruptData>();
    interrupts.retain(|interrupt| {
        framework.get::<InterruptData>(*interrupt).is_ok_and(|data| data.device == device)
    });
    interrupts
}

/// Assigns resources to the interrupts of a starting device: first to the interrupts for which the
/// driver chose a resource, then to the others in order.
pub fn assign(context: &Context, device: u64) {
    let given =
        context.with::<DeviceData, _>(device, |device| device.part::<Resources>().given.clone());
    let mut free: Vec<(usize, Line)> = given
        .iter()
        .enumerate()
        .flat_map(|(place, resource)| lines(*resource).map(move |line| (place, line)))
        .collect();
    let interrupts = of_device(context, device);
    for wants_chosen in [true, false] {
        for interrupt in &interrupts {
            context.with::<InterruptData, _>(*interrupt, |data| {
                if data.line.is_some() || data.chosen.is_some() != wants_chosen {
                    return;
                }
                let found = free
                    .iter()
                    .position(|(place, _)| data.chosen.is_none_or(|chosen| chosen == *place));
                data.line = found.map(|found| free.remove(found).1);
            });
        }
    }
}

/// Returns the interrupts that a resource provides.
fn lines(resource: Resource) -> impl Iterator<Item = Line> {
    (0..u32::from(resource.interrupts())).map(move |message| Line {
        vector: resource.vector() + message,
        message,
        is_message: resource.is_message(),
    })
}

/// Connects and enables the interrupts of a device that has entered D0.
pub fn connect(context: &Context, device: u64) -> NtResult {
    for interrupt in of_device(context, device) {
        let has_line = context.with::<InterruptData, _>(interrupt, |data| data.line.is_some());
        if has_line {
            enable(context, interrupt)?;
        }
    }
    Ok(())
}

/// Enables an interrupt: the driver programs its device while holding the interrupt's lock.
pub fn enable(context: &Context, interrupt: u64) -> NtResult {
    let (callback, device) = context.with::<InterruptData, _>(interrupt, |data| {
        data.is_connected = true;
        (data.config.evt_interrupt_enable, data.device)
    });
    call_locked(context, interrupt, "EvtInterruptEnable", callback, device).inspect_err(|_| {
        context.with::<InterruptData, _>(interrupt, |data| data.is_connected = false);
    })
}

/// Disables and disconnects the interrupts of a device that is leaving D0.
pub fn disconnect(context: &Context, device: u64) {
    for interrupt in of_device(context, device).into_iter().rev() {
        if context.with::<InterruptData, _>(interrupt, |data| data.is_connected) {
            disable(context, interrupt);
        }
    }
}

/// Disables an interrupt. The status that the driver returns has no effect.
pub fn disable(context: &Context, interrupt: u64) {
    let (callback, device) = context.with::<InterruptData, _>(interrupt, |data| {
        data.is_connected = false;
        (data.config.evt_interrupt_disable, data.device)
    });
    let _ = call_locked(context, interrupt, "EvtInterruptDisable", callback, device);
}

/// Calls a callback with the interrupt's lock held, if the driver provides it.
fn call_locked(
    context: &Context,
    interrupt: u64,
    name: &str,
    callback: u64,
    argument: u64,
) -> NtResult {
    if callback == 0 {
        return Ok(());
    }
    acquire(context, interrupt);
    let status = context.call_driver(name, callback, [interrupt, argument]);
    release(context, interrupt);
    let status = NtStatus::from_register(status);
    status.is_success().then_some(()).ok_or(status)
}

/// Calls a driver routine with the interrupt's lock held, and returns its `BOOLEAN` result.
pub fn synchronize(context: &Context, interrupt: u64, callback: u64, argument: u64) -> bool {
    acquire(context, interrupt);
    let result = context.call_driver("EvtInterruptSynchronize", callback, [interrupt, argument]);
    release(context, interrupt);
    result & 0xFF != 0
}

/// Raises an interrupt of a device. `number` is the interrupt's index in creation order. Returns
/// whether the driver claims the interrupt.
pub fn raise(context: &Context, device: u64, number: usize) -> NtResult<bool> {
    if !context.framework().exists(device) {
        return Err(NtStatus::NO_SUCH_DEVICE);
    }
    let interrupts = of_device(context, device);
    let interrupt = interrupts.get(number).copied().ok_or(NtStatus::INVALID_PARAMETER)?;
    let (routine, line) = context.with::<InterruptData, _>(interrupt, |data| {
        let line = data.line.filter(|_| data.is_connected);
        (data.config.evt_interrupt_isr, line)
    });
    let line = line.ok_or(NtStatus::INVALID_DEVICE_STATE)?;
    acquire(context, interrupt);
    let claimed =
        context.call_driver("EvtInterruptIsr", routine, [interrupt, u64::from(line.message)]);
    release(context, interrupt);
    Ok(claimed & 0xFF != 0)
}

/// Queues the interrupt's DPC. Returns `false` if the DPC was already queued.
pub fn queue_interrupt_dpc(context: &Context, interrupt: u64) -> bool {
    queue_dpc(context, interrupt, run_dpc)
}

fn run_dpc(context: &Context, interrupt: u64) {
    let found = context
        .framework()
        .get::<InterruptData>(interrupt)
        .map(|data| (data.config.evt_interrupt_dpc, data.associated, data.serialization));
    if let Ok((callback, associated, lock)) = found {
        let before = context.raise_irql(Irql::DISPATCH_LEVEL);
        presentation::locked(context, lock, || {
            context.call_driver("EvtInterruptDpc", callback, [interrupt, associated])
        });
        context.lower_irql(before);
    }
}

/// Queues the interrupt's work item for a system thread. Returns `false` if the work item was
/// already queued.
pub fn queue_interrupt_work(context: &Context, interrupt: u64) -> bool {
    let routine =
        context.with::<InterruptData, _>(interrupt, |data| data.config.evt_interrupt_work_item);
    queue_work(
        context,
        Work { kind: WorkKind::Interrupt, routine, handle: interrupt, run: run_work },
    )
}

fn run_work(context: &Context, interrupt: u64) {
    let found = context
        .framework()
        .get::<InterruptData>(interrupt)
        .map(|data| (data.config.evt_interrupt_work_item, data.associated, data.serialization));
    if let Ok((callback, associated, lock)) = found {
        presentation::locked(context, lock, || {
            context.call_driver("EvtInterruptWorkItem", callback, [interrupt, associated])
        });
    }
}
