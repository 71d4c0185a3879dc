//! From the XML of a manifest.

use std::{collections::HashMap, iter};

use roxmltree::{Document, Node as Xml, ParsingOptions};

use crate::{
    Guid,
    check::check,
    error::{Failures, ManifestError, Rule},
    model::{
        Channel, Element, Event, Filter, Keyword, Level, Manifest, Map, MapItem, Node, Opcode,
        Others, Position, Property, PropertyKind, Provider, QName, Query, Size, Task, Template,
        Text, TextRef, Translation,
    },
    shape,
    types::{IN_TYPES, InType, out_type_value},
    winmeta,
};

/// The first number of a channel of a provider's own.
const FIRST_CHANNEL: u8 = 16;

/// The text of a file that is in UTF-8 or, with a mark at its start, in UTF-16.
#[must_use]
pub fn text(bytes: &[u8]) -> Option<String> {
    let wide = |bytes: &[u8], unit: fn([u8; 2]) -> u16| {
        let pairs = bytes.chunks(2);
        let units = pairs.map(|pair| match *pair {
            [first, second] => Some(unit([first, second])),
            _ => None,
        });
        String::from_utf16(&units.collect::<Option<Vec<u16>>>()?).ok()
    };
    match bytes {
        [0xFF, 0xFE, rest @ ..] => wide(rest, u16::from_le_bytes),
        [0xFE, 0xFF, rest @ ..] => wide(rest, u16::from_be_bytes),
        [0xEF, 0xBB, 0xBF, rest @ ..] | rest => String::from_utf8(rest.to_vec()).ok(),
    }
}

/// Reads a manifest and checks it.
///
/// # Errors
///
/// Everything that is wrong with it, each with its place.
pub fn read(text: &str) -> Result<Manifest, Failures> {
    let manifest = parse(text)?;
    let mut errors = check(&manifest);
    if errors.is_empty() {
        return Ok(manifest);
    }
    errors.sort_by_key(|error| error.at);
    Err(Failures(errors))
}

/// Reads a manifest as far as its parts are understood.
fn parse(text: &str) -> Result<Manifest, Failures> {
    let options = ParsingOptions {
        // A document type could only define entities, which manifests have no use for.
        allow_dtd: false,
        ..ParsingOptions::default()
    };
    let document = Document::parse_with_options(text, options).map_err(|error| {
        let at = error.pos();
        Failures(vec![ManifestError {
            at: Position {
                line: at.row as usize,
                column: at.col as usize,
            },
            rule: Rule::Xml(error.to_string()),
        }])
    })?;
    let mut reader = Reader {
        document: &document,
        lines: iter::once(0)
            .chain(text.match_indices('\n').map(|(end, _)| end + 1))
            .collect(),
        manifest: Manifest::default(),
        errors: Vec::new(),
    };
    reader.document();
    reader.errors.sort_by_key(|error| error.at);
    if reader.errors.is_empty() {
        Ok(reader.manifest)
    } else {
        Err(Failures(reader.errors))
    }
}

struct Reader<'a, 'input> {
    document: &'a Document<'input>,
    /// Where the text's lines start.
    lines: Vec<usize>,
    manifest: Manifest,
    errors: Vec<ManifestError>,
}

fn name<'a>(node: Xml<'a, '_>) -> &'a str {
    node.tag_name().name()
}

/// The elements in another that are of its namespace; others mean nothing to a manifest.
fn elements<'a, 'i>(node: Xml<'a, 'i>) -> impl Iterator<Item = Xml<'a, 'i>> + use<'a, 'i> {
    let own = node.tag_name().namespace();
    node.children()
        .filter(move |inner| inner.is_element() && inner.tag_name().namespace() == own)
}

/// The elements of a name in another.
fn named<'a, 'i>(
    node: Xml<'a, 'i>,
    wanted: &'static str,
) -> impl Iterator<Item = Xml<'a, 'i>> + use<'a, 'i> {
    elements(node).filter(move |inner| name(*inner) == wanted)
}

/// An attribute that need not be there.
fn optional(node: Xml<'_, '_>, attribute: &str) -> Option<String> {
    node.attribute(attribute).map(str::to_owned)
}

/// Attributes that are kept as they are.
fn others(node: Xml<'_, '_>, names: &[&str]) -> Others {
    let there = node
        .attributes()
        .filter(|attribute| names.contains(&attribute.name()));
    there
        .map(|attribute| (attribute.name().to_owned(), attribute.value().to_owned()))
        .collect()
}

