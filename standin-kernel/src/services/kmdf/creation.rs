//! The creation of devices.

use crate::{
    execution::routine::{At, Handle, Out, routine},
    ground::{NtResult, NtStatus, abi::ObjectAttributes},
    services::{
        kmdf::{
            binding::driver_of,
            bus::{children::Child, list::create_default},
            device::{
                init::{Inits, with_init},
                nodes::EarlyInterfaces,
                wdm::attach,
            },
            lifetime,
            lifetime::{create, read_attributes, validate},
            state::{
                device::{DeviceData, DeviceInit},
                device_object::own,
                framework::{Context, Data, Entries},
                target::TargetData,
            },
            synchronization::presentation,
        },
        managers::device_properties::CLASS,
        ntoskrnl::{io::devices::TYPE as DEVICE, ob::namespace},
    },
};

pub const ENTRIES: Entries =
    &[routine("WdfDeviceCreate", device_create), routine("WdfDeviceGetIoTarget", get_io_target)];

fn device_create(
    context: &Context,
    init_pointer: Out<DeviceInit>,
    attributes: At<ObjectAttributes>,
    device: Out<DeviceData>,
) -> NtResult {
    let init_handle: u64 = context.read(init_pointer.0);
    context.require(init_handle);
    let attributes = read_attributes(context, attributes.0);
    if let Some(attributes) = &attributes {
        validate(context, attributes, DeviceData::CHOICES)?;
    }
    if with_init(context, init_handle, |init| init.lacks_a_name_to_protect()) {
        return Err(NtStatus::INVALID_SECURITY_DESCR);
    }
    let lacks_id = with_init(context, init_handle, |init| {
        init.child_of.is_some() && !init.parts.get::<Child>().has_device_id
    });
    if lacks_id {
        return Err(NtStatus::INVALID_DEVICE_STATE);
    }
    // The I/O manager supports only access control lists as security descriptors.
    let is_malformed = with_init(context, init_handle, |init| {
        init.sddl.as_ref().is_some_and(|sddl| !sddl.starts_with("D:"))
    });
    if is_malformed {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    let name = with_init(context, init_handle, |init| init.assigned_name().map(str::to_owned));
    if let Some(name) = &name {
        namespace::place(&mut context.ntoskrnl(), name, DEVICE, 0)?;
    }
    let mut init = with_init(context, init_handle, core::mem::take);
    if init.child_of.is_some() {
        name_child(context, &mut init);
    }
    let control_of = init.control_of;
    let early = core::mem::take(init.parts.get::<EarlyInterfaces>());
    let parent = control_of.or_else(|| driver_of(context));
    let data = DeviceData::new(init, early.0);
    let handle = create(context, data, attributes.as_ref(), parent)?;
    // The framework consumes the WDFDEVICE_INIT; the driver must not use it again.
    context.framework().part::<Inits>().open.remove(&init_handle);
    attach(context, handle);
    if let Some(name) = name {
        let object = own(context, handle);
        namespace::enter(&mut context.ntoskrnl(), &name, object, DEVICE);
    }
    create_local_target(context, handle);
    let checked = presentation::check_files(context, handle);
    if let Err(status) = checked.and_then(|()| create_default(context, handle)) {
        lifetime::discard(context, handle);
        return Err(status);
    }
    context.write(init_pointer.0, &0_u64);
    context.write(device.0, &handle);
    Ok(())
}

/// The total number of children that bus drivers have created.
#[derive(Default)]
struct ChildDevices(u32);

/// Assigns a name to a child's physical device, and a driver key to its stack.
fn name_child(context: &Context, init: &mut DeviceInit) {
    let number = {
        let mut framework = context.framework();
        let devices = &mut framework.part::<ChildDevices>().0;
        *devices += 1;
        *devices
    };
    init.identity.physical_name = format!(r"\Device\{:08x}", 0x1000 + number);
    init.identity.driver_key = format!(r"{}\{:04}", CLASS.1, 1000 + number);
}

/// A device's target for the next lower device.
#[derive(Default)]
struct LocalTarget(Option<u64>);

/// Creates the target for the next lower device. Control devices and children of bus drivers have no
/// lower device.
pub fn create_local_target(context: &Context, device: u64) {
    let below = context.with::<DeviceData, _>(device, |device| {
        let init = &device.init;
        (init.control_of.is_none() && init.child_of.is_none()).then_some(init.below)
    });
    let Some(below) = below else {
        return;
    };
    let target = create(context, TargetData::local(device, below), None, Some(device));
    context.with::<DeviceData, _>(device, |device| {
        device.part::<LocalTarget>().0 = target.ok();
    });
}

fn get_io_target(context: &Context, device: Handle<DeviceData>) -> Handle<TargetData> {
    Handle::new(device.with(context, |device| device.part::<LocalTarget>().0.unwrap_or(0)))
}
