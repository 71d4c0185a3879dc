//! The presentation of an event: everything that a viewer shows, as comparable text.

use etw_wire::{InType, OutType};

use crate::{
    model::{Event, Manifest, Map, Property, PropertyKind, Provider, QName, Size},
    types::in_type_name,
};

/// The size of an IPv6 address, which the presentation implies.
const IPV6_LENGTH: Size = Size::Fixed(16);

/// The parts of an event that a viewer shows: names, and fields with their types and maps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Presentation {
    /// The fields: their names, encodings, presentations, maps, counts and lengths.
    pub fields: Vec<String>,
    /// The maps that the fields use, by name: their values and strings.
    pub maps: Vec<String>,
    /// The task's name.
    pub task: String,
    /// The opcode's name.
    pub opcode: String,
    /// The level's name.
    pub level: String,
    /// The keywords' names.
    pub keywords: Vec<String>,
    /// The channel's name.
    pub channel: String,
}

impl Presentation {
    /// Returns the presentation of an event.
    #[must_use]
    pub fn for_event(manifest: &Manifest, provider: &Provider, event: &Event) -> Self {
        let properties = event
            .template
            .and_then(|at| provider.templates.get(at))
            .map_or(&[][..], |template| &template.properties);
        let mut used = Vec::new();
        let fields = list(properties, provider, &mut used);
        used.sort_unstable();
        used.dedup();
        let maps = used.into_iter().filter_map(|at| provider.maps.get(at));
        let mut maps: Vec<String> = maps.map(|map| entries(manifest, map)).collect();
        maps.sort_unstable();
        let keywords = event.keywords.iter();
        let keywords = keywords.filter_map(|at| provider.keywords.get(*at));
        let mut keywords: Vec<String> = keywords
            .filter(|keyword| keyword.mask != 0)
            .map(|keyword| keyword.name.local().to_owned())
            .collect();
        keywords.sort_unstable();
        let task = event.task.and_then(|at| provider.tasks.get(at));
        let opcode = event.opcode.and_then(|at| provider.opcodes.get(at));
        let level = event.level.and_then(|at| provider.levels.get(at));
        let channel = event.channel.and_then(|at| provider.channels.get(at));
        Self {
            fields,
            maps,
            // Events without a task have task 0, and events without an opcode have opcode 0.
            task: local(task.filter(|task| task.value != 0).map(|task| &task.name)),
            opcode: local(opcode.filter(|opcode| opcode.value != 0).map(|opcode| &opcode.name)),
            level: local(level.filter(|level| level.value != 0).map(|level| &level.name)),
            keywords,
            channel: channel.map_or_else(String::new, |channel| channel.name.clone()),
        }
    }

    /// Returns true if both have the same fields with the same types and maps.
    #[must_use]
    pub fn has_template_of(&self, other: &Self) -> bool {
        self.fields == other.fields && self.maps == other.maps
    }

    /// Describes each difference in a sentence: the value in `self`, and the value in `other`.
    #[must_use]
    pub fn differences(&self, other: &Self) -> Vec<String> {
        let mut all = Vec::new();
        let count = self.fields.len().max(other.fields.len());
        for number in 0..count {
            let (mine, theirs) = (self.fields.get(number), other.fields.get(number));
            if mine != theirs {
                let text = |field: Option<&String>| {
                    field.map_or_else(|| "missing".to_owned(), |field| format!("`{field}`"))
                };
                let (mine, theirs) = (text(mine), text(theirs));
                all.push(format!("field {} is {mine}, not {theirs}", number + 1));
            }
        }
        let is_new = |map: &&String| !other.maps.contains(map);
        for map in self.maps.iter().filter(is_new) {
            let name = map.split_once(" {").map_or(map.as_str(), |(name, _)| name);
            all.push(format!("the entries of the map `{name}` differ"));
        }
        let mut word = |what: &str, mine: &str, theirs: &str| {
            if mine != theirs {
                let text = |name: &str| match name {
                    "" => "missing".to_owned(),
                    name => format!("`{name}`"),
                };
                let (mine, theirs) = (text(mine), text(theirs));
                all.push(format!("the {what} is {mine}, not {theirs}"));
            }
        };
        word("task", &self.task, &other.task);
        word("opcode", &self.opcode, &other.opcode);
        word("level", &self.level, &other.level);
        word("channel", &self.channel, &other.channel);
        if self.keywords != other.keywords {
            let text = |keywords: &[String]| match keywords {
                [] => "no keywords".to_owned(),
                some => format!("the keywords `{}`", some.join("`, `")),
            };
            let (mine, theirs) = (text(&self.keywords), text(&other.keywords));
            all.push(format!("it has {mine}, not {theirs}"));
        }
        all
    }
}

/// Returns a name without its prefix; empty if there is none.
fn local(name: Option<&QName>) -> String {
    name.map_or_else(String::new, |name| name.local().to_owned())
}

/// Describes the count and the length of a field among these fields.
pub fn sizes(count: Size, length: Size, among: &[Property]) -> String {
    let size = |size: Size, what: &str| match size {
        Size::None => String::new(),
        Size::Fixed(number) => format!(" with {what} {number}"),
        Size::Field(field) => {
            let name = among.get(field).map_or("?", |one| one.name.as_str());
            format!(" with {what} {name}")
        }
        Size::Outer(field) => format!(" with {what} %{}", field + 1),
    };
    size(count, "count") + &size(length, "length")
}

/// Returns the fields as text, and adds the maps that they use.
fn list(properties: &[Property], provider: &Provider, used: &mut Vec<usize>) -> Vec<String> {
    let mut fields = Vec::new();
    for property in properties {
        let (kind, length) = match &property.kind {
            PropertyKind::Struct(members) => {
                let members = list(members, provider, used).join(", ");
                (format!("{{ {members} }}"), property.length)
            }
            PropertyKind::Unknown { in_type, out_type, .. } => {
                (format!("{in_type} as {out_type}"), property.length)
            }
            PropertyKind::Data { in_type, out_type, map, .. } => {
                let map = map.and_then(|at| Some((at, provider.maps.get(at)?)));
                used.extend(map.map(|(at, _)| at));
                let map = map.map_or_else(String::new, |(_, map)| format!(" of {}", map.name));
                let is_address = *in_type == InType::Binary && *out_type == OutType::Ipv6;
                let length = match property.length {
                    Size::None if is_address => IPV6_LENGTH,
                    length => length,
                };
                let (in_type, out_type) = (in_type_name(*in_type), out_type.name());
                (format!("{in_type} as {out_type}{map}"), length)
            }
        };
        let sizes = sizes(property.count, length, properties);
        fields.push(format!("{}: {kind}{sizes}", property.name));
    }
    fields
}

/// Returns a map's name and its entries.
fn entries(manifest: &Manifest, map: &Map) -> String {
    let mut entries: Vec<(u32, &str)> = map
        .items
        .iter()
        .map(|item| {
            let text = item.message.and_then(|at| manifest.texts.get(at));
            (item.value, text.map_or("", |text| text.value.as_str()))
        })
        .collect();
    entries.sort_unstable();
    let kind = if map.is_bits { "bits" } else { "values" };
    format!("{} {{{kind}: {entries:?}}}", map.name)
}
