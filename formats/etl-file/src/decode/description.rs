//! The data that all events of the same kind share.

use std::sync::Arc;

use etw_wire::{Guid, winmeta};

use super::catalog::{Catalog, EventDefinition, Provider};
use super::event::{Decoded, Frame, Keywords, Kind, Problem, Stack};
use super::message;
use super::payload::{Fields, Payload};
use super::schema::Schema;
use super::schemas;
use super::traits::ProviderTraits;
use crate::code_page::CodePage;
use crate::cursor::utf16_until_nul;
use crate::read::{EventRef, PointerSize};
use crate::record::{EventDescriptor, ext_type};

/// The data that is common to all events with the same provider, descriptor, metadata and traits.
#[derive(Clone, Debug)]
pub struct Description {
    /// The provider's name, if traits or a manifest contain it.
    provider_name: Option<Arc<str>>,
    event_name: Option<Arc<str>>,
    level_name: Option<Arc<str>>,
    group: Option<Guid>,
    channel_name: Option<Arc<str>>,
    keywords: Keywords,
    opcode_name: Option<Arc<str>>,
    task_name: Option<Arc<str>>,
    schema: Option<Schema>,
    /// The size of the events' data with 4-byte and 8-byte pointers, if it is the same for all of
    /// them.
    sizes: [Option<usize>; 2],
    code_page: CodePage,
    message: Option<String>,
    problems: Vec<Problem>,
    /// True if no definition was found, which is a problem for events with user data.
    unknown: bool,
    /// True if the user data is a string, which becomes the message.
    string_only: bool,
}

/// The parts with which an event describes itself: the traits of its provider, and its `TraceLogging` metadata.
#[derive(Clone, Copy)]
pub(super) struct Own<'a> {
    pub(super) traits: Option<&'a [u8]>,
    pub(super) metadata: Option<&'a [u8]>,
}

impl<'a> Own<'a> {
    /// Returns what the extended items of an event contain.
    pub(super) fn of_items(event: &EventRef<'a>) -> Self {
        let (mut traits, mut metadata) = (None, None);
        for (ext_type, data) in event.items.iter() {
            match ext_type {
                ext_type::EVENT_SCHEMA_TL if metadata.is_none() => metadata = Some(data),
                ext_type::PROV_TRAITS if traits.is_none() => traits = Some(data),
                _ => {}
            }
        }
        Self { traits, metadata }
    }

    /// Returns what the user data of an event begins with, and the event without it: where ETW does not
    /// know the types of data descriptors, it adds no items, and the user data of an event on the channel of
    /// `TraceLogging` begins with the traits and the metadata (ETW-6.6.3).
    pub(super) fn of_user_data(event: &EventRef<'a>) -> Option<(Self, EventRef<'a>)> {
        /// `WINEVENT_CHANNEL_TRACELOGGING`.
        const CHANNEL: u8 = 11;
        if event.descriptor.channel != CHANNEL || event.is_string_only() {
            return None;
        }
        let (traits, rest) = split_block(event.user_data)?;
        let (metadata, user_data) = split_block(rest)?;
        let (read, damage) = ProviderTraits::read(traits);
        let is_whole = damage.is_none() && !read.name.is_empty();
        if !is_whole || Schema::parse_trace_logging(metadata).is_err() {
            return None;
        }
        let own = Self { traits: Some(traits), metadata: Some(metadata) };
        Some((own, EventRef { user_data, ..*event }))
    }
}

/// Splits a block, which begins with its size in 16 bits, from the start of data.
fn split_block(data: &[u8]) -> Option<(&[u8], &[u8])> {
    let size = data.first_chunk().map(|size| usize::from(u16::from_le_bytes(*size)))?;
    data.split_at_checked(size).filter(|(block, _)| block.len() > 2)
}

