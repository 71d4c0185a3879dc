//! The life cycle of a WDM driver's device: the requests that the Plug and Play manager sends to
//! the device's stack, starting with `AddDevice`.

use super::{
    bus,
    minor::pnp,
    queries::{FAILED, query_relations, query_started, query_state},
    removal::{Veto, fail, forget, query_remove, surprise_remove, tear_down},
    sent::{Outcome, Request, send},
};
use crate::{
    ground::{
        NtResult, NtStatus,
        abi::{DeviceObject, DriverExtension, DriverObject},
        rule::Rule,
    },
    services::{
        managers::{
            device_properties::{CLASS, Identity},
            nodes::{Node, Stage},
            registry::{
                paths::{hardware_path, software_path},
                value::RegistryValue,
            },
        },
        ntoskrnl::{
            context::Context,
            io::{devices, stacks},
        },
    },
};

/// The properties that a test chooses for a new device.
#[derive(Clone, Default)]
pub struct Offer {
    /// The device's hardware ids.
    pub hardware_ids: Vec<String>,
    /// Properties that override others, by `DEVICE_REGISTRY_PROPERTY`.
    pub properties: Vec<(u32, String)>,
    /// The values of the device's hardware key and software key.
    pub hardware_values: Vec<(String, RegistryValue)>,
    pub software_values: Vec<(String, RegistryValue)>,
}

/// Returns a driver's `AddDevice` routine, or 0.
pub fn add_device_routine(context: &Context, driver: u64) -> u64 {
    let extension = context.read::<DriverObject>(driver).driver_extension;
    context.read::<DriverExtension>(extension).add_device
}

/// Adds a device to the bus, makes the driver add its device to the stack, and starts the device.
/// Returns the physical `DEVICE_OBJECT`.
pub fn add(context: &Context, driver: u64, service: &str, offer: Offer) -> NtResult<u64> {
    let number = context.nodes().next_number();
    let (physical, physical_name) = bus::create(context)?;
    let hardware_ids = if offer.hardware_ids.is_empty() {
        vec![format!(r"Root\{service}")]
    } else {
        offer.hardware_ids
    };
    let identity = Identity {
        instance: format!(r"ROOT\{}\{number:04}", service.to_uppercase()),
        driver_key: format!(r"{}\{number:04}", CLASS.1),
        hardware_ids,
        description: service.to_owned(),
        physical_name,
        ..Identity::default()
    };
    let hardware = hardware_path(&identity.instance);
    let software = software_path(&identity.driver_key);
    let mut node = Node::new(identity, driver);
    node.properties = offer.properties;
    context.nodes().add(physical, node);
    let registry = context.registry();
    let set = |path: &str, values: Vec<(String, RegistryValue)>| {
        let mut values = values.into_iter();
        values.try_for_each(|(name, value)| registry.set_at(path, &name, value))
    };
    let added = set(&hardware, offer.hardware_values)
        .and_then(|()| set(&software, offer.software_values))
        .and_then(|()| build(context, physical));
    added.map(|()| physical).inspect_err(|_| forget(context, physical))
}

/// Adds a driver above a device's other drivers. As on Windows, the device's stack is removed and
/// rebuilt with all drivers.
pub fn add_filter(context: &Context, physical: u64, driver: u64) -> Result<(), FilterError> {
    query_remove(context, physical)?;
    tear_down(context, physical);
    let drivers = |change: &dyn Fn(&mut Vec<u64>)| {
        context.nodes().with(physical, |node| change(&mut node.drivers));
    };
    drivers(&|all| all.push(driver));
    let Err(status) = build(context, physical) else {
        return Ok(());
    };
    drivers(&|all| {
        all.pop();
    });
    build(context, physical).inspect_err(|_| forget(context, physical))?;
    Err(status.into())
}

