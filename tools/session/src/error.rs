//! The errors of calls to Windows.

use std::io;

use windows_sys::Win32::Foundation::{
    ERROR_ACCESS_DENIED, ERROR_ALREADY_EXISTS, ERROR_NO_SYSTEM_RESOURCES,
    ERROR_WMI_INSTANCE_NOT_FOUND, GetLastError,
};

/// A call to a Windows function failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{call} failed: {} (error {code}){}", message(*code), advice(*code))]
pub struct Win32Error {
    /// The name of the function.
    pub call: &'static str,
    /// The Windows error code.
    pub code: u32,
}

impl Win32Error {
    /// Returns the thread's last error (`GetLastError`).
    #[must_use]
    pub fn last(call: &'static str) -> Self {
        // SAFETY: the call has no preconditions.
        let code = unsafe { GetLastError() };
        Self { call, code }
    }

    /// Returns an error unless `code` is `ERROR_SUCCESS`.
    ///
    /// # Errors
    ///
    /// Fails if `code` is any other code.
    pub const fn check(call: &'static str, code: u32) -> Result<(), Self> {
        if code == 0 { Ok(()) } else { Err(Self { call, code }) }
    }
}

/// Returns the system's message for an error code.
fn message(code: u32) -> String {
    let text = io::Error::from_raw_os_error(code.cast_signed()).to_string();
    // "Access is denied. (os error 5)"
    let text = text.split(" (os error").next().unwrap_or_default();
    text.trim_end_matches(['.', ' ']).to_owned()
}

/// Returns advice for well-known error codes.
const fn advice(code: u32) -> &'static str {
    match code {
        ERROR_ACCESS_DENIED => {
            "; run this from an elevated prompt: sessions and devices require administrator rights"
        }
        ERROR_ALREADY_EXISTS => {
            "; a session with this name is running: stop it with `logman stop NAME -ets`, or choose \
             another name"
        }
        ERROR_WMI_INSTANCE_NOT_FOUND => "; `logman query -ets` lists the running sessions",
        ERROR_NO_SYSTEM_RESOURCES => {
            "; 64 sessions are already running, or eight sessions already enable the provider"
        }
        _ => "",
    }
}

/// The reason why a session cannot be controlled or consumed.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// A call to a Windows function failed.
    #[error(transparent)]
    Win32(#[from] Win32Error),
    /// The system has no ETW.
    #[error("this is Wine, which has no ETW and loads no drivers: run this on Windows")]
    NotWindows,
    /// The events could not be written.
    #[error("cannot write to standard output: {0}")]
    Output(io::Error),
}
