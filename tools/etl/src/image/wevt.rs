//! The resource `WEVT_TEMPLATE`: providers with their events.
//!
//! All offsets in it count from its start.

use std::collections::HashMap;
use std::sync::Arc;

use etw_wire::Guid;

use super::ResourceError;
use super::bytes::Bytes;
use super::messages::Messages;
use crate::decode::{Count, Field, InType, Length, OutType, Schema, ValueMap};
use crate::manifest::{EventDefinition, Provider};

/// No message.
const NONE: u32 = u32::MAX;
/// Names that winmeta defines start so; everybody knows what they mean.
const WINMETA: &str = "win:";
/// The most fields that a resource's templates may have in all.
const MOST_FIELDS: usize = 1 << 18;

/// The parts of a provider, by their types.
const LEVELS: u32 = 0;
const TASKS: u32 = 1;
const OPCODES: u32 = 2;
const KEYWORDS: u32 = 3;
const EVENTS: u32 = 4;
const EVENT_ATTRIBUTES: u32 = 12;
const PROVIDER_ATTRIBUTES: u32 = 13;

/// The providers of a resource.
pub fn providers(data: &[u8], messages: &Messages) -> Result<Vec<Provider>, ResourceError> {
    let bytes = Bytes::new("WEVT_TEMPLATE", data);
    let mut reader = Reader {
        bytes,
        messages,
        fields_left: MOST_FIELDS,
        maps: HashMap::new(),
        templates: HashMap::new(),
    };
    reader.tag(0, *b"CRIM")?;
    let version = (bytes.u16(8, "version")?, bytes.u16(10, "version")?);
    if !matches!(version.0, 3 | 5) {
        return Err(ResourceError::Version(version.0, version.1));
    }
    let count = bytes.place(12, "number of providers")?;
    let mut providers = Vec::new();
    for entry in bytes.entries(16, count, 20, "providers")? {
        let guid = Guid::from_bytes(bytes.guid(entry, "provider")?);
        let at = bytes.place(entry + 16, "provider")?;
        providers.push(reader.provider(guid, at)?);
    }
    Ok(providers)
}

struct Reader<'a> {
    bytes: Bytes<'a>,
    messages: &'a Messages,
    fields_left: usize,
    /// What several fields and events refer to, by its place.
    maps: HashMap<usize, Arc<ValueMap>>,
    templates: HashMap<usize, Arc<[Field]>>,
}

/// A field before it is known what its sizes refer to.
struct Descriptor {
    flags: u32,
    in_type: u8,
    out_type: u8,
    map: usize,
    /// For a structure: where its members are among the descriptors.
    members: (usize, usize),
    count: u16,
    length: u16,
    name: Arc<str>,
}

const STRUCT: u32 = 1;
const FIXED_LENGTH: u32 = 2;
const VARIABLE_LENGTH: u32 = 4;
const FIXED_COUNT: u32 = 8;
const VARIABLE_COUNT: u32 = 0x10;