/// A number in decimal digits, or in hexadecimal ones after `0x`.
#[must_use]
pub fn number(text: &str) -> Option<u64> {
    let text = text.trim();
    let hexadecimal = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    hexadecimal.map_or_else(
        || text.parse().ok(),
        |digits| u64::from_str_radix(digits, 16).ok(),
    )
}

impl<'a, 'i> Reader<'a, 'i> {
    fn position(&self, node: Xml<'a, 'i>) -> Position {
        self.position_of(node.range().start)
    }

    fn position_of(&self, offset: usize) -> Position {
        let line = self.lines.partition_point(|start| *start <= offset);
        let start = self.lines.get(line.wrapping_sub(1)).copied().unwrap_or(0);
        let text = self.document.input_text();
        let before = text.get(start..offset).unwrap_or_default();
        Position {
            line,
            column: before.chars().count() + 1,
        }
    }

    /// The place of an attribute's value, or of the element.
    fn attribute_position(&self, node: Xml<'a, 'i>, attribute: &str) -> Position {
        node.attribute_node(attribute).map_or_else(
            || self.position(node),
            |attribute| self.position_of(attribute.range_value().start),
        )
    }

    fn refuse(&mut self, at: Position, rule: Rule) {
        self.errors.push(ManifestError { at, rule });
    }

    fn refuse_at(&mut self, node: Xml<'a, 'i>, attribute: &'static str, rule: Rule) {
        let at = self.attribute_position(node, attribute);
        self.refuse(at, rule);
    }

    fn required(&mut self, node: Xml<'a, 'i>, attribute: &'static str) -> String {
        let text = node.attribute(attribute);
        if text.is_none() {
            let rule = Rule::Missing {
                element: name(node).to_owned(),
                attribute,
            };
            let at = self.position(node);
            self.refuse(at, rule);
        }
        text.unwrap_or_default().to_owned()
    }

    fn optional_number(
        &mut self,
        node: Xml<'a, 'i>,
        attribute: &'static str,
        range: std::ops::RangeInclusive<u64>,
    ) -> Option<u64> {
        let text = node.attribute(attribute)?;
        let found = number(text).filter(|number| range.contains(number));
        if found.is_none() {
            let rule = Rule::Number {
                attribute,
                text: text.to_owned(),
                least: *range.start(),
                most: *range.end(),
            };
            self.refuse_at(node, attribute, rule);
        }
        found
    }

    fn number<T: TryFrom<u64> + Default>(
        &mut self,
        node: Xml<'a, 'i>,
        attribute: &'static str,
        range: std::ops::RangeInclusive<u64>,
    ) -> T {
        if node.attribute(attribute).is_none() {
            self.required(node, attribute);
        }
        let found = self.optional_number(node, attribute, range);
        found
            .and_then(|number| T::try_from(number).ok())
            .unwrap_or_default()
    }

    fn optional_flag(&mut self, node: Xml<'a, 'i>, attribute: &'static str) -> Option<bool> {
        match node.attribute(attribute)? {
            "true" | "1" => Some(true),
            "false" | "0" => Some(false),
            text => {
                let rule = Rule::Word {
                    attribute,
                    text: text.to_owned(),
                    words: "true, false",
                };
                self.refuse_at(node, attribute, rule);
                None
            }
        }
    }

