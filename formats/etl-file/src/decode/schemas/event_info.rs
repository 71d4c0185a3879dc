//! Reads `TRACE_EVENT_INFO` and `EVENT_MAP_INFO` (tdh.h) from merged traces (ETL-13.2, ETL-13.3).
//! The bytes are untrusted.

use std::sync::Arc;

use etw_wire::{Guid, InType};

use crate::cursor::Cursor;
use crate::decode::schema::{Count, Encoding, Field, Length, Presentation, ValueMap};
use crate::record::EventDescriptor;

/// The reason why a schema in a trace cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaError {
    /// The data ends within its fixed part.
    #[error("it is {present} bytes long; its fixed part alone needs {expected}")]
    Short {
        /// The number of bytes present.
        present: usize,
        /// The size of the fixed part, including the items that it counts.
        expected: usize,
    },
    /// The offset of a string points outside the data, or the string has no end.
    #[error(
        "the offset {offset:#x} of the {what} does not point to a string in its {present} bytes"
    )]
    Text {
        /// The string.
        what: &'static str,
        /// Its offset.
        offset: u32,
        /// The number of bytes present.
        present: usize,
    },
    /// A property refers to a property that is missing or that it must not refer to.
    #[error("property {property} refers to property {index}; there are {count}")]
    Index {
        /// The number of the property.
        property: usize,
        /// The number that it refers to.
        index: usize,
        /// The number of properties.
        count: usize,
    },
    /// Structures contain one another, or have too many members.
    #[error("its structures are nested too deeply or have too many members")]
    Nesting,
    /// The schema is for another kind of event.
    #[error("it describes events of another source ({0}), not of a manifest")]
    Source(u32),
}

/// The `DecodingSource` of manifest events (`DecodingSourceXMLFile`).
const SOURCE_MANIFEST: u32 = 0;
/// The `DecodingSource` values of WBEM, WPP and `TraceLogging` events.
const OTHER_SOURCES: std::ops::RangeInclusive<u32> = 1..=3;
/// The size of the key of other sources' schemas: the provider and event GUIDs, the event
/// descriptor and the source.
pub const IDENTITY: usize = 52;
/// The size of `TRACE_EVENT_INFO` without its properties.
const EVENT_INFO: usize = 112;
/// The size of `EVENT_PROPERTY_INFO`.
const PROPERTY: usize = 24;
/// The size of `EVENT_MAP_INFO` without its entries.
const MAP_INFO: usize = 16;
/// The size of `EVENT_MAP_ENTRY`.
const MAP_ENTRY: usize = 8;
/// The maximum nesting of structures; manifests use one level.
const MAX_DEPTH: usize = 4;
/// The maximum number of fields of an event, including structure members.
const MAX_FIELDS: usize = 4096;

/// `EVENT_PROPERTY_INFO.Flags`.
mod property_flags {
    /// A structure.
    pub const STRUCT: u32 = 0x01;
    /// The length is the value of another property.
    pub const PARAM_LENGTH: u32 = 0x02;
    /// The count is the value of another property.
    pub const PARAM_COUNT: u32 = 0x04;
    /// The count is fixed, even if it is 1.
    pub const FIXED_COUNT: u32 = 0x20;
    /// The offset of the map's name is the offset of a custom schema instead.
    pub const CUSTOM_SCHEMA: u32 = 0x80;
}

/// `EVENT_MAP_INFO.Flag`: the map names bits.
const MAP_BITMAP: u32 = 0x2;
/// All kinds of maps: value maps, bit maps, pattern maps, and three kinds of WBEM maps.
const MAP_FLAGS: u32 = 0x3F;
/// The kinds of maps whose entries are strings instead of numbers: pattern maps and WBEM string
/// maps.
const MAP_OF_TEXTS: u32 = 0x4;