impl Reader<'_> {
    /// Checks a tag.
    fn tag(&self, offset: usize, tag: [u8; 4]) -> Result<(), ResourceError> {
        let found = self.bytes.slice(offset, 4, "tag")?;
        if found == tag {
            Ok(())
        } else {
            Err(ResourceError::Tag { tag, offset })
        }
    }

    /// A message, unless there is none or it says nothing.
    fn message(&self, offset: usize, what: &'static str) -> Result<Option<String>, ResourceError> {
        let id = self.bytes.u32(offset, what)?;
        Ok(self
            .messages
            .get(id)
            .filter(|_| id != NONE)
            .map(str::to_owned))
    }

    /// The places of a list's entries.
    fn list(
        &self,
        offset: usize,
        tag: [u8; 4],
        size: usize,
        what: &'static str,
    ) -> Result<impl Iterator<Item = usize> + use<>, ResourceError> {
        self.tag(offset, tag)?;
        let count = self.bytes.place(offset + 8, what)?;
        self.bytes.entries(offset + 12, count, size, what)
    }

    /// What people see for a definition: its message, or else its name. Nothing for what
    /// winmeta defines.
    fn title(
        &self,
        message: usize,
        name: usize,
        what: &'static str,
    ) -> Result<Option<String>, ResourceError> {
        let name = self.bytes.sized_text(self.bytes.place(name, what)?, what)?;
        if name.starts_with(WINMETA) {
            return Ok(None);
        }
        Ok(Some(self.message(message, what)?.unwrap_or(name)))
    }

    fn provider(&mut self, guid: Guid, at: usize) -> Result<Provider, ResourceError> {
        self.tag(at, *b"WEVT")?;
        let mut provider = Provider {
            guid,
            ..Provider::default()
        };
        let count = self.bytes.place(at + 12, "number of parts")?;
        let parts: Vec<usize> = self.bytes.entries(at + 16, count, 8, "parts")?.collect();
        let mut names = HashMap::new();
        let mut events = None;
        for part in parts {
            let kind = self.bytes.u32(part, "part")?;
            let at = self.bytes.place(part + 4, "part")?;
            // Version 3 has room for parts that are not there.
            match kind {
                _ if at == 0 => {}
                LEVELS => self.levels(at, &mut provider)?,
                TASKS => self.tasks(at, &mut provider)?,
                OPCODES => self.opcodes(at, &mut provider)?,
                KEYWORDS => self.keywords(at, &mut provider)?,
                EVENTS => events = Some(at),
                EVENT_ATTRIBUTES => names = self.event_names(at)?,
                PROVIDER_ATTRIBUTES => self.provider_attributes(at, &mut provider)?,
                _ => {}
            }
        }
        if let Some(at) = events {
            self.events(at, &names, &mut provider)?;
        }
        Ok(provider)
    }

    fn levels(&self, at: usize, provider: &mut Provider) -> Result<(), ResourceError> {
        for entry in self.list(at, *b"LEVL", 12, "levels")? {
            let [value, ..] = self.bytes.u32(entry, "level")?.to_le_bytes();
            if let Some(title) = self.title(entry + 4, entry + 8, "level")? {
                provider.levels.insert(value, title);
            }
        }
        Ok(())
    }

    fn tasks(&self, at: usize, provider: &mut Provider) -> Result<(), ResourceError> {
        for entry in self.list(at, *b"TASK", 28, "tasks")? {
            let value = self.bytes.u16(entry, "task")?;
            if let Some(title) = self.title(entry + 4, entry + 24, "task")? {
                provider.tasks.insert(value, title);
            }
        }
        Ok(())
    }

    fn opcodes(&self, at: usize, provider: &mut Provider) -> Result<(), ResourceError> {
        for entry in self.list(at, *b"OPCO", 12, "opcodes")? {
            let task = self.bytes.u16(entry, "opcode")?;
            let [value, _] = self.bytes.u16(entry + 2, "opcode")?.to_le_bytes();
            if let Some(title) = self.title(entry + 4, entry + 8, "opcode")? {
                provider.opcodes.insert((task, value), title);
            }
        }
        Ok(())
    }

    fn keywords(&self, at: usize, provider: &mut Provider) -> Result<(), ResourceError> {
        for entry in self.list(at, *b"KEYW", 16, "keywords")? {
            let mask = self.bytes.u64(entry, "keyword")?;
            if let Some(title) = self.title(entry + 8, entry + 12, "keyword")? {
                provider.keywords.push((mask, title));
            }
        }
        Ok(())
    }

    fn provider_attributes(&self, at: usize, provider: &mut Provider) -> Result<(), ResourceError> {
        const NAME: u32 = 0x1000_0001;
        const CONTROL_GUID: u32 = 0x2000_0001;
        for entry in self.list(at, *b"PRVA", 8, "provider's attributes")? {
            let place = self.bytes.place(entry + 4, "attribute")?;
            match self.bytes.u32(entry, "attribute")? {
                NAME => provider.name = self.bytes.open_text(place, "provider's name")?,
                CONTROL_GUID => {
                    let guid = self.bytes.guid(place, "control GUID")?;
                    provider.control_guid = Some(Guid::from_bytes(guid));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The names of events, by id and version.
    fn event_names(&self, at: usize) -> Result<HashMap<(u16, u8), String>, ResourceError> {
        const NAME: u8 = 0x11;
        let mut names = HashMap::new();
        for entry in self.list(at, *b"EVTA", 8, "events' attributes")? {
            let version = self.bytes.u8(entry + 1, "attribute")?;
            let id = self.bytes.u16(entry + 2, "attribute")?;
            if self.bytes.u8(entry, "attribute")? == NAME {
                let place = self.bytes.place(entry + 4, "attribute")?;
                names.insert((id, version), self.bytes.open_text(place, "event's name")?);
            }
        }
        Ok(names)
    }

    fn events(
        &mut self,
        at: usize,
        names: &HashMap<(u16, u8), String>,
        provider: &mut Provider,
    ) -> Result<(), ResourceError> {
        self.tag(at, *b"EVNT")?;
        let count = self.bytes.place(at + 8, "number of events")?;
        for entry in self.bytes.entries(at + 16, count, 48, "events")? {
            let id = self.bytes.u16(entry, "event")?;
            let version = self.bytes.u8(entry + 2, "event")?;
            let fields = match self.bytes.place(entry + 20, "event")? {
                0 => Arc::default(),
                template => self.template(template)?,
            };
            let definition = EventDefinition {
                schema: Schema {
                    event_name: names.get(&(id, version)).cloned().unwrap_or_default(),
                    tags: 0,
                    fields,
                },
                symbol: None,
                message: self.message(entry + 16, "event")?,
            };
            provider.events.insert((id, version), definition);
        }
        Ok(())
    }

    /// The fields of a template.
    fn template(&mut self, at: usize) -> Result<Arc<[Field]>, ResourceError> {
        if let Some(known) = self.templates.get(&at) {
            return Ok(Arc::clone(known));
        }
        self.tag(at, *b"TEMP")?;
        let outer = self.bytes.place(at + 8, "template")?;
        let all = self.bytes.place(at + 12, "template")?;
        let start = self.bytes.place(at + 16, "template")?;
        let places = self.bytes.entries(start, all, 20, "fields")?;
        self.fields_left = self
            .fields_left
            .checked_sub(all)
            .ok_or(ResourceError::TooManyFields(MOST_FIELDS))?;
        let descriptors = places
            .map(|place| self.descriptor(place))
            .collect::<Result<Vec<_>, _>>()?;
        let bad = ResourceError::Reference {
            what: "template",
            offset: at,
        };
        let outer = descriptors.get(..outer).ok_or_else(|| bad.clone())?;
        let mut fields = Vec::with_capacity(outer.len());
        for descriptor in outer {
            let mut field = self.field(descriptor, &descriptors, &bad)?;
            if descriptor.flags & STRUCT != 0 {
                let (first, count) = descriptor.members;
                let members = descriptors.get(first..first + count);
                field.fields = members
                    .ok_or_else(|| bad.clone())?
                    .iter()
                    .map(|member| {
                        // Structures have no structures in them.
                        let plain = member.flags & STRUCT == 0;
                        let member = plain.then_some(member).ok_or_else(|| bad.clone())?;
                        self.field(member, &descriptors, &bad)
                    })
                    .collect::<Result<_, _>>()?;
            }
            fields.push(field);
        }
        let fields: Arc<[Field]> = fields.into();
        self.templates.insert(at, Arc::clone(&fields));
        Ok(fields)
    }

    fn descriptor(&self, at: usize) -> Result<Descriptor, ResourceError> {
        let what = "field";
        let bytes = self.bytes;
        let flags = bytes.u32(at, what)?;
        let name = bytes.sized_text(bytes.place(at + 16, what)?, "field's name")?;
        let is_struct = flags & STRUCT != 0;
        Ok(Descriptor {
            flags,
            in_type: bytes.u8(at + 4, what)?,
            out_type: bytes.u8(at + 5, what)?,
            map: if is_struct {
                0
            } else {
                bytes.place(at + 8, what)?
            },
            members: (
                usize::from(bytes.u16(at + 4, what)?),
                usize::from(bytes.u16(at + 6, what)?),
            ),
            count: bytes.u16(at + 12, what)?,
            length: bytes.u16(at + 14, what)?,
            name: name.into(),
        })
    }

    /// A field without its members.
    fn field(
        &mut self,
        it: &Descriptor,
        all: &[Descriptor],
        bad: &ResourceError,
    ) -> Result<Field, ResourceError> {
        let other = |number: u16| {
            let other = all.get(usize::from(number));
            other
                .map(|other| Arc::clone(&other.name))
                .ok_or_else(|| bad.clone())
        };
        let (in_type, out_type) = if it.flags & STRUCT == 0 {
            (InType::from_code(it.in_type), out_type(it.out_type))
        } else {
            (InType::Struct, OutType::Default)
        };
        Ok(Field {
            name: Arc::clone(&it.name),
            in_type,
            out_type,
            count: match it.flags & (FIXED_COUNT | VARIABLE_COUNT) {
                0 => Count::Scalar,
                FIXED_COUNT => Count::Fixed(it.count),
                _ => Count::Field(other(it.count)?),
            },
            length: match it.flags & (FIXED_LENGTH | VARIABLE_LENGTH) {
                0 => Length::Natural,
                FIXED_LENGTH => Length::Fixed(it.length),
                _ => Length::Field(other(it.length)?),
            },
            tags: 0,
            map: match it.map {
                0 => None,
                place => Some(self.map(place)?),
            },
            fields: Vec::new(),
        })
    }

    fn map(&mut self, at: usize) -> Result<Arc<ValueMap>, ResourceError> {
        if let Some(known) = self.maps.get(&at) {
            return Ok(Arc::clone(known));
        }
        let bits = self.tag(at, *b"BMAP").is_ok();
        if !bits {
            self.tag(at, *b"VMAP")?;
        }
        let count = self.bytes.place(at + 16, "map")?;
        let mut entries = Vec::new();
        for entry in self.bytes.entries(at + 20, count, 8, "map's values")? {
            let value = self.bytes.u32(entry, "map's value")?;
            let title = self.message(entry + 4, "map's value")?;
            entries.push((value, title.unwrap_or_else(|| value.to_string())));
        }
        self.fields_left = self
            .fields_left
            .checked_sub(entries.len())
            .ok_or(ResourceError::TooManyFields(MOST_FIELDS))?;
        let map = Arc::new(ValueMap { bits, entries });
        self.maps.insert(at, Arc::clone(&map));
        Ok(map)
    }
}

/// The meaning of a code, which are others than `TraceLogging`'s.
const fn out_type(code: u8) -> OutType {
    match code {
        1 => OutType::String,
        2 | 26 | 27 | 33 | 38 => OutType::DateTime,
        3 | 5 | 7 | 9 => OutType::Signed,
        4 | 6 | 8 | 10 => OutType::Unsigned,
        0 | 11 | 12 | 14 | 15 => OutType::Default,
        13 => OutType::Boolean,
        16..=19 | 29 => OutType::Hex,
        20 => OutType::ProcessId,
        21 => OutType::ThreadId,
        22 => OutType::Port,
        23 => OutType::Ipv4,
        24 => OutType::Ipv6,
        25 => OutType::SocketAddress,
        28 => OutType::Xml,
        30 => OutType::Win32Error,
        31 => OutType::NtStatus,
        32 => OutType::HResult,
        34 => OutType::Json,
        35 => OutType::Utf8,
        36 => OutType::Pkcs7,
        37 => OutType::CodePointer,
        other => OutType::Unknown(other),
    }
}
