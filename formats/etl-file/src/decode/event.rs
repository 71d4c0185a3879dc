//! Decoded events.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use etw_wire::Guid;

use super::error::{MetadataError, PayloadError};
use super::payload::Fields;
use super::value::Value;
use super::wpp::ArgumentError;
use crate::record::EventDescriptor;
use crate::time::FileTime;

/// A decoded event.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decoded {
    /// The kind of record.
    pub kind: Kind,
    /// The time of the event.
    pub time: FileTime,
    /// The raw timestamp: a reading of the session's clock.
    pub timestamp: i64,
    /// The processor on which the event was written.
    pub processor: u16,
    /// The process that wrote the event.
    pub process_id: u32,
    /// The thread that wrote the event.
    pub thread_id: u32,
    /// The provider's GUID.
    pub provider: Guid,
    /// The provider's name, if traits or a manifest contain it.
    pub provider_name: Option<Arc<str>>,
    /// The provider group, if the traits contain one.
    pub group: Option<Guid>,
    /// The id, version, channel, level, opcode, task and keyword.
    pub descriptor: EventDescriptor,
    /// The event's name.
    pub event_name: Option<Arc<str>>,
    /// The level's name.
    pub level_name: Option<Arc<str>>,
    /// The channel's name, unless the channel is 0.
    pub channel_name: Option<Arc<str>>,
    /// The names of the keyword's bits, except the bit of the event's channel.
    pub keywords: Keywords,
    /// The opcode's name.
    pub opcode_name: Option<Arc<str>>,
    /// The task's name.
    pub task_name: Option<Arc<str>>,
    /// The activity id; null if there is none.
    pub activity: Guid,
    /// The related activity's id.
    pub related_activity: Option<Guid>,
    /// The manifest's message with field values inserted.
    pub message: Option<String>,
    /// The names and values of the fields.
    pub fields: Fields,
    /// The user data after the last decoded field.
    pub leftover: Vec<u8>,
    /// The parts that could not be decoded, with the reasons.
    pub problems: Vec<Problem>,
    /// The duration of the operation that the event completes, such as a DPC or an ISR, if the
    /// event contains its start time.
    pub duration: Option<Duration>,
    /// The call stack, if one was recorded.
    pub stack: Option<Stack>,
    /// The file name of the process's image, if names were looked up in the trace.
    pub process_name: Option<Arc<str>>,
    /// The thread's name, if it has one and names were looked up.
    pub thread_name: Option<Arc<str>>,
}

impl Decoded {
    /// Returns the value of the first field with this name.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&Value> {
        let (_, value) = self.fields.iter().find(|(known, _)| &**known == name)?;
        Some(value)
    }
}

/// The kind of record that an event was decoded from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A provider's event: a manifest event or a `TraceLogging` event.
    #[default]
    Event,
    /// An event of the kernel logger.
    Kernel {
        /// The event's group and type.
        hook: u16,
    },
    /// A classic event.
    Classic {
        /// The GUID of the event's class.
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
    /// The frames, innermost first.
    pub frames: Vec<Frame>,
    /// The process that the frames belong to, if the stack's record names it. Otherwise, it is the
    /// event's process.
    pub process_id: Option<u32>,
    /// The number that links two halves of one call stack: one event has the kernel frames, and
    /// another has the user-mode frames. 0 if there is only one half.
    pub match_id: u64,
    /// The keys of stacks whose frames other records define and that are still unknown.
    pub keys: Vec<u64>,
}

/// A frame of a call stack.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// The address of the code.
    pub address: u64,
    /// The image and the offset in it, such as `driver.sys+0x1a2c`, if the image is known.
    pub place: Option<Arc<str>>,
}

/// Formats the address and, if known, the location.
impl fmt::Display for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.address)?;
        self.place.iter().try_for_each(|place| write!(f, " {place}"))
    }
}

/// The named and unnamed bits of a keyword.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Keywords {
    /// The names of the named bits.
    pub names: Arc<[Arc<str>]>,
    /// The bits without names.
    pub unnamed: u64,
}

impl Problem {
    /// Returns true if the record is a system record with an undocumented layout. The user cannot
    /// load a definition for it.
    #[must_use]
    pub const fn is_of_system(&self) -> bool {
        matches!(self, Self::UnknownKernelEvent | Self::UnknownVersion { .. })
    }
}

/// A part of an event that could not be decoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The event has user data, but no definition was found.
    #[error("no loaded manifest or image describes this event")]
    NoSchema,
    /// The manifests in the trace describe the event differently, and its process wrote none of them
    /// or several.
    #[error(
        "the trace's manifests describe this event differently, and which one process {process} \
         uses is unknown; the last one is used"
    )]
    Ambiguous {
        /// The process that wrote the event.
        process: u32,
    },
    /// No loaded MOF file defines the class of the classic event.
    #[error("no loaded MOF file describes this classic event; name one with --mof")]
    NoClass,
    /// The provider traits are damaged.
    #[error("the provider traits are damaged: {0}")]
    Traits(MetadataError),
    /// The `TraceLogging` metadata is damaged.
    #[error("the event metadata is damaged: {0}")]
    Schema(MetadataError),
    /// The user data does not match its schema.
    #[error(transparent)]
    Payload(PayloadError),
    /// Bytes follow the last field: the schema lacks fields of the event, or ends before a field of
    /// unknown size. TDH ignores such bytes.
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
        /// The latest known version.
        last: u8,
    },
    /// The layout of a system event is unknown.
    #[error("the layout of this system event is unknown")]
    UnknownKernelEvent,
    /// No loaded format describes the WPP message.
    #[error("no loaded TMF file or PDB describes this message")]
    NoFormat,
    /// The bytes of the WPP message do not match its format.
    #[error(transparent)]
    Argument(ArgumentError),
    /// The event's stack is identified by a key that no record in the trace defines.
    #[error("no record in the trace defines the stack with the key {key:#x}")]
    UnknownStack {
        /// The key.
        key: u64,
    },
}
