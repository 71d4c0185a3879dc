//! Places in files.

/// A place in a file; line and column count from 1.
///
/// A manifest from a Rust declaration has the places of the declaration, and a manifest from
/// resources has no places (0, 0).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The column, counted in characters.
    pub column: usize,
}
