//! The library's events. The driver's events have the same ids: each provider has its own ids.

#[wdk_etw::provider(name = "Contoso.Several.Library")]
pub mod provider {
    /// Messages.
    #[keyword]
    pub const MESSAGE: Keyword = Keyword::bit(0);

    /// The library received a message.
    #[event(id = 1, level = Info, keyword = MESSAGE, message = "Received %1 bytes.")]
    pub fn received(length: usize, start: HexDump<'_>);

    /// The library refused a message.
    #[event(id = 2, level = Error, keyword = MESSAGE, message = "Refused: %1.")]
    pub fn refused(status: NtStatus);
}
