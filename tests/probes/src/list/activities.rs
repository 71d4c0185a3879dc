//! Probes about activity ids.

use etw_probes_interface::{ASK_IN_DRIVER_ENTRY, Ask, Reply, operation, place, routine, setter};
use etw_scenarios::HostError;

use crate::{
    answers::Values,
    probe::Run,
    stage::{Stage, THREAD_ACTIVITY, activity, activity_word, error},
};

pub const RUN: &[(&str, Run)] = &[
    ("activity-user-thread", |stage| ids_in(stage, place::CALLER)),
    ("activity-dpc", |stage| ids_in(stage, place::DPC)),
    ("activity-driver-entry", |stage| ids_in(stage, place::DRIVER_ENTRY)),
    ("activity-work-item", |stage| ids_in(stage, place::WORK_ITEM)),
    ("activity-system-thread", |stage| ids_in(stage, place::SYSTEM_THREAD)),
    ("activity-kernel-routine", kernel_routine),
    ("activity-kernel-use", |stage| {
        kernel_use(stage, &[("user", place::CALLER), ("work_item", place::WORK_ITEM)])
    }),
    ("activity-kernel-driver-entry", |stage| kernel_use(stage, &[("entry", place::DRIVER_ENTRY)])),
    ("implicit-activity-of-system-threads", implicit_in_work_item),
    ("implicit-activity-at-dispatch", implicit_at_dispatch),
];

/// Fails if the driver could not run the operation in this context.
fn available(reply: &Reply, place: u32, otherwise: &str) -> Result<(), HostError> {
    match place {
        _ if reply.available != 0 => Ok(()),
        place::SYSTEM_THREAD => {
            Err(error("this kernel does not have what the driver needs to create a system thread"))
        }
        place::DRIVER_ENTRY if reply.statuses[7] == 0 => Err(error(format!(
            "the driver was loaded without {ASK_IN_DRIVER_ENTRY} in its service's parameters: set it \
             to 1 and restart the device"
        ))),
        _ => Err(error(otherwise)),
    }
}

fn ids_in(stage: &mut Stage<'_>, place: u32) -> Result<Values, HostError> {
    let reply = stage.ask_in(place, operation::ACTIVITY, 0)?;
    available(&reply, place, "the driver could not run the operation in this context")?;
    let set = activity().to_bytes();
    let values = Values::default().with("irql", reply.irql).status("create", reply.statuses[2]);
    if place == place::DPC {
        return Ok(values);
    }
    let [get, set_status, _, get_set, create_set, ..] = reply.statuses;
    Ok(values
        .status("get", get)
        .status("set", set_status)
        .status("get_set", get_set)
        .status("create_set", create_set)
        .with("reads_back", reply.guids[1] == set))
}

/// Returns whether the kernel has `EtwActivityIdControlKernel`.
fn has_kernel_routine(stage: &mut Stage<'_>) -> Result<bool, HostError> {
    let known = stage.ask_for(operation::ROUTINE, 0, routine::WRITE_EX)?;
    if known.available == 0 {
        return Err(error("MmGetSystemRoutineAddress does not find EtwWriteEx either"));
    }
    let reply = stage.ask_for(operation::ROUTINE, 0, routine::ACTIVITY_KERNEL)?;
    Ok(reply.available != 0)
}

fn kernel_routine(stage: &mut Stage<'_>) -> Result<Values, HostError> {
    let exists = has_kernel_routine(stage)?;
    Ok(Values::default().with("exists", exists))
}

fn kernel_use(stage: &mut Stage<'_>, places: &[(&str, u32)]) -> Result<Values, HostError> {
    let mut values = Values::default();
    // The kernel may lack the routine; that is also a valid answer.
    if !has_kernel_routine(stage)? {
        return Ok(values.with("exists", false));
    }
    for (name, place) in places {
        let reply = stage.ask_in(*place, operation::ACTIVITY_KERNEL, 0)?;
        available(&reply, *place, "the driver could not run the operation in this context")?;
        values = values
            .status(&format!("{name}_get"), reply.statuses[0])
            .status(&format!("{name}_set"), reply.statuses[1])
            .with(&format!("{name}_reads_back"), reply.guids[1] == activity().to_bytes());
    }
    Ok(values)
}

/// Sets the thread's id, and writes an event without an id in this context. Returns a word that
/// describes the event's id.
fn implicit(stage: &mut Stage<'_>, place: u32, setter: u32) -> Result<&'static str, HostError> {
    let session = stage.enabled(5)?;
    let ask = Ask { operation: operation::IMPLICIT, place, form: setter, ..Ask::default() };
    let reply = stage.ask(ask, &[])?;
    let recorded = stage.stop(session)?;
    if reply.available == 0 {
        return Ok("no routine");
    }
    Ok(activity_word(recorded.events.first()))
}

fn implicit_in_work_item(stage: &mut Stage<'_>) -> Result<Values, HostError> {
    stage.register(0)?;
    let unset = implicit(stage, place::WORK_ITEM, setter::NONE)?;
    let plain = implicit(stage, place::WORK_ITEM, setter::PLAIN)?;
    let kernel = implicit(stage, place::WORK_ITEM, setter::KERNEL)?;
    Ok(Values::default()
        .with("unset", unset)
        .with("set_by_plain", plain)
        .with("set_by_kernel", kernel))
}

fn implicit_at_dispatch(stage: &mut Stage<'_>) -> Result<Values, HostError> {
    stage.register(0)?;
    stage.host.set_activity(Some(THREAD_ACTIVITY))?;
    let reply = stage.ask_in(place::RAISED, operation::IMPLICIT, setter::NONE)?;
    let on_thread = reply.thread == stage.host.thread().thread;
    let passive = implicit(stage, place::CALLER, setter::NONE)?;
    let raised = implicit(stage, place::RAISED, setter::NONE)?;
    stage.host.set_activity(None)?;
    Ok(Values::default()
        .with("on_thread", on_thread)
        .with("irql", reply.irql)
        .with("passive", passive)
        .with("raised", raised))
}
