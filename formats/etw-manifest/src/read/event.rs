//! Reads events and filters, and resolves their references.

use roxmltree::Node as Xml;

use super::{
    reader::Reader,
    xml::{optional, others},
};
use crate::{
    error::Rule,
    model::{Channel, Definition, Event, Filter, Keyword, Level, Opcode, Provider, Task, Template},
    shape::Mode,
    winmeta,
};

impl<'a, 'i> Reader<'a, 'i> {
    fn template_of(
        &mut self,
        node: Xml<'a, 'i>,
        attribute: &'static str,
        provider: &Provider,
    ) -> Option<usize> {
        let wanted = node.attribute(attribute)?;
        let keys = |template: &Template| [template.id.clone()];
        let names = &mut self.names.templates;
        let found = names.find(&provider.templates, keys, &wanted.to_owned());
        if found.is_none() {
            let rule = Rule::Unknown { what: "template", name: wanted.to_owned() };
            self.refuse_at(node, attribute, rule);
        }
        found
    }

    pub fn filter(&mut self, node: Xml<'a, 'i>, provider: &Provider) -> Filter {
        Filter {
            name: self.qualified(node),
            value: self.number(node, "value", 0..=255),
            version: self.optional_number(node, "version", 0..=255).unwrap_or(0),
            symbol: optional(node, "symbol"),
            message: self.message(node),
            template: self.template_of(node, "tid", provider),
            at: self.position(node),
        }
    }

    pub fn event(&mut self, node: Xml<'a, 'i>, provider: &mut Provider) -> Event {
        let task = self.task_of(node, provider);
        let event = Event {
            id: self.number(node, "value", 0..=65535),
            version: self.optional_number(node, "version", 0..=255).unwrap_or(0),
            symbol: optional(node, "symbol"),
            name: optional(node, "name"),
            channel: self.channel_of(node, provider),
            level: self.level_of(node, provider),
            task,
            opcode: self.opcode_of(node, task, provider),
            keywords: self.keywords_of(node, provider),
            template: self.template_of(node, "template", provider),
            message: self.message(node),
            attributes: optional(node, "attributes"),
            not_logged: self.optional_flag(node, "notLogged"),
            others: others(node, &["suppressProjection"]),
            at: self.position(node),
        };
        let key = (event.id, event.version);
        if self.mode == Mode::Lenient && self.names.events.contains(&key) {
            let (id, version) = key;
            self.refuse(event.at, Rule::DuplicateEvent { id, version });
        }
        event
    }

    fn unknown(&mut self, node: Xml<'a, 'i>, attribute: &'static str, name: &str) {
        let what = if attribute == "keywords" { "keyword" } else { attribute };
        let rule = Rule::Unknown { what, name: name.to_owned() };
        let at = self.attribute_position(node, attribute);
        self.lose(at, name, rule);
    }

    /// Adds a definition of winmeta.xml, located at the element that refers to it; without a
    /// definition, reports the reference.
    fn standard<T: Definition>(
        &mut self,
        node: Xml<'a, 'i>,
        (attribute, written): (&'static str, &str),
        definition: Option<T>,
        list: &mut Vec<T>,
    ) -> Option<usize> {
        let Some(mut definition) = definition else {
            self.unknown(node, attribute, written);
            return None;
        };
        definition.set_at(self.position(node));
        list.push(definition);
        Some(list.len() - 1)
    }

    fn channel_of(&mut self, node: Xml<'a, 'i>, provider: &mut Provider) -> Option<usize> {
        let wanted = node.attribute("channel")?;
        // The first definition with this id or name.
        let keys = |channel: &Channel| channel.id.clone().into_iter().chain([channel.name.clone()]);
        let channels = &mut provider.channels;
        self.names.channels.find(channels, keys, &wanted.to_owned()).or_else(|| {
            let standard = winmeta::channel(&mut self.manifest, wanted);
            self.standard(node, ("channel", wanted), standard, channels)
        })
    }

    fn level_of(&mut self, node: Xml<'a, 'i>, provider: &mut Provider) -> Option<usize> {
        let written = node.attribute("level")?;
        let wanted = self.resolve(node, "level", written);
        let levels = &mut provider.levels;
        let keys = |level: &Level| [level.name.clone()];
        self.names.levels.find(levels, keys, &wanted).or_else(|| {
            let local = match (self.mode, wanted.of_winmeta()) {
                // Tools that export manifests write this name for level 0.
                (Mode::Lenient, Some("Always")) => Some("LogAlways"),
                (_, local) => local,
            };
            let standard = local.and_then(|local| winmeta::level(&mut self.manifest, local));
            self.standard(node, ("level", written), standard, levels)
        })
    }

    fn task_of(&mut self, node: Xml<'a, 'i>, provider: &mut Provider) -> Option<usize> {
        let written = node.attribute("task")?;
        let wanted = self.resolve(node, "task", written);
        let tasks = &mut provider.tasks;
        self.names.tasks.find(tasks, |task: &Task| [task.name.clone()], &wanted).or_else(|| {
            let local = wanted.of_winmeta();
            let standard = local.and_then(|local| winmeta::task(&mut self.manifest, local));
            self.standard(node, ("task", written), standard, tasks)
        })
    }

    /// Resolves an opcode: first among the task's opcodes, then the provider's, then winmeta.xml's.
    fn opcode_of(
        &mut self,
        node: Xml<'a, 'i>,
        task: Option<usize>,
        provider: &mut Provider,
    ) -> Option<usize> {
        let written = node.attribute("opcode")?;
        let wanted = self.resolve(node, "opcode", written);
        let opcodes = &mut provider.opcodes;
        let keys = |opcode: &Opcode| [(opcode.task, opcode.name.clone())];
        let names = &mut self.names.opcodes;
        let mut find = |task| names.find(opcodes, keys, &(task, wanted.clone()));
        let found = task.and_then(|_| find(task)).or_else(|| find(None));
        found.or_else(|| {
            let local = wanted.of_winmeta();
            let standard = local.and_then(|local| winmeta::opcode(&mut self.manifest, local));
            self.standard(node, ("opcode", written), standard, opcodes)
        })
    }

    fn keywords_of(&mut self, node: Xml<'a, 'i>, provider: &mut Provider) -> Vec<usize> {
        let written = node.attribute("keywords").unwrap_or_default().split_whitespace();
        let keywords = &mut provider.keywords;
        let found = written.filter_map(|written| {
            let wanted = self.resolve(node, "keywords", written);
            let keys = |keyword: &Keyword| [keyword.name.clone()];
            self.names.keywords.find(keywords, keys, &wanted).or_else(|| {
                let local = wanted.of_winmeta();
                let standard = local.and_then(|local| winmeta::keyword(&mut self.manifest, local));
                self.standard(node, ("keywords", written), standard, keywords)
            })
        });
        found.collect()
    }
}
