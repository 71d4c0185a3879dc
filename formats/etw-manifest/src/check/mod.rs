//! Checks a manifest beyond its XML syntax: the rules that eventman.xsd documents but does not
//! encode, and the rules that mc.exe enforces.

mod diagnostics;
mod template;

use std::collections::{HashMap, HashSet};

use crate::{
    error::{ManifestError, Rule},
    model::{Event, Manifest, Map, Position, Provider},
};

use diagnostics::Check;
pub use diagnostics::is_name;
pub use template::layout;

/// The maximum number of providers for which generated message ids are distinct.
const MAX_PROVIDERS: usize = 16;
/// The maximum number of channels: the number of keyword bits for channels.
const MAX_CHANNELS: usize = 8;

/// Checks a manifest: references, ranges, and the uniqueness of names and numbers. Returns each
/// violation with its location.
#[must_use]
pub fn check(manifest: &Manifest) -> Vec<ManifestError> {
    let mut check = Check { manifest, errors: Vec::new() };
    check.manifest();
    check.errors
}

impl<'a> Check<'a> {
    fn manifest(&mut self) {
        let manifest = self.manifest;
        self.unique("text", &manifest.texts, |one| {
            (!one.standard).then(|| (one.id.as_str(), one.id.clone()))
        });
        // Explicit and generated ids. Generated ids truncate their inputs: opcodes of the tasks 1
        // and 257 get the same id.
        let ids = crate::resources::message_ids(manifest);
        let mut order: Vec<usize> = (0..manifest.texts.len()).collect();
        // A definition from winmeta.xml has no location in this file, so report the other
        // definition.
        order.sort_by_key(|at| !manifest.texts[*at].standard);
        let mut seen = HashSet::new();
        for at in order {
            let id = ids[at];
            if id != crate::resources::NO_MESSAGE && !seen.insert(id) {
                let (what, name) = ("message id", format!("{id:#x}"));
                self.refuse(manifest.texts[at].at, Rule::Duplicate { what, name });
            }
        }
        let providers = &manifest.providers;
        self.unique("provider", providers, |one| Some((&one.name, one.name.clone())));
        self.unique("provider GUID", providers, |one| Some((one.guid, one.guid.to_string())));
        self.unique("provider symbol", providers, |one| Some((&one.symbol, one.symbol.clone())));
        for (number, provider) in providers.iter().enumerate() {
            if number >= MAX_PROVIDERS && self.needs_generated_ids(provider) {
                self.refuse(provider.at, Rule::TooManyProviders);
            }
            self.provider(provider);
        }
    }

    /// Returns whether a provider's string lacks a message id.
    fn needs_generated_ids(&self, provider: &Provider) -> bool {
        let texts = &self.manifest.texts;
        let lacks = |text: &Option<usize>| {
            text.and_then(|text| texts.get(text))
                .is_some_and(|text| text.message_id.is_none() && !text.standard)
        };
        lacks(&provider.message)
            || provider.events.iter().any(|event| lacks(&event.message))
            || provider.levels.iter().any(|level| lacks(&level.message))
            || provider.tasks.iter().any(|task| lacks(&task.message))
            || provider.opcodes.iter().any(|opcode| lacks(&opcode.message))
            || provider.keywords.iter().any(|keyword| lacks(&keyword.message))
            || provider.channels.iter().any(|channel| lacks(&channel.message))
            || provider.filters.iter().any(|filter| lacks(&filter.message))
            || provider.maps.iter().flat_map(|map| &map.items).any(|item| lacks(&item.message))
    }

    fn provider(&mut self, provider: &'a Provider) {
        for (attribute, value) in [
            ("resourceFileName", &provider.resource_file),
            ("messageFileName", &provider.message_file),
            ("symbol", &provider.symbol),
        ] {
            if value.is_empty() {
                let element = "provider".to_owned();
                self.refuse(provider.at, Rule::Empty { element, attribute });
            }
        }
        // Users never see the name of a provider with a control GUID, so other characters are
        // allowed.
        let has_control_guid = provider.control_guid.is_some();
        self.name("provider", &provider.name, provider.at, has_control_guid);
        if has_control_guid {
            let digits = |text: &str| {
                let hexadecimal = text.chars().filter(char::is_ascii_hexdigit);
                hexadecimal.collect::<String>().to_ascii_uppercase()
            };
            if !digits(&provider.name).ends_with(&digits(&provider.guid.to_string())) {
                let name = provider.name.clone();
                self.refuse(provider.at, Rule::NameWithoutGuid(name));
            }
        }
        self.channels(provider);
        self.names(provider);
        for map in &provider.maps {
            self.map(map);
        }
        self.unique("map", &provider.maps, |one| Some((&one.name, one.name.clone())));
        self.unique_symbols("map symbol", &provider.maps);
        self.unique("named query", &provider.queries, |one| Some((&one.name, one.name.clone())));
        self.unique("template", &provider.templates, |one| Some((&one.id, one.id.clone())));
        for template in &provider.templates {
            self.template(template);
        }
        self.filters(provider);
        self.events(provider);
    }

