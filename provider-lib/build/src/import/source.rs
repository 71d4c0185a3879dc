//! The source of an imported declaration, and the lines of its items.

use std::ops::Range;

/// The source of a module.
pub struct Source {
    pub source: String,
    /// Its items.
    pub parts: Vec<Part>,
}

/// An item of a module.
pub struct Part {
    /// Its lines.
    pub lines: Range<usize>,
    /// The index of the event that it declares.
    pub event: Option<usize>,
}
