//! Mistakes in manifests, and the rules that they violate.

use std::fmt;

use crate::position::Position;

/// A mistake in a manifest and its location.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{}", place(*at), printable(&rule.to_string()))]
pub struct ManifestError {
    /// The location in the file.
    pub at: Position,
    /// The violated rule.
    pub rule: Rule,
}

/// Returns the text of a location that an error begins with; nothing if there is none.
fn place(at: Position) -> String {
    if at == Position::default() {
        return String::new();
    }
    format!("line {}, column {}: ", at.line, at.column)
}

/// Returns a string from a file. Characters that control terminals, or that hide or reorder other
/// text, are escaped.
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

/// Returns whether a character reorders or hides the text around it.
const fn is_directional(character: char) -> bool {
    matches!(character,
        '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2060}'..='\u{206F}' | '\u{FEFF}')
}

/// All mistakes in a manifest, in file order.
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

/// A rule for manifests that was violated.
///
/// Source: eventman.xsd and its documentation, winmeta.xml, and the additional rules of mc.exe
/// (`docs/reference/decoding-resources.md`, section 5).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rule {
    /// A Rust declaration is invalid; contains the reason.
    #[error("{0}")]
    Declaration(String),
    /// No rule was violated, but the program was built without a reader of XML.
    #[error(
        "this program was built without a reader of manifests; build it with the feature `manifests` \
         of etl-file"
    )]
    NoReader,
    /// The text is not well-formed XML.
    #[error("the XML is malformed: {0}")]
    Xml(String),
    /// A character must be escaped or is not allowed.
    #[error("`{0}` has to be escaped in XML")]
    Unescaped(String),
    /// A comment contains two hyphens, or ends in three.
    #[error("a comment must not contain `--` before its end")]
    Comment,
    /// The document is not a manifest.
    #[error(
        "the root element is `{0}`; expected `instrumentationManifest`, or an \
             `assembly` that contains it"
    )]
    NotAManifest(String),
    /// The document has no provider where manifests can have one.
    #[error("the manifest contains no provider")]
    NoProvider,
    /// An element or attribute is ignored because it does not belong to an event manifest: it is in
    /// another namespace (for example, performance counters) or unknown to decoders.
    #[error(
        "omitting {count} {what}{} `{inner}` of `{outer}`{}",
        if *count == 1 { "" } else { "s" },
        if namespace.is_empty() { String::new() } else { format!(" (namespace {namespace})") },
    )]
    LeftOut {
        /// `element` or `attribute`.
        what: &'static str,
        /// The name of the ignored item.
        inner: Box<str>,
        /// The enclosing element.
        outer: &'static str,
        /// The namespace of the ignored item; empty for the manifest's own.
        namespace: Box<str>,
        /// The number of these elements or attributes; the location is the first one's.
        count: usize,
    },
    /// An attribute is missing.
    #[error("`{element}` has no attribute `{attribute}`")]
    Missing {
        /// The element.
        element: String,
        /// The attribute.
        attribute: &'static str,
    },
    /// An attribute without a value.
    #[error("the attribute `{attribute}` of `{element}` is empty; give it a value")]
    Empty {
        /// The element.
        element: String,
        /// The attribute.
        attribute: &'static str,
    },
    /// An unknown attribute.
    #[error("`{element}` does not take the attribute `{attribute}`")]
    Attribute {
        /// The element.
        element: &'static str,
        /// The attribute.
        attribute: String,
    },
    /// A symbol that is not a C identifier.
    #[error("\"{0}\" is not a C identifier")]
    Symbol(String),
    /// A number that must be in hexadecimal digits.
    #[error("`{attribute}` is \"{text}\"; write it in hexadecimal: `0x…`")]
    Hexadecimal {
        /// The attribute.
        attribute: &'static str,
        /// The attribute's value.
        text: String,
    },
    /// An element where it is not allowed.
    #[error("`{outer}` cannot contain `{inner}`")]
    Element {
        /// The element.
        inner: String,
        /// The enclosing element.
        outer: String,
    },
    /// A value that is not a number in the attribute's range.
    #[error("`{attribute}` is \"{text}\"; it must be a number from {least} to {most}")]
    Number {
        /// The attribute.
        attribute: &'static str,
        /// The attribute's value.
        text: String,
        /// The minimum.
        least: u64,
        /// The maximum.
        most: u64,
    },
    /// A value that is not one of the words that the attribute allows.
    #[error("`{attribute}` is \"{text}\"; it must be one of {words}")]
    Word {
        /// The attribute.
        attribute: &'static str,
        /// The attribute's value.
        text: String,
        /// The allowed words.
        words: &'static str,
    },
    /// A value that is not a GUID.
    #[error("`{attribute}` is \"{text}\", which is not a GUID in braces")]
    Guid {
        /// The attribute.
        attribute: &'static str,
        /// The attribute's value.
        text: String,
    },
    /// A reference to a missing definition.
    #[error("{what} \"{name}\" is not defined")]
    Unknown {
        /// The kind of definition.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// A prefix of a name without a namespace.
    #[error("the prefix of \"{0}\" is not bound to a namespace")]
    Prefix(String),
    /// A duplicate definition.
    #[error("{what} \"{name}\" is defined twice")]
    Duplicate {
        /// The kind of definition.
        what: &'static str,
        /// The name or number.
        name: String,
    },
    /// A value that is not a string reference.
    #[error("\"{0}\" is not a string reference; write `$(string.Id)`")]
    TextReference(String),
    /// A reference to a string in a message file.
    #[error(
        "`$(mc.{0})` refers to a message file (.mc), which this compiler does not read; move the \
         string to the stringTable and refer to it as `$(string.{0})`"
    )]
    MessageFile(String),
    /// A name that the system cannot store.
    #[error(
        "{what} name \"{name}\" is not allowed; a name has 1 to 255 characters, none of them a \
         control character or one of > < & \" | \\ : ' ? *"
    )]
    Name {
        /// The kind of definition with this name.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// A provider has a control GUID, but its name does not end with its decoding GUID.
    #[error("provider \"{0}\" has a controlGuid, so its name must end with the digits of its guid")]
    NameWithoutGuid(String),
    /// A keyword's mask is not exactly one of the bits 0 to 47.
    #[error("keyword \"{name}\" {}", keyword_bits(*mask))]
    KeywordMask {
        /// The keyword's name.
        name: String,
        /// The keyword's mask.
        mask: u64,
    },
    /// A map without entries.
    #[error("map \"{0}\" has no entries")]
    EmptyMap(String),
    /// A map on a field whose type cannot have one.
    #[error("a {0} field cannot have a map; maps are for integers")]
    MapType(&'static str),
    /// A presentation that the encoding does not allow.
    #[error("a {in_type} field cannot be shown as {out_type}; possible: {possible}")]
    OutType {
        /// The encoding.
        in_type: &'static str,
        /// The presentation.
        out_type: String,
        /// The allowed presentations.
        possible: String,
    },
    /// Binary data without a length.
    #[error("a win:Binary field needs a length")]
    LengthMissing,
    /// A length on a field whose data contains its length.
    #[error("a {0} field carries its length in the data; remove `length`")]
    LengthImpossible(&'static str),
    /// A count or a length that refers to an unsuitable field.
    #[error("\"{0}\" is not an integer field before this one, so it cannot be a count or a length")]
    SizeField(String),
    /// More fields than messages can refer to.
    #[error("template \"{0}\" has more than 99 fields")]
    TooManyFields(String),
    /// More providers than generated message ids can distinguish.
    #[error(
        "generated message ids support at most 16 providers; give this provider's strings explicit \
         ids in a messageTable"
    )]
    TooManyProviders,
    /// More channels than keywords have bits for.
    #[error("a provider can declare at most 8 channels")]
    TooManyChannels,
    /// An event in an Admin channel without a message.
    #[error("an event of an Admin channel needs a message")]
    AdminMessage,
    /// An event in an Admin channel with an unsuitable level.
    #[error("an event of an Admin channel needs a level from win:Critical to win:Informational")]
    AdminLevel,
    /// A message that refers to a missing field.
    #[error("the message refers to %{number}, but the event has {fields} fields")]
    MessageField {
        /// The number.
        number: usize,
        /// The number of the event's fields.
        fields: usize,
    },
    /// A format specifier without its closing exclamation mark.
    #[error("the format after %{0} in the message has no closing exclamation mark")]
    MessageFormat(usize),
    /// Event attributes that are not `name=value` pairs.
    #[error("\"{0}\" is not a list of `name=value` pairs separated by semicolons")]
    Attributes(String),
    /// Two events with the same id and version.
    #[error("event {id} version {version} is defined twice")]
    DuplicateEvent {
        /// The id.
        id: u16,
        /// The version.
        version: u8,
    },
    /// A template's XML without a single root element.
    #[error("`UserData` must contain one element, nested at most 32 levels deep")]
    UserData,
    /// A template's XML that refers to a missing field.
    #[error("\"{0}\" in `UserData` does not refer to a field")]
    UserDataField(String),
}

/// Returns the reason why a provider cannot use a keyword's mask.
fn keyword_bits(mask: u64) -> String {
    if mask.is_power_of_two() {
        let bit = mask.trailing_zeros();
        format!("uses bit {bit}; provider keywords are bits 0 to 47")
    } else {
        format!("has the mask {mask:#x}, which is not one bit of 0 to 47")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_without_a_location_names_none() {
        let error = |at| ManifestError { at, rule: Rule::NoReader }.to_string();
        assert!(error(Position::default()).starts_with("this program was built without"));
        assert!(error(Position { line: 2, column: 3 }).starts_with("line 2, column 3: this"));
    }
}
