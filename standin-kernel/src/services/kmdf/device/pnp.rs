//! Plug and Play and power management: a device's transitions into and out of its working state (D0).

use super::{
    capabilities::{Capabilities, DevicePowerState, WakeState},
    init::{Inits, allocate_init},
    power_policy,
    properties::GivenProperties,
    wdm::{Offered, create_bus_device},
};
use crate::{
    ground::{NtResult, NtStatus, abi::PnpPowerCallbacks, rule::Rule},
    services::{
        kmdf::{
            binding,
            binding::DriverData,
            dma::enabler as dma,
            interrupt::delivery as interrupts,
            io::power,
            lifetime,
            lifetime::tell,
            resource_lists::{Resource, Resources, lists},
            state::{
                device::{Below, DeviceData, DeviceInit, Presence},
                file::{is_in_use, is_open},
                framework::Context,
                request::{EndedRequests, RequestData, describe},
                target::TargetData,
            },
            synchronization::presentation,
        },
        managers::{
            device_properties::{CLASS, Identity},
            registry::{
                paths::{hardware_path, software_path},
                value::RegistryValue,
            },
        },
    },
};

/// `WdfPowerDeviceD3`: the device is off but will return.
const D3: u64 = 4;

/// `WdfPowerDeviceD3Final`: the device is being removed or was never powered.
const D3_FINAL: u64 = 5;

/// Returns whether the driver has an `EvtDriverDeviceAdd` callback.
pub fn adds_devices(context: &Context, driver_object: u64) -> bool {
    binding::handle_of(context, driver_object).is_some_and(|driver| {
        context.with::<DriverData, _>(driver, |driver| driver.device_add) != 0
    })
}

/// A device that the Plug and Play manager offers to a driver.
#[derive(Clone, Default)]
pub struct Offer {
    /// The next lower device.
    pub below: Below,
    /// The hardware ids of a device that no driver in the test has enumerated.
    pub hardware_ids: Vec<String>,
    /// Properties that override others, by `DEVICE_REGISTRY_PROPERTY`.
    pub properties: Vec<(u32, String)>,
    /// The values of the device's hardware key and software key.
    pub hardware_values: Vec<(String, RegistryValue)>,
    pub software_values: Vec<(String, RegistryValue)>,
    /// The device's hardware resources.
    pub resources: Vec<Resource>,
    /// The deepest state from which the device can wake.
    pub wake: Option<DevicePowerState>,
}

/// The total number of devices that the root bus has enumerated.
#[derive(Default)]
struct RootDevices(u32);

/// Returns the identity of a new device: the next lower device's identity or, if there is none, a
/// new identity from the root bus.
fn identify(context: &Context, driver: u64, offer: &Offer) -> Identity {
    if let Below::Device(lower) = offer.below
        && let Ok(lower) = context.framework().get::<DeviceData>(lower)
    {
        return lower.init.identity.clone();
    }
    let service = context.with::<DriverData, _>(driver, |driver| driver.service());
    let number = {
        let mut framework = context.framework();
        let devices = &mut framework.part::<RootDevices>().0;
        *devices += 1;
        *devices - 1
    };
    let hardware_ids = if offer.hardware_ids.is_empty() {
        vec![format!(r"Root\{service}")]
    } else {
        offer.hardware_ids.clone()
    };
    Identity {
        instance: format!(r"ROOT\{}\{number:04}", service.to_uppercase()),
        hardware_ids,
        description: service,
        physical_name: format!(r"\Device\{:08x}", 0x40 + number),
        driver_key: format!(r"{}\{number:04}", CLASS.1),
        ..Identity::default()
    }
}

