//! The driver's events.

pub use self::provider::{loaded, register, request, unloaded, unregister};

#[wdk_etw::provider(name = "WdkEtw.WdmTest")]
mod provider {
    /// Requests of the device, and the driver's life.
    #[keyword]
    pub const REQUEST: Keyword = Keyword::bit(0);

    /// The driver was loaded.
    #[event(level = Info, keyword = REQUEST)]
    pub fn loaded();

    /// A request arrived.
    #[event(level = Info, keyword = REQUEST)]
    pub fn request(major: u8, length: u32);

    /// The driver is being unloaded.
    #[event(level = Info, keyword = REQUEST)]
    pub fn unloaded();
}
