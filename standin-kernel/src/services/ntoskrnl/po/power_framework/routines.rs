//! The routines of the power management framework. They call the driver's callbacks at the caller's
//! IRQL or, if the driver requests it, on a kernel thread.

use std::collections::BTreeMap;

use super::{
    description::{Callbacks, describe},
    state::{Completed, Component, Device, Step},
};
use crate::{
    execution::{
        coroutine::wait_until,
        kinds::PowerHandle,
        routine::{At, Handle, Out, routine},
    },
    ground::{
        NtResult, NtStatus,
        abi::{DeviceObject, PowerDeviceV1},
        arena::Block,
        irql::Irql,
        rule::Rule,
    },
    services::ntoskrnl::{
        context::{Context, Entries},
        ke::threads::queue_body,
    },
};

pub const ENTRIES: Entries = &[
    routine("PoFxActivateComponent", activate_component),
    routine("PoFxCompleteDevicePowerNotRequired", complete_power_not_required),
    routine("PoFxCompleteIdleCondition", complete_idle_condition),
    routine("PoFxCompleteIdleState", complete_idle_state),
    routine("PoFxIdleComponent", idle_component),
    routine("PoFxRegisterDevice", register),
    routine("PoFxReportDevicePoweredOn", report_powered_on),
    routine("PoFxSetComponentLatency", set_latency),
    routine("PoFxSetComponentResidency", set_residency),
    routine("PoFxSetComponentWake", set_wake),
    routine("PoFxSetDeviceIdleTimeout", set_idle_timeout),
    routine("PoFxStartDevicePowerManagement", start),
    routine("PoFxUnregisterDevice", unregister),
];

/// `PO_FX_FLAG_BLOCKING` and `PO_FX_FLAG_ASYNC_ONLY`.
const BLOCKING: u32 = 1;
const ASYNC_ONLY: u32 = 2;

/// `INTERNAL_POWER_ERROR`.
const INTERNAL_POWER_ERROR: u32 = 0xA0;

/// The registered devices, by handle.
#[derive(Default)]
struct Devices(BTreeMap<u64, Registered>);

struct Registered {
    physical: u64,
    callbacks: Callbacks,
    device: Device,
    _memory: Block,
}

/// Registers a device with active components. If the device is already registered, bugchecks like
/// Windows.
fn register(
    context: &Context,
    physical: At<DeviceObject>,
    device: At<PowerDeviceV1>,
    handle: Out<PowerHandle>,
) -> NtResult {
    let described = (!physical.is_null()).then(|| describe(context, device.0)).flatten();
    let (callbacks, components) = described.ok_or(NtStatus::INVALID_PARAMETER)?;
    let memory = Block::zeroed(0x40);
    let address = memory.address();
    let registered = Registered {
        physical: physical.0,
        callbacks,
        device: Device::new(components),
        _memory: memory,
    };
    let is_known = context.with_state(|Devices(all)| {
        let is_known = all.values().any(|one| one.physical == physical.0);
        if !is_known {
            all.insert(address, registered);
        }
        is_known
    });
    if is_known {
        stop(context, "for a device that is registered with the power management framework");
    }
    handle.write(context, address);
    Ok(())
}

/// Bugchecks as the power management framework does. `what` completes "was called from PLACE".
fn stop(context: &Context, what: &str) -> ! {
    let sentence = context.sentence(what);
    context.bugcheck(INTERNAL_POWER_ERROR, [0; 4], sentence, &context.backtrace())
}

/// Runs `body` on a device. Bugchecks if no device has the handle.
fn with<R>(context: &Context, handle: u64, body: impl FnOnce(&mut Device) -> R) -> R {
    let result =
        context.with_state(|Devices(all)| all.get_mut(&handle).map(|one| body(&mut one.device)));
    result.unwrap_or_else(|| context.stop_for_wrong(handle, "the handle of a registered device"))
}

/// Runs `body` on a component of a device. Bugchecks if there is no component with this index.
fn with_component<R>(
    context: &Context,
    handle: u64,
    index: u32,
    body: impl FnOnce(&mut Component) -> R,
) -> R {
    let index = index as usize;
    let result = with(context, handle, |device| device.component(index).map(body));
    result.unwrap_or_else(|| {
        context.stop_for_misuse(&format!("with the component {index}, which does not exist"))
    })
}

/// Calls the callbacks that are due, until the driver must answer.
fn advance(context: &Context, handle: u64) {
    loop {
        let next = context.with_state(|Devices(all)| {
            // A callback may have unregistered the device.
            let one = all.get_mut(&handle)?;
            Some((one.device.next_step()?, one.callbacks))
        });
        let Some((step, callbacks)) = next else {
            return;
        };
        call(context, handle, step, callbacks);
    }
}

