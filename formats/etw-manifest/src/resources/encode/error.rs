//! Errors in writing resources.

use std::num::TryFromIntError;

/// The error for a resource that cannot be written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// A size does not fit its field in the format.
    #[error("a provider's resources are too large for their format: {0}")]
    TooLarge(#[from] TryFromIntError),
    /// The `LANGID` of a language is unknown.
    #[error("the language \"{0}\" is not known; write it as in `en-US`")]
    Language(String),
}
