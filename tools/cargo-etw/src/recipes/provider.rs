//! A provider as tracing tools see it: its keywords, levels and events.

use etw_manifest::Manifest;
use etw_wire::winmeta;
use wdk_etw_schema::{Encoding, Provider};

/// A provider to trace.
#[derive(Debug)]
pub struct Traced {
    /// The name.
    pub name: String,
    /// The GUID, without braces.
    pub guid: String,
    /// The GUID of the provider's group, without braces.
    pub group: Option<String>,
    /// The keywords.
    pub keywords: Vec<Keyword>,
    /// The events.
    pub events: Vec<Event>,
}

/// A keyword.
#[derive(Debug)]
pub struct Keyword {
    /// The name.
    pub name: String,
    /// The bit, as a mask.
    pub mask: u64,
    /// The keyword's meaning.
    pub meaning: String,
}

/// An event.
#[derive(Debug)]
pub struct Event {
    /// The name.
    pub name: String,
    /// The id, or 0.
    pub id: u16,
    /// The level.
    pub level: u8,
    /// The keyword mask in its descriptor.
    pub mask: u64,
    /// True if the event contains its own metadata.
    pub is_self_describing: bool,
}

impl Traced {
    /// Returns the provider in a declaration.
    pub fn declared(provider: &Provider) -> Self {
        Self {
            name: provider.name.clone(),
            guid: provider.guid.to_string(),
            group: provider.group.map(|group| group.to_string()),
            keywords: provider
                .keywords
                .iter()
                .map(|keyword| Keyword {
                    name: keyword.name.clone(),
                    mask: 1 << keyword.bit,
                    meaning: keyword.docs.join(" ").trim().to_owned(),
                })
                .collect(),
            events: provider
                .events
                .iter()
                .map(|event| Event {
                    name: event.name.clone(),
                    id: event.id,
                    level: event.level.0,
                    mask: provider.keyword_mask(event),
                    is_self_describing: event.encoding == Encoding::TraceLogging,
                })
                .collect(),
        }
    }

    /// Returns the providers in a manifest or in an image's resources.
    pub fn described(manifest: &Manifest) -> Vec<Self> {
        let text = |at: Option<usize>| {
            let text = at.and_then(|at| manifest.texts.get(at));
            text.map(|text| text.value.trim().to_owned())
        };
        let providers = manifest.providers.iter();
        let traced =
            providers.map(|provider| Self {
                name: provider.name.clone(),
                guid: provider.control_guid.unwrap_or(provider.guid).to_string(),
                group: provider.group_guid.map(|group| group.to_string()),
                keywords: provider
                    .keywords
                    .iter()
                    .filter(|keyword| !keyword.name.is_winmeta())
                    .map(|keyword| Keyword {
                        name: keyword.name.local().to_owned(),
                        mask: keyword.mask,
                        meaning: text(keyword.message).unwrap_or_default(),
                    })
                    .collect(),
                events: provider
                    .events
                    .iter()
                    .map(|event| Event {
                        name: event.name.clone().or_else(|| event.symbol.clone()).unwrap_or_else(
                            || format!("event {} version {}", event.id, event.version),
                        ),
                        id: event.id,
                        level: event
                            .level
                            .and_then(|at| provider.levels.get(at))
                            .map_or(0, |level| level.value),
                        mask: event
                            .keywords
                            .iter()
                            .filter_map(|at| provider.keywords.get(*at))
                            .fold(channel_bit(event.channel), |mask, one| mask | one.mask),
                        is_self_describing: false,
                    })
                    .collect(),
            });
        traced.collect()
    }

    /// Returns the mask of all keywords of the provider's events, or 0 if no event has a keyword.
    pub fn everything(&self) -> u64 {
        let keywords = self.keywords.iter().map(|keyword| keyword.mask);
        let events = self.events.iter().map(|event| event.mask);
        keywords.chain(events).fold(0, |mask, one| mask | one)
    }

    /// Returns the highest level of the events. A provider without declared events can have events
    /// of every level, declared where they are written.
    pub fn highest_level(&self) -> u8 {
        const VERBOSE: u8 = 5;
        let levels = self.events.iter().map(|event| event.level);
        levels.max().unwrap_or(VERBOSE)
    }

    /// Returns up to two event ids, for a filter by id.
    pub fn some_ids(&self) -> Vec<u16> {
        let mut ids = Vec::new();
        for event in &self.events {
            if event.id != 0 && !ids.contains(&event.id) {
                ids.push(event.id);
            }
        }
        ids.truncate(2);
        ids
    }
}

/// Returns the bit that the event log uses to enable a channel's events.
fn channel_bit(channel: Option<usize>) -> u64 {
    const FIRST: usize = 63;
    let bit = channel.and_then(|place| FIRST.checked_sub(place));
    bit.map_or(0, |bit| 1 << bit)
}

/// Returns a level's name or, if it has none, its number.
pub fn level_name(level: u8) -> String {
    let named = winmeta::LEVELS.iter().find(|named| named.value == level);
    named.map_or_else(|| level.to_string(), |named| named.ident.to_owned())
}

/// Returns each provider group once, with the highest level of its providers.
pub fn groups(providers: &[Traced]) -> Vec<(&str, u8)> {
    let mut groups: Vec<(&str, u8)> = Vec::new();
    for provider in providers {
        let Some(group) = &provider.group else {
            continue;
        };
        let level = provider.highest_level();
        match groups.iter_mut().find(|(known, _)| known == group) {
            Some((_, highest)) => *highest = (*highest).max(level),
            None => groups.push((group, level)),
        }
    }
    groups
}