    fn channels(&mut self, provider: &'a Provider) {
        let channels = &provider.channels;
        self.unique("channel", channels, |one| Some((&one.name, one.name.clone())));
        self.unique("channel number", channels, |one| Some((one.value, one.value.to_string())));
        self.unique("chid", channels, |one| one.id.as_ref().map(|id| (id, id.clone())));
        self.unique_symbols("channel symbol", channels);
        for (number, channel) in channels.iter().filter(|one| one.declared).enumerate() {
            if number >= MAX_CHANNELS {
                self.refuse(channel.at, Rule::TooManyChannels);
            }
            self.name("channel", &channel.name, channel.at, false);
            if channel.id.as_deref() == Some("") {
                let element = "channel".to_owned();
                let attribute = "chid";
                self.refuse(channel.at, Rule::Empty { element, attribute });
            }
        }
    }

    /// Checks levels, tasks, opcodes and keywords.
    fn names(&mut self, provider: &'a Provider) {
        let levels = &provider.levels;
        self.unique("level", levels, |one| Some((&one.name, one.name.written.clone())));
        self.unique("level number", levels, |one| Some((one.value, one.value.to_string())));
        self.unique_symbols("level symbol", levels);
        let tasks = &provider.tasks;
        self.unique("task", tasks, |one| Some((&one.name, one.name.written.clone())));
        self.unique("task number", tasks, |one| Some((one.value, one.value.to_string())));
        self.unique("eventGUID", tasks, |one| one.event_guid.map(|guid| (guid, guid.to_string())));
        self.unique_symbols("task symbol", tasks);
        let opcodes = &provider.opcodes;
        self.unique("opcode", opcodes, |one| {
            Some(((one.task, &one.name), one.name.written.clone()))
        });
        self.unique("opcode number", opcodes, |one| {
            Some(((one.task, one.value), one.value.to_string()))
        });
        self.unique_symbols("opcode symbol", opcodes);
        let keywords = &provider.keywords;
        self.unique("keyword", keywords, |one| Some((&one.name, one.name.written.clone())));
        self.unique("keyword mask", keywords, |one| Some((one.mask, format!("{:#x}", one.mask))));
        self.unique_symbols("keyword symbol", keywords);
        for keyword in keywords.iter().filter(|keyword| !keyword.standard) {
            const OWN: u64 = (1 << 48) - 1;
            if !keyword.mask.is_power_of_two() || keyword.mask & OWN == 0 {
                let name = keyword.name.written.clone();
                let mask = keyword.mask;
                self.refuse(keyword.at, Rule::KeywordMask { name, mask });
            }
        }
    }

    fn map(&mut self, map: &'a Map) {
        if map.items.is_empty() {
            self.refuse(map.at, Rule::EmptyMap(map.name.clone()));
        }
        self.unique("map entry", &map.items, |one| Some((one.value, format!("{:#x}", one.value))));
        self.unique_symbols("map entry symbol", &map.items);
    }

    fn filters(&mut self, provider: &'a Provider) {
        let filters = &provider.filters;
        self.unique("filter", filters, |one| {
            Some((one.name.written.as_str(), one.name.written.clone()))
        });
        self.unique("filter number and version", filters, |one| {
            let name = format!("{} of version {}", one.value, one.version);
            Some(((one.value, one.version), name))
        });
        self.unique_symbols("filter symbol", filters);
    }

    fn events(&mut self, provider: &'a Provider) {
        let mut seen: HashMap<(u16, u8), Position> = HashMap::new();
        for event in &provider.events {
            if seen.insert((event.id, event.version), event.at).is_some() {
                let (id, version) = (event.id, event.version);
                self.refuse(event.at, Rule::DuplicateEvent { id, version });
            }
            self.event(event, provider);
        }
        self.unique_symbols("event symbol", &provider.events);
    }

    fn event(&mut self, event: &Event, provider: &Provider) {
        let is_admin =
            event.channel.is_some_and(|channel| provider.channels[channel].kind == "Admin");
        if is_admin {
            if event.message.is_none() {
                self.refuse(event.at, Rule::AdminMessage);
            }
            let level = event.level.map(|level| provider.levels[level].value);
            if !level.is_some_and(|level| (1..=4).contains(&level)) {
                self.refuse(event.at, Rule::AdminLevel);
            }
        }
        let fields =
            event.template.map_or(0, |template| provider.templates[template].properties.len());
        if let Some(text) = event.message.and_then(|text| self.manifest.texts.get(text)) {
            self.message(&text.value, fields, event.at);
        }
        for pair in crate::resources::attributes(event) {
            let is_pair = pair.split_once('=').is_some_and(|(name, _)| !name.trim().is_empty());
            if !is_pair || pair.matches('"').count() % 2 == 1 {
                let whole = event.attributes.clone().unwrap_or_default();
                self.refuse(event.at, Rule::Attributes(whole));
                break;
            }
        }
    }

    /// Checks that a message refers only to existing fields.
    fn message(&mut self, message: &str, fields: usize, at: Position) {
        let mut rest = message;
        while let Some((_, after)) = rest.split_once('%') {
            let digits = after.bytes().take(2).take_while(u8::is_ascii_digit).count();
            if digits == 0 {
                // Escapes such as `%n` and `%%`.
                let mut characters = after.chars();
                characters.next();
                rest = characters.as_str();
                continue;
            }
            let (number, tail) = after.split_at(digits);
            let number = number.parse().unwrap_or(0);
            // `%0` ends a message without a line break.
            if number > fields {
                self.refuse(at, Rule::MessageField { number, fields });
            }
            rest = tail;
            if let Some(format) = tail.strip_prefix('!') {
                if let Some((_, behind)) = format.split_once('!') {
                    rest = behind;
                } else {
                    self.refuse(at, Rule::MessageFormat(number));
                    return;
                }
            }
        }
    }
}
