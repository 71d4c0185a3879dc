//! The driver's events.

#[wdk_etw::provider(name = "Contoso.Several.Driver", statistics)]
pub mod provider {
    /// Loading and unloading.
    #[keyword]
    pub const LIFECYCLE: Keyword = Keyword::bit(0);

    /// The driver was loaded.
    #[event(id = 1, level = Info, keyword = LIFECYCLE, opcode = Start, message = "Loaded.")]
    pub fn loaded();

    /// The driver is being unloaded.
    #[event(id = 2, level = Info, keyword = LIFECYCLE, opcode = Stop, message = "Unloaded.")]
    pub fn unloaded();
}
