//! The model of a manifest: the names and layouts of a provider's events.
//!
//! Types correspond to elements of eventman.xsd, and fields to attributes. The XML refers to
//! definitions by name; the model refers to them by index: an event's `level` is an index into its
//! provider's `levels`. These lists contain the definitions of winmeta.xml that the events use,
//! marked `standard`.
//!
//! Source: eventman.xsd and winmeta.xml of the Windows SDK; `docs/reference/decoding-resources.md`,
//! section 5.

use std::hash::{Hash, Hasher};

use etw_wire::{Guid, InType, OutType, winmeta};

use crate::error::ManifestError;
pub use crate::position::Position;

/// Attributes as pairs of names and values.
pub type Others = Vec<(String, String)>;

/// An index into [`Manifest::texts`].
pub type TextRef = usize;

/// An instrumentation manifest (`instrumentationManifest`).
#[derive(Clone, Debug, Default)]
pub struct Manifest {
    /// The providers.
    pub providers: Vec<Provider>,
    /// The strings in the manifest's first language, and the strings of winmeta.xml that it uses.
    pub texts: Vec<Text>,
    /// The name of the first language, such as `en-US`; empty if the manifest has no strings.
    pub culture: String,
    /// The strings in other languages.
    pub translations: Vec<Translation>,
    /// The ignored elements and attributes of other namespaces, in file order.
    pub left_out: Vec<ManifestError>,
}

/// A localized string (`string` of a `stringTable`).
#[derive(Clone, Debug, Default)]
pub struct Text {
    /// The id that messages use to refer to the string.
    pub id: String,
    /// The text.
    pub value: String,
    /// The message id in the manifest's `messageTable`; if `None`, an id is generated.
    pub message_id: Option<u32>,
    /// The name of the string's constant in the header that mc.exe generates.
    pub symbol: Option<String>,
    /// True if winmeta.xml defines this string.
    pub standard: bool,
    /// The location of the definition.
    pub at: Position,
}

/// The strings in an additional language.
#[derive(Clone, Debug, Default)]
pub struct Translation {
    /// The name of the language, such as `de-DE`.
    pub culture: String,
    /// Ids and strings.
    pub texts: Vec<(String, String)>,
}

/// A provider and everything that its events refer to (`provider`).
#[derive(Clone, Debug, Default)]
pub struct Provider {
    /// The name that sessions and viewers use to identify the provider.
    pub name: String,
    /// The GUID that the provider's events are decoded with.
    pub guid: Guid,
    /// The name of the GUID's constant in the header that mc.exe generates.
    pub symbol: String,
    /// The text that viewers show.
    pub message: Option<TextRef>,
    /// The path of the image with the `WEVT_TEMPLATE` resource.
    pub resource_file: String,
    /// The path of the image with the message table.
    pub message_file: String,
    /// The path of the image with the parameter strings (`%%1`).
    pub parameter_file: Option<String>,
    /// The GUID that sessions use to enable the provider, if it differs from `guid`.
    pub control_guid: Option<Guid>,
    /// The namespace for generated language projections.
    pub namespace: Option<String>,
    /// The GUID of the provider group.
    pub group_guid: Option<Guid>,
    /// The attribute `includeName` of `traits`.
    pub include_name: Option<bool>,
    /// The channels, including imported ones; in order, they own the keyword bits from 63 down.
    pub channels: Vec<Channel>,
    /// The levels.
    pub levels: Vec<Level>,
    /// The tasks.
    pub tasks: Vec<Task>,
    /// The opcodes, including tasks' opcodes.
    pub opcodes: Vec<Opcode>,
    /// The keywords.
    pub keywords: Vec<Keyword>,
    /// The value maps and bit maps.
    pub maps: Vec<Map>,
    /// The named queries.
    pub queries: Vec<Query>,
    /// The templates.
    pub templates: Vec<Template>,
    /// The filters.
    pub filters: Vec<Filter>,
    /// The events.
    pub events: Vec<Event>,
    /// Attributes that the resources do not contain, kept for writing.
    pub others: Others,
    /// The location of the definition.
    pub at: Position,
}

/// A qualified name. Two names are equal if their namespaces and local names are equal; prefixes
/// are irrelevant.
#[derive(Clone, Debug, Default)]
pub struct QName {
    /// The name as written, with its prefix: `win:Error`.
    pub written: String,
    /// The namespace of the prefix; empty without a prefix.
    pub namespace: String,
}

