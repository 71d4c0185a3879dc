//! The devices of WDM drivers, as recorded by the Plug and Play manager.

use std::collections::BTreeMap;

use parking_lot::{Mutex, MutexGuard};

use super::{
    device_properties::{self, Bus, Identity},
    plug_and_play::{DeviceNode, InterfaceInstance, PlugAndPlay, link},
};
use crate::ground::NtResult;

/// The bus of the devices: `GUID_BUS_TYPE_INTERNAL` and `PNPBus`.
pub const BUS: Bus =
    Bus { kind: [0x1530_EA73, 0x11D1_086B, 0xC000_9FA0, 0xB140_C34F], legacy: 15, number: 0 };

/// The stage of a device in its life cycle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stage {
    /// The drivers have added the device.
    #[default]
    Added,
    /// The device is started.
    Started,
    /// The device was stopped in order to be restarted.
    Stopped,
    /// The hardware is gone, and the drivers know it. The device is removed once no file is open.
    Gone,
}

struct Interface {
    class: [u8; 16],
    reference: String,
    is_enabled: bool,
}

/// A device.
pub struct Node {
    /// The device's identity.
    pub identity: Identity,
    /// Properties that override others, by `DEVICE_REGISTRY_PROPERTY`.
    pub properties: Vec<(u32, String)>,
    /// The `DRIVER_OBJECT`s of the device's drivers, lowest first.
    pub drivers: Vec<u64>,
    /// The device's stage.
    pub stage: Stage,
    interfaces: Vec<Interface>,
}

impl Node {
    /// Returns a device that a driver is about to add.
    pub fn new(identity: Identity, driver: u64) -> Self {
        Self {
            identity,
            properties: Vec::new(),
            drivers: vec![driver],
            stage: Stage::Added,
            interfaces: Vec::new(),
        }
    }
}

/// The devices, by their physical `DEVICE_OBJECT`s.
#[derive(Default)]
pub struct Nodes {
    all: Mutex<BTreeMap<u64, Node>>,
    /// The total number of devices that the bus has enumerated.
    enumerated: Mutex<u32>,
}

impl Nodes {
    /// Returns the number of a new device, from 0.
    pub fn next_number(&self) -> u32 {
        let mut enumerated = self.enumerated.lock();
        let number = *enumerated;
        *enumerated += 1;
        number
    }

    /// Adds a device.
    pub fn add(&self, physical: u64, node: Node) {
        self.all.lock().insert(physical, node);
    }

    /// Removes a device.
    pub fn forget(&self, physical: u64) {
        self.all.lock().remove(&physical);
    }

    /// Runs `body` on a device, if it exists.
    pub fn with<R>(&self, physical: u64, body: impl FnOnce(&mut Node) -> R) -> Option<R> {
        self.lock().get_mut(&physical).map(body)
    }

    /// Returns the stage of a device, or `None` if the device does not exist.
    pub fn stage(&self, physical: u64) -> Option<Stage> {
        self.with(physical, |node| node.stage)
    }

    /// Sets the stage of a device.
    pub fn set_stage(&self, physical: u64, stage: Stage) {
        self.with(physical, |node| node.stage = stage);
    }

    /// Disables the interfaces of a device.
    pub fn disable_interfaces(&self, physical: u64) {
        self.with(physical, |node| {
            for one in &mut node.interfaces {
                one.is_enabled = false;
            }
        });
    }

    /// Returns the devices whose removal was delayed because a file was open on them.
    pub fn gone(&self) -> Vec<u64> {
        let all = self.lock();
        let gone = all.iter().filter(|(_, node)| node.stage == Stage::Gone);
        gone.map(|(physical, _)| *physical).collect()
    }

