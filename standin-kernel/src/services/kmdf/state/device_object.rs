//! `DEVICE_OBJECT`s in memory, as drivers read them.

use zerocopy::{FromZeros, IntoBytes};

use super::{device::DeviceData, framework::Context};
use crate::ground::{
    abi::{DeviceObject, DeviceObjectExtension},
    arena::Block,
    memory,
};

/// A `DEVICE_OBJECT` and its I/O manager extension.
pub struct Object {
    block: Block,
    _extension: Block,
}

impl Object {
    /// Creates a driver's `DEVICE_OBJECT`.
    pub fn new(driver: u64, flags: u32, device_type: u32, stack_size: u8) -> Self {
        let block = Block::zeroed(size_of::<DeviceObject>());
        let extension = Block::zeroed(size_of::<DeviceObjectExtension>());
        let mut object = DeviceObject::new_zeroed();
        // IO_TYPE_DEVICE and IO_TYPE_DEVICE_OBJECT_EXTENSION
        object.kind = 3;
        object.size = size_of_u16::<DeviceObject>();
        object.reference_count = 1;
        object.driver_object = driver;
        object.flags = flags;
        object.device_type = device_type;
        object.stack_size = stack_size;
        object.device_object_extension = extension.address();
        let mut extended = DeviceObjectExtension::new_zeroed();
        extended.kind = 13;
        extended.size = size_of_u16::<DeviceObjectExtension>();
        extended.device_object = block.address();
        fill(block.address(), object.as_bytes());
        fill(extension.address(), extended.as_bytes());
        Self { block, _extension: extension }
    }

    /// Returns the address that drivers use.
    pub const fn address(&self) -> u64 {
        self.block.address()
    }
}

fn size_of_u16<T>() -> u16 {
    u16::try_from(size_of::<T>()).unwrap_or(u16::MAX)
}

/// Writes to memory that the kernel allocated and that is always accessible.
pub fn fill(address: u64, bytes: &[u8]) {
    let written = memory::write_bytes(address, bytes);
    debug_assert!(written.is_ok(), "the kernel's own memory is writable");
}

/// Changes a `DEVICE_OBJECT` that the kernel created.
pub fn update(address: u64, change: impl FnOnce(&mut DeviceObject)) {
    if let Ok(mut object) = memory::read::<DeviceObject>(address) {
        change(&mut object);
        fill(address, object.as_bytes());
    }
}

/// The `DEVICE_OBJECT`s of a device.
#[derive(Default)]
pub struct Objects {
    pub own: Option<Object>,
    /// The physical device, unless a driver or a test owns it.
    pub bus: Option<Object>,
    /// The `DEVICE_OBJECT`s of a miniport driver's device.
    pub foreign: Option<Foreign>,
}

/// The `DEVICE_OBJECT`s of a miniport driver's device. Other drivers created them.
#[derive(Clone, Copy)]
pub struct Foreign {
    /// The device's own `DEVICE_OBJECT`.
    pub own: u64,
    /// The next lower `DEVICE_OBJECT`, or 0.
    pub attached: u64,
    /// The `DEVICE_OBJECT` at the bottom of the stack, or 0.
    pub physical: u64,
}

/// Returns the `DEVICE_OBJECT`s of a miniport driver's device.
pub fn foreign(context: &Context, device: u64) -> Option<Foreign> {
    context.with::<DeviceData, _>(device, |device| device.part::<Objects>().foreign)
}

/// Returns the address of a device's own `DEVICE_OBJECT`.
pub fn own(context: &Context, device: u64) -> u64 {
    context.with::<DeviceData, _>(device, |device| {
        let objects = device.part::<Objects>();
        let foreign = objects.foreign.map_or(0, |foreign| foreign.own);
        objects.own.as_ref().map_or(foreign, Object::address)
    })
}

/// Returns the address of the bus's `DEVICE_OBJECT` for a device, or 0.
pub fn bus_object(context: &Context, device: u64) -> u64 {
    context.with::<DeviceData, _>(device, |device| {
        device.part::<Objects>().bus.as_ref().map_or(0, Object::address)
    })
}