/// Offers a device to the driver: calls `EvtDriverDeviceAdd`, then enters D0.
pub fn add_device(context: &Context, driver_object: u64, offer: Offer) -> NtResult<u64> {
    let Some(driver) = binding::handle_of(context, driver_object) else {
        return Err(NtStatus::INVALID_DEVICE_REQUEST);
    };
    let device_add = context.with::<DriverData, _>(driver, |driver| driver.device_add);
    if device_add == 0 {
        return Err(NtStatus::INVALID_DEVICE_REQUEST);
    }
    let identity = identify(context, driver, &offer);
    let hardware = hardware_path(&identity.instance);
    for (name, value) in offer.hardware_values {
        context.registry().set_at(&hardware, &name, value)?;
    }
    let software = software_path(&identity.driver_key);
    for (name, value) in offer.software_values {
        context.registry().set_at(&software, &name, value)?;
    }
    let mut description = DeviceInit { below: offer.below, identity, ..DeviceInit::default() };
    if offer.below == Below::Bus {
        description.parts.get::<Offered>().bus = Some(create_bus_device(context));
    }
    description.parts.get::<GivenProperties>().0 = offer.properties;
    description.parts.get::<Resources>().given = offer.resources;
    description.parts.get::<WakeState>().0 = offer.wake;
    let init = allocate_init(context, description);
    let devices = context.framework().all::<DeviceData>();
    let lock = presentation::automatic(context, driver);
    let added = presentation::locked(context, lock, || {
        call_optional(context, "EvtDriverDeviceAdd", device_add, [driver, init])
    });
    let device = {
        let mut framework = context.framework();
        framework.part::<Inits>().open.remove(&init);
        framework.all::<DeviceData>().into_iter().find(|device| {
            !devices.contains(device)
                && framework
                    .get::<DeviceData>(*device)
                    .is_ok_and(|device| !device.is_control() && device.init.child_of.is_none())
        })
    };
    let Some(device) = device else {
        return Err(if added.is_success() { NtStatus::INVALID_DEVICE_REQUEST } else { added });
    };
    if !added.is_success() {
        lifetime::delete(context, device);
        return Err(added);
    }
    start_stack(context, device).inspect_err(|_| clean_up(context, device))?;
    Ok(device)
}

/// The last completed step of a device's start or return to D0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Reached {
    /// The device has its resources.
    Resources,
    /// `EvtDevicePrepareHardware` was called.
    Prepared,
    /// `EvtDeviceD0Entry` was called.
    Entered,
    /// `EvtDeviceD0Entry` succeeded.
    Powered,
    /// `EvtDeviceD0EntryPostInterruptsEnabled` succeeded, and the queues were started.
    Working,
}

/// The state of a device's self-managed I/O.
#[derive(Default)]
struct SelfManagedIo {
    /// Set once the framework has called `EvtDeviceSelfManagedIoInit`, or would have called it. The
    /// callbacks that end self-managed I/O are then due.
    has_begun: bool,
}

/// Powers a device down after a failed transition to D0. Calls the callbacks that reverse the steps
/// that succeeded.
fn power_down(context: &Context, device: u64, reached: Reached) {
    let calls = pnp_power(context, device);
    if reached == Reached::Working {
        context.with::<DeviceData, _>(device, |device| device.in_d0 = false);
        power::stop_for_power(context, device);
        dma::power_down(context, device);
        let exit = calls.map_or(0, |calls| calls.evt_device_d0_exit_pre_interrupts_disabled);
        let name = "EvtDeviceD0ExitPreInterruptsDisabled";
        call_optional(context, name, exit, [device, D3_FINAL]);
    }
    if reached >= Reached::Powered {
        interrupts::disconnect(context, device);
        let exit = calls.map_or(0, |calls| calls.evt_device_d0_exit);
        call_optional(context, "EvtDeviceD0Exit", exit, [device, D3_FINAL]);
    }
}

/// Ends a failed start: powers the device down, lets the driver release the hardware, and empties the
/// power-managed queues. The device is deleted later.
fn give_up(context: &Context, device: u64, reached: Reached) {
    power_down(context, device, reached);
    if reached >= Reached::Prepared {
        release_hardware(context, device);
    }
    context.with::<DeviceData, _>(device, |device| device.is_started = false);
    flush(context, device);
}

/// Starts a device after the lower devices, unless they are already started.
pub fn start_stack(context: &Context, device: u64) -> NtResult {
    let below = context.with::<DeviceData, _>(device, |device| device.init.below);
    if let Below::Device(lower) = below {
        let is_waiting = context
            .is::<DeviceData>(lower, |lower| !lower.in_d0 && lower.presence == Presence::Present);
        if is_waiting {
            start_stack(context, lower)?;
        }
    }
    start(context, device)
}