    /// Finds a device by the symbolic link of one of its enabled interfaces. Returns the device's
    /// physical `DEVICE_OBJECT`, and the name of the file to open: the interface's reference string
    /// followed by the rest of the path.
    pub fn find(&self, path: &str) -> Option<(u64, String)> {
        let interfaces = self.interfaces();
        let mut all = interfaces.iter();
        all.find_map(|one| Some((one.physical, one.file_of(path)?)))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Node>> {
        self.all.lock()
    }
}

impl PlugAndPlay for Nodes {
    fn node(&self, physical: u64) -> Option<DeviceNode> {
        self.with(physical, |node| DeviceNode {
            instance: node.identity.instance.clone(),
            driver_key: node.identity.driver_key.clone(),
        })
    }

    fn property(&self, physical: u64, property: u32) -> Option<NtResult<Vec<u8>>> {
        self.with(physical, |node| {
            device_properties::find(&node.identity, &node.properties, Some(&BUS), property)
        })
    }

    fn interfaces(&self) -> Vec<InterfaceInstance> {
        let all = self.lock();
        let of_node = |(physical, node): (&u64, &Node)| {
            let of_interface = |one: &Interface| InterfaceInstance {
                physical: *physical,
                instance: node.identity.instance.clone(),
                class: one.class,
                reference: one.reference.clone(),
                is_enabled: one.is_enabled,
                is_started: node.stage == Stage::Started,
            };
            node.interfaces.iter().map(of_interface).collect::<Vec<InterfaceInstance>>()
        };
        all.iter().flat_map(of_node).collect()
    }

    fn add_interface(&self, physical: u64, class: [u8; 16], reference: &str) {
        self.with(physical, |node| {
            let is_same = |one: &Interface| {
                one.class == class && one.reference.eq_ignore_ascii_case(reference)
            };
            if !node.interfaces.iter().any(is_same) {
                node.interfaces.push(Interface {
                    class,
                    reference: reference.to_owned(),
                    is_enabled: false,
                });
            }
        });
    }

    fn set_interface(&self, wanted: &str, is_enabled: bool) {
        for node in self.lock().values_mut() {
            let instance = &node.identity.instance;
            for one in &mut node.interfaces {
                if link(instance, one.class, &one.reference).eq_ignore_ascii_case(wanted) {
                    one.is_enabled = is_enabled;
                }
            }
        }
    }

    fn has_name(&self, _path: &str) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::{Node, Nodes, Stage};
    use crate::services::managers::{device_properties::Identity, plug_and_play::PlugAndPlay};

    const CLASS: [u8; 16] = [7; 16];

    fn with_a_device(reference: &str) -> (Nodes, String) {
        let nodes = Nodes::default();
        let identity = Identity { instance: r"ROOT\SAMPLE\0000".to_owned(), ..Identity::default() };
        nodes.add(8, Node::new(identity, 16));
        nodes.set_stage(8, Stage::Started);
        nodes.add_interface(8, CLASS, reference);
        let link = nodes.interfaces()[0].link();
        (nodes, link)
    }

    #[test]
    fn only_an_enabled_interface_of_a_started_device_leads_to_it() {
        let (nodes, link) = with_a_device("");
        assert_eq!(nodes.find(&link), None);
        nodes.set_interface(&link.to_uppercase(), true);
        assert_eq!(nodes.find(&link), Some((8, String::new())));
        let file = format!(r"{link}\file");
        assert_eq!(nodes.find(&file), Some((8, r"\file".to_owned())));
        assert_eq!(nodes.find(&format!("{link}x")), None);
        nodes.set_stage(8, Stage::Gone);
        assert_eq!(nodes.find(&link), None);
        nodes.set_stage(8, Stage::Started);
        nodes.disable_interfaces(8);
        assert_eq!(nodes.find(&link), None);
    }

    #[test]
    fn a_reference_string_is_the_name_of_the_file() {
        let (nodes, link) = with_a_device("control");
        nodes.set_interface(&link, true);
        assert_eq!(nodes.find(&link), Some((8, r"\control".to_owned())));
        // A second registration has no effect.
        nodes.add_interface(8, CLASS, "CONTROL");
        assert_eq!(nodes.interfaces().len(), 1);
    }
}
