//! The device properties that the Plug and Play manager stores (`DEVICE_REGISTRY_PROPERTY`).

use super::{capabilities::ChildrensBus, init::with_init};
use crate::{
    execution::routine::{At, Handle, Kind, Memory, Out, routine},
    ground::{
        NtResult, NtStatus,
        abi::{DevicePropertyData, ObjectAttributes},
    },
    services::{
        kmdf::{
            lifetime::give,
            object::memory::{MemoryData, make_filled},
            state::{
                device::{DeviceData, DeviceInit},
                framework::{Context, Entries, Framework},
            },
        },
        managers::{
            device_properties,
            device_properties::{Bus, Identity, KeyedProperty, PropertyName, named, of_system},
        },
    },
};

pub const ENTRIES: Entries = &[
    routine("WdfDeviceQueryProperty", query::<DeviceData>),
    routine("WdfDeviceAllocAndQueryProperty", allocate::<DeviceData>),
    routine("WdfFdoInitQueryProperty", query::<DeviceInit>),
    routine("WdfFdoInitAllocAndQueryProperty", allocate::<DeviceInit>),
    routine("WdfDeviceAssignProperty", assign),
    routine("WdfDeviceQueryPropertyEx", query_keyed::<DeviceData>),
    routine("WdfDeviceAllocAndQueryPropertyEx", allocate_keyed::<DeviceData>),
    routine("WdfFdoInitQueryPropertyEx", query_keyed::<DeviceInit>),
    routine("WdfFdoInitAllocAndQueryPropertyEx", allocate_keyed::<DeviceInit>),
];

/// The properties that a test sets for a device, by number.
#[derive(Clone, Default)]
pub struct GivenProperties(pub Vec<(u32, String)>);

/// Returns a property, or the status for a device that lacks it.
fn find(
    identity: &Identity,
    given: &GivenProperties,
    bus: &ChildrensBus,
    property: u32,
) -> NtResult<Vec<u8>> {
    let bus = bus.0.as_ref().map(|bus| Bus {
        kind: bus.bus_type_guid,
        legacy: bus.legacy_bus_type,
        number: bus.bus_number,
    });
    device_properties::find(identity, &given.0, bus.as_ref(), property)
}

/// Returns a property of a device.
pub fn of_device(context: &Context, device: u64, property: u32) -> NtResult<Vec<u8>> {
    let (identity, given, is_control, parent) = context.with::<DeviceData, _>(device, |device| {
        let given = device.part::<GivenProperties>().clone();
        let identity = device.init.identity.clone();
        (identity, given, device.is_control(), device.init.child_of)
    });
    if is_control {
        return Err(NtStatus::INVALID_DEVICE_REQUEST);
    }
    let bus = parent.map_or_else(ChildrensBus::default, |parent| bus_of(context, parent));
    find(&identity, &given, &bus, property)
}

/// Returns a property of a device, if it exists, for the Plug and Play manager.
pub fn of_node(framework: &mut Framework, device: u64, property: u32) -> Option<NtResult<Vec<u8>>> {
    let data = framework.get::<DeviceData>(device).ok()?;
    let given = data.part::<GivenProperties>().clone();
    let identity = data.init.identity.clone();
    let parent = data.init.child_of;
    let parent = parent.and_then(|parent| framework.get::<DeviceData>(parent).ok());
    let bus = parent
        .map_or_else(ChildrensBus::default, |parent| ChildrensBus(parent.part::<ChildrensBus>().0));
    Some(find(&identity, &given, &bus, property))
}

/// Returns a property of a device that is not created yet, for the Plug and Play manager.
pub fn of_description(init: &mut DeviceInit, property: u32) -> NtResult<Vec<u8>> {
    let given = init.parts.get::<GivenProperties>().clone();
    find(&init.identity, &given, &ChildrensBus::default(), property)
}

fn bus_of(context: &Context, parent: u64) -> ChildrensBus {
    context.framework().get::<DeviceData>(parent).map_or_else(
        |_| ChildrensBus::default(),
        |parent| ChildrensBus(parent.part::<ChildrensBus>().0),
    )
}

/// Returns a property of the device that a driver is about to create.
fn of_init(context: &Context, init: u64, property: u32) -> NtResult<Vec<u8>> {
    let (identity, given, is_function) = with_init(context, init, |init| {
        let given = init.parts.get::<GivenProperties>().clone();
        let is_function = init.control_of.is_none() && init.child_of.is_none();
        (init.identity.clone(), given, is_function)
    });
    if !is_function {
        return Err(NtStatus::INVALID_DEVICE_REQUEST);
    }
    find(&identity, &given, &ChildrensBus::default(), property)
}

/// Copies a property to a driver's buffer, and stores the property's length.
pub fn copy_out(
    context: &Context,
    found: NtResult<Vec<u8>>,
    length: u32,
    buffer: u64,
    result_length: u64,
) -> NtResult {
    let needed = found.as_ref().map_or(0, |bytes| u32::try_from(bytes.len()).unwrap_or(u32::MAX));
    context.write(result_length, &needed);
    let bytes = found?;
    if length < needed {
        return Err(NtStatus::BUFFER_TOO_SMALL);
    }
    context.write_bytes(buffer, &bytes);
    Ok(())
}