/// Returns the devices that are removed together with a device: the next higher device in its
/// stack, and the children that its driver enumerated.
fn dependents(context: &Context, device: u64) -> Vec<u64> {
    let mut framework = context.framework();
    let mut devices = framework.all::<DeviceData>();
    devices.retain(|other| {
        framework.get::<DeviceData>(*other).is_ok_and(|other| {
            let init = &other.init;
            !other.is_control()
                && (init.child_of == Some(device)
                    || (init.child_of.is_none() && init.below == Below::Device(device)))
        })
    });
    devices
}

/// Returns other drivers' targets that are open on a device.
fn targets_on(context: &Context, device: u64) -> Vec<u64> {
    let mut framework = context.framework();
    let mut targets = framework.all::<TargetData>();
    targets.retain(|target| {
        framework
            .get::<TargetData>(*target)
            .is_ok_and(|target| !target.is_local && target.to == Some(Below::Device(device)))
    });
    targets
}

/// The reason that an orderly removal of a device was refused.
#[derive(Debug, thiserror::Error)]
pub enum Veto {
    /// A process has a file open on the device. The Plug and Play manager does not close the file.
    #[error("a file is open on it; close the file first, or remove the device by surprise")]
    OpenFile,
    /// The driver called `WdfDeviceSetStaticStopRemove`.
    #[error("the driver forbids it with WdfDeviceSetStaticStopRemove")]
    Static,
    /// The driver of an I/O target on the device refuses.
    #[error("EvtIoTargetQueryRemove returned {0}")]
    Target(NtStatus),
    /// The driver refuses.
    #[error("EvtDeviceQueryRemove returned {0}")]
    Driver(NtStatus),
    /// The driver refuses to let its device be stopped.
    #[error("EvtDeviceQueryStop returned {0}")]
    Stop(NtStatus),
}

/// Removes the device as if a user requested it: queries the drivers, leaves D0, and deletes the
/// device. Does nothing if the device is already gone. A driver can refuse the removal.
pub fn remove_device(context: &Context, device: u64) -> Result<(), Veto> {
    if !is_present(context, device) {
        return Ok(());
    }
    for dependent in dependents(context, device) {
        remove_device(context, dependent)?;
    }
    let targets = targets_on(context, device);
    for target in &targets {
        let leaves =
            context.framework().objects.get(target).and_then(|target| target.data.device_leaves());
        let status = leaves.map_or(NtStatus::SUCCESS, |leaves| leaves(context, *target));
        if !status.is_success() {
            stay(context, &targets);
            return Err(Veto::Target(status));
        }
    }
    if let Err(veto) = query_remove(context, device) {
        stay(context, &targets);
        return Err(veto);
    }
    shut_down(context, device);
    clean_up(context, device);
    for target in targets {
        tell(context, target, |data| data.device_left());
    }
    Ok(())
}

/// Asks the driver of a started device whether it may be removed.
fn query_remove(context: &Context, device: u64) -> Result<(), Veto> {
    if is_in_use(&mut context.framework(), device) {
        return Err(Veto::OpenFile);
    }
    check_holds(context, device)?;
    let calls = pnp_power(context, device).filter(|_| is_started(context, device));
    let query = calls.map_or(0, |calls| calls.evt_device_query_remove);
    let status = call_optional(context, "EvtDeviceQueryRemove", query, [device]);
    if status.is_success() { Ok(()) } else { Err(Veto::Driver(status)) }
}

/// Returns an error while the driver forbids stopping or removing its device.
fn check_holds(context: &Context, device: u64) -> Result<(), Veto> {
    let holds = context.with::<DeviceData, _>(device, |device| device.part::<Capabilities>().holds);
    if holds == 0 { Ok(()) } else { Err(Veto::Static) }
}

/// Asks the driver whether its device may be stopped. Then stops the device (it leaves D0, and the
/// driver releases the hardware) and starts it again.
pub fn rebalance(context: &Context, device: u64) -> Result<NtStatus, Veto> {
    if !is_present(context, device) || !is_started(context, device) {
        return Ok(NtStatus::NO_SUCH_DEVICE);
    }
    check_holds(context, device)?;
    let query = pnp_power(context, device).map_or(0, |calls| calls.evt_device_query_stop);
    let status = call_optional(context, "EvtDeviceQueryStop", query, [device]);
    if !status.is_success() {
        return Err(Veto::Stop(status));
    }
    let left = leave_d0(context, device, D3_FINAL);
    if !left.is_success() {
        fail_powered_down(context, device);
        return Ok(left);
    }
    release_hardware(context, device);
    let started = start(context, device);
    if started.is_err() {
        end_failed(context, device);
    }
    Ok(started.err().unwrap_or(NtStatus::SUCCESS))
}

