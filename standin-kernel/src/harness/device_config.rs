//! The configuration of a device that a test adds.

use super::{
    device::Device, error::KernelError, request::Owner, simulated_device::SimulatedDevice,
};
use crate::services::{
    kmdf::{
        device::{capabilities::DevicePowerState, pnp::Offer},
        resource_lists::Resource,
        state::device::Below,
    },
    managers::registry::value::RegistryValue,
    ntoskrnl::io::plug_and_play::life,
};

/// The configuration of a device that a test adds. By default, the device is directly above the
/// root bus.
#[derive(Clone, Default)]
pub struct DeviceConfig {
    pub(super) offer: Offer,
    /// The physical `DEVICE_OBJECT` of the lower device, if its driver is a WDM driver.
    above: Option<u64>,
}

impl DeviceConfig {
    /// Returns the default configuration.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Places the device above a simulated device.
    #[must_use]
    pub const fn above_simulated(mut self, lower: &SimulatedDevice) -> Self {
        self.offer.below = Below::Simulated(lower.number());
        self
    }

    /// Places the device above a device of another driver, or above a child that a bus driver
    /// enumerated. The lower device must outlive this one.
    ///
    /// WDM drivers share a device: the driver is added to the lower device's stack, which is
    /// removed and rebuilt for this purpose, as on Windows. Both values then represent the same
    /// device, and removing one removes both.
    #[must_use]
    pub const fn above(mut self, lower: &Device) -> Self {
        match lower.owner() {
            Owner::Framework => {
                self.offer.below = Below::Device(lower.handle());
                self.above = None;
            }
            Owner::Driver => self.above = Some(lower.handle()),
        }
        self
    }

    /// Adds a hardware resource, which `EvtDevicePrepareHardware` finds in its lists.
    #[must_use]
    pub fn resource(mut self, resource: Resource) -> Self {
        self.offer.resources.push(resource);
        self
    }

    /// Lets the device wake itself and the system from the states up to this one. Without it, a device
    /// above a simulated device wakes from D2, a child as its bus driver reports, and no other device
    /// wakes: as for a root-enumerated device on Windows, `WdfDeviceAssignS0IdleSettings` with a wake
    /// capability and `WdfDeviceAssignSxWakeSettings` fail with `STATUS_POWER_STATE_INVALID`.
    #[must_use]
    pub const fn wakes_from(mut self, deepest: DevicePowerState) -> Self {
        self.offer.wake = Some(deepest);
        self
    }

    /// Adds a hardware id, which the driver reads as `DevicePropertyHardwareID`.
    #[must_use]
    pub fn hardware_id(mut self, id: &str) -> Self {
        self.offer.hardware_ids.push(id.to_owned());
        self
    }

    /// Sets a string property, identified by its number in `DEVICE_REGISTRY_PROPERTY`.
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

    /// Returns the configuration for a KMDF driver.
    pub(super) fn for_framework(self) -> Result<Offer, KernelError> {
        if self.above.is_some() {
            return Err(KernelError::NotProvided(
                "the stand-in kernel cannot attach a KMDF device above a device of a WDM \
                 driver",
            ));
        }
        Ok(self.offer)
    }

    /// Returns the configuration for a WDM driver, and the physical `DEVICE_OBJECT` of the lower
    /// device, if any.
    pub(super) fn for_driver(self) -> Result<(life::Offer, Option<u64>), KernelError> {
        let Offer {
            below,
            hardware_ids,
            properties,
            hardware_values,
            software_values,
            resources,
            wake,
        } = self.offer;
        if below != Below::Bus {
            return Err(KernelError::NotProvided(
                "the stand-in kernel cannot attach a WDM driver's device above a KMDF or \
                 simulated device",
            ));
        }
        if wake.is_some() {
            return Err(KernelError::NotProvided(
                "the stand-in kernel cannot let a WDM driver's device wake",
            ));
        }
        if !resources.is_empty() {
            return Err(KernelError::NotProvided(
                "the stand-in kernel cannot assign hardware resources to a WDM driver's device",
            ));
        }
        let offer = life::Offer { hardware_ids, properties, hardware_values, software_values };
        Ok((offer, self.above))
    }
}