impl QName {
    /// Returns a name without a prefix.
    #[must_use]
    pub fn plain(name: &str) -> Self {
        Self { written: name.to_owned(), namespace: String::new() }
    }

    /// Returns whether the name belongs to winmeta.xml's namespace.
    #[must_use]
    pub fn is_winmeta(&self) -> bool {
        self.namespace == winmeta::NAMESPACE
    }

    /// Returns the local name of a name in winmeta.xml's namespace.
    pub(crate) fn of_winmeta(&self) -> Option<&str> {
        self.is_winmeta().then(|| self.local())
    }

    /// Returns the local name, without the prefix.
    #[must_use]
    pub fn local(&self) -> &str {
        self.written.split_once(':').map_or(self.written.as_str(), |(_, local)| local)
    }
}

impl PartialEq for QName {
    fn eq(&self, other: &Self) -> bool {
        self.namespace == other.namespace && self.local() == other.local()
    }
}

impl Eq for QName {}

impl Hash for QName {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.namespace.hash(state);
        self.local().hash(state);
    }
}

/// A channel, or a reference to an imported one (`channel`, `importChannel`).
#[derive(Clone, Debug, Default)]
pub struct Channel {
    /// The full name, such as `Company-Product/Operational`.
    pub name: String,
    /// The name that events use to refer to the channel (`chid`).
    pub id: Option<String>,
    /// The name of the channel's constant in the header that mc.exe generates.
    pub symbol: Option<String>,
    /// The type: `Admin`, `Operational`, `Analytic` or `Debug`; empty if it is unknown.
    pub kind: String,
    /// The number. If the manifest gives none, the reader assigns numbers from 16.
    pub value: u8,
    /// True if the manifest gives the number.
    pub explicit_value: bool,
    /// The text that viewers show.
    pub message: Option<TextRef>,
    /// True if another provider or winmeta.xml defines the channel.
    pub imported: bool,
    /// True if the provider lists the channel; channels of winmeta.xml need not be listed.
    pub declared: bool,
    /// The isolation: `Application`, `System` or `Custom`.
    pub isolation: Option<String>,
    /// The attribute `enabled`: true if the channel is initially enabled.
    pub enabled: Option<bool>,
    /// The security descriptor, in SDDL.
    pub access: Option<String>,
    /// The log file's properties (`logging`).
    pub logging: Logging,
    /// The other child element, `publishing`, as XML.
    pub inside: String,
    /// The location of the definition.
    pub at: Position,
}

/// The properties of the log file that backs a channel (`logging`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Logging {
    /// True if a full log file is kept and a new one started.
    pub auto_backup: Option<bool>,
    /// True if a full log file keeps its events and drops new ones; false if new events replace the
    /// oldest ones.
    pub retention: Option<bool>,
    /// The maximum size of the log file in bytes.
    pub max_size: Option<u64>,
}

/// A level (`level`). A provider's own levels are 16 to 255.
#[derive(Clone, Debug, Default)]
pub struct Level {
    /// The name.
    pub name: QName,
    /// The number.
    pub value: u8,
    /// The name of the level's constant in the header that mc.exe generates.
    pub symbol: Option<String>,
    /// The text that viewers show.
    pub message: Option<TextRef>,
    /// True if winmeta.xml defines this level.
    pub standard: bool,
    /// The location of the definition.
    pub at: Position,
}

/// A task (`task`).
#[derive(Clone, Debug, Default)]
pub struct Task {
    /// The name.
    pub name: QName,
    /// The number.
    pub value: u16,
    /// The name of the task's constant in the header that mc.exe generates.
    pub symbol: Option<String>,
    /// The GUID of the task's classic (MOF) events.
    pub event_guid: Option<Guid>,
    /// The text that viewers show.
    pub message: Option<TextRef>,
    /// True if winmeta.xml defines this task.
    pub standard: bool,
    /// The location of the definition.
    pub at: Position,
}

/// An opcode (`opcode`). A provider's own opcodes are 10 to 239.
#[derive(Clone, Debug, Default)]
pub struct Opcode {
    /// The name.
    pub name: QName,
    /// The number.
    pub value: u8,
    /// The index of the opcode's task; `None` if the opcode applies to any task.
    pub task: Option<usize>,
    /// The name of the opcode's constant in the header that mc.exe generates.
    pub symbol: Option<String>,
    /// The text that viewers show.
    pub message: Option<TextRef>,
    /// True if winmeta.xml defines this opcode.
    pub standard: bool,
    /// Attributes that the resources do not contain, kept for writing.
    pub others: Others,
    /// The location of the definition.
    pub at: Position,
}

