//! The errors of the kernel's methods.

use crate::{
    ground::{
        NtStatus,
        bugcheck::{BugCheck, Violations},
        loader::LoadError,
        nearest::nearest,
    },
    services::{etw::error::ControlError, verifier::faults::Fault},
};

/// The routine that [`KernelError::Status`] names if a driver fails an open.
pub const OPENING: &str = "opening the device";

/// The error of a kernel method.
#[derive(Debug, thiserror::Error)]
pub enum KernelError {
    /// The file cannot be loaded as a driver.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The kernel bugchecked.
    #[error(transparent)]
    BugCheck(#[from] BugCheck),
    /// A driver routine failed.
    #[error("{routine} returned {status}")]
    Status {
        /// The routine's name.
        routine: &'static str,
        /// The status that it returned.
        status: NtStatus,
    },
    /// The driver's `DriverEntry` failed and left something behind, such as a registered provider.
    #[error("DriverEntry returned {status} and left behind on that path:\n{violations}")]
    FailedEntry {
        /// The status that it returned.
        status: NtStatus,
        /// The violations for the objects that it left behind.
        violations: Violations,
    },
    /// A path or device cannot be opened, regardless of the driver.
    #[error("cannot open {what}: {why} ({status})")]
    CannotOpen {
        /// The path or the device.
        what: String,
        /// The reason.
        why: String,
        /// The status of the call.
        status: NtStatus,
    },
    /// A device cannot be removed in an orderly way, because it is in use or the driver refuses.
    #[error("cannot remove the device: {0}")]
    Vetoed(String),
    /// A device cannot be stopped, because the driver refuses.
    #[error("cannot stop the device: {0}")]
    VetoedStop(String),
    /// The stand-in kernel does not support this operation for this kind of driver.
    #[error("{0}")]
    NotProvided(&'static str),
    /// The driver's unload revealed violations.
    #[error(transparent)]
    Violations(#[from] Violations),
    /// A call of a session controller failed.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// Fault injection does not support the routine.
    #[error(
        "fault injection does not support `{0}`{near} It supports {supported}.",
        near = nearest(.0, Fault::routines())
            .map_or_else(|| ".".to_owned(), |name| format!("; did you mean `{name}`?")),
        supported = Fault::SUPPORTED
    )]
    NoSuchFault(&'static str),
    /// The driver has no unload routine.
    #[error("{0} has no unload routine, so it cannot be unloaded")]
    NotUnloadable(String),
    /// The driver has not completed the request and has no more work to run. A timer may complete
    /// the request later.
    #[error(
        "the driver has not completed the request and has no work left to run; if it waits for a \
         timer, call `Kernel::advance` and try again"
    )]
    Pending,
}
