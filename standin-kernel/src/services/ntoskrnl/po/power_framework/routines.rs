//! The routines of the power management framework. They call the driver's callbacks at the caller's IRQL,
//! and on a thread of the kernel if the driver asks for that.

use std::collections::BTreeMap;

use super::{
    description::{Callbacks, describe},
    state::{Answer, Component, Device, Step},
};
use crate::{
    execution::{
        coroutine::wait_until,
        routine::{Routine, low_half},
    },
    ground::{arena::Block, irql::Irql, rule::Rule, status::NtStatus},
    services::ntoskrnl::{
        context::{Context, Entries},
        ke::threads::queue_body,
    },
};

const PASSIVE: Irql = Irql::PASSIVE_LEVEL;
const DISPATCH: Irql = Irql::DISPATCH_LEVEL;

pub const ENTRIES: Entries = &[
    ("PoFxActivateComponent", DISPATCH, Routine::Three(activate_component)),
    ("PoFxCompleteDevicePowerNotRequired", DISPATCH, Routine::One(complete_power_not_required)),
    ("PoFxCompleteIdleCondition", DISPATCH, Routine::Two(complete_idle_condition)),
    ("PoFxCompleteIdleState", DISPATCH, Routine::Two(complete_idle_state)),
    ("PoFxIdleComponent", DISPATCH, Routine::Three(idle_component)),
    ("PoFxRegisterDevice", PASSIVE, Routine::Three(register)),
    ("PoFxReportDevicePoweredOn", DISPATCH, Routine::One(report_powered_on)),
    ("PoFxSetComponentLatency", DISPATCH, Routine::Three(set_latency)),
    ("PoFxSetComponentResidency", DISPATCH, Routine::Three(set_residency)),
    ("PoFxSetComponentWake", DISPATCH, Routine::Three(set_wake)),
    ("PoFxSetDeviceIdleTimeout", DISPATCH, Routine::Two(set_idle_timeout)),
    ("PoFxStartDevicePowerManagement", PASSIVE, Routine::One(start)),
    ("PoFxUnregisterDevice", PASSIVE, Routine::One(unregister)),
];

/// `PO_FX_FLAG_BLOCKING` and `PO_FX_FLAG_ASYNC_ONLY`.
const BLOCKING: u32 = 1;
const ASYNC_ONLY: u32 = 2;

/// `INTERNAL_POWER_ERROR`.
const INTERNAL_POWER_ERROR: u32 = 0xA0;

/// The registered devices by their handles.
#[derive(Default)]
struct Devices(BTreeMap<u64, Registered>);

struct Registered {
    physical: u64,
    callbacks: Callbacks,
    device: Device,
    _memory: Block,
}

/// Registers a device, whose components are active. Windows bugchecks for one that is registered.
fn register(context: &Context, physical: u64, device: u64, handle: u64) -> u64 {
    let described = (physical != 0).then(|| describe(context, device)).flatten();
    let Some((callbacks, components)) = described else {
        return NtStatus::INVALID_PARAMETER.to_register();
    };
    let memory = Block::zeroed(0x40);
    let address = memory.address();
    let registered =
        Registered { physical, callbacks, device: Device::new(components), _memory: memory };
    let is_known = {
        let mut state = context.state();
        let devices = &mut state.get::<Devices>().0;
        let is_known = devices.values().any(|one| one.physical == physical);
        if !is_known {
            devices.insert(address, registered);
        }
        is_known
    };
    if is_known {
        stop(context, "for a device that is registered with the power management framework");
    }
    context.write(handle, &address);
    NtStatus::SUCCESS.to_register()
}

/// Bugchecks as the power management framework does. `what` completes "was called from PLACE".
fn stop(context: &Context, what: &str) -> ! {
    let call = context.call();
    context.bugcheck(
        INTERNAL_POWER_ERROR,
        [0; 4],
        format!("{} was called from {} {what}", call.name, context.caller()),
        &context.backtrace(),
    )
}

/// Runs `body` on a device. Bugchecks if the handle is not that of one.
fn with<R>(context: &Context, handle: u64, body: impl FnOnce(&mut Device) -> R) -> R {
    let result = {
        let mut state = context.state();
        let devices = &mut state.get::<Devices>().0;
        devices.get_mut(&handle).map(|one| body(&mut one.device))
    };
    result.unwrap_or_else(|| {
        context.stop_for_misuse(&format!(
            "with 0x{handle:016X}, which is not the handle of a registered device"
        ))
    })
}

/// Runs `body` on a component of a device. Bugchecks if the device has none with the index.
fn with_component<R>(
    context: &Context,
    handle: u64,
    index: u64,
    body: impl FnOnce(&mut Component) -> R,
) -> R {
    let index = low_half(index) as usize;
    let result = with(context, handle, |device| device.component(index).map(body));
    result.unwrap_or_else(|| {
        context
            .stop_for_misuse(&format!("with the component {index}, which the device does not have"))
    })
}

/// Calls the callbacks that are due, until the driver has to answer one.
fn advance(context: &Context, handle: u64) {
    loop {
        let next = {
            let mut state = context.state();
            let device = state.get::<Devices>().0.get_mut(&handle);
            // A callback can have unregistered the device.
            device.and_then(|one| Some((one.device.next_step()?, one.callbacks)))
        };
        let Some((step, callbacks)) = next else {
            return;
        };
        call(context, handle, step, callbacks);
    }
}

