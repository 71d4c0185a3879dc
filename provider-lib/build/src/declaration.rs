//! Converts a provider's Rust declaration to its manifest.
//!
//! `TraceLogging` events are not in the manifest. Each other event gets a template. In it, a length
//! or count before a value is a separate field, as the XML requires.

use std::collections::HashSet;

use syn::ext::IdentExt as _;
use wdk_etw_schema::{
    ChannelSettings, Counter, Encoding, Event, Field, FieldType, Form, Format, MapKind, Provider,
    Scalar, Shape, Structure,
};

use etw_manifest::{
    self as manifest, InType, Logging, Manifest, OutType, Position, Property, PropertyKind, QName,
    Size, Text, TextRef,
};
use etw_wire::winmeta;

/// The image names that a manifest contains.
#[derive(Clone, Debug)]
pub struct Files<'a> {
    /// The image with the `WEVT_TEMPLATE` resource.
    pub resources: &'a str,
    /// The image with the message table.
    pub messages: &'a str,
}

/// Converts provider declarations to a manifest.
#[must_use]
pub fn manifest(providers: &[Provider], files: &Files<'_>) -> Manifest {
    let mut manifest = Manifest { culture: "en-US".to_owned(), ..Manifest::default() };
    for (number, provider) in providers.iter().enumerate() {
        // The strings of a single provider need no prefix.
        let prefix = if providers.len() > 1 { format!("{number}.") } else { String::new() };
        let mut writer = Writer { manifest: &mut manifest, declaration: provider, prefix };
        let provider = writer.provider(files);
        manifest.providers.push(provider);
    }
    manifest
}

pub(crate) fn position(span: proc_macro2::Span) -> Position {
    let start = span.start();
    Position { line: start.line, column: start.column + 1 }
}

/// Returns the name of a C constant, such as `WDKETW_SAMPLEDRIVER`.
fn constant(name: &str) -> String {
    let unit = |character: char| {
        if character.is_ascii_alphanumeric() { character.to_ascii_uppercase() } else { '_' }
    };
    let starts_with_digit = name.starts_with(|first: char| first.is_ascii_digit());
    let prefix = starts_with_digit.then_some('_');
    prefix.into_iter().chain(name.chars().map(unit)).collect()
}

/// Returns a name that is valid in XML without a namespace prefix. Viewers show a separate string.
pub(crate) fn xml_name(name: &str) -> QName {
    let unit = |character: char| {
        if character.is_alphanumeric() || "_-.".contains(character) { character } else { '_' }
    };
    let starts_well = name.starts_with(|first: char| first == '_' || first.is_alphabetic());
    let prefix = (!starts_well).then_some('_');
    let name: String = prefix.into_iter().chain(name.chars().map(unit)).collect();
    QName::plain(&name)
}

/// Returns the first paragraph of a doc comment.
fn first_paragraph(docs: &[String]) -> String {
    let lines = docs.iter().map(String::as_str).skip_while(|line| line.is_empty());
    lines.take_while(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
}

/// Returns a string as an event's message, with percent signs escaped. Names are not escaped,
/// because they contain no insertions.
fn literal(text: &str) -> String {
    text.replace('%', "%%")
}

struct Writer<'a> {
    manifest: &'a mut Manifest,
    declaration: &'a Provider,
    prefix: String,
}

