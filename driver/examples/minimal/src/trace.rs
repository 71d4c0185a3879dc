//! Everything that this driver can say.

pub use self::provider::{device_added, loaded, register, unloaded, unregister};

#[wdk_etw::provider(name = "Contoso.Minimal")]
mod provider {
    /// The driver's and its devices' coming and going.
    #[keyword]
    pub const LIFECYCLE: Keyword = Keyword::bit(0);

    /// The driver was loaded.
    #[event(level = Info, keyword = LIFECYCLE, opcode = Start)]
    pub fn loaded(registry_path: UnicodeString<'_>);

    /// A device was added, or could not be.
    #[event(level = Info, keyword = LIFECYCLE)]
    pub fn device_added(status: NtStatus);

    /// The driver is being unloaded.
    #[event(level = Info, keyword = LIFECYCLE, opcode = Stop)]
    pub fn unloaded();
}
