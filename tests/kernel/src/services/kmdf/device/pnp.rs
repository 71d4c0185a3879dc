//! Plug and play and power: a device's transitions into and out of its working state (D0).

use super::{
    super::{
        driver::{self, DriverData},
        io::power,
        object,
        state::{
            device::{DeviceData, DeviceInit, Presence},
            file::{is_in_use, is_open},
            framework::Context,
            request::{EndedRequests, RequestData, describe},
        },
    },
    init::{Inits, allocate_init},
};
use crate::ground::{abi::PnpPowerCallbacks, rule::Rule, status::NtStatus};

/// `WDF_POWER_DEVICE_STATE` of a device that is off and will return.
const D3: u64 = 4;

/// `WdfPowerDeviceD3Final`: the device is being removed or was never on.
const D3_FINAL: u64 = 5;

/// Returns whether the driver has an `EvtDriverDeviceAdd`.
pub fn adds_devices(context: &Context, driver_object: u64) -> bool {
    driver::handle_of(context, driver_object).is_some_and(|driver| {
        context.with::<DriverData, _>(driver, |driver| driver.device_add) != 0
    })
}

/// Offers the driver a device: calls `EvtDriverDeviceAdd`, then enters D0.
pub fn add_device(context: &Context, driver_object: u64) -> Result<u64, NtStatus> {
    let Some(driver) = driver::handle_of(context, driver_object) else {
        return Err(NtStatus::INVALID_DEVICE_REQUEST);
    };
    let device_add = context.with::<DriverData, _>(driver, |driver| driver.device_add);
    if device_add == 0 {
        return Err(NtStatus::INVALID_DEVICE_REQUEST);
    }
    let init = allocate_init(context, DeviceInit::default());
    let devices = context.framework().all::<DeviceData>();
    let added = call_optional(context, "EvtDriverDeviceAdd", device_add, [driver, init]);
    let device = {
        let mut framework = context.framework();
        framework.part::<Inits>().open.remove(&init);
        framework.all::<DeviceData>().into_iter().find(|device| {
            !devices.contains(device)
                && framework
                    .get::<DeviceData>(*device)
                    .is_ok_and(|device| !device.is_control())
        })
    };
    let Some(device) = device else {
        return Err(if added.is_success() {
            NtStatus::INVALID_DEVICE_REQUEST
        } else {
            added
        });
    };
    if !added.is_success() {
        object::delete(context, device);
        return Err(added);
    }
    start(context, device).inspect_err(|_| object::delete(context, device))?;
    Ok(device)
}

/// The reason that a device stays although somebody asked for its orderly removal.
#[derive(Debug, thiserror::Error)]
pub enum Veto {
    /// A process has a file open on the device, which the plug-and-play manager does not take away.
    #[error("a file is open on it; close the file first, or remove the device by surprise")]
    OpenFile,
    /// The driver refuses.
    #[error("EvtDeviceQueryRemove returned {0}")]
    Driver(NtStatus),
}

/// Removes the device as at a user's request: leaves D0, then deletes the device. Has no effect
/// on a device that is already gone.
pub fn remove_device(context: &Context, device: u64) -> Result<(), Veto> {
    if !is_present(context, device) {
        return Ok(());
    }
    if is_in_use(&mut context.framework(), device) {
        return Err(Veto::OpenFile);
    }
    let query = pnp_power(context, device).map_or(0, |calls| calls.query_remove);
    let status = call_optional(context, "EvtDeviceQueryRemove", query, [device]);
    if !status.is_success() {
        return Err(Veto::Driver(status));
    }
    shut_down(context, device);
    clean_up(context, device);
    Ok(())
}