/// Shuts down and removes a device that failed in a power transition and is not in D0.
fn fail_powered_down(context: &Context, device: u64) {
    context.with::<DeviceData, _>(device, |device| device.presence = Presence::Removed);
    shut_down(context, device);
    end_failed(context, device);
}

/// Removes a device that failed and was shut down: the Plug and Play manager treats it as removed
/// by surprise.
fn end_failed(context: &Context, device: u64) {
    for dependent in dependents(context, device) {
        surprise_remove(context, dependent);
    }
    let surprise = pnp_power(context, device).map_or(0, |calls| calls.evt_device_surprise_removal);
    call_optional(context, "EvtDeviceSurpriseRemoval", surprise, [device]);
    for target in targets_on(context, device) {
        tell(context, target, |data| data.device_left());
    }
    if context.framework().exists(device) {
        context.with::<DeviceData, _>(device, |device| device.presence = Presence::ShutDown);
        finish_surprise_removal(context, device);
    }
}

/// Notifies other drivers' targets that their device is not removed.
fn stay(context: &Context, targets: &[u64]) {
    for target in targets {
        tell(context, *target, |data| data.device_stays());
    }
}

/// Removes the hardware by surprise: notifies the driver, and shuts the device down. The device is
/// deleted when its last file is closed.
pub fn surprise_remove(context: &Context, device: u64) {
    if !is_present(context, device) {
        return;
    }
    for dependent in dependents(context, device) {
        surprise_remove(context, dependent);
    }
    context.with::<DeviceData, _>(device, |device| device.presence = Presence::Removed);
    let calls = pnp_power(context, device).filter(|_| is_started(context, device));
    let surprise = calls.map_or(0, |calls| calls.evt_device_surprise_removal);
    call_optional(context, "EvtDeviceSurpriseRemoval", surprise, [device]);
    for target in targets_on(context, device) {
        tell(context, target, |data| data.device_left());
    }
    if !context.framework().exists(device) {
        // The last open file belonged to a target.
        return;
    }
    shut_down(context, device);
    context.with::<DeviceData, _>(device, |device| device.presence = Presence::ShutDown);
    finish_surprise_removal(context, device);
}

/// Deletes a device whose hardware is gone and whose last file is closed.
pub fn finish_surprise_removal(context: &Context, device: u64) {
    let is_over = {
        let mut framework = context.framework();
        let is_open = is_open(&mut framework, device);
        framework
            .get::<DeviceData>(device)
            .is_ok_and(|device| device.presence == Presence::ShutDown && !is_open)
    };
    if is_over {
        clean_up(context, device);
    }
}

/// Takes a device to a lower power state and back: calls `EvtDeviceD0Exit`, then
/// `EvtDeviceD0Entry`, and the related callbacks. If a callback fails, the device is removed.
pub fn power_cycle(context: &Context, device: u64) -> NtStatus {
    if !is_present(context, device) {
        return NtStatus::NO_SUCH_DEVICE;
    }
    let mut status = leave_d0(context, device, D3);
    if status.is_success() {
        let mut reached = Reached::Prepared;
        if let Err(failed) = return_to_d0(context, device, &mut reached) {
            power_down(context, device, reached);
            status = failed;
        }
    }
    if !status.is_success() {
        fail_powered_down(context, device);
    }
    status
}

fn return_to_d0(context: &Context, device: u64, reached: &mut Reached) -> NtResult {
    let calls = pnp_power(context, device);
    let entry = calls.map_or(0, |calls| calls.evt_device_d0_entry);
    call_d0_entry(context, device, entry, D3)?;
    *reached = Reached::Powered;
    interrupts::connect(context, device)?;
    let entry = calls.map_or(0, |calls| calls.evt_device_d0_entry_post_interrupts_enabled);
    let name = "EvtDeviceD0EntryPostInterruptsEnabled";
    check(call_optional(context, name, entry, [device, D3]))?;
    *reached = Reached::Working;
    dma::power_up(context, device)?;
    start_children(context, device);
    enter_d0(context, device);
    let restart = calls.map_or(0, |calls| calls.evt_device_self_managed_io_restart);
    let name = "EvtDeviceSelfManagedIoRestart";
    check(call_optional(context, name, restart, [device]))
}

