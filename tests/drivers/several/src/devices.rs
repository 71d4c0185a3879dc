//! The events of the driver's devices, which have their own provider. Debug builds print them in the
//! debugger.

#[wdk_etw::provider(name = "Contoso.Several.Devices", debugger)]
pub mod provider {
    /// Arrival of devices.
    #[keyword]
    pub const ARRIVAL: Keyword = Keyword::bit(4);

    #[tasks]
    enum Task {
        Device = 1,
    }

    /// The result of adding a device.
    #[map]
    pub enum Arrival {
        Added = 0,
        Failed = 1,
    }

    /// The driver tried to add a device.
    #[event(id = 1, level = Info, keyword = ARRIVAL, task = Device, message = "Device: %1.")]
    pub fn device_added(arrival: Arrival);

    /// The first device was added.
    #[event(level = Info, keyword = ARRIVAL)]
    pub fn first_device();
}