impl Description {
    /// Returns the data for events of the same kind as `event`, which says `own` about itself.
    pub(super) fn new(event: &EventRef<'_>, own: Own<'_>, catalog: &Catalog) -> Self {
        let descriptor = event.descriptor;
        let mut problems = Vec::new();
        let traits = own.traits.map(|blob| {
            let (traits, damage) = ProviderTraits::read(blob);
            problems.extend(damage.map(Problem::Traits));
            traits
        });
        let by_traits = traits.as_ref().and_then(|traits| traits.decode_guid);
        let provider = by_traits
            .and_then(|guid| catalog.provider_of(guid, event.process_id))
            .or_else(|| catalog.provider_of(event.provider, event.process_id));
        let own_metadata = own.metadata;
        let string_only = own_metadata.is_none() && event.is_string_only();
        let of_provider = provider.filter(|_| own_metadata.is_none() && !string_only);
        let definition = of_provider.and_then(|p| p.event(descriptor.id, descriptor.version));
        let key = (descriptor.id, descriptor.version);
        if definition.is_some() && provider.is_some_and(|p| p.ambiguous.contains(&key)) {
            problems.push(Problem::Ambiguous { process: event.process_id });
        }
        let own_schema = own_metadata.and_then(|blob| {
            let (schema, damage) = Schema::read_trace_logging(blob);
            problems.extend(damage.map(Problem::Schema));
            schema
        });
        let is_chunk = own_schema.is_none()
            && definition.is_none()
            && !string_only
            && schemas::chunk_fields(&descriptor, event.user_data).is_some();
        let schema = own_schema.as_ref().or_else(|| definition.map(|known| &known.schema));
        let schema = schema.map(|schema| schema.prepared(catalog.in_hex()));
        let size = |pointers| schema.as_ref().and_then(|schema| schema.size(pointers));
        let names = Names { provider, definition, descriptor };
        Self {
            provider_name: traits
                .as_ref()
                .map(|traits| traits.name.as_str())
                .filter(|name| !name.is_empty())
                .map(Arc::from)
                .or_else(|| provider.map(|p| p.name.as_str().into())),
            event_name: own_metadata
                .and(schema.as_ref())
                .map(|schema| schema.event_name.clone())
                .or_else(|| definition.and_then(EventDefinition::name))
                .or_else(|| is_chunk.then(|| schemas::CHUNK_NAME.to_owned()))
                .map(Arc::from),
            level_name: names.level(),
            group: traits.and_then(|traits| traits.group),
            channel_name: names.channel(),
            keywords: names.keywords(),
            opcode_name: names.opcode(),
            task_name: names.task(),
            unknown: own_metadata.is_none() && definition.is_none() && !string_only,
            string_only,
            sizes: [PointerSize::Four, PointerSize::Eight].map(size),
            schema,
            code_page: catalog.code_page(),
            message: definition.and_then(|definition| definition.message.clone()),
            problems,
        }
    }

    /// Returns true if an event's user data has the size that all data of its kind has. Such data
    /// can be decoded.
    fn has_fixed_size(&self, event: &EventRef<'_>) -> bool {
        let [of_four, of_eight] = self.sizes;
        let size = match event.pointer_size {
            PointerSize::Four => of_four,
            PointerSize::Eight => of_eight,
        };
        size == Some(event.user_data.len())
    }

    /// Decodes an event of this kind. Without `details`, decodes only the names of provider, event
    /// and level, and the problems, for which other parts can be necessary.
    pub(super) fn decode(&self, event: &EventRef<'_>, details: bool) -> Decoded {
        let chunk = match self.schema {
            _ if self.string_only => None,
            Some(_) => None,
            None => schemas::chunk_fields(&event.descriptor, event.user_data),
        };
        let is_chunk = chunk.is_some();
        let string = self.string_only.then(|| split_string(event.user_data));
        let payload = match (&self.schema, chunk) {
            (Some(_), _) if !details && self.event_name.is_some() && self.has_fixed_size(event) => {
                Payload { fields: Fields::new(), leftover: Vec::new(), error: None }
            }
            (Some(schema), _) => {
                let values = details || self.event_name.is_none();
                schema.decode_with(event.user_data, event.pointer_size, self.code_page, values)
            }
            (None, Some(fields)) => Payload { fields, leftover: Vec::new(), error: None },
            (None, None) => {
                let leftover = string.map_or(event.user_data, |(_, rest)| rest).to_vec();
                Payload { fields: Fields::new(), leftover, error: None }
            }
        };
        let mut problems = self.problems.clone();
        if self.unknown && !is_chunk && !event.user_data.is_empty() {
            problems.push(Problem::NoSchema);
        }
        // A schema from damaged metadata has no fields.
        let is_whole = !problems.iter().any(|problem| matches!(problem, Problem::Schema(_)));
        let is_known = self.schema.is_some() || self.string_only;
        let surplus = is_known && is_whole && !payload.leftover.is_empty();
        problems.extend(match payload.error {
            Some(error) => Some(Problem::Payload(error)),
            None => surplus.then_some(Problem::Surplus { bytes: payload.leftover.len() }),
        });
        let message = match (string, &self.message) {
            _ if !details => None,
            (Some((text, _)), _) => Some(utf16_until_nul(text)),
            (None, Some(text)) => Some(message::fill(text, &payload.fields)),
            (None, None) => None,
        };
        let detail = |name: &Option<Arc<str>>| if details { name.clone() } else { None };
        Decoded {
            kind: Kind::Event,
            time: event.time,
            timestamp: event.timestamp,
            processor: event.processor,
            process_id: event.process_id,
            thread_id: event.thread_id,
            provider: event.provider,
            provider_name: self.provider_name.clone(),
            group: self.group,
            descriptor: event.descriptor,
            event_name: self.event_name.clone(),
            level_name: self.level_name.clone(),
            channel_name: detail(&self.channel_name),
            keywords: if details { self.keywords.clone() } else { Keywords::default() },
            opcode_name: detail(&self.opcode_name),
            task_name: detail(&self.task_name),
            activity: event.activity_id,
            related_activity: event.related_activity(),
            message,
            fields: payload.fields,
            leftover: payload.leftover,
            problems,
            duration: None,
            stack: if details { stack(event) } else { None },
            process_name: None,
            thread_name: None,
        }
    }
}

