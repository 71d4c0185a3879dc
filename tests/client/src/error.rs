//! The client's errors.

use std::{io, path::PathBuf};

use etw_session::error::{SessionError, Win32Error};

/// The reasons why a command failed.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// A call to a Windows function failed.
    #[error(transparent)]
    Win32(#[from] Win32Error),
    /// A session cannot be controlled or consumed.
    #[error(transparent)]
    Session(SessionError),
    /// The INF file of the driver package does not exist.
    #[error("the INF file {} does not exist", .0.display())]
    NoInf(PathBuf),
    /// The sample driver's device does not exist or is not started.
    #[error(
        "the sample device is not present: install the driver (see docs/vm-guide.md) and check in \
         Device Manager that its device is started"
    )]
    NoDevice,
    /// The sample driver's device is registered, but Windows does not enumerate it.
    #[error(
        "the sample device is registered but not present: remove it and the driver with `uninstall`, \
         and install the driver again"
    )]
    NotPresent,
    /// The folder of Windows' INF files, or a file in it, cannot be read.
    #[error("cannot search {} for the driver's INF file: {error}", folder.display())]
    Infs {
        /// The folder.
        folder: PathBuf,
        /// The reason.
        error: io::Error,
    },
    /// The driver package is not in the driver store.
    #[error(
        "the driver store has no package with this INF file: {} has no copy of {}; the devices are \
         removed; `pnputil /enum-drivers` lists the packages", folder.display(), inf.display()
    )]
    NotPublished {
        /// The package's INF file.
        inf: PathBuf,
        /// The folder with the published INF files.
        folder: PathBuf,
    },
    /// The device of the probes' driver does not exist or is not started.
    #[error(
        "the device of {} is not present: install the driver package of etw-probes-driver \
         (`etw-sample-client install` does not) and check in Device Manager that its device is \
         started",
        etw_probes_interface::SERVICE
    )]
    NoProbesDevice,
    /// No probe has this id.
    #[error("there is no probe named \"{0}\"; `probes --list` lists them")]
    NoProbe(String),
    /// A file with earlier answers cannot be read.
    #[error("cannot read {}: {error}", path.display())]
    ReadAnswers {
        /// The file.
        path: PathBuf,
        /// The reason.
        error: io::Error,
    },
    /// A file with earlier answers is not valid.
    #[error(transparent)]
    Answers(#[from] etw_probes::AnswersError),
    /// Some probes were not run.
    #[error("{not_asked} of {asked} probes were not run; see the answers file for the reasons")]
    NotAsked {
        /// The number of probes that were not run.
        not_asked: usize,
        /// The number of all probes.
        asked: usize,
    },
    /// The driver failed a request.
    #[error("the driver failed the request with NTSTATUS 0x{0:08x}")]
    Refused(u32),
    /// The driver's answer has the wrong length.
    #[error(
        "the driver returned {got} bytes for {request}; expected {expected}: the driver and the \
         client have different versions; install both from the same build"
    )]
    WrongLength {
        /// The name of the control code.
        request: &'static str,
        /// The length that the interface defines.
        expected: usize,
        /// The length of the answer.
        got: usize,
    },
    /// The file of a session cannot be read.
    #[error("cannot read the session's file {}: {why}", path.display())]
    NoTrace {
        /// The file.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// A file could not be written.
    #[error("cannot write {}: {error}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The reason.
        error: io::Error,
    },
    /// No scenario has this name.
    #[error("there is no scenario named \"{0}\"; `scenarios --list` lists them")]
    NoScenario(String),
    /// Scenarios failed.
    #[error("{failed} of {run} scenarios failed")]
    Scenarios {
        /// The number of scenarios that failed.
        failed: usize,
        /// The number of scenarios that ran.
        run: usize,
    },
    /// The host failed outside of a scenario.
    #[error(transparent)]
    Host(#[from] etw_scenarios::HostError),
}

impl From<SessionError> for Failure {
    fn from(error: SessionError) -> Self {
        match error {
            SessionError::Win32(error) => Self::Win32(error),
            other => Self::Session(other),
        }
    }
}
