//! What another decoder says about a trace.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use etw_wire::Guid;

use super::ours::Ours;
use super::property::Property;
use super::{json, xml};

/// The largest file of another decoder that is read, in bytes.
pub const MAX_FILE_SIZE: u64 = 256 << 20;

/// An event as another decoder shows it: all texts are as that decoder wrote them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OtherEvent {
    /// The properties that the decoder states.
    pub properties: BTreeMap<Property, String>,
    /// The fields with their names, in order. A member of a structure is named `structure.member`.
    pub fields: Vec<(String, String)>,
    /// The reason why the decoder could not decode a part of the event.
    pub problem: Option<String>,
    /// True for an event of a classic provider, whose descriptor says nothing.
    pub is_classic: bool,
}

/// The form of a decoder's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Events in XML, as tracerpt writes them.
    Xml,
    /// JSON with the XML of each event, as the stage `decode` writes Get-WinEvent's.
    XmlInJson,
    /// A JSON object for each event, as `trace --json` of the sample driver's client writes TDH's.
    Lines,
    /// A file without a character.
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

/// The events of another decoder's file.
#[derive(Clone, Debug)]
pub struct Other {
    /// The file's form.
    pub form: Form,
    /// The events, in order; without those of classic providers.
    pub events: Vec<OtherEvent>,
    /// The number of events of classic providers, which are not compared.
    pub left_out: u64,
}

/// A file of another decoder cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {}: {content}", path.display())]
pub struct OtherError {
    /// The file.
    pub path: PathBuf,
    /// The reason.
    #[source]
    pub content: Content,
}

/// A reason why the events of another decoder cannot be read.
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
    #[error("it is neither XML nor JSON; expected a file of tracerpt, Get-WinEvent or TDH")]
    Unknown,
    /// The XML is not well-formed.
    #[error("the XML is not well-formed: {0}")]
    Xml(Box<roxmltree::Error>),
    /// The XML does not contain events.
    #[error("the XML's root element is {0:?}; expected Events or Event")]
    Root(String),
    /// An event has no properties.
    #[error("event {number} has no element System")]
    NoSystem {
        /// The event's number in the file; the first has 1.
        number: usize,
    },
    /// Elements of an event are nested too deeply.
    #[error(
        "event {number} has structures in structures, more than {} deep",
        xml::MAX_DEPTH
    )]
    Depth {
        /// The event's number in the file; the first has 1.
        number: usize,
    },
    /// The JSON is not well-formed.
    #[error("the JSON is not well-formed: {0}")]
    Json(serde_json::Error),
    /// A line is not well-formed JSON.
    #[error("line {line} is not well-formed JSON: {source}")]
    Line {
        /// The line's number; the first has 1.
        line: usize,
        /// The reason.
        source: serde_json::Error,
    },
    /// An object has another form than the events before it, or an unknown one.
    #[error(
        "event {number} has an unknown form; expected the event's XML in `xml`, or an event of the \
         client's `trace --json`, as all others in the file"
    )]
    Record {
        /// The event's number in the file; the first has 1.
        number: usize,
    },
    /// An event of the client has an unexpected member.
    #[error("event {number} is not an event of the client's `trace --json`: {source}")]
    Client {
        /// The event's number in the file; the first has 1.
        number: usize,
        /// The reason.
        source: serde_json::Error,
    },
    /// The XML of an event in JSON cannot be read.
    #[error("the XML of event {number}: {source}")]
    Inner {
        /// The event's number in the file; the first has 1.
        number: usize,
        /// The reason.
        source: Box<Self>,
    },
}

impl Other {
    /// Reads a file that another decoder wrote.
    ///
    /// # Errors
    /// Fails if the file cannot be read, is larger than [`MAX_FILE_SIZE`], or has an unknown form.
    pub fn open(path: &Path) -> Result<Self, OtherError> {
        let failed = |content| OtherError {
            path: path.to_owned(),
            content,
        };
        let file = File::open(path).map_err(|source| failed(Content::Io(source)))?;
        let mut bytes = Vec::new();
        file.take(MAX_FILE_SIZE + 1)
            .read_to_end(&mut bytes)
            .map_err(|source| failed(Content::Io(source)))?;
        if bytes.len() as u64 > MAX_FILE_SIZE {
            return Err(failed(Content::TooLarge));
        }
        Self::parse(&bytes).map_err(failed)
    }

    /// Reads what another decoder wrote, in UTF-8 or in UTF-16 with a byte order mark.
    ///
    /// # Errors
    /// Fails if the text has an unknown form.
    pub fn parse(bytes: &[u8]) -> Result<Self, Content> {
        let text = etw_manifest::text(bytes).ok_or(Content::Encoding)?;
        let text = text.trim();
        let (form, events) = match text.as_bytes().first() {
            None => (Form::Empty, Vec::new()),
            Some(b'<') => (Form::Xml, xml::events(text)?),
            Some(b'{' | b'[') => json::events(text)?,
            Some(_) => return Err(Content::Unknown),
        };
        let all = events.len();
        let events: Vec<_> = events.into_iter().filter(|one| !one.is_classic).collect();
        Ok(Self {
            form,
            left_out: (all - events.len()) as u64,
            events,
        })
    }

    /// Removes the events of providers that are not selected by GUID or name. The names may be
    /// those that only `ours` have. An event whose provider is not stated stays.
    pub fn select(&mut self, providers: &[String], ours: &Ours) {
        if providers.is_empty() {
            return;
        }
        let mut guids: HashSet<Guid> = ours.events.iter().map(|event| event.provider).collect();
        guids.extend(
            providers
                .iter()
                .filter_map(|text| text.parse::<Guid>().ok()),
        );
        let own = ours.events.iter();
        let mut names: HashSet<&str> = own.filter_map(|one| one.provider_name.as_deref()).collect();
        names.extend(providers.iter().map(String::as_str));
        self.events.retain(|event| {
            let text = |property| event.properties.get(&property).map(|text| text.trim());
            match (text(Property::Provider), text(Property::ProviderName)) {
                (Some(guid), _) if guid.parse().is_ok_and(|guid| guids.contains(&guid)) => true,
                (None, None) => true,
                (_, name) => {
                    name.is_some_and(|name| names.iter().any(|one| one.eq_ignore_ascii_case(name)))
                }
            }
        });
    }
}
