//! The framework's devices, as the Plug and Play manager sees them.

use super::{init::Inits, properties, wdm::Offered};
use crate::{
    ground::NtResult,
    services::{
        kmdf::state::{
            device::{Below, DeviceData, DeviceInit, DeviceInterface, Presence, rest_of_name},
            device_object::{Object, Objects},
            framework::{Framework, Kmdf},
            simulated::SimulatedDevices,
        },
        managers::plug_and_play::{DeviceNode, InterfaceInstance, PlugAndPlay, link},
    },
};

/// The interfaces that were registered for a device before its driver created it.
#[derive(Default)]
pub struct EarlyInterfaces(pub Vec<DeviceInterface>);

/// Returns the physical `DEVICE_OBJECT` of a device that is described but not created yet, or 0.
fn physical_of_init(framework: &mut Framework, init: u64) -> u64 {
    let Some(init) = framework.part::<Inits>().open.get_mut(&init) else {
        return 0;
    };
    if init.control_of.is_some() || init.child_of.is_some() {
        return 0;
    }
    let below = init.below;
    let bus = init.parts.get::<Offered>().bus.as_ref();
    let bus = bus.map_or(0, Object::address);
    physical_below(framework, below, bus)
}

/// Returns the physical `DEVICE_OBJECT` of a device's stack, or 0 for a control device or a removed
/// device.
fn physical_of(framework: &mut Framework, device: u64) -> u64 {
    let Ok(data) = framework.get::<DeviceData>(device) else {
        return 0;
    };
    if data.is_control() {
        return 0;
    }
    let (below, is_child) = (data.init.below, data.init.child_of.is_some());
    let objects = data.part::<Objects>();
    let own = objects.own.as_ref().map_or(0, Object::address);
    let bus = objects.bus.as_ref().map_or(0, Object::address);
    if is_child { own } else { physical_below(framework, below, bus) }
}

fn physical_below(framework: &mut Framework, below: Below, bus: u64) -> u64 {
    match below {
        Below::Bus => bus,
        Below::Simulated(number) => framework.part::<SimulatedDevices>().object_of(number),
        Below::Device(lower) => physical_of(framework, lower),
    }
}

/// Returns the devices above a physical `DEVICE_OBJECT`, lowest first.
fn stack_of(framework: &mut Framework, physical: u64) -> Vec<u64> {
    let mut devices = framework.all::<DeviceData>();
    devices.retain(|device| physical != 0 && physical_of(framework, *device) == physical);
    devices
}

/// Returns the handles of the device descriptions above a physical `DEVICE_OBJECT`.
fn inits_of(framework: &mut Framework, physical: u64) -> Vec<u64> {
    let mut inits: Vec<u64> = framework.part::<Inits>().open.keys().copied().collect();
    inits.sort_unstable();
    inits.retain(|init| physical != 0 && physical_of_init(framework, *init) == physical);
    inits
}

fn node_of(init: &DeviceInit) -> DeviceNode {
    DeviceNode {
        instance: init.identity.instance.clone(),
        driver_key: init.identity.driver_key.clone(),
    }
}

fn interfaces_of(framework: &mut Framework, device: u64) -> Vec<InterfaceInstance> {
    let physical = physical_of(framework, device);
    let Ok(data) = framework.get::<DeviceData>(device) else {
        return Vec::new();
    };
    let is_started = data.is_started && data.presence == Presence::Present;
    let instance = data.instance_path();
    let of_device = |interface: &DeviceInterface| InterfaceInstance {
        physical,
        instance: instance.clone(),
        class: interface.class,
        reference: interface.reference.clone(),
        is_enabled: interface.is_enabled,
        is_started,
    };
    data.interfaces.iter().map(of_device).collect()
}

/// Returns the interfaces that were registered for a device that is not created yet.
fn interfaces_of_init(framework: &mut Framework, init: u64) -> Vec<InterfaceInstance> {
    let physical = physical_of_init(framework, init);
    let Some(init) = framework.part::<Inits>().open.get_mut(&init) else {
        return Vec::new();
    };
    let instance = init.identity.instance.clone();
    let of_init = |interface: &DeviceInterface| InterfaceInstance {
        physical,
        instance: instance.clone(),
        class: interface.class,
        reference: interface.reference.clone(),
        is_enabled: interface.is_enabled,
        is_started: false,
    };
    let early = &init.parts.get::<EarlyInterfaces>().0;
    early.iter().map(of_init).collect()
}

