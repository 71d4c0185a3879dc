//! Reads the document: strings, the message table and providers.

use std::collections::HashMap;

use roxmltree::Node as Xml;

use super::{
    reader::Reader,
    root::Parts,
    xml::{named, optional},
};
use crate::{
    error::{ManifestError, Rule},
    lenient::{Part, Skipped},
    model::{Channel, Text, Translation},
    shape::Mode,
    winmeta,
};

impl<'a, 'i> Reader<'a, 'i> {
    pub fn document(&mut self) {
        let mode = self.mode;
        let root = self.document.root_element();
        let Some(Parts { events, mut languages }) = self.parts() else {
            return;
        };
        if self.mode == Mode::Lenient {
            // Decoders prefer this language; compilers use the first language in the file.
            languages.sort_by_key(|one| one.attribute("culture") != Some("en-US"));
        }
        let mut is_first = true;
        for resources in languages {
            let read = self.part(Part::Language, resources, |it| it.resources(resources));
            let Some((culture, texts)) = read else {
                continue;
            };
            // A skipped language is neither the first language nor a translation.
            if is_first {
                is_first = false;
                self.manifest.culture = culture;
                self.manifest.texts = texts;
            } else {
                let texts = texts.into_iter().map(|text| (text.id, text.value));
                self.manifest.translations.push(Translation { culture, texts: texts.collect() });
            }
        }
        for table in events.iter().flat_map(|it| named(mode, *it, "messageTable")) {
            for message in named(mode, table, "message") {
                self.part(Part::Text, message, |it| it.table_message(message));
            }
        }
        for provider in events.iter().flat_map(|it| named(mode, *it, "provider")) {
            if let Some(provider) = self.part(Part::Provider, provider, |it| it.provider(provider))
            {
                self.manifest.providers.push(provider);
            }
        }
        // The message compiler accepts `events` without a provider.
        if mode == Mode::Strict && events.is_empty() && self.errors.is_empty() {
            let at = self.position(root);
            self.refuse(at, Rule::NoProvider);
        }
        let mut providers = events.iter().flat_map(|it| named(mode, *it, "provider"));
        // No provider was found: either the file has none, or its providers are where the reader
        // does not look.
        let is_elsewhere = || root.descendants().any(|it| it.tag_name().name() == "provider");
        if mode == Mode::Lenient
            && providers.next().is_none()
            && (events.is_empty() || is_elsewhere())
        {
            self.skipped.push(Skipped {
                part: Part::Provider,
                name: String::new(),
                why: ManifestError { at: self.position(root), rule: Rule::NoProvider },
            });
        }
        self.import_channels();
    }

    /// Reads a language and its strings.
    fn resources(&mut self, node: Xml<'a, 'i>) -> (String, Vec<Text>) {
        let mode = self.mode;
        let culture = self.required(node, "culture");
        let mut texts = Vec::new();
        let mut known: HashMap<String, String> = HashMap::new();
        for string in named(mode, node, "stringTable").flat_map(|it| named(mode, it, "string")) {
            let text = self.part(Part::Text, string, |it| {
                let id = it.required(string, "id");
                let value = it.required(string, "value");
                let other = known.get(&id).filter(|known| **known != value);
                it.refuse_second(string, "text", &id, other.is_some());
                Text { id, value, at: it.position(string), ..Text::default() }
            });
            if let Some(text) = text {
                // Decoders ignore repeated strings; for compilers, the checker reports them.
                let repeated = known.insert(text.id.clone(), text.value.clone());
                if mode == Mode::Strict || repeated.is_none() {
                    texts.push(text);
                }
            }
        }
        (culture, texts)
    }

    fn table_message(&mut self, node: Xml<'a, 'i>) {
        let id = self.number::<u32>(node, "value", 0..=u64::from(u32::MAX));
        if node.attribute("message").is_none() {
            self.required(node, "message");
        }
        if let Some(text) = self.message(node) {
            self.manifest.texts[text].message_id = Some(id);
            self.manifest.texts[text].symbol = optional(node, "symbol");
        }
    }

    /// Completes imported channels from their definitions, found by the id or name in the element.
    /// Definitions in winmeta.xml take precedence.
    fn import_channels(&mut self) {
        let own: Vec<Channel> = self
            .manifest
            .providers
            .iter()
            .flat_map(|provider| &provider.channels)
            .filter(|channel| !channel.imported)
            .cloned()
            .collect();
        let mut by_id = HashMap::new();
        let mut by_name = HashMap::new();
        for (number, channel) in own.iter().enumerate() {
            if let Some(id) = channel.id.as_deref() {
                by_id.entry(id).or_insert(number);
            }
            by_name.entry(channel.name.as_str()).or_insert(number);
        }
        for provider in 0..self.manifest.providers.len() {
            for at in 0..self.manifest.providers[provider].channels.len() {
                let channel = self.manifest.providers[provider].channels[at].clone();
                if !channel.imported || !channel.declared {
                    continue;
                }
                let id = channel.id.as_deref().unwrap_or(&channel.name);
                let standard = winmeta::channel(&mut self.manifest, id)
                    .or_else(|| winmeta::channel(&mut self.manifest, &channel.name));
                let place = &mut self.manifest.providers[provider].channels[at];
                if let Some(standard) = standard {
                    place.kind = standard.kind;
                    place.value = standard.value;
                    place.message = standard.message;
                    continue;
                }
                let found = [by_id.get(id), by_name.get(id), by_name.get(channel.name.as_str())];
                match found.into_iter().flatten().min() {
                    Some(found) => place.kind.clone_from(&own[*found].kind),
                    None => self.object(
                        channel.at,
                        Rule::Unknown { what: "channel to import", name: channel.name.clone() },
                    ),
                }
            }
        }
    }
}
