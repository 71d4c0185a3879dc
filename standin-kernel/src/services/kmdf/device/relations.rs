//! The devices that a driver reports for removal or ejection together with its own device. The
//! stand-in kernel's Plug and Play manager does not query them.

use super::super::state::{
    device::DeviceData,
    framework::{BadHandle, Context, Entries},
};
use crate::{
    execution::routine::{At, Handle, routine},
    ground::{NtStatus, abi::DeviceObject, memory},
};

pub const ENTRIES: Entries = &[
    routine("WdfDeviceAddRemovalRelationsPhysicalDevice", add_removal),
    routine("WdfDeviceRemoveRemovalRelationsPhysicalDevice", remove_removal),
    routine("WdfDeviceClearRemovalRelationsDevices", clear_removal),
    routine("WdfPdoAddEjectionRelationsPhysicalDevice", add_ejection),
    routine("WdfPdoRemoveEjectionRelationsPhysicalDevice", remove_ejection),
    routine("WdfPdoClearEjectionRelationsDevices", clear_ejection),
];

/// `STATUS_DUPLICATE_OBJECTID`: the device is already in the list.
const DUPLICATE: NtStatus = NtStatus::from_bits(0xC000_022A);
/// `IO_TYPE_DEVICE`.
const DEVICE: i16 = 3;

/// The physical devices that are removed or ejected together with a device.
#[derive(Default)]
struct Relations {
    removal: Vec<u64>,
    ejection: Vec<u64>,
}

type List = fn(&mut Relations) -> &mut Vec<u64>;

const fn removal(relations: &mut Relations) -> &mut Vec<u64> {
    &mut relations.removal
}

const fn ejection(relations: &mut Relations) -> &mut Vec<u64> {
    &mut relations.ejection
}

/// Runs `body` on one of the lists of a device's relations.
fn with<R>(context: &Context, device: u64, list: List, body: impl FnOnce(&mut Vec<u64>) -> R) -> R {
    context.with::<DeviceData, _>(device, |device| body(list(device.part::<Relations>())))
}

fn add(context: &Context, device: u64, physical: u64, list: List) -> NtStatus {
    if memory::read::<i16>(physical) != Ok(DEVICE) {
        context.stop_for_handle(&BadHandle {
            handle: physical,
            expected: "DEVICE_OBJECT",
            found: None,
        });
    }
    let is_new = with(context, device, list, |all| {
        let is_new = !all.contains(&physical);
        if is_new {
            all.push(physical);
        }
        is_new
    });
    if is_new { NtStatus::SUCCESS } else { DUPLICATE }
}

fn remove(context: &Context, device: u64, physical: u64, list: List) {
    with(context, device, list, |all| all.retain(|one| *one != physical));
}

fn add_removal(
    context: &Context,
    device: Handle<DeviceData>,
    physical: At<DeviceObject>,
) -> NtStatus {
    add(context, device.0, physical.0, removal)
}

fn remove_removal(context: &Context, device: Handle<DeviceData>, physical: At<DeviceObject>) {
    remove(context, device.0, physical.0, removal);
}

fn clear_removal(context: &Context, device: Handle<DeviceData>) {
    with(context, device.0, removal, Vec::clear);
}

/// Bugchecks unless the driver's bus device enumerates a device.
fn must_be_child(context: &Context, device: u64) {
    let is_child = context.with::<DeviceData, _>(device, |device| device.init.child_of.is_some());
    if !is_child {
        context.stop_for_handle(&BadHandle {
            handle: device,
            expected: "WDFDEVICE of a PDO",
            found: Some("WDFDEVICE of another kind"),
        });
    }
}

fn add_ejection(
    context: &Context,
    device: Handle<DeviceData>,
    physical: At<DeviceObject>,
) -> NtStatus {
    must_be_child(context, device.0);
    add(context, device.0, physical.0, ejection)
}

fn remove_ejection(context: &Context, device: Handle<DeviceData>, physical: At<DeviceObject>) {
    must_be_child(context, device.0);
    remove(context, device.0, physical.0, ejection);
}

fn clear_ejection(context: &Context, device: Handle<DeviceData>) {
    must_be_child(context, device.0);
    with(context, device.0, ejection, Vec::clear);
}
