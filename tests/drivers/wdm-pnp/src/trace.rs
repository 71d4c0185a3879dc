//! The driver's events.

pub use self::provider::{added, loaded, pnp, power_state, register, unloaded, unregister};

#[wdk_etw::provider(name = "WdkEtw.WdmPnpTest")]
mod provider {
    /// The lifetimes of the driver and its device.
    #[keyword]
    pub const LIFE: Keyword = Keyword::bit(0);
    /// The device's power.
    #[keyword]
    pub const POWER: Keyword = Keyword::bit(1);

    /// The driver was loaded.
    #[event(level = Info, keyword = LIFE)]
    pub fn loaded();

    /// The driver has added a device.
    #[event(level = Info, keyword = LIFE)]
    pub fn added(stack_size: u8);

    /// A plug-and-play request has arrived.
    #[event(level = Info, keyword = LIFE)]
    pub fn pnp(minor: u8);

    /// The device's power state has changed.
    #[event(level = Info, keyword = POWER)]
    pub fn power_state(state: u32);

    /// The driver is being unloaded.
    #[event(level = Info, keyword = LIFE)]
    pub fn unloaded();
}
