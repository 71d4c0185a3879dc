//! WPP messages as the events of a manifest, for drivers that migrate from WPP.

use std::collections::{BTreeSet, HashMap};
use std::iter;
use std::sync::Arc;

use etw_manifest::{
    Event, Keyword, Level, Manifest, Map, MapItem, Property, PropertyKind, Provider, QName, Size,
    Template, Text,
};
use etw_wire::{Guid, InType, OutType, winmeta};

use super::Formats;
use super::item::{Item, Names, Style};
use super::tmf::{Argument, Format};

/// The maximum number of a provider's keywords.
const MAX_KEYWORDS: usize = 48;
/// The maximum number of words that an event's name takes from a message's text.
const MAX_WORDS: usize = 5;
/// The level `Info`, which messages with an unknown level get.
const INFO: u8 = 4;

/// The events of WPP messages.
#[derive(Clone, Debug, Default)]
pub struct Converted {
    /// A manifest with one provider and, for each message, an event in the order of the source files.
    /// It needs no other files: it contains the names and the messages.
    pub manifest: Manifest,
    /// The parts of messages that an event cannot express, and the assumptions about parts that TMF
    /// files do not contain.
    pub notes: Vec<String>,
    /// The number of messages that were not converted completely.
    pub changed: usize,
}

impl Formats {
    /// Returns the messages as events of a provider with this name and GUID. The ids are numbers
    /// from 1, the names come from the messages' text, and the keywords are the flags, in the order
    /// of their first use, because TMF files do not contain the flags' bits.
    #[must_use]
    #[doc(hidden)]
    pub fn to_manifest(&self, provider: &str, guid: Guid) -> Converted {
        let mut formats: Vec<&Format> = self.iter().collect();
        formats.sort_by_key(|format| (format.source.clone(), format.line(), format.number));
        let provider = Provider { name: provider.to_owned(), guid, ..Provider::default() };
        let mut converter = Converter { provider, ..Converter::default() };
        for (at, format) in formats.iter().enumerate() {
            converter.message(at, format);
        }
        converter.finish(formats.len())
    }
}

#[derive(Default)]
struct Converter {
    provider: Provider,
    texts: Vec<Text>,
    notes: Vec<String>,
    /// The indexes of the messages that were not converted completely.
    changed: BTreeSet<usize>,
    /// The number of messages whose level is unknown.
    without_level: usize,
    /// The number of messages whose numbers lose their form.
    reformatted: usize,
    /// The flags that have no keyword.
    lost_flags: BTreeSet<Arc<str>>,
    maps: HashMap<MapKey, usize>,
}

/// The kind and the entries of a map.
type MapKey = (bool, Vec<(u32, Arc<str>)>);

impl Converter {
    fn message(&mut self, at: usize, format: &Format) {
        let Ok(id) = u16::try_from(at + 1) else {
            self.note(at, format, "is omitted: a provider can have at most 65,535 event ids");
            return;
        };
        let (properties, places) = self.properties(at, format);
        let (text, words, losses) = text(format, &places);
        for part in &losses.parts {
            self.note(at, format, &format!("loses {part}"));
        }
        self.reformatted += usize::from(losses.has_formats);
        let template = (!properties.is_empty()).then(|| {
            let id = format!("t{id}");
            self.provider.templates.push(Template { id, properties, ..Template::default() });
            self.provider.templates.len() - 1
        });
        let event = Event {
            id,
            symbol: Some(words.unwrap_or_else(|| {
                let function = format.function.as_deref().unwrap_or(&format.name);
                function.rsplit("::").next().unwrap_or(function).to_owned()
            })),
            level: Some(self.level(format)),
            keywords: self.keywords(format),
            template,
            message: (!text.is_empty()).then(|| self.text(&text)),
            ..Event::default()
        };
        self.provider.events.push(event);
    }

    fn note(&mut self, at: usize, format: &Format, what: &str) {
        self.changed.insert(at);
        let source = format.source.as_deref().unwrap_or(&format.component);
        self.notes.push(format!("{source}: the message {} {what}", format.name));
    }

    fn text(&mut self, value: &str) -> usize {
        let id = format!("s{}", self.texts.len() + 1);
        self.texts.push(Text { id, value: value.to_owned(), ..Text::default() });
        self.texts.len() - 1
    }

    fn level(&mut self, format: &Format) -> usize {
        let known = format.level_number();
        let standard = |value: u8| winmeta::LEVELS.iter().find(|level| level.value == value);
        // Levels from 6 are reserved in WPP and in ETW.
        let value = known.map_or(INFO, |level| level.min(5));
        if known != Some(value) {
            self.without_level += 1;
        }
        let levels = &mut self.provider.levels;
        levels.iter().position(|level| level.value == value).unwrap_or_else(|| {
            let name = standard(value).map_or_else(QName::default, |level| QName {
                written: format!("win:{}", level.name),
                namespace: winmeta::NAMESPACE.to_owned(),
            });
            levels.push(Level { name, value, standard: true, ..Level::default() });
            levels.len() - 1
        })
    }