/// The reason that a driver was not added above a device.
#[derive(Debug, thiserror::Error)]
pub enum FilterError {
    /// The stack is in use.
    #[error(transparent)]
    Vetoed(#[from] Veto),
    /// The stack could not be built or started with the driver.
    #[error("{0}")]
    Failed(NtStatus),
}

impl From<NtStatus> for FilterError {
    fn from(status: NtStatus) -> Self {
        Self::Failed(status)
    }
}

/// Makes each driver of a device, from the lowest up, add its device to the stack, and starts the
/// device. Reverts these steps if one fails.
fn build(context: &Context, physical: u64) -> NtResult {
    let drivers = context.nodes().with(physical, |node| {
        node.stage = Stage::Added;
        node.drivers.clone()
    });
    for driver in drivers.unwrap_or_default() {
        let below = stacks::top_of(context, physical);
        let added = add_by(context, driver, physical);
        check_added(context, below, added);
        if !added.is_success() {
            tear_down(context, physical);
            return Err(added);
        }
    }
    start(context, physical).inspect_err(|_| tear_down(context, physical))?;
    let state = query_started(context, physical);
    if state & FAILED != 0 {
        fail(context, physical);
        return Err(NtStatus::UNSUCCESSFUL);
    }
    Ok(())
}

/// Calls a driver's `AddDevice` routine.
fn add_by(context: &Context, driver: u64, physical: u64) -> NtStatus {
    let routine = add_device_routine(context, driver);
    if routine == 0 {
        return NtStatus::INVALID_DEVICE_REQUEST;
    }
    NtStatus::from_register(context.call_driver("AddDevice", routine, [driver, physical]))
}

/// Bugchecks if `AddDevice` has left its device, which is above `below`, in an invalid state.
fn check_added(context: &Context, below: u64, added: NtStatus) {
    let stack = stacks::stack_above(context, below);
    let Some(device) = stack.get(1).copied() else {
        return;
    };
    if !added.is_success() {
        context.stop(
            Rule::ObjectMisused,
            format!(
                "AddDevice returned {added} and left its device object 0x{device:016X} attached; a \
                 routine that fails must detach and delete its device"
            ),
        );
    }
    let flags = context.read::<DeviceObject>(device).flags;
    if flags & devices::flag::INITIALIZING != 0 {
        context.stop(
            Rule::ObjectMisused,
            format!(
                "AddDevice returned without clearing DO_DEVICE_INITIALIZING in the flags of its device \
                 object 0x{device:016X}, so that no driver can attach above it"
            ),
        );
    }
}

fn start(context: &Context, physical: u64) -> NtResult {
    let Outcome { status, .. } = send(context, physical, &Request::pnp(pnp::START));
    if status.is_success() {
        context.nodes().set_stage(physical, Stage::Started);
        Ok(())
    } else {
        Err(status)
    }
}

/// Stops a device and starts it again, as the Plug and Play manager does to rebalance resources. A
/// driver can refuse.
pub fn rebalance(context: &Context, physical: u64) -> Result<(), FilterError> {
    if context.nodes().stage(physical) != Some(Stage::Started) {
        return Err(NtStatus::NO_SUCH_DEVICE.into());
    }
    let Outcome { status, .. } = send(context, physical, &Request::pnp(pnp::QUERY_STOP));
    if !status.is_success() {
        send(context, physical, &Request::pnp(pnp::CANCEL_STOP));
        return Err(Veto::Driver("IRP_MN_QUERY_STOP_DEVICE", status).into());
    }
    send(context, physical, &Request::pnp(pnp::STOP));
    context.nodes().set_stage(physical, Stage::Stopped);
    // Files may be open, and the drivers must receive their close requests before the removal.
    start(context, physical).inspect_err(|_| surprise_remove(context, physical))?;
    query_started(context, physical);
    Ok(())
}

/// Queries the state of a device whose driver reports that the state has changed, and removes the
/// device if it has failed.
pub fn state_changed(context: &Context, physical: u64) {
    if context.nodes().stage(physical) == Some(Stage::Started)
        && query_state(context, physical) & FAILED != 0
    {
        surprise_remove(context, physical);
    }
}

/// Queries the relations of a device whose driver reports that they have changed.
pub fn relations_changed(context: &Context, physical: u64, kind: u32) {
    if context.nodes().stage(physical) == Some(Stage::Started) {
        query_relations(context, physical, kind);
    }
}
