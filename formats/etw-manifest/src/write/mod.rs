//! Writes a manifest's XML. The output is deterministic, with one item per line so that differences
//! are easy to read.

mod template;
mod xml;

use std::{collections::BTreeMap, io::Write as _};

use etw_wire::winmeta;
use quick_xml::{
    Writer as XmlWriter,
    events::{BytesDecl, BytesText, Event as XmlEvent},
};

use crate::model::{
    Channel, Event, Logging, Manifest, Map, Opcode, Provider, QName, Template, TextRef,
};
use xml::{Attributes, Writer, written};

/// Writes a manifest, preceded by `comment`.
#[must_use]
pub fn write(manifest: &Manifest, comment: &str) -> String {
    let mut out = Writer { manifest, xml: XmlWriter::new_with_indent(Vec::new(), b' ', 2) };
    out.event(XmlEvent::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)));
    if !comment.is_empty() {
        // Two hyphens would end the comment.
        let comment = format!(" {} ", comment.replace("--", "- -"));
        out.event(XmlEvent::Comment(BytesText::from_escaped(comment)));
    }
    let mut namespaces: BTreeMap<String, String> = prefixes(manifest).collect();
    namespaces.insert("xmlns:win".to_owned(), winmeta::NAMESPACE.to_owned());
    let mut root =
        Attributes::new().with("xmlns", "http://schemas.microsoft.com/win/2004/08/events");
    for (name, uri) in namespaces {
        root.0.push((name.into(), uri));
    }
    if !root.0.iter().any(|(name, _)| name == "xmlns:xs") {
        root = root.with("xmlns:xs", "http://www.w3.org/2001/XMLSchema");
    }
    out.open("instrumentationManifest", root);
    out.open("instrumentation", Attributes::new());
    out.open("events", Attributes::new());
    out.message_table();
    for provider in &manifest.providers {
        out.provider(provider);
    }
    out.close("events");
    out.close("instrumentation");
    out.localization();
    out.close("instrumentationManifest");
    let mut bytes = out.xml.into_inner();
    bytes.push(b'\n');
    // The writer produces only valid UTF-8.
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Returns the namespaces of the prefixes in the manifest's qualified names.
fn prefixes(manifest: &Manifest) -> impl Iterator<Item = (String, String)> + '_ {
    manifest
        .providers
        .iter()
        .flat_map(|provider| {
            let levels = provider.levels.iter().map(|one| &one.name);
            let tasks = provider.tasks.iter().map(|one| &one.name);
            let opcodes = provider.opcodes.iter().map(|one| &one.name);
            let keywords = provider.keywords.iter().map(|one| &one.name);
            let filters = provider.filters.iter().map(|one| &one.name);
            levels.chain(tasks).chain(opcodes).chain(keywords).chain(filters)
        })
        .filter_map(|name| {
            let (prefix, _) = name.written.split_once(':')?;
            Some((format!("xmlns:{prefix}"), name.namespace.clone()))
        })
}
impl<'a> Writer<'a> {
    fn reference(&self, text: Option<TextRef>) -> Option<String> {
        let text = self.manifest.texts.get(text?)?;
        Some(format!("$(string.{})", text.id))
    }

    fn message_table(&mut self) {
        let manifest = self.manifest;
        let mut texts = manifest.texts.iter().filter(|text| text.message_id.is_some()).peekable();
        if texts.peek().is_none() {
            return;
        }
        self.open("messageTable", Attributes::new());
        for text in texts {
            let attributes = Attributes::new()
                .with("value", format!("{:#x}", text.message_id.unwrap_or(0)))
                .with_optional("symbol", text.symbol.as_deref())
                .with("message", format!("$(string.{})", text.id));
            self.empty("message", attributes);
        }
        self.close("messageTable");
    }

    fn localization(&mut self) {
        let manifest = self.manifest;
        if manifest.culture.is_empty() {
            return;
        }
        self.open("localization", Attributes::new());
        let own = manifest.texts.iter().filter(|text| !text.standard);
        let first = own.map(|text| (text.id.as_str(), text.value.as_str())).collect();
        self.resources(&manifest.culture, first);
        for translation in &manifest.translations {
            let texts = translation.texts.iter().map(|(id, value)| (id.as_str(), value.as_str()));
            self.resources(&translation.culture, texts.collect());
        }
        self.close("localization");
    }

    fn resources(&mut self, culture: &str, texts: Vec<(&str, &str)>) {
        self.open("resources", Attributes::new().with("culture", culture));
        self.open("stringTable", Attributes::new());
        for (id, value) in texts {
            self.empty("string", Attributes::new().with("id", id).with("value", value));
        }
        self.close("stringTable");
        self.close("resources");
    }

