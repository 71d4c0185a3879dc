//! The model of a manifest: what a provider's events are called, and how they are laid out.
//!
//! Source: eventman.xsd and winmeta.xml of the Windows SDK; `docs/reference/decoding-resources.md`,
//! section 5.

use crate::{Guid, types::InType};

/// A place in a file, both counted from 1. A manifest that was made of a declaration has the
/// places of that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The column, in characters.
    pub column: usize,
}

/// Attributes by their names.
pub type Others = Vec<(String, String)>;

/// A text in [`Manifest::texts`].
pub type TextRef = usize;

/// A manifest.
#[derive(Clone, Debug, Default)]
pub struct Manifest {
    /// The providers.
    pub providers: Vec<Provider>,
    /// The texts in the first of its languages, and those of winmeta.xml that it uses.
    pub texts: Vec<Text>,
    /// The language: `en-US`.
    pub culture: String,
    /// The texts in other languages.
    pub translations: Vec<Translation>,
}

/// A text that people read.
#[derive(Clone, Debug, Default)]
pub struct Text {
    /// Its name in the manifest.
    pub id: String,
    /// The text.
    pub value: String,
    /// The id in the message table that the manifest gives it.
    pub message_id: Option<u32>,
    /// The constant's name in the header that mc.exe writes.
    pub symbol: Option<String>,
    /// Whether it is one of winmeta.xml's.
    pub standard: bool,
    /// Where it stands.
    pub at: Position,
}

/// Texts in another language.
#[derive(Clone, Debug, Default)]
pub struct Translation {
    /// The language.
    pub culture: String,
    /// Names and texts.
    pub texts: Vec<(String, String)>,
}

/// A provider.
#[derive(Clone, Debug, Default)]
pub struct Provider {
    /// Its name.
    pub name: String,
    /// Its GUID.
    pub guid: Guid,
    /// The constant's name in the header that mc.exe writes.
    pub symbol: String,
    /// What people call it.
    pub message: Option<TextRef>,
    /// The image with the resources.
    pub resource_file: String,
    /// The image with the message table.
    pub message_file: String,
    /// The image with the parameters' texts.
    pub parameter_file: Option<String>,
    /// The GUID that controllers use instead of the provider's.
    pub control_guid: Option<Guid>,
    /// The name of the namespace of a projection.
    pub namespace: Option<String>,
    /// The group.
    pub group_guid: Option<Guid>,
    /// Whether events are to carry the provider's name.
    pub include_name: Option<bool>,
    /// Channels.
    pub channels: Vec<Channel>,
    /// Levels; those of winmeta.xml only if an event has them.
    pub levels: Vec<Level>,
    /// Tasks; as above.
    pub tasks: Vec<Task>,
    /// Opcodes, those of tasks too; as above.
    pub opcodes: Vec<Opcode>,
    /// Keywords; as above.
    pub keywords: Vec<Keyword>,
    /// Maps.
    pub maps: Vec<Map>,
    /// Named queries.
    pub queries: Vec<Query>,
    /// Templates.
    pub templates: Vec<Template>,
    /// Filters.
    pub filters: Vec<Filter>,
    /// Events.
    pub events: Vec<Event>,
    /// Attributes that the resources have no part for; they are kept.
    pub others: Others,
    /// Where it stands.
    pub at: Position,
}

/// The namespace of winmeta.xml's names, which have the prefix `win`.
pub const WINMETA: &str = "http://manifests.microsoft.com/win/2004/08/windows/events";

/// A name with a prefix for its namespace.
#[derive(Clone, Debug, Default)]
pub struct QName {
    /// As it is written: `win:Error`.
    pub written: String,
    /// The prefix's namespace; empty without a prefix.
    pub namespace: String,
}

impl QName {
    /// A name without a prefix.
    #[must_use]
    pub fn plain(name: &str) -> Self {
        Self {
            written: name.to_owned(),
            namespace: String::new(),
        }
    }

    /// Returns whether the name is one of winmeta.xml's.
    #[must_use]
    pub fn is_winmeta(&self) -> bool {
        self.namespace == WINMETA
    }

    /// What stands behind the prefix.
    #[must_use]
    pub fn local(&self) -> &str {
        self.written
            .split_once(':')
            .map_or(self.written.as_str(), |(_, local)| local)
    }
}

impl PartialEq for QName {
    fn eq(&self, other: &Self) -> bool {
        self.namespace == other.namespace && self.local() == other.local()
    }
}

impl Eq for QName {}

