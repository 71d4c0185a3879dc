//! What can be wrong with the resources of an image.

use std::io;
use std::path::PathBuf;

/// An image's resources could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// The file could not be read.
    #[error("cannot read the image {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The image or its resources are malformed, or not there.
    #[error("the image {}: {source}", path.display())]
    Resource {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: ResourceError,
    },
}

/// Resources that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResourceError {
    /// The file is no PE image, or a damaged one.
    #[error("it is not a well-formed PE image: {0}")]
    Image(String),
    /// There is no resource of this type.
    #[error("it has no resource {0}")]
    Missing(&'static str),
    /// Something runs over the end of its resource.
    #[error("the resource {resource} ends within the {what} at offset 0x{offset:x}")]
    Overrun {
        /// Which resource.
        resource: &'static str,
        /// What was being read.
        what: &'static str,
        /// Where that is.
        offset: usize,
    },
    /// Another tag was expected.
    #[error(
        "at offset 0x{offset:x} of the resource WEVT_TEMPLATE there is no {}",
        String::from_utf8_lossy(tag)
    )]
    Tag {
        /// The tag that should be there.
        tag: [u8; 4],
        /// Where.
        offset: usize,
    },
    /// A reference leads nowhere.
    #[error("the {what} at offset 0x{offset:x} refers to something that is not there")]
    Reference {
        /// What refers.
        what: &'static str,
        /// Where it is.
        offset: usize,
    },
    /// A version of the format that is not known.
    #[error("its WEVT_TEMPLATE has version {0}.{1}; versions 3 and 5 are known")]
    Version(u16, u16),
    /// What the resource describes would take far more than the resource.
    #[error("its WEVT_TEMPLATE describes more than {0} fields")]
    TooManyFields(usize),
}
