//! The errors of a controller's calls.

use etl_file::Guid;

use super::limits::{MAX_PER_PROVIDER, MAX_PRIVATE, MAX_SESSIONS};

/// Why a controller's call failed.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// `ERROR_NO_SYSTEM_RESOURCES`: as many sessions run as can.
    #[error("{MAX_SESSIONS} sessions are running; another one cannot be started (error 1450)")]
    TooManySessions,
    /// `ERROR_NO_SYSTEM_RESOURCES`: as many private sessions run as can.
    #[error(
        "{MAX_PRIVATE} private sessions of process {0} are running; another one cannot be started \
         (error 1450)"
    )]
    TooManyPrivate(u32),
    /// `ERROR_NO_SYSTEM_RESOURCES`: as many sessions enable the provider as can.
    #[error("{MAX_PER_PROVIDER} sessions enable {{{0}}} already; another one cannot (error 1450)")]
    TooManyForProvider(Guid),
    /// `ERROR_ALREADY_EXISTS`: session names are compared without case.
    #[error("a session named \"{0}\" is running already (error 183)")]
    AlreadyExists(String),
    /// `ERROR_BAD_LENGTH` or `ERROR_INVALID_PARAMETER`.
    #[error("{0} (error 87)")]
    InvalidParameter(String),
    /// `ERROR_BAD_PATHNAME`: a session that has neither a file nor consumers.
    #[error("a session has a file, or delivers in real time (error 161)")]
    BadPathname,
    /// `ERROR_WMI_INSTANCE_NOT_FOUND`: the session was stopped.
    #[error("the session is not running (error 4201)")]
    NotRunning,
    /// The session's file could not be written.
    #[error("{}: {error}", path.display())]
    File {
        /// The file.
        path: std::path::PathBuf,
        /// The error.
        error: etl_file::write::WriteError,
    },
}