/// The event definition in a `TRACE_EVENT_INFO`.
#[derive(Clone, Debug, Default)]
pub struct EventInfo {
    pub provider: Guid,
    pub descriptor: EventDescriptor,
    pub provider_name: Option<Arc<str>>,
    pub event_name: Option<Arc<str>>,
    pub level: Option<Arc<str>>,
    pub channel: Option<Arc<str>>,
    pub task: Option<Arc<str>>,
    pub opcode: Option<Arc<str>>,
    pub keywords: Vec<Arc<str>>,
    pub message: Option<Arc<str>>,
    pub fields: Vec<Field>,
}

/// The opcode of events without an opcode (`WINEVENT_OPCODE_INFO`).
const OPCODE_INFO: u8 = 0;

impl EventInfo {
    /// Returns the event's name or, if it has none, the names of its task and opcode. Empty if
    /// there is neither a name nor a task.
    pub fn name(&self) -> String {
        if let Some(name) = &self.event_name {
            return name.as_ref().to_owned();
        }
        let opcode = self.opcode.as_deref();
        let opcode = opcode.filter(|_| self.descriptor.opcode != OPCODE_INFO);
        match (self.task.as_deref(), opcode) {
            (Some(task), Some(opcode)) => format!("{task}/{opcode}"),
            (Some(task), None) => task.to_owned(),
            (None, _) => String::new(),
        }
    }
}

/// A map and its name.
#[derive(Clone, Debug)]
pub struct MapInfo {
    pub name: Arc<str>,
    pub map: ValueMap,
}

/// The identity of the event that a `TRACE_EVENT_INFO` describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    pub provider: Guid,
    pub id: u16,
    pub version: u8,
    /// `DecodingSource`: each source has its own ids.
    source: u32,
}

impl Key {
    /// Reads the key of a `TRACE_EVENT_INFO`. If it is truncated, the source is assumed to be a
    /// manifest.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let mut c = Cursor::new(bytes);
        let provider = Guid::from_bytes(c.array()?);
        c.take(16)?; // EventGuid
        let (id, version) = (c.u16()?, c.u8()?);
        let source = c.take(13).and_then(|_| c.u32());
        Some(Self { provider, id, version, source: source.unwrap_or(SOURCE_MANIFEST) })
    }

    /// Returns true if the source of the event's schema is WBEM, WPP or `TraceLogging`.
    pub fn is_of_another_source(&self) -> bool {
        OTHER_SOURCES.contains(&self.source)
    }
}

/// The strings of a structure, by offset from its start.
#[derive(Clone, Copy)]
struct Texts<'a>(&'a [u8]);

impl Texts<'_> {
    /// Returns the string at `offset`, without trailing white space: TDH appends a space to
    /// manifests' strings. Offset 0 means no string.
    fn get(self, what: &'static str, offset: u32) -> Result<Option<Arc<str>>, SchemaError> {
        if offset == 0 {
            return Ok(None);
        }
        let (text, _) = self.at(what, offset)?;
        let text = text.trim_end();
        Ok((!text.is_empty()).then(|| text.into()))
    }

    /// Returns the string at `offset`, or `None` if it cannot be read: the event can be decoded
    /// without it.
    fn optional(self, what: &'static str, offset: u32) -> Option<Arc<str>> {
        self.get(what, offset).ok().flatten()
    }

    /// Returns the consecutive strings at `offset`, up to an empty or unreadable one.
    fn list(self, what: &'static str, offset: u32) -> Vec<Arc<str>> {
        let mut all = Vec::new();
        let mut next = offset;
        while next != 0
            && let Ok((text, bytes)) = self.at(what, next)
        {
            let text = text.trim_end();
            if text.is_empty() {
                break;
            }
            all.push(text.into());
            next = next.saturating_add(bytes);
        }
        all
    }

    /// Returns the string at `offset`, and its size including the NUL.
    fn at(self, what: &'static str, offset: u32) -> Result<(String, u32), SchemaError> {
        let error = SchemaError::Text { what, offset, present: self.0.len() };
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let bytes = self.0.get(start..).ok_or_else(|| error.clone())?;
        let units = bytes.as_chunks::<2>().0;
        let length = units.iter().position(|unit| *unit == [0, 0]);
        let units = length.and_then(|length| units.get(..length)).ok_or(error)?;
        let units: Vec<u16> = units.iter().map(|unit| u16::from_le_bytes(*unit)).collect();
        let size = u32::try_from(2 * units.len() + 2).unwrap_or(u32::MAX);
        Ok((String::from_utf16_lossy(&units), size))
    }
}