impl PlugAndPlay for Kmdf {
    fn node(&self, physical: u64) -> Option<DeviceNode> {
        let mut framework = self.framework();
        if let Some(device) = stack_of(&mut framework, physical).first() {
            let data = framework.get::<DeviceData>(*device).ok()?;
            return Some(node_of(&data.init));
        }
        let init = *inits_of(&mut framework, physical).first()?;
        let inits = &framework.part::<Inits>().open;
        inits.get(&init).map(node_of)
    }

    fn property(&self, physical: u64, property: u32) -> Option<NtResult<Vec<u8>>> {
        let mut framework = self.framework();
        if let Some(device) = stack_of(&mut framework, physical).first() {
            return properties::of_node(&mut framework, *device, property);
        }
        let init = *inits_of(&mut framework, physical).first()?;
        let init = framework.part::<Inits>().open.get_mut(&init)?;
        Some(properties::of_description(init, property))
    }

    fn interfaces(&self) -> Vec<InterfaceInstance> {
        let mut framework = self.framework();
        let mut all = Vec::new();
        for device in framework.all::<DeviceData>() {
            all.extend(interfaces_of(&mut framework, device));
        }
        let mut inits: Vec<u64> = framework.part::<Inits>().open.keys().copied().collect();
        inits.sort_unstable();
        for init in inits {
            all.extend(interfaces_of_init(&mut framework, init));
        }
        // A control device has no hardware, so the Plug and Play manager does not know its
        // interfaces.
        all.retain(|one| one.physical != 0);
        all
    }

    fn add_interface(&self, physical: u64, class: [u8; 16], reference: &str) {
        let mut framework = self.framework();
        let interface =
            DeviceInterface { class, reference: reference.to_owned(), is_enabled: false };
        let is_same = |one: &DeviceInterface| {
            one.class == class && one.reference.eq_ignore_ascii_case(reference)
        };
        // A file that is opened through an interface enters a stack at the top.
        if let Some(device) = stack_of(&mut framework, physical).last() {
            if let Ok(data) = framework.get::<DeviceData>(*device)
                && !data.interfaces.iter().any(is_same)
            {
                data.interfaces.push(interface);
            }
        } else if let Some(init) = inits_of(&mut framework, physical).last() {
            let inits = &mut framework.part::<Inits>().open;
            let early = inits.get_mut(init).map(|init| init.parts.get::<EarlyInterfaces>());
            if let Some(early) = early.filter(|early| !early.0.iter().any(is_same)) {
                early.0.push(interface);
            }
        }
    }

    fn set_interface(&self, wanted: &str, is_enabled: bool) {
        let mut framework = self.framework();
        let is_wanted = |instance: &str, one: &DeviceInterface| {
            link(instance, one.class, &one.reference).eq_ignore_ascii_case(wanted)
        };
        for device in framework.all::<DeviceData>() {
            let Ok(data) = framework.get::<DeviceData>(device) else {
                continue;
            };
            let instance = data.instance_path();
            for one in &mut data.interfaces {
                if is_wanted(&instance, one) {
                    one.is_enabled = is_enabled;
                }
            }
        }
        for init in framework.part::<Inits>().open.values_mut() {
            let instance = init.identity.instance.clone();
            for one in &mut init.parts.get::<EarlyInterfaces>().0 {
                if is_wanted(&instance, one) {
                    one.is_enabled = is_enabled;
                }
            }
        }
    }

    fn has_name(&self, path: &str) -> bool {
        if self.interfaces().iter().any(|one| one.file_of(path).is_some()) {
            return true;
        }
        let mut framework = self.framework();
        let simulated = framework.part::<SimulatedDevices>();
        if simulated.names().any(|(_, name)| rest_of_name(path, name).is_some()) {
            return true;
        }
        let devices = framework.all::<DeviceData>();
        devices.into_iter().any(|device| {
            let device = framework.get::<DeviceData>(device);
            device.is_ok_and(|device| device.rest_of(path).is_some())
        })
    }
}
