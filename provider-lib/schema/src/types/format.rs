//! The presentation of a field that its attributes ask for.

/// How a field is to be shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Format {
    /// As its type is.
    #[default]
    Default,
    /// In hexadecimal.
    Hex,
    /// Text that is JSON.
    Json,
    /// Text that is XML.
    Xml,
    /// A pointer whose address is told; others only tell whether they are null.
    Address,
}