    fn provider(&mut self, provider: &'a Provider) {
        let attributes = Attributes::new()
            .with("name", &provider.name)
            .with("guid", format!("{{{}}}", provider.guid))
            .with_optional("controlGuid", provider.control_guid.map(|guid| format!("{{{guid}}}")))
            .with("symbol", &provider.symbol)
            .with_optional("namespace", provider.namespace.as_deref())
            .with("resourceFileName", &provider.resource_file)
            .with("messageFileName", &provider.message_file)
            .with_optional("parameterFileName", provider.parameter_file.as_deref())
            .with_others(&provider.others)
            .with_optional("message", self.reference(provider.message));
        self.open("provider", attributes);
        if provider.group_guid.is_some() || provider.include_name.is_some() {
            let traits = Attributes::new()
                .with_optional("groupGuid", provider.group_guid.map(|guid| format!("{{{guid}}}")))
                .with_optional("includeName", provider.include_name.map(|on| on.to_string()));
            self.empty("traits", traits);
        }
        let declared: Vec<&Channel> = provider.channels.iter().filter(|one| one.declared).collect();
        self.list("channels", &declared, Self::channel);
        let levels: Vec<_> = provider.levels.iter().filter(|one| !one.standard).collect();
        self.list("levels", &levels, |out, level| {
            let number = level.value.to_string();
            let attributes = out.named(&level.name, number, level.symbol.as_deref(), level.message);
            out.empty("level", attributes);
        });
        self.tasks(provider);
        let opcodes = own_opcodes(provider, None);
        self.list("opcodes", &opcodes, Self::opcode);
        let keywords: Vec<_> = provider.keywords.iter().filter(|one| !one.standard).collect();
        self.list("keywords", &keywords, |out, keyword| {
            let attributes = Attributes::new()
                .with("name", &keyword.name.written)
                .with("mask", format!("{:#x}", keyword.mask))
                .with_optional("symbol", keyword.symbol.as_deref())
                .with_optional("message", out.reference(keyword.message));
            out.empty("keyword", attributes);
        });
        let maps: Vec<&Map> = provider.maps.iter().collect();
        self.list("maps", &maps, Self::map);
        self.queries(provider);
        let templates: Vec<&Template> = provider.templates.iter().collect();
        self.list("templates", &templates, |out, template| {
            out.template(template, provider);
        });
        let filters: Vec<_> = provider.filters.iter().collect();
        self.list("filters", &filters, |out, filter| {
            let template = filter.template.map(|at| provider.templates[at].id.as_str());
            let attributes = Attributes::new()
                .with("name", &filter.name.written)
                .with("value", filter.value.to_string())
                .with("version", filter.version.to_string())
                .with_optional("symbol", filter.symbol.as_deref())
                .with_optional("tid", template)
                .with_optional("message", out.reference(filter.message));
            out.empty("filter", attributes);
        });
        let events: Vec<&Event> = provider.events.iter().collect();
        self.list("events", &events, |out, event| {
            out.manifest_event(event, provider);
        });
        self.close("provider");
    }

    /// Writes a list, unless it is empty.
    fn list<T>(&mut self, name: &str, items: &[&'a T], write: impl Fn(&mut Self, &'a T)) {
        if items.is_empty() {
            return;
        }
        self.open(name, Attributes::new());
        for item in items {
            write(self, item);
        }
        self.close(name);
    }

