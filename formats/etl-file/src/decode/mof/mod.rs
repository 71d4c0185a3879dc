//! Classes of classic events in MOF files (ETL-14.15), as Windows 2000 providers publish them and
//! as the WMI repository exports them.

use std::collections::{BTreeMap, HashMap};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use etw_wire::Guid;

use crate::input;

pub use descriptor::{Class, Event, Field, Layout, Type};

mod descriptor;

/// The maximum size of a MOF file, in bytes.
const MAX_SIZE: u64 = 64 << 20;
/// The maximum number of fields in all events of a file.
const MAX_FIELDS: usize = 1 << 20;
/// The maximum depth of inheritance.
const MAX_DEPTH: usize = 16;

/// The classes of classic events in MOF files, by GUID.
#[derive(Clone, Debug, Default)]
pub struct Classes(BTreeMap<Guid, Class>);

/// The reason why a MOF file cannot be read, with the file.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {}: {kind}", path.display())]
pub struct MofError {
    /// The file.
    pub path: PathBuf,
    /// The reason.
    #[source]
    pub kind: MofErrorKind,
}

/// The reasons why a MOF file cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MofErrorKind {
    /// The file could not be read.
    #[error(transparent)]
    Io(std::io::Error),
    /// The file is too large.
    #[error("it is larger than {} MiB", MAX_SIZE >> 20)]
    TooLarge,
    /// The events have too many fields in total; a field counts once for each event type that
    /// contains it.
    #[error("its events have more than {MAX_FIELDS} fields in all")]
    TooManyFields,
    /// The file is not text.
    #[error(
        "it is neither UTF-8 nor UTF-16 text; a compiled MOF file (.bmf) or a repository has to be \
         exported as text"
    )]
    Encoding,
    /// A part of the file is not valid MOF.
    #[error("line {line}: expected {expected}, found `{}`", crate::show::Escaped(found))]
    Syntax {
        /// The line, counting from 1.
        line: usize,
        /// The expected part.
        expected: &'static str,
        /// The word that was found.
        found: String,
    },
    /// The file contains no event classes.
    #[error("it contains no event class: no class has a GUID and an EventType")]
    NoEvents,
}

impl Classes {
    /// Adds the classes of a MOF file. If a class is already known, its events are merged; the last
    /// file's events take precedence.
    ///
    /// # Errors
    /// Fails with [`MofError`] if the file cannot be read, or contains no event classes.
    pub fn load(&mut self, path: &Path) -> Result<(), MofError> {
        let failed = |kind| MofError { path: path.to_owned(), kind };
        let bytes = input::read(path, MAX_SIZE).map_err(|error| {
            failed(match error.kind() {
                ErrorKind::FileTooLarge => MofErrorKind::TooLarge,
                _ => MofErrorKind::Io(error),
            })
        })?;
        let text = etw_manifest::text(&bytes).ok_or_else(|| failed(MofErrorKind::Encoding))?;
        self.add(&text).map_err(failed)
    }

    /// Adds the classes in a MOF file's text.
    ///
    /// # Errors
    /// Fails if the text is not MOF, or contains no event classes.
    pub fn add(&mut self, text: &str) -> Result<(), MofErrorKind> {
        let found = classes(&Parser::new(text).file()?)?;
        if found.is_empty() {
            return Err(MofErrorKind::NoEvents);
        }
        for class in found {
            let known = self.0.entry(class.guid).or_insert_with(|| Class {
                guid: class.guid,
                name: Arc::clone(&class.name),
                group: None,
                events: Vec::new(),
            });
            for event in class.events {
                match known.events.binary_search_by_key(&event.opcode, |one| one.opcode) {
                    // If layouts are equally good, the first one wins.
                    Ok(at) => {
                        if let Some(one) = known.events.get_mut(at) {
                            one.layouts.splice(0..0, event.layouts);
                        }
                    }
                    Err(at) => known.events.insert(at, event),
                }
            }
        }
        Ok(())
    }

    /// Returns the class with a GUID.
    #[must_use]
    pub fn get(&self, guid: Guid) -> Option<&Class> {
        self.0.get(&guid)
    }
}

/// A class as written in the file.
#[derive(Debug, Default)]
struct Written {
    name: String,
    parent: Option<String>,
    qualifiers: Qualifiers,
    properties: Vec<Property>,
}

#[derive(Debug, Default)]
struct Property {
    name: String,
    of_type: String,
    /// The number of elements of an array, or 0 if the file does not state it.
    array: Option<u16>,
    qualifiers: Qualifiers,
}