/// Splits user data into a NUL-terminated UTF-16 string and the bytes after it.
fn split_string(user_data: &[u8]) -> (&[u8], &[u8]) {
    let (units, _) = user_data.as_chunks::<2>();
    let length = units.iter().position(|unit| *unit == [0; 2]);
    let end = 2 * length.map_or(units.len(), |length| length + 1);
    let (text, rest) = user_data.split_at_checked(end).unwrap_or((user_data, &[]));
    (text, rest)
}

/// Returns the call stack in an event's extended items, or the keys that refer to it (ETL-15.1).
fn stack(event: &EventRef<'_>) -> Option<Stack> {
    let mut stack: Option<Stack> = None;
    for (kind, item) in event.items.iter() {
        let width = match kind {
            ext_type::STACK_TRACE64 | ext_type::STACK_KEY64 => 8,
            ext_type::STACK_TRACE32 | ext_type::STACK_KEY32 => 4,
            _ => continue,
        };
        let Some((match_id, rest)) = item.split_first_chunk() else {
            continue;
        };
        let stack = stack.get_or_insert_default();
        if stack.match_id == 0 {
            stack.match_id = u64::from_le_bytes(*match_id);
        }
        let mut addresses = rest.chunks_exact(width).map(|address| {
            let mut bytes = [0; 8];
            for (to, from) in bytes.iter_mut().zip(address) {
                *to = *from;
            }
            u64::from_le_bytes(bytes)
        });
        if matches!(kind, ext_type::STACK_KEY32 | ext_type::STACK_KEY64) {
            stack.keys.extend(addresses.next());
        } else {
            stack.frames.extend(addresses.map(|address| Frame { address, place: None }));
        }
    }
    stack
}

/// Looks up the names of a descriptor's values, first in the provider's definitions and then in
/// Windows' predefined ones.
struct Names<'a> {
    provider: Option<&'a Provider>,
    definition: Option<&'a EventDefinition>,
    descriptor: EventDescriptor,
}