    fn word(
        &mut self,
        node: Xml<'a, 'i>,
        attribute: &'static str,
        words: &'static [&'static str],
        list: &'static str,
    ) -> Option<String> {
        let text = node.attribute(attribute)?;
        if !words.contains(&text) {
            let rule = Rule::Word {
                attribute,
                text: text.to_owned(),
                words: list,
            };
            self.refuse_at(node, attribute, rule);
        }
        Some(text.to_owned())
    }

    fn optional_guid(&mut self, node: Xml<'a, 'i>, attribute: &'static str) -> Option<Guid> {
        let text = node.attribute(attribute)?;
        let found = Guid::parse(text.trim()).ok();
        if found.is_none() {
            let rule = Rule::Guid {
                attribute,
                text: text.to_owned(),
            };
            self.refuse_at(node, attribute, rule);
        }
        found
    }

    /// A name, whose prefix has a namespace.
    fn resolve(&mut self, node: Xml<'a, 'i>, attribute: &'static str, written: &str) -> QName {
        let Some((prefix, _)) = written.split_once(':') else {
            return QName::plain(written);
        };
        let namespace = node.lookup_namespace_uri(Some(prefix));
        if namespace.is_none() {
            self.refuse_at(node, attribute, Rule::Prefix(written.to_owned()));
        }
        QName {
            written: written.to_owned(),
            namespace: namespace.unwrap_or_default().to_owned(),
        }
    }

    fn qualified(&mut self, node: Xml<'a, 'i>) -> QName {
        let written = self.required(node, "name");
        self.resolve(node, "name", &written)
    }

    /// The text that an attribute refers to.
    fn message(&mut self, node: Xml<'a, 'i>) -> Option<TextRef> {
        let reference = node.attribute("message")?;
        let Some(id) = reference
            .strip_prefix("$(string.")
            .or_else(|| reference.strip_prefix("$(String."))
            .and_then(|rest| rest.strip_suffix(')'))
        else {
            let rule = Rule::TextReference(reference.to_owned());
            self.refuse_at(node, "message", rule);
            return None;
        };
        let known = self
            .manifest
            .texts
            .iter()
            .position(|text| !text.standard && text.id == id);
        if known.is_none() {
            let rule = Rule::Unknown {
                what: "text",
                name: id.to_owned(),
            };
            self.refuse_at(node, "message", rule);
        }
        known
    }

    fn document(&mut self) {
        let root = self.document.root_element();
        if name(root) != "instrumentationManifest" {
            let at = self.position(root);
            self.refuse(at, Rule::NotAManifest(name(root).to_owned()));
            return;
        }
        for (node, attribute, rule) in shape::check(root) {
            let at = attribute.map_or_else(
                || self.position(node),
                |attribute| self.attribute_position(node, &attribute),
            );
            self.refuse(at, rule);
        }
        for resources in named(root, "localization").flat_map(|it| named(it, "resources")) {
            self.resources(resources);
        }
        let events: Vec<Xml<'a, 'i>> = named(root, "instrumentation")
            .flat_map(|it| named(it, "events"))
            .collect();
        for table in events.iter().flat_map(|it| named(*it, "messageTable")) {
            for message in named(table, "message") {
                self.table_message(message);
            }
        }
        for provider in events.iter().flat_map(|it| named(*it, "provider")) {
            self.provider(provider);
        }
        self.import_channels();
    }

    fn resources(&mut self, node: Xml<'a, 'i>) {
        let culture = self.required(node, "culture");
        let is_first = self.manifest.culture.is_empty();
        let mut translation = Translation {
            culture: culture.clone(),
            texts: Vec::new(),
        };
        for string in named(node, "stringTable").flat_map(|it| named(it, "string")) {
            let id = self.required(string, "id");
            let value = self.required(string, "value");
            if is_first {
                let at = self.position(string);
                self.manifest.texts.push(Text {
                    id,
                    value,
                    at,
                    ..Text::default()
                });
            } else {
                translation.texts.push((id, value));
            }
        }
        if is_first {
            self.manifest.culture = culture;
        } else {
            self.manifest.translations.push(translation);
        }
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

    fn provider(&mut self, node: Xml<'a, 'i>) {
        let mut provider = Provider {
            name: self.required(node, "name"),
            symbol: self.required(node, "symbol"),
            message: self.message(node),
            resource_file: self.required(node, "resourceFileName"),
            message_file: self.required(node, "messageFileName"),
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
        if node.attribute("guid").is_none() {
            self.required(node, "guid");
        }
        provider.guid = self.optional_guid(node, "guid").unwrap_or_default();
        // What is spoken of comes before what speaks of it.
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
                // These speak of what comes before; others have been refused.
                _ => {}
            }
        }
        number_channels(&mut provider);
        for list in named(node, "templates") {
            for template in elements(list) {
                self.template(template, &mut provider);
            }
        }
        for filter in named(node, "filters").flat_map(elements) {
            self.filter(filter, &mut provider);
        }
        for event in named(node, "events").flat_map(elements) {
            self.event(event, &mut provider);
        }
        self.manifest.providers.push(provider);
    }

    fn channels(&mut self, list: Xml<'a, 'i>, provider: &mut Provider) {
        for node in elements(list) {
            let imported = match name(node) {
                "channel" => false,
                "importChannel" => true,
                _ => continue,
            };
            if !imported && node.attribute("type").is_none() {
                self.required(node, "type");
            }
            let value = self.optional_number(node, "value", 16..=255);
            let channel = Channel {
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
                value: value
                    .and_then(|value| u8::try_from(value).ok())
                    .unwrap_or(0),
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
            };
            provider.channels.push(channel);
        }
    }

    /// The elements in another, as they are written.
    fn inside(&self, node: Xml<'a, 'i>) -> String {
        elements(node)
            .map(|inner| &self.document.input_text()[inner.range()])
            .collect::<Vec<&str>>()
            .join("\n")
    }

    fn levels(&mut self, list: Xml<'a, 'i>, provider: &mut Provider) {
        for node in named(list, "level") {
            let level = Level {
                name: self.qualified(node),
                value: self.number(node, "value", 16..=255),
                symbol: optional(node, "symbol"),
                message: self.message(node),
                standard: false,
                at: self.position(node),
            };
            provider.levels.push(level);
        }
    }

    fn tasks(&mut self, list: Xml<'a, 'i>, provider: &mut Provider) {
        for node in named(list, "task") {
            let event_guid = self.optional_guid(node, "eventGUID");
            let task = Task {
                name: self.qualified(node),
                value: self.number(node, "value", 0..=65535),
                symbol: optional(node, "symbol"),
                event_guid: event_guid.filter(|guid| *guid != Guid::default()),
                message: self.message(node),
                standard: false,
                at: self.position(node),
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
            let opcode = Opcode {
                name: self.qualified(node),
                value: self.number(node, "value", 10..=239),
                task,
                symbol: optional(node, "symbol"),
                message: self.message(node),
                standard: false,
                others: others(node, &["mofValue"]),
                at: self.position(node),
            };
            provider.opcodes.push(opcode);
        }
    }

    fn keywords(&mut self, list: Xml<'a, 'i>, provider: &mut Provider) {
        for node in named(list, "keyword") {
            let keyword = Keyword {
                name: self.qualified(node),
                mask: self.number(node, "mask", 0..=u64::MAX),
                symbol: optional(node, "symbol"),
                message: self.message(node),
                standard: false,
                at: self.position(node),
            };
            provider.keywords.push(keyword);
        }
    }

    fn maps(&mut self, list: Xml<'a, 'i>, provider: &mut Provider) {
        for node in elements(list) {
            let is_bits = match name(node) {
                "valueMap" => false,
                "bitMap" => true,
                _ => continue,
            };
            let mut map = Map {
                name: self.required(node, "name"),
                is_bits,
                symbol: optional(node, "symbol"),
                items: Vec::new(),
                at: self.position(node),
            };
            for item in named(node, "map") {
                if item.attribute("message").is_none() {
                    self.required(item, "message");
                }
                map.items.push(MapItem {
                    value: self.number(item, "value", 0..=u64::from(u32::MAX)),
                    message: self.message(item),
                    symbol: optional(item, "symbol"),
                    at: self.position(item),
                });
            }
            provider.maps.push(map);
        }
    }

    fn queries(&mut self, list: Xml<'a, 'i>, provider: &mut Provider) {
        for node in named(list, "patternMaps").flat_map(|it| named(it, "patternMap")) {
            let query = Query {
                name: self.required(node, "name"),
                format: self.required(node, "format"),
                items: named(node, "map")
                    .map(|item| (self.required(item, "name"), self.required(item, "value")))
                    .collect(),
                others: others(node, &["symbol"]),
                at: self.position(node),
            };
            provider.queries.push(query);
        }
    }

    fn template(&mut self, node: Xml<'a, 'i>, provider: &mut Provider) {
        let mut template = Template {
            id: self.required(node, "tid"),
            name: optional(node, "name"),
            others: others(node, &["tags"]),
            at: self.position(node),
            ..Template::default()
        };
        template.properties = self.properties(node, provider, true);
        for data in named(node, "UserData") {
            let roots: Vec<Xml<'a, 'i>> = data.children().filter(Xml::is_element).collect();
            let root = roots.first().filter(|_| roots.len() == 1);
            if let Some(own) = root.and_then(|root| user_data(*root)) {
                template.user_data = Some(own);
            } else {
                let at = self.position(data);
                self.refuse(at, Rule::UserData);
            }
        }
        provider.templates.push(template);
    }

    fn properties(
        &mut self,
        node: Xml<'a, 'i>,
        provider: &Provider,
        is_template: bool,
    ) -> Vec<Property> {
        let mut properties: Vec<Property> = Vec::new();
        // Counts and lengths can speak of fields that come later in the file's order only by
        // mistake; that is refused when all are known.
        let names: HashMap<String, usize> = elements(node)
            .filter(|inner| matches!(name(*inner), "data" | "struct"))
            .enumerate()
            .map(|(at, inner)| {
                let name = inner.attribute("name").unwrap_or_default();
                (name.to_owned(), at)
            })
            .collect();
        for inner in elements(node) {
            let kind = match name(inner) {
                "data" => self.data(inner, provider),
                "struct" if is_template => {
                    PropertyKind::Struct(self.properties(inner, provider, false))
                }
                "UserData" if is_template => continue,
                _ => continue,
            };
            let property = Property {
                name: self.required(inner, "name"),
                count: self.size(inner, "count", &names),
                length: self.size(inner, "length", &names),
                kind,
                others: others(inner, &["tags"]),
                at: self.position(inner),
            };
            properties.push(property);
        }
        properties
    }

    fn size(
        &mut self,
        node: Xml<'a, 'i>,
        attribute: &'static str,
        names: &HashMap<String, usize>,
    ) -> Size {
        let Some(text) = node.attribute(attribute) else {
            return Size::None;
        };
        if let Some(found) = names.get(text) {
            return Size::Field(*found);
        }
        let starts_with_digit = text
            .trim()
            .starts_with(|first: char| first.is_ascii_digit());
        if !starts_with_digit {
            self.refuse_at(node, attribute, Rule::SizeField(text.to_owned()));
            return Size::None;
        }
        let found = self.optional_number(node, attribute, 0..=65535);
        match found.and_then(|number| u16::try_from(number).ok()) {
            None | Some(0) => Size::None,
            Some(number) => Size::Fixed(number),
        }
    }

    fn data(&mut self, node: Xml<'a, 'i>, provider: &Provider) -> PropertyKind {
        let written = self.required(node, "inType");
        let in_type = InType::of_name(&written);
        if in_type.is_none() && !written.is_empty() {
            let rule = Rule::Unknown {
                what: "inType",
                name: written,
            };
            self.refuse_at(node, "inType", rule);
        }
        let in_type = in_type.unwrap_or(&IN_TYPES[0]);
        let mut out_type = in_type.default_out_type();
        let shown = node.attribute("outType");
        if let Some(text) = shown {
            if let Some(value) = out_type_value(text) {
                out_type = value;
            } else {
                let rule = Rule::Unknown {
                    what: "outType",
                    name: text.to_owned(),
                };
                self.refuse_at(node, "outType", rule);
            }
        }
        let map = node.attribute("map").and_then(|wanted| {
            let found = provider.maps.iter().position(|map| map.name == wanted);
            if found.is_none() {
                let rule = Rule::Unknown {
                    what: "map",
                    name: wanted.to_owned(),
                };
                self.refuse_at(node, "map", rule);
            }
            found
        });
        PropertyKind::Data {
            in_type,
            out_type,
            explicit_out_type: shown.is_some(),
            map,
        }
    }

    fn template_of(
        &mut self,
        node: Xml<'a, 'i>,
        attribute: &'static str,
        provider: &Provider,
    ) -> Option<usize> {
        let wanted = node.attribute(attribute)?;
        let found = provider
            .templates
            .iter()
            .position(|template| template.id == wanted);
        if found.is_none() {
            let rule = Rule::Unknown {
                what: "template",
                name: wanted.to_owned(),
            };
            self.refuse_at(node, attribute, rule);
        }
        found
    }

    fn filter(&mut self, node: Xml<'a, 'i>, provider: &mut Provider) {
        let version = self.optional_number(node, "version", 0..=255);
        let filter = Filter {
            name: self.qualified(node),
            value: self.number(node, "value", 0..=255),
            version: version
                .and_then(|number| u8::try_from(number).ok())
                .unwrap_or(0),
            symbol: optional(node, "symbol"),
            message: self.message(node),
            template: self.template_of(node, "tid", provider),
            at: self.position(node),
        };
        provider.filters.push(filter);
    }

    fn event(&mut self, node: Xml<'a, 'i>, provider: &mut Provider) {
        let version = self.optional_number(node, "version", 0..=255);
        let task = self.task_of(node, provider);
        let event = Event {
            id: self.number(node, "value", 0..=65535),
            version: version
                .and_then(|number| u8::try_from(number).ok())
                .unwrap_or(0),
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
        provider.events.push(event);
    }

    fn unknown(&mut self, node: Xml<'a, 'i>, attribute: &'static str, name: &str) {
        let what = if attribute == "keywords" {
            "keyword"
        } else {
            attribute
        };
        let rule = Rule::Unknown {
            what,
            name: name.to_owned(),
        };
        self.refuse_at(node, attribute, rule);
    }

    fn channel_of(&mut self, node: Xml<'a, 'i>, provider: &mut Provider) -> Option<usize> {
        let wanted = node.attribute("channel")?;
        // The first that has it for its id or its name.
        let found = provider
            .channels
            .iter()
            .position(|channel| channel.id.as_deref() == Some(wanted) || channel.name == wanted);
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
        let found = provider
            .levels
            .iter()
            .position(|level| level.name == wanted);
        if found.is_some() {
            return found;
        }
        if wanted.is_winmeta()
            && let Some(mut level) = winmeta::level(&mut self.manifest, wanted.local())
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
        let found = provider.tasks.iter().position(|task| task.name == wanted);
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

    /// An opcode: the task's own comes before the provider's, and that before winmeta.xml's.
    fn opcode_of(
        &mut self,
        node: Xml<'a, 'i>,
        task: Option<usize>,
        provider: &mut Provider,
    ) -> Option<usize> {
        let written = node.attribute("opcode")?;
        let wanted = self.resolve(node, "opcode", written);
        let find = |of_task: Option<usize>| {
            provider
                .opcodes
                .iter()
                .position(|opcode| opcode.task == of_task && opcode.name == wanted)
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
        for written in node
            .attribute("keywords")
            .unwrap_or_default()
            .split_whitespace()
        {
            let wanted = self.resolve(node, "keywords", written);
            let found = provider
                .keywords
                .iter()
                .position(|keyword| keyword.name == wanted);
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

    /// What imported channels are. The one that is meant has the id, or the name, of what the
    /// element says; winmeta.xml's come first.
    fn import_channels(&mut self) {
        let own: Vec<Channel> = self
            .manifest
            .providers
            .iter()
            .flat_map(|provider| &provider.channels)
            .filter(|channel| !channel.imported)
            .cloned()
            .collect();
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
                let found = own.iter().find(|other| {
                    other.id.as_deref() == Some(id)
                        || other.name == id
                        || other.name == channel.name
                });
                match found {
                    Some(found) => place.kind.clone_from(&found.kind),
                    None => self.refuse(
                        channel.at,
                        Rule::Unknown {
                            what: "channel to import",
                            name: channel.name.clone(),
                        },
                    ),
                }
            }
        }
    }
}

/// Gives numbers to the channels without: the least that no other has.
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

/// Elements within elements of a template's own XML.
const MOST_DEPTH: usize = 32;

/// The root of a template's own XML, unless it is too deep. mc.exe puts white space of its own
/// between the elements in it, as the template's GUID tells.
fn user_data(node: Xml<'_, '_>) -> Option<Element> {
    let mut root = element(node, MOST_DEPTH)?;
    let mut nodes = Vec::new();
    for inner in root.nodes {
        match inner {
            Node::Text(text) if text.trim().is_empty() => {}
            Node::Text(text) => nodes.push(Node::Text(text)),
            inner @ Node::Element(_) => {
                nodes.push(Node::Text("\r\n\t\t".to_owned()));
                nodes.push(inner);
            }
        }
    }
    let ends_blank = node
        .last_child()
        .and_then(|last| last.text().filter(|_| last.is_text()))
        .is_some_and(|text| text.trim().is_empty());
    if ends_blank {
        nodes.push(Node::Text("\r\n\t".to_owned()));
    }
    root.nodes = nodes;
    Some(root)
}

/// An element of a template's own XML, unless it is deeper than so many.
fn element(node: Xml<'_, '_>, depth: usize) -> Option<Element> {
    let deeper = depth.checked_sub(1)?;
    let inherited: Vec<_> = node
        .parent()
        .map(|parent| parent.namespaces().collect())
        .unwrap_or_default();
    let declared = node
        .namespaces()
        .filter(|namespace| !inherited.contains(namespace))
        .map(|namespace| {
            let name = namespace
                .name()
                .map_or_else(|| "xmlns".to_owned(), |prefix| format!("xmlns:{prefix}"));
            (name, namespace.uri().to_owned())
        });
    let attributes = node
        .attributes()
        .map(|attribute| (attribute.name().to_owned(), attribute.value().to_owned()));
    let attributes = declared.chain(attributes).collect();
    let mut nodes = Vec::new();
    for inner in node.children() {
        if inner.is_element() {
            nodes.push(Node::Element(element(inner, deeper)?));
        } else if inner.is_text() {
            nodes.extend(inner.text().map(|text| Node::Text(text.to_owned())));
        }
    }
    Some(Element {
        name: name(node).to_owned(),
        attributes,
        nodes,
    })
}
