//! The errors of calls to Windows.

use std::{io, path::PathBuf};

use windows_sys::Win32::Foundation::{
    ERROR_ACCESS_DENIED, ERROR_ALREADY_EXISTS, ERROR_NO_SYSTEM_RESOURCES,
    ERROR_WMI_INSTANCE_NOT_FOUND, GetLastError,
};

/// A call to a Windows function failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{call} failed: {} (error {code}, 0x{code:08X}){}", message(*code), advice(*code))]
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

/// Returns the code under which the system has a message for an error code. `SetupAPI`'s own codes,
/// such as 0xE0000247, have none; the `HRESULT`s that stand for them have
/// (`HRESULT_FROM_SETUPAPI`).
const fn code_with_message(code: u32) -> u32 {
    // An application's code (bit 29) of the severity "error".
    const SETUP_API: u32 = 0xE000_0000;
    // An HRESULT that means failure, of the facility FACILITY_SETUP.
    const HRESULT: u32 = 0x8000_0000 | 15 << 16;
    if code & SETUP_API == SETUP_API { code & 0xFFFF | HRESULT } else { code }
}

/// Returns the system's message for an error code.
fn message(code: u32) -> String {
    let code = code_with_message(code).cast_signed();
    let text = io::Error::from_raw_os_error(code).to_string();
    // "Access is denied. (os error 5)"
    let text = text.split(" (os error").next().unwrap_or_default();
    text.trim_end_matches(['.', ' ']).to_owned()
}

/// `ERROR_AUTHENTICODE_TRUST_NOT_ESTABLISHED`
const SETUP_NOT_TRUSTED: u32 = 0xE000_0242;
/// `ERROR_DRIVER_STORE_ADD_FAILED`
const SETUP_NOT_ADDED: u32 = 0xE000_0247;
/// `ERROR_NO_CATALOG_FOR_OEM_INF`
const SETUP_NO_CATALOG: u32 = 0xE000_022F;

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
        SETUP_NOT_TRUSTED | SETUP_NOT_ADDED | SETUP_NO_CATALOG => {
            "; run prepare.cmd of the package, which makes Windows trust its certificate; \
             %SystemRoot%\\INF\\setupapi.dev.log has the reason"
        }
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
    /// The path of a session's file is relative, and the current folder is unknown.
    #[error("cannot find the folder of {}: {error}", path.display())]
    Folder {
        /// The path.
        path: PathBuf,
        /// The reason.
        error: io::Error,
    },
    /// The events could not be written.
    #[error("cannot write to standard output: {0}")]
    Output(io::Error),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_codes_of_the_setup_api_have_the_text_of_their_hresults() {
        for (code, expected) in [
            (SETUP_NOT_TRUSTED, 0x800F_0242),
            (SETUP_NOT_ADDED, 0x800F_0247),
            (SETUP_NO_CATALOG, 0x800F_022F),
            (5, 5),
            (0x8007_0005, 0x8007_0005),
        ] {
            assert_eq!(code_with_message(code), expected, "{code:#x}");
        }
        let shown = Win32Error { call: "X", code: SETUP_NOT_ADDED }.to_string();
        assert!(shown.contains("(error 3758096967, 0xE0000247); run prepare.cmd"), "{shown}");
        assert_eq!(message(0xE000_0247), message(0x800F_0247));
    }
}
