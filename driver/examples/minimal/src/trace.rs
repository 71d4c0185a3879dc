//! The driver's events.

pub use self::provider::{device_added, loaded, register, unloaded, unregister};

#[wdk_etw::provider(name = "Contoso.Minimal")]
mod provider {
    /// Loading and unloading of the driver, and its devices.
    #[keyword]
    pub const LIFECYCLE: Keyword = Keyword::bit(0);

    /// The driver was loaded.
    #[event(level = Info, keyword = LIFECYCLE, opcode = Start)]
    pub fn loaded(registry_path: UnicodeString<'_>);

    /// The driver tried to add a device.
    #[event(level = Info, keyword = LIFECYCLE)]
    pub fn device_added(status: NtStatus);

    /// The driver is being unloaded.
    #[event(level = Info, keyword = LIFECYCLE, opcode = Stop)]
    pub fn unloaded();
}
