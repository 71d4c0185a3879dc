//! The Plug and Play manager's information about devices, regardless of the service that owns them.

use std::sync::Arc;

use etw_wire::Guid;

use super::registry::paths::CONTROL_SET;
use crate::ground::NtResult;

/// The identity of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceNode {
    /// The device instance path, for instance `ROOT\SAMPLE\0000`.
    pub instance: String,
    /// The name of the driver key, below the key of all classes.
    pub driver_key: String,
}

/// An interface that a driver registered for a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterfaceInstance {
    /// The physical `DEVICE_OBJECT` of the device.
    pub physical: u64,
    /// The device instance path.
    pub instance: String,
    /// The interface class.
    pub class: [u8; 16],
    /// The reference string, or an empty string.
    pub reference: String,
    /// Set if the interface is enabled.
    pub is_enabled: bool,
    /// Set if the device is started and present.
    pub is_started: bool,
}

impl InterfaceInstance {
    /// Returns the name of the symbolic link.
    pub fn link(&self) -> String {
        link(&self.instance, self.class, &self.reference)
    }

    /// Returns the name of the file that a path opens through the interface: the reference string
    /// followed by the rest of the path after the link. Returns `None` if the path does not refer
    /// to the interface, if the interface is disabled, or if its device is not started.
    pub fn file_of(&self, path: &str) -> Option<String> {
        let path =
            [r"\\?\", r"\??\", r"\\.\"].iter().find_map(|prefix| path.strip_prefix(prefix))?;
        let link = self.link();
        let link = link.get(4..)?;
        let (start, rest) = path.split_at_checked(link.len())?;
        let leads_here = start.eq_ignore_ascii_case(link)
            && (rest.is_empty() || rest.starts_with('\\'))
            && self.is_enabled
            && self.is_started;
        let file = if self.reference.is_empty() {
            rest.to_owned()
        } else {
            format!(r"\{}{rest}", self.reference)
        };
        leads_here.then_some(file)
    }

    /// Returns the path of the registry key for the interface's driver data.
    pub fn key(&self) -> String {
        let class = Guid::from_bytes(self.class);
        let instance = self.instance.replace('\\', "#");
        format!(
            r"{CONTROL_SET}\Control\DeviceClasses\{{{class}}}\##?#{instance}#{{{class}}}\#{}\Device Parameters",
            self.reference
        )
    }
}

/// Returns the name of an interface's symbolic link.
pub fn link(instance: &str, class: [u8; 16], reference: &str) -> String {
    let class = Guid::from_bytes(class);
    let mut link = format!(r"\??\{}#{{{class}}}", instance.replace('\\', "#"));
    if !reference.is_empty() {
        link.push('\\');
        link.push_str(reference);
    }
    link
}

/// The devices of a service.
pub trait PlugAndPlay: Send + Sync {
    /// Returns the identity of the device with this physical `DEVICE_OBJECT`, if there is one.
    fn node(&self, physical: u64) -> Option<DeviceNode>;

    /// Returns a property (`DEVICE_REGISTRY_PROPERTY`) of the device with this physical
    /// `DEVICE_OBJECT`, or the status for a device that lacks the property. Returns `None` if there
    /// is no such device.
    fn property(&self, physical: u64, property: u32) -> Option<NtResult<Vec<u8>>>;

    /// Returns the interfaces of all devices, oldest first.
    fn interfaces(&self) -> Vec<InterfaceInstance>;

    /// Registers a disabled interface for the device with this physical `DEVICE_OBJECT`. Does
    /// nothing if the device already has the interface or does not exist.
    fn add_interface(&self, physical: u64, class: [u8; 16], reference: &str);

    /// Enables or disables the interface with this symbolic link.
    fn set_interface(&self, link: &str, is_enabled: bool);

    /// Returns whether a path refers, through a name or an interface, to a device of a framework
    /// driver or to a simulated device.
    fn has_name(&self, path: &str) -> bool;
}

/// The combined devices of several services.
pub struct Every(pub Vec<Arc<dyn PlugAndPlay>>);

impl PlugAndPlay for Every {
    fn node(&self, physical: u64) -> Option<DeviceNode> {
        self.0.iter().find_map(|one| one.node(physical))
    }

    fn property(&self, physical: u64, property: u32) -> Option<NtResult<Vec<u8>>> {
        let mut all = self.0.iter();
        all.find_map(|one| one.property(physical, property))
    }

    fn interfaces(&self) -> Vec<InterfaceInstance> {
        self.0.iter().flat_map(|one| one.interfaces()).collect()
    }

    fn add_interface(&self, physical: u64, class: [u8; 16], reference: &str) {
        for one in &self.0 {
            one.add_interface(physical, class, reference);
        }
    }

    fn set_interface(&self, link: &str, is_enabled: bool) {
        for one in &self.0 {
            one.set_interface(link, is_enabled);
        }
    }

    fn has_name(&self, path: &str) -> bool {
        self.0.iter().any(|one| one.has_name(path))
    }
}