impl Names<'_> {
    fn level(&self) -> Option<Arc<str>> {
        let value = self.descriptor.level;
        self.provider
            .and_then(|p| p.levels.get(&value).map(copy))
            .or_else(|| text(winmeta::LEVELS, value))
    }

    fn opcode(&self) -> Option<Arc<str>> {
        let value = self.descriptor.opcode;
        self.provider
            .and_then(|p| p.opcode_name(self.descriptor.task, value).map(copy))
            .or_else(|| text(winmeta::OPCODES, value))
    }

    fn task(&self) -> Option<Arc<str>> {
        self.provider.and_then(|p| p.tasks.get(&self.descriptor.task).map(copy))
    }

    fn channel(&self) -> Option<Arc<str>> {
        let value = self.descriptor.channel;
        let own = self.provider.and_then(|p| p.channel(value)).map(|own| copy(&own.name));
        own.or_else(|| {
            let known =
                winmeta::CHANNELS.iter().find(|known| known.value == value && value != 0)?;
            Some(known.name.into())
        })
    }

    fn keywords(&self) -> Keywords {
        let mut names: Vec<Arc<str>> = Vec::new();
        let mut unnamed = self.descriptor.keyword;
        let channel = self.provider.and_then(|p| p.channel(self.descriptor.channel));
        unnamed &= !channel.map_or(0, |channel| channel.bit);
        for (mask, name) in self.provider.map_or(&[][..], |p| p.keywords()) {
            if unnamed & mask != 0 {
                names.push(name.as_str().into());
                unnamed &= !mask;
            }
        }
        for known in winmeta::KEYWORDS {
            if unnamed & known.value != 0 {
                names.push(known.text.into());
                unnamed &= !known.value;
            }
        }
        for channel in self.provider.iter().flat_map(|p| p.channels.values()) {
            if unnamed & channel.bit != 0 {
                names.push(Arc::clone(&channel.name));
                unnamed &= !channel.bit;
            }
        }
        // These names have no masks, so their bits are unknown.
        let of_event = self.definition.map(|definition| &definition.keywords);
        if let Some(of_event) = of_event.filter(|all| unnamed != 0 && !all.is_empty()) {
            return Keywords { names: Arc::from(&**of_event), unnamed: 0 };
        }
        let reserved = unnamed & winmeta::RESERVED_KEYWORDS;
        let bits = (0..u64::BITS).filter(|bit| reserved & 1 << bit != 0);
        names.extend(bits.map(|bit| format!("ReservedKeyword{bit}").into()));
        unnamed &= !reserved;
        Keywords { names: names.into(), unnamed }
    }
}

/// Copies a name of the catalog. With shared names, decoding threads would contend for their
/// reference counts.
fn copy(name: &Arc<str>) -> Arc<str> {
    Arc::from(&**name)
}

