//! The errors of scripts.

use crate::{
    ground::NtStatus,
    harness::error::{KernelError, OPENING},
};

/// An error in a line of a script.
#[derive(Debug, thiserror::Error)]
#[error("{}{problem}", at(*line))]
pub struct ScriptError {
    /// The line's number, from 1; 0 if the step does not come from a file.
    pub line: usize,
    /// The problem.
    pub problem: Problem,
}

impl ScriptError {
    /// Returns whether the step opened a device whose driver does not support opens. The I/O manager
    /// completes the create request in this way if the driver has no dispatch routine for it.
    pub(crate) fn is_unsupported_open(&self) -> bool {
        matches!(
            self.problem,
            Problem::Kernel(KernelError::Status {
                routine: OPENING,
                status: NtStatus::INVALID_DEVICE_REQUEST
            })
        )
    }
}

/// Returns an error's prefix, which names the line.
fn at(line: usize) -> String {
    match line {
        0 => String::new(),
        _ => format!("line {line}: "),
    }
}

/// The problem in a line.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// The line is not a valid step.
    #[error("{0}")]
    Syntax(String),
    /// The step requires an earlier step that is missing.
    #[error("{0}")]
    Order(&'static str),
    /// No started request has this name.
    #[error("no request was started as `{name}`{near}; start one with `start REQUEST as {name}`")]
    NoSuchRequest {
        /// The name.
        name: String,
        /// The nearest name of a started request.
        near: String,
    },
    /// A started request already has this name.
    #[error("a request was started as `{0}` already; wait for it with `wait {0}` first")]
    AlreadyStarted(String),
    /// The driver has not completed the request.
    #[error(
        "the driver has not completed the request and has no work left to run; start it with \
         `start REQUEST as NAME`, do what completes it, such as `advance`, a request or `cancel NAME`, \
         and then `wait NAME`"
    )]
    Pending,
    /// No event matches the expectation.
    #[error("{0}")]
    NoSuchEvent(String),
    /// The last request did not complete as expected.
    #[error("expected {expected}, but the request ended with {found}")]
    Unexpected {
        /// The expected status and bytes.
        expected: String,
        /// The actual status and bytes.
        found: String,
    },
    /// The step failed in the kernel, or the kernel bugchecked.
    #[error(transparent)]
    Kernel(KernelError),
}

impl From<KernelError> for Problem {
    fn from(error: KernelError) -> Self {
        match error {
            KernelError::Pending => Self::Pending,
            other => Self::Kernel(other),
        }
    }
}
