//! Reads a provider and the lists that its events refer to.

use std::collections::HashSet;

use etw_wire::Guid;
use roxmltree::Node as Xml;

use super::{
    find::Names,
    reader::Reader,
    xml::{elements, name, named, optional, others},
};
use crate::{
    error::Rule,
    lenient::Part,
    model::{Channel, Keyword, Level, Logging, Map, MapItem, Opcode, Provider, Query, Task},
    shape::Mode,
    winmeta,
};

/// The lowest number of a provider's own channels.
const FIRST_CHANNEL: u8 = 16;

impl<'a, 'i> Reader<'a, 'i> {
    pub fn provider(&mut self, node: Xml<'a, 'i>) -> Provider {
        let mode = self.mode;
        let mut provider = Provider {
            name: self.required(node, "name"),
            symbol: self.expected(node, "symbol"),
            message: self.message(node),
            resource_file: self.expected(node, "resourceFileName"),
            message_file: self.expected(node, "messageFileName"),
            parameter_file: optional(node, "parameterFileName"),
            control_guid: self.optional_guid(node, "controlGuid"),
            namespace: optional(node, "namespace"),
            others: others(node, &["helpLink", "source", "warnOnApplicationCompatibilityError"]),
            at: self.position(node),
            ..Provider::default()
        };
        provider.guid = self.guid(node, "guid");
        let keys = |other: &Provider| [other.guid];
        let others = &mut self.globals.providers;
        let known = others.find(&self.manifest.providers, keys, &provider.guid);
        self.refuse_second(node, "provider", &provider.guid.to_string(), known.is_some());
        self.names = Names::default();
        // Definitions are read before the elements that refer to them.
        for list in elements(mode, node) {
            match name(list) {
                "channels" => self.channels(list, &mut provider),
                "levels" => self.levels(list, &mut provider),
                "tasks" => self.tasks(list, &mut provider),
                "opcodes" => self.opcodes(list, None, &mut provider),
                "keywords" => self.keywords(list, &mut provider),
                "maps" => self.maps(list, &mut provider),
                "namedQueries" => self.queries(list, &mut provider),
                "traits" => {
                    provider.group_guid = self.optional_guid(list, "groupGuid");
                    provider.include_name = self.optional_flag(list, "includeName");
                }
                // These elements were read above; unknown elements have been rejected.
                _ => {}
            }
        }
        number_channels(&mut provider);
        for list in named(mode, node, "templates") {
            for template in elements(mode, list) {
                let read =
                    self.part(Part::Template, template, |it| it.template(template, &provider));
                provider.templates.extend(read);
            }
        }
        for filter in named(mode, node, "filters").flat_map(|it| elements(mode, it)) {
            let read = self.part(Part::Filter, filter, |it| it.filter(filter, &provider));
            provider.filters.extend(read);
        }
        for event in named(mode, node, "events").flat_map(|it| elements(mode, it)) {
            let read = self.part(Part::Event, event, |it| it.event(event, &mut provider));
            if let Some(event) = read {
                // A skipped event does not replace another one.
                self.names.events.insert((event.id, event.version));
                provider.events.push(event);
            }
        }
        provider
    }

    fn channels(&mut self, list: Xml<'a, 'i>, provider: &mut Provider) {
        let mode = self.mode;
        for node in elements(mode, list) {
            let imported = match name(node) {
                "channel" => false,
                "importChannel" => true,
                _ => continue,
            };
            let channel = self.part(Part::Channel, node, |it| it.channel(node, imported));
            provider.channels.extend(channel);
        }
    }

    fn channel(&mut self, node: Xml<'a, 'i>, imported: bool) -> Channel {
        if !imported && node.attribute("type").is_none() {
            self.expected(node, "type");
        }
        let value = self.optional_number(node, "value", 16..=255);
        Channel {
            name: self.required(node, "name"),
            id: optional(node, "chid"),
            symbol: optional(node, "symbol"),
            kind: self
                .word(
                    node,
                    "type",
                    &["Admin", "Operational", "Analytic", "Debug"],
                    "Admin, Operational, Analytic, Debug",
                )
                .unwrap_or_default(),
            value: value.unwrap_or(0),
            explicit_value: value.is_some(),
            message: self.message(node),
            imported,
            declared: true,
            isolation: self.word(
                node,
                "isolation",
                &["Application", "System", "Custom"],
                "Application, System, Custom",
            ),
            enabled: self.optional_flag(node, "enabled"),
            access: optional(node, "access"),
            logging: self.logging(node),
            inside: self.inside(node),
            at: self.position(node),
        }
    }

