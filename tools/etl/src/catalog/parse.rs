//! Reading of a manifest's XML.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::Hash;
use std::sync::Arc;

use roxmltree::{Document, Node};

use super::error::{ManifestError, ManifestErrorKind as Kind};
use super::provider::{EventDefinition, Provider};
use super::types;
use crate::decode::{Count, Field, InType, Length, OutType, Schema, ValueMap, winmeta};
use crate::guid::Guid;

type Result<T> = std::result::Result<T, ManifestError>;

/// The providers of a manifest.
pub fn manifest(text: &str) -> Result<Vec<Provider>> {
    let document = Document::parse(text).map_err(|error| {
        let position = error.pos();
        let what = error.to_string();
        let what = what
            .strip_suffix(&format!(" at {position}"))
            .unwrap_or(&what);
        ManifestError {
            line: position.row,
            column: position.col,
            kind: Kind::Xml(what.to_owned()),
        }
    })?;
    let root = document.root_element();
    if root.tag_name().name() != "instrumentationManifest" {
        let name = root.tag_name().name().to_owned();
        return Err(at(root, Kind::NotAManifest(name)));
    }
    let strings = strings(root)?;
    let mut providers: Vec<Provider> = Vec::new();
    for node in descend(root, &["instrumentation", "events", "provider"]) {
        let provider = ProviderReader::new(node, &strings)?.read()?;
        if providers.iter().any(|known| known.guid == provider.guid) {
            return Err(at(
                node,
                Kind::Duplicate {
                    what: "provider",
                    name: provider.guid.to_string(),
                },
            ));
        }
        providers.push(provider);
    }
    Ok(providers)
}

type Strings<'a> = HashMap<&'a str, &'a str>;

/// The string table: that of en-US, or else the first.
fn strings<'a>(root: Node<'a, '_>) -> Result<Strings<'a>> {
    let tables: Vec<_> = descend(root, &["localization", "resources"]).collect();
    let table = tables
        .iter()
        .find(|table| table.attribute("culture") == Some("en-US"))
        .or_else(|| tables.first());
    let mut strings = Strings::new();
    for node in table
        .into_iter()
        .flat_map(|table| descend(*table, &["stringTable", "string"]))
    {
        let id = required(node, "id")?;
        let value = required(node, "value")?;
        define(node, &mut strings, "string", id, value, id)?;
    }
    Ok(strings)
}

/// Definitions of one provider that others refer to.
struct ProviderReader<'a, 'input> {
    node: Node<'a, 'input>,
    strings: &'a Strings<'a>,
    provider: Provider,
    level_names: HashMap<&'a str, u8>,
    task_names: HashMap<&'a str, u16>,
    /// By task name, none for all tasks, and opcode name.
    opcode_names: HashMap<(Option<&'a str>, &'a str), u8>,
    keyword_names: HashMap<&'a str, u64>,
    maps: HashMap<&'a str, Arc<ValueMap>>,
    templates: HashMap<&'a str, Arc<[Field]>>,
}

impl<'a, 'input> ProviderReader<'a, 'input> {
    fn new(node: Node<'a, 'input>, strings: &'a Strings<'a>) -> Result<Self> {
        let control_guid = node
            .attribute("controlGuid")
            .map(|_| guid(node, "controlGuid"))
            .transpose()?;
        Ok(Self {
            node,
            strings,
            provider: Provider {
                name: required(node, "name")?.to_owned(),
                guid: guid(node, "guid")?,
                control_guid,
                ..Provider::default()
            },
            level_names: winmeta::LEVELS.iter().map(|l| (l.1, l.0)).collect(),
            task_names: HashMap::from([(winmeta::TASK_NONE.1, winmeta::TASK_NONE.0)]),
            opcode_names: winmeta::OPCODES
                .iter()
                .map(|o| ((None, o.1), o.0))
                .collect(),
            keyword_names: winmeta::KEYWORDS.iter().map(|k| (k.1, k.0)).collect(),
            maps: HashMap::new(),
            templates: HashMap::new(),
        })
    }