/// Converts a failure status to an error.
fn check(status: NtStatus) -> NtResult {
    status.is_success().then_some(()).ok_or(status)
}

/// Calls a callback that returns a status, if the driver has it.
fn call_optional<const N: usize>(
    context: &Context,
    what: &str,
    callback: u64,
    arguments: [u64; N],
) -> NtStatus {
    if callback == 0 {
        return NtStatus::SUCCESS;
    }
    NtStatus::from_register(context.call_driver(what, callback, arguments))
}

fn pnp_power(context: &Context, device: u64) -> Option<PnpPowerCallbacks> {
    context.with::<DeviceData, _>(device, |device| device.init.pnp_power)
}

/// Starts a device. If the start fails, reverses the steps that succeeded.
fn start(context: &Context, device: u64) -> NtResult {
    let mut reached = Reached::Resources;
    prepare_and_enter_d0(context, device, &mut reached).map_err(|status| {
        give_up(context, device, reached);
        // The framework reports the same status for every failure after the hardware is prepared.
        if reached > Reached::Prepared { NtStatus::DEVICE_POWER_FAILURE } else { status }
    })
}

fn call_d0_entry(context: &Context, device: u64, entry: u64, from: u64) -> NtResult {
    power_policy::note_entering_d0(context, device, true);
    let status = call_optional(context, "EvtDeviceD0Entry", entry, [device, from]);
    power_policy::note_entering_d0(context, device, false);
    check(status)
}

/// Prepares the hardware with its resources, and enters D0.
fn prepare_and_enter_d0(context: &Context, device: u64, reached: &mut Reached) -> NtResult {
    let calls = pnp_power(context, device);
    let [raw, translated] = lists(context, device)?;
    interrupts::assign(context, device);
    context.with::<DeviceData, _>(device, |device| device.is_started = true);
    *reached = Reached::Prepared;
    if let Some(calls) = calls {
        check(call_optional(
            context,
            "EvtDevicePrepareHardware",
            calls.evt_device_prepare_hardware,
            [device, raw, translated],
        ))?;
        // The driver may have created interrupts for resources that it chose.
        interrupts::assign(context, device);
        *reached = Reached::Entered;
        call_d0_entry(context, device, calls.evt_device_d0_entry, D3_FINAL)?;
    }
    *reached = Reached::Powered;
    interrupts::connect(context, device)?;
    if let Some(calls) = calls {
        check(call_optional(
            context,
            "EvtDeviceD0EntryPostInterruptsEnabled",
            calls.evt_device_d0_entry_post_interrupts_enabled,
            [device, D3_FINAL],
        ))?;
    }
    *reached = Reached::Working;
    dma::power_up(context, device)?;
    start_children(context, device);
    enter_d0(context, device);
    let has_begun = context.with::<DeviceData, _>(device, |device| {
        core::mem::replace(&mut device.part::<SelfManagedIo>().has_begun, true)
    });
    let (name, begin) = if has_begun {
        let restart = calls.map_or(0, |calls| calls.evt_device_self_managed_io_restart);
        ("EvtDeviceSelfManagedIoRestart", restart)
    } else {
        let init = calls.map_or(0, |calls| calls.evt_device_self_managed_io_init);
        ("EvtDeviceSelfManagedIoInit", init)
    };
    check(call_optional(context, name, begin, [device]))
}

/// Notifies the objects of a device, such as its child lists, that it has entered its working state.
fn start_children(context: &Context, device: u64) {
    let children = context.framework().children_of(device);
    for child in children {
        tell(context, child, |data| data.device_started());
    }
}

/// Marks the device as working and restarts its queues.
fn enter_d0(context: &Context, device: u64) {
    context.with::<DeviceData, _>(device, |device| device.in_d0 = true);
    power::resume_for_power(context, device);
}

