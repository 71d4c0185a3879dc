//! A library with a user-mode provider, like the provider of a program, a service or a UMDF driver.
//! The declaration does not mention the mode.

/// The tests' provider.
#[wdk_etw::provider(
    name = "Test.UserMode",
    group = "2e651177-aeab-5ffc-66e2-144601de7da8",
    statistics
)]
pub mod trace {
    /// Requests.
    #[keyword]
    pub const REQUEST: Keyword = Keyword::bit(0);

    /// A request was sent.
    #[event(level = Info, keyword = REQUEST, opcode = Start)]
    pub fn request_sent(code: u32, text: &str);

    /// A request was answered.
    #[event(id = 1, level = Info, keyword = REQUEST, opcode = Stop)]
    pub fn request_answered(status: NtStatus);
}
