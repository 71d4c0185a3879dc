//! USB targets. They cannot be created, because the stand-in kernel has no USB devices.

use crate::{
    execution::{
        kinds::UsbDevice,
        routine::{At, Handle, Out, routine},
    },
    ground::{
        NtStatus,
        abi::{ObjectAttributes, UsbDeviceCreateConfig},
    },
    services::kmdf::{
        lifetime::read_attributes,
        state::{
            device::DeviceData,
            framework::{Context, Entries},
        },
    },
};

pub const ENTRIES: Entries = &[
    routine("WdfUsbTargetDeviceCreate", create),
    routine("WdfUsbTargetDeviceCreateWithParameters", create_with_parameters),
];

/// Fails as on Windows for a device whose lower devices do not support USB requests, because the
/// framework requests the device's descriptor from the lower devices.
fn refuse(context: &Context, device: u64, attributes: u64, target: u64) -> NtStatus {
    context.with::<DeviceData, _>(device, |_| ());
    let attributes = read_attributes(context, attributes);
    context.write(target, &0_u64);
    if attributes.is_some_and(|attributes| attributes.parent_object != 0) {
        NtStatus::WDF_PARENT_ASSIGNMENT_NOT_ALLOWED
    } else {
        NtStatus::INVALID_DEVICE_REQUEST
    }
}

fn create(
    context: &Context,
    device: Handle<DeviceData>,
    attributes: At<ObjectAttributes>,
    target: Out<UsbDevice>,
) -> NtStatus {
    refuse(context, device.0, attributes.0, target.0)
}

fn create_with_parameters(
    context: &Context,
    device: Handle<DeviceData>,
    config: At<UsbDeviceCreateConfig>,
    attributes: At<ObjectAttributes>,
    target: Out<UsbDevice>,
) -> NtStatus {
    let config = config.read(context);
    if config.size as usize != size_of::<UsbDeviceCreateConfig>() {
        return NtStatus::INFO_LENGTH_MISMATCH;
    }
    refuse(context, device.0, attributes.0, target.0)
}