/// Reads a `TRACE_EVENT_INFO`. `map` finds a provider's map by name.
pub fn event_info(
    bytes: &[u8],
    map: &dyn Fn(Guid, &str) -> Option<Arc<ValueMap>>,
) -> Result<EventInfo, SchemaError> {
    let short = |expected| SchemaError::Short { present: bytes.len(), expected };
    let mut c = Cursor::new(bytes);
    let (provider, descriptor, numbers) = fixed_part(&mut c).ok_or_else(|| short(EVENT_INFO))?;
    // The names are offsets. Between the message and the event's name are the offsets of the
    // provider's message and of binary XML, and the size of the XML; after the name is the offset of
    // the attributes, and at the end are flags.
    let [
        source,
        provider_name,
        level,
        channel,
        keywords,
        task,
        opcode,
        message,
        _,
        _,
        _,
        event_name,
        _,
        count,
        top_level,
        _,
    ] = numbers;
    if source != SOURCE_MANIFEST {
        return Err(SchemaError::Source(source));
    }
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    let expected = count.saturating_mul(PROPERTY).saturating_add(EVENT_INFO);
    let properties =
        c.take(expected - EVENT_INFO).ok_or_else(|| short(expected))?.chunks_exact(PROPERTY);
    let properties: Option<Vec<Property>> = properties.map(Property::parse).collect();
    let properties = properties.unwrap_or_default();
    let texts = Texts(bytes);
    let names: Result<Vec<Arc<str>>, SchemaError> = properties
        .iter()
        .map(|property| Ok(texts.get("property's name", property.name)?.unwrap_or_default()))
        .collect();
    let list = Properties { all: &properties, names: names?, texts, provider, map };
    let top = usize::try_from(top_level).unwrap_or(usize::MAX);
    let mut left = MAX_FIELDS;
    let fields = list.fields(0, top, MAX_DEPTH, &mut left)?;
    Ok(EventInfo {
        provider,
        descriptor,
        provider_name: texts.optional("provider's name", provider_name),
        event_name: texts.optional("event's name", event_name),
        level: texts.optional("level's name", level),
        channel: texts.optional("channel's name", channel),
        task: texts.optional("task's name", task),
        opcode: texts.optional("opcode's name", opcode),
        keywords: texts.list("keywords' names", keywords),
        message: texts.optional("message", message),
        fields,
    })
}

/// Reads the fixed part of `TRACE_EVENT_INFO`: the provider, the descriptor, and the numbers from
/// `DecodingSource` up to the properties.
fn fixed_part(c: &mut Cursor<'_>) -> Option<(Guid, EventDescriptor, [u32; 16])> {
    let provider = Guid::from_bytes(c.array()?);
    // After EventGuid, which events from manifests do not use.
    let descriptor = EventDescriptor::read(c.skip(16)?)?;
    let mut numbers = [0; 16];
    for number in &mut numbers {
        *number = c.u32()?;
    }
    Some((provider, descriptor, numbers))
}

/// `EVENT_PROPERTY_INFO`.
struct Property {
    flags: u32,
    name: u32,
    /// The encoding, or the index of a structure's first member.
    first: u16,
    /// The presentation, or the number of a structure's members.
    second: u16,
    map: u32,
    count: u16,
    length: u16,
    tags: u32,
}

