//! Compares manifests: a newer manifest must decode the events of an older one.
//!
//! An event's id and version identify one layout permanently, because old traces are decoded with
//! newer resources.

use etw_wire::{InType, OutType};

use crate::{
    error::printable,
    model::{Channel, Event, Logging, Manifest, Position, Property, PropertyKind, Provider, Size},
    presentation::sizes,
    types::in_type_name,
};

/// A change that breaks the decoding of older events.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}:{}: {}: {}", at.line, at.column, printable(provider), printable(&what.to_string()))]
pub struct Break {
    /// The location in the newer manifest.
    pub at: Position,
    /// The provider's name.
    pub provider: String,
    /// The change.
    pub what: Change,
}

/// A change to an existing provider or event.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Change {
    /// The provider is missing or has a different GUID.
    #[error("the provider with the GUID {0} is missing; its older traces can no longer be decoded")]
    Provider(String),
    /// The event is missing.
    #[error(
        "event {id} version {version} is missing; keep its declaration, so that older traces are \
         decoded"
    )]
    Gone {
        /// The id.
        id: u16,
        /// The version.
        version: u8,
    },
    /// The event has a different layout.
    #[error(
        "event {id} version {version} has a different layout: {difference}; give the event with \
         the new layout version {next}, and keep the old one"
    )]
    Layout {
        /// The id.
        id: u16,
        /// The version.
        version: u8,
        /// A description of the difference.
        difference: String,
        /// The lowest unused version number.
        next: u16,
    },
    /// The manifest does not contain the provider.
    #[error("the manifest has no provider with the GUID {0}")]
    NotInManifest(String),
    /// The manifest does not contain the event.
    #[error("the manifest has no event {id} version {version}")]
    EventNotInManifest {
        /// The id.
        id: u16,
        /// The version.
        version: u8,
    },
    /// The manifest has a different layout.
    #[error("event {id} version {version} does not have the layout of the manifest: {difference}")]
    Disagrees {
        /// The id.
        id: u16,
        /// The version.
        version: u8,
        /// A description of the difference.
        difference: String,
    },
    /// The manifest lacks a channel.
    #[error("the manifest has no channel of the provider with the number {0}")]
    ChannelNotInManifest(u8),
    /// The manifest does not import a channel.
    #[error(
        "the manifest does not import the channel {0}; add `<importChannel name='{0}' chid='{0}'/>` to it"
    )]
    ImportNotInManifest(String),
    /// A channel has another setting in the manifest.
    #[error(
        "the channel {channel}: its {what} is {now}; the manifest specifies {before} (line {}), \
         and its value is the one that counts; write the same value in both",
        place.line
    )]
    Channel {
        /// The channel's number.
        channel: u8,
        /// The setting.
        what: &'static str,
        /// The value in the manifest.
        before: String,
        /// The value in the declaration.
        now: String,
        /// The location in the manifest.
        place: Position,
    },
    /// A value in the event's descriptor differs.
    #[error("event {id} version {version}: the {what} is {now}; expected {before}")]
    Descriptor {
        /// The id.
        id: u16,
        /// The version.
        version: u8,
        /// The part of the descriptor.
        what: &'static str,
        /// The value before.
        before: String,
        /// The value now.
        now: String,
    },
}

/// Describes a field's encoding.
fn describe(property: &Property, among: &[Property], provider: &Provider) -> String {
    let sizes = sizes(property.count, property.length, among);
    match &property.kind {
        PropertyKind::Struct(members) => {
            let members: Vec<String> =
                members.iter().map(|member| describe(member, members, provider)).collect();
            format!("{} {{ {} }}{sizes}", property.name, members.join(", "))
        }
        PropertyKind::Unknown { in_type, out_type, .. } => {
            format!("{}: {in_type} as {out_type}{sizes}", property.name)
        }
        PropertyKind::Data { in_type, out_type, map, .. } => {
            let shown = out_type.name();
            let in_type = in_type_name(*in_type);
            // The map's name is irrelevant, but its kind matters.
            let map = match map.map(|map| provider.maps[map].is_bits) {
                None => "",
                Some(false) => " with a value map",
                Some(true) => " with a bit map",
            };
            format!("{}: {in_type} as {shown}{map}{sizes}", property.name)
        }
    }
}

