//! Errors in writing resources.

use std::num::TryFromIntError;

/// The reason why a resource cannot be written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// A size does not fit in its field.
    #[error("a provider's resources are too large for their format: {0}")]
    TooLarge(#[from] TryFromIntError),
    /// The `LANGID` of a language is unknown.
    #[error("the language \"{0}\" is unknown; expected a name such as `en-US`")]
    Language(String),
}
