//! What can be wrong with a manifest.

use std::fmt;

use crate::model::Position;

/// A mistake, with its place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {}, column {}: {}", at.line, at.column, printable(&rule.to_string()))]
pub struct ManifestError {
    /// Where.
    pub at: Position,
    /// What.
    pub rule: Rule,
}

/// Returns a text from a file with every character escaped that controls terminals, or that hides
/// or reorders the text around it.
#[must_use]
pub fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_control() || is_directional(character) {
            out.extend(character.escape_unicode());
        } else {
            out.push(character);
        }
    }
    out
}

/// Whether a character reorders or hides the text around it.
const fn is_directional(character: char) -> bool {
    matches!(character,
        '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2060}'..='\u{206F}' | '\u{FEFF}')
}

/// Everything that is wrong with a manifest, in its order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failures(pub Vec<ManifestError>);

impl fmt::Display for Failures {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, error) in self.0.iter().enumerate() {
            if number > 0 {
                out.write_str("\n")?;
            }
            write!(out, "{error}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Failures {}

/// What must hold of a manifest (eventman.xsd, and what its documentation says besides).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rule {
    /// It is no declaration.
    #[error("{0}")]
    Declaration(String),
    /// It is no XML.
    #[error("the XML is malformed: {0}")]
    Xml(String),
    /// It is another document.
    #[error("this is `{0}`, and a manifest is an `instrumentationManifest`")]
    NotAManifest(String),
    /// An attribute is missing.
    #[error("`{element}` has no attribute `{attribute}`")]
    Missing {
        /// The element.
        element: String,
        /// The attribute.
        attribute: &'static str,
    },
    /// An attribute that means nothing.
    #[error("`{element}` has no attribute `{attribute}` that means anything")]
    Attribute {
        /// The element.
        element: &'static str,
        /// The attribute.
        attribute: String,
    },
    /// A symbol that C cannot have.
    #[error("`{0}` is no name that C can have")]
    Symbol(String),
    /// A number that must be in hexadecimal digits.
    #[error("`{attribute}` is `{text}`, and must be in hexadecimal digits: `0x…`")]
    Hexadecimal {
        /// The attribute.
        attribute: &'static str,
        /// What it says.
        text: String,
    },
    /// An element that cannot stand there.
    #[error("`{inner}` cannot stand in `{outer}`")]
    Element {
        /// It.
        inner: String,
        /// The one around it.
        outer: String,
    },
    /// No number, or none in its range.
    #[error("`{attribute}` is `{text}`, and must be a number from {least} to {most}")]
    Number {
        /// The attribute.
        attribute: &'static str,
        /// What it says.
        text: String,
        /// The least.
        least: u64,
        /// The most.
        most: u64,
    },
    /// Not one of the words that can stand there.
    #[error("`{attribute}` is `{text}`, and must be one of {words}")]
    Word {
        /// The attribute.
        attribute: &'static str,
        /// What it says.
        text: String,
        /// What it can say.
        words: &'static str,
    },
    /// No GUID.
    #[error("`{attribute}` is `{text}`, which is no GUID in braces")]
    Guid {
        /// The attribute.
        attribute: &'static str,
        /// What it says.
        text: String,
    },
    /// Something is spoken of that is not there.
    #[error("there is no {what} `{name}`")]
    Unknown {
        /// What kind of thing.
        what: &'static str,
        /// Its name.
        name: String,
    },
    /// A prefix of a name without a namespace.
    #[error("the prefix of `{0}` has no namespace")]
    Prefix(String),
    /// Something is there already.
    #[error("there is a {what} `{name}` already")]
    Duplicate {
        /// What kind of thing.
        what: &'static str,
        /// Its name or number.
        name: String,
    },
    /// A reference to a text that is none.
    #[error("`{0}` is no reference to a text: `$(string.Name)`")]
    TextReference(String),
    /// A reference to a text of a message file.
    #[error(
        "`$(mc.{0})` is a text of a message file (.mc), which is not read; put the text into the \
         stringTable, and refer to it by `$(string.{0})`"
    )]
    MessageFile(String),
    /// A name that the system cannot keep.
    #[error(
        "the {what} name `{name}` has 1 to 255 characters, none of them a control character or \
         one of > < & \" | \\ : ' ? *"
    )]
    Name {
        /// What it is the name of.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// With a control GUID, the name says the other one.
    #[error("with a controlGuid, the name must end with the guid's digits: {0}")]
    NameWithoutGuid(String),
    /// A keyword is one bit.
    #[error("the mask {0:#x} is not one of the bits 0 to 47; 48 to 63 are Microsoft's")]
    KeywordMask(u64),
    /// A map without entries.
    #[error("the map `{0}` has no entry")]
    EmptyMap(String),
    /// A map on a field that can have none.
    #[error("a field of {0} cannot have a map: that is for integers")]
    MapType(&'static str),
    /// A type that the other does not go with.
    #[error("{in_type} cannot be shown as {out_type}; it can be as {possible}")]
    OutType {
        /// How it is encoded.
        in_type: &'static str,
        /// How it was to be shown.
        out_type: String,
        /// How it can be shown.
        possible: String,
    },
    /// Bytes without a length.
    #[error("win:Binary needs a length")]
    LengthMissing,
    /// A length that has no meaning.
    #[error("{0} has no length of its own to give")]
    LengthImpossible(&'static str),
    /// A count or a length in a field that cannot have it.
    #[error("`{0}` is not an integer field before this one, and so cannot say how many there are")]
    SizeField(String),
    /// More fields than messages can name.
    #[error("the template `{0}` has more than 99 fields")]
    TooManyFields(String),
    /// More providers than generated message ids can tell apart.
    #[error(
        "generated message ids can tell apart 16 providers; give this one's texts ids in a messageTable"
    )]
    TooManyProviders,
    /// More channels than keywords have bits for.
    #[error("a provider has 8 channels at most")]
    TooManyChannels,
    /// An event for administrators without a text.
    #[error("an event of an Admin channel needs a message")]
    AdminMessage,
    /// An event for administrators of another level.
    #[error("an event of an Admin channel has a level from win:Critical to win:Informational")]
    AdminLevel,
    /// A message that speaks of a field that is not there.
    #[error("the message speaks of %{number}, and the event has {fields} fields")]
    MessageField {
        /// The number.
        number: usize,
        /// How many there are.
        fields: usize,
    },
    /// A format that does not end.
    #[error("in the message, an exclamation mark after %{0} starts a format that does not end")]
    MessageFormat(usize),
    /// Attributes of an event that are not `name=value` pairs.
    #[error("`{0}` are no pairs `name=value` with semicolons between them")]
    Attributes(String),
    /// Two events of one id and version.
    #[error("there is an event {id} of version {version} already")]
    DuplicateEvent {
        /// The id.
        id: u16,
        /// The version.
        version: u8,
    },
    /// XML of a template that has no single root.
    #[error("`UserData` holds one element, with no more than 32 in each other")]
    UserData,
    /// XML that speaks of a field that is not there.
    #[error("`{0}` in `UserData` is none of the fields")]
    UserDataField(String),
}
