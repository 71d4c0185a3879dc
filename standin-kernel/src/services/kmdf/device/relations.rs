//! The devices that a driver reports for removal or ejection together with its own device. The
//! stand-in kernel's Plug and Play manager does not query them.

use super::super::state::{
    device::DeviceData,
    framework::{BadHandle, Context, Entries},
};
use crate::{
    execution::routine::Routine,
    ground::{NtStatus, memory},
};

pub const ENTRIES: Entries = &[
    ("WdfDeviceAddRemovalRelationsPhysicalDevice", Routine::after_globals(add_removal)),
    ("WdfDeviceRemoveRemovalRelationsPhysicalDevice", Routine::after_globals(remove_removal)),
    ("WdfDeviceClearRemovalRelationsDevices", Routine::after_globals(clear_removal)),
    ("WdfPdoAddEjectionRelationsPhysicalDevice", Routine::after_globals(add_ejection)),
    ("WdfPdoRemoveEjectionRelationsPhysicalDevice", Routine::after_globals(remove_ejection)),
    ("WdfPdoClearEjectionRelationsDevices", Routine::after_globals(clear_ejection)),
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

fn add_removal(context: &Context, device: u64, physical: u64) -> NtStatus {
    add(context, device, physical, removal)
}

fn remove_removal(context: &Context, device: u64, physical: u64) {
    remove(context, device, physical, removal);
}

fn clear_removal(context: &Context, device: u64) {
    with(context, device, removal, Vec::clear);
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

fn add_ejection(context: &Context, device: u64, physical: u64) -> NtStatus {
    must_be_child(context, device);
    add(context, device, physical, ejection)
}

fn remove_ejection(context: &Context, device: u64, physical: u64) {
    must_be_child(context, device);
    remove(context, device, physical, ejection);
}

fn clear_ejection(context: &Context, device: u64) {
    must_be_child(context, device);
    with(context, device, ejection, Vec::clear);
}
