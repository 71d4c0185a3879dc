//! The errors of controller calls.

use etl_file::Guid;

use super::limits::{MAX_PER_PROVIDER, MAX_PRIVATE, MAX_SESSIONS};

/// The error of a controller call.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// `ERROR_NO_SYSTEM_RESOURCES`: the maximum number of sessions is already running.
    #[error("cannot start a session: {MAX_SESSIONS} sessions are already running (error 1450)")]
    TooManySessions,
    /// `ERROR_NO_SYSTEM_RESOURCES`: the process already has the maximum number of private sessions.
    #[error(
        "cannot start a private session: {MAX_PRIVATE} private sessions of process {0} are already \
         running (error 1450)"
    )]
    TooManyPrivate(u32),
    /// `ERROR_NO_SYSTEM_RESOURCES`: the maximum number of sessions already enables the provider.
    #[error("cannot enable {{{0}}}: {MAX_PER_PROVIDER} sessions already enable it (error 1450)")]
    TooManyForProvider(Guid),
    /// `ERROR_ALREADY_EXISTS`: a session with this name is running. Names are compared ignoring
    /// case.
    #[error(
        "cannot start the session \"{0}\": a session of that name is already running (error 183)"
    )]
    AlreadyExists(String),
    /// `ERROR_BAD_LENGTH` or `ERROR_INVALID_PARAMETER`.
    #[error("{0} (error 87)")]
    InvalidParameter(String),
    /// `ERROR_BAD_PATHNAME`: the session has neither a file nor real-time delivery.
    #[error("cannot start a session that has neither a file nor real-time delivery (error 161)")]
    BadPathname,
    /// `ERROR_WMI_INSTANCE_NOT_FOUND`: the session is not running.
    #[error("the session is not running (error 4201)")]
    NotRunning,
    /// The session's file cannot be written.
    #[error("cannot write {}: {error}", path.display())]
    File {
        /// The file.
        path: std::path::PathBuf,
        /// The error.
        error: etl_file::write::WriteError,
    },
}
