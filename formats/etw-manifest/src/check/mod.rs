//! Checks a manifest beyond its XML syntax: the rules that eventman.xsd documents but does not
//! encode, and the rules that mc.exe enforces.

mod diagnostics;
mod template;

use std::collections::HashMap;

use crate::{
    error::{ManifestError, Rule},
    model::{Event, Manifest, Map, Position, Provider, QName},
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
        let own = manifest.texts.iter().filter(|text| !text.standard);
        self.unique("text", own.map(|text| (text.id.as_str(), text.id.clone(), text.at)));
        // Explicit and generated ids. Generated ids truncate their inputs: opcodes of the tasks 1
        // and 257 get the same id.
        let ids = crate::resources::message_ids(manifest);
        let mut texts: Vec<_> = manifest.texts.iter().zip(ids).collect();
        // A definition from winmeta.xml has no location in this file, so report the other
        // definition.
        texts.sort_by_key(|(text, _)| !text.standard);
        let ids = texts.into_iter().filter_map(|(text, id)| {
            let is_used = id != crate::resources::NO_MESSAGE;
            is_used.then(|| (id, format!("{id:#x}"), text.at))
        });
        self.unique("message id", ids);
        let providers = &manifest.providers;
        self.unique(
            "provider",
            providers
                .iter()
                .map(|provider| (provider.name.as_str(), provider.name.clone(), provider.at)),
        );
        self.unique(
            "provider GUID",
            providers
                .iter()
                .map(|provider| (provider.guid, provider.guid.to_string(), provider.at)),
        );
        self.unique_symbols(
            "provider symbol",
            providers.iter().map(|provider| (Some(&provider.symbol), provider.at)),
        );
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
                self.refuse(provider.at, Rule::Missing { element, attribute });
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
        self.unique(
            "map",
            provider.maps.iter().map(|map| (map.name.as_str(), map.name.clone(), map.at)),
        );
        self.unique_symbols(
            "map symbol",
            provider.maps.iter().map(|map| (map.symbol.as_ref(), map.at)),
        );
        self.unique(
            "named query",
            provider
                .queries
                .iter()
                .map(|query| (query.name.as_str(), query.name.clone(), query.at)),
        );
        self.unique(
            "template",
            provider
                .templates
                .iter()
                .map(|template| (template.id.as_str(), template.id.clone(), template.at)),
        );
        for template in &provider.templates {
            self.template(template);
        }
        self.filters(provider);
        self.events(provider);
    }

    fn channels(&mut self, provider: &'a Provider) {
        let channels = &provider.channels;
        self.unique(
            "channel",
            channels
                .iter()
                .map(|channel| (channel.name.as_str(), channel.name.clone(), channel.at)),
        );
        self.unique(
            "channel number",
            channels.iter().map(|channel| (channel.value, channel.value.to_string(), channel.at)),
        );
        self.unique(
            "chid",
            channels.iter().filter_map(|channel| {
                let id = channel.id.as_ref()?;
                Some((id.as_str(), id.clone(), channel.at))
            }),
        );
        self.unique_symbols(
            "channel symbol",
            channels.iter().map(|channel| (channel.symbol.as_ref(), channel.at)),
        );
        for (number, channel) in channels.iter().filter(|one| one.declared).enumerate() {
            if number >= MAX_CHANNELS {
                self.refuse(channel.at, Rule::TooManyChannels);
            }
            self.name("channel", &channel.name, channel.at, false);
            if channel.id.as_deref() == Some("") {
                let element = "channel".to_owned();
                let attribute = "chid";
                self.refuse(channel.at, Rule::Missing { element, attribute });
            }
        }
    }

    /// Checks levels, tasks, opcodes and keywords.
    fn names(&mut self, provider: &'a Provider) {
        let key = |name: &QName| (name.namespace.clone(), name.local().to_owned());
        let levels = &provider.levels;
        self.unique(
            "level",
            levels.iter().map(|level| (key(&level.name), level.name.written.clone(), level.at)),
        );
        self.unique(
            "level number",
            levels.iter().map(|level| (level.value, level.value.to_string(), level.at)),
        );
        self.unique_symbols(
            "level symbol",
            levels.iter().map(|level| (level.symbol.as_ref(), level.at)),
        );
        let tasks = &provider.tasks;
        self.unique(
            "task",
            tasks.iter().map(|task| (key(&task.name), task.name.written.clone(), task.at)),
        );
        self.unique(
            "task number",
            tasks.iter().map(|task| (task.value, task.value.to_string(), task.at)),
        );
        self.unique(
            "eventGUID",
            tasks.iter().filter_map(|task| {
                let guid = task.event_guid?;
                Some((guid, guid.to_string(), task.at))
            }),
        );
        self.unique_symbols(
            "task symbol",
            tasks.iter().map(|task| (task.symbol.as_ref(), task.at)),
        );
        let opcodes = &provider.opcodes;
        self.unique(
            "opcode",
            opcodes.iter().map(|opcode| {
                let key = (opcode.task, key(&opcode.name));
                (key, opcode.name.written.clone(), opcode.at)
            }),
        );
        self.unique(
            "opcode number",
            opcodes
                .iter()
                .map(|opcode| ((opcode.task, opcode.value), opcode.value.to_string(), opcode.at)),
        );
        self.unique_symbols(
            "opcode symbol",
            opcodes
                .iter()
                .filter(|opcode| !opcode.standard)
                .map(|opcode| (opcode.symbol.as_ref(), opcode.at)),
        );
        let keywords = &provider.keywords;
        self.unique(
            "keyword",
            keywords
                .iter()
                .map(|keyword| (key(&keyword.name), keyword.name.written.clone(), keyword.at)),
        );
        self.unique(
            "keyword mask",
            keywords
                .iter()
                .map(|keyword| (keyword.mask, format!("{:#x}", keyword.mask), keyword.at)),
        );
        self.unique_symbols(
            "keyword symbol",
            keywords.iter().map(|keyword| (keyword.symbol.as_ref(), keyword.at)),
        );
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
        self.unique(
            "map entry",
            map.items.iter().map(|item| (item.value, format!("{:#x}", item.value), item.at)),
        );
        self.unique_symbols(
            "map entry symbol",
            map.items.iter().map(|item| (item.symbol.as_ref(), item.at)),
        );
    }

    fn filters(&mut self, provider: &'a Provider) {
        let filters = &provider.filters;
        self.unique(
            "filter",
            filters.iter().map(|filter| {
                (filter.name.written.as_str(), filter.name.written.clone(), filter.at)
            }),
        );
        self.unique(
            "filter number and version",
            filters.iter().map(|filter| {
                let name = format!("{} of version {}", filter.value, filter.version);
                ((filter.value, filter.version), name, filter.at)
            }),
        );
        self.unique_symbols(
            "filter symbol",
            filters.iter().map(|filter| (filter.symbol.as_ref(), filter.at)),
        );
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
        self.unique_symbols(
            "event symbol",
            provider.events.iter().map(|event| (event.symbol.as_ref(), event.at)),
        );
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
