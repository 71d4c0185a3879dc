//! What can be wrong with a manifest.

use std::io;
use std::path::PathBuf;

use crate::guid::ParseGuidError;
use crate::show::Escaped;

/// A manifest file could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file could not be read.
    #[error("cannot read the manifest {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file is no text.
    #[error("the manifest {} is neither UTF-8 nor UTF-16 text", path.display())]
    Encoding {
        /// The file.
        path: PathBuf,
    },
    /// The manifest is malformed.
    #[error("the manifest {}:{source}", path.display())]
    Manifest {
        /// The file.
        path: PathBuf,
        /// What is wrong, and where.
        source: Box<ManifestError>,
    },
}

/// A malformed manifest.
#[derive(Debug, thiserror::Error)]
#[error("{line}:{column}: {kind}")]
pub struct ManifestError {
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// What is wrong there.
    pub kind: ManifestErrorKind,
}

/// What is wrong with a manifest.
#[derive(Debug, thiserror::Error)]
pub enum ManifestErrorKind {
    /// It is not well-formed XML.
    #[error("the XML is malformed: {}", Escaped(.0))]
    Xml(String),
    /// Its outermost element is another one.
    #[error("`{}` is not an instrumentationManifest", Escaped(.0))]
    NotAManifest(String),
    /// An attribute is missing.
    #[error("`{}` lacks the attribute `{attribute}`", Escaped(element))]
    MissingAttribute {
        /// The element.
        element: String,
        /// The attribute.
        attribute: &'static str,
    },
    /// An attribute is not a number, or not one in its range.
    #[error("`{}` is not a number from 0 to {max}", Escaped(text))]
    Number {
        /// The attribute's text.
        text: String,
        /// The largest number that it can be.
        max: u64,
    },
    /// An attribute is not a GUID.
    #[error(transparent)]
    Guid(#[from] ParseGuidError),
    /// A reference to a definition that is not there.
    #[error("there is no {what} `{}`", Escaped(name))]
    Unknown {
        /// What is referred to.
        what: &'static str,
        /// The name it is referred to by.
        name: String,
    },
    /// A definition that is there already.
    #[error("the {what} `{}` is defined twice", Escaped(name))]
    Duplicate {
        /// What is defined.
        what: &'static str,
        /// Its name or number.
        name: String,
    },
    /// A count or a length that refers to a field which is no number, or not
    /// before it.
    #[error("`{}` is not an earlier field of an integer type", Escaped(.0))]
    SizeField(String),
    /// Bytes without a length.
    #[error("a win:Binary field needs a length")]
    BinaryWithoutLength,
    /// A keyword that is not exactly one bit.
    #[error("the keyword mask {0:#x} is not exactly one bit")]
    KeywordMask(u64),
    /// An element that cannot be there.
    #[error("`{}` cannot be in a template", Escaped(.0))]
    TemplateElement(String),
}
