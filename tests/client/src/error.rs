//! What can go wrong, with the call that said so.

use std::{io, path::PathBuf};

use windows_sys::Win32::Foundation::{
    ERROR_ACCESS_DENIED, ERROR_ALREADY_EXISTS, ERROR_NO_SYSTEM_RESOURCES,
    ERROR_WMI_INSTANCE_NOT_FOUND, GetLastError,
};

/// A call of Windows' failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{call} failed: {} (error {code}){}", message(*code), advice(*code))]
pub struct Win32Error {
    /// The call.
    pub call: &'static str,
    /// The system's error code.
    pub code: u32,
}

impl Win32Error {
    /// What the thread's last call left.
    pub fn last(call: &'static str) -> Self {
        // SAFETY: it only reads a value of the thread's.
        let code = unsafe { GetLastError() };
        Self { call, code }
    }

    /// An error, unless the code is the one of success.
    pub const fn check(call: &'static str, code: u32) -> Result<(), Self> {
        if code == 0 {
            Ok(())
        } else {
            Err(Self { call, code })
        }
    }
}

/// What the system says of a code.
fn message(code: u32) -> String {
    let text = io::Error::from_raw_os_error(code.cast_signed()).to_string();
    // "Access is denied. (os error 5)"
    let text = text.split(" (os error").next().unwrap_or_default();
    text.trim_end_matches(['.', ' ']).to_owned()
}

/// What to do about it, where that is known.
const fn advice(code: u32) -> &'static str {
    match code {
        ERROR_ACCESS_DENIED => {
            "; run this from an elevated prompt: sessions and the sample device are for \
             administrators"
        }
        ERROR_ALREADY_EXISTS => "; stop that session first, or choose another name",
        ERROR_WMI_INSTANCE_NOT_FOUND => "; `logman query -ets` lists the sessions that run",
        ERROR_NO_SYSTEM_RESOURCES => {
            "; 64 sessions run already, or eight sessions enable the provider"
        }
        _ => "",
    }
}

/// Something the client was asked to do failed.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The command line does not have an argument that it must have.
    #[error("the argument {0} is missing")]
    Argument(&'static str),
    /// A call of Windows' failed.
    #[error(transparent)]
    Win32(#[from] Win32Error),
    /// The system has no ETW, and loads no drivers.
    #[error("this is Wine, which has no ETW and loads no drivers: run this on Windows")]
    NotWindows,
    /// The driver package is not there.
    #[error("there is no INF file {}", .0.display())]
    NoInf(PathBuf),
    /// The sample driver's device is not there.
    #[error(
        "the sample device is not there: install the driver (docs/vm-guide.md says how), and see \
         that its device is started"
    )]
    NoDevice,
    /// The device's driver refused a request.
    #[error("the driver ended the request with status 0x{0:08x}")]
    Refused(u32),
    /// The session that was recorded left no trace.
    #[error("the session wrote no file that can be read: {}: {why}", path.display())]
    NoTrace {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A file could not be written.
    #[error("cannot write {}: {error}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why not.
        error: io::Error,
    },
    /// The events could not be shown.
    #[error("cannot write to the standard output: {0}")]
    Output(io::Error),
    /// No scenario has the name.
    #[error("there is no scenario named \"{0}\"; `scenarios --list` lists them")]
    NoScenario(String),
    /// Scenarios failed.
    #[error("{failed} of {played} scenarios failed")]
    Scenarios {
        /// How many failed.
        failed: usize,
        /// How many were played.
        played: usize,
    },
    /// The scenarios' world failed before the first.
    #[error(transparent)]
    World(#[from] etw_scenarios::WorldError),
}
