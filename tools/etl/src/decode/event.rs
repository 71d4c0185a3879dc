//! Decoded events.

use std::sync::Arc;

use etw_wire::{Guid, winmeta};

use super::catalog::{Catalog, EventDefinition, Provider};
use super::error::{MetadataError, PayloadError};
use super::message;
use super::payload::{Fields, Payload};
use super::schema::Schema;
use super::schemas;
use super::traits::ProviderTraits;
use crate::read::Event;
use crate::record::{EventDescriptor, EventRecord, ext_type};
use crate::time::FileTime;

/// A decoded event.
#[derive(Clone, Debug, PartialEq)]
pub struct Decoded {
    /// The form of the record.
    pub kind: Kind,
    /// The time of the event.
    pub time: FileTime,
    /// The reading of the session's clock.
    pub timestamp: i64,
    /// The processor on which the event was written.
    pub processor: u16,
    /// The process that wrote the event.
    pub process_id: u32,
    /// The thread that wrote the event.
    pub thread_id: u32,
    /// The provider's GUID.
    pub provider: Guid,
    /// The provider's name, if its traits or a manifest give it.
    pub provider_name: Option<Arc<str>>,
    /// The provider group, if the traits give one.
    pub group: Option<Guid>,
    /// The id, version, channel, level, opcode, task and keyword.
    pub descriptor: EventDescriptor,
    /// The event's name.
    pub event_name: Option<Arc<str>>,
    /// The level's name.
    pub level_name: Option<Arc<str>>,
    /// The names of the keyword's bits.
    pub keywords: Keywords,
    /// The opcode's name.
    pub opcode_name: Option<Arc<str>>,
    /// The task's name.
    pub task_name: Option<Arc<str>>,
    /// The activity id; null if there is none.
    pub activity: Guid,
    /// The related activity's id.
    pub related_activity: Option<Guid>,
    /// The manifest's message with the fields' values inserted.
    pub message: Option<String>,
    /// The fields with their names.
    pub fields: Fields,
    /// The user data after the last decoded field.
    pub leftover: Vec<u8>,
    /// The parts that could not be decoded, with the reasons.
    pub problems: Vec<Problem>,
    /// The call stack, if one was recorded.
    pub stack: Option<Stack>,
    /// The file name of the process's image, if the trace's own events were searched for names.
    pub process_name: Option<Arc<str>>,
    /// The name of the thread, if it has one and names were searched.
    pub thread_name: Option<Arc<str>>,
}

/// The form of the record from which an event was decoded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Kind {
    /// An event of a provider: a manifest event or a `TraceLogging` event.
    #[default]
    Event,
    /// An event of the kernel's own logger.
    Kernel {
        /// Group and type of the event.
        hook: u16,
    },
    /// A classic event.
    Classic {
        /// GUID of the event's class.
        class: Guid,
        /// The event's type within its class.
        opcode: u8,
    },
    /// A WPP message.
    Wpp,
}

/// A call stack.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stack {
    /// The frames, the innermost first.
    pub frames: Vec<Frame>,
}

/// A frame of a call stack.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// The address of the code.
    pub address: u64,
    /// The image and the offset in it, such as `driver.sys+0x1a2c`, if the image is known.
    pub place: Option<Arc<str>>,
}

/// The bits of a keyword by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Keywords {
    /// The names of the bits that have a name.
    pub names: Arc<[Arc<str>]>,
    /// The bits without a name.
    pub unnamed: u64,
}

/// A part of an event that could not be decoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The event has user data that nothing describes.
    #[error("no loaded manifest or image describes this event")]
    NoSchema,
    /// The provider traits are damaged.
    #[error("the provider traits are damaged: {0}")]
    Traits(MetadataError),
    /// The `TraceLogging` metadata is damaged.
    #[error("the event metadata is damaged: {0}")]
    Schema(MetadataError),
    /// The user data does not match its schema.
    #[error(transparent)]
    Payload(PayloadError),
    /// Bytes follow the last field of a kernel event.
    #[error("{bytes} bytes follow the last known field")]
    Surplus {
        /// The number of bytes.
        bytes: usize,
    },
    /// The layout of this version of a kernel event is unknown.
    #[error("version {version} of this kernel event is unknown; the last known version is {last}")]
    UnknownVersion {
        /// The version.
        version: u16,
        /// The last version that is known.
        last: u8,
    },
    /// The layout of a kernel event is unknown.
    #[error("the layout of this kernel event is unknown")]
    UnknownKernelEvent,
}