    fn keywords(&mut self, format: &Format) -> Vec<usize> {
        let flags = format.flags.as_deref().unwrap_or_default();
        let names = flags.split(|one: char| !one.is_ascii_alphanumeric() && one != '_');
        let mut found = Vec::new();
        for name in names.filter(|name| !name.is_empty()) {
            let keywords = &mut self.provider.keywords;
            let name = &*pascal(name);
            let known = keywords.iter().position(|keyword| keyword.name.written == name);
            if known.is_none() && keywords.len() >= MAX_KEYWORDS {
                self.lost_flags.insert(name.into());
                continue;
            }
            found.push(known.unwrap_or_else(|| {
                let mask = 1 << keywords.len();
                keywords.push(Keyword { name: QName::plain(name), mask, ..Keyword::default() });
                keywords.len() - 1
            }));
        }
        found
    }

    /// Returns the fields of a message, and a place for each argument's number: the number of the
    /// field, or the text that replaces an omitted argument.
    fn properties(&mut self, at: usize, format: &Format) -> (Vec<Property>, Places) {
        let mut properties: Vec<Property> = Vec::new();
        let mut places = Places::new();
        for argument in &format.arguments {
            let name = unique(&name_of(&argument.name), &properties);
            let (in_type, out_type, length) = match &argument.item {
                Item::Unknown(item) => {
                    let what = format!(
                        "loses the argument `{}`: the type {item} is unknown",
                        argument.name
                    );
                    self.note(at, format, &what);
                    places.insert(argument.number, Err(format!("({name})")));
                    continue;
                }
                item => types(item, argument),
            };
            if argument.item == Item::Span {
                let what = format!(
                    "loses the form of the argument `{}`: a time span becomes a count of 100 ns \
                     units",
                    argument.name
                );
                self.note(at, format, &what);
            }
            let map = match &argument.item {
                Item::List { names, .. } => self.map(&name, names, false),
                Item::Set { names, .. } => self.map(&name, names, true),
                _ => None,
            };
            let length = match length {
                // The bytes follow their length, which is a field.
                Size::Field(_) => {
                    let name = unique(&format!("{name}Length"), &properties);
                    properties.push(property(name, InType::UInt16, OutType::UnsignedShort, None));
                    Size::Field(properties.len() - 1)
                }
                other => other,
            };
            properties.push(Property { length, ..property(name, in_type, out_type, map) });
            places.insert(argument.number, Ok(properties.len()));
        }
        (properties, places)
    }

    /// Returns the map with the names of numbers or of bits.
    fn map(&mut self, field: &str, names: &Names, is_bits: bool) -> Option<usize> {
        let value = |number: u64| {
            if is_bits { 1_u64.checked_shl(u32::try_from(number).ok()?) } else { Some(number) }
        };
        let items: Vec<(u32, Arc<str>)> = names
            .iter()
            .filter(|(_, name)| !name.is_empty())
            .filter_map(|(number, name)| {
                Some((u32::try_from(value(*number)?).ok()?, Arc::clone(name)))
            })
            .collect();
        if items.is_empty() {
            return None;
        }
        if let Some(known) = self.maps.get(&(is_bits, items.clone())) {
            return Some(*known);
        }
        let entries = items.iter().map(|(value, name)| MapItem {
            value: *value,
            message: Some(self.text(name)),
            ..MapItem::default()
        });
        let entries = entries.collect();
        let usual = format!("{field}{}", if is_bits { "Bits" } else { "Value" });
        let maps = &self.provider.maps;
        let name = untaken(&usual, |name| maps.iter().any(|map| map.name == name));
        self.provider.maps.push(Map { name, is_bits, items: entries, ..Map::default() });
        let map = self.provider.maps.len() - 1;
        self.maps.insert((is_bits, items), map);
        Some(map)
    }

    fn finish(mut self, all: usize) -> Converted {
        if !self.provider.keywords.is_empty() {
            self.notes.push(
                "the flags have the keyword bits 0, 1, 2, … in the order of their first use, because TMF \
                 files do not have their bits; compare them with WPP_CONTROL_GUIDS in the driver's source"
                    .to_owned(),
            );
        }
        if self.without_level > 0 {
            self.notes.push(format!(
                "{} of {all} messages have no level of ETW; they got `Info`, or `Verbose` for a higher level",
                self.without_level
            ));
        }
        if self.reformatted > 0 {
            self.notes.push(format!(
                "{} of {all} messages lose the widths, precisions, signs or octal form of numbers, such as `%08x`",
                self.reformatted
            ));
        }
        for flag in &self.lost_flags {
            self.notes.push(format!(
                "the flag {flag} is no keyword, because a provider has at most {MAX_KEYWORDS}"
            ));
        }
        let manifest = Manifest {
            providers: vec![self.provider],
            texts: self.texts,
            culture: "en-US".to_owned(),
            ..Manifest::default()
        };
        Converted { manifest, notes: self.notes, changed: self.changed.len() }
    }
}