impl Property {
    fn parse(bytes: &[u8]) -> Option<Self> {
        let mut c = Cursor::new(bytes);
        Some(Self {
            flags: c.u32()?,
            name: c.u32()?,
            first: c.u16()?,
            second: c.u16()?,
            map: c.u32()?,
            count: c.u16()?,
            length: c.u16()?,
            tags: c.u32()? & 0x0FFF_FFFF,
        })
    }

    const fn has(&self, flag: u32) -> bool {
        self.flags & flag != 0
    }
}

/// The properties of an event.
struct Properties<'a> {
    all: &'a [Property],
    names: Vec<Arc<str>>,
    texts: Texts<'a>,
    provider: Guid,
    map: &'a dyn Fn(Guid, &str) -> Option<Arc<ValueMap>>,
}

impl Properties<'_> {
    /// Returns the fields of a range of properties, up to a field of unknown size.
    fn fields(
        &self,
        start: usize,
        count: usize,
        depth: usize,
        left: &mut usize,
    ) -> Result<Vec<Field>, SchemaError> {
        let depth = depth.checked_sub(1).ok_or(SchemaError::Nesting)?;
        let end = start.saturating_add(count);
        let range = self.all.get(start..end).ok_or(SchemaError::Index {
            property: start,
            index: end,
            count: self.all.len(),
        })?;
        let mut fields = Vec::new();
        for (number, property) in (start..).zip(range) {
            *left = left.checked_sub(1).ok_or(SchemaError::Nesting)?;
            let Some(field) = self.field(number, property, depth, left)? else {
                break;
            };
            fields.push(field);
        }
        Ok(fields)
    }

    fn name(&self, property: usize, index: u16) -> Result<Arc<str>, SchemaError> {
        let index = usize::from(index);
        let name = self.names.get(index).cloned();
        name.ok_or(SchemaError::Index { property, index, count: self.names.len() })
    }

    fn field(
        &self,
        number: usize,
        property: &Property,
        depth: usize,
        left: &mut usize,
    ) -> Result<Option<Field>, SchemaError> {
        let name = self.names.get(number).cloned().unwrap_or_default();
        let count = if property.has(property_flags::PARAM_COUNT) {
            Count::Field(self.name(number, property.count)?)
        } else if property.has(property_flags::FIXED_COUNT) || property.count > 1 {
            Count::Fixed(property.count)
        } else {
            Count::Scalar
        };
        if property.has(property_flags::STRUCT) {
            let (start, members) = (property.first.into(), property.second.into());
            return Ok(Some(Field {
                name,
                in_type: InType::Struct.into(),
                out_type: Presentation::Default,
                count,
                length: Length::Natural,
                tags: property.tags,
                map: None,
                fields: self.fields(start, members, depth, left)?,
            }));
        }
        let in_type = encoding(property.first);
        let out_type = u8::try_from(property.second);
        let out_type = out_type.map_or(Presentation::Default, Presentation::from_winmeta);
        let is_sized = matches!(
            in_type,
            Encoding::Known(InType::UnicodeString | InType::AnsiString | InType::Binary)
        );
        let length = if property.has(property_flags::PARAM_LENGTH) {
            Length::Field(self.name(number, property.length)?)
        } else if is_sized && property.length != 0 {
            Length::Fixed(property.length)
        } else if in_type == Encoding::Known(InType::Binary) {
            if out_type != Presentation::Ipv6 {
                return Ok(None);
            }
            Length::Fixed(16)
        } else {
            Length::Natural
        };
        // For a custom schema, the offset does not refer to a name.
        let map = if property.has(property_flags::CUSTOM_SCHEMA) {
            None
        } else {
            self.texts.optional("map's name", property.map)
        };
        Ok(Some(Field {
            name,
            in_type,
            out_type,
            count,
            length,
            tags: property.tags,
            map: map.and_then(|name| (self.map)(self.provider, &name)),
            fields: Vec::new(),
        }))
    }
}