fn fields(event: &Event, provider: &Provider) -> Vec<String> {
    let properties = properties(event, provider);
    properties.iter().map(|property| describe(property, properties, provider)).collect()
}

/// Returns the first difference between two lists of fields.
fn difference(before: &[String], now: &[String]) -> Option<String> {
    for (number, (old, new)) in (1..).zip(before.iter().zip(now)) {
        if old != new {
            return Some(format!("field {number} is `{new}` and was `{old}`"));
        }
    }
    let place = before.len().min(now.len());
    if let Some(new) = now.get(place) {
        return Some(format!("the field `{new}` is new"));
    }
    let old = before.get(place)?;
    Some(format!("the field `{old}` is missing"))
}

/// The name of a number in an event's descriptor, and the number.
type Part = (&'static str, u64);

/// Returns the numbers, besides the id, that filters and viewers use to identify an event.
fn descriptor(event: &Event, provider: &Provider) -> [Part; 3] {
    let task = event.task.map_or(0, |at| provider.tasks[at].value);
    let opcode = event.opcode.map_or(0, |at| provider.opcodes[at].value);
    let channel = event.channel.map_or(0, |at| provider.channels[at].value);
    [("task", task.into()), ("opcode", opcode.into()), ("channel", channel.into())]
}

/// Returns the changes of the numbers in an event's descriptor.
fn changes<'a>(
    event: &'a Event,
    before: impl IntoIterator<Item = Part> + 'a,
    now: impl IntoIterator<Item = Part> + 'a,
) -> impl Iterator<Item = Change> + 'a {
    let pairs = before.into_iter().zip(now).filter(|(before, now)| before != now);
    pairs.map(|((what, before), (_, now))| Change::Descriptor {
        id: event.id,
        version: event.version,
        what,
        before: format!("{before:#x}"),
        now: format!("{now:#x}"),
    })
}

/// Returns the encodings of fields, without names and presentations.
///
/// A length field directly before binary data has the same encoding as counted bytes, so the two
/// fields count as one. References use the resulting field numbers.
fn shapes(properties: &[Property]) -> Vec<String> {
    let is_length = |at: usize| {
        let next = properties.get(at + 1);
        next.is_some_and(|next| is_counted_by(next, at)) && is_plain_u16(&properties[at])
    };
    let mut numbers = Vec::new();
    let mut next = 0;
    for at in 0..properties.len() {
        numbers.push(next);
        if !is_length(at) {
            next += 1;
        }
    }
    let size = |size: Size| match size {
        Size::None => String::new(),
        Size::Fixed(number) => format!("*{number}"),
        Size::Field(field) => {
            let number = numbers.get(field).map_or(0, |number| number + 1);
            format!("*field {number}")
        }
        Size::Outer(field) => format!("*outer field {}", field + 1),
    };
    let mut shapes = Vec::new();
    for (at, property) in properties.iter().enumerate() {
        if is_length(at) {
            continue;
        }
        let is_counted = at.checked_sub(1).is_some_and(is_length);
        let count = size(property.count);
        let one = match &property.kind {
            PropertyKind::Struct(members) => {
                format!("{{{}}}", self::shapes(members).join(", "))
            }
            PropertyKind::Data { .. } if is_counted => "counted bytes".to_owned(),
            PropertyKind::Unknown { in_type, .. } => format!("type {in_type}"),
            PropertyKind::Data { in_type, out_type, .. } => match (*in_type, property.length) {
                // A fixed number of bytes; the type's name is irrelevant.
                (InType::Binary, Size::Fixed(length)) => format!("1 byte*{length}"),
                (InType::Binary, Size::None) if *out_type == OutType::Ipv6 => {
                    "1 byte*16".to_owned()
                }
                (in_type, length) => value_shape(in_type).to_owned() + &size(length),
            },
        };
        shapes.push(one + &count);
    }
    shapes
}

