//! Removal of the devices of WDM drivers: orderly, by surprise, or after a failure.

use super::{
    minor::pnp,
    queries::{REMOVAL_RELATIONS, query_relations},
    sent::{Outcome, Request, send},
};
use crate::{
    execution::strings::read_unicode_string,
    ground::{
        NtStatus,
        abi::{DeviceObject, DriverObject},
        rule::Rule,
    },
    services::{
        managers::nodes::Stage,
        ntoskrnl::{
            context::Context,
            io::{
                devices::{self, Left},
                power_states as states, stacks,
            },
        },
    },
};

/// The reason that an orderly removal or a stop of a device was refused.
#[derive(Debug, thiserror::Error)]
pub enum Veto {
    /// A process has a file open on the device. The Plug and Play manager does not close the file.
    #[error("a file is open on it; close the file first, or remove the device by surprise")]
    OpenFile,
    /// A driver refuses.
    #[error("a driver completed {0} with {1}")]
    Driver(&'static str, NtStatus),
}

/// Asks the drivers whether a device may be removed.
pub fn query_remove(context: &Context, physical: u64) -> Result<(), Veto> {
    if context.nodes().stage(physical) != Some(Stage::Started) {
        return Ok(());
    }
    query_relations(context, physical, REMOVAL_RELATIONS);
    let Outcome { status, .. } = send(context, physical, &Request::pnp(pnp::QUERY_REMOVE));
    let veto = if !status.is_success() {
        Veto::Driver("IRP_MN_QUERY_REMOVE_DEVICE", status)
    } else if devices::files_of(context, physical) > 0 {
        Veto::OpenFile
    } else {
        return Ok(());
    };
    send(context, physical, &Request::pnp(pnp::CANCEL_REMOVE));
    Err(veto)
}

/// Returns whether the hardware of a device is gone.
fn is_gone(context: &Context, physical: u64) -> bool {
    matches!(context.nodes().stage(physical), None | Some(Stage::Gone))
}

/// Removes a device as if a user requested it. Does nothing if the device is already gone. A driver
/// can refuse the removal.
pub fn remove(context: &Context, physical: u64) -> Result<(), Veto> {
    if is_gone(context, physical) {
        return Ok(());
    }
    query_remove(context, physical)?;
    tear_down(context, physical);
    forget(context, physical);
    Ok(())
}

/// Removes a device's hardware by surprise. The drivers receive the remove request once no file is
/// open.
pub fn surprise_remove(context: &Context, physical: u64) {
    if is_gone(context, physical) {
        return;
    }
    context.nodes().disable_interfaces(physical);
    send(context, physical, &Request::pnp(pnp::SURPRISE_REMOVAL));
    context.nodes().set_stage(physical, Stage::Gone);
    finish_removals(context);
}

/// Removes a device that its drivers report as failed.
pub fn fail(context: &Context, physical: u64) {
    context.nodes().disable_interfaces(physical);
    send(context, physical, &Request::pnp(pnp::SURPRISE_REMOVAL));
    tear_down(context, physical);
}

/// Removes the devices whose hardware is gone and whose last file is closed.
pub fn finish_removals(context: &Context) {
    for physical in context.nodes().gone() {
        if devices::files_of(context, physical) == 0 {
            tear_down(context, physical);
            forget(context, physical);
        }
    }
}

/// Makes the drivers of a device remove it: they detach and delete their device objects.
pub fn tear_down(context: &Context, physical: u64) {
    let stack = stacks::stack_above(context, physical);
    let above = stack.get(1..).unwrap_or_default();
    context.nodes().disable_interfaces(physical);
    if !above.is_empty() {
        send(context, physical, &Request::pnp(pnp::REMOVE));
    }
    context.nodes().set_stage(physical, Stage::Added);
    for device in above {
        let what = match devices::left(context, *device) {
            Some(Left::Attached) => "detaching its device object from the stack (IoDetachDevice)",
            Some(Left::Detached) => "deleting its device object (IoDeleteDevice)",
            None => continue,
        };
        context.stop(
            Rule::ObjectMisused,
            format!(
                "a driver handled IRP_MN_REMOVE_DEVICE without {what}: 0x{device:016X} of {}",
                driver_name(context, *device)
            ),
        );
    }
}

fn driver_name(context: &Context, device: u64) -> String {
    let driver = context.read::<DeviceObject>(device).driver_object;
    let offset = std::mem::offset_of!(DriverObject, driver_name) as u64;
    read_unicode_string(context, driver.wrapping_add(offset))
}

/// Removes a device that no longer has drivers.
pub fn forget(context: &Context, physical: u64) {
    context.nodes().forget(physical);
    states::forget(context, physical);
    devices::discard(context, physical);
}