impl Writer<'_> {
    /// Adds a message string.
    fn text(&mut self, id: &str, value: String, at: Position) -> TextRef {
        self.manifest.texts.push(Text {
            id: format!("{}{id}", self.prefix),
            value,
            at,
            ..Text::default()
        });
        self.manifest.texts.len() - 1
    }

    fn provider(&mut self, files: &Files<'_>) -> manifest::Provider {
        let declaration = self.declaration;
        let at = position(declaration.module.span());
        let message = self.text("Provider", declaration.name.clone(), at);
        let mut provider = manifest::Provider {
            name: declaration.name.clone(),
            guid: declaration.guid,
            symbol: constant(&declaration.name),
            message: Some(message),
            resource_file: files.resources.to_owned(),
            message_file: files.messages.to_owned(),
            group_guid: declaration.group,
            at,
            ..manifest::Provider::default()
        };
        self.names(&mut provider);
        self.channels(&mut provider);
        self.maps(&mut provider);
        for event in &declaration.events {
            if event.encoding == Encoding::Manifest {
                self.event(event, &mut provider);
            }
        }
        provider
    }

    /// Adds the string of a named value. Returns the value's name in XML, the string and the position.
    fn named(
        &mut self,
        kind: &str,
        ident: &syn::Ident,
        name: &str,
    ) -> (QName, Option<TextRef>, Position) {
        let at = position(ident.span());
        let message = self.text(&format!("{kind}.{}", ident.unraw()), name.to_owned(), at);
        (xml_name(name), Some(message), at)
    }

    /// Adds levels, tasks, opcodes and keywords.
    fn names(&mut self, provider: &mut manifest::Provider) {
        let declaration = self.declaration;
        for task in &declaration.tasks {
            let (name, message, at) = self.named("Task", &task.ident, &task.name);
            let value = task.value;
            provider.tasks.push(manifest::Task { name, value, message, at, ..Default::default() });
        }
        let opcode = |(name, message, at), value, task| manifest::Opcode {
            name,
            value,
            task,
            message,
            at,
            ..manifest::Opcode::default()
        };
        for own in &declaration.opcodes {
            let named = self.named("Opcode", &own.ident, &own.name);
            provider.opcodes.push(opcode(named, own.value, None));
        }
        for level in &declaration.levels {
            let (name, message, at) = self.named("Level", &level.ident, &level.name);
            let value = level.value;
            provider.levels.push(manifest::Level {
                name,
                value,
                message,
                at,
                ..Default::default()
            });
        }
        for list in &declaration.task_opcodes {
            let mut tasks = declaration.tasks.iter();
            let Some(task) = tasks.position(|task| task.ident == list.task) else {
                continue;
            };
            // In an opcode's message id, only eight bits are for the task.
            let has_message = u8::try_from(provider.tasks[task].value).is_ok();
            let kind = format!("Opcode.{}", list.task.unraw());
            for own in &list.opcodes {
                let named = if has_message {
                    self.named(&kind, &own.ident, &own.name)
                } else {
                    (xml_name(&own.name), None, position(own.ident.span()))
                };
                provider.opcodes.push(opcode(named, own.value, Some(task)));
            }
        }
        for keyword in &declaration.keywords {
            let (name, message, at) = self.named("Keyword", &keyword.ident, &keyword.name);
            let mask = 1 << keyword.bit;
            let keyword = manifest::Keyword { name, mask, message, at, ..Default::default() };
            provider.keywords.push(keyword);
        }
    }

    fn channels(&mut self, provider: &mut manifest::Provider) {
        for channel in &self.declaration.channels {
            let named = &channel.named;
            if let Some(standard) = manifest::standard_channel(self.manifest, named.value) {
                let at = position(named.ident.span());
                provider.channels.push(manifest::Channel { at, ..standard });
                continue;
            }
            let (_, message, at) = self.named("Channel", &named.ident, &named.name);
            // Channel names must be unique in the system.
            let name = if named.name.contains('/') {
                named.name.clone()
            } else {
                format!("{}/{}", self.declaration.name, named.name)
            };
            let ChannelSettings { enabled, isolation, access, max_size, retention, auto_backup } =
                channel.settings.clone();
            provider.channels.push(manifest::Channel {
                name,
                enabled,
                isolation: isolation.map(|isolation| isolation.name().to_owned()),
                access,
                logging: Logging { auto_backup, retention, max_size },
                id: Some(named.ident.unraw().to_string()),
                kind: channel.kind.clone(),
                value: named.value,
                explicit_value: true,
                message,
                declared: true,
                at,
                ..manifest::Channel::default()
            });
        }
    }

    fn maps(&mut self, provider: &mut manifest::Provider) {
        for map in &self.declaration.maps {
            let name = map.ident.unraw().to_string();
            // Types of several widths can form one map, whose entries they share.
            let known = provider.maps.iter().position(|one| one.name == map.name);
            let mut items =
                known.map_or_else(Vec::new, |at| std::mem::take(&mut provider.maps[at].items));
            for entry in &map.entries {
                if items.iter().any(|item| item.value == entry.value) {
                    continue;
                }
                let at = position(entry.ident.span());
                let id = format!("Map.{name}.{}", entry.ident.unraw());
                items.push(manifest::MapItem {
                    value: entry.value,
                    message: Some(self.text(&id, entry.name.clone(), at)),
                    at,
                    ..manifest::MapItem::default()
                });
            }
            if let Some(at) = known {
                provider.maps[at].items = items;
                continue;
            }
            provider.maps.push(manifest::Map {
                name: map.name.clone(),
                is_bits: map.kind == MapKind::Bits,
                items,
                at: position(map.ident.span()),
                ..manifest::Map::default()
            });
        }
    }

    fn event(&mut self, event: &Event, provider: &mut manifest::Provider) {
        let at = position(event.ident.span());
        // The version distinguishes events with the same name.
        let versions = self
            .declaration
            .events
            .iter()
            .filter(|other| other.encoding == Encoding::Manifest && other.name == event.name);
        let unique = if versions.count() > 1 {
            format!("{}.{}.{}", event.name, event.id, event.version)
        } else {
            event.name.clone()
        };
        let mut fields = Fields::default();
        self.fields(&event.fields, "", provider, &mut fields);
        let message = event
            .message
            .as_deref()
            .map(|message| fields.renumber(message))
            .or_else(|| {
                let docs = first_paragraph(&event.docs);
                (!docs.is_empty()).then(|| literal(&docs))
            })
            .map(|message| self.text(&format!("Event.{unique}"), message, at));
        let template = (!fields.properties.is_empty()).then(|| {
            provider.templates.push(manifest::Template {
                id: unique.clone(),
                properties: fields.properties,
                at,
                ..manifest::Template::default()
            });
            provider.templates.len() - 1
        });
        let keywords = (0..provider.keywords.len())
            .filter(|at| provider.keywords[*at].mask & event.keyword != 0)
            .collect();
        let channel = provider
            .channels
            .iter()
            .position(|channel| event.channel != 0 && channel.value == event.channel);
        let task =
            provider.tasks.iter().position(|task| event.task != 0 && task.value == event.task);
        let level = self.level(event.level.0, provider);
        let opcode = self.opcode(event.opcode, task, provider);
        provider.events.push(manifest::Event {
            id: event.id,
            version: event.version,
            symbol: Some(event_symbol(&unique, provider)),
            name: Some(event.name.clone()),
            channel,
            level,
            task,
            opcode,
            keywords,
            template,
            message,
            at,
            ..manifest::Event::default()
        });
    }

    /// Returns the level with this value: one from winmeta.xml, or one that the provider defines,
    /// which has no name in a declaration.
    fn level(&mut self, value: u8, provider: &mut manifest::Provider) -> Option<usize> {
        let known = provider.levels.iter().position(|one| one.value == value);
        if known.is_some() {
            return known;
        }
        let level =
            manifest::standard_level(self.manifest, value).unwrap_or_else(|| manifest::Level {
                name: QName::plain(&format!("Level{value}")),
                value,
                ..manifest::Level::default()
            });
        provider.levels.push(level);
        Some(provider.levels.len() - 1)
    }

    /// Returns the opcode with this value, from the event's task or for all tasks. `Info` (0) is
    /// the opcode of events without an explicit one.
    fn opcode(
        &mut self,
        value: u8,
        task: Option<usize>,
        provider: &mut manifest::Provider,
    ) -> Option<usize> {
        if value == 0 {
            return None;
        }
        let declared = |task: Option<usize>| {
            let mut opcodes = provider.opcodes.iter();
            opcodes.position(|one| one.value == value && one.task == task)
        };
        let known = task.and_then(|task| declared(Some(task))).or_else(|| declared(None));
        if known.is_some() {
            return known;
        }
        debug_assert!(winmeta::OPCODES.iter().any(|one| one.value == value));
        let opcode = manifest::standard_opcode(self.manifest, value)?;
        provider.opcodes.push(opcode);
        Some(provider.opcodes.len() - 1)
    }

    /// Adds fields. The names of nested structures' members are prefixed with the outer names,
    /// because a template's structures cannot be nested.
    fn fields(
        &self,
        declared: &[Field],
        before: &str,
        provider: &manifest::Provider,
        fields: &mut Fields,
    ) {
        let names = declared.iter().map(|field| format!("{before}{}", field.name));
        fields.declared.extend(names);
        for field in declared {
            let form = field.form.counter.as_ref();
            let counter = form.and_then(|counter| counter.field.as_ref());
            // The index of the field that contains the value's length or count.
            let counter = counter
                .and_then(|named| declared.iter().position(|other| other.ident == *named))
                .and_then(|at| fields.ends.get(at)?.checked_sub(1))
                .map(Size::Field);
            let name = format!("{before}{}", field.name);
            before.clone_into(&mut fields.before);
            let at = position(field.ident.span());
            match &field.kind {
                FieldType::Values(scalar, format, shape) => {
                    let types = field.form.manifest(*scalar, *format);
                    fields.value(&name, types, (&field.form, counter), *scalar, *shape, at);
                }
                FieldType::Structures(ident, shape) => {
                    if let Some(structure) = self.structure(ident) {
                        let count = match shape {
                            Shape::Fixed(count) => Size::Fixed(*count),
                            Shape::One | Shape::Counted => {
                                counter.unwrap_or_else(|| fields.add_size(&name, "Count", form, at))
                            }
                        };
                        self.structure_property(structure, &name, count, provider, fields, at);
                    }
                }
                FieldType::Named(ident) => {
                    let mut maps = self.declaration.maps.iter();
                    if let Some(declared) = maps.find(|map| map.ident == *ident) {
                        let scalar = declared.scalar;
                        let mut maps = provider.maps.iter();
                        let map = maps.position(|map| map.name == declared.name);
                        let form = &field.form;
                        let (in_type, out_type) = form.manifest(scalar, Format::Default);
                        fields.add(&name, in_type, out_type, map, Size::None, Size::None, at);
                    } else if let Some(structure) = self.structure(ident) {
                        self.structure_fields(structure, &name, before, provider, fields, at);
                    }
                }
            }
            if before.is_empty() {
                fields.end_of_declared();
            }
        }
    }

    fn structure(&self, ident: &syn::Ident) -> Option<&Structure> {
        let mut structures = self.declaration.structures.iter();
        structures.find(|structure| structure.ident == *ident)
    }

    fn structure_fields(
        &self,
        structure: &Structure,
        name: &str,
        before: &str,
        provider: &manifest::Provider,
        fields: &mut Fields,
        at: Position,
    ) {
        if !before.is_empty() || fields.is_member {
            self.fields(&structure.fields, &format!("{name}."), provider, fields);
            return;
        }
        self.structure_property(structure, name, Size::None, provider, fields, at);
    }

    /// Adds a structure, or an array of structures if `count` is given.
    fn structure_property(
        &self,
        structure: &Structure,
        name: &str,
        count: Size,
        provider: &manifest::Provider,
        fields: &mut Fields,
        at: Position,
    ) {
        let mut members = Fields { is_member: true, ..Fields::default() };
        self.fields(&structure.fields, "", provider, &mut members);
        fields.properties.push(Property {
            name: name.to_owned(),
            count,
            length: Size::None,
            kind: PropertyKind::Struct(members.properties),
            others: Vec::new(),
            at,
        });
    }
}