/// The values of qualifiers, by lower-case name.
type Qualifiers = HashMap<String, Vec<String>>;

/// Returns the value of a qualifier.
fn value<'a>(qualifiers: &'a Qualifiers, name: &str) -> Option<&'a str> {
    qualifiers.get(name)?.first().map(String::as_str)
}

/// Returns the event classes.
fn classes(all: &[Written]) -> Result<Vec<Class>, MofErrorKind> {
    let mut room = MAX_FIELDS;
    let by_name: HashMap<String, &Written> =
        all.iter().map(|one| (one.name.to_lowercase(), one)).collect();
    let mut found: BTreeMap<Guid, Class> = BTreeMap::new();
    for one in all {
        let Some(types) = one.qualifiers.get("eventtype") else {
            continue;
        };
        let mut ancestors = vec![one];
        while let Some(parent) = ancestors.last().and_then(|last| last.parent.as_ref())
            && let Some(parent) = by_name.get(&parent.to_lowercase())
            && ancestors.len() < MAX_DEPTH
        {
            ancestors.push(parent);
        }
        let inherited = |name| ancestors.iter().find_map(|one| value(&one.qualifiers, name));
        let Some(guid) = inherited("guid").and_then(|text| text.parse::<Guid>().ok()) else {
            continue;
        };
        // The first class with the GUID provides the name; the classes of versions follow it.
        let has_guid = |one: &&&Written| {
            value(&one.qualifiers, "guid").and_then(|text| text.parse().ok()) == Some(guid)
        };
        let name = ancestors.iter().rev().find(has_guid).map_or(&one.name, |first| &first.name);
        let version = inherited("eventversion").and_then(|text| number(text)?.try_into().ok());
        let fields: Vec<Field> = fields(&ancestors);
        let class = found.entry(guid).or_insert_with(|| Class {
            guid,
            name: name.as_str().into(),
            group: None,
            events: Vec::new(),
        });
        let names = one.qualifiers.get("eventtypename").map(Vec::as_slice).unwrap_or_default();
        for (at, opcode) in types.iter().enumerate() {
            let Some(opcode) = number(opcode).and_then(|number| u8::try_from(number).ok()) else {
                continue;
            };
            let known = class.events.iter().position(|event| event.opcode == opcode);
            let event = known.unwrap_or_else(|| {
                let name = names.get(at).unwrap_or(&one.name).as_str().into();
                class.events.push(Event { opcode, name, layouts: Vec::new() });
                class.events.len() - 1
            });
            room = room.checked_sub(fields.len().max(1)).ok_or(MofErrorKind::TooManyFields)?;
            if let Some(event) = class.events.get_mut(event) {
                event.layouts.push(Layout {
                    first: version.unwrap_or(0),
                    last: version.unwrap_or(u8::MAX),
                    fields: fields.clone(),
                });
            }
        }
    }
    let mut found: Vec<Class> = found.into_values().collect();
    for class in &mut found {
        class.events.sort_by_key(|event| event.opcode);
    }
    Ok(found)
}

/// Returns the fields of a class in data order, including those that it inherits and does not
/// redefine.
fn fields(ancestors: &[&Written]) -> Vec<Field> {
    let properties = ancestors.iter().rev().flat_map(|one| &one.properties);
    let by_name: HashMap<String, &Property> =
        properties.map(|one| (one.name.to_lowercase(), one)).collect();
    let mut all: Vec<(u64, &Property)> = by_name
        .into_values()
        .filter_map(|one| Some((number(value(&one.qualifiers, "wmidataid")?)?, one)))
        .collect();
    all.sort_by(|(id, one), (other, another)| id.cmp(other).then(one.name.cmp(&another.name)));
    let mut fields = Vec::new();
    for (_, property) in all {
        let kind = kind(property);
        let name = property.name.as_str().into();
        fields.push(Field { name, kind: kind.unwrap_or(Type::Rest), optional: false });
        if kind.is_none() {
            // The next field's position is unknown.
            break;
        }
    }
    fields
}