/// Calls a callback. Answers for the driver if it has none.
fn call(context: &Context, handle: u64, step: Step, callbacks: Callbacks) {
    let (what, routine, arguments, answer) = match step {
        Step::Active(index) => ("active condition", callbacks.active, [index, 0], None),
        Step::Idle(index) => {
            ("idle condition", callbacks.idle, [index, 0], Some(Answer::Idle(index)))
        }
        Step::State(index, state) => {
            ("idle state", callbacks.state, [index, state], Some(Answer::State(index)))
        }
        Step::PowerRequired => {
            ("required power", callbacks.power_required, [0, 0], Some(Answer::PoweredOn))
        }
        Step::PowerNotRequired => (
            "power that is not required",
            callbacks.power_not_required,
            [0, 0],
            Some(Answer::PowerNotRequired),
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

/// Takes a driver's answer, and goes on. Windows bugchecks for one that it did not ask for.
fn take(context: &Context, handle: u64, answer: Answer) -> u64 {
    if !with(context, handle, |device| device.answer(answer)) {
        stop(context, "although no callback that it answers was called before");
    }
    advance(context, handle);
    0
}

fn start(context: &Context, handle: u64) -> u64 {
    if !with(context, handle, Device::start) {
        context.stop_for_misuse("for a device whose power management has started");
    }
    advance(context, handle);
    0
}

/// Checks the flags of an activation or its end.
fn check_flags(context: &Context, flags: u64) -> u32 {
    let flags = low_half(flags);
    if ![0, BLOCKING, ASYNC_ONLY].contains(&flags) {
        context.stop_for_misuse(&format!(
            "with the flags 0x{flags:x}, which are not 0, PO_FX_FLAG_BLOCKING or \
             PO_FX_FLAG_ASYNC_ONLY"
        ));
    }
    if flags == BLOCKING {
        context.require_irql(Irql::APC_LEVEL, "with PO_FX_FLAG_BLOCKING");
    }
    flags
}

/// Calls the callbacks that are due, on a thread of the kernel if the driver asked for that.
fn advance_as(context: &Context, handle: u64, flags: u32) {
    if flags != ASYNC_ONLY {
        advance(context, handle);
        return;
    }
    let routine = {
        let mut state = context.state();
        let device = state.get::<Devices>().0.get(&handle);
        device.map_or(0, |one| one.callbacks.active)
    };
    queue_body(context, routine, move |context| advance(context, handle));
}

fn activate_component(context: &Context, handle: u64, component: u64, flags: u64) -> u64 {
    let flags = check_flags(context, flags);
    with_component(context, handle, component, Component::activate);
    advance_as(context, handle, flags);
    let index = low_half(component) as usize;
    let is_active = || with(context, handle, |device| device.is_active(index));
    if flags == BLOCKING && !wait_until(context, None, is_active) {
        context.stop(
            Rule::Deadlock,
            format!(
                "{} was called from {} with PO_FX_FLAG_BLOCKING, and nothing is left that would \
                 make the component active",
                context.call().name,
                context.caller()
            ),
        );
    }
    0
}

fn idle_component(context: &Context, handle: u64, component: u64, flags: u64) -> u64 {
    let flags = check_flags(context, flags);
    if !with_component(context, handle, component, Component::idle) {
        stop(context, "for a component that was not activated as often as it idles");
    }
    advance_as(context, handle, flags);
    0
}

fn complete_idle_condition(context: &Context, handle: u64, component: u64) -> u64 {
    with_component(context, handle, component, |_| ());
    take(context, handle, Answer::Idle(low_half(component) as usize))
}

fn complete_idle_state(context: &Context, handle: u64, component: u64) -> u64 {
    with_component(context, handle, component, |_| ());
    take(context, handle, Answer::State(low_half(component) as usize))
}

fn report_powered_on(context: &Context, handle: u64) -> u64 {
    take(context, handle, Answer::PoweredOn)
}

fn complete_power_not_required(context: &Context, handle: u64) -> u64 {
    take(context, handle, Answer::PowerNotRequired)
}

fn set_latency(context: &Context, handle: u64, component: u64, latency: u64) -> u64 {
    with_component(context, handle, component, |one| one.tolerate(latency));
    advance(context, handle);
    0
}

fn set_residency(context: &Context, handle: u64, component: u64, residency: u64) -> u64 {
    with_component(context, handle, component, |one| one.expect(residency));
    advance(context, handle);
    0
}

/// Sets whether a component is armed to wake the system, which nothing here does.
fn set_wake(context: &Context, handle: u64, component: u64, _hint: u64) -> u64 {
    with_component(context, handle, component, |_| ());
    0
}

/// Sets the time after which an idle device loses its power. Here, none passes.
fn set_idle_timeout(context: &Context, handle: u64, _timeout: u64) -> u64 {
    with(context, handle, |_| ());
    0
}

fn unregister(context: &Context, handle: u64) -> u64 {
    with(context, handle, |_| ());
    context.state().get::<Devices>().0.remove(&handle);
    0
}

/// Takes the devices that a driver's routines belong to, and returns how many there were.
pub fn take_left(context: &Context, belongs: impl Fn(u64) -> bool) -> usize {
    let mut state = context.state();
    let devices = &mut state.get::<Devices>().0;
    let before = devices.len();
    devices.retain(|_, one| !one.callbacks.routines().any(&belongs));
    before - devices.len()
}
