//! The `DEVICE_OBJECT`s of devices, for drivers that access them below the framework.

use std::collections::{BTreeSet, HashMap};

use zerocopy::IntoBytes;

use crate::{
    execution::routine::{At, Handle, routine},
    ground::{
        abi::{DeviceObject, DriverObject},
        memory,
    },
    services::{
        kmdf::{
            binding::{DriverData, handle_of, object_of},
            state::{
                device::{Below, DeviceData, FILE_DEVICE_SECURE_OPEN},
                device_object::{Object, Objects, bus_object, fill, foreign, own, update},
                framework::{BadHandle, Choices, Context, Data, Entries, ObjectRoutine},
                simulated,
                stack::physical_object,
            },
        },
        managers::bus_driver::BusDriver,
        ntoskrnl::ob::namespace,
    },
};

pub const ENTRIES: Entries = &[
    routine("WdfDeviceWdmGetDeviceObject", get_device_object),
    routine("WdfDeviceWdmGetAttachedDevice", get_attached_device),
    routine("WdfDeviceWdmGetPhysicalDevice", get_physical_device),
    routine("WdfWdmDeviceGetWdfDeviceHandle", get_device_handle),
    routine("WdfWdmDriverGetWdfDriverHandle", get_driver_handle),
];

impl Data for DeviceData {
    const NAME: &'static str = "WDFDEVICE";
    const CHOICES: Choices = Choices::SYNCHRONIZED;
    const BEFORE_DELETE: Option<ObjectRoutine> = Some(detach);

    fn is_frameworks(&self) -> bool {
        !self.is_control() && !self.init.is_miniport && !self.init.is_to_be_added
    }
}

/// `DO_BUFFERED_IO`, `DO_DIRECT_IO` and `DO_POWER_PAGABLE` of `DEVICE_OBJECT.Flags`.
const BUFFERED: u32 = 0x4;
const DIRECT: u32 = 0x10;
const POWER_PAGEABLE: u32 = 0x2000;

/// `DO_BUS_ENUMERATED_DEVICE`: the flag of physical devices.
const BUS_ENUMERATED: u32 = 0x1000;

/// The `WDF_DEVICE_IO_TYPE` of direct I/O.
const IO_DIRECT: u32 = 3;

/// The owner of a `DEVICE_OBJECT`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// A driver's device.
    Device(u64),
    /// The physical device at the bottom of a device's stack.
    Bus(u64),
}

/// The devices to which `DEVICE_OBJECT`s belong, indexed by address.
#[derive(Default)]
struct Owners(HashMap<u64, Owner>);

/// Returns the `DRIVER_OBJECT` of the root bus.
fn bus_driver(context: &Context) -> u64 {
    context.framework().part::<BusDriver>().address()
}

/// Creates a physical device before its stack is offered to a driver.
pub fn create_bus_device(context: &Context) -> Object {
    Object::new(bus_driver(context), BUS_ENUMERATED, FILE_DEVICE_CONTROLLER, 1)
}

const FILE_DEVICE_CONTROLLER: u32 = 4;

/// The settings in a device description that apply to the `DEVICE_OBJECT`.
#[derive(Default)]
pub struct Offered {
    /// The physical device, if it belongs to the bus.
    pub bus: Option<Object>,
    /// `DEVICE_TYPE`, or 0.
    pub device_type: u32,
}

/// Creates the `DEVICE_OBJECT` of a new device, and attaches it to the next lower `DEVICE_OBJECT`.
pub fn attach(context: &Context, device: u64) {
    let driver = context.framework().ancestor::<DriverData>(device);
    let driver = driver.map_or(0, |driver| object_of(context, driver));
    let (offered, below, is_alone, io_type, characteristics) =
        context.with::<DeviceData, _>(device, |device| {
            let offered = core::mem::take(device.part::<Offered>());
            let init = &device.init;
            let is_alone = init.control_of.is_some() || init.child_of.is_some();
            let characteristics = init.characteristics | FILE_DEVICE_SECURE_OPEN;
            (offered, init.below, is_alone, init.io_type, characteristics)
        });
    let lower = match (is_alone, below) {
        (true, _) => 0,
        (false, Below::Bus) => offered.bus.as_ref().map_or(0, Object::address),
        (false, Below::Simulated(number)) => simulated::object(context, number),
        (false, Below::Device(lower)) => own(context, lower),
    };
    let stack_size =
        memory::read::<DeviceObject>(lower).map_or(1, |lower| lower.stack_size.saturating_add(1));
    let io = if io_type == IO_DIRECT { DIRECT } else { BUFFERED };
    let device_type = match offered.device_type {
        // FILE_DEVICE_UNKNOWN
        0 => 0x22,
        given => given,
    };
    let object = Object::new(driver, io | POWER_PAGEABLE, device_type, stack_size);
    let address = object.address();
    update(address, |object| object.characteristics = characteristics);
    if lower != 0 {
        update(lower, |lower| lower.attached_device = address);
    }
    if let Ok(mut driver_object) = memory::read::<DriverObject>(driver) {
        update(address, |object| {
            object.next_device = driver_object.device_object;
        });
        driver_object.device_object = address;
        fill(driver, driver_object.as_bytes());
    }
    {
        let mut framework = context.framework();
        let owners = &mut framework.part::<Owners>().0;
        owners.insert(address, Owner::Device(device));
        if let Some(bus) = &offered.bus {
            owners.insert(bus.address(), Owner::Bus(device));
        }
    }
    context.with::<DeviceData, _>(device, |device| {
        *device.part::<Objects>() = Objects { own: Some(object), bus: offered.bus, foreign: None };
    });
}

