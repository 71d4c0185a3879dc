//! What the plug-and-play manager knows of devices, whichever service has them.

use etw_wire::Guid;

use super::registry::paths::CONTROL_SET;

/// What identifies a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceNode {
    /// The device instance path, for instance `ROOT\SAMPLE\0000`.
    pub instance: String,
    /// The name of the driver key, below that of all classes.
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
    /// Set if the interface was enabled.
    pub is_enabled: bool,
    /// Set if the device is started and present.
    pub is_started: bool,
}

impl InterfaceInstance {
    /// Returns the name of the symbolic link.
    pub fn link(&self) -> String {
        link(&self.instance, self.class, &self.reference)
    }

    /// Returns the path of the key for what drivers keep of the interface.
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

/// The devices of a service that has some.
pub trait PlugAndPlay: Send + Sync {
    /// Returns what identifies the device of a physical `DEVICE_OBJECT`, if it is one.
    fn node(&self, physical: u64) -> Option<DeviceNode>;

    /// Returns the interfaces of all devices, oldest first.
    fn interfaces(&self) -> Vec<InterfaceInstance>;

    /// Registers an interface, which is disabled, for the device of a physical `DEVICE_OBJECT`. Has no
    /// effect if the device has it or does not exist.
    fn add_interface(&self, physical: u64, class: [u8; 16], reference: &str);

    /// Enables or disables the interface of a symbolic link.
    fn set_interface(&self, link: &str, is_enabled: bool);
}