/// Returns whether a field is binary data whose length is the preceding field.
fn is_counted_by(property: &Property, field: usize) -> bool {
    let is_bytes = matches!(
        &property.kind,
        PropertyKind::Data { in_type, .. } if *in_type == InType::Binary
    );
    is_bytes && property.length == Size::Field(field) && property.count == Size::None
}

fn is_plain_u16(property: &Property) -> bool {
    matches!(
        &property.kind,
        PropertyKind::Data { in_type, .. } if *in_type == InType::UInt16
    ) && property.count == Size::None
}

/// Returns the encoding of a single value.
fn value_shape(in_type: InType) -> &'static str {
    match in_type {
        InType::Int8 | InType::UInt8 => "1 byte",
        InType::Int16 | InType::UInt16 => "2 bytes",
        InType::Int32 | InType::UInt32 | InType::HexInt32 | InType::Boolean | InType::Float => {
            "4 bytes"
        }
        InType::Int64
        | InType::UInt64
        | InType::HexInt64
        | InType::Double
        | InType::Pointer
        | InType::FileTime => "8 bytes",
        InType::Guid | InType::SystemTime => "16 bytes",
        InType::CountedAnsiString | InType::CountedUnicodeString | InType::CountedBinary => {
            "counted bytes"
        }
        InType::UnicodeString
        | InType::AnsiString
        | InType::Binary
        | InType::Sid
        | InType::Null
        | InType::Struct => in_type_name(in_type),
    }
}

fn properties<'a>(event: &Event, provider: &'a Provider) -> &'a [Property] {
    event.template.map_or(&[], |template| &provider.templates[template].properties)
}