/// Deletes a device's symbolic link and name, and removes its `DEVICE_OBJECT` from its stack and from
/// its driver's list. Called before the device is deleted.
fn detach(context: &Context, device: u64) {
    let link = context.with::<DeviceData, _>(device, |device| device.link.take());
    if let Some((_, link)) = link {
        namespace::delete_link(&mut context.ntoskrnl(), link);
    }
    if foreign(context, device).is_some() {
        return;
    }
    let address = own(context, device);
    namespace::remove(&mut context.ntoskrnl(), address);
    let lower = lower_object(context, device);
    if lower != 0 {
        update(lower, |lower| {
            if lower.attached_device == address {
                lower.attached_device = 0;
            }
        });
    }
    let Ok(object) = memory::read::<DeviceObject>(address) else {
        return;
    };
    if let Ok(mut driver) = memory::read::<DriverObject>(object.driver_object) {
        if driver.device_object == address {
            driver.device_object = object.next_device;
            fill(object.driver_object, driver.as_bytes());
        }
        let mut at = driver.device_object;
        // The list may form a cycle, because a driver can write to it.
        let mut seen = BTreeSet::new();
        while seen.insert(at)
            && let Ok(other) = memory::read::<DeviceObject>(at)
        {
            if other.next_device == address {
                update(at, |other| other.next_device = object.next_device);
                break;
            }
            at = other.next_device;
        }
    }
    let bus = bus_object(context, device);
    let mut framework = context.framework();
    let owners = &mut framework.part::<Owners>().0;
    owners.remove(&address);
    owners.remove(&bus);
}

/// Returns the owner of the `DEVICE_OBJECT` at this address: a driver's device, or the bottom of
/// its stack.
pub fn owner(context: &Context, address: u64) -> Option<Owner> {
    context.framework().part::<Owners>().0.get(&address).copied()
}

/// Returns the next lower `DEVICE_OBJECT` in a device's stack, or 0.
pub fn lower_object(context: &Context, device: u64) -> u64 {
    if let Some(foreign) = foreign(context, device) {
        return foreign.attached;
    }
    let (below, is_alone) = context.with::<DeviceData, _>(device, |device| {
        let init = &device.init;
        (init.below, init.control_of.is_some() || init.child_of.is_some())
    });
    match below {
        _ if is_alone => 0,
        Below::Bus => bus_object(context, device),
        Below::Simulated(number) => simulated::object(context, number),
        Below::Device(lower) if context.framework().exists(lower) => own(context, lower),
        Below::Device(_) => 0,
    }
}

fn get_device_object(context: &Context, device: Handle<DeviceData>) -> At<DeviceObject> {
    At::new(own(context, device.0))
}

fn get_attached_device(context: &Context, device: Handle<DeviceData>) -> At<DeviceObject> {
    At::new(lower_object(context, device.0))
}

fn get_physical_device(context: &Context, device: Handle<DeviceData>) -> At<DeviceObject> {
    At::new(physical_object(context, device.0))
}

fn get_device_handle(context: &Context, object: At<DeviceObject>) -> Handle<DeviceData> {
    match owner(context, object.0) {
        Some(Owner::Device(device)) => Handle::new(device),
        _ => context.stop_for_handle(&BadHandle {
            handle: object.0,
            expected: "DEVICE_OBJECT that the framework created",
            found: None,
        }),
    }
}

/// Returns the framework's driver object for a `DRIVER_OBJECT`, or 0 if its driver has not called
/// `WdfDriverCreate`.
fn get_driver_handle(context: &Context, object: At<DriverObject>) -> Handle<DriverData> {
    Handle::new(handle_of(context, object.0).unwrap_or(0))
}
