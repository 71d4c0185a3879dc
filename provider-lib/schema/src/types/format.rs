//! The presentation of a field, as set by its attributes.

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
    /// A pointer whose address is in the event. Otherwise, the event only says whether it is null.
    Address,
}

impl Format {
    /// All formats.
    pub const ALL: &[Self] = &[Self::Default, Self::Hex, Self::Json, Self::Xml, Self::Address];
}