/// A channel.
#[derive(Clone, Debug, Default)]
pub struct Channel {
    /// Its name, as `Company-Product/Operational`.
    pub name: String,
    /// The name that events have for it.
    pub id: Option<String>,
    /// The constant's name.
    pub symbol: Option<String>,
    /// `Admin`, `Operational`, `Analytic` or `Debug`; empty for one that is imported.
    pub kind: String,
    /// Its number; [`read()`] gives one to those without.
    pub value: u8,
    /// Whether the manifest gives the number.
    pub explicit_value: bool,
    /// What people call it.
    pub message: Option<TextRef>,
    /// Whether another provider has it, or winmeta.xml.
    pub imported: bool,
    /// Whether the element is there that imports it; winmeta.xml's need none.
    pub declared: bool,
    /// `Application`, `System` or `Custom`.
    pub isolation: Option<String>,
    /// Whether it is on from the start.
    pub enabled: Option<bool>,
    /// Its security descriptor.
    pub access: Option<String>,
    /// What stands in it, as XML.
    pub inside: String,
    /// Where it stands.
    pub at: Position,
}

/// A level.
#[derive(Clone, Debug, Default)]
pub struct Level {
    /// Its name.
    pub name: QName,
    /// Its number.
    pub value: u8,
    /// The constant's name.
    pub symbol: Option<String>,
    /// What people call it.
    pub message: Option<TextRef>,
    /// Whether it is one of winmeta.xml's.
    pub standard: bool,
    /// Where it stands.
    pub at: Position,
}

/// A task.
#[derive(Clone, Debug, Default)]
pub struct Task {
    /// Its name.
    pub name: QName,
    /// Its number.
    pub value: u16,
    /// The constant's name.
    pub symbol: Option<String>,
    /// The GUID of its classic events.
    pub event_guid: Option<Guid>,
    /// What people call it.
    pub message: Option<TextRef>,
    /// Whether it is one of winmeta.xml's.
    pub standard: bool,
    /// Where it stands.
    pub at: Position,
}

/// An opcode.
#[derive(Clone, Debug, Default)]
pub struct Opcode {
    /// Its name.
    pub name: QName,
    /// Its number.
    pub value: u8,
    /// The task that it belongs to, if it belongs to one.
    pub task: Option<usize>,
    /// The constant's name.
    pub symbol: Option<String>,
    /// What people call it.
    pub message: Option<TextRef>,
    /// Whether it is one of winmeta.xml's.
    pub standard: bool,
    /// Attributes that the resources have no part for; they are kept.
    pub others: Others,
    /// Where it stands.
    pub at: Position,
}

/// A keyword.
#[derive(Clone, Debug, Default)]
pub struct Keyword {
    /// Its name.
    pub name: QName,
    /// Its bit.
    pub mask: u64,
    /// The constant's name.
    pub symbol: Option<String>,
    /// What people call it.
    pub message: Option<TextRef>,
    /// Whether it is one of winmeta.xml's.
    pub standard: bool,
    /// Where it stands.
    pub at: Position,
}

/// Names for a field's values.
#[derive(Clone, Debug, Default)]
pub struct Map {
    /// Its name.
    pub name: String,
    /// Whether its values are bits.
    pub is_bits: bool,
    /// The constant's name.
    pub symbol: Option<String>,
    /// The entries.
    pub items: Vec<MapItem>,
    /// Where it stands.
    pub at: Position,
}

/// An entry of a map.
#[derive(Clone, Debug, Default)]
pub struct MapItem {
    /// The value.
    pub value: u32,
    /// Its name; a manifest for compilers has one for each entry.
    pub message: Option<TextRef>,
    /// The constant's name.
    pub symbol: Option<String>,
    /// Where it stands.
    pub at: Position,
}

/// A named query (`patternMap`).
#[derive(Clone, Debug, Default)]
pub struct Query {
    /// Its name.
    pub name: String,
    /// Its format.
    pub format: String,
    /// Names and patterns.
    pub items: Vec<(String, String)>,
    /// Attributes that the resources have no part for; they are kept.
    pub others: Others,
    /// Where it stands.
    pub at: Position,
}

/// A template: the fields of an event.
#[derive(Clone, Debug, Default)]
pub struct Template {
    /// The name that events have for it.
    pub id: String,
    /// The name of the element with the fields.
    pub name: Option<String>,
    /// The fields.
    pub properties: Vec<Property>,
    /// XML of the provider's own, with the fields in it.
    pub user_data: Option<Element>,
    /// Attributes that the resources have no part for; they are kept.
    pub others: Others,
    /// Where it stands.
    pub at: Position,
}

/// An element of a template's own XML.
#[derive(Clone, Debug, Default)]
pub struct Element {
    /// Its name.
    pub name: String,
    /// Its attributes, declarations of namespaces too.
    pub attributes: Vec<(String, String)>,
    /// What is in it.
    pub nodes: Vec<Node>,
}

