//! The errors of scripts.

use super::super::error::KernelError;

/// The error of a script, with its line.
#[derive(Debug, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct ScriptError {
    /// The line, from 1.
    pub line: usize,
    /// The problem.
    pub problem: Problem,
}

/// The problem in a line.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// The line is no step.
    #[error("{0}")]
    Syntax(String),
    /// A step needs something that is missing.
    #[error("{0}")]
    Order(&'static str),
    /// The last request did not end as expected.
    #[error("expected {expected}, and the request ended with {found}")]
    Unexpected {
        /// As it should have ended.
        expected: String,
        /// As it did.
        found: String,
    },
    /// The kernel refused the step, or bugchecked.
    #[error(transparent)]
    Kernel(#[from] KernelError),
}