/// The places of arguments by their number: the number of a field, or the text that replaces it.
type Places = HashMap<u16, Result<usize, String>>;

fn property(name: String, in_type: InType, out_type: OutType, map: Option<usize>) -> Property {
    Property {
        name,
        count: Size::None,
        length: Size::None,
        kind: PropertyKind::Data { in_type, out_type, explicit_out_type: true, map },
        others: Vec::new(),
        at: etw_manifest::Position::default(),
    }
}

/// Returns the types of a field with an argument's value. `Size::Field` means the preceding field.
fn types(item: &Item, argument: &Argument) -> (InType, OutType, Size) {
    use {InType as In, OutType as Out};
    let sized = |size: u8, style: Style| match (size, style) {
        (1, Style::Signed) => (In::Int8, Out::Byte),
        (1, Style::Unsigned) => (In::UInt8, Out::UnsignedByte),
        (1, Style::Hexadecimal) => (In::UInt8, Out::HexInt8),
        (1, Style::Character) => (In::UInt8, Out::String),
        (2, Style::Signed) => (In::Int16, Out::Short),
        (2, Style::Unsigned) => (In::UInt16, Out::UnsignedShort),
        (2, Style::Hexadecimal) => (In::UInt16, Out::HexInt16),
        (2, Style::Character) => (In::UInt16, Out::String),
        (8, Style::Signed) => (In::Int64, Out::Long),
        (8, Style::Hexadecimal) => (In::HexInt64, Out::HexInt64),
        (8, _) => (In::UInt64, Out::UnsignedLong),
        (_, Style::Signed) => (In::Int32, Out::Int),
        (_, Style::Hexadecimal) => (In::HexInt32, Out::HexInt32),
        (_, _) => (In::UInt32, Out::UnsignedInt),
    };
    let (in_type, out_type) = match item {
        Item::Integer { size, .. } => sized(*size, argument.style),
        Item::List { size, .. } | Item::Set { size, .. } => sized(*size, Style::Unsigned),
        Item::Pointer => (In::Pointer, Out::HexInt64),
        Item::Float => (In::Float, Out::Float),
        Item::Double => (In::Double, Out::Double),
        Item::Characters => return (In::AnsiString, Out::String, Size::Fixed(4)),
        Item::Ansi => (In::AnsiString, Out::Utf8),
        Item::Wide => (In::UnicodeString, Out::String),
        Item::CountedAnsi => (In::CountedAnsiString, Out::Utf8),
        Item::CountedWide => (In::CountedUnicodeString, Out::String),
        Item::Bytes | Item::Unknown(_) => return (In::Binary, Out::HexBinary, Size::Field(0)),
        Item::Guid => (In::Guid, Out::Guid),
        Item::NtStatus => (In::UInt32, Out::NtStatus),
        Item::HResult => (In::Int32, Out::HResult),
        Item::Win32Error => (In::UInt32, Out::Win32Error),
        Item::Ipv4 => (In::UInt32, Out::Ipv4),
        Item::Ipv6 => return (In::Binary, Out::Ipv6, Size::Fixed(16)),
        Item::Mac => return (In::Binary, Out::HexBinary, Size::Fixed(6)),
        Item::Port => (In::UInt16, Out::Port),
        Item::Sid => (In::Sid, Out::String),
        Item::Time => (In::FileTime, Out::DateTime),
        Item::Span => (In::Int64, Out::Long),
    };
    (in_type, out_type, Size::None)
}

/// Returns a name for a field from a C expression: the last word that is not a number or cast.
fn name_of(expression: &str) -> String {
    let words = expression.split(|one: char| !one.is_ascii_alphanumeric() && one != '_');
    let is_name = |word: &&str| word.starts_with(|first: char| first.is_ascii_alphabetic());
    let mut words: Vec<&str> = words.filter(is_name).collect();
    // `Arg` is the placeholder for an argument without an expression, not a name.
    words.retain(|word| *word != "Arg");
    words.last().map_or_else(|| "Value".to_owned(), |word| pascal(word))
}