/// Removes the hardware by surprise: notifies the driver and shuts the device down. The device
/// is deleted when the last file on it is closed.
pub fn surprise_remove(context: &Context, device: u64) {
    if !is_present(context, device) {
        return;
    }
    context.with::<DeviceData, _>(device, |device| device.presence = Presence::Removed);
    let surprise = pnp_power(context, device).map_or(0, |calls| calls.surprise_removal);
    call_optional(context, "EvtDeviceSurpriseRemoval", surprise, [device]);
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
/// `EvtDeviceD0Entry`, and the callbacks around them.
pub fn power_cycle(context: &Context, device: u64) -> NtStatus {
    if !is_present(context, device) {
        return NtStatus::NO_SUCH_DEVICE;
    }
    let status = leave_d0(context, device, D3);
    if !status.is_success() {
        return status;
    }
    let calls = pnp_power(context, device);
    if let Some(calls) = calls {
        for (name, callback) in [
            ("EvtDeviceD0Entry", calls.d0_entry),
            (
                "EvtDeviceD0EntryPostInterruptsEnabled",
                calls.d0_entry_post_interrupts,
            ),
        ] {
            let status = call_optional(context, name, callback, [device, D3]);
            if !status.is_success() {
                return status;
            }
        }
    }
    enter_d0(context, device);
    let restart = calls.map_or(0, |calls| calls.self_managed_io_restart);
    call_optional(context, "EvtDeviceSelfManagedIoRestart", restart, [device])
}

/// Calls a callback that returns a status, if the driver has one.
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

/// Prepares the hardware (it has no resources) and enters D0.
fn start(context: &Context, device: u64) -> Result<(), NtStatus> {
    let check = |status: NtStatus| status.is_success().then_some(()).ok_or(status);
    let calls = pnp_power(context, device);
    if let Some(calls) = calls {
        check(call_optional(
            context,
            "EvtDevicePrepareHardware",
            calls.prepare_hardware,
            [device, 0, 0],
        ))?;
        check(call_optional(
            context,
            "EvtDeviceD0Entry",
            calls.d0_entry,
            [device, D3_FINAL],
        ))?;
        check(call_optional(
            context,
            "EvtDeviceD0EntryPostInterruptsEnabled",
            calls.d0_entry_post_interrupts,
            [device, D3_FINAL],
        ))?;
    }
    enter_d0(context, device);
    let init = calls.map_or(0, |calls| calls.self_managed_io_init);
    check(call_optional(
        context,
        "EvtDeviceSelfManagedIoInit",
        init,
        [device],
    ))
}

/// Marks the device as working and restarts its queues.
fn enter_d0(context: &Context, device: u64) {
    context.with::<DeviceData, _>(device, |device| device.in_d0 = true);
    power::resume_for_power(context, device);
}

/// Takes the device out of D0, to `target`.
fn leave_d0(context: &Context, device: u64, target: u64) -> NtStatus {
    let calls = pnp_power(context, device);
    let suspend = calls.map_or(0, |calls| calls.self_managed_io_suspend);
    call_optional(context, "EvtDeviceSelfManagedIoSuspend", suspend, [device]);
    context.with::<DeviceData, _>(device, |device| device.in_d0 = false);
    power::stop_for_power(context, device);
    let Some(calls) = calls else {
        return NtStatus::SUCCESS;
    };
    call_optional(
        context,
        "EvtDeviceD0ExitPreInterruptsDisabled",
        calls.d0_exit_pre_interrupts,
        [device, target],
    );
    call_optional(context, "EvtDeviceD0Exit", calls.d0_exit, [device, target])
}

/// Shuts the device down permanently: leaves D0 if the device is in it, releases its hardware, and
/// empties its power-managed queues.
fn shut_down(context: &Context, device: u64) {
    if context.with::<DeviceData, _>(device, |device| device.in_d0) {
        leave_d0(context, device, D3_FINAL);
    }
    let calls = pnp_power(context, device);
    let release = calls.map_or(0, |calls| calls.release_hardware);
    call_optional(context, "EvtDeviceReleaseHardware", release, [device, 0]);
    power::purge_for_removal(context, device, true);
    let flush = calls.map_or(0, |calls| calls.self_managed_io_flush);
    call_optional(context, "EvtDeviceSelfManagedIoFlush", flush, [device]);
}

/// Deletes a device that is shut down.
fn clean_up(context: &Context, device: u64) {
    power::purge_for_removal(context, device, false);
    let cleanup = pnp_power(context, device).map_or(0, |calls| calls.self_managed_io_cleanup);
    call_optional(context, "EvtDeviceSelfManagedIoCleanup", cleanup, [device]);
    report_requests_left(context, device);
    object::delete(context, device);
}

/// Returns whether a device is present. A device that is gone may still have an open file.
fn is_present(context: &Context, device: u64) -> bool {
    context
        .framework()
        .get::<DeviceData>(device)
        .is_ok_and(|device| device.presence == Presence::Present)
}

/// Bugchecks if the driver still holds a request, because it must complete every request.
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