    fn read(mut self) -> Result<Provider> {
        let node = self.node;
        for level in descend(node, &["levels", "level"]) {
            self.level(level)?;
        }
        for task in descend(node, &["tasks", "task"]) {
            self.task(task)?;
        }
        for opcode in descend(node, &["opcodes", "opcode"]) {
            self.opcode(opcode, None)?;
        }
        for keyword in descend(node, &["keywords", "keyword"]) {
            self.keyword(keyword)?;
        }
        for maps in descend(node, &["maps"]) {
            for map in maps.children().filter(Node::is_element) {
                self.map(map)?;
            }
        }
        for template in descend(node, &["templates", "template"]) {
            let tid = required(template, "tid")?;
            let fields = self.fields(template, &mut Vec::new())?;
            define(
                template,
                &mut self.templates,
                "template",
                tid,
                fields.into(),
                tid,
            )?;
        }
        for event in descend(node, &["events", "event"]) {
            self.event(event)?;
        }
        Ok(self.provider)
    }

    /// The text that people see for a definition: its message, or else its
    /// name.
    fn title(&self, node: Node<'a, 'input>, name: &str) -> Result<String> {
        Ok(self
            .message(node)?
            .map_or_else(|| name.to_owned(), str::to_owned))
    }

    /// The text that the attribute `message` refers to. Messages that the
    /// manifest does not hold, such as `$(mc.SYMBOL)`, have none.
    fn message(&self, node: Node<'a, 'input>) -> Result<Option<&'a str>> {
        let id = node
            .attribute("message")
            .and_then(|reference| reference.strip_prefix("$(string."))
            .and_then(|reference| reference.strip_suffix(')'));
        let Some(id) = id else {
            return Ok(None);
        };
        let text = self.strings.get(id).copied();
        text.map(Some)
            .ok_or_else(|| unknown(node, "message", "string", id))
    }

    fn level(&mut self, node: Node<'a, 'input>) -> Result<()> {
        let name = required(node, "name")?;
        let value = number::<u8>(node, "value")?;
        let title = self.title(node, name)?;
        define(node, &mut self.level_names, "level", name, value, name)?;
        define(node, &mut self.provider.levels, "level", value, title, name)
    }

    fn task(&mut self, node: Node<'a, 'input>) -> Result<()> {
        let name = required(node, "name")?;
        let value = number::<u16>(node, "value")?;
        let title = self.title(node, name)?;
        define(node, &mut self.task_names, "task", name, value, name)?;
        define(node, &mut self.provider.tasks, "task", value, title, name)?;
        for opcode in descend(node, &["opcodes", "opcode"]) {
            self.opcode(opcode, Some((name, value)))?;
        }
        Ok(())
    }

    fn opcode(&mut self, node: Node<'a, 'input>, task: Option<(&'a str, u16)>) -> Result<()> {
        let name = required(node, "name")?;
        let value = number::<u8>(node, "value")?;
        let title = self.title(node, name)?;
        let (task_name, task_value) = task.map_or((None, 0), |(name, value)| (Some(name), value));
        let key = (task_name, name);
        define(node, &mut self.opcode_names, "opcode", key, value, name)?;
        let key = (task_value, value);
        define(node, &mut self.provider.opcodes, "opcode", key, title, name)
    }

    fn keyword(&mut self, node: Node<'a, 'input>) -> Result<()> {
        let name = required(node, "name")?;
        let mask = number::<u64>(node, "mask")?;
        if !mask.is_power_of_two() {
            return Err(at_attribute(node, "mask", Kind::KeywordMask(mask)));
        }
        let title = self.title(node, name)?;
        define(node, &mut self.keyword_names, "keyword", name, mask, name)?;
        self.provider.keywords.push((mask, title));
        Ok(())
    }

    fn map(&mut self, node: Node<'a, 'input>) -> Result<()> {
        let name = required(node, "name")?;
        let mut map = ValueMap {
            bits: node.tag_name().name() == "bitMap",
            entries: Vec::new(),
        };
        for entry in descend(node, &["map"]) {
            let value = number::<u32>(entry, "value")?;
            let reference = required(entry, "message")?;
            map.entries.push((value, self.title(entry, reference)?));
        }
        define(node, &mut self.maps, "map", name, Arc::new(map), name)
    }

    /// The fields of a template or of a structure. `earlier` are those before
    /// it which a size may refer to, with their types.
    fn fields(
        &self,
        parent: Node<'a, 'input>,
        earlier: &mut Vec<(&'a str, InType)>,
    ) -> Result<Vec<Field>> {
        let mut fields = Vec::new();
        for node in parent.children().filter(Node::is_element) {
            let in_struct = parent.tag_name().name() == "struct";
            match node.tag_name().name() {
                "data" => {
                    let field = self.data(node, earlier)?;
                    earlier.push((required(node, "name")?, field.in_type));
                    fields.push(field);
                }
                "struct" if !in_struct => {
                    let outer = earlier.len();
                    let count = count(node, earlier)?;
                    let members = self.fields(node, earlier)?;
                    earlier.truncate(outer);
                    fields.push(Field {
                        name: required(node, "name")?.into(),
                        in_type: InType::Struct,
                        out_type: OutType::Default,
                        count,
                        length: Length::Natural,
                        tags: 0,
                        map: None,
                        fields: members,
                    });
                }
                // What the event log shows in place of the fields; their
                // encoding does not depend on it.
                "UserData" if !in_struct => {}
                other => return Err(at(node, Kind::TemplateElement(other.to_owned()))),
            }
        }
        Ok(fields)
    }

    fn data(&self, node: Node<'a, 'input>, earlier: &[(&'a str, InType)]) -> Result<Field> {
        let name = required(node, "name")?;
        let type_name = required(node, "inType")?;
        let in_type = types::in_type(unprefixed(type_name))
            .ok_or_else(|| unknown(node, "inType", "input type", type_name))?;
        let out_type = match node.attribute("outType") {
            None => OutType::Default,
            Some(type_name) => types::out_type(unprefixed(type_name))
                .ok_or_else(|| unknown(node, "outType", "output type", type_name))?,
        };
        let map = match node.attribute("map") {
            None => None,
            Some(name) => Some(
                self.maps
                    .get(name)
                    .cloned()
                    .ok_or_else(|| unknown(node, "map", "map", name))?,
            ),
        };
        let length = match size(node, "length", earlier)? {
            Some(Size::Fixed(length)) => Length::Fixed(length),
            Some(Size::Field(name)) => Length::Field(name),
            None if in_type == InType::Binary && out_type == OutType::Ipv6 => Length::Fixed(16),
            None if in_type == InType::Binary => return Err(at(node, Kind::BinaryWithoutLength)),
            None => Length::Natural,
        };
        let tags = match node.attribute("tags") {
            None => 0,
            Some(_) => number::<u32>(node, "tags")?,
        };
        Ok(Field {
            name: name.into(),
            in_type,
            out_type,
            count: count(node, earlier)?,
            length,
            tags,
            map,
            fields: Vec::new(),
        })
    }

    fn event(&mut self, node: Node<'a, 'input>) -> Result<()> {
        let id = number::<u16>(node, "value")?;
        let version = match node.attribute("version") {
            None => 0,
            Some(_) => number::<u8>(node, "version")?,
        };
        self.check_names(node)?;
        let fields = match node.attribute("template") {
            None => Arc::default(),
            Some(tid) => self
                .templates
                .get(tid)
                .cloned()
                .ok_or_else(|| unknown(node, "template", "template", tid))?,
        };
        let definition = EventDefinition {
            schema: Schema {
                event_name: node.attribute("name").unwrap_or_default().to_owned(),
                tags: 0,
                fields,
            },
            symbol: node.attribute("symbol").map(str::to_owned),
            message: self.message(node)?.map(str::to_owned),
        };
        let name = format!("{id} version {version}");
        define(
            node,
            &mut self.provider.events,
            "event",
            (id, version),
            definition,
            &name,
        )
    }

    /// Whether the names that an event gives are defined.
    fn check_names(&self, node: Node<'a, 'input>) -> Result<()> {
        if let Some(level) = node.attribute("level")
            && !self.level_names.contains_key(level)
        {
            return Err(unknown(node, "level", "level", level));
        }
        let task = node.attribute("task");
        if let Some(task) = task
            && !self.task_names.contains_key(task)
        {
            return Err(unknown(node, "task", "task", task));
        }
        if let Some(opcode) = node.attribute("opcode")
            && !self.opcode_names.contains_key(&(task, opcode))
            && !self.opcode_names.contains_key(&(None, opcode))
        {
            return Err(unknown(node, "opcode", "opcode", opcode));
        }
        let keywords = node.attribute("keywords").unwrap_or_default();
        for keyword in keywords.split_whitespace() {
            if !self.keyword_names.contains_key(keyword) {
                return Err(unknown(node, "keywords", "keyword", keyword));
            }
        }
        Ok(())
    }
}

/// A count or a length.
enum Size {
    Fixed(u16),
    Field(Arc<str>),
}

fn size(
    node: Node<'_, '_>,
    attribute: &'static str,
    earlier: &[(&str, InType)],
) -> Result<Option<Size>> {
    let Some(text) = node.attribute(attribute) else {
        return Ok(None);
    };
    if text.starts_with(|c: char| c.is_ascii_digit()) {
        return Ok(Some(Size::Fixed(number(node, attribute)?)));
    }
    let is_number = earlier
        .iter()
        .rev()
        .find(|(name, _)| *name == text)
        .is_some_and(|(_, in_type)| types::is_integer(*in_type));
    if is_number {
        Ok(Some(Size::Field(text.into())))
    } else {
        let kind = Kind::SizeField(text.to_owned());
        Err(at_attribute(node, attribute, kind))
    }
}

fn count(node: Node<'_, '_>, earlier: &[(&str, InType)]) -> Result<Count> {
    Ok(match size(node, "count", earlier)? {
        // A count of 0 is as good as none.
        None | Some(Size::Fixed(0)) => Count::Scalar,
        Some(Size::Fixed(count)) => Count::Fixed(count),
        Some(Size::Field(name)) => Count::Field(name),
    })
}

/// The elements at a path of names below a node.
fn descend<'a, 'input>(
    node: Node<'a, 'input>,
    path: &'static [&'static str],
) -> Box<dyn Iterator<Item = Node<'a, 'input>> + 'a>
where
    'input: 'a,
{
    match path {
        [] => Box::new(std::iter::once(node)),
        [name, rest @ ..] => Box::new(
            node.children()
                .filter(|child| child.is_element() && child.tag_name().name() == *name)
                .flat_map(|child| descend(child, rest)),
        ),
    }
}

/// Enters a definition that must not be there yet.
fn define<K: Eq + Hash, V>(
    node: Node<'_, '_>,
    definitions: &mut HashMap<K, V>,
    what: &'static str,
    key: K,
    value: V,
    name: &str,
) -> Result<()> {
    match definitions.entry(key) {
        Entry::Vacant(vacant) => {
            vacant.insert(value);
            Ok(())
        }
        Entry::Occupied(_) => {
            let name = name.to_owned();
            Err(at(node, Kind::Duplicate { what, name }))
        }
    }
}

fn required<'a>(node: Node<'a, '_>, attribute: &'static str) -> Result<&'a str> {
    node.attribute(attribute).ok_or_else(|| {
        let element = node.tag_name().name().to_owned();
        at(node, Kind::MissingAttribute { element, attribute })
    })
}

