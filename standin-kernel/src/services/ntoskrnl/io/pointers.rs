//! The routines that return other drivers' devices to a driver: by name, or from the device above.

use super::{device_files, devices, irp, send, stacks};
use crate::{
    execution::{
        routine::{At, routine},
        strings::read_unicode_string,
    },
    ground::{
        NtResult, NtStatus,
        abi::{DeviceObject, Irp, IrpStack, UnicodeString},
    },
    services::{
        managers::create_parameters::CreateParameters,
        ntoskrnl::{
            context::{Context, Entries},
            ob::handles,
        },
    },
};

pub const ENTRIES: Entries = &[
    routine("IoGetDeviceObjectPointer", get),
    routine("IoAttachDevice", attach),
    routine("IoGetLowerDeviceObject", lower),
    routine("IoValidateDeviceIoControlAccess", validate_access),
];

/// `FILE_READ_ATTRIBUTES`.
const READ_ATTRIBUTES: u32 = 0x80;

/// Opens the device with this name on behalf of a driver, and closes the handle. The device
/// immediately receives a cleanup request, and a close request when the driver releases its
/// reference. Returns the file, and the device at the top of the stack.
fn open(context: &Context, name: u64, access: u32) -> NtResult<(u64, u64)> {
    let name = read_unicode_string(context, name);
    let (device, rest) =
        device_files::find(context, &name).ok_or(NtStatus::OBJECT_NAME_NOT_FOUND)?;
    let opener = send::Opener {
        // `FILE_OPEN` and `FILE_NON_DIRECTORY_FILE`.
        create: CreateParameters::new(access, [1, 0x40], 0, 0),
        mode: 0,
        by: context.call().return_address,
    };
    let (file, _) = send::open_as(context, device, &rest, opener)?;
    handles::own(context, file, send::close_after_cleanup);
    handles::reference(context, At::new(file));
    send::clean_up(context, file);
    Ok((file, stacks::top_of(context, device)))
}

fn get(
    context: &Context,
    name: At<UnicodeString>,
    access: u32,
    file: At<u64>,
    device: At<u64>,
) -> NtResult {
    let (opened_file, opened_device) = open(context, name.0, access)?;
    file.write(context, opened_file);
    device.write(context, opened_device);
    Ok(())
}

/// Attaches a device to the stack of a named device.
fn attach(
    context: &Context,
    source: At<DeviceObject>,
    name: At<UnicodeString>,
    attached: At<u64>,
) -> NtResult {
    let (file, target) = open(context, name.0, READ_ATTRIBUTES)?;
    let result = stacks::attach_safe(context, source, At::new(target), attached);
    handles::dereference(context, At::new(file));
    result
}

/// Returns a reference to the device below a device, or null.
fn lower(context: &Context, device: At<DeviceObject>) -> At<DeviceObject> {
    let below = devices::with(context, device.0, |one| one.below);
    if let Some(below) = below {
        handles::reference(context, At::new(below));
    }
    At::new(below.unwrap_or(0))
}

/// Returns whether the sender of a device control or file system control opened the device with
/// this access. In the stand-in kernel, all processes open devices for reading and writing, and
/// drivers need no access.
fn validate_access(context: &Context, irp: At<Irp>, access: u32) -> NtStatus {
    /// `FILE_READ_ACCESS | FILE_WRITE_ACCESS`.
    const ALL: u32 = 3;
    /// `IRP_MJ_FILE_SYSTEM_CONTROL` and `IRP_MJ_DEVICE_CONTROL`.
    const CONTROLS: [u8; 2] = [13, 14];
    let location: IrpStack = context.read(irp.read(context).tail[irp::STACK]);
    if access == 0 || access & !ALL != 0 || !CONTROLS.contains(&location.major_function) {
        return NtStatus::INVALID_PARAMETER;
    }
    NtStatus::SUCCESS
}
