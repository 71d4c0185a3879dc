//! A provider: what its events have in common.

use proc_macro2::Span;
use syn::{Attribute, Ident, Item, Path, Visibility};

use crate::{Encoding, Event, Field, Guid, Scalar};

/// A provider's declaration.
#[derive(Debug)]
pub struct Provider {
    /// The name, which travels with every event.
    pub name: String,
    /// The GUID.
    pub guid: Guid,
    /// The group that the provider is in.
    pub group: Option<Guid>,
    /// Custom traits.
    pub traits: Vec<Trait>,
    /// How events are encoded that do not say so themselves.
    pub encoding: Option<Encoding>,
    /// The functions that are called on notifications.
    pub hooks: Hooks,
    /// Whether the image is to be tracked for its decoding resources.
    pub binary_tracking: bool,
    /// The file that the image's resources are made of instead of the declaration, from the
    /// package's folder.
    pub manifest: Option<String>,
    /// The module's name.
    pub module: Ident,
    /// The module's visibility.
    pub visibility: Visibility,
    /// The module's own attributes.
    pub attributes: Vec<Attribute>,
    /// Keywords.
    pub keywords: Vec<Keyword>,
    /// Tasks.
    pub tasks: Vec<Named<u16>>,
    /// Opcodes of the provider's own.
    pub opcodes: Vec<Named<u8>>,
    /// Channels of the provider's own.
    pub channels: Vec<Channel>,
    /// Value maps and bit maps.
    pub maps: Vec<Map>,
    /// Structures.
    pub structures: Vec<Structure>,
    /// Events.
    pub events: Vec<Event>,
    /// What else stands in the module.
    pub others: Vec<Item>,
}

impl Provider {
    /// The keywords that an event travels with: its own, and the bit of its channel, by which
    /// the event log asks for it. The first channel has bit 63, the next 62, and so on.
    #[must_use]
    pub fn keyword_mask(&self, event: &Event) -> u64 {
        const FIRST: usize = 63;
        let channel = match event.encoding {
            Encoding::Manifest => event.channel,
            // These travel in a channel that is none.
            Encoding::TraceLogging => 0,
        };
        let place = self
            .channels
            .iter()
            .position(|one| channel != 0 && one.named.value == channel);
        let bit = place.and_then(|place| FIRST.checked_sub(place));
        event.keyword | bit.map_or(0, |bit| 1 << bit)
    }

    /// Whether every registration has traits: those of `TraceLogging` providers have, and
    /// those in a group or with custom traits. Others do without, since traits travel with
    /// every event.
    #[must_use]
    pub fn sets_traits(&self) -> bool {
        let describes = |event: &Event| event.encoding == Encoding::TraceLogging;
        self.group.is_some()
            || !self.traits.is_empty()
            || self.events.is_empty()
            || self.events.iter().any(describes)
    }
}

/// A custom trait.
#[derive(Debug)]
pub struct Trait {
    /// 128 to 255.
    pub kind: u8,
    /// Its data.
    pub data: Vec<u8>,
}

/// The functions that are called on notifications.
#[derive(Debug, Default)]
pub struct Hooks {
    /// When sessions want events.
    pub on_enable: Option<Path>,
    /// When no session wants events any more.
    pub on_disable: Option<Path>,
    /// When a session asks for the provider's state.
    pub on_capture_state: Option<Path>,
}

/// A keyword: a bit with a name.
#[derive(Debug)]
pub struct Keyword {
    /// The constant's name.
    pub ident: Ident,
    /// The name in a manifest.
    pub name: String,
    /// The bit, 0 to 47.
    pub bit: u32,
    /// Where the bit stands.
    pub bit_span: Span,
    /// The constant's visibility.
    pub visibility: Visibility,
    /// What it is about.
    pub docs: Vec<String>,
}

/// A value with a name: a task, an opcode, an entry of a map.
#[derive(Debug)]
pub struct Named<T> {
    /// The variant's name.
    pub ident: Ident,
    /// The name in a manifest.
    pub name: String,
    /// The value.
    pub value: T,
    /// Where the value stands.
    pub value_span: Span,
    /// What it is about.
    pub docs: Vec<String>,
}

/// A channel of the provider's own.
#[derive(Debug)]
pub struct Channel {
    /// The variant's name and its value, 16 to 255.
    pub named: Named<u8>,
    /// `Admin`, `Operational`, `Analytic` or `Debug`.
    pub kind: String,
}

/// What a map's values are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapKind {
    /// One of several.
    Value,
    /// Several of several: each is a bit.
    Bits,
}

/// A map: names for the values of a field.
#[derive(Debug)]
pub struct Map {
    /// The type's name.
    pub ident: Ident,
    /// The type's visibility.
    pub visibility: Visibility,
    /// One of several values, or bits.
    pub kind: MapKind,
    /// The integer that travels: `U8`, `U16` or `U32`.
    pub scalar: Scalar,
    /// The entries.
    pub entries: Vec<Named<u32>>,
    /// What it is about.
    pub docs: Vec<String>,
}

/// A structure of fields.
#[derive(Debug)]
pub struct Structure {
    /// The type's name.
    pub ident: Ident,
    /// The type's visibility.
    pub visibility: Visibility,
    /// The type's generics, for those that borrow.
    pub generics: syn::Generics,
    /// Its fields.
    pub fields: Vec<Field>,
    /// What it is about.
    pub docs: Vec<String>,
}