/// A keyword (`keyword`). A provider's own keywords are the bits 0 to 47.
#[derive(Clone, Debug, Default)]
pub struct Keyword {
    /// The name.
    pub name: QName,
    /// The mask, a single bit, except for winmeta.xml's `AnyKeyword`, which is 0.
    pub mask: u64,
    /// The name of the keyword's constant in the header that mc.exe generates.
    pub symbol: Option<String>,
    /// The text that viewers show.
    pub message: Option<TextRef>,
    /// True if winmeta.xml defines this keyword.
    pub standard: bool,
    /// The location of the definition.
    pub at: Position,
}

/// Names for the values of a field (`valueMap`, `bitMap`).
#[derive(Clone, Debug, Default)]
pub struct Map {
    /// The name.
    pub name: String,
    /// True for a `bitMap`, whose values are masks.
    pub is_bits: bool,
    /// The name of the map's constant in the header that mc.exe generates.
    pub symbol: Option<String>,
    /// The entries.
    pub items: Vec<MapItem>,
    /// The location of the definition.
    pub at: Position,
}

/// An entry of a map (`map`).
#[derive(Clone, Debug, Default)]
pub struct MapItem {
    /// The value, or the mask.
    pub value: u32,
    /// The text that viewers show for the value; compilers require it.
    pub message: Option<TextRef>,
    /// The name of the entry's constant in the header that mc.exe generates.
    pub symbol: Option<String>,
    /// The location of the definition.
    pub at: Position,
}

/// A named query (`patternMap`).
#[derive(Clone, Debug, Default)]
pub struct Query {
    /// The name.
    pub name: String,
    /// The format of the patterns.
    pub format: String,
    /// Names and patterns.
    pub items: Vec<(String, String)>,
    /// Attributes that the resources do not contain, kept for writing.
    pub others: Others,
    /// The location of the definition.
    pub at: Position,
}

/// The layout of an event's user data (`template`).
#[derive(Clone, Debug, Default)]
pub struct Template {
    /// The name that events use to refer to the template (`tid`).
    pub id: String,
    /// The `Name` attribute of the `EventData` element that event logs show.
    pub name: Option<String>,
    /// The fields, in the order of the data.
    pub properties: Vec<Property>,
    /// The XML that event logs show instead of `EventData` (`UserData`).
    pub user_data: Option<Element>,
    /// Attributes that the resources do not contain, kept for writing.
    pub others: Others,
    /// The location of the definition.
    pub at: Position,
}

/// An element of a template's `UserData`.
#[derive(Clone, Debug, Default)]
pub struct Element {
    /// The name.
    pub name: String,
    /// The attributes, including namespace declarations.
    pub attributes: Vec<(String, String)>,
    /// The content.
    pub nodes: Vec<Node>,
}

/// The content of an element.
#[derive(Clone, Debug)]
pub enum Node {
    /// An element.
    Element(Element),
    /// Character data; `%1` stands for the first field.
    Text(String),
}

/// A field of a template, or a member of a structure (`data`, `struct`).
#[derive(Clone, Debug)]
pub struct Property {
    /// The name.
    pub name: String,
    /// The number of values; a field with any size except [`Size::None`] is an array.
    pub count: Size,
    /// The length of a value: in bytes for binary data, in characters for text.
    pub length: Size,
    /// The type.
    pub kind: PropertyKind,
    /// Attributes that the resources do not contain, kept for writing.
    pub others: Others,
    /// The location of the definition.
    pub at: Position,
}

/// The count or the length of a field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Size {
    /// The attribute is missing, or 0.
    #[default]
    None,
    /// A constant.
    Fixed(u16),
    /// The value of an earlier field, given by its index in the same list.
    Field(usize),
    /// In a structure's member: the value of a field of the template, given by its index there. The
    /// checker rejects this size; decoders can use it.
    Outer(usize),
}