/// A setting of a channel: its name in a declaration, and its value if the channel sets it.
type ChannelSetting = (&'static str, Option<String>);

/// Returns the settings of a channel, each with the value that the event log uses without it.
fn settings(channel: &Channel) -> [(ChannelSetting, String); 7] {
    const MIN_SIZE: u64 = 1 << 20;
    let flag = |flag: Option<bool>| flag.map(|flag| flag.to_string());
    let Logging { auto_backup, retention, max_size } = channel.logging;
    let is_sequential = matches!(channel.kind.as_str(), "Analytic" | "Debug");
    let no = || false.to_string();
    [
        (("type", Some(channel.kind.clone())), String::new()),
        (("enabled", flag(channel.enabled)), no()),
        (("isolation", channel.isolation.clone()), "Application".to_owned()),
        (("access", channel.access.clone()), "nothing".to_owned()),
        (("max_size", max_size.map(|size| size.to_string())), MIN_SIZE.to_string()),
        (("retention", flag(retention)), is_sequential.to_string()),
        (("auto_backup", flag(auto_backup)), no()),
    ]
}

/// Returns a channel's name in a declaration's form: after the name of the provider.
fn full_name(channel: &Channel, provider: &Provider) -> String {
    if channel.name.contains('/') {
        channel.name.clone()
    } else {
        format!("{}/{}", provider.name, channel.name)
    }
}

/// Compares a declaration's channels with the manifest's. A setting that the declaration omits can
/// have any value in the manifest.
fn compare_channels(ours: &Provider, theirs: &Provider, report: &mut impl FnMut(Position, Change)) {
    for channel in &ours.channels {
        let same = |one: &&Channel| one.imported == channel.imported && one.value == channel.value;
        let Some(other) = theirs.channels.iter().find(same) else {
            let missing = if channel.imported {
                Change::ImportNotInManifest(channel.name.clone())
            } else {
                Change::ChannelNotInManifest(channel.value)
            };
            report(channel.at, missing);
            continue;
        };
        // Windows defines the names and settings of imported channels.
        if channel.imported {
            continue;
        }
        if !full_name(channel, ours).eq_ignore_ascii_case(&full_name(other, theirs)) {
            let (before, now) = (other.name.clone(), channel.name.clone());
            let (place, number) = (other.at, channel.value);
            report(
                channel.at,
                Change::Channel { channel: number, what: "name", before, now, place },
            );
        }
        for (((what, now), _), ((_, before), default)) in
            settings(channel).into_iter().zip(settings(other))
        {
            let before = before.unwrap_or(default);
            if let Some(now) = now
                && now != before
            {
                let (place, channel_number) = (other.at, channel.value);
                report(
                    channel.at,
                    Change::Channel { channel: channel_number, what, before, now, place },
                );
            }
        }
    }
}

/// Compares a declaration with the manifest that it names. Returns the events that the manifest
/// lacks or gives a different layout, and the channels that have other settings there.
#[must_use]
pub fn disagreements(declared: &Manifest, file: &Manifest) -> Vec<Break> {
    let mut found = Vec::new();
    for ours in &declared.providers {
        let mut report = |at, what| {
            found.push(Break { at, provider: ours.name.clone(), what });
        };
        let Some(theirs) = file.providers.iter().find(|one| one.guid == ours.guid) else {
            report(ours.at, Change::NotInManifest(ours.guid.to_string()));
            continue;
        };
        compare_channels(ours, theirs, &mut report);
        for event in &ours.events {
            let (id, version) = (event.id, event.version);
            let same = |one: &&Event| (one.id, one.version) == (id, version);
            let Some(other) = theirs.events.iter().find(same) else {
                report(event.at, Change::EventNotInManifest { id, version });
                continue;
            };
            let mine = shapes(properties(event, ours));
            let others = shapes(properties(other, theirs));
            if let Some(difference) = difference(&others, &mine) {
                report(event.at, Change::Disagrees { id, version, difference });
            }
            let parts = |event: &Event, of: &Provider| {
                let level = event.level.map_or(0, |at| of.levels[at].value);
                let more = [("level", level.into()), ("channel keyword", of.channel_bit(event))];
                more.into_iter().chain(descriptor(event, of))
            };
            for change in changes(event, parts(other, theirs), parts(event, ours)) {
                report(event.at, change);
            }
        }
    }
    found
}

/// Compares two versions of a manifest. Returns every change that makes older events unreadable.
/// The names of map values, messages, levels and keywords may change.
#[must_use]
pub fn breaks(before: &Manifest, now: &Manifest) -> Vec<Break> {
    let mut found = Vec::new();
    for old in &before.providers {
        let Some(new) = now.providers.iter().find(|new| new.guid == old.guid) else {
            found.push(Break {
                at: Position::default(),
                provider: old.name.clone(),
                what: Change::Provider(old.guid.to_string()),
            });
            continue;
        };
        for event in &old.events {
            compare_event(event, old, new, &mut found);
        }
    }
    found.sort_by_key(|one| one.at);
    found
}

fn compare_event(event: &Event, old: &Provider, new: &Provider, found: &mut Vec<Break>) {
    let (id, version) = (event.id, event.version);
    let same = |one: &&Event| (one.id, one.version) == (id, version);
    let mut report = |at: Position, what: Change| {
        found.push(Break { at, provider: new.name.clone(), what });
    };
    let Some(now) = new.events.iter().find(same) else {
        report(new.at, Change::Gone { id, version });
        return;
    };
    if let Some(difference) = difference(&fields(event, old), &fields(now, new)) {
        let versions = new.events.iter().filter(|one| one.id == id);
        let next = versions.map(|one| u16::from(one.version) + 1).max();
        report(now.at, Change::Layout { id, version, difference, next: next.unwrap_or(0) });
    }
    for change in changes(event, descriptor(event, old), descriptor(now, new)) {
        report(now.at, change);
    }
}
