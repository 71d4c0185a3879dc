//! The client's events. The client writes them in user mode. The scenarios' replacement for the
//! client reads this declaration.

#[wdk_etw::provider(name = "WdkEtw.SampleClient")]
pub mod provider {
    /// Requests to the driver.
    #[keyword]
    pub const REQUEST: Keyword = Keyword::bit(0);

    /// The client sends a request to the driver.
    #[event(level = Info, keyword = REQUEST, opcode = Start, name = "Request")]
    pub fn request_sent(#[hex] code: u32, length: u32);

    /// The driver has answered the request.
    #[event(level = Info, keyword = REQUEST, opcode = Stop, name = "Request")]
    pub fn request_answered(#[hex] code: u32, returned: u32, status: NtStatus);
}
