//! A passage of a file that readers see.

/// The kind of text that a passage comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A comment.
    Comment,
    /// A string literal.
    Literal,
    /// A Markdown document.
    Document,
}

/// A passage of a file that readers see.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Passage {
    /// The first line, counted from 1.
    pub line: usize,
    /// The kind of text.
    pub kind: Kind,
    /// The text.
    pub text: String,
}

/// Returns the part of a path behind the last dot of its file name.
pub(super) fn extension_of(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.rsplit_once('.').map_or("", |(_, extension)| extension)
}
