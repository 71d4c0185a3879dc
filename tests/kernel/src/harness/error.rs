//! The errors of a kernel's calls.

use crate::{
    ground::{
        bugcheck::{BugCheck, Violations},
        loader::LoadError,
        status::NtStatus,
    },
    services::{etw::error::ControlError, faults::Fault},
};

/// The error of a call of the kernel.
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
    /// The driver did something wrong that shows at its unload.
    #[error(transparent)]
    Violations(#[from] Violations),
    /// A controller's call failed.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// The routine cannot be made to fail.
    #[error("{0} cannot be made to fail; there are {known}", known = Fault::ROUTINES.join(", "))]
    NoSuchFault(&'static str),
    /// The driver has no unload routine.
    #[error("{0} has no unload routine, so it cannot be unloaded")]
    NotUnloadable(String),
    /// The driver holds the request, and nothing is left that would make it
    /// complete it; time may have to pass first.
    #[error("the driver has not completed the request yet")]
    Pending,
}