    fn named(
        &self,
        name: &'a QName,
        value: String,
        symbol: Option<&str>,
        message: Option<TextRef>,
    ) -> Attributes<'a> {
        Attributes::new()
            .with("name", &name.written)
            .with("value", value)
            .with_optional("symbol", symbol)
            .with_optional("message", self.reference(message))
    }

    fn channel(&mut self, channel: &'a Channel) {
        let attributes = Attributes::new()
            .with("name", &channel.name)
            .with_optional("chid", channel.id.as_deref())
            .with_optional("symbol", channel.symbol.as_deref());
        if channel.imported {
            self.empty("importChannel", attributes);
            return;
        }
        let value = channel.explicit_value.then(|| channel.value.to_string());
        let attributes = attributes
            .with("type", &channel.kind)
            .with_optional("value", value)
            .with_optional("isolation", channel.isolation.as_deref())
            .with_optional("access", channel.access.as_deref())
            .with_optional("enabled", channel.enabled.map(|on| on.to_string()))
            .with_optional("message", self.reference(channel.message));
        if channel.inside.is_empty() && channel.logging == Logging::default() {
            self.empty("channel", attributes);
            return;
        }
        self.open("channel", attributes);
        self.logging(channel.logging);
        if !channel.inside.is_empty() {
            written(&self.xml.write_indent());
            written(&self.xml.get_mut().write_all(channel.inside.as_bytes()));
        }
        self.close("channel");
    }

    fn logging(&mut self, logging: Logging) {
        let Logging { auto_backup, retention, max_size } = logging;
        // The order is eventman.xsd's.
        let properties = [
            ("autoBackup", auto_backup.map(|on| on.to_string())),
            ("retention", retention.map(|on| on.to_string())),
            ("maxSize", max_size.map(|size| size.to_string())),
        ];
        if properties.iter().all(|(_, value)| value.is_none()) {
            return;
        }
        self.open("logging", Attributes::new());
        for (name, value) in &properties {
            if let Some(value) = value {
                self.open(name, Attributes::new());
                self.event(XmlEvent::Text(BytesText::from_escaped(value)));
                self.close(name);
            }
        }
        self.close("logging");
    }

    fn tasks(&mut self, provider: &'a Provider) {
        let own = |at: &usize| !provider.tasks[*at].standard;
        let tasks: Vec<usize> = (0..provider.tasks.len()).filter(own).collect();
        if tasks.is_empty() {
            return;
        }
        self.open("tasks", Attributes::new());
        for at in tasks {
            let task = &provider.tasks[at];
            let guid = task.event_guid.map(|guid| format!("{{{guid}}}"));
            let number = task.value.to_string();
            let attributes = self
                .named(&task.name, number, task.symbol.as_deref(), task.message)
                .with_optional("eventGUID", guid);
            let opcodes = own_opcodes(provider, Some(at));
            if opcodes.is_empty() {
                self.empty("task", attributes);
            } else {
                self.open("task", attributes);
                self.list("opcodes", &opcodes, Self::opcode);
                self.close("task");
            }
        }
        self.close("tasks");
    }

    fn opcode(&mut self, opcode: &'a Opcode) {
        let number = opcode.value.to_string();
        let attributes = self.named(&opcode.name, number, opcode.symbol.as_deref(), opcode.message);
        let attributes = attributes.with_others(&opcode.others);
        self.empty("opcode", attributes);
    }

    fn map(&mut self, map: &'a Map) {
        let name = if map.is_bits { "bitMap" } else { "valueMap" };
        let attributes = Attributes::new()
            .with("name", &map.name)
            .with_optional("symbol", map.symbol.as_deref());
        self.open(name, attributes);
        for item in &map.items {
            let value =
                if map.is_bits { format!("{:#x}", item.value) } else { item.value.to_string() };
            let attributes = Attributes::new()
                .with("value", value)
                .with_optional("symbol", item.symbol.as_deref())
                .with_optional("message", self.reference(item.message));
            self.empty("map", attributes);
        }
        self.close(name);
    }

    fn queries(&mut self, provider: &Provider) {
        if provider.queries.is_empty() {
            return;
        }
        self.open("namedQueries", Attributes::new());
        self.open("patternMaps", Attributes::new());
        for query in &provider.queries {
            let attributes = Attributes::new()
                .with("name", &query.name)
                .with("format", &query.format)
                .with_others(&query.others);
            self.open("patternMap", attributes);
            for (name, value) in &query.items {
                self.empty("map", Attributes::new().with("name", name).with("value", value));
            }
            self.close("patternMap");
        }
        self.close("patternMaps");
        self.close("namedQueries");
    }

    fn manifest_event(&mut self, event: &Event, provider: &Provider) {
        let channel = event.channel.map(|at| {
            let channel = &provider.channels[at];
            channel.id.as_deref().unwrap_or(&channel.name)
        });
        let keywords: Vec<&str> =
            event.keywords.iter().map(|at| provider.keywords[*at].name.written.as_str()).collect();
        let keywords = (!keywords.is_empty()).then(|| keywords.join(" "));
        let attributes = Attributes::new()
            .with("value", event.id.to_string())
            .with("version", event.version.to_string())
            .with_optional("symbol", event.symbol.as_deref())
            .with_optional("name", event.name.as_deref())
            .with_optional("channel", channel)
            .with_optional("level", event.level.map(|at| provider.levels[at].name.written.as_str()))
            .with_optional("task", event.task.map(|at| provider.tasks[at].name.written.as_str()))
            .with_optional(
                "opcode",
                event.opcode.map(|at| provider.opcodes[at].name.written.as_str()),
            )
            .with_optional("keywords", keywords)
            .with_optional("template", event.template.map(|at| provider.templates[at].id.as_str()))
            .with_others(&event.others)
            .with_optional("attributes", event.attributes.as_deref())
            .with_optional("notLogged", event.not_logged.map(|on| on.to_string()))
            .with_optional("message", self.reference(event.message));
        self.empty("event", attributes);
    }
}

/// Returns the opcodes of a task, or of no task, that winmeta.xml does not define.
fn own_opcodes(provider: &Provider, task: Option<usize>) -> Vec<&Opcode> {
    provider.opcodes.iter().filter(|opcode| !opcode.standard && opcode.task == task).collect()
}
