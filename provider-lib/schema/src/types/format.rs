//! The presentation of a field that its attributes ask for.

/// The format in which a viewer shows a field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Format {
    /// The type's own format.
    #[default]
    Default,
    /// Hexadecimal.
    Hex,
    /// A string that contains JSON.
    Json,
    /// A string that contains XML.
    Xml,
    /// A pointer whose address is in the event. Other pointers contain only whether they are null.
    Address,
}