/// Returns the encoding with this TDH code; TDH has additional codes for counted strings.
fn encoding(code: u16) -> Encoding {
    match code {
        300 => InType::CountedUnicodeString.into(),
        301 => InType::CountedAnsiString.into(),
        _ => Encoding::from_code(u8::try_from(code).unwrap_or(u8::MAX)),
    }
}

/// Reads an `EVENT_MAP_INFO`. Returns `None` for a map from strings, which fields cannot use.
pub fn map_info(bytes: &[u8]) -> Result<Option<MapInfo>, SchemaError> {
    let short = |expected| SchemaError::Short { present: bytes.len(), expected };
    let mut c = Cursor::new(bytes);
    let mut word = || c.u32().ok_or_else(|| short(MAP_INFO));
    let (name, flags, count) = (word()?, word()?, word()?);
    let value_type = word()?;
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    let expected = count.saturating_mul(MAP_ENTRY).saturating_add(MAP_INFO);
    let entries = c.take(expected - MAP_INFO).ok_or_else(|| short(expected))?;
    let texts = Texts(bytes);
    let name = texts.get("map's name", name)?.unwrap_or_default();
    let is_text = flags & MAP_OF_TEXTS != 0 || value_type != 0;
    if flags == 0 || flags & !MAP_FLAGS != 0 || is_text {
        return Ok(None);
    }
    let mut map = ValueMap { bits: flags & MAP_BITMAP != 0, entries: Vec::with_capacity(count) };
    for entry in entries.as_chunks::<MAP_ENTRY>().0 {
        let mut entry = Cursor::new(entry);
        let (Some(text), Some(value)) = (entry.u32(), entry.u32()) else {
            continue; // unreachable: an entry has two words
        };
        if let Some(text) = texts.get("map entry's text", text)? {
            map.entries.push((value, text));
        }
    }
    Ok(Some(MapInfo { name, map }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_of_tdh_for_counted_strings_are_those_of_manifests() {
        assert_eq!(encoding(300), InType::CountedUnicodeString.into());
        assert_eq!(encoding(301), InType::CountedAnsiString.into());
        assert_eq!(encoding(8), InType::UInt32.into());
        assert_eq!(encoding(302), encoding(255));
    }

    #[test]
    fn a_property_has_28_bits_of_tags() {
        let mut bytes = [0; 24];
        bytes[20..].copy_from_slice(&0xF123_4567_u32.to_le_bytes());
        assert_eq!(Property::parse(&bytes).unwrap().tags, 0x0123_4567);
    }

    /// Returns an `EVENT_MAP_INFO` whose name and only entry share their text.
    fn map(flags: u32, value_type: u32) -> Vec<u8> {
        let text = 24_u32;
        let mut bytes: Vec<u8> = [text, flags, 1, value_type, text, 5]
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .collect();
        bytes.extend([b'N', 0, 0, 0]);
        bytes
    }

    #[test]
    fn maps_from_numbers_are_read_and_others_are_not() {
        let read = |flags, value_type| map_info(&map(flags, value_type)).unwrap();
        for (flags, bits) in [(1, false), (MAP_BITMAP, true), (MAP_BITMAP | 1, true)] {
            let found = read(flags, 0).unwrap();
            assert_eq!(&*found.name, "N");
            assert_eq!(found.map.bits, bits, "{flags:#x}");
            assert_eq!(found.map.entries, [(5, "N".into())]);
        }
        for (flags, value_type) in
            [(0, 0), (MAP_FLAGS + 1, 0), (MAP_FLAGS + 2, 0), (1 | MAP_OF_TEXTS, 0), (1, 1)]
        {
            assert!(read(flags, value_type).is_none(), "{flags:#x} {value_type}");
        }
        let whole = map(1, 0);
        assert!(map_info(&whole[..20]).is_err());
    }
}