/// Creates a memory object that contains a property.
pub fn give_memory(
    context: &Context,
    found: NtResult<Vec<u8>>,
    attributes: u64,
    memory: u64,
) -> NtResult {
    let made = found.and_then(|bytes| make_filled(context, &bytes, attributes));
    give(context, made, memory)
}

/// A device, or the description of one that a driver is about to create.
trait Described: Kind + Sized {
    /// Returns a property.
    fn property(context: &Context, device: Handle<Self>, property: u32) -> NtResult<Vec<u8>>;

    /// Returns the device's instance path.
    fn instance(context: &Context, device: Handle<Self>) -> NtResult<String>;
}

impl Described for DeviceData {
    fn property(context: &Context, device: Handle<Self>, property: u32) -> NtResult<Vec<u8>> {
        of_device(context, device.0, property)
    }

    fn instance(context: &Context, device: Handle<Self>) -> NtResult<String> {
        device.with(context, |device| {
            let instance = device.init.identity.instance.clone();
            if device.is_control() { Err(NtStatus::INVALID_DEVICE_STATE) } else { Ok(instance) }
        })
    }
}

impl Described for DeviceInit {
    fn property(context: &Context, device: Handle<Self>, property: u32) -> NtResult<Vec<u8>> {
        of_init(context, device.0, property)
    }

    fn instance(context: &Context, device: Handle<Self>) -> NtResult<String> {
        Ok(device.with_init(context, |init| init.identity.instance.clone()))
    }
}

fn query<T: Described>(
    context: &Context,
    device: Handle<T>,
    property: u32,
    length: u32,
    buffer: Memory,
    result_length: At<u32>,
) -> NtResult {
    let found = T::property(context, device, property);
    copy_out(context, found, length, buffer.0, result_length.0)
}

fn allocate<T: Described>(
    context: &Context,
    device: Handle<T>,
    property: u32,
    _pool: u32,
    attributes: At<ObjectAttributes>,
    memory: Out<MemoryData>,
) -> NtResult {
    let found = T::property(context, device, property);
    give_memory(context, found, attributes.0, memory.0)
}

/// Reads the structure that specifies a property.
fn read_data(context: &Context, data: At<DevicePropertyData>) -> NtResult<DevicePropertyData> {
    let data = data.read(context);
    let has_size = data.size as usize == size_of::<DevicePropertyData>();
    if has_size { Ok(data) } else { Err(NtStatus::INFO_LENGTH_MISMATCH) }
}

/// Returns the name of the property that a structure specifies, and the device's instance path.
fn keyed_name<T: Described>(
    context: &Context,
    device: Handle<T>,
    data: &DevicePropertyData,
) -> NtResult<(PropertyName, String)> {
    let instance = T::instance(context, device)?;
    Ok((named(&instance, context.read(data.property_key), data.lcid)?, instance))
}

fn find_keyed<T: Described>(
    context: &Context,
    device: Handle<T>,
    data: &DevicePropertyData,
) -> NtResult<KeyedProperty> {
    let (name, instance) = keyed_name(context, device, data)?;
    if let Some(found) = context.registry().properties.get(&name) {
        return Ok(found);
    }
    of_system(&name.1, &instance, |number| T::property(context, device, number))
}

/// Sets a property, or deletes it if there are no data.
fn assign(
    context: &Context,
    device: Handle<DeviceData>,
    data: At<DevicePropertyData>,
    kind: u32,
    length: u32,
    buffer: Memory,
) -> NtResult {
    let data = read_data(context, data)?;
    if length == 0 && !buffer.is_null() {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    let (name, _) = keyed_name(context, device, &data)?;
    let value = (!buffer.is_null()).then(|| (kind, context.read_bytes(buffer.0, length as usize)));
    context.registry().properties.set(name, value);
    Ok(())
}

fn query_keyed<T: Described>(
    context: &Context,
    device: Handle<T>,
    data: At<DevicePropertyData>,
    length: u32,
    buffer: Memory,
    result_length: At<u32>,
    kind: At<u32>,
) -> NtResult {
    let data = read_data(context, data)?;
    if (length == 0) != (buffer.is_null()) {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    let found = find_keyed(context, device, &data);
    kind.write(context, found.as_ref().map_or(0, |(property_type, _)| *property_type));
    copy_out(context, found.map(|(_, bytes)| bytes), length, buffer.0, result_length.0)
}

fn allocate_keyed<T: Described>(
    context: &Context,
    device: Handle<T>,
    data: At<DevicePropertyData>,
    _pool: u32,
    attributes: At<ObjectAttributes>,
    memory: Out<MemoryData>,
    kind: At<u32>,
) -> NtResult {
    let data = read_data(context, data)?;
    let (property_type, bytes) = find_keyed(context, device, &data)?;
    kind.write(context, property_type);
    give_memory(context, Ok(bytes), attributes.0, memory.0)
}
