//! Reads events and filters, and resolves their references.

use roxmltree::Node as Xml;

use super::{
    reader::Reader,
    xml::{optional, others},
};
use crate::{
    error::Rule,
    model::{Channel, Event, Filter, Keyword, Level, Opcode, Provider, Task, Template},
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

    fn channel_of(&mut self, node: Xml<'a, 'i>, provider: &mut Provider) -> Option<usize> {
        let wanted = node.attribute("channel")?;
        // The first definition with this id or name.
        let keys = |channel: &Channel| channel.id.clone().into_iter().chain([channel.name.clone()]);
        let names = &mut self.names.channels;
        let found = names.find(&provider.channels, keys, &wanted.to_owned());
        if found.is_some() {
            return found;
        }
        if let Some(mut channel) = winmeta::channel(&mut self.manifest, wanted) {
            channel.at = self.position(node);
            provider.channels.push(channel);
            return Some(provider.channels.len() - 1);
        }
        self.unknown(node, "channel", wanted);
        None
    }

    fn level_of(&mut self, node: Xml<'a, 'i>, provider: &mut Provider) -> Option<usize> {
        let written = node.attribute("level")?;
        let wanted = self.resolve(node, "level", written);
        let keys = |level: &Level| [level.name.clone()];
        let found = self.names.levels.find(&provider.levels, keys, &wanted);
        if found.is_some() {
            return found;
        }
        let local = match (self.mode, wanted.local()) {
            // Tools that export manifests write this name for level 0.
            (Mode::Lenient, "Always") => "LogAlways",
            (_, local) => local,
        };
        if wanted.is_winmeta()
            && let Some(mut level) = winmeta::level(&mut self.manifest, local)
        {
            level.at = self.position(node);
            provider.levels.push(level);
            return Some(provider.levels.len() - 1);
        }
        self.unknown(node, "level", written);
        None
    }

    fn task_of(&mut self, node: Xml<'a, 'i>, provider: &mut Provider) -> Option<usize> {
        let written = node.attribute("task")?;
        let wanted = self.resolve(node, "task", written);
        let keys = |task: &Task| [task.name.clone()];
        let found = self.names.tasks.find(&provider.tasks, keys, &wanted);
        if found.is_some() {
            return found;
        }
        if wanted.is_winmeta()
            && let Some(mut task) = winmeta::task(&mut self.manifest, wanted.local())
        {
            task.at = self.position(node);
            provider.tasks.push(task);
            return Some(provider.tasks.len() - 1);
        }
        self.unknown(node, "task", written);
        None
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
        let keys = |opcode: &Opcode| [(opcode.task, opcode.name.clone())];
        let names = &mut self.names.opcodes;
        let mut find = |of_task: Option<usize>| {
            names.find(&provider.opcodes, keys, &(of_task, wanted.clone()))
        };
        let found = task.and_then(|_| find(task)).or_else(|| find(None));
        if found.is_some() {
            return found;
        }
        if wanted.is_winmeta()
            && let Some(mut opcode) = winmeta::opcode(&mut self.manifest, wanted.local())
        {
            opcode.at = self.position(node);
            provider.opcodes.push(opcode);
            return Some(provider.opcodes.len() - 1);
        }
        self.unknown(node, "opcode", written);
        None
    }

    fn keywords_of(&mut self, node: Xml<'a, 'i>, provider: &mut Provider) -> Vec<usize> {
        let mut keywords = Vec::new();
        for written in node.attribute("keywords").unwrap_or_default().split_whitespace() {
            let wanted = self.resolve(node, "keywords", written);
            let keys = |keyword: &Keyword| [keyword.name.clone()];
            let names = &mut self.names.keywords;
            let found = names.find(&provider.keywords, keys, &wanted);
            if let Some(found) = found {
                keywords.push(found);
            } else if wanted.is_winmeta()
                && let Some(mut keyword) = winmeta::keyword(&mut self.manifest, wanted.local())
            {
                keyword.at = self.position(node);
                provider.keywords.push(keyword);
                keywords.push(provider.keywords.len() - 1);
            } else {
                self.unknown(node, "keywords", written);
            }
        }
        keywords
    }
}