/// Decodes an event with its own metadata, or with a manifest.
#[must_use]
pub fn decode(event: &Event, catalog: &Catalog) -> Decoded {
    let record = &event.record;
    let descriptor = record.descriptor;
    let mut problems = Vec::new();
    let traits = record.item(ext_type::PROV_TRAITS).and_then(|blob| {
        ProviderTraits::parse(blob)
            .map_err(|error| problems.push(Problem::Traits(error)))
            .ok()
    });
    let by_traits = traits.as_ref().and_then(|traits| traits.decode_guid);
    let provider = by_traits
        .and_then(|guid| catalog.provider(guid))
        .or_else(|| catalog.provider(record.provider));
    let own_metadata = record.item(ext_type::EVENT_SCHEMA_TL);
    let definition = match own_metadata {
        Some(_) => None,
        None => provider.and_then(|p| p.event(descriptor.id, descriptor.version)),
    };
    let own_schema = own_metadata.and_then(|blob| {
        Schema::parse_trace_logging(blob)
            .map_err(|error| problems.push(Problem::Schema(error)))
            .ok()
    });
    let schema = own_schema
        .as_ref()
        .or_else(|| definition.map(|definition| &definition.schema));
    let chunk = match schema {
        Some(_) => None,
        None => schemas::chunk_fields(&descriptor, &record.user_data),
    };
    let is_chunk = chunk.is_some();
    let payload = match (schema, chunk) {
        (Some(schema), _) => schema.decode(&record.user_data, event.pointer_size),
        (None, Some(fields)) => Payload {
            fields,
            leftover: Vec::new(),
            error: None,
        },
        (None, None) => Payload {
            fields: Fields::new(),
            leftover: record.user_data.clone(),
            error: None,
        },
    };
    let is_described = own_metadata.is_some() || definition.is_some() || is_chunk;
    if !is_described && !record.user_data.is_empty() {
        problems.push(Problem::NoSchema);
    }
    problems.extend(payload.error.map(Problem::Payload));
    let names = Names {
        provider,
        definition,
        descriptor,
    };
    let provider_name = traits
        .as_ref()
        .map(|traits| traits.name.as_str())
        .filter(|name| !name.is_empty())
        .map(Arc::from)
        .or_else(|| provider.map(|p| p.name.as_str().into()));
    Decoded {
        kind: Kind::Event,
        time: event.time,
        timestamp: record.timestamp,
        processor: event.processor,
        process_id: record.process_id,
        thread_id: record.thread_id,
        provider: record.provider,
        provider_name,
        group: traits.and_then(|traits| traits.group),
        descriptor,
        event_name: own_schema
            .map(|schema| schema.event_name)
            .or_else(|| definition.and_then(EventDefinition::name))
            .or_else(|| is_chunk.then(|| schemas::CHUNK_NAME.to_owned()))
            .map(Arc::from),
        level_name: names.level(),
        keywords: names.keywords(),
        opcode_name: names.opcode(),
        task_name: names.task(),
        activity: record.activity_id,
        related_activity: record.related_activity(),
        message: definition
            .and_then(|d| d.message.as_deref())
            .map(|text| message::fill(text, &payload.fields)),
        fields: payload.fields,
        leftover: payload.leftover,
        problems,
        stack: stack(record),
        process_name: None,
        thread_name: None,
    }
}

/// Returns the call stack that an extended item holds.
fn stack(record: &EventRecord) -> Option<Stack> {
    let (item, width) = record
        .item(ext_type::STACK_TRACE64)
        .map(|item| (item, 8))
        .or_else(|| Some((record.item(ext_type::STACK_TRACE32)?, 4)))?;
    // A match id precedes the addresses.
    let frames = item.get(8..)?.chunks_exact(width).map(|address| {
        let mut bytes = [0; 8];
        for (to, from) in bytes.iter_mut().zip(address) {
            *to = *from;
        }
        Frame {
            address: u64::from_le_bytes(bytes),
            place: None,
        }
    });
    Some(Stack {
        frames: frames.collect(),
    })
}

/// Looks up the names of a descriptor's numbers, first among the provider's own and then among
/// those that Windows predefines.
struct Names<'a> {
    provider: Option<&'a Provider>,
    definition: Option<&'a EventDefinition>,
    descriptor: EventDescriptor,
}

impl Names<'_> {
    fn level(&self) -> Option<Arc<str>> {
        let value = self.descriptor.level;
        self.provider
            .and_then(|p| p.levels.get(&value).cloned())
            .or_else(|| text(winmeta::LEVELS, value))
    }

    fn opcode(&self) -> Option<Arc<str>> {
        let value = self.descriptor.opcode;
        self.provider
            .and_then(|p| p.opcode_name(self.descriptor.task, value).cloned())
            .or_else(|| text(winmeta::OPCODES, value))
    }

    fn task(&self) -> Option<Arc<str>> {
        self.provider
            .and_then(|p| p.tasks.get(&self.descriptor.task).cloned())
    }

    fn keywords(&self) -> Keywords {
        let mut names = Vec::new();
        let mut unnamed = self.descriptor.keyword;
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
        // These names come without masks, so the bits that they stand for are not known.
        let of_event = self.definition.map(|definition| &definition.keywords);
        if let Some(of_event) = of_event.filter(|all| unnamed != 0 && !all.is_empty()) {
            return Keywords {
                names: Arc::clone(of_event),
                unnamed: 0,
            };
        }
        Keywords {
            names: names.into(),
            unnamed,
        }
    }
}

/// Returns the text of a value in winmeta.xml.
fn text(known: &[winmeta::Standard<u8>], value: u8) -> Option<Arc<str>> {
    let known = known.iter().find(|known| known.value == value)?;
    Some(known.text.into())
}