/// The type of a field.
#[derive(Clone, Debug)]
pub enum PropertyKind {
    /// A value (`data`).
    Data {
        /// The encoding.
        in_type: InType,
        /// The presentation.
        out_type: OutType,
        /// True if the manifest specifies the presentation; otherwise the encoding's default
        /// applies.
        explicit_out_type: bool,
        /// The index of the map with the values' names.
        map: Option<usize>,
    },
    /// A structure (`struct`) with its members.
    Struct(Vec<Property>),
    /// A value with an encoding or presentation that winmeta.xml does not list; only resources
    /// contain such values.
    Unknown {
        /// The number of the `inType`.
        in_type: u8,
        /// The number of the `outType`.
        out_type: u8,
        /// The index of the map with the values' names.
        map: Option<usize>,
    },
}

/// A filter that sessions can pass to the provider (`filter`).
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// The name.
    pub name: QName,
    /// The number.
    pub value: u8,
    /// The version of the layout.
    pub version: u8,
    /// The name of the filter's constant in the header that mc.exe generates.
    pub symbol: Option<String>,
    /// The text that viewers show.
    pub message: Option<TextRef>,
    /// The index of the template with the layout.
    pub template: Option<usize>,
    /// The location of the definition.
    pub at: Position,
}

/// An event (`event`). Id and version together are unique in a provider.
#[derive(Clone, Debug, Default)]
pub struct Event {
    /// The event id (attribute `value`).
    pub id: u16,
    /// The version of the layout.
    pub version: u8,
    /// The name of the event's constant in the header that mc.exe generates.
    pub symbol: Option<String>,
    /// The name.
    pub name: Option<String>,
    /// The index of the channel.
    pub channel: Option<usize>,
    /// The index of the level.
    pub level: Option<usize>,
    /// The index of the task.
    pub task: Option<usize>,
    /// The index of the opcode.
    pub opcode: Option<usize>,
    /// The indexes of the keywords.
    pub keywords: Vec<usize>,
    /// The index of the template with the layout.
    pub template: Option<usize>,
    /// The message; `%1` stands for the first field.
    pub message: Option<TextRef>,
    /// Language-independent attributes: `name=value` pairs separated by semicolons.
    pub attributes: Option<String>,
    /// The attribute `notLogged`: true if the event is declared but never written.
    pub not_logged: Option<bool>,
    /// Attributes that the resources do not contain, kept for writing.
    pub others: Others,
    /// The location of the definition.
    pub at: Position,
}

/// A definition that diagnostics can locate.
pub trait Definition {
    /// Returns the location.
    fn at(&self) -> Position;
    /// Sets the location.
    fn set_at(&mut self, at: Position);
    /// Returns the name of the constant in the header that mc.exe generates.
    fn symbol(&self) -> Option<&String>;
}

macro_rules! definitions {
    (@$it:ident) => { None };
    (@$it:ident $symbol:ident) => { $it.$symbol.as_ref() };
    ($($name:ident $(. $symbol:ident)?)*) => {$(
        impl Definition for $name {
            fn at(&self) -> Position {
                self.at
            }

            fn set_at(&mut self, at: Position) {
                self.at = at;
            }

            fn symbol(&self) -> Option<&String> {
                definitions!(@self $($symbol)?)
            }
        }
    )*};
}

definitions! {
    Text.symbol Channel.symbol Level.symbol Task.symbol Opcode.symbol Keyword.symbol Map.symbol
    MapItem.symbol Filter.symbol Event.symbol Provider Query Template Property
}

/// Renumbers the fields that a message refers to. Numbers without a replacement stay the same.
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
    /// Returns the keyword bit of an event's channel: bit 63 for the provider's first channel, bit
    /// 62 for the second, and so on. Channels of winmeta.xml that the provider does not list have
    /// no bit.
    #[must_use]
    pub fn channel_bit(&self, event: &Event) -> u64 {
        event.channel.map_or(0, |channel| self.bit_of_channel(channel))
    }

    /// Returns the keyword bit of a channel, given by its index in `channels`;
    /// see [`channel_bit`](Self::channel_bit).
    #[must_use]
    pub fn bit_of_channel(&self, channel: usize) -> u64 {
        const FIRST: usize = 63;
        let is_declared = self.channels.get(channel).is_some_and(|channel| channel.declared);
        FIRST.checked_sub(channel).filter(|_| is_declared).map_or(0, |bit| 1 << bit)
    }

    /// Returns the event descriptor's keyword: the bits of the event's keywords and channel.
    #[must_use]
    pub fn keyword_mask(&self, event: &Event) -> u64 {
        event
            .keywords
            .iter()
            .fold(self.channel_bit(event), |mask, keyword| mask | self.keywords[*keyword].mask)
    }
}