/// What stands in an element.
#[derive(Clone, Debug)]
pub enum Node {
    /// Another.
    Element(Element),
    /// A text; `%1` stands for the first field.
    Text(String),
}

/// A field.
#[derive(Clone, Debug)]
pub struct Property {
    /// Its name.
    pub name: String,
    /// How many values there are.
    pub count: Size,
    /// How many bytes or characters a value has.
    pub length: Size,
    /// What it is.
    pub kind: PropertyKind,
    /// Attributes that the resources have no part for; they are kept.
    pub others: Others,
    /// Where it stands.
    pub at: Position,
}

/// A count or a length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Size {
    /// None is given.
    #[default]
    None,
    /// Always this.
    Fixed(u16),
    /// What another field says: its place among the fields of the same list.
    Field(usize),
    /// For a member of a structure, what a field of the template says: its place there. Compilers
    /// refuse it, and decoders do not.
    Outer(usize),
}

/// What a field is.
#[derive(Clone, Debug)]
pub enum PropertyKind {
    /// A value.
    Data {
        /// How it is encoded.
        in_type: &'static InType,
        /// How it is shown.
        out_type: u8,
        /// Whether the manifest says how it is shown.
        explicit_out_type: bool,
        /// The map for its values.
        map: Option<usize>,
    },
    /// A structure of fields.
    Struct(Vec<Property>),
    /// A value of a type that winmeta.xml does not have, from the resources of an image.
    Unknown {
        /// The number of the `inType`.
        in_type: u8,
        /// The number of the `outType`.
        out_type: u8,
    },
}

/// A filter that sessions can pass to the provider.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Its name.
    pub name: QName,
    /// Its number.
    pub value: u8,
    /// The version of its layout.
    pub version: u8,
    /// The constant's name.
    pub symbol: Option<String>,
    /// What people call it.
    pub message: Option<TextRef>,
    /// Its layout.
    pub template: Option<usize>,
    /// Where it stands.
    pub at: Position,
}

/// An event.
#[derive(Clone, Debug, Default)]
pub struct Event {
    /// Its number.
    pub id: u16,
    /// The version of its layout.
    pub version: u8,
    /// The constant's name.
    pub symbol: Option<String>,
    /// Its name.
    pub name: Option<String>,
    /// Its channel.
    pub channel: Option<usize>,
    /// Its level.
    pub level: Option<usize>,
    /// Its task.
    pub task: Option<usize>,
    /// Its opcode.
    pub opcode: Option<usize>,
    /// Its keywords.
    pub keywords: Vec<usize>,
    /// Its layout.
    pub template: Option<usize>,
    /// What people read.
    pub message: Option<TextRef>,
    /// Attributes that are not translated.
    pub attributes: Option<String>,
    /// Whether it is never written.
    pub not_logged: Option<bool>,
    /// Attributes that the resources have no part for; they are kept.
    pub others: Others,
    /// Where it stands.
    pub at: Position,
}

/// A message with other numbers for the fields that it speaks of.
#[must_use]
pub fn replace_fields(message: &str, replacement: impl Fn(usize) -> Option<usize>) -> String {
    let mut out = String::new();
    let mut rest = message;
    while let Some((before, after)) = rest.split_once('%') {
        out.push_str(before);
        out.push('%');
        let digits = after.bytes().take(2).take_while(u8::is_ascii_digit).count();
        let (number, tail) = after.split_at(digits);
        match number.parse().ok().and_then(&replacement) {
            Some(other) => out.push_str(&other.to_string()),
            None => out.push_str(number),
        }
        rest = tail;
        if digits == 0 {
            // `%n`, or `%%`.
            let mut characters = after.chars();
            out.extend(characters.next());
            rest = characters.as_str();
        }
    }
    out.push_str(rest);
    out
}

impl Provider {
    /// The bit of an event's channel in its keywords. Channels of winmeta.xml that the manifest
    /// does not import have none.
    #[must_use]
    pub fn channel_bit(&self, event: &Event) -> u64 {
        const FIRST: usize = 63;
        event
            .channel
            .map_or(0, |channel| match FIRST.checked_sub(channel) {
                Some(bit) if self.channels[channel].declared => 1 << bit,
                _ => 0,
            })
    }

    /// The bits of an event's keywords, that of its channel included.
    #[must_use]
    pub fn keyword_mask(&self, event: &Event) -> u64 {
        event
            .keywords
            .iter()
            .fold(self.channel_bit(event), |mask, keyword| {
                mask | self.keywords[*keyword].mask
            })
    }
}
