//! A provider that a manifest or an image describes.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use etw_wire::Guid;

use crate::decode::schema::Schema;

/// A provider of a manifest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Provider {
    /// The provider's name.
    pub name: String,
    /// The GUID that its events are decoded with.
    pub guid: Guid,
    /// The GUID that sessions use to enable the provider, if it differs from `guid`.
    pub control_guid: Option<Guid>,
    pub(crate) levels: HashMap<u8, Arc<str>>,
    pub(crate) tasks: HashMap<u16, Arc<str>>,
    /// The opcodes' names, by task (0 for all tasks) and value.
    pub(crate) opcodes: HashMap<(u16, u8), Arc<str>>,
    pub(crate) keywords: Vec<(u64, String)>,
    /// The channels by their numbers.
    pub(crate) channels: BTreeMap<u8, Channel>,
    pub(crate) events: HashMap<(u16, u8), EventDefinition>,
    /// The ids and versions of the events that the trace's manifests define differently.
    pub(crate) ambiguous: BTreeSet<(u16, u8)>,
}

/// A channel of a provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Channel {
    /// The name, such as `Company-Product/Operational`.
    pub name: Arc<str>,
    /// The channel's bit in the keywords of its events; 0 if it has none.
    pub bit: u64,
}

/// An event of a manifest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventDefinition {
    /// The layout of the user data.
    pub schema: Schema,
    /// The event's symbol.
    pub symbol: Option<String>,
    /// The event's message, with `%1` to `%99` for the fields.
    pub message: Option<String>,
    /// The names of the event's keywords, for a definition without keyword masks.
    pub keywords: Arc<[Arc<str>]>,
}

impl EventDefinition {
    /// Returns the event's name or, if it has none, its symbol.
    #[must_use]
    pub fn name(&self) -> Option<String> {
        let name = &self.schema.event_name;
        if name.is_empty() { self.symbol.clone() } else { Some(name.clone()) }
    }
}

impl Provider {
    /// Adds the events and names that only another definition of the same provider contains.
    pub(crate) fn complete(&mut self, other: &Self) {
        if self.name.is_empty() {
            self.name.clone_from(&other.name);
        }
        for (value, name) in &other.levels {
            self.levels.entry(*value).or_insert_with(|| name.clone());
        }
        for (value, name) in &other.tasks {
            self.tasks.entry(*value).or_insert_with(|| name.clone());
        }
        for (key, name) in &other.opcodes {
            self.opcodes.entry(*key).or_insert_with(|| name.clone());
        }
        for (mask, name) in &other.keywords {
            if !self.keywords.iter().any(|(known, _)| known == mask) {
                self.keywords.push((*mask, name.clone()));
            }
        }
        for (value, channel) in &other.channels {
            self.channels.entry(*value).or_insert_with(|| channel.clone());
        }
        for (key, event) in &other.events {
            if let Entry::Vacant(place) = self.events.entry(*key) {
                place.insert(event.clone());
                self.ambiguous.extend(other.ambiguous.get(key));
            }
        }
    }

    /// Adds what only another manifest of the same event source contains, and marks the events that
    /// both define differently. Returns the ids and versions of those that were not marked before.
    pub(crate) fn combine(&mut self, other: &Self) -> Vec<(u16, u8)> {
        let differs = |(key, event): &(&(u16, u8), &EventDefinition)| {
            self.events.get(key).is_some_and(|known| known != *event)
        };
        let mut found: Vec<(u16, u8)> =
            other.events.iter().filter(differs).map(|(key, _)| *key).collect();
        found.sort_unstable();
        self.complete(other);
        found.retain(|key| self.ambiguous.insert(*key));
        found
    }

    /// Returns the event with this id and version.
    #[must_use]
    pub fn event(&self, id: u16, version: u8) -> Option<&EventDefinition> {
        self.events.get(&(id, version))
    }

    /// Returns the name of a level that the provider defines.
    #[must_use]
    pub fn level(&self, value: u8) -> Option<&str> {
        self.levels.get(&value).map(AsRef::as_ref)
    }

    /// Returns the name of a task.
    #[must_use]
    pub fn task(&self, value: u16) -> Option<&str> {
        self.tasks.get(&value).map(AsRef::as_ref)
    }

    /// Returns the name of an opcode: the task's or, if it has none, the provider's.
    #[must_use]
    pub fn opcode(&self, task: u16, value: u8) -> Option<&str> {
        self.opcode_name(task, value).map(AsRef::as_ref)
    }

    pub(crate) fn opcode_name(&self, task: u16, value: u8) -> Option<&Arc<str>> {
        self.opcodes.get(&(task, value)).or_else(|| self.opcodes.get(&(0, value)))
    }

    /// Returns the channel with this number.
    #[must_use]
    pub fn channel(&self, value: u8) -> Option<&Channel> {
        self.channels.get(&value)
    }

    /// Returns the masks and names of the provider's own keywords, in the manifest's order.
    #[must_use]
    pub fn keywords(&self) -> &[(u64, String)] {
        &self.keywords
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_provider_is_completed_by_what_it_lacks() {
        let provider = |name: &str, keywords: &[(u64, &str)], level: &str| Provider {
            name: name.to_owned(),
            keywords: keywords.iter().map(|(mask, name)| (*mask, (*name).to_owned())).collect(),
            levels: [(1, level.into())].into(),
            ..Provider::default()
        };
        let mut known = provider("", &[(1, "A")], "known");
        known.complete(&provider("Name", &[(1, "other A"), (2, "B")], "other"));
        assert_eq!(known, provider("Name", &[(1, "A"), (2, "B")], "known"));
        known.complete(&provider("Other", &[(2, "other B")], "other"));
        assert_eq!(known, provider("Name", &[(1, "A"), (2, "B")], "known"));
    }
}
