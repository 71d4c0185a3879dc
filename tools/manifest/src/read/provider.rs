//! Reads a provider and the lists that its events refer to.

use etw_wire::Guid;
use roxmltree::Node as Xml;

use super::{
    lenient::Part,
    reader::{Mode, Reader},
    xml::{elements, name, named, optional, others},
};
use crate::{
    error::Rule,
    model::{Channel, Keyword, Level, Map, MapItem, Opcode, Provider, Query, Task},
    winmeta,
};

/// The first number of a provider's own channels.
const FIRST_CHANNEL: u8 = 16;

impl<'a, 'i> Reader<'a, 'i> {
    pub fn provider(&mut self, node: Xml<'a, 'i>) -> Provider {
        let mut provider = Provider {
            name: self.required(node, "name"),
            symbol: self.expected(node, "symbol"),
            message: self.message(node),
            resource_file: self.expected(node, "resourceFileName"),
            message_file: self.expected(node, "messageFileName"),
            parameter_file: optional(node, "parameterFileName"),
            control_guid: self.optional_guid(node, "controlGuid"),
            namespace: optional(node, "namespace"),
            others: others(
                node,
                &["helpLink", "source", "warnOnApplicationCompatibilityError"],
            ),
            at: self.position(node),
            ..Provider::default()
        };
        provider.guid = self.guid(node, "guid");
        let mut others = self.manifest.providers.iter();
        let known = others.any(|other| other.guid == provider.guid);
        self.refuse_second(node, "provider", &provider.guid.to_string(), known);
        // Definitions are read before the definitions that refer to them.
        for list in elements(node) {
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
                // These elements refer to earlier ones; unknown elements have been rejected.
                _ => {}
            }
        }
        number_channels(&mut provider);
        for list in named(node, "templates") {
            for template in elements(list) {
                let read = self.part(Part::Template, template, |it| {
                    it.template(template, &provider)
                });
                provider.templates.extend(read);
            }
        }
        for filter in named(node, "filters").flat_map(elements) {
            let read = self.part(Part::Filter, filter, |it| it.filter(filter, &provider));
            provider.filters.extend(read);
        }
        self.events.clear();
        for event in named(node, "events").flat_map(elements) {
            let read = self.part(Part::Event, event, |it| it.event(event, &mut provider));
            provider.events.extend(read);
        }
        provider
    }

    fn channels(&mut self, list: Xml<'a, 'i>, provider: &mut Provider) {
        for node in elements(list) {
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
            inside: self.inside(node),
            at: self.position(node),
        }
    }

    /// Returns an element's child elements as XML text.
    fn inside(&self, node: Xml<'a, 'i>) -> String {
        elements(node)
            .map(|inner| &self.document.input_text()[inner.range()])
            .collect::<Vec<&str>>()
            .join("\n")
    }

    fn levels(&mut self, list: Xml<'a, 'i>, provider: &mut Provider) {
        for node in named(list, "level") {
            let level = self.part(Part::Level, node, |it| {
                let level = Level {
                    name: it.qualified(node),
                    value: it.number(node, "value", 16..=255),
                    symbol: optional(node, "symbol"),
                    message: it.message(node),
                    standard: false,
                    at: it.position(node),
                };
                let mut others = provider.levels.iter();
                let known = others.any(|one| one.name == level.name || one.value == level.value);
                it.refuse_second(node, "level", &level.name.written, known);
                level
            });
            provider.levels.extend(level);
        }
    }

    fn tasks(&mut self, list: Xml<'a, 'i>, provider: &mut Provider) {
        for node in named(list, "task") {
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
                let mut others = provider.tasks.iter();
                let known = others.any(|one| one.name == task.name || one.value == task.value);
                it.refuse_second(node, "task", &task.name.written, known);
                task
            });
            let Some(task) = task else {
                continue;
            };
            provider.tasks.push(task);
            let task = provider.tasks.len() - 1;
            for opcodes in named(node, "opcodes") {
                self.opcodes(opcodes, Some(task), provider);
            }
        }
    }

    fn opcodes(&mut self, list: Xml<'a, 'i>, task: Option<usize>, provider: &mut Provider) {
        for node in named(list, "opcode") {
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
                let mut others = provider.opcodes.iter().filter(|one| one.task == task);
                let known = others.any(|one| one.name == opcode.name || one.value == opcode.value);
                it.refuse_second(node, "opcode", &opcode.name.written, known);
                opcode
            });
            provider.opcodes.extend(opcode);
        }
    }

    fn keywords(&mut self, list: Xml<'a, 'i>, provider: &mut Provider) {
        for node in named(list, "keyword") {
            let keyword = self.part(Part::Keyword, node, |it| {
                let keyword = Keyword {
                    name: it.qualified(node),
                    mask: it.number(node, "mask", 0..=u64::MAX),
                    symbol: optional(node, "symbol"),
                    message: it.message(node),
                    standard: false,
                    at: it.position(node),
                };
                let known = provider.keywords.iter().any(|one| one.name == keyword.name);
                it.refuse_second(node, "keyword", &keyword.name.written, known);
                // For compilers, the checker does this.
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
        for node in elements(list) {
            let is_bits = match name(node) {
                "valueMap" => false,
                "bitMap" => true,
                _ => continue,
            };
            let map = self.part(Part::Map, node, |it| {
                let map = it.map(node, is_bits);
                let known = provider.maps.iter().any(|one| one.name == map.name);
                it.refuse_second(node, "map", &map.name, known);
                map
            });
            provider.maps.extend(map);
        }
    }

    fn map(&mut self, node: Xml<'a, 'i>, is_bits: bool) -> Map {
        let mut map = Map {
            name: self.required(node, "name"),
            is_bits,
            symbol: optional(node, "symbol"),
            items: Vec::new(),
            at: self.position(node),
        };
        for item in named(node, "map") {
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
        for node in named(list, "patternMaps").flat_map(|it| named(it, "patternMap")) {
            let query = self.part(Part::Query, node, |it| Query {
                name: it.required(node, "name"),
                format: it.required(node, "format"),
                items: named(node, "map")
                    .map(|item| (it.required(item, "name"), it.required(item, "value")))
                    .collect(),
                others: others(node, &["symbol"]),
                at: it.position(node),
            });
            provider.queries.extend(query);
        }
    }
}

/// Assigns the lowest free numbers to channels without one.
fn number_channels(provider: &mut Provider) {
    for at in 0..provider.channels.len() {
        let channel = &provider.channels[at];
        let is_standard = channel.imported && winmeta::is_channel(channel);
        if channel.explicit_value || is_standard {
            continue;
        }
        let is_free = |value: &u8| {
            !provider
                .channels
                .iter()
                .any(|channel| channel.value == *value)
        };
        if let Some(value) = (FIRST_CHANNEL..=u8::MAX).find(is_free) {
            provider.channels[at].value = value;
        }
    }
}
