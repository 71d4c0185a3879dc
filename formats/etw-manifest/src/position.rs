//! Locations in files.

/// A location in a file. Lines and columns count from 1.
///
/// A manifest from a Rust declaration has locations in the declaration; a manifest from resources
/// has none (0, 0).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The column, counted in characters.
    pub column: usize,
}