    /// Reads the properties of a channel's log file.
    fn logging(&mut self, channel: Xml<'a, 'i>) -> Logging {
        let mode = self.mode;
        let mut logging = Logging::default();
        let properties = named(mode, channel, "logging").flat_map(|node| elements(mode, node));
        for property in properties {
            match name(property) {
                "autoBackup" => logging.auto_backup = self.flag_inside(property, "autoBackup"),
                "retention" => logging.retention = self.flag_inside(property, "retention"),
                "maxSize" => logging.max_size = self.number_inside(property, "maxSize"),
                _ => {}
            }
        }
        logging
    }

    /// Returns a channel's child elements without `logging`, as XML text.
    fn inside(&self, node: Xml<'a, 'i>) -> String {
        let mode = self.mode;
        elements(mode, node)
            .filter(|inner| name(*inner) != "logging")
            .map(|inner| &self.document.input_text()[inner.range()])
            .collect::<Vec<&str>>()
            .join("\n")
    }

    fn levels(&mut self, list: Xml<'a, 'i>, provider: &mut Provider) {
        let mode = self.mode;
        for node in named(mode, list, "level") {
            let level = self.part(Part::Level, node, |it| {
                let level = Level {
                    name: it.qualified(node),
                    value: it.number(node, "value", 16..=255),
                    symbol: optional(node, "symbol"),
                    message: it.message(node),
                    standard: false,
                    at: it.position(node),
                };
                let others = &provider.levels;
                let keys = |one: &Level| [one.name.clone()];
                let name = it.names.levels.find(others, keys, &level.name);
                let values = &mut it.names.level_values;
                let known = name.or_else(|| values.find(others, |one| [one.value], &level.value));
                it.refuse_second(node, "level", &level.name.written, known.is_some());
                level
            });
            provider.levels.extend(level);
        }
    }

    fn tasks(&mut self, list: Xml<'a, 'i>, provider: &mut Provider) {
        let mode = self.mode;
        for node in named(mode, list, "task") {
            let task = self.part(Part::Task, node, |it| {
                let event_guid = it.optional_guid(node, "eventGUID");
                let task = Task {
                    name: it.qualified(node),
                    value: it.number(node, "value", 0..=65535),
                    symbol: optional(node, "symbol"),
                    event_guid: event_guid.filter(|guid| *guid != Guid::default()),
                    message: it.message(node),
                    standard: false,
                    at: it.position(node),
                };
                let others = &provider.tasks;
                let keys = |one: &Task| [one.name.clone()];
                let name = it.names.tasks.find(others, keys, &task.name);
                let values = &mut it.names.task_values;
                let known = name.or_else(|| values.find(others, |one| [one.value], &task.value));
                it.refuse_second(node, "task", &task.name.written, known.is_some());
                task
            });
            let Some(task) = task else {
                continue;
            };
            provider.tasks.push(task);
            let task = provider.tasks.len() - 1;
            for opcodes in named(mode, node, "opcodes") {
                self.opcodes(opcodes, Some(task), provider);
            }
        }
    }

    fn opcodes(&mut self, list: Xml<'a, 'i>, task: Option<usize>, provider: &mut Provider) {
        let mode = self.mode;
        for node in named(mode, list, "opcode") {
            let opcode = self.part(Part::Opcode, node, |it| {
                let opcode = Opcode {
                    name: it.qualified(node),
                    value: it.number(node, "value", 10..=239),
                    task,
                    symbol: optional(node, "symbol"),
                    message: it.message(node),
                    standard: false,
                    others: others(node, &["mofValue"]),
                    at: it.position(node),
                };
                let others = &provider.opcodes;
                let keys = |one: &Opcode| [(one.task, one.name.clone())];
                let wanted = (task, opcode.name.clone());
                let name = it.names.opcodes.find(others, keys, &wanted);
                let keys = |one: &Opcode| [(one.task, one.value)];
                let wanted = (task, opcode.value);
                let values = &mut it.names.opcode_values;
                let known = name.or_else(|| values.find(others, keys, &wanted));
                it.refuse_second(node, "opcode", &opcode.name.written, known.is_some());
                opcode
            });
            provider.opcodes.extend(opcode);
        }
    }

