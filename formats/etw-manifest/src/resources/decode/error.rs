//! Errors in resources.

/// The reason why a resource cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// A part extends past the end of its resource.
    #[error("the resource {resource} ends inside the {what} at offset 0x{offset:x}")]
    Overrun {
        /// The resource.
        resource: &'static str,
        /// The part.
        what: &'static str,
        /// The offset in the resource, in bytes.
        offset: usize,
    },
    /// An expected tag is missing.
    #[error(
        "the resource WEVT_TEMPLATE has no {} at offset 0x{offset:x}",
        tag.escape_ascii()
    )]
    Tag {
        /// The expected tag.
        tag: [u8; 4],
        /// The offset in the resource, in bytes.
        offset: usize,
    },
    /// A reference to an entry that does not exist.
    #[error("the {what} at offset 0x{offset:x} refers to an entry that does not exist")]
    Reference {
        /// The part that contains the reference.
        what: &'static str,
        /// The offset in the resource, in bytes.
        offset: usize,
    },
    /// The format's version is unknown.
    #[error("the WEVT_TEMPLATE resource has version {0}.{1}; supported versions: 3 and 5")]
    Version(u16, u16),
    /// The resource describes more fields than the reader accepts.
    #[error("the WEVT_TEMPLATE resource describes more than {0} fields")]
    TooManyFields(usize),
    /// The resource refers to more text than the reader accepts.
    #[error("the WEVT_TEMPLATE resource contains more than {0} bytes of names")]
    TooMuchText(usize),
    /// The resource's lists overlap so much that reading them all would take too long.
    #[error(
        "the lists of the WEVT_TEMPLATE resource overlap: together, they are larger than {0} times \
         the resource"
    )]
    Repetition(usize),
}

impl DecodeError {
    /// Returns whether the error is an exceeded limit of the reader.
    pub(super) const fn is_limit(&self) -> bool {
        matches!(self, Self::TooManyFields(_) | Self::TooMuchText(_) | Self::Repetition(_))
    }
}
