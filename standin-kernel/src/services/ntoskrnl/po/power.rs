//! The power manager: drivers' power requests, and system sleep.

use std::collections::HashMap;

use crate::{
    execution::{
        coroutine::wait_until,
        routine::{At, Callback, Memory, routine},
    },
    ground::{
        NtResult, NtStatus,
        abi::{DeviceObject, Irp},
        irql::Irql,
        rule::Rule,
    },
    services::{
        managers::nodes::Stage,
        ntoskrnl::{
            context::{Context, Entries},
            io::{
                devices::must_be_device,
                irp::call_driver,
                plug_and_play::{
                    minor::{POWER, power},
                    sent::{Outcome, Request, allocate, send},
                },
                power_states as states,
            },
            ke::threads,
            live_irps,
        },
    },
};

pub const ENTRIES: Entries = &[
    // Since Windows Vista, `IoCallDriver` can also send power requests.
    routine("PoCallDriver", call_driver),
    routine("PoStartNextPowerIrp", start_next_request),
    routine("PoSetPowerState", set_state),
    routine("PoRequestPowerIrp", request),
];

/// `PowerSystemWorking` and `PowerSystemSleeping3`.
const WORKING: u32 = 1;
const SLEEPING: u32 = 4;
/// `PowerActionNone` and `PowerActionSleep`.
const NO_ACTION: u64 = 0;
const SLEEP: u64 = 2;

/// `STATUS_INVALID_PARAMETER_2`.
const INVALID_PARAMETER_2: NtStatus = NtStatus::from_bits(0xC000_00F0);

/// Signals readiness for the next power request. It has had no effect since Windows Vista.
fn start_next_request(context: &Context, irp: At<Irp>) {
    if live_irps::find(context, irp.0).is_none() {
        context.stop_for_wrong(irp.0, "a request");
    }
}

/// Stores a power state of a device. Returns the previous state.
fn set_state(context: &Context, device: At<DeviceObject>, kind: u32, state: u32) -> u32 {
    must_be_device(context, device.0);
    states::set(context, device.0, kind, state)
}

/// A driver's power request.
#[derive(Clone, Copy)]
struct Wanted {
    device: u64,
    minor: u8,
    state: u32,
    completion: u64,
    context: u64,
}

/// The drivers' power requests in progress, by address.
#[derive(Default)]
struct UnderWay(HashMap<u64, Wanted>);

/// Allocates a power request for a device, and sends it to the top of the device's stack.
fn request(
    context: &Context,
    device: At<DeviceObject>,
    minor: u8,
    state: u32,
    completion: Callback,
    completion_context: Memory,
    result: At<u64>,
) -> NtResult<NtStatus> {
    must_be_device(context, device.0);
    if !matches!(minor, power::WAIT_WAKE | power::SET | power::QUERY) {
        return Err(INVALID_PARAMETER_2);
    }
    let wanted = Wanted {
        device: device.0,
        minor,
        state,
        completion: completion.0,
        context: completion_context.0,
    };
    // A wake request contains the system state, which comes first.
    let parameters = if minor == power::WAIT_WAKE {
        [u64::from(state), 0, 0, 0]
    } else {
        [0, u64::from(states::DEVICE), u64::from(state), NO_ACTION]
    };
    let sent = Request { major: POWER, minor, parameters, information: 0 };
    let (irp, top) = allocate(context, device.0, &sent, ended);
    context.state().get::<UnderWay>().0.insert(irp, wanted);
    result.write_optional(context, irp);
    // Drivers handle most power requests at PASSIVE_LEVEL.
    if context.irql() == Irql::PASSIVE_LEVEL {
        call_driver(context, At::new(top), At::new(irp));
    } else {
        let routine = context.call().return_address;
        threads::queue_body(context, routine, move |context| {
            call_driver(context, At::new(top), At::new(irp));
        });
    }
    Ok(NtStatus::PENDING)
}

/// Calls the routine that a driver specified for the completion of its power request.
fn ended(context: &Context, irp: u64) {
    let wanted = context.with_state(|UnderWay(all)| all.remove(&irp));
    let Some(wanted) = wanted.filter(|wanted| wanted.completion != 0) else {
        return;
    };
    let status = irp.wrapping_add(std::mem::offset_of!(Irp, io_status) as u64);
    context.call_driver(
        "the completion routine of PoRequestPowerIrp",
        wanted.completion,
        [wanted.device, u64::from(wanted.minor), u64::from(wanted.state), wanted.context, status],
    );
}

/// Waits for the power requests that drivers have sent. Bugchecks if one is not completed.
fn finish(context: &Context) {
    let is_over = || {
        context.with_state(|UnderWay(all)| all.values().all(|one| one.minor == power::WAIT_WAKE))
    };
    if !wait_until(context, None, is_over) {
        context.stop(
            Rule::RequestNotCompleted,
            "a driver leaves a power request from PoRequestPowerIrp pending, and no remaining work \
             completes it"
                .to_owned(),
        );
    }
}

/// Puts the system to sleep and wakes it up again, from the perspective of a device's drivers. The power
/// policy owner takes the device to a lower state and back.
pub fn cycle(context: &Context, physical: u64) -> NtStatus {
    if context.nodes().stage(physical) != Some(Stage::Started) {
        return NtStatus::NO_SUCH_DEVICE;
    }
    let asked = system(context, physical, power::QUERY, SLEEPING);
    if asked.is_success() {
        system(context, physical, power::SET, SLEEPING);
    }
    let woken = system(context, physical, power::SET, WORKING);
    if asked.is_success() { woken } else { asked }
}

/// Sends a system power request to a device's stack.
fn system(context: &Context, physical: u64, minor: u8, state: u32) -> NtStatus {
    let action = if state == WORKING { NO_ACTION } else { SLEEP };
    let request = Request {
        major: POWER,
        minor,
        parameters: [0, u64::from(states::SYSTEM), u64::from(state), action],
        information: 0,
    };
    let Outcome { status, .. } = send(context, physical, &request);
    finish(context);
    status
}