/// A number in decimal, or in hexadecimal after `0x`, that fits in its type.
fn number<T: TryFrom<u64>>(node: Node<'_, '_>, attribute: &'static str) -> Result<T> {
    let text = required(node, attribute)?;
    let digits = text.trim();
    let hexadecimal = digits
        .strip_prefix("0x")
        .or_else(|| digits.strip_prefix("0X"));
    let parsed = match hexadecimal {
        Some(digits) if digits.bytes().all(|b| b.is_ascii_hexdigit()) => {
            u64::from_str_radix(digits, 16).ok()
        }
        None if digits.bytes().all(|b| b.is_ascii_digit()) => digits.parse().ok(),
        _ => None,
    };
    parsed
        .and_then(|value| T::try_from(value).ok())
        .ok_or_else(|| {
            let kind = Kind::Number {
                text: text.to_owned(),
                max: u64::MAX >> (64 - 8 * size_of::<T>()),
            };
            at_attribute(node, attribute, kind)
        })
}

fn guid(node: Node<'_, '_>, attribute: &'static str) -> Result<Guid> {
    required(node, attribute)?
        .parse()
        .map_err(|error| at_attribute(node, attribute, Kind::Guid(error)))
}

/// A qualified name without its prefix.
fn unprefixed(name: &str) -> &str {
    name.split_once(':').map_or(name, |(_, local)| local)
}

fn unknown(
    node: Node<'_, '_>,
    attribute: &'static str,
    what: &'static str,
    name: &str,
) -> ManifestError {
    let name = name.to_owned();
    at_attribute(node, attribute, Kind::Unknown { what, name })
}

fn at(node: Node<'_, '_>, kind: Kind) -> ManifestError {
    located(node, node.range().start, kind)
}

/// An error at an attribute's value, or at its element if it has none.
fn at_attribute(node: Node<'_, '_>, attribute: &str, kind: Kind) -> ManifestError {
    let start = node
        .attribute_node(attribute)
        .map_or_else(|| node.range().start, |found| found.range_value().start);
    located(node, start, kind)
}

fn located(node: Node<'_, '_>, offset: usize, kind: Kind) -> ManifestError {
    let position = node.document().text_pos_at(offset);
    ManifestError {
        line: position.row,
        column: position.col,
        kind,
    }
}