/// Returns a name as a declaration derives it from one in snake case, such as `TraceQueue` for `TRACE_QUEUE`.
fn pascal(name: &str) -> String {
    let part = |part: &str| {
        let (first, rest) = part.split_at_checked(1).unwrap_or((part, ""));
        let has_lower_case = part.contains(|one: char| one.is_ascii_lowercase());
        let rest = if has_lower_case { rest.to_owned() } else { rest.to_ascii_lowercase() };
        first.to_ascii_uppercase() + &rest
    };
    name.split('_').map(part).collect()
}

/// Returns a name that no field has yet.
fn unique(name: &str, properties: &[Property]) -> String {
    untaken(name, |name| properties.iter().any(|property| property.name.eq_ignore_ascii_case(name)))
}

/// Returns a name, with a number after it if the name is taken.
fn untaken(name: &str, is_taken: impl Fn(&str) -> bool) -> String {
    let numbered = (2..).map(|number| format!("{name}{number}"));
    let mut names = iter::once(name.to_owned()).chain(numbered);
    names.find(|name| !is_taken(name)).unwrap_or_default()
}

/// The parts of a message that its event's message does not contain.
#[derive(Default)]
struct Losses {
    parts: Vec<String>,
    /// Set if a number loses its width, precision, sign or octal form.
    has_formats: bool,
}

/// Returns whether an argument's format contains more than a type, such as `08x`.
fn has_form(specification: &str) -> bool {
    let kind = ["I64", "I32"].iter().find_map(|size| specification.strip_prefix(size));
    let kind = kind.unwrap_or(specification);
    kind.ends_with('o') || kind.contains(|one: char| !one.is_ascii_alphabetic())
}

/// Returns a message's text with field numbers, the words for the event's name, and the losses.
fn text(format: &Format, places: &Places) -> (String, Option<String>, Losses) {
    let mut out = String::new();
    let mut losses = Losses::default();
    let mut words = Vec::new();
    let literal = |text: &str, out: &mut String| {
        for one in text.chars() {
            match one {
                '%' => out.push_str("%%"),
                '\n' => out.push_str("%n"),
                '\r' => {}
                '\t' => out.push_str("%t"),
                // After a field, these characters would be its format or part of its number.
                '!' if ends_with_field(out) => out.push_str("%!"),
                '0'..='9' if ends_with_field(out) => {
                    out.push_str("!s!");
                    out.push(one);
                }
                other => out.push(other),
            }
        }
    };
    let mut rest = format.text.strip_prefix("%0").unwrap_or(&format.text);
    while let Some((before, after)) = rest.split_once('%') {
        literal(before, &mut out);
        words.extend(before.split(|one: char| !one.is_ascii_alphanumeric()));
        rest = after;
        if let Some((name, tail)) = after.strip_prefix('!').and_then(|key| key.split_once('!')) {
            match format.key(name) {
                Some(value) => literal(value, &mut out),
                None => literal(&format!("%!{name}!"), &mut out),
            }
            rest = tail;
            continue;
        }
        let digits = after.bytes().take_while(u8::is_ascii_digit).count();
        if let Ok(number) = after.get(..digits).unwrap_or_default().parse::<u16>() {
            let tail = after.get(digits..).unwrap_or_default();
            let specification = tail.strip_prefix('!').and_then(|tail| tail.split_once('!'));
            losses.has_formats |= specification.is_some_and(|(form, _)| has_form(form));
            rest = specification.map_or(tail, |(_, tail)| tail);
            match (places.get(&number), number) {
                (Some(Ok(field)), _) => {
                    out.push('%');
                    out.push_str(&field.to_string());
                }
                (Some(Err(name)), _) => literal(name, &mut out),
                (None, 1) => literal(&format.component, &mut out),
                (None, 2) => literal(&format.name, &mut out),
                (None, _) => losses.parts.push(format!(
                    "`%{number}`, a value of the message's header or an argument that it does not have"
                )),
            }
            continue;
        }
        let escapes = [("%", "%%"), ("n", "%n"), ("r", ""), ("t", "%t"), ("b", "%b"), (".", ".")];
        match escapes.iter().find(|(escape, _)| after.starts_with(escape)) {
            Some((escape, text)) => {
                out.push_str(text);
                rest = after.get(escape.len()..).unwrap_or_default();
            }
            None => out.push_str("%%"),
        }
    }
    literal(rest, &mut out);
    words.extend(rest.split(|one: char| !one.is_ascii_alphanumeric()));
    words.retain(|word| word.starts_with(|first: char| first.is_ascii_alphabetic()));
    words.truncate(MAX_WORDS);
    let name = words.join("_");
    (out.trim().to_owned(), (!name.is_empty()).then_some(name), losses)
}

/// Returns whether text ends with the number of a field.
fn ends_with_field(text: &str) -> bool {
    let before = text.trim_end_matches(|one: char| one.is_ascii_digit());
    let percent_signs = before.len() - before.trim_end_matches('%').len();
    before.len() < text.len() && percent_signs % 2 == 1
}