/// Returns a property's type, or `None` if its size or form is unknown.
fn kind(property: &Property) -> Option<Type> {
    let qualifiers = &property.qualifiers;
    let lower = |name| value(qualifiers, name).map(str::to_lowercase).unwrap_or_default();
    let count = property.array.or_else(|| {
        let max = value(qualifiers, "max").and_then(number)?;
        u16::try_from(max).ok()
    });
    let format = lower("format");
    if let Some(count) = count {
        return match (property.of_type.as_str(), count) {
            (_, 0) => None,
            ("char16", count) => Some(Type::Units(count)),
            ("uint16", count) if format == "w" => Some(Type::Units(count)),
            ("uint8" | "sint8", count) => Some(Type::Bytes(count)),
            _ => None,
        };
    }
    if qualifiers.contains_key("pointer") || qualifiers.contains_key("pointertype") {
        return Some(Type::Pointer);
    }
    match lower("extension").as_str() {
        "sid" => return Some(Type::Sid),
        "port" => return Some(Type::Port),
        "ipaddr" | "ipaddrv4" => return Some(Type::Ipv4),
        "ipaddrv6" => return Some(Type::Ipv6),
        "guid" => return Some(Type::Guid),
        "sizet" => return Some(Type::Size),
        "wmitime" => return Some(Type::Ticks),
        _ => {}
    }
    let is_hexadecimal = format.starts_with('x') || format.starts_with("0x");
    Some(match property.of_type.as_str() {
        "uint8" => Type::U8,
        "sint8" => Type::I8,
        "uint16" | "char16" => Type::U16,
        "sint16" => Type::I16,
        "uint32" if is_hexadecimal => Type::Hex32,
        "uint32" => Type::U32,
        "sint32" => Type::I32,
        "uint64" if is_hexadecimal => Type::Hex64,
        "uint64" => Type::U64,
        "sint64" => Type::I64,
        "real32" => Type::F32,
        "real64" => Type::F64,
        "boolean" => Type::Bool,
        "string" => match (lower("stringtermination").as_str(), format == "w") {
            ("" | "nullterminated", true) => Type::Utf16,
            ("" | "nullterminated", false) => Type::Ansi,
            ("counted", true) => Type::CountedUtf16,
            ("counted", false) => Type::CountedAnsi,
            _ => return None,
        },
        _ => return None,
    })
}

/// Parses a decimal or hexadecimal number.
fn number(text: &str) -> Option<u64> {
    etw_manifest::number(text)
}

/// A token of a MOF text.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    /// A name or a number.
    Word(String),
    /// A string without its quotation marks.
    Text(String),
    /// Any other character.
    Mark(char),
}

struct Parser<'a> {
    rest: &'a str,
    text: &'a str,
    token: Option<Token>,
}

