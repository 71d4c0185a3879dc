//! The errors of a kernel's calls.

use crate::{
    ground::{
        NtStatus,
        bugcheck::{BugCheck, Violations},
        loader::LoadError,
        nearest::nearest,
    },
    services::{etw::error::ControlError, faults::Fault},
};

/// The error of a kernel's method.
#[derive(Debug, thiserror::Error)]
pub enum KernelError {
    /// The file is not a driver that can be loaded here.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The kernel bugchecked.
    #[error(transparent)]
    BugCheck(#[from] BugCheck),
    /// A routine of the driver failed.
    #[error("{routine} returned {status}")]
    Status {
        /// The routine.
        routine: &'static str,
        /// The status that it returned.
        status: NtStatus,
    },
    /// The driver's `DriverEntry` failed and left something behind, such as a registered provider.
    #[error("DriverEntry returned {status} and left on that path:\n{violations}")]
    FailedEntry {
        /// The status that it returned.
        status: NtStatus,
        /// The rest that it left.
        violations: Violations,
    },
    /// A path or a device cannot be opened, whatever the driver does.
    #[error("cannot open {what}: {why} ({status})")]
    CannotOpen {
        /// The path or the device.
        what: String,
        /// The reason.
        why: String,
        /// The status of the call.
        status: NtStatus,
    },
    /// A device is not removed in an orderly way, because it is in use or the driver refuses.
    #[error("cannot remove the device: {0}")]
    Vetoed(String),
    /// A device is not stopped, because the driver refuses.
    #[error("cannot stop the device: {0}")]
    VetoedStop(String),
    /// The stand-in kernel cannot do this with a device of a driver without the framework, or with one of
    /// the framework.
    #[error("{0}")]
    NotProvided(&'static str),
    /// The driver's unload revealed violations.
    #[error(transparent)]
    Violations(#[from] Violations),
    /// A controller's call failed.
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
    /// The driver holds the request and has no more work to run. It may complete the request
    /// after time passes.
    #[error(
        "the driver has not completed the request and has no work left to run; if it waits for a \
         timer, call `Kernel::advance` and try again"
    )]
    Pending,
}