/// Takes the device from D0 to `target`. Calls all callbacks, and returns the status of the last
/// one that failed.
fn leave_d0(context: &Context, device: u64, target: u64) -> NtStatus {
    let calls = pnp_power(context, device);
    let suspend = calls.map_or(0, |calls| calls.evt_device_self_managed_io_suspend);
    let suspended = call_optional(context, "EvtDeviceSelfManagedIoSuspend", suspend, [device]);
    context.with::<DeviceData, _>(device, |device| device.in_d0 = false);
    power::stop_for_power(context, device);
    dma::power_down(context, device);
    let exit = calls.map_or(0, |calls| calls.evt_device_d0_exit_pre_interrupts_disabled);
    let name = "EvtDeviceD0ExitPreInterruptsDisabled";
    let before = call_optional(context, name, exit, [device, target]);
    interrupts::disconnect(context, device);
    let exit = calls.map_or(0, |calls| calls.evt_device_d0_exit);
    let exited = call_optional(context, "EvtDeviceD0Exit", exit, [device, target]);
    let failed = [exited, before, suspended].into_iter().find(|status| !status.is_success());
    failed.unwrap_or(NtStatus::SUCCESS)
}

/// Shuts the device down permanently: leaves D0 if necessary, releases the hardware, and empties the
/// power-managed queues.
fn shut_down(context: &Context, device: u64) {
    if context.with::<DeviceData, _>(device, |device| device.in_d0) {
        leave_d0(context, device, D3_FINAL);
    }
    if is_started(context, device) {
        release_hardware(context, device);
    }
    flush(context, device);
}

fn release_hardware(context: &Context, device: u64) {
    let release = pnp_power(context, device).map_or(0, |calls| calls.evt_device_release_hardware);
    let translated = lists(context, device).map_or(0, |[_, translated]| translated);
    call_optional(context, "EvtDeviceReleaseHardware", release, [device, translated]);
}

/// Empties the power-managed queues, and lets the driver flush its self-managed I/O.
fn flush(context: &Context, device: u64) {
    power::purge_for_removal(context, device, true);
    let calls = pnp_power(context, device).filter(|_| manages_io(context, device));
    let flush = calls.map_or(0, |calls| calls.evt_device_self_managed_io_flush);
    call_optional(context, "EvtDeviceSelfManagedIoFlush", flush, [device]);
}

/// Returns whether a device's self-managed I/O has begun, so that the driver must end it.
fn manages_io(context: &Context, device: u64) -> bool {
    context.with::<DeviceData, _>(device, |device| device.part::<SelfManagedIo>().has_begun)
}

/// Deletes a device that is already shut down.
fn clean_up(context: &Context, device: u64) {
    power::purge_for_removal(context, device, false);
    let calls = pnp_power(context, device).filter(|_| manages_io(context, device));
    let cleanup = calls.map_or(0, |calls| calls.evt_device_self_managed_io_cleanup);
    call_optional(context, "EvtDeviceSelfManagedIoCleanup", cleanup, [device]);
    report_requests_left(context, device);
    lifetime::delete(context, device);
}

/// Returns whether a device is started. A bus device's child is started together with the stack
/// above it.
fn is_started(context: &Context, device: u64) -> bool {
    context.with::<DeviceData, _>(device, |device| device.is_started)
}

/// Returns whether a device is present. A device that is no longer present may still have an open
/// file.
fn is_present(context: &Context, device: u64) -> bool {
    context.is::<DeviceData>(device, |device| device.presence == Presence::Present)
}

/// Bugchecks if the driver still holds a request. Drivers must complete every request.
fn report_requests_left(context: &Context, device: u64) {
    let left = {
        let mut framework = context.framework();
        let requests = framework.all::<RequestData>();
        requests.into_iter().find_map(|handle| {
            let data = framework.get::<RequestData>(handle).ok()?;
            let description = describe(data);
            let queue = data.queue()?;
            if framework.part::<EndedRequests>().0.contains_key(&handle) {
                return None;
            }
            (framework.ancestor::<DeviceData>(queue) == Some(device)).then_some(description)
        })
    };
    if let Some(description) = left {
        context.stop(
            Rule::RequestNotCompleted,
            format!(
                "the device was removed while the driver held {description}, which it never \
                 completed"
            ),
        );
    }
}
