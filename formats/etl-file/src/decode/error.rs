//! Errors in an event's metadata and user data.

use std::sync::Arc;

use crate::cursor::Cursor;
use crate::show::Escaped;

/// The reason why provider traits or `TraceLogging` metadata cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MetadataError {
    /// The block states an impossible size.
    #[error("the metadata's size field is {size}, but the metadata is {present} bytes long")]
    Size {
        /// The stated size.
        size: usize,
        /// The number of bytes present.
        present: usize,
    },
    /// A name has no terminating NUL.
    #[error("the name at metadata offset {offset} has no terminating NUL")]
    UnterminatedName {
        /// The offset of the name.
        offset: usize,
    },
    /// A part extends past the end of the metadata.
    #[error("the {what} at metadata offset {offset} extends beyond the end of the metadata")]
    Overrun {
        /// The offset of the part.
        offset: usize,
        /// The part.
        what: &'static str,
    },
    /// A trait that contains a GUID has the wrong size.
    #[error(
        "the trait of type {trait_type} at metadata offset {offset} cannot be {size} bytes long"
    )]
    TraitSize {
        /// The offset of the trait.
        offset: usize,
        /// The trait's type.
        trait_type: u8,
        /// The size that the trait states.
        size: u16,
    },
    /// A structure has no member count.
    #[error("the structure at metadata offset {offset} has no member count")]
    StructWithoutCount {
        /// The offset of the field.
        offset: usize,
    },
    /// Structures are nested more deeply than the decoder accepts.
    #[error("the structure at metadata offset {offset} is nested too deeply")]
    TooDeep {
        /// The offset of the field.
        offset: usize,
    },
}

/// The reason why user data does not match its schema.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("field `{}` at payload offset {offset}: {kind}", Escaped(field))]
pub struct PayloadError {
    /// The field that could not be decoded.
    pub field: Arc<str>,
    /// The offset in the user data.
    pub offset: usize,
    /// The reason.
    pub kind: PayloadErrorKind,
}

/// The reasons why a field cannot be decoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PayloadErrorKind {
    /// The data ends within the field.
    #[error("the data ends inside the field")]
    TooShort,
    /// The type is unknown.
    #[error("the type {0} is unknown")]
    UnknownType(u8),
    /// The provider uses a private encoding for the field.
    #[error("the provider uses a private encoding for the field")]
    Custom,
    /// The count or length refers to a field that is not an earlier integer.
    #[error("the field's count or length refers to `{}`, which is not an earlier integer field", Escaped(.0))]
    NoSuchNumber(Arc<str>),
    /// A string of UTF-16 units has an odd number of bytes.
    #[error("a UTF-16 string cannot be {0} bytes long")]
    OddLength(usize),
    /// A security identifier has more than 15 subauthorities.
    #[error("the security identifier has {0} subauthorities; the maximum is 15")]
    Sid(u8),
    /// A compressed text is damaged, or its size differs from the record's.
    #[error("the compressed text is damaged, or does not have the size that the record states")]
    Compressed,
    /// Arrays contain too many values without data.
    #[error("the field has too many values")]
    TooManyValues,
}

/// Returns the metadata block at the start of `bytes`; its first two bytes are its size.
pub(super) fn sized_block(bytes: &[u8]) -> Result<&[u8], MetadataError> {
    let size = Cursor::new(bytes).u16().map_or(0, usize::from);
    bytes
        .get(..size)
        .filter(|block| block.len() >= 2)
        .ok_or(MetadataError::Size { size, present: bytes.len() })
}
