//! An event in another decoder's output, and the reasons why the output cannot be read.

use std::collections::BTreeMap;
use std::{fmt, io};

use super::property::Property;
use etl_file::internals::show::Escaped;

/// The maximum size of another decoder's file, in bytes.
pub const MAX_FILE_SIZE: u64 = 256 << 20;

/// The maximum nesting of structures.
pub(super) const MAX_DEPTH: usize = 16;

/// An event in another decoder's output; all strings are as that decoder wrote them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OtherEvent {
    /// The properties that the decoder shows.
    pub properties: BTreeMap<Property, String>,
    /// True if the event has a non-empty element for fields.
    pub has_data: bool,
    /// The names and values of fields, in order. A structure's member is named `structure.member`.
    pub fields: Vec<(String, String)>,
    /// The reason why the decoder could not decode part of the event.
    pub problem: Option<String>,
    /// True for an event of a classic provider, whose descriptor is meaningless.
    pub is_classic: bool,
}

/// The format of a decoder's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// XML events, as tracerpt writes them.
    Xml,
    /// JSON that contains each event's XML, as the `decode` stage writes the output of
    /// Get-WinEvent.
    XmlInJson,
    /// A JSON object for each event, as `trace --json` of the sample driver's client writes TDH's
    /// output.
    Lines,
    /// An empty file.
    Empty,
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Xml => "event XML",
            Self::XmlInJson => "event XML in JSON",
            Self::Lines => "JSON of TDH",
            Self::Empty => "empty",
        })
    }
}

/// The reason why another decoder's events cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Content {
    /// The file could not be read.
    #[error(transparent)]
    Io(io::Error),
    /// The file is too large.
    #[error("it has more than {} MiB, the limit of a comparison", MAX_FILE_SIZE >> 20)]
    TooLarge,
    /// The file is not text.
    #[error("it is neither UTF-8 nor UTF-16")]
    Encoding,
    /// The file is neither XML nor JSON.
    #[error("it is neither XML nor JSON; expected output from tracerpt, Get-WinEvent or TDH")]
    Unknown,
    /// The XML is not well-formed.
    #[error("the XML is not well-formed: {}", Escaped(&.0.to_string()))]
    Xml(Box<roxmltree::Error>),
    /// The XML does not contain events.
    #[error("the XML's root element is {0:?}; expected Events or Event")]
    Root(String),
    /// An event has no element `System`, which has the event's properties.
    #[error("event {number} has no element System")]
    NoSystem {
        /// The event's number in the file, counting from 1.
        number: usize,
    },
    /// Elements of an event are nested too deeply.
    #[error("event {number} has structures nested more than {} levels deep", MAX_DEPTH)]
    Depth {
        /// The event's number in the file, counting from 1.
        number: usize,
    },
    /// The JSON is not well-formed.
    #[error("the JSON is not well-formed: {}", Escaped(&.0.to_string()))]
    Json(serde_json::Error),
    /// A line is not well-formed JSON.
    #[error("line {line} is not well-formed JSON: {}", Escaped(&.source.to_string()))]
    Line {
        /// The line's number, counting from 1.
        line: usize,
        /// The reason.
        source: serde_json::Error,
    },
    /// An object's form is unknown, or differs from the form of the events before it.
    #[error(
        "event {number} has an unknown form; expected the event's XML in `xml`, or an event of \
         the client's `trace --json`, like all other events in the file"
    )]
    Record {
        /// The event's number in the file, counting from 1.
        number: usize,
    },
    /// An event from the client has an unexpected member.
    #[error("event {number} is not an event of the client's `trace --json`: {}", Escaped(&.source.to_string()))]
    Client {
        /// The event's number in the file, counting from 1.
        number: usize,
        /// The reason.
        source: serde_json::Error,
    },
    /// The XML of an event inside the JSON cannot be read.
    #[error("cannot read the XML of event {number}: {source}")]
    Inner {
        /// The event's number in the file, counting from 1.
        number: usize,
        /// The reason.
        source: Box<Self>,
    },
}

#[cfg(test)]
mod tests {
    use super::super::Other;

    #[test]
    fn errors_show_no_control_characters_of_the_text() {
        let texts = [
            "<Events><Event a\u{0}=''/></Events>", "{\"fields\": [], \u{1b}", "{}\n\u{1b}",
            "[{\"fields\": \"\u{1b}[2J\"}]",
        ];
        for text in texts {
            let error = Other::parse(text.as_bytes()).unwrap_err().to_string();
            assert!(!error.contains(char::is_control), "{error:?}");
        }
        let error = Other::parse(texts[0].as_bytes()).unwrap_err().to_string();
        assert!(error.contains(r"not '\u{0}'"), "{error}");
    }
}