/// The fields of a template under construction.
#[derive(Default)]
struct Fields {
    properties: Vec<Property>,
    /// For each field of the declaration, the number of template fields up to and including it.
    ends: Vec<usize>,
    /// The declaration's field names, which generated names must not repeat.
    declared: HashSet<String>,
    /// True if the fields are members of a structure.
    is_member: bool,
    /// The prefix of the names.
    before: String,
}

impl Fields {
    fn end_of_declared(&mut self) {
        self.ends.push(self.properties.len());
    }

    /// Converts a message that refers to the declaration's fields by number to one that refers to
    /// the template's fields.
    fn renumber(&self, message: &str) -> String {
        // A field's value is the last of its template fields.
        manifest::replace_fields(message, |number| self.ends.get(number.checked_sub(1)?).copied())
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "each argument is a separate property of the field"
    )]
    fn add(
        &mut self,
        name: &str,
        in_type: InType,
        out_type: OutType,
        map: Option<usize>,
        count: Size,
        length: Size,
        at: Position,
    ) {
        self.properties.push(Property {
            name: name.to_owned(),
            count,
            length,
            kind: PropertyKind::Data { in_type, out_type, explicit_out_type: true, map },
            others: Vec::new(),
            at,
        });
    }

    /// Adds the length or count before a value, and returns its index.
    fn add_size(
        &mut self,
        name: &str,
        what: &str,
        counter: Option<&Counter>,
        at: Position,
    ) -> Size {
        let explicit = counter.and_then(|counter| counter.name.as_ref());
        let mut whole = explicit.map_or_else(
            || format!("{name}{what}"),
            |explicit| format!("{}{explicit}", self.before),
        );
        while self.declared.contains(&whole) || self.properties.iter().any(|one| one.name == whole)
        {
            whole.push('_');
        }
        let scalar = counter.map_or(Scalar::U16, |counter| counter.scalar);
        let (in_type, out_type) = scalar.manifest(Format::Default);
        self.add(&whole, in_type, out_type, None, Size::None, Size::None, at);
        Size::Field(self.properties.len() - 1)
    }

    fn value(
        &mut self,
        name: &str,
        (in_type, out_type): (InType, OutType),
        (form, counted_by): (&Form, Option<Size>),
        scalar: Scalar,
        shape: Shape,
        at: Position,
    ) {
        const IPV6_LENGTH: u16 = 16;
        let (mut count, mut length) = (Size::None, Size::None);
        let counter = form.counter.as_ref();
        match (shape, scalar) {
            (Shape::Fixed(number), _) if form.block.is_some() => length = Size::Fixed(number),
            (Shape::Fixed(number), _) => count = Size::Fixed(number),
            (Shape::Counted, _) => {
                count = counted_by.unwrap_or_else(|| self.add_size(name, "Count", counter, at));
            }
            (Shape::One, Scalar::Ipv6Addr) => length = Size::Fixed(IPV6_LENGTH),
            (Shape::One, _) if in_type == InType::Binary || counter.is_some() => {
                length = counted_by.unwrap_or_else(|| self.add_size(name, "Length", counter, at));
            }
            (Shape::One, _) => {}
        }
        self.add(name, in_type, out_type, None, count, length, at);
    }
}

/// Returns a constant's name that no other event uses.
fn event_symbol(name: &str, provider: &manifest::Provider) -> String {
    let mut symbol = constant(name);
    let is_taken = |symbol: &String| {
        let events = provider.events.iter();
        events.filter_map(|event| event.symbol.as_ref()).any(|taken| taken == symbol)
    };
    while is_taken(&symbol) {
        symbol.push('_');
    }
    symbol
}