/// Returns the name of a value in winmeta.xml.
fn text(known: &[winmeta::Standard<u8>], value: u8) -> Option<Arc<str>> {
    let known = known.iter().find(|known| known.value == value)?;
    Some(known.text.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::catalog::{Catalog, Channel};
    use crate::decode::decoded;
    use crate::decode::decoder::Decoder;
    use crate::read::Event;
    use crate::record::{EventRecord, ExtendedItem, ext_type};

    #[test]
    fn the_keywords_of_windows_have_names_and_the_other_bits_none() {
        let event = decoded(EventRecord {
            descriptor: EventDescriptor {
                keyword: 1 << 51 | 1 << 48 | 0x5,
                ..EventDescriptor::default()
            },
            ..EventRecord::default()
        });
        let names: Vec<&str> = event.keywords.names.iter().map(AsRef::as_ref).collect();
        assert_eq!(names, ["Response Time", "SQM"]);
        assert_eq!(event.keywords.unnamed, 0x5);
    }

    #[test]
    fn an_event_has_the_same_problems_without_its_fields() {
        // One field: a 32-bit number.
        let schema = b"\x0A\0\0E\0\x66\0\x08".to_vec();
        let schema = |sound: bool| {
            let mut schema = schema.clone();
            schema[0] = u8::try_from(schema.len()).unwrap();
            if !sound {
                schema.pop();
            }
            ExtendedItem { ext_type: ext_type::EVENT_SCHEMA_TL, data: schema }
        };
        // A single field: a NUL-terminated string.
        let text = || ExtendedItem {
            ext_type: ext_type::EVENT_SCHEMA_TL,
            data: b"\x08\0\0E\0s\0\x01".to_vec(),
        };
        let catalog = Catalog::new();
        let mut found = Vec::new();
        for (items, length) in [
            (vec![], 0),
            (vec![], 1),
            (vec![schema(true)], 4),
            (vec![schema(true)], 3),
            (vec![schema(true)], 5),
            (vec![text()], 2),
            (vec![text()], 3),
            (vec![schema(false)], 0),
            (vec![schema(false)], 4),
        ] {
            let event = Event {
                record: EventRecord {
                    extended: items,
                    user_data: vec![0; length],
                    ..EventRecord::default()
                },
                ..Event::default()
            };
            let shown = Decoder::new(&catalog).decode(&event.view());
            let named = Decoder::new(&catalog).without_details().decode(&event.view());
            assert_eq!(named.problems, shown.problems);
            assert_eq!(named.event_name, shown.event_name);
            found.push(!named.problems.is_empty());
        }
        assert_eq!(found[..7], [false, true, false, true, true, false, true]);
    }

    #[test]
    fn traits_and_metadata_can_begin_the_user_data_on_the_channel_of_trace_logging() {
        let traits = b"\x05\0Pr\0".as_slice();
        let metadata = b"\x08\0\0E\0s\0\x01".as_slice();
        let decoded = |channel: u8, data: &[&[u8]]| {
            let event = Event {
                record: EventRecord {
                    descriptor: EventDescriptor { channel, ..EventDescriptor::default() },
                    user_data: data.concat(),
                    ..EventRecord::default()
                },
                ..Event::default()
            };
            let decoded = Decoder::new(&Catalog::new()).decode(&event.view());
            assert_eq!(crate::decode(&event, &Catalog::new()), decoded);
            let names = [decoded.provider_name.as_deref(), decoded.event_name.as_deref()];
            let names = names.map(|name| name.unwrap_or_default().to_owned());
            (names, decoded.fields.len(), decoded.leftover.len(), decoded.problems.len())
        };
        let text = b"t\0e\0\0\0".as_slice();
        let named = ["Pr", "E"].map(str::to_owned);
        assert_eq!(decoded(11, &[traits, metadata, text]), (named, 1, 0, 0));
        let unknown = <[String; 2]>::default();
        // Another channel, no metadata, damaged metadata, and traits without a name.
        assert_eq!(decoded(0, &[traits, metadata, text]), (unknown.clone(), 0, 19, 1));
        assert_eq!(decoded(11, &[traits, text]), (unknown.clone(), 0, 11, 1));
        assert_eq!(decoded(11, &[traits, &metadata[..7]]), (unknown.clone(), 0, 12, 1));
        assert_eq!(
            decoded(11, &[traits, b"\x08\0\0E\0s\0\x8C", text]),
            (unknown.clone(), 0, 19, 1)
        );
        assert_eq!(decoded(11, &[b"\x03\0\0", metadata, text]), (unknown, 0, 17, 1));
    }

    #[test]
    fn a_provider_names_the_keywords_that_an_event_has() {
        let provider = Provider {
            keywords: vec![(1, "A".to_owned()), (6, "B".to_owned()), (8, "C".to_owned())],
            ..Provider::default()
        };
        let names = |keyword| {
            let names = Names {
                provider: Some(&provider),
                definition: None,
                descriptor: EventDescriptor { keyword, ..EventDescriptor::default() },
            };
            let found = names.keywords();
            (found.names.join(" "), found.unnamed)
        };
        assert_eq!(names(0), (String::new(), 0));
        assert_eq!(names(1), ("A".to_owned(), 0));
        assert_eq!(names(2), ("B".to_owned(), 0));
        assert_eq!(names(9 | 16), ("A C".to_owned(), 16));
    }

    #[test]
    fn the_bit_of_a_channel_has_its_name_and_reserved_bits_those_of_winmeta() {
        let channel = |name: &str, bit| Channel { name: name.into(), bit };
        let provider = Provider {
            keywords: vec![(1, "A".to_owned())],
            channels: [(16, channel("P/Admin", 1 << 63)), (17, channel("P/Debug", 1 << 62))].into(),
            ..Provider::default()
        };
        let names = |provider, channel, keyword, of_event: &[&str]| {
            let keywords = of_event.iter().map(|name| (*name).into()).collect();
            let names = Names {
                provider,
                definition: Some(&EventDefinition { keywords, ..EventDefinition::default() }),
                descriptor: EventDescriptor { channel, keyword, ..EventDescriptor::default() },
            };
            let (found, channel) = (names.keywords(), names.channel());
            let channel = channel.as_deref().unwrap_or_default().to_owned();
            (found.names.join(" "), found.unnamed, channel)
        };
        let of = |names: &str, unnamed, channel: &str| (names.to_owned(), unnamed, channel.into());
        let known = Some(&provider);
        assert_eq!(names(known, 16, 1 << 63 | 1, &[]), of("A", 0, "P/Admin"));
        assert_eq!(names(known, 16, 1 << 63 | 1, &["B"]), of("A", 0, "P/Admin"));
        assert_eq!(names(known, 17, 1 << 63 | 1 << 62, &[]), of("P/Admin", 0, "P/Debug"));
        assert_eq!(names(known, 0, 1 << 62 | 2, &[]), of("P/Debug", 2, ""));
        assert_eq!(names(known, 18, 1 << 61, &[]), of("ReservedKeyword61", 0, ""));
        let both = of("ReservedKeyword56 ReservedKeyword63", 4, "System");
        assert_eq!(names(None, 8, 1 << 63 | 1 << 56 | 4, &[]), both);
        assert_eq!(names(None, 0, 1 << 63 | 4, &["B"]), of("B", 0, ""));
    }
}
