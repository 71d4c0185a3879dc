//! Resources that cannot be made.

use std::num::TryFromIntError;

/// A resource that cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// A size does not fit its field in the format.
    #[error("a provider's resources are too large for their format: {0}")]
    TooLarge(#[from] TryFromIntError),
    /// The `LANGID` of a language is not known.
    #[error("the language \"{0}\" is not known; write it as in `en-US`")]
    Language(String),
}