    fn keywords(&mut self, list: Xml<'a, 'i>, provider: &mut Provider) {
        let mode = self.mode;
        for node in named(mode, list, "keyword") {
            let keyword = self.part(Part::Keyword, node, |it| {
                let keyword = Keyword {
                    name: it.qualified(node),
                    mask: it.number(node, "mask", 0..=u64::MAX),
                    symbol: optional(node, "symbol"),
                    message: it.message(node),
                    standard: false,
                    at: it.position(node),
                };
                let keys = |one: &Keyword| [one.name.clone()];
                let names = &mut it.names.keywords;
                let known = names.find(&provider.keywords, keys, &keyword.name);
                it.refuse_second(node, "keyword", &keyword.name.written, known.is_some());
                // For compilers, the checker reports this.
                if it.mode == Mode::Lenient && !keyword.mask.is_power_of_two() {
                    let (name, mask) = (keyword.name.written.clone(), keyword.mask);
                    it.refuse_at(node, "mask", Rule::KeywordMask { name, mask });
                }
                keyword
            });
            provider.keywords.extend(keyword);
        }
    }

    fn maps(&mut self, list: Xml<'a, 'i>, provider: &mut Provider) {
        let mode = self.mode;
        for node in elements(mode, list) {
            let is_bits = match name(node) {
                "valueMap" => false,
                "bitMap" => true,
                _ => continue,
            };
            let map = self.part(Part::Map, node, |it| {
                let map = it.map(node, is_bits);
                let keys = |one: &Map| [one.name.clone()];
                let known = it.names.maps.find(&provider.maps, keys, &map.name);
                it.refuse_second(node, "map", &map.name, known.is_some());
                map
            });
            provider.maps.extend(map);
        }
    }

    fn map(&mut self, node: Xml<'a, 'i>, is_bits: bool) -> Map {
        let mode = self.mode;
        let mut map = Map {
            name: self.required(node, "name"),
            is_bits,
            symbol: optional(node, "symbol"),
            items: Vec::new(),
            at: self.position(node),
        };
        for item in named(mode, node, "map") {
            let item = self.part(Part::MapEntry, item, |it| {
                it.expected(item, "message");
                MapItem {
                    value: it.number(item, "value", 0..=u64::from(u32::MAX)),
                    message: it.message(item),
                    symbol: optional(item, "symbol"),
                    at: it.position(item),
                }
            });
            map.items.extend(item);
        }
        map
    }

    fn queries(&mut self, list: Xml<'a, 'i>, provider: &mut Provider) {
        let mode = self.mode;
        for node in named(mode, list, "patternMaps").flat_map(|it| named(mode, it, "patternMap")) {
            let query = self.part(Part::Query, node, |it| Query {
                name: it.required(node, "name"),
                format: it.required(node, "format"),
                items: named(mode, node, "map")
                    .map(|item| (it.required(item, "name"), it.required(item, "value")))
                    .collect(),
                others: others(node, &["symbol"]),
                at: it.position(node),
            });
            provider.queries.extend(query);
        }
    }
}

/// Assigns the lowest free numbers to channels that have none.
fn number_channels(provider: &mut Provider) {
    let mut used: HashSet<u8> = provider.channels.iter().map(|one| one.value).collect();
    for channel in &mut provider.channels {
        let is_standard = channel.imported && winmeta::is_channel(channel);
        if channel.explicit_value || is_standard {
            continue;
        }
        if let Some(value) = (FIRST_CHANNEL..=u8::MAX).find(|value| !used.contains(value)) {
            used.insert(value);
            channel.value = value;
        }
    }
}
