//! What a test chooses for a device that it adds.

use super::{device::Device, played_device::PlayedDevice};
use crate::services::{
    kmdf::{device::pnp::Offer, resource::Resource, state::device::Below},
    registry::value::RegistryValue,
};

/// What a test chooses for a device that it adds. By default, the device has nothing below it but its
/// bus, which is the root bus.
#[derive(Clone, Default)]
pub struct DeviceConfig {
    pub(super) offer: Offer,
}

impl DeviceConfig {
    /// Returns the default configuration.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Puts the device above a device that the test plays.
    #[must_use]
    pub const fn above_played(mut self, lower: &PlayedDevice) -> Self {
        self.offer.below = Below::Played(lower.number());
        self
    }

    /// Puts the device above a device of another driver, or above a child that a bus driver
    /// enumerated. The lower device must outlive it.
    #[must_use]
    pub const fn above(mut self, lower: &Device) -> Self {
        self.offer.below = Below::Device(lower.handle());
        self
    }

    /// Adds a hardware resource, which a driver finds in the lists of `EvtDevicePrepareHardware`.
    #[must_use]
    pub fn resource(mut self, resource: Resource) -> Self {
        self.offer.resources.push(resource);
        self
    }

    /// Adds a hardware id, which a driver reads as `DevicePropertyHardwareID`.
    #[must_use]
    pub fn hardware_id(mut self, id: &str) -> Self {
        self.offer.hardware_ids.push(id.to_owned());
        self
    }

    /// Sets a text property by its number in `DEVICE_REGISTRY_PROPERTY`.
    #[must_use]
    pub fn property(mut self, property: u32, text: &str) -> Self {
        self.offer.properties.push((property, text.to_owned()));
        self
    }

    /// Sets a value in the device's hardware key (`PLUGPLAY_REGKEY_DEVICE`).
    #[must_use]
    pub fn hardware_value(mut self, name: &str, value: impl Into<RegistryValue>) -> Self {
        let value = (name.to_owned(), value.into());
        self.offer.hardware_values.push(value);
        self
    }

    /// Sets a value in the device's software key (`PLUGPLAY_REGKEY_DRIVER`).
    #[must_use]
    pub fn software_value(mut self, name: &str, value: impl Into<RegistryValue>) -> Self {
        let value = (name.to_owned(), value.into());
        self.offer.software_values.push(value);
        self
    }
}