type Parsed<T> = Result<T, MofErrorKind>;

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Self {
        let mut parser = Self { rest: text, text, token: None };
        parser.advance();
        parser
    }

    /// Reads the next token.
    fn advance(&mut self) -> Option<Token> {
        let before = self.token.take();
        loop {
            self.rest =
                self.rest.trim_start_matches(|one: char| one.is_whitespace() || one == '\u{feff}');
            if let Some(comment) = self.rest.strip_prefix("//") {
                self.rest =
                    comment.find('\n').and_then(|end| comment.get(end..)).unwrap_or_default();
            } else if let Some(comment) = self.rest.strip_prefix("/*") {
                self.rest =
                    comment.find("*/").and_then(|end| comment.get(end + 2..)).unwrap_or_default();
            } else {
                break;
            }
        }
        let first = self.rest.chars().next();
        let is_word =
            |one: char| one.is_alphanumeric() || matches!(one, '_' | '.' | '-' | '+' | '$');
        self.token = first.map(|first| {
            if first == '"' {
                let inside = self.rest.get(1..).unwrap_or_default();
                let (text, rest) = quoted(inside);
                self.rest = rest;
                Token::Text(text)
            } else if is_word(first) {
                let end = self.rest.find(|one| !is_word(one)).unwrap_or(self.rest.len());
                let (word, rest) = self.rest.split_at_checked(end).unwrap_or((self.rest, ""));
                self.rest = rest;
                Token::Word(word.to_owned())
            } else {
                self.rest = self.rest.get(first.len_utf8()..).unwrap_or_default();
                Token::Mark(first)
            }
        });
        before
    }

    fn error(&self, expected: &'static str) -> MofErrorKind {
        let read = self.text.len().saturating_sub(self.rest.len());
        let line = self.text.get(..read).map_or(1, |read| 1 + read.matches('\n').count());
        let found = match &self.token {
            None => "the end".to_owned(),
            Some(Token::Word(text) | Token::Text(text)) => text.chars().take(40).collect(),
            Some(Token::Mark(mark)) => mark.to_string(),
        };
        MofErrorKind::Syntax { line, expected, found }
    }

    fn takes(&mut self, mark: char) -> bool {
        let found = self.token == Some(Token::Mark(mark));
        if found {
            self.advance();
        }
        found
    }

    fn expect(&mut self, mark: char, expected: &'static str) -> Parsed<()> {
        if self.takes(mark) { Ok(()) } else { Err(self.error(expected)) }
    }

    fn word(&mut self, expected: &'static str) -> Parsed<String> {
        match self.advance() {
            Some(Token::Word(word)) => Ok(word),
            other => {
                self.token = other;
                Err(self.error(expected))
            }
        }
    }

    /// Reads all classes; skips instances and directives.
    fn file(mut self) -> Parsed<Vec<Written>> {
        let mut all = Vec::new();
        while self.token.is_some() {
            if self.takes('#') {
                self.word("`pragma`")?;
                self.word("the name of a directive")?;
                if self.takes('(') {
                    self.skip_to(')');
                }
                continue;
            }
            let qualifiers = self.qualifiers()?;
            let word = self.word("`class`")?;
            if word.eq_ignore_ascii_case("class") {
                all.push(self.class(qualifiers)?);
            } else if word.eq_ignore_ascii_case("instance")
                || word.eq_ignore_ascii_case("qualifier")
            {
                self.skip_to(';');
            } else {
                return Err(self.error("`class` before"));
            }
        }
        Ok(all)
    }

    /// Skips tokens up to a mark at the current nesting level.
    fn skip_to(&mut self, end: char) {
        let mut depth = 0_usize;
        while let Some(token) = self.advance() {
            match token {
                Token::Mark(mark) if mark == end && depth == 0 => return,
                Token::Mark('{' | '(' | '[') => depth += 1,
                Token::Mark('}' | ')' | ']') => depth = depth.saturating_sub(1),
                _ => {}
            }
        }
    }

    fn qualifiers(&mut self) -> Parsed<Qualifiers> {
        let mut all = Qualifiers::new();
        if !self.takes('[') {
            return Ok(all);
        }
        loop {
            let name = self.word("the name of a qualifier")?.to_lowercase();
            let mut values = Vec::new();
            let end = match &self.token {
                Some(Token::Mark('(')) => Some(')'),
                Some(Token::Mark('{')) => Some('}'),
                _ => None,
            };
            if let Some(end) = end {
                self.advance();
                while !self.takes(end) {
                    match self.advance() {
                        Some(Token::Word(word)) => values.push(word),
                        Some(Token::Text(mut text)) => {
                            // Adjacent strings are concatenated.
                            while let Some(Token::Text(more)) = &self.token {
                                text.push_str(more);
                                self.advance();
                            }
                            values.push(text);
                        }
                        Some(Token::Mark(',' | '{' | '}')) => {}
                        other => {
                            self.token = other;
                            return Err(self.error("the value of a qualifier"));
                        }
                    }
                }
            }
            // Flavors, such as `: ToSubclass amended`.
            if self.takes(':') {
                while matches!(self.token, Some(Token::Word(_))) {
                    self.advance();
                }
            }
            all.insert(name, values);
            if !self.takes(',') {
                break;
            }
        }
        self.expect(']', "`]` after qualifiers")?;
        Ok(all)
    }

    fn class(&mut self, qualifiers: Qualifiers) -> Parsed<Written> {
        let name = self.word("the name of a class")?;
        let parent = if self.takes(':') { Some(self.word("the parent of a class")?) } else { None };
        let mut class = Written { name, parent, qualifiers, properties: Vec::new() };
        if self.takes(';') {
            return Ok(class);
        }
        self.expect('{', "`{` of a class")?;
        while !self.takes('}') {
            let qualifiers = self.qualifiers()?;
            let of_type = self.word("the type of a property")?.to_lowercase();
            let name = self.word("the name of a property")?;
            let mut array = None;
            if self.takes('[') {
                let count = match &self.token {
                    Some(Token::Word(count)) => {
                        number(count).and_then(|count| count.try_into().ok())
                    }
                    _ => None,
                };
                array = Some(count.unwrap_or(0));
                self.skip_to(']');
            }
            let is_method = self.token == Some(Token::Mark('('));
            self.skip_to(';');
            if !is_method {
                class.properties.push(Property { name, of_type, array, qualifiers });
            }
        }
        self.expect(';', "`;` after a class")?;
        Ok(class)
    }
}

/// Returns the string up to its closing quotation mark, and the text after it.
fn quoted(text: &str) -> (String, &str) {
    let mut out = String::new();
    let mut characters = text.char_indices();
    while let Some((at, one)) = characters.next() {
        match one {
            '"' => return (out, text.get(at + 1..).unwrap_or_default()),
            '\\' => out.extend(characters.next().map(|(_, next)| next)),
            one => out.push(one),
        }
    }
    (out, "")
}