/// Calls a callback. If the driver does not have it, answers in its place.
fn call(context: &Context, handle: u64, step: Step, callbacks: Callbacks) {
    let (what, routine, arguments, answer) = match step {
        Step::Active(index) => ("active condition", callbacks.active, [index, 0], None),
        Step::Idle(index) => {
            ("idle condition", callbacks.idle, [index, 0], Some(Completed::Idle(index)))
        }
        Step::State(index, state) => {
            ("idle state", callbacks.state, [index, state], Some(Completed::State(index)))
        }
        Step::PowerRequired => {
            ("required power", callbacks.power_required, [0, 0], Some(Completed::PoweredOn))
        }
        Step::PowerNotRequired => (
            "power that is not required",
            callbacks.power_not_required,
            [0, 0],
            Some(Completed::PowerNotRequired),
        ),
    };
    if routine == 0 {
        if let Some(answer) = answer {
            with(context, handle, |device| device.answer(answer));
        }
        return;
    }
    let [one, other] = arguments.map(|one| one as u64);
    let what = format!("the power management callback for the {what}");
    context.call_driver(&what, routine, [callbacks.context, one, other]);
}

/// Accepts a driver's answer, and calls the callbacks that are then due. Like Windows, bugchecks for an
/// unrequested answer.
fn take(context: &Context, handle: u64, answer: Completed) {
    if !with(context, handle, |device| device.answer(answer)) {
        stop(context, "although no callback that it answers was called before");
    }
    advance(context, handle);
}

fn start(context: &Context, handle: Handle<PowerHandle>) {
    if !with(context, handle.0, Device::start) {
        context.stop_for_misuse("for a device whose power management has started");
    }
    advance(context, handle.0);
}

/// Checks the flags for activating or idling a component.
fn check_flags(context: &Context, flags: u32) {
    if ![0, BLOCKING, ASYNC_ONLY].contains(&flags) {
        context.stop_for_misuse(&format!(
            "with the flags 0x{flags:x}, which are not 0, PO_FX_FLAG_BLOCKING or \
             PO_FX_FLAG_ASYNC_ONLY"
        ));
    }
    if flags == BLOCKING {
        context.require_irql(Irql::APC_LEVEL, "with PO_FX_FLAG_BLOCKING");
    }
}

/// Calls the callbacks that are due, on a kernel thread if the driver requested it.
fn advance_as(context: &Context, handle: u64, flags: u32) {
    if flags != ASYNC_ONLY {
        advance(context, handle);
        return;
    }
    let routine =
        context.with_state(|Devices(all)| all.get(&handle).map_or(0, |one| one.callbacks.active));
    queue_body(context, routine, move |context| advance(context, handle));
}

fn activate_component(context: &Context, handle: Handle<PowerHandle>, component: u32, flags: u32) {
    check_flags(context, flags);
    with_component(context, handle.0, component, Component::activate);
    advance_as(context, handle.0, flags);
    let index = component as usize;
    let is_active = || with(context, handle.0, |device| device.is_active(index));
    if flags == BLOCKING && !wait_until(context, None, is_active) {
        context.stop_call(
            Rule::Deadlock,
            "with PO_FX_FLAG_BLOCKING, and no remaining work would \
                 make the component active",
        );
    }
}

fn idle_component(context: &Context, handle: Handle<PowerHandle>, component: u32, flags: u32) {
    check_flags(context, flags);
    if !with_component(context, handle.0, component, Component::idle) {
        stop(context, "for a component that was idled more often than it was activated");
    }
    advance_as(context, handle.0, flags);
}

fn complete_idle_condition(context: &Context, handle: Handle<PowerHandle>, component: u32) {
    with_component(context, handle.0, component, |_| ());
    take(context, handle.0, Completed::Idle(component as usize));
}

fn complete_idle_state(context: &Context, handle: Handle<PowerHandle>, component: u32) {
    with_component(context, handle.0, component, |_| ());
    take(context, handle.0, Completed::State(component as usize));
}

fn report_powered_on(context: &Context, handle: Handle<PowerHandle>) {
    take(context, handle.0, Completed::PoweredOn);
}

fn complete_power_not_required(context: &Context, handle: Handle<PowerHandle>) {
    take(context, handle.0, Completed::PowerNotRequired);
}

fn set_latency(context: &Context, handle: Handle<PowerHandle>, component: u32, latency: u64) {
    with_component(context, handle.0, component, |one| one.tolerate(latency));
    advance(context, handle.0);
}

fn set_residency(context: &Context, handle: Handle<PowerHandle>, component: u32, residency: u64) {
    with_component(context, handle.0, component, |one| one.expect(residency));
    advance(context, handle.0);
}

/// Sets whether a component is armed to wake the system. In the stand-in kernel, components never
/// wake it.
fn set_wake(context: &Context, handle: Handle<PowerHandle>, component: u32, _hint: bool) {
    with_component(context, handle.0, component, |_| ());
}

/// Sets the time after which an idle device loses power. In the stand-in kernel, this time never
/// passes.
fn set_idle_timeout(context: &Context, handle: Handle<PowerHandle>, _timeout: u64) {
    with(context, handle.0, |_| ());
}

fn unregister(context: &Context, handle: Handle<PowerHandle>) {
    with(context, handle.0, |_| ());
    context.state().get::<Devices>().0.remove(&handle.0);
}

/// Removes the devices whose routines belong to a driver, and returns their number.
pub fn take_left(context: &Context, belongs: impl Fn(u64) -> bool) -> usize {
    context.with_state(|Devices(all)| {
        all.extract_if(.., |_, one| one.callbacks.routines().any(&belongs)).count()
    })
}
